//! SAMPLE with what few requests ask for: min-p, typical-p, presence and frequency penalties, biases, and the most
//! likely tokens with the choice.

use super::{
    Case, Extra, check, check_cost, choices, draws, expected, logits, random_case, random_shape, shapes,
    variants,
};
use crate::support::weights::Random;
use zrt_protocol::{BIASES_MAX, Bias, Extras};

/// Would change every choice, if it were read.
pub const MISLEADING: Extras = Extras {
    min_p: u32::MAX,
    typical_p: 1,
    presence: 0x42C8_0000,
    frequency: 0x42C8_0000,
    tops: 20,
    biases: 1,
    reserved: [0; 2],
    bias: [Bias { token: 0, value: 0x42C8_0000 }; BIASES_MAX],
};

/// Extras of all kinds, alone and together.
fn kinds(count: u32, random: &mut Random) -> Vec<Extra> {
    let biases = |number: u32, random: &mut Random| -> Vec<(u32, f32)> {
        let mut tokens: Vec<u32> = (0..number).map(|_| random.below(count)).collect();
        tokens.sort_unstable();
        tokens.dedup();
        let value = |random: &mut Random| match random.below(4) {
            0 => f32::NEG_INFINITY,
            _ => 9.0 * random.real(),
        };
        tokens.into_iter().map(|token| (token, value(random))).collect()
    };
    let none = Extra::default();
    let mut kinds = vec![
        Extra { min_p: 1 << 28, ..none.clone() },
        Extra { min_p: u32::MAX, ..none.clone() },
        Extra { min_p: 1, ..none.clone() },
        Extra { typical_p: 1 << 31, ..none.clone() },
        Extra { typical_p: 1, ..none.clone() },
        Extra { typical_p: u32::MAX, ..none.clone() },
        Extra { presence: 1.5, ..none.clone() },
        Extra { frequency: 0.75, ..none.clone() },
        Extra { presence: -0.3, frequency: 1.1, ..none.clone() },
        Extra { biases: biases(3, random), ..none.clone() },
        Extra { biases: biases(BIASES_MAX as u32, random), ..none.clone() },
        Extra { tops: Some(0), ..none.clone() },
        Extra { tops: Some(5), ..none.clone() },
        Extra { tops: Some(20), ..none.clone() },
    ];
    kinds.push(Extra {
        min_p: 1 << 29,
        typical_p: 0xF000_0000,
        presence: 0.5,
        frequency: -0.25,
        biases: biases(9, random),
        tops: Some(7),
        ..none.clone()
    });
    kinds.push(Extra { min_p: 1 << 30, typical_p: 0xC000_0000, ..none });
    kinds
}

fn check_kinds(count: usize, every: usize) {
    let mut random = Random::new(1000 + count as u64);
    for (what, logits) in shapes(count, &mut random) {
        let kinds = kinds(count as u32, &mut random);
        let mut cases = Vec::new();
        for (number, case) in variants(&logits, &mut random).into_iter().enumerate() {
            for (place, extra) in kinds.iter().enumerate().filter(|(place, _)| (number + place) % every == 0)
            {
                let window = if place % 5 == 0 { case.window } else { 30 };
                cases.push(Case { extra: extra.clone(), window, ..case.clone() });
            }
        }
        for cases in cases.chunks(30) {
            check(what, cases, 3);
        }
    }
}

#[test]
fn one_and_two_tokens() {
    check_kinds(1, 3);
    check_kinds(2, 3);
}

#[test]
fn less_than_a_wave() {
    check_kinds(31, 3);
}

#[test]
fn more_than_a_group() {
    check_kinds(257, 5);
}

#[test]
fn more_than_a_round() {
    check_kinds(2500, 23);
}

/// More ids than the bits of one stretch, and tokens of both sides in everything.
#[test]
fn a_vocabulary_of_several_stretches() {
    const STRETCH: u32 = 196_608;
    let mut random = Random::new(77);
    let mut values = logits(STRETCH as usize + 2500, &mut random);
    let places = [17, STRETCH - 1, STRETCH, STRETCH + 2499];
    for (rank, token) in places.into_iter().enumerate() {
        values[token as usize] = 40.0 + rank as f32;
    }
    let tokens = vec![17, 17, STRETCH + 2499, STRETCH, 17, STRETCH + 2499];
    let base = Case { tokens, window: 5, penalty: 1.5, temperature: 4.0, seed: 8, ..Case::greedy(values) };
    let extra = Extra { frequency: 3.0, presence: 1.0, tops: Some(6), ..Extra::default() };
    let adjusted = Case { extra, ..base.clone() };
    let extra = Extra { typical_p: 0x6000_0000, min_p: 1 << 27, tops: Some(2), ..Extra::default() };
    let filtered = Case { extra, top_k: 3000, ..base.clone() };
    let extra =
        Extra { biases: vec![(STRETCH - 1, f32::NEG_INFINITY), (STRETCH + 5, 60.0)], ..Extra::default() };
    let biased = Case { extra, temperature: 0.0, ..base };
    assert_eq!(expected(&biased), STRETCH + 5);
    check("stretches", &[adjusted, filtered, biased], 2);
}

