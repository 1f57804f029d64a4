//! Budgets: what is cut, and that nothing cut is touched.

use super::*;
use memorank::stream::{Budget, BytesPerFour, CountTokens, Overflow};

/// A token for each byte.
struct Bytes;

impl CountTokens for Bytes {
    fn count(&self, text: &str) -> usize {
        text.len()
    }
}

/// Memories 0, 1, ... in the order of their scores, with texts of these lengths, created in the opposite order.
fn of_lengths(lengths: &[usize]) -> (tempfile::TempDir, Store) {
    let memories: Vec<Owned> = (lengths.iter().zip(0..))
        .map(|(&length, i)| Owned {
            text: "x".repeat(length),
            created: T - 200 * HOUR - i * HOUR,
            ..memory(&[1.0, i as f32 * 0.1], 10, 1.0)
        })
        .collect();
    let (dir, _, store) = new_store(2, Dtype::F32);
    append(&store, &memories);
    (dir, store)
}

fn within<'a>(
    preset: &'a Preset,
    pinned: &'a [u64],
    tokens: usize,
    overflow: Overflow,
) -> Retrieve<'a> {
    let budget = Budget {
        tokens,
        counter: &Bytes,
        overflow,
    };
    Retrieve {
        ask: ask(preset, T),
        pinned,
        budget: Some(budget),
        note: b"",
    }
}

fn retrieved(store: &Store, wanted: &Retrieve<'_>) -> Retrieved {
    retrieve(store, wanted, Par::Serial, &mut Workspace::new()).unwrap()
}

fn cut(retrieved: &Retrieved) -> Vec<u64> {
    retrieved.cut.iter().map(|cut| cut.id).collect()
}

#[test]
fn a_prefix_ends_at_the_first_that_does_not_fit_and_skipping_goes_on() {
    const LENGTHS: [usize; 6] = [3, 10, 2, 0, 4, 1];
    let (_dir, store) = of_lengths(&LENGTHS);
    let preset = Preset {
        touch: Touch::None,
        ..paper(6)
    };
    for tokens in (0..25).chain([usize::MAX]) {
        // By hand, one memory after the other.
        let (mut prefix, mut skipping) = (vec![], vec![]);
        let (mut left, mut ended) = ([tokens; 2], false);
        for (id, length) in (0..).zip(LENGTHS) {
            ended |= length > left[0];
            if !ended {
                left[0] -= length;
                prefix.push(id);
            }
            if length <= left[1] {
                left[1] -= length;
                skipping.push(id);
            }
        }
        for (overflow, expected, left) in [
            (Overflow::KeepPrefix, prefix, left[0]),
            (Overflow::SkipOversized, skipping, left[1]),
        ] {
            let found = retrieved(&store, &within(&preset, &[], tokens, overflow));
            assert_eq!(ids(&found), expected, "{overflow:?} {tokens}");
            let rest: Vec<u64> = (0..6).filter(|id| !expected.contains(id)).collect();
            assert_eq!(cut(&found), rest);
            assert_eq!((found.tokens, found.excess), (tokens - left, 0));
            for (id, counted) in (found.memories.iter().map(|of| (of.id, of.tokens)))
                .chain(found.cut.iter().map(|of| (of.id, of.tokens)))
            {
                assert_eq!(counted, LENGTHS[id as usize]);
            }
            // The ranges and the number of candidates are those of all.
            let all = ranked(&store.snapshot(), &ask(&preset, T)).unwrap();
            assert_eq!((found.candidates, found.ranges), (6, all.ranges));
        }
    }
}

#[test]
fn only_what_is_left_is_touched() {
    let (_dir, store) = of_lengths(&[3, 10, 2]);
    let preset = paper(3);
    let found = retrieved(&store, &within(&preset, &[], 5, Overflow::SkipOversized));
    assert_eq!((ids(&found), cut(&found)), (vec![0, 2], vec![1]));
    found.touch.unwrap();
    assert_eq!(last_access(&store.snapshot()), [T, T - 10 * HOUR, T]);
}

#[test]
fn the_budget_is_spent_by_score_whatever_the_order_of_the_result() {
    let (_dir, store) = of_lengths(&[3, 3, 3, 3]);
    let preset = Preset {
        result_order: ResultOrder::Created,
        ..paper(4)
    };
    let found = retrieved(&store, &within(&preset, &[], 7, Overflow::KeepPrefix));
    assert_eq!(ids(&found), [1, 0], "the two best, the older one first");
    assert_eq!(cut(&found), [2, 3]);
}

#[test]
fn what_is_pinned_counts_first_and_is_never_cut() {
    let (_dir, store) = of_lengths(&[3, 4, 5, 0]);
    let preset = Preset {
        touch: Touch::None,
        ..paper(4)
    };
    let cases: [(&[u64], usize, &[u64], usize); 5] = [
        (&[2], 12, &[2, 0, 1, 3], 0),
        (&[2], 8, &[2, 0, 3], 0),
        (&[2], 5, &[2, 3], 0),
        (&[2], 4, &[2], 1),
        (&[2, 1, 0], 0, &[2, 1, 0], 12),
    ];
    for (pinned, tokens, expected, excess) in cases {
        let found = retrieved(
            &store,
            &within(&preset, pinned, tokens, Overflow::SkipOversized),
        );
        assert_eq!(ids(&found), expected, "{tokens}");
        assert_eq!(found.excess, excess);
        assert_eq!(found.memories.len() + found.cut.len(), 4);
    }
}

#[test]
fn without_a_budget_nothing_is_counted_and_counts_that_overflow_do_not_fit() {
    struct Never;
    impl CountTokens for Never {
        fn count(&self, _: &str) -> usize {
            usize::MAX
        }
    }
    let (_dir, store) = of_lengths(&[3, 4]);
    let preset = paper(2);
    let found = retrieved(&store, &Retrieve::new(ask(&preset, T)));
    assert_eq!(
        (ids(&found), found.tokens, found.excess),
        (vec![0, 1], 0, 0)
    );
    let budget = Budget {
        tokens: usize::MAX - 1,
        counter: &Never,
        overflow: Overflow::SkipOversized,
    };
    for (pinned, expected, excess) in [(&[][..], &[][..], 0), (&[1, 0], &[1, 0], 1)] {
        let wanted = Retrieve {
            ask: ask(&preset, T),
            pinned,
            budget: Some(budget),
            note: b"",
        };
        let found = retrieved(&store, &wanted);
        assert_eq!((ids(&found), found.excess), (expected.to_vec(), excess));
    }
}

#[test]
fn bytes_per_four_rounds_up() {
    let counted = ["", "a", "abcd", "abcde", "コーヒー"].map(|text| BytesPerFour.count(text));
    assert_eq!(counted, [0, 1, 1, 2, 3]);
}
