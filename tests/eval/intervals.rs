//! The paired bootstrap.

use crate::common::Random;
use memorank::eval::{Bootstrap, Gain};

fn bootstrap(resamples: usize, seed: u64) -> Bootstrap {
    Bootstrap {
        resamples: resamples.try_into().unwrap(),
        seed,
    }
}

#[test]
fn equal_differences_have_an_interval_without_width() {
    let (values, baseline) = ([1.0, 0.75, 0.5], [0.5, 0.25, 0.0]);
    let gain = Bootstrap::default().gain(&values, &baseline);
    assert_eq!((gain.low, gain.mean, gain.high), (0.5, 0.5, 0.5));
    assert!(gain.is_sure());
    let none = Bootstrap::default().gain(&values, &values);
    assert_eq!((none.low, none.mean, none.high), (0.0, 0.0, 0.0));
    assert!(!none.is_sure());
}

#[test]
fn a_seed_gives_the_same_interval_and_another_seed_another() {
    let mut random = Random(5);
    let values: Vec<f64> = (0..200).map(|_| f64::from(random.signed())).collect();
    let baseline = vec![0.0; 200];
    let gain = |seed| bootstrap(500, seed).gain(&values, &baseline);
    assert_eq!(gain(1), gain(1));
    assert_ne!(gain(1), gain(2));
    // The other way round it is the same loss.
    let Gain { mean, low, high } = bootstrap(500, 1).gain(&baseline, &values);
    let other = gain(1);
    assert!((mean + other.mean).abs() < 1e-15);
    assert!((low + other.high).abs() < 1e-15 && (high + other.low).abs() < 1e-15);
}

/// For many questions the percentile interval is that of the normal distribution: 1.96 standard errors.
#[test]
fn it_is_as_wide_as_the_central_limit_says() {
    let mut random = Random(6);
    let n = 2_000;
    let values: Vec<f64> = (0..n).map(|_| f64::from(random.signed()) + 0.1).collect();
    let gain = Bootstrap::default().gain(&values, &vec![0.0; n]);
    let variance = values.iter().map(|x| (x - gain.mean).powi(2)).sum::<f64>() / n as f64;
    let half = 1.96 * (variance / n as f64).sqrt();
    for end in [gain.mean - gain.low, gain.high - gain.mean] {
        assert!((end / half - 1.0).abs() < 0.06, "{end} beside {half}");
    }
}

/// Of many samples whose true difference is 0, about 5 in 100 have an interval that leaves it out.
#[test]
fn it_holds_the_true_difference_as_often_as_it_says() {
    let mut random = Random(7);
    let runs = 600;
    let mut outside = 0;
    for seed in 0..runs {
        let values: Vec<f64> = (0..150).map(|_| f64::from(random.signed())).collect();
        let gain = bootstrap(400, seed).gain(&values, &vec![0.0; 150]);
        outside += u32::from(gain.low > 0.0 || gain.high < 0.0);
    }
    // 30 expected, standard deviation 5.3.
    assert!((10..=55).contains(&outside), "{outside} of {runs}");
}

#[test]
#[should_panic(expected = "two values for each question")]
fn values_of_different_questions_are_not_compared() {
    Bootstrap::default().gain(&[1.0], &[1.0, 2.0]);
}
