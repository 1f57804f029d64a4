//! The chart of a bench.
//!
//! Two panels. *Roofline*: bytes per second of plain read, cosine scan and ranking as bars, the plain read
//! being the roof. *Growth*: the ranking's speed as a share of the plain read's, over the number of
//! memories.

use super::measure::{Figures, Growth, Roofline, Speed};
use super::threads;
use crate::output::grouped;
use crate::svg::{LEFT, Shape, Svg, TICKS_BELOW, TOP, Ticks, Title, UNIT_BELOW};
use std::fmt::Write;

/// What the chart tells.
pub struct Chart<'a> {
    /// The store's.
    pub name: &'a str,
    /// How many memories, and of what.
    pub subject: &'a str,
    /// How it was measured.
    pub method: &'a str,
    pub figures: &'a Figures,
}

const MIDDLE: f64 = 492.0;
/// The height of three bars and what they are called.
const LANE: f64 = 122.0;

const STYLE: &str = "\
.read { fill: #9aa4af; }
.scan { fill: #0969da; }
.ranking { fill: #c2410c; }
.one { stroke: #0f766e; }
.all { stroke: #8250df; }
.one.mark { fill: #0f766e; }
.all.mark { fill: #8250df; }
@media (prefers-color-scheme: dark) {
.read { fill: #656c76; }
.scan { fill: #4493f8; }
.ranking { fill: #f0883e; }
.one { stroke: #2dd4bf; }
.all { stroke: #ab7df8; }
.one.mark { fill: #2dd4bf; }
.all.mark { fill: #ab7df8; }
}
";

/// One thread's series and that of all.
const LANES: [(&str, Shape); 2] = [("one", Shape::Circle), ("all", Shape::Square)];

/// GB/s: 31.4, 3.14, 0.314.
pub fn speed(gb_per_s: f64) -> String {
    match gb_per_s {
        10.0.. => format!("{gb_per_s:.1}"),
        0.1.. => format!("{gb_per_s:.2}"),
        _ => format!("{gb_per_s:.4}"),
    }
}

/// A share of the plain read's speed.
pub fn share(of_plain_read: f64) -> String {
    format!("{of_plain_read:.2}")
}

impl Roofline {
    pub fn named(&self) -> [(&'static str, &Speed); 3] {
        [
            ("plain read", &self.plain_read),
            ("cosine scan", &self.cosine_scan),
            ("ranking", &self.ranking),
        ]
    }
}

/// The chart as an SVG document.
pub fn svg(chart: &Chart<'_>) -> String {
    let figures = chart.figures;
    let bottom = TOP + 28.0 + LANE * figures.roofline.len().max(2) as f64;
    let height = bottom + UNIT_BELOW + 19.0;
    let title = Title {
        of: "memorank bench",
        name: chart.name,
        below: &format!("{}, {}", chart.subject, chart.method),
        description: &description(chart),
        style: STYLE,
    };
    let mut out = Svg::new(&title, height);
    roofline(&mut out, &figures.roofline);
    growth(&mut out, &figures.growth, bottom);
    out.finish()
}

/// All figures in words.
fn description(chart: &Chart<'_>) -> String {
    let mut text = format!("{}, {}. Roofline:", chart.subject, chart.method);
    for lane in &chart.figures.roofline {
        for (name, measured) in lane.named() {
            let (threads, speed) = (threads(lane.threads), speed(measured.gb_per_s));
            let _ = write!(text, " {threads}, {name} {speed} GB/s;");
        }
    }
    text += " growth, the ranking's speed as a share of the plain read's:";
    for point in &chart.figures.growth {
        let (memories, share) = (grouped(point.memories), share(point.ranking.of_plain_read));
        let _ = write!(
            text,
            " {}, {memories} memories {share};",
            threads(point.threads)
        );
    }
    text
}

fn roofline(out: &mut Svg, lanes: &[Roofline]) {
    let bottom = TOP + 28.0 + LANE * lanes.len() as f64;
    const ZERO: f64 = 116.0;
    const END: f64 = 330.0;
    const VALUES: f64 = 440.0;
    out.text("panel", LEFT, TOP, "Roofline: bytes read per second");
    let speeds = lanes
        .iter()
        .flat_map(|lane| lane.named().map(|(_, s)| s.gb_per_s));
    let ticks = Ticks::upto(speeds.fold(0.0, f64::max));
    let x = |gb_per_s: f64| ZERO + (END - ZERO) * gb_per_s / ticks.last();
    for tick in ticks.values() {
        out.rule("grid", (x(tick), TOP + 40.0), (x(tick), bottom));
        out.text(
            "muted middle",
            x(tick),
            bottom + TICKS_BELOW,
            &ticks.label(tick),
        );
    }
    let centre = f64::midpoint(ZERO, END);
    out.text("muted middle", centre, bottom + UNIT_BELOW, "GB/s");
    let ratio = "GB/s, ratio to the plain read";
    out.text("muted end", VALUES, TOP + 34.0, ratio);
    for (i, lane) in lanes.iter().enumerate() {
        let top = TOP + 34.0 + LANE * i as f64;
        out.text("halo", LEFT, top, &threads(lane.threads));
        let bars = ["read", "scan", "ranking"].iter().zip(lane.named());
        for (j, (class, (name, measured))) in bars.enumerate() {
            let y = top + 10.0 + 28.0 * j as f64;
            let width = x(measured.gb_per_s) - ZERO;
            out.line(format_args!(
                "<rect class=\"{class}\" x=\"{ZERO}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"20\"/>"
            ));
            out.text("muted", LEFT, y + 14.0, name);
            let value = match j {
                0 => format!("{} GB/s", speed(measured.gb_per_s)),
                _ => format!(
                    "{} GB/s, {}",
                    speed(measured.gb_per_s),
                    share(measured.of_plain_read)
                ),
            };
            out.text("end", VALUES, y + 14.0, &value);
        }
        let roof = x(lane.plain_read.gb_per_s);
        out.rule("roof", (roof, top + 5.0), (roof, top + 91.0));
    }
    out.rule("axis", (ZERO, TOP + 40.0), (ZERO, bottom));
}

fn growth(out: &mut Svg, points: &[Growth], bottom: f64) {
    const FIRST: f64 = 552.0;
    const LAST: f64 = 872.0;
    /// Of axes and grid.
    const EDGES: [f64; 2] = [528.0, 896.0];
    out.text(
        "panel",
        MIDDLE,
        TOP,
        "Growth: ranking speed, ratio to the plain read",
    );
    let shares = points.iter().map(|point| point.ranking.of_plain_read);
    let ticks = Ticks::upto(shares.fold(1.0, f64::max));
    // Below 0 there is room for labels.
    let zero = bottom - 20.0;
    let y = |share: f64| zero - (zero - TOP - 54.0) * share / ticks.last();
    for tick in ticks.values() {
        let class = if tick == 0.0 { "axis" } else { "grid" };
        out.rule(class, (EDGES[0], y(tick)), (EDGES[1], y(tick)));
        let label = ticks.label(tick);
        out.text("muted end", EDGES[0] - 6.0, y(tick) + 4.0, &label);
    }
    out.rule("roof", (EDGES[0], y(1.0)), (EDGES[1], y(1.0)));

    // The first lane has all sizes, and the others the same.
    let lanes: Vec<&[Growth]> = points.chunk_by(|a, b| a.threads == b.threads).collect();
    let sizes = lanes.first().copied().unwrap_or_default();
    let log = |memories: usize| (memories.max(1) as f64).log10();
    let range = match sizes {
        [first, .., last] => [log(first.memories), log(last.memories)],
        _ => [0.0, 0.0],
    };
    let x = |memories: usize| match range[1] - range[0] {
        0.0 => f64::midpoint(FIRST, LAST),
        span => FIRST + (LAST - FIRST) * (log(memories) - range[0]) / span,
    };

    // From the right, so that the whole store keeps its labels.
    let (mut taken_by_ticks, mut taken_by_values) = (f64::INFINITY, f64::INFINITY);
    let mut valued = Vec::new();
    for point in sizes.iter().rev() {
        let (x, label) = (x(point.memories), compact(point.memories));
        let half = 4.0 * label.len() as f64;
        if x + half <= taken_by_ticks {
            out.text("muted middle", x, bottom + TICKS_BELOW, &label);
            taken_by_ticks = x - half;
        }
        if x + 16.0 <= taken_by_values {
            valued.push(point.memories);
            taken_by_values = x - 16.0;
        }
    }
    let centre = f64::midpoint(EDGES[0], EDGES[1]);
    let unit = "memories (log scale)";
    out.text("muted middle", centre, bottom + UNIT_BELOW, unit);

    let at = |point: &Growth| (x(point.memories), y(point.ranking.of_plain_read));
    for (lane, (class, shape)) in lanes.iter().zip(LANES) {
        out.polyline(class, lane.iter().map(at));
        (lane.iter()).for_each(|point| out.mark(class, shape, at(point)));
    }
    // The higher share of a size above its point, the lower one below.
    for memories in valued {
        let mut these: Vec<_> = points.iter().filter(|p| p.memories == memories).collect();
        these.sort_by(|a, b| b.ranking.of_plain_read.total_cmp(&a.ranking.of_plain_read));
        for (point, offset) in these.into_iter().zip([-9.0, 17.0]) {
            let (x, y) = at(point);
            let label = share(point.ranking.of_plain_read);
            out.text("value middle halo", x, y + offset, &label);
        }
    }

    let mut left = EDGES[0];
    let legend = TOP + 28.0;
    for (lane, (class, shape)) in lanes.iter().zip(LANES) {
        let y = legend - 4.0;
        out.rule(&format!("series {class}"), (left, y), (left + 24.0, y));
        out.mark(class, shape, (left + 12.0, y));
        out.text("muted", left + 31.0, legend, &threads(lane[0].threads));
        left += 122.0;
    }
    let y = legend - 4.0;
    out.rule("roof", (left, y), (left + 24.0, y));
    out.text("muted", left + 31.0, legend, "plain read");
}

/// 999, 1k, 1.5k, 1.23M.
fn compact(n: usize) -> String {
    let (value, unit) = match n as f64 {
        n @ ..1e3 => (n, ""),
        n @ ..999.5e3 => (n / 1e3, "k"),
        n @ ..999.5e6 => (n / 1e6, "M"),
        n => (n / 1e9, "G"),
    };
    let text = match value {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    };
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests;