/// Everything at random, several vocabularies.
#[test]
fn random_extras() {
    let mut random = Random::new(41);
    for _ in 0..16 {
        let shape = random_shape(&mut random);
        let count = shape.len() as u32;
        let cases: Vec<Case> = (0..16)
            .map(|_| {
                let kinds = kinds(count, &mut random);
                let mut extra = kinds[random.below(kinds.len() as u32) as usize].clone();
                extra.min_p =
                    if random.below(2) == 0 { random.word() >> random.below(20) } else { extra.min_p };
                extra.typical_p = if random.below(2) == 0 { random.word() } else { extra.typical_p };
                // Few different tokens, so that some occur often.
                let most = count.min(1 + random.below(9));
                let window = random.below(60);
                Case { extra, window, ..random_case(&shape, most, &mut random) }
            })
            .collect();
        check("random", &cases, 5);
    }
}

/// By hand: 4 twice, 2 once. Presence 1 and frequency 2 take 5 from token 4 and 3 from token 2.
#[test]
fn penalties_by_hand() {
    let case = |presence, frequency, logits: &[f32]| Case {
        tokens: vec![4, 4, 2],
        window: 9,
        extra: Extra { presence, frequency, ..Extra::default() },
        ..Case::greedy(logits.to_vec())
    };
    for (case, choice) in [
        (case(1.0, 2.0, &[0.0, 0.0, 3.5, 0.0, 5.25]), 2),
        (case(1.0, 2.0, &[0.0, 0.0, 3.5, 0.0, 5.75]), 4),
        (case(1.0, 2.0, &[0.75, 0.0, 3.5, 0.0, 5.5]), 0),
        (case(1.0, 0.0, &[0.0, 0.0, 3.5, 2.75, 3.0]), 3),
        (case(-1.0, 0.0, &[0.0, 0.0, 3.5, 4.25, 3.0]), 2),
        (Case { window: 1, ..case(1.0, 2.0, &[0.0, 0.0, 3.5, 0.0, 5.0]) }, 4),
        (Case { penalty: 2.0, ..case(1.0, 0.0, &[0.0, 0.0, 4.0, 1.5, 4.0]) }, 3),
    ] {
        assert_eq!(expected(&case), choice);
        check("penalties by hand", &[case], 1);
    }
}

/// By hand: probabilities of 8, 4, 2, 1 and 1 sixteenths. Their entropy is 1.875 bits; the surprises are 1, 2, 3, 4 and
/// 4 bits, so the order of typical-p is: token 3 (of 2 bits), 0 (of 1), 2 (of 3), 1, 4.
#[test]
fn typical_by_hand() {
    let bits = |bits: f32| -bits * std::f32::consts::LN_2;
    let logits = vec![bits(1.0), bits(4.0), bits(3.0), bits(2.0), bits(4.0)];
    let sixteenth = 1u32 << 28;
    for (share, kept) in [
        (1, vec![3]),
        (4 * sixteenth - 4096, vec![3]),
        (4 * sixteenth + 4096, vec![0, 3]),
        (13 * sixteenth, vec![0, 2, 3]),
    ] {
        let extra = Extra { typical_p: share, ..Extra::default() };
        let cases = draws(&Case { temperature: 1.0, seed: 3, extra, ..Case::greedy(logits.clone()) });
        check("typical", &cases, 8);
        assert_eq!(choices(&cases), kept, "{share}");
    }
}

/// By hand: a token of exp(-0.5) of the first's probability stays up to a min-p of just that.
#[test]
fn min_p_ends_exactly_at_its_share() {
    // exp(-0.5) is 0.60653066, and to 24 bits 10175896 * 2^-24.
    let share = 10_175_896u32 << 8;
    for (min_p, kept) in [(share - 1, 2), (share, 2), (share + 1, 1), (u32::MAX, 1), (1, 3)] {
        let extra = Extra { min_p, ..Extra::default() };
        for top_k in [0, 3] {
            let logits = vec![1.0, 0.5, -1.0, f32::NEG_INFINITY];
            let extra = extra.clone();
            let cases = draws(&Case { temperature: 1.0, top_k, seed: 3, extra, ..Case::greedy(logits) });
            check("min-p", &cases, 8);
            assert_eq!(choices(&cases).last(), Some(&(kept - 1)), "{min_p}");
        }
    }
}

/// As `the_cost_of_a_choice`, with what few requests ask for.
#[test]
fn the_cost_of_extras() {
    let mut random = Random::new(21);
    let tokens = vec![1; 9];
    let base = Case { temperature: 1.0, seed: 5, tokens, ..Case::greedy(logits(32_768, &mut random)) };
    let none = Extra::default();
    let min_p = Extra { min_p: 0x0CCC_CCCC, ..none.clone() };
    let greedy = Case { temperature: 0.0, ..base.clone() };
    for (what, ceiling, case) in [
        ("top-k 40, min-p", 126.0, Case { top_k: 40, extra: min_p.clone(), ..base.clone() }),
        ("min-p", 113.0, Case { extra: min_p, ..base.clone() }),
        (
            "typical-p",
            374.0,
            Case { extra: Extra { typical_p: 0xE666_6666, ..none.clone() }, ..base.clone() },
        ),
        (
            "greedy, frequency",
            37.0,
            Case { window: 9, extra: Extra { frequency: 1.0, ..none.clone() }, ..greedy.clone() },
        ),
        (
            "greedy, bias",
            37.0,
            Case { extra: Extra { biases: vec![(5, 1.0)], ..none.clone() }, ..greedy.clone() },
        ),
        ("greedy, 10 log-probabilities", 171.0, Case { extra: Extra { tops: Some(10), ..none }, ..greedy }),
    ] {
        check_cost(what, ceiling, case);
    }
}
