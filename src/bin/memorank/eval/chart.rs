//! The chart of an evaluation. Two panels: the first measure over all questions, as bars, with the interval of the
//! difference to the first scoring; and by category, as points.

use super::{Document, Scored};
use crate::output::{counted, grouped, middle_out};
use crate::svg::{LEFT, Shape, Svg, TICKS_BELOW, TOP, Ticks, Title, UNIT_BELOW, series};
use std::fmt::Write;

/// The height of a scoring's bar and of a category.
const LINE: f64 = 34.0;
/// Scorings in a line of the legend, and the columns of their names.
const LEGENDS: usize = 2;
pub const NAME: usize = 22;
/// Categories that are shown; the document has all.
const CATEGORIES: usize = 20;
const BARS: (f64, f64) = (190.0, 420.0);
const POINTS: (f64, f64) = (600.0, 890.0);

pub fn svg(name: &str, document: &Document<'_>) -> String {
    let first = &document.scorings[0];
    let measure = &*first.measures[0].measure;
    let categories = first.categories.len().min(CATEGORIES);
    let lines = document.scorings.len().max(categories);
    let bottom = TOP + 24.0 + LINE * lines as f64;
    let title = Title {
        of: "memorank eval",
        name,
        below: &format!(
            "{measure}, {}; whiskers: 95 % intervals of the difference to {}",
            counted(document.questions, "question"),
            first.short
        ),
        description: &description(document, measure),
        style: "",
    };
    let legend = match categories {
        0 => 0.0,
        _ => 20.0 * document.scorings.len().div_ceil(LEGENDS) as f64,
    };
    let mut out = Svg::new(&title, bottom + UNIT_BELOW + legend);
    bars(&mut out, document, measure, bottom);
    if categories > 0 {
        by_category(&mut out, document, measure, bottom);
    }
    out.finish()
}

/// All figures in words.
fn description(document: &Document<'_>, measure: &str) -> String {
    let mut text = format!("{measure} over {} questions:", document.questions);
    for of in &document.scorings {
        let value = &of.measures[0];
        let _ = write!(text, " {} {}", of.name, value.told());
        if let Some(gain) = &value.gain {
            let _ = write!(text, ", {} over the first", super::gain(gain));
        }
        text.push(';');
    }
    for of in &document.scorings {
        for category in &of.categories {
            let (name, value) = (category.told(), &category.measures[0]);
            let _ = write!(text, " {}, {name}: {};", of.name, value.told());
        }
    }
    text
}

/// The ticks of x, across a panel.
fn grid(out: &mut Svg, ticks: &Ticks, x: impl Fn(f64) -> f64, bottom: f64) {
    for tick in ticks.values() {
        let class = if tick == 0.0 { "axis" } else { "grid" };
        out.rule(class, (x(tick), TOP + 14.0), (x(tick), bottom));
        out.text(
            "muted middle",
            x(tick),
            bottom + TICKS_BELOW,
            &ticks.label(tick),
        );
    }
}

fn bars(out: &mut Svg, document: &Document<'_>, measure: &str, bottom: f64) {
    let (zero, end) = BARS;
    let first = document.scorings[0].measures[0].mean;
    let whiskers = |of: &Scored<'_>| {
        let gain = of.measures[0].gain?;
        Some((first + gain.low, first + gain.high))
    };
    let means = document.scorings.iter().map(|of| of.measures[0].mean);
    let reach = document.scorings.iter().filter_map(whiskers);
    let ticks = Ticks::upto(reach.map(|(_, high)| high).chain(means).fold(0.0, f64::max));
    let x = |value: f64| zero + (end - zero) * value.max(0.0) / ticks.last();
    out.text("panel", LEFT, TOP, &format!("{measure}, all questions"));
    grid(out, &ticks, x, bottom);
    for (at, of) in document.scorings.iter().enumerate() {
        let top = TOP + 24.0 + LINE * at as f64;
        let (class, mean) = (series(at), of.measures[0].mean);
        out.text("muted", LEFT, top + 14.0, &of.short);
        out.line(format_args!(
            "<rect class=\"{class}\" x=\"{zero}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"20\"/>",
            x(mean) - zero
        ));
        if let Some((low, high)) = whiskers(of) {
            let y = top + 10.0;
            out.rule("whisker", (x(low), y), (x(high), y));
            for end in [low, high] {
                out.rule("whisker", (x(end), y - 4.0), (x(end), y + 4.0));
            }
        }
        out.text("end", end + 62.0, top + 14.0, &format!("{mean:.4}"));
    }
    let roof = x(first);
    out.rule("roof", (roof, TOP + 14.0), (roof, bottom));
}

fn by_category(out: &mut Svg, document: &Document<'_>, measure: &str, bottom: f64) {
    let (zero, end) = POINTS;
    let shown = document.scorings[0].categories.len().min(CATEGORIES);
    let all = (document.scorings.iter()).flat_map(|of| &of.categories[..shown]);
    let means = all.map(|category| category.measures[0].mean);
    let ticks = Ticks::upto(means.fold(0.0, f64::max));
    let x = |value: f64| zero + (end - zero) * value / ticks.last();
    let title = match document.scorings[0].categories.len() {
        all if all > shown => format!("{measure} by category, {shown} of {}", grouped(all)),
        _ => format!("{measure} by category"),
    };
    out.text("panel", 510.0, TOP, &title);
    grid(out, &ticks, x, bottom);
    let y = |at: usize| TOP + 34.0 + LINE * at as f64;
    for (at, category) in document.scorings[0].categories[..shown].iter().enumerate() {
        let name = middle_out(&category.category.to_string(), 8);
        let n = grouped(category.questions);
        out.text(
            "muted end",
            zero - 10.0,
            y(at) + 4.0,
            &format!("{name} ({n})"),
        );
        out.rule("grid", (zero, y(at)), (end, y(at)));
    }
    for (number, of) in document.scorings.iter().enumerate() {
        for (at, category) in of.categories[..shown].iter().enumerate() {
            let point = (x(category.measures[0].mean), y(at));
            out.mark(&series(number), Shape::of(number), point);
        }
    }
    for (number, of) in document.scorings.iter().enumerate() {
        let left = 510.0 + 200.0 * (number % LEGENDS) as f64;
        let y = bottom + UNIT_BELOW + 4.0 + 20.0 * (number / LEGENDS) as f64;
        out.mark(&series(number), Shape::of(number), (left, y - 4.0));
        out.text("muted", left + 11.0, y, &of.short);
    }
}
