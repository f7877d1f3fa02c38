//! Random numbers that are the same on every machine: SplitMix64 (Steele, Lea and Flood, 2014).

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    /// A stream of its own for each list of numbers.
    pub(super) fn new(seeds: &[u64]) -> Self {
        let mut stream = Self(0);
        for seed in seeds {
            stream.0 ^= seed;
            stream.0 = stream.next();
        }
        stream
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number from 0 up to but not including `bound`, which is above 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        // The high half of the product; its bias is below 2^-32 for the bounds in use.
        let product = u128::from(self.next()) * u128::from(bound);
        u64::try_from(product >> 64).unwrap_or(0)
    }

    /// True in so many of a thousand cases.
    pub(super) fn chance(&mut self, permille: u64) -> bool {
        self.below(1_000) < permille
    }

    /// 0 in half of all cases, 1 in a quarter and so on, at most 63.
    pub(super) fn halvings(&mut self) -> u32 {
        self.next().trailing_ones().min(63)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        let mut random = Random(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.next()).collect();
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn bounds_hold() {
        let mut random = Random::new(&[1, 2]);
        assert!((0..1_000).all(|_| random.below(7) < 7));
        assert!((0..100).all(|_| !random.chance(0) && random.chance(1_000)));
    }
}
