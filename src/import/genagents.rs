//! The archives of the generative agents' later code (an agent's `memory_stream` folder).

use super::archive::{Archive, Node, Nodes, nodes_path, note_gaps};
use super::error::ImportError;
use super::evidence::{self, Cited};
use super::json::{Fields, Record, parse, payload, read_whole};
use super::report::{Notices, Report, Tally};
use super::{EvidenceForm, NoticeKind, Options, Trace, destination, note_time};
use crate::store::{Kind, Reference};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::path::Path;

/// Microseconds of a step: an hour.
const STEP_US: i64 = 3_600_000_000;

/// Imports the folder of `nodes.json` and `embeddings.json` into a new store at `destination`.
///
/// `nodes.json` is a list of nodes, imported in its order.
///
/// | field | becomes |
/// |---|---|
/// | `node_id` | key, as text |
/// | `node_type` | kind: observation, reflection; any other its own, reported |
/// | `content` | text; the vector is the one `embeddings.json` has for it |
/// | `created`, `last_retrieved` | steps become hours: step s is s hours after [`Options::step_zero`] |
/// | `importance` | importance, 0 to 100, as it is |
/// | `pointer_id` | evidence: a node id, or a list of them |
///
/// The depth stored is 0 for anything but a reflection, and for a reflection 1 + the deepest memory
/// it cites among those before it. The payload is empty, or a JSON object of the unknown fields by name.
///
/// `progress` is first called after the archive was read whole; see [progress](crate::import#progress).
///
/// # Errors
/// Whatever cannot be understood, naming the file and the node; then there is no store.
pub fn genagents(
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
        "name the folder that holds nodes.json (of a saved agent: memory_stream)",
    )?;
    let nodes = nodes(&path, &read_whole(&path)?, options)?;
    Archive::read("genagents", folder, options, nodes)
}

/// The nodes of the file `path`, which holds `bytes`.
pub(super) fn nodes(path: &Path, bytes: &[u8], options: &Options) -> Result<Nodes, ImportError> {
    let mut records = Vec::new();
    let mut ids = HashMap::new();
    let mut tally = Tally::default();
    let mut highest = None;
    for (at, fields) in parse::<Vec<Fields>>(path, bytes)?.into_iter().enumerate() {
        let mut record = Record::new(path, format!("entry {at}"), fields);
        let node_id: u64 = record.required("node_id", "a whole number, 0 or more")?;
        record.place.item = format!("node_id {node_id}");
        if let Some(first) = ids.insert(node_id, at as u64) {
            return Err(ImportError::DuplicateKey {
                place: record.place,
                key: node_id.to_string(),
                first: format!("entry {first}"),
            });
        }
        if highest > Some(node_id) {
            tally
                .notices
                .add(NoticeKind::NumberingOrder, &node_id.to_string());
        }
        highest = highest.max(Some(node_id));
        records.push((node_id.to_string(), record));
    }
    let mut numbers: Vec<u64> = ids.keys().copied().collect();
    numbers.sort_unstable();
    note_gaps(
        numbers.into_iter(),
        0,
        |n| n.to_string(),
        &mut tally.notices,
    );

    let mut depths = Vec::with_capacity(records.len());
    let mut nodes = Vec::with_capacity(records.len());
    for (key, record) in records {
        let node = node(
            key,
            record,
            options.step_zero,
            &ids,
            &mut depths,
            &mut tally,
        )?;
        nodes.push(node);
    }
    Ok(Nodes { nodes, tally })
}

