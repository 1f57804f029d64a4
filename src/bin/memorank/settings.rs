//! What is computed: a preset, and what flags change of it.

use crate::failure::Failure;
use crate::values::whole;
use crate::{files, filters};
use memorank::scoring::{Preset, Recency, Scoring, Touch};
use memorank::store::{Kind, Snapshot};
use memorank::stream::{Decays, KindDecay};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

#[derive(clap::Args)]
#[command(next_help_heading = "What is computed")]
pub struct Settings {
    /// Weights, decay, normalisation, ties and order as a whole.
    #[arg(long, default_value = "paper", value_parser = Preset::NAMES)]
    pub preset: String,
    /// A file with a scoring as JSON, as `tune` writes it: weights, recency and normalisation, instead of the preset's.
    #[arg(long, value_name = "FILE")]
    pub scoring: Option<PathBuf>,
    /// The weight of relevance, instead of the preset's.
    #[arg(long, value_name = "WEIGHT", allow_negative_numbers = true)]
    relevance: Option<f64>,
    /// The weight of recency, instead of the preset's.
    #[arg(long, value_name = "WEIGHT", allow_negative_numbers = true)]
    recency: Option<f64>,
    /// The weight of importance, instead of the preset's.
    #[arg(long, value_name = "WEIGHT", allow_negative_numbers = true)]
    importance: Option<f64>,
    /// What remains of recency after an hour (reverie: after a position), instead of the preset's; with a floor, never
    /// less than that. Given again with a KIND, of memories of that kind.
    #[arg(
        long,
        value_name = "[KIND=]DECAY[:FLOOR]",
        allow_negative_numbers = true
    )]
    decay: Vec<DecayOf>,
    /// How many memories, instead of the preset's number.
    #[arg(short, long, value_parser = whole, allow_negative_numbers = true)]
    k: Option<usize>,
}

/// `[KIND=]DECAY[:FLOOR]`
#[derive(Clone)]
struct DecayOf {
    kind: Option<String>,
    decay: f64,
    floor: Option<f64>,
}

impl FromStr for DecayOf {
    type Err = String;

    fn from_str(text: &str) -> Result<DecayOf, String> {
        let number = |text: &str| text.parse().map_err(|_| format!("{text:?} is no number"));
        // A kind may be called anything.
        let (kind, numbers) = match text.rsplit_once('=') {
            Some((kind, numbers)) => (Some(kind.to_owned()), numbers),
            None => (None, text),
        };
        let (decay, floor) = match numbers.split_once(':') {
            Some((decay, floor)) => (decay, Some(floor)),
            None => (numbers, None),
        };
        Ok(DecayOf {
            kind,
            decay: number(decay)?,
            floor: floor.map(number).transpose()?,
        })
    }
}

impl DecayOf {
    fn numbers(&self) -> KindDecay {
        KindDecay {
            decay: self.decay,
            floor: self.floor.unwrap_or(0.0),
        }
    }
}

impl Settings {
    /// The preset with what the flags change, all in range. It touches nothing.
    pub fn preset(&self) -> Result<Preset, Failure> {
        let usage = Failure::Usage;
        let named = Preset::named(&self.preset);
        let mut preset =
            named.ok_or_else(|| usage(format!("no preset is called {:?}", self.preset)))?;
        if let Some(path) = &self.scoring {
            preset.scoring = scoring_of(path)?;
        }
        let weights = &mut preset.scoring.weights;
        weights.relevance = self.relevance.unwrap_or(weights.relevance);
        weights.recency = self.recency.unwrap_or(weights.recency);
        weights.importance = self.importance.unwrap_or(weights.importance);
        let mut general = self.decay.iter().filter(|of| of.kind.is_none());
        if let Some(of) = general.next() {
            preset.scoring = preset.scoring.with_decay(of.decay);
        }
        if general.next().is_some() {
            return Err(usage(
                "--decay is given twice; each after the first needs its KIND=".to_owned(),
            ));
        }
        preset.k = self.k.unwrap_or(preset.k);
        preset.scoring.check().map_err(|e| usage(e.to_string()))?;
        // Whatever the preset does: from the command line, nothing is touched unless it is told to be.
        preset.touch = Touch::None;
        if let Some(decays) = self.decays(&preset, |name| Ok(Kind::named(name)))? {
            decays.check().map_err(|e| usage(format!("--decay: {e}")))?;
        }
        Ok(preset)
    }

    /// Whether there is a decay of a kind, or a floor.
    pub fn decays_by_kind(&self) -> bool {
        let mut decays = self.decay.iter();
        decays.any(|of| of.kind.is_some() || of.floor.is_some())
    }

    /// The decays by kind, if there are more than the preset has: one for a kind that the store has, or a floor.
    pub fn decays_in(
        &self,
        preset: &Preset,
        snapshot: &Snapshot,
    ) -> Result<Option<Decays>, Failure> {
        self.decays(preset, |name| filters::kind(snapshot, name))
    }

    fn decays(
        &self,
        preset: &Preset,
        kind: impl Fn(&str) -> Result<Kind, Failure>,
    ) -> Result<Option<Decays>, Failure> {
        let mut decays = Decays {
            default: KindDecay {
                decay: preset.scoring.decay().unwrap_or(1.0),
                floor: 0.0,
            },
            kinds: Vec::new(),
        };
        for of in &self.decay {
            match &of.kind {
                Some(name) => decays.kinds.push((kind(name)?, of.numbers())),
                None => decays.default = of.numbers(),
            }
        }
        Ok(self.decays_by_kind().then_some(decays))
    }
}

/// More is no scoring: a device without an end, say.
const SCORING_BYTES: u64 = 1 << 20;

/// The scoring that a file holds as JSON, in range.
pub fn scoring_of(path: &Path) -> Result<Scoring, Failure> {
    let told = |what: String| Failure::Error(format!("{}: {what}", path.display()).into());
    let bytes = files::read(path, SCORING_BYTES).map_err(|e| told(e.to_string()))?;
    if bytes.len() as u64 > SCORING_BYTES {
        return Err(told("more than 1 MiB is no scoring".to_owned()));
    }
    let scoring: Scoring = serde_json::from_slice(&bytes).map_err(|e| told(e.to_string()))?;
    scoring.check().map_err(|e| told(e.to_string()))?;
    match scoring.recency {
        Recency::Age { .. } | Recency::Position { .. } => Ok(scoring),
        Recency::Given => Err(told("a store has no recencies that are given".to_owned())),
    }
}

/// What is computed, for documents.
#[derive(Serialize)]
pub struct Told<'a> {
    #[serde(flatten)]
    pub preset: &'a Preset,
    #[serde(skip_serializing_if = "Option::is_none")]
    decays: Option<DecaysTold<'a>>,
}

#[derive(Serialize)]
struct DecaysTold<'a> {
    default: KindDecay,
    kinds: BTreeMap<&'a str, KindDecay>,
}

impl<'a> Told<'a> {
    pub fn new(preset: &'a Preset, decays: Option<&'a Decays>) -> Told<'a> {
        Told {
            preset,
            decays: decays.map(|decays| DecaysTold {
                default: decays.default,
                kinds: (decays.kinds.iter())
                    .map(|(kind, decay)| (kind.as_str(), *decay))
                    .collect(),
            }),
        }
    }
}
