//! BOUNDARY: which rows of a step still count, of requests that were cancelled, held or preempted.

use super::GARBAGE;
use super::support::harness::Device;
use super::support::weights::Random;
use zerocopy::{FromBytes, IntoBytes};
use zrt_protocol::params::{self, RowSet};
use zrt_protocol::{BAND_ROWS, Control, ROWS_MAX, Row, SLOTS_MAX, SlotState, Step};

/// The two snapshots, and the slots.
type Boundaries = ([[u32; ROWS_MAX / 32]; 2], Vec<SlotState>);

/// A random step of `rows` rows; returns the snapshot that BOUNDARY makes of it, and what it left of the other. A fault
/// of the expectation is planted if `forgets` names a flag: 0 cancel, 1 preempt, 2 hold, 3 dropped before.
fn boundary(
    rows: u32,
    snapshot: u32,
    groups: u32,
    change: Option<[u32; 2]>,
    forgets: Option<usize>,
) -> (Boundaries, Boundaries) {
    let mut random = Random::new(u64::from(rows) * 2 + u64::from(snapshot));
    let mut slots = vec![SlotState::default(); SLOTS_MAX];
    let mut control = vec![Control::default(); SLOTS_MAX];
    for (state, control) in slots.iter_mut().zip(&mut control) {
        state.serial = 1 + random.below(1000);
        // Each flag names the slot's request, the next one or none.
        let flags = [&mut control.cancel_serial, &mut control.preempt_serial, &mut control.hold_serial];
        for flag in flags {
            *flag = [state.serial, state.serial + 1, 0, 0, 0, 0][random.below(6) as usize];
        }
        (state.step_rows, state.step_output, state.sampled) =
            ([0, 1, 7][random.below(3) as usize], random.below(3), random.word());
    }
    // Rows beyond the step's are left from another: their slots do not count, nor that there are none such.
    let row = std::array::from_fn(|_| Row { slot: random.below(64), ..Row::default() });
    let alive = [[GARBAGE; ROWS_MAX / 32], [GARBAGE + 1; ROWS_MAX / 32]];
    let mut step = Step { epoch: 3, rows, alive, row, ..Step::default() };
    step.row[rows as usize..].iter_mut().step_by(2).for_each(|row| row.slot = GARBAGE);
    let mut expected = step.alive;
    // Nobody looks at bands without rows.
    let bands = (rows as usize).div_ceil(BAND_ROWS).max(1);
    expected[snapshot as usize][..bands * BAND_ROWS / 32].fill(0);
    let mut left = slots.clone();
    for (number, row) in step.row[..rows as usize].iter().enumerate() {
        let (state, control) = (&slots[row.slot as usize], &control[row.slot as usize]);
        let dropped = [
            state.serial == control.cancel_serial,
            state.serial == control.preempt_serial,
            state.serial == control.hold_serial,
            state.step_rows == 0,
        ];
        if !dropped.iter().enumerate().any(|(number, is)| *is && forgets != Some(number)) {
            expected[snapshot as usize][number / 32] |= 1 << (number % 32);
        }
    }
    for (state, control) in left.iter_mut().zip(&control) {
        let flags = [control.cancel_serial, control.preempt_serial, control.hold_serial];
        if state.step_rows != 0 && flags.contains(&state.serial) {
            (state.step_rows, state.step_output) = (0, 0);
        }
    }
    let mut device = Device::new(0);
    let step_va = device.upload(&[step]);
    let block = params::Boundary {
        header: params::Boundary::header(step_va, 1, RowSet::Once),
        slots_va: device.upload(&slots),
        control_va: device.upload(&control),
        snapshot,
        reserved: 0,
    };
    match change {
        None => device.run("boundary", block.as_bytes(), groups),
        Some(change) => device.run_changed("boundary", change, block.as_bytes(), groups),
    }
    let found: Step = device.read(step_va);
    assert_eq!(found, Step { alive: found.alive, ..step }, "nothing else changes");
    let bytes = device.bytes_at(block.slots_va, size_of_val(&slots[..]));
    let found_slots = bytes.chunks(size_of::<SlotState>());
    let found_slots = found_slots.map(|one| SlotState::read_from_bytes(one).expect("its size")).collect();
    ((found.alive, found_slots), (expected, left))
}

#[test]
fn boundary_drops_rows_of_cancelled_held_and_preempted_slots_for_good() {
    for rows in [0, 1, 2, 31, 32, 33, 64, 65, 96, 127, 128, 129, 256, 300, 385, 512] {
        for snapshot in [0, 1] {
            for groups in [1, 3] {
                let (found, expected) = boundary(rows, snapshot, groups, None, None);
                assert_eq!(found, expected, "{rows} rows, snapshot {snapshot}");
            }
        }
    }
}

/// s_lshl_b32 s12, s12, 6 becomes s_mov_b32 s12, 0: always the even snapshot. v_cmpx_ne_u32 v14, v10 and v16, v10
/// become v14, v11 and v16, v11: cancels and holds of slots 0 to 31 are compared with another slot's request.
#[test]
fn faults_of_boundary_are_seen() {
    for change in [[0x840C_860C, 0xBE8C_0080], [0x7D9A_150E, 0x7D9A_170E], [0x7D9A_1510, 0x7D9A_1710]] {
        let (found, expected) = boundary(65, 1, 1, Some(change), None);
        assert_ne!(found, expected, "{change:x?}");
    }
    for forgotten in 0..4 {
        let (found, expected) = boundary(65, 1, 1, None, Some(forgotten));
        assert_ne!(found, expected, "condition {forgotten} is met");
    }
}
