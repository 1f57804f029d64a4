//! The second reading of a `.jsonl` file: a memory per line. What is held of a line that is done is its
//! depth, nothing else.

use super::lines::{Index, Lines};
use crate::import::evidence::{self, Cited};
use crate::import::json::{Fields, Record, payload};
use crate::import::report::Notices;
use crate::import::timestamp::{format_us, parse_rfc3339};
use crate::import::{ImportError, NoticeKind, Place, TimeUnit, note_time};
use crate::store::{Kind, Reference};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::io::BufRead;
use std::path::Path;

/// A memory but for its vector.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) place: Place,
    pub(super) key: Option<String>,
    /// The key, or the line if there is none: for notices.
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) text: String,
    pub(super) created: i64,
    pub(super) last_access: i64,
    pub(super) expiry: Option<i64>,
    pub(super) importance: f32,
    pub(super) evidence: Vec<Reference>,
    pub(super) depth: u32,
    /// Whether it has a vector, if the line says so.
    pub(super) has_embedding: Option<bool>,
    pub(super) payload: Vec<u8>,
}

/// The second reading.
#[derive(Debug)]
pub(super) struct Memories<R> {
    lines: Lines<R>,
    index: Index,
    unit: Option<TimeUnit>,
    depths: Vec<u32>,
}

