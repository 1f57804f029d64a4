//! What an import did: counts, choices, and a notice for everything that was not as expected.

use super::timestamp::format_us;
use crate::kernel::Dtype;
use crate::store::{Kind, NewMemory};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// How many memories a notice lists by name. It counts all of them.
pub const LISTED_MAX: usize = 10_000;

/// What a notice is about. In JSON and in `Display` it has the kebab-case name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum NoticeKind {
    /// No last access in the source: the creation time was used.
    LastAccessAbsent,
    /// No importance in the source: 1 was used.
    ImportanceAbsent,
    /// The importance is no exact f32: it was rounded.
    ImportanceRounded,
    /// Evidence that is text where a list belongs: kept as a reference to nothing.
    EvidenceString,
    /// Evidence that is null or absent where a list belongs: no evidence was stored.
    EvidenceNull,
    /// Evidence that names no memory of the source: kept as a reference to nothing.
    EvidenceDangling,
    /// Evidence that comes later in the source. Kept; it does not count towards the depth.
    EvidenceForward,
    /// A memory that cites itself. Kept; it does not count towards the depth.
    EvidenceSelf,
    /// Evidence cited more than once. Kept.
    EvidenceDuplicate,
    /// No vector in the source: stored without one.
    VectorMissing,
    /// A vector of zeros, which has no direction: stored without one.
    VectorZero,
    /// A vector with elements that the column type cannot hold exactly: they were rounded.
    ValuesRounded,
    /// The file of vectors is not there: every memory was stored without one.
    EmbeddingsFileAbsent,
    /// No vector tells the dimension: the source's usual one was used.
    DimensionAssumed,
    /// Vectors that no memory uses: not imported.
    EmbeddingsUnused,
    /// Numbers missing between the first and the last.
    NumberingGap,
    /// A number lower than one before it. Stored in the order of the file.
    NumberingOrder,
    /// A key without a number. Stored after the numbered ones.
    KeyUnnumbered,
    /// Ids in the source that are not the ids in the store.
    IdRenumbered,
    /// A type the source's authors do not know: stored as a kind of that name, or as the kind told with it.
    UnknownType,
    /// A field this importer does not know: kept in the payload.
    UnknownField,
    /// A time before 1970. Kept.
    TimeBefore1970,
    /// A numeric time outside the years 1980 to 2200: check the unit. Kept.
    TimeSuspicious,
    /// A time with more digits than microseconds: the rest was cut off.
    TimeRounded,
    /// The depth in the file is not 1 + the deepest evidence.
    DepthDiffers,
    /// The source's own loader would give another depth than the one stored.
    AuthorsDepthDiffers,
    /// The text is the placeholder "this is blank". Kept.
    TextPlaceholder,
}

impl NoticeKind {
    /// The name in JSON, and what it means.
    const fn words(self) -> (&'static str, &'static str) {
        use NoticeKind as N;
        match self {
            N::LastAccessAbsent => ("last-access-absent", "creation time used"),
            N::ImportanceAbsent => ("importance-absent", "1 used"),
            N::ImportanceRounded => ("importance-rounded", "rounded to f32"),
            N::EvidenceString => ("evidence-string", "text, no list: kept, cites nothing"),
            N::EvidenceNull => ("evidence-null", "no evidence stored"),
            N::EvidenceDangling => ("evidence-dangling", "names no memory: kept, cites nothing"),
            N::EvidenceForward => ("evidence-forward", "cites a later memory: kept"),
            N::EvidenceSelf => ("evidence-self", "cites itself: kept"),
            N::EvidenceDuplicate => ("evidence-duplicate", "cited twice: kept"),
            N::VectorMissing => ("vector-missing", "stored without a vector"),
            N::VectorZero => ("vector-zero", "all zeros: stored without a vector"),
            N::ValuesRounded => ("values-rounded", "elements rounded to the column type"),
            N::EmbeddingsFileAbsent => ("embeddings-file-absent", "no vectors at all"),
            N::DimensionAssumed => ("dimension-assumed", "no vector tells it"),
            N::EmbeddingsUnused => ("embeddings-unused", "no memory uses them: not imported"),
            N::NumberingGap => ("numbering-gap", "numbers missing in the source"),
            N::NumberingOrder => ("numbering-order", "out of order: file order kept"),
            N::KeyUnnumbered => ("key-unnumbered", "stored after the numbered ones"),
            N::IdRenumbered => ("id-renumbered", "id in the source is not the id stored"),
            N::UnknownType => ("unknown-type", "stored as a kind of that name"),
            N::UnknownField => ("unknown-field", "kept in the payload"),
            N::TimeBefore1970 => ("time-before-1970", "kept"),
            N::TimeSuspicious => ("time-suspicious", "outside 1980..2200: is the unit right?"),
            N::TimeRounded => ("time-rounded", "cut to microseconds"),
            N::DepthDiffers => ("depth-differs", "file and recomputed differ"),
            N::AuthorsDepthDiffers => {
                ("authors-depth-differs", "the authors' loader gives another")
            }
            N::TextPlaceholder => ("text-placeholder", "\"this is blank\": kept"),
        }
    }

