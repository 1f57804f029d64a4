//! The chart of a sweep: a panel for each weight.

use super::Document;
use crate::output::{counted, short};
use crate::svg::{Frame, Lines, Svg, TOP, Ticks, Title, UNIT_BELOW};
use std::fmt::Write;

pub fn svg(name: &str, document: &Document<'_>) -> String {
    let title = Title {
        of: "memorank sweep",
        name,
        below: &format!(
            "share of {} that stays when one weight changes (square: unchanged); {}",
            document.compared(),
            counted(document.questions, "question")
        ),
        description: &description(document),
        style: "",
    };
    let bottom = TOP + 250.0;
    let mut out = Svg::new(&title, bottom + UNIT_BELOW + 19.0);
    let ticks = Ticks::upto(1.0);
    for (number, curve) in document.curves.iter().enumerate() {
        let left = 76.0 + 290.0 * number as f64;
        let labels: Vec<String> = (curve.points.iter())
            .map(|point| short(point.weight))
            .collect();
        let values: Vec<f64> = curve.points.iter().map(|point| point.overlap).collect();
        Lines {
            title: &format!("Weight of {}", curve.signal.name()),
            unit: "weight",
            labels: &labels,
            values: &values,
            series: number,
            across: None,
            marked: (curve.points.iter()).position(|point| point.weight == curve.weight),
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
fn description(document: &Document<'_>) -> String {
    let mut text = format!("Share of {} that stays.", document.compared());
    for curve in document.curves {
        let _ = write!(text, " Weight of {}:", curve.signal.name());
        for point in &curve.points {
            let _ = write!(text, " {} {:.4};", point.weight, point.overlap);
        }
    }
    text
}
