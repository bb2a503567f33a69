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

/// Of weights 1, 2 and 1 the first quarter of all numbers draws the first, and so on; a place without weight is none.
#[test]
fn numbers_draw_places_by_their_share() {
    let quarter = 1u64 << 62;
    for (random, place) in
        [(0, 0), (quarter - 1, 0), (quarter, 1), (3 * quarter - 1, 1), (3 * quarter, 2), (u64::MAX, 2)]
    {
        assert_eq!(draw(&[1, 2, 1], random), place, "{random:#x}");
        assert_eq!(draw(&[1, 2, 0, 1], random), if place == 2 { 3 } else { place }, "{random:#x}");
        assert_eq!(draw(&[1 << 40], random), 0);
    }
}

#[test]
fn a_key_has_the_low_half_of_the_seed_first_and_a_score_is_the_product() {
    assert_eq!(key(0x0123_4567_89AB_CDEF), [0x89AB_CDEF, 0x0123_4567]);
    assert_eq!((score(&3.0, 0.5), score(&-3.0, 2.0)), (1.5, -6.0));
    assert_eq!((score(&f32::NAN, 1.0), score(&1e38, 10.0)), (f32::NEG_INFINITY, f32::MAX));
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
    assert_eq!(adjust(&[1.0, 1.0, -3.0, 1.0, 8.0], &known, &with(3)), [1.0, 1.0, -6.0, 1.0, 4.0]);
    assert_eq!(adjust(&[1.0, 1.0, -3.0, 1.0, 8.0], &known, &with(1)), [1.0, 1.0, -6.0, 1.0, 8.0]);
    assert_eq!(adjust(&[1.0, 1.0, -3.0, 1.0, 8.0], &known, &with(0)), [1.0, 1.0, -3.0, 1.0, 8.0]);
    assert_eq!(adjust(&[1.0, 2.0], &[9, 1], &with(u32::MAX)), [1.0, 1.0]);
    assert_eq!(choose(&[0.0, 1.0, 3.0, 0.0, 4.0], &known, &with(2)), 4, "2.0 against 1.5");
}

