//! References to other memories, and the depth they give.
//!
//! A reference that names a memory of the source becomes its id, wherever that memory stands; any
//! other is kept as text that cites nothing. What a live stream would refuse is kept and reported.

use super::NoticeKind;
use super::report::Notices;
use crate::store::Reference;
use crate::stream::evidence::above;
use std::collections::HashSet;

/// One reference as the source wrote it, and the id it names.
#[derive(Clone, Debug)]
pub(super) struct Cited {
    pub(super) text: String,
    pub(super) id: Option<u64>,
}

/// The evidence of memory `own`, in order.
pub(super) fn resolve(
    cited: Vec<Cited>,
    own: u64,
    key: &str,
    notices: &mut Notices,
) -> Vec<Reference> {
    let mut seen = HashSet::new();
    cited
        .into_iter()
        .map(|Cited { text, id }| {
            let found = match id {
                None => Some(NoticeKind::EvidenceDangling),
                Some(id) if id == own => Some(NoticeKind::EvidenceSelf),
                Some(id) if id > own => Some(NoticeKind::EvidenceForward),
                Some(_) => None,
            };
            if let Some(found) = found {
                notices.detail(found, key, text.clone());
            }
            let reference = match id {
                Some(id) => Reference::Id(id),
                None => Reference::Missing(text.clone()),
            };
            if !seen.insert(reference.clone()) {
                notices.detail(NoticeKind::EvidenceDuplicate, key, text);
            }
            reference
        })
        .collect()
}

/// Text where a list belongs, kept as a reference to nothing: the archives' authors stored the id of
/// a failed lookup this way, and it must not become a citation now.
pub(super) fn string(text: String, key: &str, notices: &mut Notices) -> Vec<Reference> {
    notices.detail(NoticeKind::EvidenceString, key, text.clone());
    vec![Reference::Missing(text)]
}

/// The depth of a thought or reflection: 1 + the deepest memory it cites among those before it
/// (`depths`). Later ones do not count, so that no cycle of citations can matter.
pub(super) fn depth(evidence: &[Reference], depths: &[u32]) -> u32 {
    let cited = evidence.iter().filter_map(|reference| match reference {
        Reference::Id(id) => depths.get(usize::try_from(*id).ok()?).copied(),
        Reference::Missing(_) => None,
    });
    above(cited)
}
