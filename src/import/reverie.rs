//! The archives of the generative agents' public simulation (a persona's
//! `bootstrap_memory/associative_memory` folder).

use super::archive::{Archive, Node, Nodes, nodes_path, note_gaps};
use super::error::ImportError;
use super::evidence::{self, Cited};
use super::json::{Fields, Pairs, Record, parse, payload, read_whole};
use super::report::{Notices, Report, Tally};
use super::{EvidenceForm, NoticeKind, Options, Trace, destination, note_time};
use crate::store::{Kind, Reference};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::path::Path;

/// Imports the folder of `nodes.json` and `embeddings.json` into a new store at `destination`.
///
/// `nodes.json` is an object of `node_N` -> node, written newest first. Memories are imported by
/// ascending number, so that `node_1` gets id 0; a key of another form is kept and comes after the
/// numbered ones, by text.
///
/// | field | becomes |
/// |---|---|
/// | the key | key |
/// | `type` | kind: event = observation, thought = reflection, chat = chat; any other its own, reported |
/// | `description` | text |
/// | `embedding_key` | the vector `embeddings.json` has for that text; also in the payload |
/// | `created`, `expiration` | `YYYY-MM-DD HH:MM:SS`, read as UTC |
/// | `last_accessed` | last access, if the file has it; else the creation time, reported |
/// | `poignancy` | importance |
/// | `filling` | evidence, in order |
/// | `depth` | compared with the depth stored, and kept in the payload where they differ |
///
/// The authors' code knows no other types, and passes over memories of them. So that none of them is taken
/// for an event or thought here, the types `observation` and `reflection` become the kinds
/// `reverie:observation` and `reverie:reflection`.
///
/// The depth stored is 0 for anything but a thought, and for a thought 1 + the deepest memory it
/// cites among those before it. The authors' loader falls back to 1 as soon as one reference cannot
/// be looked up; [`Trace::authors_depth`] is what it would give.
///
/// The payload is a JSON object: subject, predicate, object, keywords, embedding_key, node_count,
/// type_count, filling (a chat's utterances, which are no evidence), depth (if it differs), then any
/// unknown fields by name; values as the file wrote them.
///
/// `progress` is first called after the archive was read whole; see [progress](crate::import#progress).
///
/// # Errors
/// Whatever cannot be understood, naming the file and the node; then there is no store.
pub fn reverie(
    folder: &Path,
    destination: &Path,
    options: &Options,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Report, ImportError> {
    destination::check(destination)?;
    destination::build(destination, read(folder, options)?, progress)
}

fn read(folder: &Path, options: &Options) -> Result<Archive, ImportError> {
    let path = nodes_path(
        folder,
        "name the folder that holds nodes.json (of a saved persona: bootstrap_memory/associative_memory)",
    )?;
    Archive::read(
        "reverie",
        folder,
        options,
        nodes(&path, &read_whole(&path)?)?,
    )
}

/// The nodes of the file `path`, which holds `bytes`.
pub(super) fn nodes(path: &Path, bytes: &[u8]) -> Result<Nodes, ImportError> {
    let Pairs(mut entries) = parse::<Pairs<Fields>>(path, bytes)?;
    // The numbered ones first.
    entries.sort_by_cached_key(|(key, _)| match number(key) {
        Some(number) => (false, number, String::new()),
        None => (true, 0, key.clone()),
    });
    let mut tally = Tally::default();
    let numbers = entries.iter().filter_map(|(key, _)| number(key));
    note_gaps(numbers, 1, |n| format!("node_{n}"), &mut tally.notices);

    let numbered = |(at, (key, _)): (usize, &(String, Fields))| number(key) == Some(at as u64 + 1);
    let mut reader = Reader {
        ids: entries
            .iter()
            .zip(0..)
            .map(|((key, _), id)| (key.clone(), id))
            .collect(),
        depths: Vec::with_capacity(entries.len()),
        authors: entries.iter().enumerate().all(numbered).then(HashMap::new),
        tally,
    };
    let mut nodes = Vec::with_capacity(entries.len());
    for (key, fields) in entries {
        let record = Record::new(path, key.clone(), fields);
        nodes.push(reader.node(key, record)?);
    }
    let tally = reader.tally;
    Ok(Nodes { nodes, tally })
}

/// N of `node_N`, written without sign or leading zeros.
fn number(key: &str) -> Option<u64> {
    let digits = key.strip_prefix("node_")?;
    let number: u64 = digits.parse().ok()?;
    (number.to_string() == digits).then_some(number)
}

struct Reader {
    ids: HashMap<String, u64>,
    /// Of the nodes read so far.
    depths: Vec<u32>,
    /// Depths of the nodes read so far by the id the authors' loader gives them, which is their
    /// position among those it does not skip. `None` if it refuses the file.
    authors: Option<HashMap<String, u32>>,
    tally: Tally,
}

/// Evidence as it was found.
struct Filling {
    form: EvidenceForm,
    cited: Vec<String>,
    /// The dialogue.
    kept: Option<Box<RawValue>>,
}

impl Reader {
    fn node(&mut self, key: String, mut record: Record) -> Result<Node, ImportError> {
        let id = self.depths.len() as u64;
        let notices = &mut self.tally.notices;
        if number(&key).is_none() {
            notices.add(NoticeKind::KeyUnnumbered, &key);
        }
        let type_in_file: String = record.required("type", "text")?;
        let kind = match type_in_file.as_str() {
            "event" => Kind::OBSERVATION,
            "thought" => Kind::REFLECTION,
            "chat" => Kind::CHAT,
            // The authors' code passes them over; by these names they would be events and thoughts.
            ours @ ("observation" | "reflection") => {
                let kind = Kind::named(format!("reverie:{ours}"));
                let detail = format!("{ours}, stored as {kind}");
                notices.detail(NoticeKind::UnknownType, &key, detail);
                kind
            }
            other => {
                notices.detail(NoticeKind::UnknownType, &key, other);
                Kind::named(other)
            }
        };
        let text: String = record.required("description", "text")?;
        if text == "this is blank" {
            notices.add(NoticeKind::TextPlaceholder, &key);
        }
        let Some(created) = record.reverie_time("created")? else {
            return Err(record.wrong("created", None, "text of the form \"YYYY-MM-DD HH:MM:SS\""));
        };
        let last_access = record.reverie_time("last_accessed")?.unwrap_or_else(|| {
            notices.add(NoticeKind::LastAccessAbsent, &key);
            created
        });
        let expiry = record.reverie_time("expiration")?;
        note_time(notices, &key, "created", created);
        if last_access != created {
            note_time(notices, &key, "last_accessed", last_access);
        }
        if let Some(expiry) = expiry {
            note_time(notices, &key, "expiration", expiry);
        }
        let Some((importance, exact)) = record.number("poignancy")? else {
            return Err(record.wrong("poignancy", None, "a finite number within f32"));
        };
        if !exact {
            notices.add(NoticeKind::ImportanceRounded, &key);
        }

        let filling = filling(&mut record, &type_in_file)?;
        let evidence = references(&filling, id, &key, &self.ids, notices);
        let thought = type_in_file == "thought";
        let depth = match thought {
            true => evidence::depth(&evidence, &self.depths),
            false => 0,
        };
        let written = record.take("depth");
        let depth_in_file = match written.as_deref().filter(|raw| raw.get() != "null") {
            Some(raw) => match raw.get().parse::<u64>() {
                Ok(depth) => Some(depth),
                Err(_) => {
                    return Err(record.wrong("depth", Some(raw), "a whole number, 0 or more"));
                }
            },
            None => None,
        };
        let differs = depth_in_file.is_some_and(|file| file != u64::from(depth));
        if let (true, Some(file)) = (differs, depth_in_file) {
            let detail = format!("{file} in the file, {depth} stored");
            notices.detail(NoticeKind::DepthDiffers, &key, detail);
        }
        let authors_depth = authors_depth(&mut self.authors, &type_in_file, &filling);
        if let Some(theirs) = authors_depth.filter(|&theirs| theirs != depth) {
            let detail = format!("{theirs} there, {depth} stored");
            notices.detail(NoticeKind::AuthorsDepthDiffers, &key, detail);
        }
        self.depths.push(depth);

        let embedding_key = record.take("embedding_key");
        let embedded = match embedding_key.as_deref().filter(|raw| raw.get() != "null") {
            Some(raw) => Some(
                serde_json::from_str(raw.get())
                    .map_err(|_| record.wrong("embedding_key", Some(raw), "text"))?,
            ),
            None => None,
        };
        let mut kept = Vec::new();
        for name in ["subject", "predicate", "object", "keywords"] {
            kept.extend(record.take(name).map(|raw| (name.to_owned(), raw)));
        }
        kept.extend(embedding_key.map(|raw| ("embedding_key".to_owned(), raw)));
        for name in ["node_count", "type_count"] {
            kept.extend(record.take(name).map(|raw| (name.to_owned(), raw)));
        }
        kept.extend(filling.kept.map(|raw| ("filling".to_owned(), raw)));
        kept.extend(
            written
                .filter(|_| differs)
                .map(|raw| ("depth".to_owned(), raw)),
        );
        let place = record.place.clone();
        for (name, raw) in record.rest() {
            notices.detail(NoticeKind::UnknownField, &key, name.clone());
            kept.push((name, raw));
        }
        self.tally.traces.push(Trace {
            id,
            key: key.clone(),
            type_in_file,
            evidence_form: filling.form,
            evidence: filling.cited,
            depth,
            depth_in_file,
            authors_depth,
        });
        Ok(Node {
            key,
            place,
            kind,
            text,
            embedding_key: embedded,
            created,
            last_access,
            expiry,
            importance,
            evidence,
            depth,
            payload: payload(&kept),
        })
    }
}

fn filling(record: &mut Record, type_in_file: &str) -> Result<Filling, ImportError> {
    let Some(raw) = record.take("filling") else {
        return Ok(Filling {
            form: EvidenceForm::Absent,
            cited: Vec::new(),
            kept: None,
        });
    };
    let (form, cited) = if raw.get() == "null" {
        (EvidenceForm::Null, Some(Vec::new()))
    } else if raw.get().starts_with('"') {
        let text = serde_json::from_str::<String>(raw.get()).ok();
        (EvidenceForm::String, text.map(|text| vec![text]))
    } else if type_in_file != "chat"
        && let Ok(ids) = serde_json::from_str::<Vec<String>>(raw.get())
    {
        (EvidenceForm::List, Some(ids))
    } else {
        let utterances = serde_json::from_str::<Vec<&RawValue>>(raw.get()).unwrap_or_default();
        let dialogue = !matches!(type_in_file, "event" | "thought")
            && raw.get().starts_with('[')
            && utterances.iter().all(|each| each.get().starts_with('['));
        (EvidenceForm::Dialogue, dialogue.then(Vec::new))
    };
    match cited {
        Some(cited) => Ok(Filling {
            form,
            cited,
            kept: (form == EvidenceForm::Dialogue).then_some(raw),
        }),
        None => {
            let expected = match type_in_file {
                "chat" => "a list of [speaker, utterance] pairs, text or null",
                _ => "a list of node ids, text or null",
            };
            Err(record.wrong("filling", Some(&raw), expected))
        }
    }
}

fn references(
    filling: &Filling,
    own: u64,
    key: &str,
    ids: &HashMap<String, u64>,
    notices: &mut Notices,
) -> Vec<Reference> {
    match filling.form {
        EvidenceForm::Null | EvidenceForm::Absent => {
            notices.add(NoticeKind::EvidenceNull, key);
            Vec::new()
        }
        EvidenceForm::String => evidence::string(filling.cited.concat(), key, notices),
        EvidenceForm::List => {
            let cited = filling.cited.iter().map(|text| Cited {
                text: text.clone(),
                id: ids.get(text).copied(),
            });
            evidence::resolve(cited.collect(), own, key, notices)
        }
        EvidenceForm::Dialogue | EvidenceForm::Number => Vec::new(),
    }
}

/// What the authors' loader makes of this node: a thought starts at 1 and gets the deepest evidence
/// on top only if every reference is the id of a node loaded before. (It walks through text letter by
/// letter, and so finds none.)
fn authors_depth(
    loaded: &mut Option<HashMap<String, u32>>,
    type_in_file: &str,
    filling: &Filling,
) -> Option<u32> {
    let loaded = loaded.as_mut()?;
    let depth = match type_in_file {
        "event" | "chat" => 0,
        "thought" => {
            let cited = match filling.form {
                EvidenceForm::List => &filling.cited[..],
                _ => &[],
            };
            let depths = cited.iter().map(|id| loaded.get(id).copied());
            let deepest = depths.collect::<Option<Vec<_>>>();
            1 + deepest
                .and_then(|depths| depths.into_iter().max())
                .unwrap_or(0)
        }
        _ => return None,
    };
    loaded.insert(format!("node_{}", loaded.len() + 1), depth);
    Some(depth)
}