#[test]
fn weights_are_whole_numbers_of_two_to_minus_forty() {
    let weight = |difference: f32| whole(exponential(difference));
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

// ------------------------------------------------------------------------- what few requests ask for, by hand

/// Natural logarithms of powers of two: probabilities that a hand can add up.
fn bits(bits: f32) -> f32 {
    -bits * std::f32::consts::LN_2
}

/// Every token that 300 draws give.
fn drawn(logits: &[f32], sampling: &Sampling) -> Vec<u32> {
    let known = [0; 300];
    let mut tokens: Vec<u32> = (0..300).map(|n| choose(logits, &known[..n], sampling)).collect();
    tokens.sort_unstable();
    tokens.dedup();
    tokens
}

#[test]
fn min_p_keeps_what_has_its_share_of_the_greatest() {
    let logits = [bits(2.0), bits(1.0), bits(4.0), bits(3.0)];
    let kept = |min_p: f64| drawn(&logits, &Sampling { min_p: units(min_p), ..drawing(1.0, 2) });
    // Shares of the greatest: 1/2, 1, 1/8, 1/4. f32 knows the logarithms to 2^-24 only.
    assert_eq!(kept(0.0), [0, 1, 2, 3]);
    assert_eq!(kept(0.12), [0, 1, 2, 3]);
    assert_eq!(kept(0.13), [0, 1, 3]);
    assert_eq!(kept(0.26), [0, 1]);
    assert_eq!(kept(0.49), [0, 1]);
    assert_eq!(kept(0.51), [1]);
    assert_eq!(above_least(&[1 << 40, 1 << 39, 1 << 38], 1 << 31), [1 << 40, 1 << 39], "exactly half stays");
}

/// Probabilities of 8, 4, 2, 1 and 1 sixteenths: surprises of 1, 2, 3, 4 and 4 bits, an entropy of 1.875 bits.
#[test]
fn typical_p_keeps_what_surprises_as_expected() {
    let logits = [bits(1.0), bits(4.0), bits(3.0), bits(2.0), bits(4.0)];
    let kept = |typical_p: f64| drawn(&logits, &Sampling { typical_p: units(typical_p), ..drawing(1.0, 2) });
    assert_eq!(kept(1e-9), [3]);
    assert_eq!(kept(0.24), [3]);
    assert_eq!(kept(0.26), [0, 3], "the most likely is 0.875 from the entropy");
    assert_eq!(kept(0.76), [0, 2, 3]);
    assert_eq!(kept(0.88), [0, 1, 2, 3], "of two alike the first");
    assert_eq!(kept(0.95), [0, 1, 2, 3, 4]);
    // What cannot be drawn has no part in the entropy.
    let with_none = [&logits[..], &[f32::NEG_INFINITY, f32::NAN]].concat();
    let few = Sampling { typical_p: units(0.26), ..drawing(1.0, 2) };
    assert_eq!(drawn(&with_none, &few), [0, 3]);
    // The most likely may be dropped. Then min-p is measured by the most likely of the others.
    let flat = [bits(2.0), bits(4.0), bits(4.0), bits(4.0), bits(4.0), bits(4.0), bits(4.0)];
    let few = Sampling { typical_p: units(0.1), min_p: units(0.9), ..drawing(1.0, 2) };
    assert_eq!(drawn(&flat, &few), [1]);
}

#[test]
fn presence_counts_once_and_frequency_each_time() {
    let sampling = Sampling { presence: 1.0, frequency: 0.25, penalty_window: 4, ..Sampling::default() };
    // The last four: 1 three times, 2 once; 3 is too long ago.
    let known = [3, 1, 2, 1, 1];
    assert_eq!(adjust(&[5.0, 5.0, -5.0, 5.0], &known, &sampling), [5.0, 3.25, -6.25, 5.0]);
    // The repetition penalty comes first: 5 / 2 - 1.75.
    let both = Sampling { penalty: 2.0, inverse_penalty: 0.5, ..sampling };
    assert_eq!(adjust(&[5.0, 5.0, -5.0, 5.0], &known, &both), [5.0, 0.75, -11.25, 5.0]);
}

#[test]
fn biases_come_before_penalties() {
    let biases = crate::sampling::LogitBias::new(&[(1, 3.0), (0, f32::NEG_INFINITY), (9, 1.0)]).unwrap();
    let sampling =
        Sampling { biases, penalty: 2.0, inverse_penalty: 0.5, penalty_window: 1, ..Sampling::default() };
    assert_eq!(adjust(&[5.0, -1.0, 0.5], &[1], &sampling), [f32::NEG_INFINITY, 1.0, 0.5]);
    assert_eq!(choose(&[5.0, -1.0, 0.5], &[1], &sampling), 1);
}

#[test]
fn the_record_is_of_the_raw_distribution() {
    let logits = [bits(2.0), f32::NAN, bits(1.0), bits(2.0)];
    let tops = top_tokens(&logits, 3, 2);
    assert_eq!((tops.count, tops.top[0].token, tops.top[1].token), (2, 2, 0));
    assert_eq!((tops.top[0].difference, tops.top[2]), (0, TopToken::default()));
    assert_eq!(tops.difference, bits(1.0).to_bits());
    // 1 + 1/2 + 1/2, to the precision of exp.
    let sum = u64::from(tops.sum_low) | u64::from(tops.sum_high) << 32;
    assert!(sum.abs_diff(2 << 40) < 1 << 18, "{sum}");
    assert_eq!(top_tokens(&logits, 0, 20).count, 4);
    let nothing = top_tokens(&[f32::NAN, f32::NEG_INFINITY], 0, 2);
    assert_eq!((nothing.count, nothing.sum_low, nothing.sum_high), (0, 0, 0));
    assert_eq!(nothing.difference, f32::NEG_INFINITY.to_bits());
}

// ---------------------------------------------------------------------------------------- the same, in f64

/// What the page says in real numbers: which tokens may be drawn, with their probabilities.
fn textbook_filters(logits: &[f32], top_k: usize, typical_p: f64, top_p: f64, min_p: f64) -> Vec<f64> {
    let likely = |id: &usize| f64::from(logits[*id]).exp();
    let mut kept: Vec<usize> = (0..logits.len()).collect();
    kept.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]));
    kept.truncate(if top_k == 0 { logits.len() } else { top_k });
    let share = |order: Vec<usize>, share: f64| -> Vec<usize> {
        let total: f64 = order.iter().map(likely).sum();
        let mut sum = 0.0;
        let wanted = |id: &usize| {
            let is_wanted = sum < share * total;
            sum += likely(id);
            is_wanted
        };
        order.into_iter().take_while(wanted).collect()
    };
    if typical_p < 1.0 {
        let total: f64 = kept.iter().map(likely).sum();
        let surprise = |id: &usize| -(likely(id) / total).ln();
        let entropy: f64 = kept.iter().map(|id| likely(id) / total * surprise(id)).sum();
        let mut order = kept.clone();
        order.sort_by(|a, b| (surprise(a) - entropy).abs().total_cmp(&(surprise(b) - entropy).abs()));
        let typical = share(order, typical_p);
        kept.retain(|id| typical.contains(id));
    }
    kept = share(kept, top_p);
    let greatest = kept.iter().map(likely).fold(0.0, f64::max);
    kept.retain(|id| likely(id) >= min_p * greatest);
    let total: f64 = kept.iter().map(likely).sum();
    let mut probabilities = vec![0.0; logits.len()];
    kept.iter().for_each(|id| probabilities[*id] = likely(id) / total);
    probabilities
}

