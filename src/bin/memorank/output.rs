//! What is printed: text or one JSON document, numbers, bars.

use crate::failure::Failure;
use serde::Serialize;
use std::fmt;
use std::io::{self, IsTerminal, Write};

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
        serde_json::to_writer_pretty(&mut self.out, value).map_err(io::Error::from)?;
        Ok(writeln!(self.out)?)
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

/// Text on one line, without control characters (a memory's text must not steer the terminal), cut to
/// `width` characters.
pub fn one_line(text: &str, width: usize) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let mut line: String = text.chars().map(clean).take(width).collect();
    if text.chars().nth(width).is_some() {
        line.pop();
        line.push('…');
    }
    line
}
