//! Graphs as Graphviz and Mermaid draw them.

use crate::example::{Owned, append, new_store, plain};
use memorank::kernel::Dtype;
use memorank::store::{Kind, Reference, Store};
use memorank::stream::evidence::Graph;

fn memory(text: &str) -> Owned {
    Owned {
        text: text.into(),
        ..plain(&[1.0, 0.0])
    }
}

fn reflection(text: &str, evidence: Vec<Reference>) -> Owned {
    Owned {
        kind: Kind::REFLECTION,
        evidence,
        depth: 1,
        ..memory(text)
    }
}

fn ids(ids: &[u64]) -> Vec<Reference> {
    ids.iter().map(|&id| Reference::Id(id)).collect()
}

/// 0 was deleted; 3 cites it, 1, and what is missing; 4 cites 3 and 2.
fn store() -> (tempfile::TempDir, Store) {
    let (dir, _, store) = new_store(2, Dtype::F32);
    append(
        &store,
        &[
            memory("bed"),
            memory("he said \"no\\yes\""),
            memory("<b>#1</b>\n`x`"),
        ],
    );
    let broken = [ids(&[1, 0]), vec![Reference::Missing("node \"9\"".into())]].concat();
    append(&store, &[reflection("Klaus", broken)]);
    append(&store, &[reflection("Maria [x] | {y}", ids(&[3, 2]))]);
    store.delete(&[0]).unwrap();
    (dir, store)
}

#[test]
fn dot_has_each_memory_in_a_box_and_arrows_in_the_order_of_the_evidence() {
    let (_dir, store) = store();
    let graph = Graph::of(&store.snapshot()).unwrap();
    let expected = r#"digraph evidence {
  node [shape=box];
  n1 [label="1 observation: he said \"no\\yes\""];
  n3 [label="3 reflection: Klaus"];
  n4 [label="4 reflection: Maria [x] | {y}"];
  missing0 [label="node \"9\"", style=dashed];
  n0 [label="0 was deleted", style=dashed];
  n2 [label="2", style=dotted];
  n3 -> n1;
  n3 -> n0;
  n3 -> missing0;
  n4 -> n3;
  n4 -> n2;
}
"#;
    for order in [[1, 3, 4], [4, 3, 1]] {
        assert_eq!(graph.to_dot(&order).unwrap(), expected);
    }
    assert_eq!(graph.to_dot(&[3, 1, 4, 4, 1]).unwrap(), expected);
}

#[test]
fn mermaid_has_no_character_that_could_end_or_style_a_label() {
    let (_dir, store) = store();
    let graph = Graph::of(&store.snapshot()).unwrap();
    let expected = r#"flowchart TD
  n0["0 was deleted"]:::broken
  n2["2 observation: #60;b#62;#35;1#60;#47;b#62; #96;x#96;"]
  n4["4 reflection: Maria #91;x#93; #124; #123;y#125;"]
  n3["3"]:::outside
  n4 --> n3
  n4 --> n2
  classDef outside stroke-dasharray: 2 4
  classDef broken stroke-dasharray: 6 4
"#;
    assert_eq!(graph.to_mermaid(&[0, 2, 4]).unwrap(), expected);
    assert_eq!(graph.to_mermaid(&[]).unwrap(), "flowchart TD\n");
}

#[test]
fn any_text_stays_within_its_label() {
    let hostile: String = (0..0x500)
        .filter_map(char::from_u32)
        .chain(['\u{2028}', '🙂', '中'])
        .collect();
    let texts: Vec<String> = hostile
        .chars()
        .map(|c| format!("a{c}\"; b -> c; {c}"))
        .collect();
    let (_dir, _, store) = new_store(2, Dtype::F32);
    append(
        &store,
        &texts.iter().map(|text| memory(text)).collect::<Vec<_>>(),
    );
    let missing = texts.iter().map(|text| Reference::Missing(text.clone()));
    append(&store, &[reflection("all", missing.collect())]);
    let graph = Graph::of(&store.snapshot()).unwrap();
    let all: Vec<u64> = (0..=texts.len() as u64).collect();
    let (dot, mermaid) = (graph.to_dot(&all).unwrap(), graph.to_mermaid(&all).unwrap());
    let boxes =
        |drawn: &str, start: &str| drawn.lines().filter(|line| line.contains(start)).count();
    assert_eq!(boxes(&dot, " [label=\""), 2 * texts.len() + 1);
    for line in dot.lines().filter(|line| line.contains(" [label=\"")) {
        // What is left without escapes is one quoted text.
        let bare = line.replace("\\\\", "").replace("\\\"", "");
        assert_eq!(bare.matches('"').count(), 2, "{line}");
        assert!(
            line.ends_with("\"];") || line.ends_with("\", style=dashed];"),
            "{line}"
        );
    }
    for line in mermaid.lines().filter(|line| line.contains("[\"")) {
        assert_eq!(line.matches('"').count(), 2, "{line}");
        assert!(
            line.ends_with("\"]") || line.ends_with("\"]:::broken"),
            "{line}"
        );
    }
}

#[test]
fn a_long_text_is_shown_by_its_beginning() {
    let (_dir, _, store) = new_store(2, Dtype::F32);
    append(&store, &[memory(&"é".repeat(80)), memory(&"é".repeat(81))]);
    let dot = Graph::of(&store.snapshot())
        .unwrap()
        .to_dot(&[0, 1])
        .unwrap();
    assert!(dot.contains(&format!("0 observation: {}\"]", "é".repeat(80))));
    assert!(dot.contains(&format!("1 observation: {}…\"]", "é".repeat(80))));
}
