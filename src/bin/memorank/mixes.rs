//! Scorings by name, by file, or put together: what `eval` compares.

use crate::failure::Failure;
use crate::settings::scoring_of;
use crate::values::Age;
use memorank::eval::Grid;
use memorank::scoring::{Preset, Weights};
use std::path::Path;

/// Cosine alone: what every other scoring has to beat.
pub const COSINE: &str = "cosine";

/// The scoring that is meant: `cosine`, a preset's name, weights as in `relevance=1,recency=0.1,half-life=7d`, or else a
/// file that holds one as JSON.
pub fn preset(named: &str) -> Result<Preset, Failure> {
    if named == COSINE {
        return Ok(alone(Weights {
            relevance: 1.0,
            recency: 0.0,
            importance: 0.0,
        }));
    }
    if let Some(preset) = Preset::named(named) {
        return Ok(preset);
    }
    if named.contains('=') {
        return mix(named).map_err(|what| Failure::Usage(format!("{named:?}: {what}")));
    }
    let scoring = scoring_of(Path::new(named)).map_err(|failure| match failure {
        Failure::Error(e) => Failure::Error(
            format!(
                "{e} (a scoring is {COSINE}, {}, weights, or a file)",
                Preset::NAMES.join(", ")
            )
            .into(),
        ),
        other => other,
    })?;
    Ok(Preset {
        scoring,
        ..Preset::paper()
    })
}

/// The paper's, but for the weights.
fn alone(weights: Weights) -> Preset {
    let mut preset = Preset::paper();
    preset.scoring.weights = weights;
    preset
}

fn mix(text: &str) -> Result<Preset, String> {
    let mut preset = alone(Weights {
        relevance: 0.0,
        recency: 0.0,
        importance: 0.0,
    });
    let mut given = Vec::new();
    for part in text.split(',') {
        let (name, value) = (part.split_once('=')).ok_or_else(|| format!("{part:?} has no ="))?;
        if given.contains(&name) {
            return Err(format!("{name} is given twice"));
        }
        given.push(name);
        let number = || value.parse().map_err(|_| format!("{value:?} is no number"));
        let weights = &mut preset.scoring.weights;
        match name {
            "relevance" => weights.relevance = number()?,
            "recency" => weights.recency = number()?,
            "importance" => weights.importance = number()?,
            "decay" => preset.scoring = preset.scoring.with_decay(number()?),
            "half-life" => {
                let Age(us) = value.parse()?;
                let decay = Grid::decay_of_half_life(us as f64 / 3.6e9);
                preset.scoring = preset.scoring.with_decay(decay);
            }
            _ => {
                return Err(format!(
                    "there is no {name:?}; there are relevance, recency, importance, decay and half-life"
                ));
            }
        }
    }
    if given.contains(&"decay") && given.contains(&"half-life") {
        return Err("a decay or a half-life, and not both".to_owned());
    }
    preset.scoring.check().map_err(|e| e.to_string())?;
    Ok(preset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_has_what_is_given_and_no_other_weight() {
        let Ok(found) = mix("relevance=1,recency=0.5,half-life=1h") else {
            panic!()
        };
        let Weights {
            relevance,
            recency,
            importance,
        } = found.scoring.weights;
        assert_eq!((relevance, recency, importance), (1.0, 0.5, 0.0));
        assert_eq!(found.scoring.decay(), Some(0.5));
        assert_eq!(mix("importance=2").unwrap().scoring.decay(), Some(0.995));
        for wrong in [
            "=",
            "relevance",
            "relevance=",
            "relevance=x",
            "relevance=-1",
            "relevance=1,relevance=2",
            "relevance=1,",
            "rel=1",
            "decay=2",
            "decay=0.5,half-life=1h",
            "half-life=1",
            "relevance=inf",
        ] {
            assert!(mix(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            mix("half-life=0s,recency=1").unwrap().scoring.decay(),
            Some(0.0)
        );
    }
}
