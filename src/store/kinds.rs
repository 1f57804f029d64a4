//! The kinds of a store: rows keep an index into this table.

use super::error::MemoryProblem;
use super::format::MAX_KINDS;
use super::memory::Kind;
use std::collections::HashMap;

#[derive(Clone, Default)]
pub(super) struct Kinds {
    table: Vec<Kind>,
    index: HashMap<Kind, u16>,
}

impl Kinds {
    pub(super) fn new(names: &[String]) -> Kinds {
        let table: Vec<Kind> = names.iter().map(Kind::named).collect();
        let index = table.iter().cloned().zip(0..).collect();
        Kinds { table, index }
    }

    pub(super) fn table(&self) -> &[Kind] {
        &self.table
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.table.iter().map(Kind::to_string).collect()
    }

    /// The kind's index, if it has one.
    pub(super) fn index_of(&self, kind: &Kind) -> Option<u16> {
        self.index.get(kind).copied()
    }

    /// The kind's index. A new kind is added.
    pub(super) fn intern(&mut self, kind: &Kind) -> Result<u16, MemoryProblem> {
        if let Some(index) = self.index_of(kind) {
            return Ok(index);
        }
        let name = kind.as_str();
        if name.is_empty() {
            return Err(MemoryProblem::EmptyKind);
        }
        if self.table.len() == MAX_KINDS {
            return Err(MemoryProblem::TooManyKinds { name: name.into() });
        }
        let index = self.table.len() as u16;
        self.table.push(kind.clone());
        self.index.insert(kind.clone(), index);
        Ok(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_names_65535_kinds_and_no_more() {
        let mut kinds = Kinds::default();
        for i in 0..MAX_KINDS {
            assert_eq!(
                kinds.intern(&Kind::named(format!("kind {i}"))),
                Ok(i as u16)
            );
        }
        let one_more = kinds.intern(&Kind::OBSERVATION);
        assert!(matches!(one_more, Err(MemoryProblem::TooManyKinds { .. })));
        assert_eq!(kinds.intern(&Kind::named("kind 65534")), Ok(65534));
        assert_eq!(Kinds::new(&kinds.names()).table(), kinds.table());
    }
}
