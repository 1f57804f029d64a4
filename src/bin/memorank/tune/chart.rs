//! The chart of a tuning: the best that each weight and each half-life reaches, whatever the others are. Where a curve
//! is level, the number does not matter.

use super::{Document, Setting, hours};
use crate::eval::gain;
use crate::output::{grouped, short};
use crate::svg::{Frame, Lines, Svg, TOP, Ticks, Title, UNIT_BELOW};
use memorank::scoring::Scoring;
use std::fmt::Write;

/// One panel: the values of a number, and the best mean with each.
struct Curve {
    title: &'static str,
    unit: &'static str,
    labels: Vec<String>,
    values: Vec<f64>,
    best: Option<usize>,
}

impl Curve {
    fn new(
        title: &'static str,
        unit: &'static str,
        all: impl Iterator<Item = (f64, f64)>,
        best: f64,
        label: impl Fn(f64) -> String,
    ) -> Curve {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for (x, mean) in all {
            match points.iter_mut().find(|(known, _)| *known == x) {
                Some((_, most)) => *most = mean.max(*most),
                None => points.push((x, mean)),
            }
        }
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Curve {
            title,
            unit,
            labels: points.iter().map(|&(x, _)| label(x)).collect(),
            values: points.iter().map(|&(_, mean)| mean).collect(),
            best: points.iter().position(|&(x, _)| x == best),
        }
    }
}

pub fn svg(name: &str, document: &Document<'_>, settings: &[Scoring], means: &[f64]) -> String {
    let all = || settings.iter().map(Setting::of).zip(means);
    let best = document.best.setting;
    let weight = short;
    let curves = [
        Curve::new(
            "Recency",
            "weight",
            all().map(|(of, &mean)| (of.recency, mean)),
            best.recency,
            weight,
        ),
        Curve::new(
            "Half-life",
            "",
            all()
                .filter(|(of, _)| of.recency > 0.0)
                .map(|(of, &mean)| (of.decay, mean)),
            if best.recency > 0.0 {
                best.decay
            } else {
                f64::NAN
            },
            hours,
        ),
        Curve::new(
            "Importance",
            "weight",
            all().map(|(of, &mean)| (of.importance, mean)),
            best.importance,
            weight,
        ),
    ];
    let measure = &document.measure;
    let title = Title {
        of: "memorank tune",
        name,
        below: &format!(
            "{measure} on all {} questions, the best of {} settings with each number; held-out gain {}",
            grouped(document.questions),
            grouped(document.settings),
            gain(&document.gain)
        ),
        description: &description(&curves, measure),
        style: "",
    };
    let bottom = TOP + 250.0;
    let mut out = Svg::new(&title, bottom + UNIT_BELOW + 19.0);
    let shown = || curves.iter().flat_map(|of| &of.values).copied();
    let least = shown().fold(document.cosine, f64::min);
    let most = shown().fold(document.cosine, f64::max);
    // Level curves have a height, too.
    let room = ((most - least) * 0.1).max(0.002);
    let ticks = Ticks::between((least - room).max(0.0), (most + room).min(1.0));
    for (number, curve) in curves.iter().enumerate() {
        // Half-lives, where no weight of recency is tried.
        if curve.values.is_empty() {
            continue;
        }
        let left = 76.0 + 290.0 * number as f64;
        Lines {
            title: curve.title,
            unit: curve.unit,
            labels: &curve.labels,
            values: &curve.values,
            series: number,
            across: Some((document.cosine, "cosine")),
            marked: curve.best,
        }
        .draw(
            &Frame {
                left,
                right: left + 230.0,
                top: TOP + 16.0,
                bottom,
            },
            &ticks,
            &mut out,
        );
    }
    out.finish()
}

/// All figures in words.
fn description(curves: &[Curve], measure: &str) -> String {
    let mut text = format!("The best {measure} with each number.");
    for curve in curves {
        let _ = write!(text, " {}:", curve.title);
        for (label, value) in curve.labels.iter().zip(&curve.values) {
            let _ = write!(text, " {label} {value:.4};");
        }
    }
    text
}
