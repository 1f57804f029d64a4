//! Rankings and lists as lines of text.

use crate::failure::Failure;
use crate::output::{Output, bar, one_line, padded, width};
use memorank::scoring::{Component, Hit, Ranges};

/// One memory of a ranking.
pub struct Line<'a> {
    pub key: String,
    /// What is said beside the key.
    pub note: String,
    pub text: &'a str,
    /// `None`: it did not compete.
    pub hit: Option<Hit>,
    /// A line below it.
    pub detail: Option<String>,
}

pub fn print_hits<'a>(
    lines: impl Iterator<Item = Line<'a>>,
    out: &mut Output,
) -> Result<(), Failure> {
    let lines: Vec<_> = lines.collect();
    if lines.is_empty() {
        return Ok(());
    }
    let keys = lines
        .iter()
        .map(|line| one_line(&line.key, 24) + &line.note);
    let keys: Vec<_> = keys.collect();
    let widest = keys.iter().map(|key| width(key)).max().unwrap_or(0);
    out.heading(format_args!(
        "{:>4} {:>7}  {:<14}  {:<14}  {:<14}  memory",
        "", "score", "relevance", "recency", "importance"
    ))?;
    for (i, (line, key)) in lines.iter().zip(&keys).enumerate() {
        let (key, text) = (padded(key, widest), one_line(line.text, 60));
        let score = match &line.hit {
            Some(hit) => format!("{:>7.4}", hit.score),
            None => format!("{:>7}", "-"),
        };
        let bars = match &line.hit {
            Some(hit) => [hit.relevance, hit.recency, hit.importance].map(cells),
            None => [(); 3].map(|()| format!("{:14}", "")),
        };
        let bars = bars.join("  ");
        out.line(format_args!("{:>4} {score}  {bars}  {key}  {text}", i + 1))?;
        if let Some(detail) = &line.detail {
            out.line(format_args!("{:>14}{detail}", ""))?;
        }
    }
    Ok(())
}

/// Lines below names, each cell as wide as the widest of its column. Without lines, nothing.
pub fn print_columns<const N: usize>(
    names: [&str; N],
    lines: impl Iterator<Item = [String; N]>,
    out: &mut Output,
) -> Result<(), Failure> {
    let lines = lines.map(Vec::from).collect();
    print_table(names.map(str::to_owned).to_vec(), lines, out)
}

/// [`print_columns`] of as many columns as there are names. No line has more cells.
pub fn print_table(
    names: Vec<String>,
    lines: Vec<Vec<String>>,
    out: &mut Output,
) -> Result<(), Failure> {
    let mut widest: Vec<usize> = names.iter().map(|name| width(name)).collect();
    for line in &lines {
        let cells = widest.iter_mut().zip(line);
        cells.for_each(|(widest, cell)| *widest = width(cell).max(*widest));
    }
    let join = |cells: &[String]| {
        let padded = (cells.iter().zip(&widest)).map(|(cell, &widest)| padded(cell, widest));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    if !lines.is_empty() {
        out.heading(join(&names))?;
    }
    lines.iter().try_for_each(|line| out.line(join(line)))
}

/// A component as a bar and a number: 14 columns.
fn cells(component: Component) -> String {
    let value = component.normalized;
    format!("{} {value:>5.2}", bar(value))
}

pub fn print_ranges(ranges: Option<&Ranges>, out: &mut Output) -> Result<(), Failure> {
    let Some(ranges) = ranges else {
        return out.line("no candidates");
    };
    let ages = ranges.ages.map_or(String::new(), |ages| {
        let hours = |us: u64| us as f64 / 3.6e9;
        format!(
            "  (ages {:.1} h to {:.1} h)",
            hours(ages.youngest),
            hours(ages.oldest)
        )
    });
    out.line(format_args!(
        "ranges: relevance {:.4} to {:.4}, recency {} to {}{ages}, importance {} to {}",
        ranges.relevance.min,
        ranges.relevance.max,
        decayed(ranges.recency.min),
        decayed(ranges.recency.max),
        ranges.importance.min,
        ranges.importance.max
    ))
}

/// A recency: 0.9951, or 3.2e-40.
pub fn decayed(recency: f64) -> String {
    match recency {
        0.0 => "0".to_owned(),
        0.001.. => format!("{recency:.4}"),
        _ => format!("{recency:.1e}"),
    }
}
