//! A time in a file: text where RFC 3339 can write it, else a number. Each has one form, which is read back as
//! the same microsecond.

use crate::import::timestamp::{parse_rfc3339, rfc3339};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::{Serialize, Serializer};
use std::fmt;

/// Microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment(pub(crate) i64);

/// What must stand where a time does.
pub(crate) const MOMENT: &str = "RFC 3339 text in UTC, as in \"2023-02-13T00:00:00Z\", with six digits after the second unless they are zero; outside the years 0 to 9999 a number of microseconds since 1970";

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match rfc3339(self.0) {
            Some(text) => serializer.serialize_str(&text),
            None => serializer.serialize_i64(self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Moment, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Moment;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(MOMENT)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Moment, E> {
                match parse_rfc3339(text) {
                    Ok((us, _)) if rfc3339(us).as_deref() == Some(text) => Ok(Moment(us)),
                    _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
                }
            }

            fn visit_i64<E: Error>(self, us: i64) -> Result<Moment, E> {
                match rfc3339(us) {
                    None => Ok(Moment(us)),
                    Some(_) => Err(E::invalid_value(serde::de::Unexpected::Signed(us), &self)),
                }
            }

            fn visit_u64<E: Error>(self, us: u64) -> Result<Moment, E> {
                match i64::try_from(us) {
                    Ok(us) => self.visit_i64(us),
                    Err(_) => Err(E::invalid_value(serde::de::Unexpected::Unsigned(us), &self)),
                }
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn back(us: i64) -> (String, Moment) {
        let json = serde_json::to_string(&Moment(us)).unwrap();
        let read = serde_json::from_str(&json).unwrap();
        (json, read)
    }

    #[test]
    fn the_ends_of_each_form_come_back() {
        // Years 0 and 9999.
        let (first, last) = (-62_167_219_200_000_000, 253_402_300_799_999_999);
        for us in [i64::MIN, first - 1, last + 1, i64::MAX] {
            assert_eq!(back(us), (us.to_string(), Moment(us)));
        }
        let text = |text: &str| format!("{text:?}");
        for (us, expected) in [
            (first, text("0000-01-01T00:00:00Z")),
            (-1, text("1969-12-31T23:59:59.999999Z")),
            (0, text("1970-01-01T00:00:00Z")),
            (10, text("1970-01-01T00:00:00.000010Z")),
            (last, text("9999-12-31T23:59:59.999999Z")),
        ] {
            assert_eq!(back(us), (expected, Moment(us)));
        }
    }

    // B96
    #[test]
    fn no_time_has_a_second_form() {
        for json in [
            "0",
            "1e3",
            "1.5",
            "null",
            "true",
            "\"0\"",
            "\"9223372036854775807\"",
            "9223372036854775808",
            "\"1970-01-01\"",
            "\"1970-01-01T00:00:00\"",
            "\"1970-01-01t00:00:00Z\"",
            "\"1970-01-01T00:00:00+00:00\"",
            "\"1970-01-01T00:00:00.0Z\"",
            "\"1970-01-01T00:00:00.000000Z\"",
            "\"1970-01-01T00:00:00.0000001Z\"",
            "\"2016-12-31T23:59:60Z\"",
        ] {
            assert!(serde_json::from_str::<Moment>(json).is_err(), "{json}");
        }
    }

    proptest! {
        #[test]
        fn every_microsecond_comes_back(us in any::<i64>(), year in -100_000_000_000_000_000i64..300_000_000_000_000_000) {
            prop_assert_eq!(back(us).1, Moment(us));
            prop_assert_eq!(back(year).1, Moment(year));
        }
    }
}
