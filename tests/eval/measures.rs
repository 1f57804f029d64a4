//! Measures of known places.

use crate::measure;
use memorank::eval::{Measure, Places};

fn of(name: &str, relevant: usize, found: &[usize]) -> f64 {
    let places = Places {
        relevant,
        found: found.to_vec(),
    };
    measure(name).of(&places)
}

#[test]
fn they_are_what_their_formulas_say() {
    let log = |x: f64| x.log2();
    for (name, relevant, found, expected) in [
        ("recall@1", 1, &[1][..], 1.0),
        ("recall@1", 1, &[2], 0.0),
        ("recall@3", 4, &[1, 3, 4], 0.5),
        ("recall@10", 3, &[], 0.0),
        ("precision@4", 9, &[1, 2, 4, 5], 0.75),
        // Fewer candidates than places: those that are not there are not relevant.
        ("precision@10", 2, &[1, 2], 0.2),
        ("mrr", 2, &[7, 9], 1.0 / 7.0),
        ("mrr@6", 2, &[7, 9], 0.0),
        ("mrr@7", 2, &[7, 9], 1.0 / 7.0),
        ("mrr", 2, &[], 0.0),
        ("ndcg", 2, &[1, 2], 1.0),
        ("ndcg", 1, &[3], 1.0 / log(4.0)),
        (
            "ndcg",
            3,
            &[2, 5],
            (1.0 / log(3.0) + 1.0 / log(6.0)) / (1.0 + 1.0 / log(3.0) + 1.0 / log(4.0)),
        ),
        (
            "ndcg@4",
            3,
            &[2, 5],
            (1.0 / log(3.0)) / (1.0 + 1.0 / log(3.0) + 1.0 / log(4.0)),
        ),
        // Of more relevant than places the best possible fills the places.
        ("ndcg@2", 5, &[1, 2, 3], 1.0),
        ("ndcg@10", 4, &[], 0.0),
    ] {
        let found = of(name, relevant, found);
        assert!(
            (found - expected).abs() < 1e-15,
            "{name}: {found}, not {expected}"
        );
    }
}

#[test]
fn names_are_read_as_they_are_written() {
    for name in [
        "recall@10",
        "precision@1",
        "mrr",
        "mrr@3",
        "ndcg",
        "ndcg@1000",
    ] {
        assert_eq!(measure(name).to_string(), name);
    }
    for no in [
        "",
        "recall",
        "precision",
        "recall@",
        "recall@0",
        "recall@-1",
        "recall@+1",
        "recall@1.5",
        "recall@1 ",
        "recall@99999999999999999999",
        "Recall@10",
        "mrr@0",
        "ndcg@",
        "map",
        "@10",
    ] {
        let error = no.parse::<Measure>().unwrap_err().to_string();
        assert!(error.contains(&format!("{no:?} is no measure")), "{error}");
    }
}
