//! SAMPLE against published vectors, hand-made cases, and a softmax in f64.

use super::*;

fn drawing(inverse_temperature: f32, seed: u64) -> Sampling {
    Sampling { inverse_temperature, seed, ..Sampling::default() }
}

/// Known answers of the generator's authors (Random123, file `kat_vectors`, lines `philox4x32 10`).
#[test]
fn philox_gives_the_published_vectors() {
    let zeros = [0x6627_E8D5, 0xE169_C58D, 0xBC57_AC4C, 0x9B00_DBD8];
    assert_eq!(philox([0; 4], [0; 2]), zeros);
    let ones = [0x408F_276D, 0x41C8_3B0E, 0xA20B_C7C6, 0x6D54_51FD];
    assert_eq!(philox([u32::MAX; 4], [u32::MAX; 2]), ones);
    let digits_of_pi = [0x243F_6A88, 0x85A3_08D3, 0x1319_8A2E, 0x0370_7344];
    let key = [0xA409_3822, 0x299F_31D0];
    assert_eq!(philox(digits_of_pi, key), [0xD16C_FE09, 0x94FD_CCEB, 0x5001_E420, 0x2412_6EA1]);
}

/// The published vector of the all-zero input, as a draw: u = 0xE169C58D_6627E8D5 is 0.88052 of 2^64.
#[test]
fn the_first_two_words_make_the_draw() {
    // Ten equal weights: floor(10 * 0.88) = 8. The others as high word: 0.399, 0.736, 0.605.
    assert_eq!(choose(&[0.5; 10], &[], &drawing(1.0, 0)), 8);
    // 100 equal weights: 88.
    assert_eq!(choose(&[0.5; 100], &[], &drawing(1.0, 0)), 88);
}

#[test]
fn greedy_takes_the_first_of_the_largest() {
    let greedy = |logits: &[f32]| choose(logits, &[], &Sampling::default());
    assert_eq!(greedy(&[f32::NAN, 1.0, 3.0, 3.0]), 2);
    assert_eq!(greedy(&[-1.0, -0.0, 0.0]), 1);
    assert_eq!(greedy(&[f32::NAN, f32::NEG_INFINITY]), 0);
    assert_eq!(greedy(&[f32::NEG_INFINITY, -f32::MAX]), 1);
    assert_eq!(greedy(&[1.0, f32::INFINITY]), 1);
}

#[test]
fn the_penalty_counts_once_within_the_window() {
    let with = |penalty_window| Sampling {
        penalty: 2.0,
        inverse_penalty: 0.5,
        penalty_window,
        ..Sampling::default()
    };
    let known = [4, 4, 2];
    assert_eq!(penalise(&[1.0, 1.0, -3.0, 1.0, 8.0], &known, &with(3)), [1.0, 1.0, -6.0, 1.0, 4.0]);
    assert_eq!(penalise(&[1.0, 1.0, -3.0, 1.0, 8.0], &known, &with(1)), [1.0, 1.0, -6.0, 1.0, 8.0]);
    assert_eq!(penalise(&[1.0, 1.0, -3.0, 1.0, 8.0], &known, &with(0)), [1.0, 1.0, -3.0, 1.0, 8.0]);
    assert_eq!(penalise(&[1.0, 2.0], &[9, 1], &with(u32::MAX)), [1.0, 1.0]);
    assert_eq!(choose(&[0.0, 1.0, 3.0, 0.0, 4.0], &known, &with(2)), 4, "2.0 against 1.5");
}

#[test]
fn weights_are_whole_numbers_of_two_to_minus_forty() {
    assert_eq!(weight(0.0), 1 << 40);
    assert_eq!(weight(f32::NEG_INFINITY), 0);
    assert_eq!(weight(-28.0), 0);
    // exp(-27.5) * 2^40 = 1.25: one unit.
    assert_eq!(weight(-27.5), 1);
    for step in 0..28_000 {
        let difference = -(step as f32) / 1000.0;
        // e has 24 bits: times 2^40 it is exact in f64.
        let exact = f64::from(exponential(difference)) * 1_099_511_627_776.0;
        assert_eq!(weight(difference), exact as u64, "{difference}");
    }
}