fn node(
    key: String,
    mut record: Record,
    step_zero: i64,
    ids: &HashMap<u64, u64>,
    depths: &mut Vec<u32>,
    tally: &mut Tally,
) -> Result<Node, ImportError> {
    let id = depths.len() as u64;
    let notices = &mut tally.notices;
    let type_in_file: String = record.required("node_type", "text")?;
    let kind = match type_in_file.as_str() {
        "observation" => Kind::OBSERVATION,
        "reflection" => Kind::REFLECTION,
        other => {
            notices.detail(NoticeKind::UnknownType, &key, other);
            Kind::named(other)
        }
    };
    let text: String = record.required("content", "text")?;
    let Some(created) = step(&mut record, "created", step_zero)? else {
        return Err(record.wrong("created", None, STEP));
    };
    let last_access = step(&mut record, "last_retrieved", step_zero)?.unwrap_or_else(|| {
        notices.add(NoticeKind::LastAccessAbsent, &key);
        created
    });
    note_time(notices, &key, "created", created);
    if last_access != created {
        note_time(notices, &key, "last_retrieved", last_access);
    }
    let Some((importance, exact)) = record.number("importance")? else {
        return Err(record.wrong("importance", None, "a finite number within f32"));
    };
    if !exact {
        notices.add(NoticeKind::ImportanceRounded, &key);
    }
    let (evidence_form, cited) = pointers(&mut record)?;
    let evidence = references(evidence_form, &cited, id, &key, ids, notices);
    let depth = match kind == Kind::REFLECTION {
        true => evidence::depth(&evidence, depths),
        false => 0,
    };
    depths.push(depth);
    let place = record.place.clone();
    let unknown = record.rest();
    for (name, _) in &unknown {
        notices.detail(NoticeKind::UnknownField, &key, name.clone());
    }
    tally.traces.push(Trace {
        id,
        key: key.clone(),
        type_in_file,
        evidence_form,
        evidence: cited,
        depth,
        depth_in_file: None,
        authors_depth: None,
    });
    Ok(Node {
        key,
        place,
        kind,
        embedding_key: Some(text.clone()),
        text,
        created,
        last_access,
        expiry: None,
        importance,
        evidence,
        depth,
        payload: payload(&unknown),
    })
}

const STEP: &str = "a whole number of steps within 64 bits of microseconds";

fn step(
    record: &mut Record,
    field: &'static str,
    step_zero: i64,
) -> Result<Option<i64>, ImportError> {
    let Some(raw) = record.take_some(field) else {
        return Ok(None);
    };
    let steps = raw.get().parse::<i64>().ok();
    let us = steps.and_then(|steps| steps.checked_mul(STEP_US)?.checked_add(step_zero));
    match us {
        Some(us) => Ok(Some(us)),
        None => Err(record.wrong(field, Some(&raw), STEP)),
    }
}

/// `pointer_id`: a node id, a list of them, text or null.
fn pointers(record: &mut Record) -> Result<(EvidenceForm, Vec<String>), ImportError> {
    let Some(raw) = record.take("pointer_id") else {
        return Ok((EvidenceForm::Absent, Vec::new()));
    };
    let found = match raw.get() {
        "null" => Some((EvidenceForm::Null, Vec::new())),
        text if text.starts_with('"') => {
            let text = serde_json::from_str(text).ok();
            text.map(|text| (EvidenceForm::String, vec![text]))
        }
        list if list.starts_with('[') => serde_json::from_str::<Vec<&RawValue>>(list)
            .ok()
            .filter(|items| items.iter().all(|item| whole(item.get())))
            .map(|items| items.iter().map(|item| item.get().to_owned()).collect())
            .map(|items| (EvidenceForm::List, items)),
        number if whole(number) => Some((EvidenceForm::Number, vec![number.to_owned()])),
        _ => None,
    };
    found.ok_or_else(|| {
        let expected = "a node id, a list of node ids, text or null";
        record.wrong("pointer_id", Some(&raw), expected)
    })
}

/// Whether JSON text is a whole number, of any size.
fn whole(raw: &str) -> bool {
    let digits = raw.strip_prefix('-').unwrap_or(raw);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

fn references(
    form: EvidenceForm,
    cited: &[String],
    own: u64,
    key: &str,
    ids: &HashMap<u64, u64>,
    notices: &mut Notices,
) -> Vec<Reference> {
    match form {
        EvidenceForm::Null | EvidenceForm::Absent => {
            notices.add(NoticeKind::EvidenceNull, key);
            Vec::new()
        }
        EvidenceForm::String => evidence::string(cited.concat(), key, notices),
        EvidenceForm::List | EvidenceForm::Number | EvidenceForm::Dialogue => {
            let cited = cited.iter().map(|text| Cited {
                text: text.clone(),
                id: text.parse().ok().and_then(|id: u64| ids.get(&id).copied()),
            });
            evidence::resolve(cited.collect(), own, key, notices)
        }
    }
}
