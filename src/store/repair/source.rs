//! What there is to salvage: what the manifest names, or, without one, what the files' names and lengths say.

use super::RepairOptions;
use super::blocks::Blocks;
use super::error::RepairError;
use super::report::RepairReport;
use crate::kernel::Dtype;
use crate::store::error::OpenError;
use crate::store::files::Files;
use crate::store::format::{Column, MAX_DIM, MAX_ROWS};
use crate::store::manifest::{Entry, Manifest};
use crate::store::open::check_dim;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// What there is to salvage.
pub(super) struct Source {
    /// The store's, or one that was put together: without sums, kinds and a model.
    pub(super) manifest: Manifest,
    /// Whether it is the store's.
    pub(super) checked: bool,
    /// Files of touches, and of deletes: without a manifest there may be several.
    pub(super) touches: Vec<Entry>,
    pub(super) deletes: Vec<Entry>,
    /// The file of agents' own importances; without a manifest the newest, if there is one.
    pub(super) overrides: Option<Entry>,
    /// The file of what was corrected; without a manifest the newest, if there is one.
    pub(super) superseded: Option<Entry>,
}

impl Source {
    pub(super) fn find(
        files: &dyn Files,
        dir: &Path,
        options: &RepairOptions,
        report: &mut RepairReport,
    ) -> Result<Source, RepairError> {
        match Manifest::read(files, dir) {
            Ok(manifest) => Ok(Source {
                touches: vec![manifest.column(Column::Access).clone()],
                deletes: vec![manifest.column(Column::Deleted).clone()],
                overrides: Some(manifest.column(Column::Override).clone()),
                superseded: Some(manifest.column(Column::Superseded).clone()),
                manifest,
                checked: true,
            }),
            Err(error) => match &error {
                OpenError::Io { source, .. }
                    if source.kind() == io::ErrorKind::PermissionDenied =>
                {
                    Err(error.into())
                }
                OpenError::NotAStore { .. }
                | OpenError::Foreign { .. }
                | OpenError::ManifestCut { .. }
                | OpenError::ManifestChecksum { .. }
                | OpenError::ManifestDamaged { .. }
                | OpenError::Io { .. } => Source::guess(files, dir, options, error, report),
                // Nothing to repair, or nothing that this version knows.
                _ => Err(error.into()),
            },
        }
    }

    fn guess(
        files: &dyn Files,
        dir: &Path,
        options: &RepairOptions,
        error: OpenError,
        report: &mut RepairReport,
    ) -> Result<Source, RepairError> {
        let names = files.list(dir).map_err(OpenError::io("listing", dir))?;
        let names: Vec<String> = names
            .into_iter()
            .filter_map(|n| n.into_string().ok())
            .collect();
        let of = |column: Column, dtype: Dtype| -> BTreeSet<Option<u64>> {
            let numbers = names.iter().map(|name| column.sequence_in(dtype, name));
            numbers.flatten().collect()
        };
        if !Column::ALL
            .iter()
            .any(|&column| !of(column, Dtype::F16).is_empty() || !of(column, Dtype::F32).is_empty())
        {
            return Err(error.into());
        }
        let problem = error.to_string();
        let found = [Dtype::F16, Dtype::F32].map(|dtype| !of(Column::Embedding, dtype).is_empty());
        let dtype = match (options.dtype, found) {
            (Some(dtype), _) => dtype,
            (None, [true, false]) => Dtype::F16,
            (None, [false, true]) => Dtype::F32,
            (None, _) => return Err(RepairError::NoDtype { problem }),
        };
        let bytes_of = |file: &str| {
            files
                .open(&dir.join(file))
                .and_then(|file| file.bytes())
                .ok()
        };
        let entry = |column: Column, number: Option<u64>| {
            let file = column.file(dtype, number);
            Entry {
                bytes: bytes_of(&file).unwrap_or(0),
                sums: Vec::new(),
                file,
            }
        };
        let generation = generation(
            |column, number| bytes_of(&column.file(dtype, number)),
            of(Column::TextEnds, dtype),
        );
        let rows = (entry(Column::TextEnds, generation).bytes / 8).min(MAX_ROWS);
        let suggested = (entry(Column::Embedding, generation).bytes / dtype.size_bytes() as u64)
            .checked_div(rows)
            .and_then(|dim| usize::try_from(dim).ok())
            .filter(|&dim| (1..=MAX_DIM).contains(&dim));
        let Some(dim) = options.dim else {
            return Err(RepairError::NoDim { problem, suggested });
        };
        check_dim(dim)?;
        if let Some(suggested) = suggested.filter(|&suggested| suggested != dim.get()) {
            report.notes.push(format!(
                "the lengths of the files speak for {suggested} elements per embedding, not {dim}"
            ));
        }
        report.manifest = Some(problem);
        let mut manifest = Manifest::new(dim, dtype, None);
        manifest.rows = rows;
        for column in Column::ALL {
            if !column.is_written_anew() {
                manifest.columns[column as usize] = entry(column, generation);
            }
        }
        // Deleted rows and touches only become more: those of all files hold. But rows are numbered as in this
        // generation only until the next one.
        let next = of(Column::TextEnds, dtype)
            .into_iter()
            .find(|&number| number > generation);
        let changes = |column: Column| -> Vec<Entry> {
            let numbers = of(column, dtype).into_iter();
            let numbers = numbers.filter(|&n| n >= generation && next.is_none_or(|next| n < next));
            numbers.map(|number| entry(column, number)).collect()
        };
        Ok(Source {
            touches: changes(Column::Access),
            deletes: changes(Column::Deleted),
            overrides: changes(Column::Override).pop(),
            superseded: changes(Column::Superseded).pop(),
            manifest,
            checked: false,
        })
    }

    /// Opens the file of a column of rows.
    pub(super) fn open(&self, files: &dyn Files, dir: &Path, column: Column) -> Blocks {
        let Manifest {
            rows, dtype, dim, ..
        } = self.manifest;
        let entry = self.manifest.column(column);
        let expected = column
            .bytes_of(rows, dtype, dim)
            .flatten()
            .unwrap_or(entry.bytes);
        Blocks::open(files, dir, entry, self.checked, expected)
    }
}

/// Which files of the columns belong together: a compaction writes all of them anew, under its number, before it
/// removes the old ones. The newest that are all there and hold the same number of rows, and some; if there
/// are none, those with the most texts, without which a memory is lost.
fn generation(
    bytes: impl Fn(Column, Option<u64>) -> Option<u64>,
    numbers: BTreeSet<Option<u64>>,
) -> Option<u64> {
    let whole = |&&number: &&Option<u64>| {
        let rows = bytes(Column::TextEnds, number).map_or(0, |bytes| bytes / 8);
        rows > 0
            && Column::ALL
                .into_iter()
                .filter(|column| column.is_of_rows())
                .all(|column| {
                    let found = bytes(column, number);
                    let row = column
                        .bytes_of(1, Dtype::F16, std::num::NonZeroUsize::MIN)
                        .flatten();
                    found.is_some_and(|found| match row {
                        Some(row) if column != Column::Embedding => found == rows * row,
                        _ => true,
                    })
                })
    };
    let newest = numbers.iter().rev().find(whole);
    let longest = || {
        numbers
            .iter()
            .max_by_key(|&&number| bytes(Column::TextEnds, number))
    };
    newest.or_else(longest).copied().flatten()
}
