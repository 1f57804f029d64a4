//! A language model's answer to "rate this from 1 to 10; answer with the number alone", read strictly.
//!
//! A reply is a rating if it is a whole number in the range, in ASCII digits as one writes it, with nothing
//! but white space around it. Anything else is an error that keeps the reply: no number is looked for in
//! prose, nothing is rounded, and nothing is moved into the range. To ask again costs less than a memory whose
//! importance is 8 because somebody said "8/10", or 1 because they said "1 of the best days".
//!
//! | reply | what it is |
//! |---|---|
//! | `7`, ` 7\n` (any Unicode white space) | 7 |
//! | nothing, white space | [`RatingProblem::Empty`] |
//! | `0`, `11`, `-1`, `400000000000000000000` | [`RatingProblem::OutOfRange`] |
//! | `5.5`, `7.0`, `7.`, `.7`, `6,5`, `-0.5` | [`RatingProblem::NotWhole`] |
//! | `+7`, `07`, `-0`, `７`, `٧` | [`RatingProblem::Unusual`]: a number, not as one writes it |
//! | `"7"`, `**7**`, `8/10`, `Rating: 8`, `7\n\nBecause ...`, `between 6 and 8`, `1e1` | [`RatingProblem::MoreThanANumber`] |
//! | `seven`, `I cannot rate this`, `NaN` | [`RatingProblem::NoNumber`] |

use std::fmt;
use std::ops::RangeInclusive;
use thiserror::Error;

/// The ratings that the paper asks for.
pub const PAPER: RangeInclusive<u8> = 1..=10;

/// Characters of a reply that an error's text shows.
const SHOWN: usize = 80;

/// A reply that is no rating.
#[derive(Clone, PartialEq, Eq)]
pub struct RatingError {
    /// The reply, whole and as it came.
    pub reply: String,
    /// The ratings that were asked for.
    pub range: RangeInclusive<u8>,
    /// What is wrong with it.
    pub problem: RatingProblem,
}

/// What is wrong with a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum RatingProblem {
    /// There is nothing but white space.
    #[error("it is empty")]
    Empty,
    /// A whole number, and not one of those asked for.
    #[error("the number is out of range")]
    OutOfRange,
    /// A number with a decimal point or comma, whatever follows that.
    #[error("the number is not whole")]
    NotWhole,
    /// A whole number with a plus, a leading zero or other digits than 0 to 9.
    #[error("the number has a plus, a leading zero or other digits than 0 to 9")]
    Unusual,
    /// There are digits, and something beside one number.
    #[error("there is more than a number")]
    MoreThanANumber,
    /// There is no digit.
    #[error("there is no number")]
    NoNumber,
}

/// A prompt that asks a language model how much a text matters. Its words are no part of any formula: ask in others
/// where they serve you better.
pub fn prompt(text: &str, range: RangeInclusive<u8>) -> String {
    let (least, most) = range.into_inner();
    format!(
        "How much does this memory matter to whoever has it? Rate it with a whole number: {least} is an everyday thing \
        that is soon forgotten (the dishes are done), {most} is something that changes a life (a child is born).\n\n\
        Memory: {text}\n\nReply with the number alone."
    )
}

/// The rating that `reply` is, one of `range`. (Of an empty range none is.)
///
/// # Errors
/// Any other reply, with what is wrong with it: the module's table says which is which.
///
/// ```
/// use memorank::stream::rating::{PAPER, RatingProblem, parse};
/// assert_eq!(parse(" 7\n", PAPER), Ok(7));
///
/// let error = parse("8/10", PAPER).unwrap_err();
/// assert_eq!(error.problem, RatingProblem::MoreThanANumber);
/// assert_eq!(error.to_string(), "\"8/10\" is no rating from 1 to 10: there is more than a number; ask again");
/// ```
pub fn parse(reply: &str, range: RangeInclusive<u8>) -> Result<u8, RatingError> {
    let problem = match whole(reply.trim()) {
        Ok(Some(rating)) if range.contains(&rating) => return Ok(rating),
        Ok(_) => RatingProblem::OutOfRange,
        Err(problem) => problem,
    };
    Err(RatingError {
        reply: reply.to_owned(),
        range,
        problem,
    })
}

/// The whole number that `text` is, or None if that is none of a u8.
fn whole(text: &str) -> Result<Option<u8>, RatingProblem> {
    if text.is_empty() {
        return Err(RatingProblem::Empty);
    }
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, text),
    };
    match unsigned.as_bytes() {
        [b'0'] if !negative => Ok(Some(0)),
        [b'1'..=b'9', rest @ ..] if rest.iter().all(u8::is_ascii_digit) => {
            Ok(unsigned.parse().ok().filter(|_| !negative))
        }
        _ => Err(problem(unsigned)),
    }
}

/// What is wrong with a text that is no whole number as one writes it.
fn problem(unsigned: &str) -> RatingProblem {
    if !unsigned.contains(char::is_numeric) {
        return RatingProblem::NoNumber;
    }
    let unsigned = unsigned.strip_prefix('+').unwrap_or(unsigned);
    let mut parts = unsigned.split(['.', ',']);
    let digits = |part: &str| part.chars().all(char::is_numeric);
    match (parts.next(), parts.next(), parts.next()) {
        (Some(whole), None, None) if digits(whole) => RatingProblem::Unusual,
        (Some(whole), Some(fraction), None) if digits(whole) && digits(fraction) => {
            RatingProblem::NotWhole
        }
        _ => RatingProblem::MoreThanANumber,
    }
}

