//! Pseudo-random numbers for test cases: a seed gives the same sequence everywhere, so that a failing case can be run
//! again.
//!
//! Contract: any seed is a good one. Not for secrets, and not for what is delivered. [`Random`] is for new cases.
//! [`RandomXorshift`] is for the kernels' cases: the planted faults and mutants that they detect, and the cost of a
//! choice in `docs/kernels.md`, were found with its numbers.

/// A sequence of SplitMix64 (Steele, Lea and Flood, 2014, section 4).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    pub const fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// 32 bits.
    pub fn word(&mut self) -> u32 {
        (self.bits() >> 32) as u32
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: u32) -> u32 {
        (self.bits() % u64::from(limit)) as u32
    }

    /// A number from `low` to `high`, both possible.
    pub fn range(&mut self, low: u32, high: u32) -> u32 {
        low + (self.bits() % (u64::from(high - low) + 1)) as u32
    }

    /// True once in `count` times.
    pub fn one_in(&mut self, count: u32) -> bool {
        self.below(count) == 0
    }
}

/// A sequence of xorshift64* (Vigna, 2016, "An experimental exploration of Marsaglia's xorshift generators,
/// scrambled").
#[derive(Clone, Debug)]
pub struct RandomXorshift(u64);

impl RandomXorshift {
    /// The sequence of a seed.
    pub const fn new(seed: u64) -> RandomXorshift {
        RandomXorshift(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// 64 bits.
    fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// 32 bits.
    pub fn word(&mut self) -> u32 {
        (self.bits() >> 32) as u32
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: u32) -> u32 {
        ((u64::from(self.word()) * u64::from(limit)) >> 32) as u32
    }

    /// -1..1 with many different exponents.
    pub fn real(&mut self) -> f32 {
        let mantissa = self.word() as i32 as f32 / 2f32.powi(31);
        mantissa / (1u32 << self.below(8)) as f32
    }

    /// This many of them.
    pub fn reals(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.real()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From state 1 the first step leaves 2^25 + 1, which is multiplied by the published constant (computed
    /// elsewhere, with integers of any length).
    #[test]
    fn the_sequence_of_xorshift_is_the_published_one() {
        let mut random = RandomXorshift(1);
        assert_eq!(random.bits(), 5_180_492_295_206_395_165);
        assert_eq!(random.0, (1 << 25) + 1);
        // Many bits at once.
        let mut random = RandomXorshift(0x0123_4567_89ab_cdef);
        let numbers = [8_976_943_199_460_683_916, 15_379_887_915_741_948_126, 9_851_375_951_431_075_264];
        assert_eq!([(); 3].map(|()| random.bits()), numbers);
    }

    #[test]
    fn reals_lie_around_zero_with_many_exponents() {
        let reals = RandomXorshift::new(1).reals(1000);
        assert!(reals.iter().all(|real| real.abs() <= 1.0));
        let mean = reals.iter().sum::<f32>() / 1000.0;
        // Four deviations of such a mean: of the squares, 1/3, times the mean of 4^-k for k below 8, 1/6.
        assert!(mean.abs() < 4.0 * (1.0f32 / 3.0 / 6.0 / 1000.0).sqrt(), "{mean}");
        // Expected: a thousand times the mean of 2^k / 64, at most 1, for k below 8, which is 373.
        let tiny = reals.iter().filter(|real| real.abs() < 1.0 / 64.0).count();
        assert!((320..430).contains(&tiny), "{tiny}");
    }

    /// The first numbers of seed 1234567, as the authors' program prints them (Vigna, splitmix64.c; the published check
    /// of Rosetta Code's task "Pseudo-random numbers/Splitmix64").
    #[test]
    fn the_sequence_is_the_published_one() {
        let mut random = Random::new(1_234_567);
        let numbers: Vec<u64> = (0..5).map(|_| random.bits()).collect();
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(numbers, published);
        assert_eq!(Random::new(1_234_567).word(), 0x599e_d017, "the upper half of the first");
    }

    #[test]
    fn numbers_lie_in_their_ranges_and_reach_the_ends() {
        let mut random = Random::new(0);
        let (mut low, mut high) = (0, 0);
        for _ in 0..1000 {
            let number = random.range(3, 5);
            assert!((3..=5).contains(&number) && random.below(7) < 7);
            (low, high) = (low + u32::from(number == 3), high + u32::from(number == 5));
        }
        assert!(low > 250 && high > 250, "{low} {high}");
        assert!((150..350).contains(&(0..1000).filter(|_| random.one_in(4)).count()));
    }
}
