//! SAMPLE with what a host should not write: ids that no logit has, and counts above their limits. Nothing outside of
//! the row and of the slot changes, and the choice is that of what is within the limits.
//!
//! What lies beside is checked with every case: `check_others` looks between the adjusted rows, and neighbours of a
//! slot have none of their own.

use super::{Case, Extra, ROW_GAP_BYTES, Random, check, expected, logits, slot_of};
use crate::support::harness::Device;
use zerocopy::IntoBytes;
use zrt_protocol::{BIASES_MAX, Extras, TOPS_MAX};

/// Ids from the first outside the vocabulary: up to the end of the gap behind a row; those whose byte offset is that of
/// an id inside, in 32 bits; and the greatest.
fn outside(count: u32) -> Vec<u32> {
    let gap = ROW_GAP_BYTES as u32 / 4;
    let mut ids: Vec<u32> = (count..count + gap).collect();
    ids.extend([1 << 30, (1 << 30) + 1, (1 << 31) + count - 1, 3 << 30, u32::MAX - 1, u32::MAX]);
    ids
}

/// The first logits are the greatest: an id outside whose offset wraps would take from those.
fn descending(count: usize) -> Vec<f32> {
    (0..count).map(|id| 5.0 - id as f32 / 64.0).collect()
}

#[test]
fn penalised_ids_outside_the_vocabulary() {
    for count in [1u32, 2, 31, 256, 300] {
        let tokens = outside(count);
        let extra = Extra { presence: 2.0, frequency: 2.0, ..Extra::default() };
        let case = Case { tokens, window: 48, extra, ..Case::greedy(descending(count as usize)) };
        assert_eq!(expected(&case), 0);
        // Behind the first row lies another, behind the last one nothing.
        check("penalised outside", &[case.clone(), case], 2);
    }
}

#[test]
fn biased_ids_outside_the_vocabulary() {
    for count in [1u32, 2, 31, 256, 300] {
        let biases = outside(count).into_iter().map(|token| (token, -50.0)).collect();
        let extra = Extra { biases, ..Extra::default() };
        let case = Case { extra, ..Case::greedy(descending(count as usize)) };
        assert_eq!(expected(&case), 0);
        check("biased outside", &[case.clone(), case], 2);
    }
}

/// Behind the last bias lies the next slot's Extras, whose first words would be a bias of token 7.
#[test]
fn more_biases_than_their_limit() {
    let mut random = Random::new(5);
    let biases: Vec<(u32, f32)> = (20..20 + BIASES_MAX as u32).map(|token| (token, -1.0)).collect();
    for said in [BIASES_MAX as u32 + 1, 255, 256, 257, u32::MAX] {
        let extra = Extra { biases: biases.clone(), said_biases: Some(said), ..Extra::default() };
        let case = Case { extra, ..Case::greedy(logits(300, &mut random)) };
        let mut device = Device::new(0);
        let mut launch = super::prepare(&mut device, std::slice::from_ref(&case));
        let next = slot_of(0, 1) + 1;
        let as_bias = Extras { min_p: 7, typical_p: 100f32.to_bits(), ..launch.extras[next] };
        launch.extras[next] = as_bias;
        device.store(launch.block.extras_va, launch.extras.as_bytes());
        device.run("sample", launch.block.as_bytes(), 1);
        super::check_slots(&device, &launch, &[case], &format!("{said} biases"));
    }
}

/// With a vocabulary of fewer tokens too.
#[test]
fn more_of_the_most_likely_than_their_limit() {
    let mut random = Random::new(6);
    for count in [1, 5, TOPS_MAX, TOPS_MAX + 1, 32, 33, 300, 2500] {
        let logits = logits(count, &mut random);
        for tops in [TOPS_MAX as u32 + 1, 32, 33, 257, u32::MAX] {
            let extra = Extra { tops: Some(tops), ..Extra::default() };
            let case = Case { extra, ..Case::greedy(logits.clone()) };
            check(&format!("{tops} most likely"), &[case.clone(), case], 2);
        }
    }
}
