//! Random numbers that are the same on every machine: SplitMix64 (Steele, Lea and Flood, 2014),
//! and from it only additions, multiplications and divisions.

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

    /// From 0 up to but not including 1.
    pub(super) fn unit(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
        (self.next() >> 11) as f64 * STEP
    }

    /// About a standard normal distribution: the sum of four parts, scaled to variance 1.
    pub(super) fn normal(&mut self) -> f64 {
        let sum = self.unit() + self.unit() + self.unit() + self.unit();
        (sum - 2.0) * 1.732_050_807_568_877_2
    }

    /// From 0 up to but not including `bound`; 0 where that is 0.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        let product = u128::from(self.next()) * bound as u128;
        usize::try_from(product >> 64).unwrap_or(0)
    }

    /// True with this probability.
    pub(super) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }
}
