//! Moments as text, to and from microseconds since the Unix epoch.
//!
//! A moment is an `i64` of microseconds, in UTC, everywhere in this crate. Text with an offset is
//! converted; text without one is refused, except in the one format (the Reverie archives') that
//! never has one and is read as UTC. No leap seconds, no daylight saving, no clock is read.

use time::format_description::well_known::Rfc3339;
use time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time};

/// Text that is no moment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimestampError {
    /// Not RFC 3339. A date and time without a zone belongs here too: it names no moment.
    #[error(
        "{0:?} is not an RFC 3339 time; write date, time and zone, as in 2023-02-13T00:00:00Z or 2023-02-13T09:00:00+09:00"
    )]
    Rfc3339(String),
    /// Not a date and time as the Reverie archives write it.
    #[error("{0:?} is not a time of the form YYYY-MM-DD HH:MM:SS")]
    Reverie(String),
}

/// Microseconds since the epoch of an RFC 3339 time with its zone. Digits beyond the microsecond
/// are cut off (towards the past).
///
/// # Errors
/// Anything else, a time without a zone included.
///
/// ```
/// use memorank::import::timestamp::parse_rfc3339_us;
/// let tokyo = parse_rfc3339_us("2023-02-13T00:00:00+09:00")?;
/// assert_eq!(tokyo, parse_rfc3339_us("2023-02-12T15:00:00Z")?);
/// assert!(parse_rfc3339_us("2023-02-12T15:00:00").is_err());
/// # Ok::<(), memorank::import::timestamp::TimestampError>(())
/// ```
pub fn parse_rfc3339_us(text: &str) -> Result<i64, TimestampError> {
    parse_rfc3339(text).map(|(us, _)| us)
}

/// As [`parse_rfc3339_us`], and whether no digit was cut off.
pub(crate) fn parse_rfc3339(text: &str) -> Result<(i64, bool), TimestampError> {
    let refused = || TimestampError::Rfc3339(text.to_owned());
    // `time` takes any byte between date and time.
    if !matches!(text.as_bytes().get(10), Some(b'T' | b't' | b' ')) {
        return Err(refused());
    }
    let moment = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| refused())?;
    let digits = text.split_once('.').map_or("", |(_, fraction)| fraction);
    let cut = digits.bytes().take_while(u8::is_ascii_digit).skip(6);
    // A leap second becomes the last nanosecond before it.
    let exact = moment.nanosecond().is_multiple_of(1000) && cut.into_iter().all(|d| d == b'0');
    Ok((to_us(moment), exact))
}

/// Microseconds since the epoch of `YYYY-MM-DD HH:MM:SS`, which has no zone and is read as UTC.
///
/// # Errors
/// Anything else: every field has its full width, and the date must exist.
///
/// ```
/// use memorank::import::timestamp::parse_reverie_us;
/// assert_eq!(parse_reverie_us("1970-01-01 00:00:01"), Ok(1_000_000));
/// assert!(parse_reverie_us("2023-02-29 00:00:00").is_err());
/// ```
pub fn parse_reverie_us(text: &str) -> Result<i64, TimestampError> {
    reverie(text)
        .map(to_us)
        .ok_or_else(|| TimestampError::Reverie(text.to_owned()))
}

fn reverie(text: &str) -> Option<OffsetDateTime> {
    let bytes: &[u8; 19] = text.as_bytes().try_into().ok()?;
    let marks = [(4, b'-'), (7, b'-'), (10, b' '), (13, b':'), (16, b':')];
    if marks.iter().any(|&(at, mark)| bytes[at] != mark) {
        return None;
    }
    let number = |from: usize, to: usize| {
        bytes[from..to].iter().try_fold(0u16, |n, &b| {
            b.is_ascii_digit().then(|| n * 10 + u16::from(b - b'0'))
        })
    };
    // Two digits always fit.
    let two = |from: usize| number(from, from + 2).map(|n| n as u8);
    let month = Month::try_from(two(5)?).ok()?;
    let date = Date::from_calendar_date(i32::from(number(0, 4)?), month, two(8)?).ok()?;
    let time = Time::from_hms(two(11)?, two(14)?, two(17)?).ok()?;
    Some(PrimitiveDateTime::new(date, time).assume_utc())
}

/// Years -9999 to 9999 stay far inside an i64 of microseconds.
fn to_us(moment: OffsetDateTime) -> i64 {
    moment.unix_timestamp() * 1_000_000 + i64::from(moment.microsecond())
}

/// `us` as RFC 3339 in UTC, with six digits after the second unless they are zero. A moment outside
/// the years 0 to 9999, which RFC 3339 cannot write, is given as its plain number of microseconds.
///
/// ```
/// use memorank::import::timestamp::format_us;
/// assert_eq!(format_us(1_676_246_400_000_000), "2023-02-13T00:00:00Z");
/// assert_eq!(format_us(-1), "1969-12-31T23:59:59.999999Z");
/// assert_eq!(format_us(i64::MAX), "9223372036854775807");
/// ```
pub fn format_us(us: i64) -> String {
    rfc3339(us).unwrap_or_else(|| us.to_string())
}

/// `us` as [`format_us`] writes it, if RFC 3339 can.
pub(crate) fn rfc3339(us: i64) -> Option<String> {
    let t = OffsetDateTime::from_unix_timestamp(us.div_euclid(1_000_000)).ok()?;
    if !(0..=9999).contains(&t.year()) {
        return None;
    }
    let fraction = match us.rem_euclid(1_000_000) {
        0 => String::new(),
        micros => format!(".{micros:06}"),
    };
    Some(format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{fraction}Z",
        t.year(),
        u8::from(t.month()),
        t.day(),
        t.hour(),
        t.minute(),
        t.second()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn leap_days_and_ranges() {
        assert!(parse_reverie_us("2024-02-29 23:59:59").is_ok());
        for bad in [
            "2023-02-29 00:00:00",
            "2023-13-01 00:00:00",
            "2023-00-01 00:00:00",
            "2023-01-01 24:00:00",
            "2023-01-01 00:00:60",
            "2023-1-01 00:00:000",
            "+023-01-01 00:00:00",
            "2023-01-01T00:00:00",
            "2023-01-01 00:00:00 ",
            "२०२३-01-01 00:00:00",
            "",
        ] {
            assert!(parse_reverie_us(bad).is_err(), "{bad}");
        }
        // A leap second is cut to the last microsecond before it, and told.
        let (us, exact) = parse_rfc3339("2016-12-31T23:59:60Z").unwrap();
        assert_eq!(format_us(us), "2016-12-31T23:59:59.999999Z");
        assert!(!exact);
    }

    proptest! {
        #[test]
        fn what_is_formatted_parses_back(us in any::<i64>()) {
            let text = format_us(us);
            match text.parse::<i64>() {
                Ok(number) => prop_assert_eq!(number, us),
                Err(_) => prop_assert_eq!(parse_rfc3339(&text), Ok((us, true))),
            }
        }

        #[test]
        fn moments_of_ten_thousand_years_parse_back(
            us in -62_167_219_200_000_000i64..253_402_300_800_000_000
        ) {
            prop_assert_eq!(parse_rfc3339(&format_us(us)), Ok((us, true)));
        }

        #[test]
        fn any_text_is_a_moment_or_an_error(text in "\\PC{0,30}") {
            let _ = (parse_rfc3339(&text), parse_reverie_us(&text));
        }
    }
}
