//! The kernel's parts against the plainest way to do the same.

use proptest::prelude::*;

use super::program::CHUNK;
use super::top::Top;
use super::*;
use crate::formula::Formula;

/// Runs a formula over one chunk in which every leaf holds the given values.
fn run(text: &str, leaves: &[&[f64]]) -> Vec<f64> {
    let program = Program::new(Formula::parse(text).unwrap().root());
    assert_eq!(program.leaves().len(), leaves.len(), "{text}");
    let mut out = vec![0.0; leaves.first().map_or(1, |leaf| leaf.len())];
    let mut registers = vec![vec![0.0; CHUNK]; program.registers()];
    program.run(leaves, &mut registers, &mut out);
    out
}

#[test]
fn every_combination_of_operands_is_right() {
    // The leaves are Open and Close, in the order of the columns.
    let (a, b): (&[f64], &[f64]) = (&[8.0, 3.0], &[2.0, f64::NAN]);
    let both = |text: &str| run(text, &[a, b])[0];
    let one = |text: &str| run(text, &[a]);
    assert_eq!(both("Open - Close"), 6.0);
    assert_eq!(both("(Open - Close) - (Close - Open)"), 12.0);
    assert_eq!(both("Open - (Open - Close)"), 2.0);
    assert_eq!(both("(Open - Close) / Close"), 3.0);
    assert_eq!(both("1 - (Open - Close)"), -5.0);
    assert_eq!(both("(Open - Close) - 1"), 5.0);
    assert_eq!(both("-(Open / Close) * 2 + Open"), 0.0);
    assert_eq!(both("Open - (Close - (Open - (Close - Open)))"), 20.0);
    assert_eq!(one("2 - Open"), [-6.0, -1.0]);
    assert_eq!(one("Open / 2"), [4.0, 1.5]);
    assert_eq!(one("-Open"), [-8.0, -3.0]);
    assert_eq!(one("Open"), [8.0, 3.0]);
    assert_eq!(run("1 + 2 * 3", &[]), [7.0]);
    assert!(run("Open * Close", &[a, b])[1].is_nan());
}

#[test]
fn only_a_zero_divisor_makes_null_of_a_quotient() {
    let values: &[f64] = &[1.0, 2.0];
    assert!(run("1 / (Open - 1)", &[values])[0].is_nan());
    assert_eq!(run("1 / (Open - 1)", &[values])[1], 1.0);
    assert!(run("Open / 0", &[values])[0].is_nan());
    assert!(run("1 / 0 + 1", &[])[0].is_nan());
    assert!(run("Open / -(Open - 1)", &[values])[0].is_nan());
    // An infinite divisor is none of these: 1 / infinity is 0.
    let huge = format!("1{}", "0".repeat(300));
    assert_eq!(run(&format!("1 / (Open * {huge} * {huge})"), &[values]), [0.0, 0.0]);
}

fn plain_top(keys: &[f64], limit: usize) -> Vec<(f64, u32)> {
    let mut all: Vec<(f64, u32)> =
        keys.iter().zip(0..).filter(|(key, _)| !key.is_nan()).map(|(key, at)| (*key, at)).collect();
    all.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap().then(a.1.cmp(&b.1)));
    all.truncate(limit);
    all
}

proptest! {
    #[test]
    fn the_top_is_that_of_a_full_sort(
        // Few different keys make many ties.
        keys in prop::collection::vec(
            prop_oneof![
                4 => (-40_i32..40).prop_map(|key| f64::from(key) / 4.0),
                1 => Just(f64::NAN),
                1 => Just(-0.0),
            ],
            0..3_000,
        ),
        limit in prop_oneof![0_usize..70, 400_usize..600],
    ) {
        let mut top = Top::default();
        for _ in 0..2 {
            prop_assert_eq!(top.of(&keys, limit), plain_top(&keys, limit));
        }
    }
}
