//! Charts: one SVG each, that needs nothing else and is readable in light and dark.

use crate::output::{escaped, one_line};
use std::fmt::{self, Write};

pub const WIDTH: f64 = 920.0;
/// The left edge of text.
pub const LEFT: f64 = 28.0;
/// Where the first panel has its title.
pub const TOP: f64 = 86.0;
/// An axis of x: its ticks, and what they count.
pub const TICKS_BELOW: f64 = 19.0;
pub const UNIT_BELOW: f64 = 39.0;

const STYLE: &str = "\
text { font-family: system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif; font-size: 12px; fill: #1f2328; }
.name { font-size: 17px; font-weight: 600; }
.panel { font-size: 13px; font-weight: 600; }
.value { font-size: 11px; }
.muted { fill: #59636e; }
.middle { text-anchor: middle; }
.end { text-anchor: end; }
.halo { stroke: #ffffff; stroke-width: 3px; stroke-linejoin: round; paint-order: stroke; }
.background { fill: #ffffff; }
.axis { stroke: #818b98; stroke-width: 1; }
.grid { stroke: #d1d9e0; stroke-width: 1; }
.roof { stroke: #59636e; stroke-width: 1.5; stroke-dasharray: 4 3; }
.whisker { stroke: #1f2328; stroke-width: 1.5; }
.series { fill: none; stroke-width: 2; stroke-linejoin: round; }
.s0 { stroke: #0969da; fill: #0969da; }
.s1 { stroke: #c2410c; fill: #c2410c; }
.s2 { stroke: #0f766e; fill: #0f766e; }
.s3 { stroke: #8250df; fill: #8250df; }
.s4 { stroke: #9a6700; fill: #9a6700; }
.s5 { stroke: #59636e; fill: #59636e; }
polyline.series { fill: none; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; }
.muted { fill: #9198a1; }
.halo { stroke: #0d1117; }
.background { fill: #0d1117; }
.axis { stroke: #656c76; }
.grid { stroke: #2a313c; }
.roof { stroke: #9198a1; }
.whisker { stroke: #e6edf3; }
.s0 { stroke: #4493f8; fill: #4493f8; }
.s1 { stroke: #f0883e; fill: #f0883e; }
.s2 { stroke: #2dd4bf; fill: #2dd4bf; }
.s3 { stroke: #ab7df8; fill: #ab7df8; }
.s4 { stroke: #d29922; fill: #d29922; }
.s5 { stroke: #9198a1; fill: #9198a1; }
}
";

/// What a chart begins with.
pub struct Title<'a> {
    /// For who cannot see it, before the name.
    pub of: &'a str,
    pub name: &'a str,
    pub below: &'a str,
    /// All figures in words.
    pub description: &'a str,
    /// Beside what all charts have.
    pub style: &'a str,
}

/// The document so far, an element a line.
pub struct Svg(String);

impl Svg {
    pub fn new(title: &Title<'_>, height: f64) -> Svg {
        let mut out = Svg(String::new());
        let name = one_line(title.name, 70);
        out.line(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             height=\"{height}\" role=\"img\" aria-labelledby=\"title description\">"
        ));
        out.line(format_args!(
            "<title id=\"title\">{}: {}</title>",
            title.of,
            quoted(&name)
        ));
        out.line(format_args!(
            "<desc id=\"description\">{}</desc>",
            quoted(title.description)
        ));
        out.line(format_args!("<style>\n{STYLE}{}</style>", title.style));
        out.line(format_args!(
            "<rect class=\"background\" width=\"{WIDTH}\" height=\"{height}\"/>"
        ));
        out.text("name", LEFT, 34.0, &name);
        out.text("muted", LEFT, 55.0, title.below);
        out
    }

    /// The whole document.
    pub fn finish(mut self) -> String {
        self.line(format_args!("</svg>"));
        self.0
    }

    pub fn line(&mut self, line: fmt::Arguments<'_>) {
        // Writing to a String does not fail.
        let _ = writeln!(self.0, "{line}");
    }

    pub fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        let text = quoted(text);
        self.line(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>"
        ));
    }

    pub fn rule(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        self.line(format_args!(
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        ));
    }

    pub fn polyline(&mut self, class: &str, points: impl Iterator<Item = (f64, f64)>) {
        let points: Vec<_> = points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let points = points.join(" ");
        self.line(format_args!(
            "<polyline class=\"series {class}\" points=\"{points}\"/>"
        ));
    }

    pub fn mark(&mut self, class: &str, shape: Shape, (x, y): (f64, f64)) {
        match shape {
            Shape::Circle => self.line(format_args!(
                "<circle class=\"{class} mark\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>"
            )),
            Shape::Square => self.line(format_args!(
                "<rect class=\"{class} mark\" x=\"{:.1}\" y=\"{:.1}\" width=\"7\" height=\"7\"/>",
                x - 3.5,
                y - 3.5
            )),
            Shape::Diamond => self.polygon(class, (x, y), &[(0, -5), (5, 0), (0, 5), (-5, 0)]),
            Shape::Up => self.polygon(class, (x, y), &[(0, -5), (5, 4), (-5, 4)]),
            Shape::Down => self.polygon(class, (x, y), &[(0, 5), (5, -4), (-5, -4)]),
        }
    }

    fn polygon(&mut self, class: &str, (x, y): (f64, f64), corners: &[(i8, i8)]) {
        let corner =
            |&(dx, dy): &(i8, i8)| format!("{:.1},{:.1}", x + f64::from(dx), y + f64::from(dy));
        let points = corners.iter().map(corner).collect::<Vec<_>>().join(" ");
        self.line(format_args!(
            "<polygon class=\"{class} mark\" points=\"{points}\"/>"
        ));
    }
}

/// Of a point: series are not told apart by colour alone.
#[derive(Clone, Copy)]
pub enum Shape {
    Circle,
    Square,
    Diamond,
    Up,
    Down,
}

impl Shape {
    /// That of a series.
    pub fn of(series: usize) -> Shape {
        use Shape::{Circle, Diamond, Down, Square, Up};
        [Circle, Square, Diamond, Up, Down][series % 5]
    }
}

/// The class of a series. Six have colours of their own.
pub fn series(number: usize) -> String {
    format!("s{}", number % 6)
}

/// Text for an XML document: no markup, no character that XML does not allow.
pub fn quoted(text: &str) -> String {
    let mut out = String::new();
    for c in escaped(text).chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out
}

/// Evenly spaced values around what is shown.
pub struct Ticks {
    step: f64,
    /// The first, in steps.
    first: i64,
    steps: usize,
    decimals: usize,
}

impl Ticks {
    /// From 0: at most five steps of 1, 2 or 5 times a power of ten.
    pub fn upto(largest: f64) -> Ticks {
        Ticks::between(0.0, largest.max(1e-9))
    }

    /// At most five steps of 1, 2 or 5 times a power of ten, the first not above `least`, the last not below
    /// `largest`, which is larger.
    pub fn between(least: f64, largest: f64) -> Ticks {
        let mut power = (largest - least).log10().floor() as i32 - 1;
        loop {
            for factor in [1.0, 2.0, 5.0] {
                let step = factor * 10f64.powi(power);
                let first = (least / step + 1e-9).floor() as i64;
                let last = (largest / step - 1e-9).ceil() as i64;
                let steps = (last - first).max(1) as usize;
                if steps <= 5 {
                    let decimals = power.min(0).unsigned_abs() as usize;
                    return Ticks {
                        step,
                        first,
                        steps,
                        decimals,
                    };
                }
            }
            power += 1;
        }
    }

    pub fn first(&self) -> f64 {
        self.step * self.first as f64
    }

    pub fn last(&self) -> f64 {
        self.step * (self.first + self.steps as i64) as f64
    }

    pub fn values(&self) -> impl Iterator<Item = f64> {
        (0..=self.steps as i64).map(|i| self.step * (self.first + i) as f64)
    }

    pub fn label(&self, tick: f64) -> String {
        match tick {
            0.0 => "0".to_owned(),
            _ if self.decimals > 5 => format!("{tick:.0e}"),
            _ => format!("{tick:.0$}", self.decimals),
        }
    }
}

/// Lines over values that are in an order, evenly spaced.
pub struct Lines<'a> {
    pub title: &'a str,
    /// What x counts.
    pub unit: &'a str,
    /// The values of x.
    pub labels: &'a [String],
    /// A value for each label.
    pub values: &'a [f64],
    /// The number of the series.
    pub series: usize,
    /// Where a line is drawn across, and what is there.
    pub across: Option<(f64, &'a str)>,
    /// Which of the labels is marked.
    pub marked: Option<usize>,
}

/// Where a panel is: the left and right end of its axis of x, its upper and lower end.
pub struct Frame {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

impl Lines<'_> {
    pub fn draw(&self, frame: &Frame, ticks: &Ticks, out: &mut Svg) {
        let Frame {
            left,
            right,
            top,
            bottom,
        } = *frame;
        let (low, high) = (ticks.first(), ticks.last());
        let y = |value: f64| bottom - (bottom - top) * (value - low) / (high - low);
        let (inner_left, inner_right) = (left + 10.0, right - 10.0);
        let steps = self.labels.len().saturating_sub(1).max(1) as f64;
        let x = |at: usize| inner_left + (inner_right - inner_left) * at as f64 / steps;
        out.text("panel", left, top - 16.0, self.title);
        for tick in ticks.values() {
            let class = if tick == low { "axis" } else { "grid" };
            out.rule(class, (left, y(tick)), (right, y(tick)));
            out.text("muted end", left - 6.0, y(tick) + 4.0, &ticks.label(tick));
        }
        if let Some((at, what)) = self.across {
            out.rule("roof", (left, y(at)), (right, y(at)));
            out.text("muted end", right, top - 16.0, &format!("dashed: {what}"));
        }
        // From the left, as many as there is room for.
        let mut taken = f64::NEG_INFINITY;
        for (at, label) in self.labels.iter().enumerate() {
            let half = 3.6 * label.chars().count() as f64;
            if x(at) - half >= taken {
                out.text("muted middle", x(at), bottom + TICKS_BELOW, label);
                taken = x(at) + half + 6.0;
            }
        }
        let centre = f64::midpoint(left, right);
        out.text("muted middle", centre, bottom + UNIT_BELOW, self.unit);
        let class = series(self.series);
        let points = || self.values.iter().enumerate().map(|(at, &v)| (x(at), y(v)));
        out.polyline(&class, points());
        for (at, point) in points().enumerate() {
            match self.marked == Some(at) {
                true => out.mark(&class, Shape::Square, point),
                false => out.mark(&class, Shape::Circle, point),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_cover_what_is_shown() {
        let labels = |ticks: &Ticks| ticks.values().map(|v| ticks.label(v)).collect::<Vec<_>>();
        let upto = |largest: f64| {
            let ticks = Ticks::upto(largest);
            assert!(ticks.last() >= largest && ticks.steps <= 5, "{largest}");
            labels(&ticks)
        };
        assert_eq!(upto(1.0), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(upto(1.01), ["0", "0.5", "1.0", "1.5"]);
        assert_eq!(upto(31.4), ["0", "10", "20", "30", "40"]);
        assert_eq!(upto(0.03), ["0", "0.01", "0.02", "0.03"]);
        for i in 0..2000 {
            upto(1.013f64.powi(i - 1000));
        }
        let ticks = Ticks::between(0.428, 0.434);
        assert_eq!(labels(&ticks), ["0.428", "0.430", "0.432", "0.434"]);
        for i in 0..1000 {
            let least = f64::from(i) * 0.001;
            let ticks = Ticks::between(least, least + 0.0173);
            assert!(ticks.first() <= least + 1e-9 && ticks.last() >= least + 0.0173 - 1e-9);
        }
    }

    #[test]
    fn a_text_is_no_markup() {
        assert_eq!(quoted("<a>&\"b\" 'c'"), "&lt;a&gt;&amp;&quot;b&quot; 'c'");
    }
}