    /// The stable name: `evidence-dangling`.
    pub const fn name(self) -> &'static str {
        self.words().0
    }
}

impl fmt::Display for NoticeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for NoticeKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// One thing a notice is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Affected {
    /// The key of the memory, or what stands for it: a line, a file, a missing number.
    pub key: String,
    /// What was found there: the reference, the type, the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Something that was not as expected, and what it concerns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Notice {
    /// What it is about.
    pub name: NoticeKind,
    /// How often it occurred.
    pub count: u64,
    /// Where, in the order of the source: the first [`LISTED_MAX`].
    pub affected: Vec<Affected>,
}

/// The form of a memory's evidence in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EvidenceForm {
    /// A list of references, perhaps empty.
    List,
    /// null.
    Null,
    /// No such field.
    Absent,
    /// Text.
    String,
    /// A single number.
    Number,
    /// A chat's utterances, which are no evidence and are kept in the payload.
    Dialogue,
}

/// One memory as found and as stored, for comparison with what its source makes of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trace {
    /// Its id in the store.
    pub id: u64,
    /// Its key in the store: the source's name for it.
    pub key: String,
    /// Its type in the source.
    #[serde(rename = "type")]
    pub type_in_file: String,
    /// The form of its evidence.
    pub evidence_form: EvidenceForm,
    /// Its evidence as the source wrote it.
    pub evidence: Vec<String>,
    /// The depth stored: 0 unless it is a thought or reflection, then 1 + the deepest earlier memory it cites.
    pub depth: u32,
    /// The depth in the file.
    pub depth_in_file: Option<u64>,
    /// The depth the source's own loader gives it. `None` where there is none: the loader skips the
    /// type, or refuses the file (Reverie's: a gap in the numbering), or does not compute depths.
    pub authors_depth: Option<u32>,
}

/// What an import did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// `reverie`, `genagents`, `npy` or `memorank`.
    pub format: &'static str,
    /// What was read.
    pub source: PathBuf,
    /// Files of the source's folder that were not imported.
    pub not_imported: Vec<String>,
    /// Memories stored.
    pub memories: u64,
    /// Those with a vector.
    pub with_vector: u64,
    /// Those without one, which are never candidates.
    pub without_vector: u64,
    /// Elements of a vector.
    pub dim: usize,
    /// The column type.
    #[serde(serialize_with = "dtype_name")]
    pub dtype: Dtype,
    /// Why this column type.
    pub dtype_reason: String,
    /// The earliest creation time, in microseconds since the Unix epoch (RFC 3339 in JSON).
    #[serde(serialize_with = "moment")]
    pub first_created: Option<i64>,
    /// The latest creation time, in microseconds since the Unix epoch (RFC 3339 in JSON).
    #[serde(serialize_with = "moment")]
    pub last_created: Option<i64>,
    /// Memories of each kind.
    pub kinds: BTreeMap<String, u64>,
    /// Everything that was not as expected, by kind.
    pub notices: Vec<Notice>,
    /// Every memory of a JSON archive; empty for npy and memorank, which may hold millions.
    pub traces: Vec<Trace>,
}

impl Report {
    /// The notice of this kind, if there is one.
    pub fn notice(&self, name: NoticeKind) -> Option<&Notice> {
        self.notices.iter().find(|notice| notice.name == name)
    }
}

fn dtype_name<S: Serializer>(dtype: &Dtype, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(dtype.name())
}

