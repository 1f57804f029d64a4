//! Operations in any order against a list of memories.

use crate::example::*;
use memorank::kernel::Dtype;
use memorank::store::{OpenOptions, Store, verify};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Op {
    Append(usize),
    Bulk { rows: usize, commit: bool },
    Refused,
    Touch { rows: Vec<usize>, now: i64 },
    Sync,
    Reopen { in_memory: bool },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (0..5_usize).prop_map(Op::Append),
        (0..9_usize, any::<bool>()).prop_map(|(rows, commit)| Op::Bulk { rows, commit }),
        Just(Op::Refused),
        (
            prop::collection::vec(0..30_usize, 0..4),
            -20_000..60_000_i64
        )
            .prop_map(|(rows, now)| Op::Touch { rows, now }),
        Just(Op::Sync),
        any::<bool>().prop_map(|in_memory| Op::Reopen { in_memory }),
    ]
}

fn check(store: &Store, model: &[Owned]) {
    assert_eq!(store.len(), model.len());
    assert_eq!(store.next_id(), model.len() as u64);
    for (row, memory) in model.iter().enumerate() {
        assert_row(store, row, row as u64, memory);
    }
    for i in 0..model.len() as u64 + 3 {
        let row = (i % 2 == 0 && i < model.len() as u64).then_some(i as usize);
        assert_eq!(store.row_of_key(&format!("node_{i}")).unwrap(), row);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_store_does_what_a_list_does(
        ops in prop::collection::vec(op(), 1..20),
        f16 in any::<bool>(),
        dim in 1..6_usize,
    ) {
        let dtype = if f16 { Dtype::F16 } else { Dtype::F32 };
        let (_dir, path, mut store) = new_store(dim, dtype);
        let mut model: Vec<Owned> = Vec::new();
        for op in ops {
            let next = model.len() as u64;
            match op {
                Op::Append(rows) => {
                    let new: Vec<_> = (next..next + rows as u64).map(|i| varied(i, dim)).collect();
                    append(&mut store, &new);
                    model.extend(new);
                }
                Op::Bulk { rows, commit } => {
                    let new: Vec<_> = (next..next + rows as u64).map(|i| varied(i, dim)).collect();
                    let mut bulk = store.bulk().unwrap();
                    for memory in &new {
                        bulk.push(&memory.borrowed()).unwrap();
                    }
                    if commit {
                        bulk.commit().unwrap();
                        model.extend(new);
                    }
                }
                Op::Refused => {
                    let bad = plain(&vec![f32::NAN; dim]);
                    prop_assert!(store.append(&[varied(next, dim).borrowed(), bad.borrowed()]).is_err());
                }
                Op::Touch { rows, now } => {
                    let exist = rows.iter().all(|&row| row < model.len());
                    let rows32: Vec<_> = rows.iter().map(|&row| row as u32).collect();
                    prop_assert_eq!(store.touch(&rows32, now).is_ok(), exist);
                    for row in rows.into_iter().filter(|_| exist) {
                        model[row].last_access = model[row].last_access.max(now);
                    }
                }
                Op::Sync => store.sync().unwrap(),
                Op::Reopen { in_memory } => {
                    store.close().unwrap();
                    let options = OpenOptions { in_memory, verify: true, read_only: false };
                    store = Store::open_with(&path, &options).unwrap();
                }
            }
            check(&store, &model);
        }
        drop(store);
        check(&Store::open_read_only(&path).unwrap(), &model);
        let report = verify(&path).unwrap();
        prop_assert_eq!((report.damages, report.uncommitted_bytes), (vec![], 0));
    }
}
