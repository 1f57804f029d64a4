//! JSON and times as the goldens hold them. What is missing or of another shape panics with its name.

use serde_json::Value;
use std::path::Path;

pub fn read(path: &Path) -> Value {
    let text = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

pub fn field<'v>(value: &'v Value, name: &str) -> &'v Value {
    value
        .get(name)
        .unwrap_or_else(|| panic!("no field {name:?} in {:.200}", value.to_string()))
}

pub fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    let field = field(value, name);
    field
        .as_array()
        .unwrap_or_else(|| panic!("{name:?} is not a list"))
}

/// A list of `name` in `value`, each entry read by `read`.
pub fn each<T>(value: &Value, name: &str, read: impl Fn(&Value) -> T) -> Vec<T> {
    list(value, name).iter().map(read).collect()
}

pub fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    let field = field(value, name);
    field
        .as_str()
        .unwrap_or_else(|| panic!("{name:?} is not a text: {field}"))
}

/// A number; the goldens write NaN as a text.
pub fn number(value: &Value) -> f64 {
    match value.as_f64() {
        Some(number) => number,
        None if value == "NaN" => f64::NAN,
        None => panic!("not a number: {value}"),
    }
}

/// A number that is exactly an f32, whatever the parser's last bit.
pub fn single(value: &Value) -> f32 {
    number(value) as f32
}

pub fn whole(value: &Value) -> i64 {
    value
        .as_i64()
        .unwrap_or_else(|| panic!("not a whole number: {value}"))
}

pub fn index(value: &Value) -> usize {
    usize::try_from(whole(value)).unwrap_or_else(|_| panic!("not an index: {value}"))
}

/// Microseconds since the Unix epoch of `2023-02-13 00:00:10` or `2023-02-13T00:00:10Z`.
pub fn micros(time: &str) -> i64 {
    let digits: Vec<i64> = time
        .trim_end_matches('Z')
        .split(['-', ' ', 'T', ':'])
        .map(|part| part.parse().unwrap_or_else(|_| panic!("no time: {time:?}")))
        .collect();
    let [year, month, day, hour, minute, second] = digits[..] else {
        panic!("no time: {time:?}")
    };
    let seconds = ((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    seconds * 1_000_000
}

/// Days since 1970-01-01 of a date of the Gregorian calendar, with years that begin in March.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // Months from March have 31, 30, 31, 30, 31 days, again and again.
    let days_before_month = (153 * month + 2) / 5;
    year * 365 + leap_days + days_before_month + day - 1 - 719_468
}

#[test]
fn times_are_microseconds_of_the_gregorian_calendar() {
    assert_eq!(micros("1970-01-01 00:00:00"), 0);
    assert_eq!(micros("2023-02-13T00:00:20Z"), 1_676_246_420_000_000);
    assert_eq!(micros("1723-08-01T00:00:00Z"), -7_776_259_200_000_000);
    assert_eq!(micros("2000-02-29 23:59:59"), 951_868_799_000_000);
}