#[test]
fn the_share_is_a_shortest_prefix() {
    let weights = [4u64, 3, 2, 1];
    let kept = |top_p: u32| nucleus(&weights, top_p).len();
    // 10 units: 0.4, 0.7, 0.9 are reached exactly or one unit of 2^-32 later.
    let units = |share: f64| (share * 4_294_967_296.0) as u32;
    assert_eq!((kept(0), kept(1), kept(u32::MAX)), (4, 1, 4));
    assert_eq!((kept(units(0.3)), kept(units(0.4)), kept(units(0.41))), (1, 1, 2));
    assert_eq!((kept(units(0.7)), kept(units(0.7) + 1)), (2, 3));
}

#[test]
fn nothing_and_everything_to_choose() {
    let sampling = Sampling { top_k: 1, ..drawing(1.0, 7) };
    assert_eq!(choose(&[2.0, 5.0, 5.0], &[], &sampling), 1);
    assert_eq!(choose(&[f32::NAN, f32::NEG_INFINITY], &[], &drawing(1.0, 7)), 0);
    // The product overflows: nothing is above -inf.
    assert_eq!(choose(&[f32::NEG_INFINITY, -3e38], &[], &drawing(100.0, 7)), 0);
    // Both become the largest finite number and are equal. Everything else has weight 0.
    let choices: Vec<u32> =
        (0..64).map(|seed| choose(&[0.0, f32::INFINITY, 1.0, 3e38], &[], &drawing(100.0, seed))).collect();
    assert!(choices.contains(&1) && choices.contains(&3) && !choices.contains(&0) && !choices.contains(&2));
}

// ------------------------------------------------------------------------------------------------ statistics

/// Draws of each statistic.
const DRAWS: usize = 6000;
/// Tokens.
const VOCABULARY: usize = 48;

/// Irregular logits: neither ties nor an order by id can make a wrong sampler pass.
fn logits() -> Vec<f32> {
    (0..VOCABULARY).map(|id| (id as f32 * 2.399).sin() * 2.5 + (id % 7) as f32 * 0.21).collect()
}

/// Textbook probabilities in f64: softmax with temperature, top-k, then top-p of what is left.
fn textbook(logits: &[f32], temperature: f64, top_k: usize, top_p: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]));
    order.truncate(if top_k == 0 { logits.len() } else { top_k });
    let scaled = |id: usize| ((f64::from(logits[id]) - f64::from(logits[order[0]])) / temperature).exp();
    let total: f64 = order.iter().map(|id| scaled(*id)).sum();
    let mut sum = 0.0;
    let kept: Vec<usize> = order
        .iter()
        .copied()
        .take_while(|id| {
            let wanted = sum < top_p * total;
            sum += scaled(*id);
            wanted
        })
        .collect();
    let total: f64 = kept.iter().map(|id| scaled(*id)).sum();
    let mut probabilities = vec![0.0; logits.len()];
    kept.iter().for_each(|id| probabilities[*id] = scaled(*id) / total);
    probabilities
}

/// Pearson's statistic of the choices against the probabilities, and its degrees of freedom. Infinite if an impossible
/// token was chosen. Tokens with fewer than 5 expected draws form one class.
fn chi_square(sampling: &Sampling, probabilities: &[f64]) -> (f64, f64) {
    let logits = logits();
    let known_tokens = vec![0; DRAWS];
    let mut counts = vec![0.0f64; VOCABULARY];
    for known in 0..DRAWS {
        counts[choose(&logits, &known_tokens[..known], sampling) as usize] += 1.0;
    }
    let (mut statistic, mut classes) = (0.0, 0.0);
    let (mut rare_count, mut rare_expected) = (0.0, 0.0);
    for (count, probability) in counts.iter().zip(probabilities) {
        let expected = probability * DRAWS as f64;
        if expected == 0.0 && *count > 0.0 {
            return (f64::INFINITY, 1.0);
        }
        if expected < 5.0 {
            rare_count += count;
            rare_expected += expected;
        } else {
            statistic += (count - expected).powi(2) / expected;
            classes += 1.0;
        }
    }
    if rare_expected > 0.0 {
        statistic += (rare_count - rare_expected).powi(2) / rare_expected;
        classes += 1.0;
    }
    (statistic, classes - 1.0)
}

