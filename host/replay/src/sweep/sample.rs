//! Some combinations of a grid, drawn at random from a seed.
//!
//! The generator is splitmix64: the state starts at the seed and grows by `0x9e3779b97f4a7c15` for
//! each number; a number is the state after two rounds of xor-shift and multiplication (constants
//! `0xbf58476d1ce4e5b9` and `0x94d049bb133111eb`). A number below a bound is the upper half of the
//! 128-bit product of the bound and a random number. Distinct numbers are drawn by Floyd's method.
//! The same seed gives the same sample on every machine and in every version.

use std::collections::BTreeSet;

/// The generator.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `last`, included.
    fn up_to(&mut self, last: u64) -> u64 {
        let bound = u128::from(last) + 1;
        // The upper half is below the bound.
        ((u128::from(self.next()) * bound) >> 64) as u64
    }
}

/// `wanted` different numbers below `all`, in rising order; all of them when there are no more.
#[must_use]
pub fn distinct_below(all: u64, wanted: u64, seed: u64) -> Vec<u64> {
    if wanted >= all {
        return (0..all).collect();
    }
    let mut random = SplitMix64(seed);
    let mut drawn = BTreeSet::new();
    for last in all - wanted..all {
        let number = random.up_to(last);
        if !drawn.insert(number) {
            drawn.insert(last);
        }
    }
    drawn.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_published_one() {
        // The first numbers of the reference implementation for seed 1234567.
        let mut random = SplitMix64(1_234_567);
        let numbers = [random.next(), random.next(), random.next()];
        assert_eq!(
            numbers,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn samples_repeat_and_differ_by_seed() {
        let sample = distinct_below(1_000_000_000, 100, 7);
        assert_eq!(sample, distinct_below(1_000_000_000, 100, 7));
        assert_ne!(sample, distinct_below(1_000_000_000, 100, 8));
        assert!(sample.is_sorted_by(|left, right| left < right) && sample.len() == 100);
        assert!(sample.iter().any(|&number| number > 900_000_000));
        assert!(sample.iter().any(|&number| number < 100_000_000));
    }

    #[test]
    fn a_sample_of_everything_is_everything() {
        assert_eq!(distinct_below(4, 4, 1), [0, 1, 2, 3]);
        assert_eq!(distinct_below(4, 9, 1), [0, 1, 2, 3]);
        assert_eq!(distinct_below(4, 3, 1).len(), 3);
    }

    proptest::proptest! {
        #[test]
        fn samples_are_distinct_and_in_range(all in 1_u64..500, wanted in 0_u64..500, seed: u64) {
            let sample = distinct_below(all, wanted, seed);
            proptest::prop_assert_eq!(sample.len() as u64, wanted.min(all));
            proptest::prop_assert!(sample.is_sorted_by(|left, right| left < right));
            proptest::prop_assert!(sample.iter().all(|number| *number < all));
        }
    }
}