impl<R: BufRead> Memories<R> {
    /// The memories of `lines`, which `index` was read from before.
    pub(super) fn new(lines: Lines<R>, index: Index, unit: Option<TimeUnit>) -> Memories<R> {
        Memories {
            lines,
            index,
            unit,
            depths: Vec::new(),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.lines.path
    }

    /// How many lines the first reading found.
    pub(super) fn lines(&self) -> u64 {
        self.index.lines
    }

    /// The next memory, or `None` after the last line.
    pub(super) fn next(&mut self, notices: &mut Notices) -> Result<Option<Line>, ImportError> {
        if self.lines.advance()?.is_none() {
            return Ok(None);
        }
        let fields: Fields = self.lines.parsed()?;
        let place = self.lines.place();
        let record = Record::new(&place.path, place.item, fields);
        self.memory(record, notices).map(Some)
    }

    fn memory(&mut self, mut record: Record, notices: &mut Notices) -> Result<Line, ImportError> {
        let row = self.depths.len() as u64;
        let (key, id) = names(&mut record)?;
        let renumbered = id.filter(|&id| id != row);
        // Kept in the payload where neither the key nor the store's own id says it.
        let beside_key = renumbered.filter(|_| key.is_some());
        let key = key.or_else(|| id.map(|id| id.to_string()));
        let name = key.clone().unwrap_or_else(|| record.place.item.clone());
        if let Some(id) = renumbered {
            let detail = format!("{id} becomes {row}");
            notices.detail(NoticeKind::IdRenumbered, &name, detail);
        }
        let kind = record.optional::<String>("kind", "text")?;
        let kind = kind.map_or(Kind::OBSERVATION, Kind::named);
        let text = record.optional("text", "text")?.unwrap_or_default();

        let Some(created) = self.time(&mut record, "created", &name, notices)? else {
            return Err(record.wrong("created", None, TIME));
        };
        // Where both are written, the second is an unknown field.
        let field = match record.has("last_access") {
            true => "last_access",
            false => "last_accessed",
        };
        let last_access = self.time(&mut record, field, &name, notices)?;
        let last_access = last_access.unwrap_or_else(|| {
            notices.add(NoticeKind::LastAccessAbsent, &name);
            created
        });
        let expiry = self.time(&mut record, "expiry", &name, notices)?;
        let (importance, exact) = record.number("importance")?.unwrap_or_else(|| {
            notices.add(NoticeKind::ImportanceAbsent, &name);
            (1.0, true)
        });
        if !exact {
            notices.add(NoticeKind::ImportanceRounded, &name);
        }

        let evidence = self.evidence(&mut record, row, &name, notices)?;
        let computed = match kind == Kind::REFLECTION {
            true => evidence::depth(&evidence, &self.depths),
            false => 0,
        };
        let depth = record
            .optional::<u32>("depth", "a whole number of 32 bits, 0 or more")?
            .unwrap_or(computed);
        if depth != computed {
            let detail = format!("{depth} in the file and stored, {computed} by its evidence");
            notices.detail(NoticeKind::DepthDiffers, &name, detail);
        }
        self.depths.push(depth);
        let has_embedding = has_embedding(&mut record);
        let place = record.place.clone();
        Ok(Line {
            payload: kept(record, beside_key, &name, notices)?,
            place,
            key,
            name,
            kind,
            text,
            created,
            last_access,
            expiry,
            importance,
            evidence,
            depth,
            has_embedding,
        })
    }

    fn time(
        &self,
        record: &mut Record,
        field: &'static str,
        name: &str,
        notices: &mut Notices,
    ) -> Result<Option<i64>, ImportError> {
        let Some(raw) = record.take_some(field) else {
            return Ok(None);
        };
        if raw.get().starts_with('"') {
            let text: String = serde_json::from_str(raw.get())
                .map_err(|_| record.wrong(field, Some(&raw), TIME))?;
            let (us, exact) = parse_rfc3339(&text).map_err(|e| record.time(field, e))?;
            if !exact {
                notices.detail(NoticeKind::TimeRounded, name, format!("{field} {text}"));
            }
            note_time(notices, name, field, us);
            return Ok(Some(us));
        }
        let Ok(number) = serde_json::from_str::<serde_json::Number>(raw.get()) else {
            return Err(record.wrong(field, Some(&raw), TIME));
        };
        let Some(unit) = self.unit else {
            let expected = "RFC 3339 text; for numbers, declare their unit (seconds, milliseconds or microseconds since 1970)";
            return Err(record.wrong(field, Some(&raw), expected));
        };
        let us = match number.as_i64() {
            Some(whole) => whole.checked_mul(unit.us()),
            None => number.as_f64().and_then(|n| {
                let us = (n * unit.us() as f64).round();
                (us.abs() < 9e18).then_some(us as i64)
            }),
        };
        let Some(us) = us else {
            let expected = "a time within 64 bits of microseconds; is the declared unit right?";
            return Err(record.wrong(field, Some(&raw), expected));
        };
        if !(YEAR_1980_US..YEAR_2200_US).contains(&us) {
            let when = format_us(us);
            notices.detail(NoticeKind::TimeSuspicious, name, format!("{field} {when}"));
        }
        note_time(notices, name, field, us);
        Ok(Some(us))
    }

    fn evidence(
        &self,
        record: &mut Record,
        row: u64,
        name: &str,
        notices: &mut Notices,
    ) -> Result<Vec<Reference>, ImportError> {
        let Some(raw) = record.take("evidence") else {
            return Ok(Vec::new());
        };
        if raw.get() == "null" {
            notices.add(NoticeKind::EvidenceNull, name);
            return Ok(Vec::new());
        }
        if let Ok(text) = serde_json::from_str::<String>(raw.get()) {
            return Ok(evidence::string(text, name, notices));
        }
        let items: Vec<Item> = serde_json::from_str(raw.get()).map_err(|_| {
            let expected =
                "a list of keys, ids and {\"missing\": text} for what names no memory; or null";
            record.wrong("evidence", Some(&raw), expected)
        })?;
        let cited = items.into_iter().map(|item| match item {
            Item::Id(id) => Cited {
                text: id.to_string(),
                id: self.index.by_id(id),
            },
            Item::Key(key) => Cited {
                id: self.index.by_key(&key),
                text: key,
            },
            Item::Missing(Missing { missing }) => Cited {
                text: missing,
                id: None,
            },
        });
        Ok(evidence::resolve(cited.collect(), row, name, notices))
    }
}

const TIME: &str = "RFC 3339 text, or a number with a declared unit";
const YEAR_1980_US: i64 = 315_532_800_000_000;
const YEAR_2200_US: i64 = 7_258_118_400_000_000;

/// One reference.
#[derive(Deserialize)]
#[serde(untagged)]
enum Item {
    Id(u64),
    Key(String),
    Missing(Missing),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Missing {
    missing: String,
}

/// `key` is text; `id` is a number, or text that serves as the key where there is no other.
fn names(record: &mut Record) -> Result<(Option<String>, Option<u64>), ImportError> {
    let key: Option<String> = record.optional("key", "text")?;
    let Some(id) = record.take_some("id") else {
        return Ok((key, None));
    };
    if let Ok(number) = id.get().parse() {
        return Ok((key, Some(number)));
    }
    match serde_json::from_str(id.get()) {
        Ok(text) if key.is_none() => Ok((Some(text), None)),
        _ => {
            let expected = "a whole number, or text where there is no key";
            Err(record.wrong("id", Some(&id), expected))
        }
    }
}

/// `has_embedding`, if it is true or false. Anything else by that name is a field that is not known.
fn has_embedding(record: &mut Record) -> Option<bool> {
    let raw = record.get("has_embedding")?;
    let told = serde_json::from_str(raw.get()).ok()?;
    record.take("has_embedding");
    told
}

/// The payload: the bytes of `payload_hex`; or the JSON of `payload`, verbatim; with `id`, an id that is
/// stored nowhere else, or unknown fields, an object of those by name and `payload` as one more field.
fn kept(
    mut record: Record,
    id: Option<u64>,
    name: &str,
    notices: &mut Notices,
) -> Result<Vec<u8>, ImportError> {
    let hex = record.take_some("payload_hex");
    let given = record.take_some("payload");
    if let Some(raw) = hex {
        let text = serde_json::from_str::<String>(raw.get()).ok();
        let bytes = text.as_deref().and_then(unhex);
        let alone = given.is_none() && record.is_empty();
        return bytes.filter(|_| alone).ok_or_else(|| {
            let expected =
                "an even number of hexadecimal digits, and no payload or unknown field beside it";
            record.wrong("payload_hex", Some(&raw), expected)
        });
    }
    let unknown = record.rest();
    for (field, _) in &unknown {
        notices.detail(NoticeKind::UnknownField, name, field.clone());
    }
    let id = id.and_then(|id| RawValue::from_string(id.to_string()).ok());
    let id = id.map(|id| ("id".to_owned(), id));
    let mut fields: Vec<_> = id.into_iter().chain(unknown).collect();
    if fields.is_empty() {
        return Ok(given.map_or_else(Vec::new, |raw| raw.get().as_bytes().to_vec()));
    }
    fields.extend(given.map(|raw| ("payload".to_owned(), raw)));
    Ok(payload(&fields))
}

/// The bytes of hexadecimal digits.
pub(in crate::import) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .bytes()
        .map(|b| char::from(b).to_digit(16).map(|d| d as u8))
        .collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(
        digits
            .chunks_exact(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect(),
    )
}
