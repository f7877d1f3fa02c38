//! Numbers that look random and are the same on every machine and in every version.
//!
//! The generator is splitmix64 (Steele, Lea and Flood, 2014): the state grows by
//! `0x9e3779b97f4a7c15` for each number; a number is the state after two rounds of xor-shift and
//! multiplication (constants `0xbf58476d1ce4e5b9` and `0x94d049bb133111eb`). Nothing here is fit for
//! secrets.

/// A stream of numbers, made from seeds.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The stream of the published generator: the state starts at the seed.
    #[must_use]
    pub const fn of_seed(seed: u64) -> Self {
        Self(seed)
    }

    /// A stream of its own for each list of numbers.
    #[must_use]
    pub fn new(seeds: &[u64]) -> Self {
        let mut stream = Self(0);
        for seed in seeds {
            stream.0 ^= seed;
            stream.0 = stream.number();
        }
        stream
    }

    /// Any number.
    pub const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// From 0 up to but not including `bound`; 0 where that is 0. It is the upper half of the
    /// product of the bound and a number.
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.number() as u128 * bound as u128) >> 64) as u64
    }

    /// A place in something that is `length` long; 0 where that is 0.
    pub const fn place(&mut self, length: usize) -> usize {
        // Below the length, so it fits.
        self.below(length as u64) as usize
    }

    /// True in so many of a thousand cases.
    pub const fn permille(&mut self, cases: u64) -> bool {
        self.below(1_000) < cases
    }

    /// 0 in half of all cases, 1 in a quarter and so on, at most 63.
    pub fn halvings(&mut self) -> u32 {
        self.number().trailing_ones().min(63)
    }

    /// From 0 up to but not including 1.
    pub fn unit(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
        (self.number() >> 11) as f64 * STEP
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// About a standard normal distribution: the sum of four units, scaled to variance 1. Only
    /// additions and multiplications, which give the same bits on every machine.
    pub fn normal(&mut self) -> f64 {
        let sum = self.unit() + self.unit() + self.unit() + self.unit();
        (sum - 2.0) * 1.732_050_807_568_877_2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        // The first numbers of the reference implementation for this seed.
        let mut random = Random::of_seed(1_234_567);
        let first = [random.number(), random.number(), random.number()];
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn bounds_hold() {
        let mut random = Random::new(&[1, 2]);
        assert!((0..1_000).all(|_| random.below(7) < 7 && random.place(3) < 3));
        assert!((0..1_000).all(|_| (0.0..1.0).contains(&random.unit())));
        assert_eq!((random.below(0), random.place(0)), (0, 0));
        assert!((0..100).all(|_| !random.permille(0) && random.permille(1_000)));
        assert!((0..100).all(|_| !random.chance(0.0) && random.chance(1.0)));
        assert!((0..1_000).all(|_| random.halvings() < 64 && random.normal().abs() < 3.5));
    }

    #[test]
    fn lists_of_seeds_give_streams_of_their_own() {
        let first = |seeds: &[u64]| Random::new(seeds).number();
        assert_ne!(first(&[1, 2]), first(&[2, 1]));
        assert_ne!(first(&[1]), first(&[1, 0]));
    }
}
