//! What flags take: numbers, moments, ages.

use memorank::import::timestamp::{TimestampError, format_us, parse_rfc3339_us};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::str::FromStr;

/// A whole number.
pub fn whole(text: &str) -> Result<usize, String> {
    text.parse()
        .map_err(|_| format!("a whole number from 0 to {}", usize::MAX))
}

/// An importance: a finite number within f32.
pub fn importance(text: &str) -> Result<f32, String> {
    let number = text.parse().ok().filter(|x: &f32| x.is_finite());
    number.ok_or_else(|| "a finite number within 32 bits".to_owned())
}

/// A moment, in microseconds since the Unix epoch; RFC 3339 outside.
#[derive(Clone, Copy)]
pub struct Moment(pub i64);

impl FromStr for Moment {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Moment, TimestampError> {
        parse_rfc3339_us(text).map(Moment)
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format_us(self.0))
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Moment, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A length of time, in microseconds; a whole number and its unit outside, as in 90m.
#[derive(Clone, Copy)]
pub struct Age(pub u64);

impl FromStr for Age {
    type Err = String;

    fn from_str(text: &str) -> Result<Age, String> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let seconds: Option<u64> = match unit {
            "s" => Some(1),
            "m" => Some(60),
            "h" => Some(3_600),
            "d" => Some(86_400),
            _ => None,
        };
        let us = || {
            let number: u64 = number.parse().ok()?;
            number.checked_mul(seconds?)?.checked_mul(1_000_000)
        };
        us().map(Age)
            .ok_or_else(|| "a whole number of s, m, h or d, as in 90m".to_owned())
    }
}

/// Bytes; a whole number outside, with k, M or G for thousands, millions or billions, or `all` or `none`.
#[derive(Clone, Copy)]
pub struct Bytes(pub u64);

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Bytes, String> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let of = |unit: u64| number.parse().ok().and_then(|n: u64| n.checked_mul(unit));
        let bytes = match (number, unit) {
            ("", "all") => Some(u64::MAX),
            ("", "none") => Some(0),
            (_, "") => of(1),
            (_, "k") => of(1_000),
            (_, "M") => of(1_000_000),
            (_, "G") => of(1_000_000_000),
            _ => None,
        };
        bytes.map(Bytes).ok_or_else(|| {
            "a whole number of bytes, or of k, M or G, as in 64M; or all, or none".to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_a_whole_number_and_a_unit() {
        let us = |text: &str| text.parse::<Age>().ok().map(|age| age.0);
        for (text, seconds) in [("0s", 0), ("90m", 5_400), ("2h", 7_200), ("1d", 86_400)] {
            assert_eq!(us(text), Some(seconds * 1_000_000));
        }
        for text in [
            "",
            "5",
            "h",
            "-1h",
            "+1h",
            "1.5h",
            "1 h",
            "1w",
            "1hh",
            "18446744073709551615s",
            "99999999999999999999h",
        ] {
            assert_eq!(us(text), None, "{text}");
        }
    }

    #[test]
    fn bytes_are_a_whole_number_and_perhaps_a_unit() {
        let bytes = |text: &str| text.parse::<Bytes>().ok().map(|bytes| bytes.0);
        for (text, expected) in [
            ("0", 0),
            ("none", 0),
            ("4096", 4_096),
            ("1k", 1_000),
            ("64M", 64_000_000),
            ("2G", 2_000_000_000),
            ("18446744073709551615", u64::MAX),
            ("all", u64::MAX),
        ] {
            assert_eq!(bytes(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "k",
            "-1",
            "+1",
            "1.5k",
            "1 k",
            "1K",
            "1kB",
            "1all",
            "All",
            "18446744073709551616",
            "18446744073709551G",
        ] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }
}
