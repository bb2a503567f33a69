//! Pseudo-random numbers for what is shipped: page order, buffer contents, and inputs of questions and benchmarks.
//!
//! Contract: SplitMix64 (Steele, Lea and Flood, 2014, section 4). A seed produces the same numbers on every machine
//! and in every version, and users rely on that. Any seed is good. Not for secrets. Cost: two multiplications per
//! number.

/// A sequence.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    pub const fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// The next 32 bits.
    pub const fn word(&mut self) -> u32 {
        (self.bits() >> 32) as u32
    }

    /// The next number below `limit`; 0 if `limit` is 0.
    pub const fn below(&mut self, limit: u32) -> u32 {
        ((self.word() as u64 * limit as u64) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the seed 1234567, as published with the generator's other implementations (rosettacode.org,
    /// "Pseudo-random numbers/Splitmix64").
    const PUBLISHED: [u64; 5] = [
        6_457_827_717_110_365_317,
        3_203_168_211_198_807_973,
        9_817_491_932_198_370_423,
        4_593_380_528_125_082_431,
        16_408_922_859_458_223_821,
    ];

    #[test]
    fn the_sequence_is_the_published_one() {
        let mut random = Random::new(1_234_567);
        assert_eq!(PUBLISHED.map(|_| random.bits()), PUBLISHED);
        let mut random = Random::new(1_234_567);
        assert_eq!(PUBLISHED.map(|_| random.word()), PUBLISHED.map(|number| (number >> 32) as u32));
    }

    #[test]
    fn a_number_below_a_limit_is_that_share_of_it() {
        let mut random = Random::new(1_234_567);
        for number in PUBLISHED {
            // The word times 2^32 - 1, shifted by 32: rounded down, where the word is not 0.
            assert_eq!(random.below(u32::MAX), (number >> 32) as u32 - 1);
        }
        assert_eq!(random.below(1), 0);
        assert_eq!(random.below(0), 0);
    }
}
