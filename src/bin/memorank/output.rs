//! What is printed: text or one JSON document, numbers, bars.

use crate::failure::Failure;
use serde::Serialize;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Standard output, buffered, and the form it is wanted in.
pub struct Output {
    out: io::BufWriter<io::Stdout>,
    json: bool,
    styled: bool,
}

impl Output {
    pub fn new(json: bool) -> Output {
        // https://no-color.org: any value but an empty one.
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let styled = io::stdout().is_terminal() && !refused;
        Output {
            out: io::BufWriter::new(io::stdout()),
            json,
            styled,
        }
    }

    pub fn is_json(&self) -> bool {
        self.json
    }

    /// A line of text.
    pub fn line(&mut self, text: impl fmt::Display) -> Result<(), Failure> {
        Ok(writeln!(self.out, "{text}")?)
    }

    /// A line of text that stands out on a terminal.
    pub fn heading(&mut self, text: impl fmt::Display) -> Result<(), Failure> {
        if self.styled {
            self.line(format_args!("\x1b[1m{text}\x1b[0m"))
        } else {
            self.line(text)
        }
    }

    /// The JSON document.
    pub fn document(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let json = serde_json::to_string_pretty(value).map_err(io::Error::from)?;
        let mut written = 0;
        // JSON lets some of them through. They stand in strings only, where this means the same.
        for (at, c) in json.char_indices() {
            if c != '\n' && steers(c) {
                write!(self.out, "{}\\u{:04x}", &json[written..at], u32::from(c))?;
                written = at + c.len_utf8();
            }
        }
        self.out.write_all(&json.as_bytes()[written..])?;
        Ok(writeln!(self.out)?)
    }

    /// What another program reads, as it is.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        Ok(self.out.write_all(bytes)?)
    }

    /// Shows what was printed so far.
    pub fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }

    pub fn finish(mut self) -> Result<(), Failure> {
        self.flush()
    }
}