#[test]
fn filters_follow_the_textbook() {
    for (number, (top_k, typical_p, top_p, min_p)) in [
        (0, 0.5, 1.0, 0.0),
        (0, 0.9, 1.0, 0.0),
        (0, 1.0, 1.0, 0.1),
        (0, 1.0, 1.0, 0.5),
        (20, 0.7, 1.0, 0.2),
        (0, 0.8, 0.9, 0.05),
        (0, 0.2, 1.0, 0.0),
    ]
    .into_iter()
    .enumerate()
    {
        let sampling = Sampling {
            top_k,
            typical_p: if typical_p == 1.0 { 0 } else { units(typical_p) },
            top_p: if top_p == 1.0 { 0 } else { units(top_p) },
            min_p: units(min_p),
            ..drawing(1.0, 0xBEEF_0000 + number as u64)
        };
        let probabilities = textbook_filters(&logits(), top_k as usize, typical_p, top_p, min_p);
        let kept = probabilities.iter().filter(|one| **one > 0.0).count();
        assert!((3..48).contains(&kept), "{kept} tokens show nothing");
        assert!(is_within_bound(&sampling, &probabilities), "{typical_p} {top_p} {min_p}");
        // A filter that is not applied, or another share, would be seen.
        let ignored = Sampling { typical_p: 0, min_p: 0, ..sampling };
        assert!(!is_within_bound(&ignored, &probabilities), "{typical_p} {top_p} {min_p}: ignored");
    }
}

/// Log-probabilities of random logits against a log-softmax in f64.
#[test]
fn log_probabilities_are_those_of_a_softmax() {
    let logits = logits();
    let maximum = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|logit| f64::from(logit - maximum).exp()).sum();
    let exact = |id: u32| f64::from(logits[id as usize] - maximum) - sum.ln();
    for choice in 0..VOCABULARY as u32 {
        let tops = top_tokens(&logits, choice, 20);
        let values = crate::log_probabilities::LogProbabilities::new(choice, &tops).unwrap();
        assert_eq!(values.top().len(), 20);
        for one in values.top().iter().chain([&values.chosen()]) {
            assert!((f64::from(one.value) - exact(one.token)).abs() < 1e-6, "{one:?}");
        }
        assert!(values.top().is_sorted_by(|a, b| a.value >= b.value));
    }
}