fn moment<S: Serializer>(us: &Option<i64>, serializer: S) -> Result<S::Ok, S::Error> {
    us.map(format_us).serialize(serializer)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = self.source.display();
        writeln!(f, "{} {source}: {} memories", self.format, self.memories)?;
        let (with, without) = (self.with_vector, self.without_vector);
        writeln!(
            f,
            "  vectors    {with} with, {without} without; dim {}",
            self.dim
        )?;
        writeln!(f, "  dtype      {}: {}", self.dtype, self.dtype_reason)?;
        if let (Some(first), Some(last)) = (self.first_created, self.last_created) {
            writeln!(
                f,
                "  created    {} to {}",
                format_us(first),
                format_us(last)
            )?;
        }
        let kinds = self.kinds.iter().map(|(kind, n)| format!("{n} {kind}"));
        let kinds = kinds.collect::<Vec<_>>().join(", ");
        if !kinds.is_empty() {
            writeln!(f, "  kinds      {kinds}")?;
        }
        if !self.not_imported.is_empty() {
            writeln!(f, "  not read   {}", self.not_imported.join(", "))?;
        }
        for notice in &self.notices {
            writeln!(
                f,
                "  {:<22} {:>7}  {}",
                notice.name.name(),
                notice.count,
                notice.name.words().1
            )?;
            let shown = notice
                .affected
                .iter()
                .take(3)
                .map(|affected| match &affected.detail {
                    Some(detail) => format!("{} ({})", affected.key, shortened(detail)),
                    None => shortened(&affected.key),
                });
            let mut shown = shown.collect::<Vec<_>>().join(", ");
            if notice.affected.len() > 3 {
                shown.push_str(", ...");
            }
            if !shown.is_empty() {
                writeln!(f, "      {shown}")?;
            }
        }
        Ok(())
    }
}

/// At most 60 characters of `text`.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

/// Notices as they are gathered.
#[derive(Debug, Default)]
pub(super) struct Notices(BTreeMap<NoticeKind, (u64, Vec<Affected>)>);

impl Notices {
    pub(super) fn add(&mut self, name: NoticeKind, key: &str) {
        self.entry(name, 1, key, None);
    }

    pub(super) fn detail(&mut self, name: NoticeKind, key: &str, detail: impl Into<String>) {
        self.entry(name, 1, key, Some(detail.into()));
    }

    /// `count` occurrences told by one entry.
    pub(super) fn entry(
        &mut self,
        name: NoticeKind,
        count: u64,
        key: &str,
        detail: Option<String>,
    ) {
        let (total, affected) = self.0.entry(name).or_default();
        *total = total.saturating_add(count);
        if affected.len() < LISTED_MAX {
            let key = key.to_owned();
            affected.push(Affected { key, detail });
        }
    }
}

/// Counts of the memories that went into the store, and the notices.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) notices: Notices,
    pub(super) traces: Vec<Trace>,
    kinds: BTreeMap<Kind, u64>,
    memories: u64,
    with_vector: u64,
    created: Option<(i64, i64)>,
}

impl Tally {
    pub(super) fn count(&mut self, memory: &NewMemory<'_>) {
        self.memories += 1;
        self.with_vector += u64::from(memory.embedding.is_some());
        match self.kinds.get_mut(&memory.kind) {
            Some(n) => *n += 1,
            None => {
                self.kinds.insert(memory.kind.clone(), 1);
            }
        }
        let at = memory.created;
        let (first, last) = self.created.unwrap_or((at, at));
        self.created = Some((first.min(at), last.max(at)));
    }

    pub(super) fn report(
        self,
        format: &'static str,
        source: &Path,
        not_imported: Vec<String>,
        plan: &super::Plan,
    ) -> Report {
        let kinds = self
            .kinds
            .into_iter()
            .map(|(kind, n)| (kind.to_string(), n));
        let notices = self.notices.0.into_iter();
        Report {
            format,
            source: source.to_owned(),
            not_imported,
            memories: self.memories,
            with_vector: self.with_vector,
            without_vector: self.memories - self.with_vector,
            dim: plan.dim.get(),
            dtype: plan.dtype,
            dtype_reason: plan.dtype_reason.clone(),
            first_created: self.created.map(|(first, _)| first),
            last_created: self.created.map(|(_, last)| last),
            kinds: kinds.collect(),
            notices: notices
                .map(|(name, (count, affected))| Notice {
                    name,
                    count,
                    affected,
                })
                .collect(),
            traces: self.traces,
        }
    }
}