/// A progress bar on stderr, drawn only if that is a terminal.
pub fn progress(total: u64, what: &'static str) -> indicatif::ProgressBar {
    let style = "{msg} {wide_bar} {human_pos}/{human_len} {elapsed}";
    let bar = indicatif::ProgressBar::new(total).with_message(what);
    match indicatif::ProgressStyle::with_template(style) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// `value` of [0, 1] as a bar of 8 cells, in eighths of a cell.
pub fn bar(value: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (value.clamp(0.0, 1.0) * 64.0).round() as usize;
    let bar = "█".repeat(eighths / 8) + EIGHTHS[eighths % 8];
    format!("{bar:<8}")
}

/// 1234567 as 1,234,567.
pub fn grouped(n: usize) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// 1 question, 2 questions.
pub fn counted(n: usize, what: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{} {what}{plural}", grouped(n))
}

/// A number that somebody gave: as it is, if that is short, or else four digits of it.
pub fn short(x: f64) -> String {
    let whole = x.to_string();
    match x.abs() {
        _ if whole.len() <= 7 => whole,
        size @ 1e-3..1e6 => {
            let decimals = (3 - size.log10().floor() as i32).max(0) as usize;
            format!("{x:.decimals$}")
        }
        _ => format!("{x:.3e}"),
    }
}

/// Text on one line and of at most `columns` columns: what is too much of it is left out in the middle.
pub fn middle_out(text: &str, columns: usize) -> String {
    let line = one_line(text, usize::MAX);
    if width(&line) <= columns {
        return line;
    }
    let half = columns.saturating_sub(1) / 2;
    let first = one_line(&line, half + 1);
    let mut last = String::new();
    for c in line.chars().rev() {
        if width(&last) + c.width().unwrap_or(0) > half {
            break;
        }
        last.insert(0, c);
    }
    first + &last
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a character can move the cursor, change colours or turn the direction of what follows: text of
/// a memory must not steer the terminal.
fn steers(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns
}

/// A memory's key on one line, cut if it is long; a dash for none.
pub fn short_key(key: Option<&str>) -> String {
    key.map_or_else(|| "-".to_owned(), |key| one_line(key, 24))
}

/// Text on one line and of at most `columns` columns; characters that steer the terminal are spaces.
pub fn one_line(text: &str, columns: usize) -> String {
    let clean = |c: char| if steers(c) { ' ' } else { c };
    let mut line = String::new();
    let (mut taken, mut before_last) = (0, 0);
    for c in text.chars().map(clean) {
        let width = c.width().unwrap_or(0);
        if taken + width > columns {
            line.truncate(before_last);
            line.push('…');
            return line;
        }
        taken += width;
        line.push(c);
        // What leaves a column for the sign that something was left out.
        if taken < columns {
            before_last = line.len();
        }
    }
    line
}

/// `text`, filled with spaces to `columns` columns.
pub fn padded(text: &str, columns: usize) -> String {
    format!("{text}{:1$}", "", columns.saturating_sub(width(text)))
}

/// The columns of a text that does not steer the terminal.
pub fn width(text: &str) -> usize {
    text.width()
}

/// The whole text, on one line: what steers the terminal is written as in Rust, `\u{1b}`.
pub fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            c if steers(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

/// The whole text, each line [`escaped`]; those after the first begin with `indent` spaces.
pub fn escaped_lines(text: &str, indent: usize) -> String {
    let lines: Vec<_> = text.lines().map(escaped).collect();
    lines.join(&format!("\n{:indent$}", ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_by_columns() {
        assert_eq!(one_line("", 3), "");
        assert_eq!(one_line("abc", 3), "abc");
        assert_eq!(one_line("abcd", 3), "ab…");
        assert_eq!(one_line("货架在", 6), "货架在");
        assert_eq!(one_line("货架在空", 6), "货架…");
        assert_eq!(one_line("货架在空", 5), "货架…");
        assert_eq!(one_line("a货架", 4), "a货…");
        assert_eq!(one_line("e\u{301}e\u{301}", 2), "e\u{301}e\u{301}");
        for text in ["货a架b在c空d闲", "abcdefghij"] {
            for columns in 1..12 {
                assert!(
                    width(&one_line(text, columns)) <= columns,
                    "{text} {columns}"
                );
            }
        }
        assert_eq!(padded("货", 4), "货  ");
        assert_eq!(padded("abcde", 4), "abcde");
    }

    #[test]
    fn a_long_name_keeps_its_beginning_and_its_end() {
        assert_eq!(middle_out("abcdefg", 7), "abcdefg");
        assert_eq!(middle_out("abcdefgh", 7), "abc…fgh");
        assert_eq!(middle_out("货架在空闲", 7), "货…闲");
        for columns in 1..30 {
            let cut = middle_out("relevance=1,货recency=0.05,half-life=30d", columns);
            assert!(width(&cut) <= columns, "{cut} {columns}");
        }
    }

    #[test]
    fn counts_and_given_numbers_are_short() {
        assert_eq!(counted(1, "key"), "1 key");
        assert_eq!(counted(1_000, "key"), "1,000 keys");
        for (x, told) in [
            (0.05, "0.05"),
            (16.0, "16"),
            (1.0 / 3.0, "0.3333"),
            (123.456_789, "123.5"),
            (999_999.96, "1000000"),
            (1e300, "1.000e300"),
            (1.25e-9, "1.250e-9"),
        ] {
            assert_eq!(short(x), told);
        }
    }

    #[test]
    fn nothing_that_steers_a_terminal_is_printed() {
        let hostile = "a\x1b[31m\rb\u{9b}2J\u{202e}c\nd\u{7f}";
        assert_eq!(one_line(hostile, 60), "a [31m b 2J c d ");
        assert_eq!(
            escaped(hostile),
            r"a\u{1b}[31m\rb\u{9b}2J\u{202e}c\nd\u{7f}"
        );
        assert_eq!(escaped_lines("a\nb\x1b\r\nc", 2), "a\n  b\\u{1b}\n  c");
    }

    #[test]
    fn numbers_are_grouped_and_bars_are_filled() {
        let shown = [0, 999, 1000, 1_234_567].map(grouped);
        assert_eq!(shown, ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(bar(1.0), "████████");
        assert_eq!(bar(0.5), "████    ");
        assert_eq!(bar(-1.0), bar(0.0));
        assert_eq!(bar(7.0), bar(1.0));
    }
}
