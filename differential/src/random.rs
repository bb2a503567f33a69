//! A small generator of pseudo-random numbers: the same sequence everywhere, forever.
//!
//! Contract: xoshiro256** seeded by SplitMix64. A seed identifies one program and its inputs in reports. That is
//! why this is not `zrt_mem`'s generator, whose numbers would produce other programs. Not for secrets.

/// The generator.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Random {
        let mut filling = zrt_mem::Random::new(seed);
        Random { state: [(); 4].map(|()| filling.bits()) }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        self.state = [a ^ d ^ b, b ^ c ^ a, c ^ a ^ (b << 17), (d ^ b).rotate_left(45)];
        result
    }

    /// A random number below `limit`, which is not 0.
    pub fn below(&mut self, limit: u32) -> u32 {
        (((self.bits() >> 32) * u64::from(limit)) >> 32) as u32
    }

    /// True once in `times`, on average.
    pub fn one_in(&mut self, times: u32) -> bool {
        self.below(times) == 0
    }

    /// A random element of a nonempty list.
    pub fn choose<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len() as u32) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the published reference code: splitmix64 of seed 0 fills the state, then ten steps of xoshiro256**.
    #[test]
    fn the_sequence_is_the_published_one() {
        let random = Random::new(0);
        assert_eq!(random.state[..2], [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4]);
        let mut random = Random { state: [1, 2, 3, 4] };
        let published = [
            11_520,
            0,
            1_509_978_240,
            1_215_971_899_390_074_240,
            1_216_172_134_540_287_360,
            607_988_272_756_665_600,
            16_172_922_978_634_559_625,
            8_476_171_486_693_032_832,
            10_595_114_339_597_558_777,
            2_904_607_092_377_533_576,
        ];
        assert_eq!([(); 10].map(|()| random.bits()), published);
    }

    #[test]
    fn numbers_stay_below_their_limit_and_reach_it() {
        let mut random = Random::new(7);
        let mut seen = [0; 5];
        (0..1000).for_each(|_| seen[random.below(5) as usize] += 1);
        assert!(seen.iter().all(|count| (120..280).contains(count)), "{seen:?}");
    }

    #[test]
    fn one_in_some_is_true_as_often() {
        let mut random = Random::new(3);
        for times in [1, 2, 5, 16] {
            let count = (0..16_000).filter(|_| random.one_in(times)).count();
            let expected = 16_000 / times as usize;
            assert!(
                (expected * 9 / 10..=expected * 11 / 10).contains(&count),
                "{count} of 16000, 1 in {times}"
            );
        }
    }

    #[test]
    fn every_element_is_chosen() {
        let mut random = Random::new(4);
        let mut seen = [0; 4];
        (0..1000).for_each(|_| seen[*random.choose(&[0, 1, 2, 3])] += 1);
        assert!(seen.iter().all(|count| (190..310).contains(count)), "{seen:?}");
    }
}
