//! Some combinations of a grid, drawn at random from a seed.
//!
//! Distinct numbers are drawn by Floyd's method from the generator of [`domain::random`].
//! The same seed gives the same sample on every machine and in every version.

use std::collections::BTreeSet;

use domain::Random;

/// `wanted` different numbers below `all`, in rising order; all of them when there are no more.
#[must_use]
pub fn distinct_below(all: u64, wanted: u64, seed: u64) -> Vec<u64> {
    if wanted >= all {
        return (0..all).collect();
    }
    let mut random = Random::of_seed(seed);
    let mut drawn = BTreeSet::new();
    for last in all - wanted..all {
        let number = random.below(last + 1);
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