/// A chi-square variable of k degrees of freedom exceeds `k + 2 sqrt(k x) + 2 x` with probability at most
/// e^-x (Laurent and Massart 2000, lemma 1). x = 20.72: one in 10^9.
fn bound(degrees: f64) -> f64 {
    let x = 20.72;
    degrees + 2.0 * (degrees * x).sqrt() + 2.0 * x
}

fn is_within_bound(sampling: &Sampling, probabilities: &[f64]) -> bool {
    let (statistic, degrees) = chi_square(sampling, probabilities);
    statistic <= bound(degrees)
}

fn units(share: f64) -> u32 {
    (share * 4_294_967_296.0) as u32
}

#[test]
fn choices_follow_the_softmax() {
    for (number, (temperature, top_k, top_p)) in
        [(1.0, 0, 1.0), (0.5, 0, 1.0), (2.0, 0, 1.0), (1.0, 5, 1.0), (1.0, 0, 0.8), (1.5, 20, 0.9)]
            .into_iter()
            .enumerate()
    {
        let sampling = Sampling {
            top_k,
            top_p: if top_p == 1.0 { 0 } else { units(top_p) },
            ..drawing((1.0 / temperature) as f32, 0xC0FF_EE00 + number as u64)
        };
        let probabilities = textbook(&logits(), temperature, top_k as usize, top_p);
        let (statistic, degrees) = chi_square(&sampling, &probabilities);
        assert!(
            statistic <= bound(degrees),
            "temperature {temperature}, top-k {top_k}, top-p {top_p}: {statistic}, {degrees} degrees of freedom"
        );
        assert!(degrees >= 3.0, "a distribution with too few classes shows nothing");
    }
}

/// Checks the power of the statistic above: each way of being wrong exceeds the bound.
#[test]
fn a_sampler_that_ignores_a_parameter_exceeds_the_bound() {
    let right = Sampling { top_k: 20, top_p: units(0.9), ..drawing(1.0 / 1.5, 0xC0FF_EE05) };
    let probabilities = textbook(&logits(), 1.5, 20, 0.9);
    assert!(is_within_bound(&right, &probabilities));
    for (what, wrong) in [
        ("top-p ignored", Sampling { top_p: 0, ..right }),
        ("temperature ignored", Sampling { inverse_temperature: 1.0, ..right }),
        ("greedy", Sampling { inverse_temperature: 0.0, ..right }),
        ("one token fewer", Sampling { top_p: units(0.85), ..right }),
    ] {
        assert!(!is_within_bound(&wrong, &probabilities), "{what} is not seen");
    }
    let without_top_p = textbook(&logits(), 1.5, 20, 1.0);
    assert!(
        !is_within_bound(&Sampling { top_k: 0, top_p: 0, ..right }, &without_top_p),
        "top-k ignored is not seen"
    );
}

/// A share that the first of two nearly equal tokens reaches alone leaves no choice.
#[test]
fn half_of_two_is_one() {
    let logits = [1.0f32, 0.9, -9.0];
    let count = |top_p: u32| {
        let sampling = Sampling { top_p, ..drawing(1.0, 5) };
        let known = [0; 200];
        (0..200).filter(|n| choose(&logits, &known[..*n], &sampling) == 0).count()
    };
    assert_eq!(count(units(0.5)), 200);
    assert!((70..150).contains(&count(0)), "{}", count(0));
}