impl fmt::Display for RatingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shown, left_out) = shown(&self.reply);
        let (from, to) = (self.range.start(), self.range.end());
        write!(f, "{shown:?}")?;
        if left_out > 0 {
            write!(f, " and {left_out} more bytes")?;
        }
        let problem = self.problem;
        write!(f, " is no rating from {from} to {to}: {problem}; ask again")
    }
}

impl fmt::Debug for RatingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for RatingError {}

/// The beginning of a reply, and how many bytes follow it.
fn shown(reply: &str) -> (&str, usize) {
    let end = reply
        .char_indices()
        .nth(SHOWN)
        .map_or(reply.len(), |(at, _)| at);
    (&reply[..end], reply.len() - end)
}

#[cfg(test)]
mod tests {
    use super::RatingProblem::*;
    use super::*;

    fn refused(reply: &str) -> RatingProblem {
        let error = parse(reply, PAPER).expect_err(reply);
        assert_eq!((error.reply.as_str(), &error.range), (reply, &PAPER));
        error.problem
    }

    #[test]
    fn whole_numbers_of_any_range_are_ratings_and_no_others_are_b89() {
        for range in [1..=10, 0..=100, 0..=255, 7..=7, 200..=255, 0..=0] {
            for number in -300..=300_i32 {
                let parsed = parse(&number.to_string(), range.clone());
                match u8::try_from(number).ok().filter(|n| range.contains(n)) {
                    Some(rating) => assert_eq!(parsed, Ok(rating)),
                    None => assert_eq!(parsed.unwrap_err().problem, OutOfRange, "{number}"),
                }
            }
        }
    }

    #[test]
    fn an_empty_range_has_no_ratings() {
        let (from, to) = (10, 1);
        for reply in ["1", "5", "10"] {
            assert_eq!(parse(reply, from..=to).unwrap_err().problem, OutOfRange);
        }
    }

    #[test]
    fn white_space_around_a_number_is_nothing_and_within_it_is_more() {
        for space in [
            " ", "\n", "\r\n", "\t", "\u{a0}", "\u{3000}", "\u{2009}", "\u{85}",
        ] {
            for reply in [
                format!("{space}7"),
                format!("7{space}"),
                format!("{space}{space}7{space}"),
            ] {
                assert_eq!(parse(&reply, PAPER), Ok(7), "{reply:?}");
            }
            assert_eq!(refused(&format!("1{space}0")), MoreThanANumber);
            assert_eq!(refused(&space.repeat(3)), Empty);
        }
        assert_eq!(refused(""), Empty);
    }

    /// Zero-width characters are no white space: a reply with one is not what was asked for.
    #[test]
    fn invisible_characters_are_told_and_not_passed_over() {
        for invisible in ['\u{feff}', '\u{200b}', '\0', '\u{202e}'] {
            assert_eq!(refused(&format!("{invisible}7")), MoreThanANumber);
            assert_eq!(refused(&format!("7{invisible}")), MoreThanANumber);
            assert_eq!(refused(&invisible.to_string()), NoNumber);
        }
    }

    #[test]
    fn each_kind_of_wrong_reply_is_named_b89() {
        for (problem, replies) in [
            (
                OutOfRange,
                &["0", "11", "-1", "-7", "256", "400000000000000000000"][..],
            ),
            (
                NotWhole,
                &[
                    "5.5", "7.0", "7.", ".7", "6,5", "-0.5", "-7.", "+7.0", "７.０", "07.0",
                ],
            ),
            (
                Unusual,
                &[
                    "+7", "07", "007", "00", "-0", "-07", "-+7", "７", "１０", "٧", "⑦", "Ⅶ", "½",
                ],
            ),
            (
                MoreThanANumber,
                &[
                    "8/10",
                    "Rating: 8",
                    "\"7\"",
                    "'7'",
                    "**7**",
                    "`7`",
                    "(7)",
                    "[7]",
                    "{\"rating\": 7}",
                    "7\n\nBecause it matters.",
                    "between 6 and 8",
                    "6-8",
                    "7 or 8",
                    "7!",
                    "~7",
                    "7%",
                    "7 (out of 10)",
                    "10 10",
                    "1.2.3",
                    "1e1",
                    "0x7",
                    "1_0",
                    "--7",
                    "++7",
                    "- 7",
                    "-7 of 10",
                    "−7",
                    "7th",
                    "<think>\n7",
                    "#7",
                ],
            ),
            (
                NoNumber,
                &[
                    "seven",
                    "七",
                    "ten out of ten",
                    "I cannot rate this.",
                    "NaN",
                    "inf",
                    "-",
                    "+",
                    ".",
                    "**",
                    "🙂",
                ],
            ),
        ] {
            for reply in replies {
                assert_eq!(refused(reply), problem, "{reply:?}");
            }
        }
    }

    #[test]
    fn a_long_reply_is_kept_whole_and_shown_in_part() {
        let reply = "é".repeat(5 << 20);
        let error = parse(&reply, PAPER).unwrap_err();
        assert!(error.reply == reply && error.problem == NoNumber);
        let left_out = reply.len() - 2 * SHOWN;
        for text in [error.to_string(), format!("{error:?}")] {
            assert!(
                text.contains(&format!("\" and {left_out} more bytes")),
                "{text}"
            );
            assert!(text.len() < 300, "{text}");
        }
        // Digits alone, too.
        assert_eq!(
            parse(&"9".repeat(10 << 20), PAPER).unwrap_err().problem,
            OutOfRange
        );
    }

    #[test]
    fn a_reply_of_exactly_the_characters_shown_is_shown_whole() {
        let error = parse(&"x".repeat(SHOWN), PAPER).unwrap_err();
        assert!(!error.to_string().contains("more bytes"));
    }
}
