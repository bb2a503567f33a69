//! Sums of absolute differences of four bytes at four places: v_qsad and v_mqsad.
//!
//! Contract: window `i` is bytes `i` to `i + 3` of source 0 (which has eight bytes), compared with the four bytes
//! of source 1 and added to element `i` of source 2. The masked forms skip reference bytes (source 1) that are
//! zero. Sums wrap; with clamp they saturate.

use zrt_isa::Opcode;

use super::access::{commit_wide, raw_source};
use super::operand::{Packed, Parts};
use super::shell::WideSource;
use crate::shader::lanes::writable;
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp, Source};
use crate::shader::wave::{LANES, Row, Wave};
use crate::simd::{Executor, Level, Operation, blend};

/// Windows of an instruction.
const WINDOWS: usize = 4;

/// The functions of this file.
pub(super) fn bind(opcode: Opcode, _parts: &Parts, level: Level) -> Option<Executor> {
    Some(match opcode {
        Opcode::VQsadPkU16U8 => level.bind::<Packed16<false>>(),
        Opcode::VMqsadPkU16U8 => level.bind::<Packed16<true>>(),
        Opcode::VMqsadU32U8 => level.bind::<Whole>(),
        _ => return None,
    })
}

#[inline(always)]
fn difference(window: u32, reference: u32, masked: bool) -> u32 {
    let mut sum = 0;
    for byte in 0..4 {
        let (x, y) = (window >> (8 * byte) & 0xFF, reference >> (8 * byte) & 0xFF);
        sum += if masked && y == 0 { 0 } else { x.abs_diff(y) };
    }
    sum
}

/// v_qsad_pk_u16_u8 and v_mqsad_pk_u16_u8.
struct Packed16<const MASKED: bool>;
impl<const MASKED: bool> Operation for Packed16<MASKED> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let clamp = Packed(op.modifiers).clamp();
        let mut result = [Row([0; LANES]); 2];
        {
            let wave = &*wave;
            let [mut room_a, mut room_c] = [[Row([0; LANES]); 2]; 2];
            let mut room_b = Row([0; LANES]);
            let a = WideSource::new(wave, op, 0, &mut room_a);
            let b = raw_source(wave, op, 1, &mut room_b);
            let c = WideSource::new(wave, op, 2, &mut room_c);
            for lane in 0..LANES {
                let (bytes, addend) = (a.get(lane), c.get(lane));
                for window in 0..WINDOWS {
                    let part = difference((bytes >> (8 * window)) as u32, b.0[lane], MASKED);
                    let sum = (addend >> (16 * window) & 0xFFFF) as u32 + part;
                    let sum = if clamp { sum.min(0xFFFF) } else { sum & 0xFFFF };
                    result[window / 2].0[lane] |= sum << (16 * (window % 2));
                }
            }
        }
        commit_wide(wave, op, &result);
        Flow::Next
    }
}

/// v_mqsad_u32_u8.
struct Whole;
impl Operation for Whole {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let clamp = Packed(op.modifiers).clamp();
        let mut result = [Row([0; LANES]); WINDOWS];
        {
            let wave = &*wave;
            let mut room_a = [Row([0; LANES]); 2];
            let mut room_b = Row([0; LANES]);
            let a = WideSource::new(wave, op, 0, &mut room_a);
            let b = raw_source(wave, op, 1, &mut room_b);
            for (window, row) in result.iter_mut().enumerate() {
                // The encoding allows only vector registers here.
                let addend = match op.sources[2] {
                    Source::Vector(register) => wave.vector[register.wrapping_add(window as u8) as usize],
                    _ => Row([0; LANES]),
                };
                for lane in 0..LANES {
                    let part = difference((a.get(lane) >> (8 * window)) as u32, b.0[lane], true);
                    let sum = addend.0[lane];
                    row.0[lane] = if clamp { sum.saturating_add(part) } else { sum.wrapping_add(part) };
                }
            }
        }
        let lanes = writable(wave, op);
        for (window, row) in result.iter().enumerate() {
            let register = op.destination.wrapping_add(window as u8) as usize;
            wave.vector[register] = blend(lanes, row, &wave.vector[register]);
        }
        Flow::Next
    }
}

#[cfg(test)]
mod tests {
    use crate::shader::valu::testing::{code, run_all, wave};

    const BYTES: [u8; 8] = [10, 0, 200, 7, 255, 1, 90, 33];
    const REFERENCE: [u8; 4] = [12, 0, 100, 7];

    fn windows(masked: bool) -> [u32; 4] {
        [0, 1, 2, 3].map(|start: usize| {
            let pairs = BYTES[start..start + 4].iter().zip(REFERENCE);
            pairs
                .filter(|(_, y)| !masked || *y != 0)
                .map(|(x, y)| i32::from(*x) - i32::from(y))
                .map(i32::abs)
                .sum::<i32>() as u32
        })
    }

    fn start(addend: [u32; 4]) -> crate::shader::wave::Wave {
        let mut start = wave();
        let low = u32::from_le_bytes([BYTES[0], BYTES[1], BYTES[2], BYTES[3]]);
        let high = u32::from_le_bytes([BYTES[4], BYTES[5], BYTES[6], BYTES[7]]);
        let rows = [(4, low), (5, high), (6, u32::from_le_bytes(REFERENCE))];
        rows.into_iter().for_each(|(register, value)| start.vector[register].0 = [value; 32]);
        (8..).zip(addend).for_each(|(register, value)| start.vector[register].0 = [value; 32]);
        start
    }

    #[test]
    fn four_windows_are_compared() {
        let packed = |words: &[u32], start| {
            let end = run_all(&start, words);
            let (low, high) = (end.vector[0].0[5], end.vector[1].0[5]);
            [low & 0xFFFF, low >> 16, high & 0xFFFF, high >> 16]
        };
        let addend = [0xFFFF_0001, 0x0003_0002, 0, 0];
        let plain = code("v_qsad_pk_u16_u8 v[0:1], v[4:5], v6, v[8:9]", &[0xD63A_0000, 0x0422_0D04]);
        let sums = windows(false);
        let expected = [sums[0] + 1, (sums[1] + 0xFFFF) & 0xFFFF, sums[2] + 2, sums[3] + 3];
        assert_eq!(packed(plain, start(addend)), expected);
        let clamped = code("v_mqsad_pk_u16_u8 v[0:1], v[4:5], v6, v[8:9] clamp", &[0xD63B_8000, 0x0422_0D04]);
        let sums = windows(true);
        assert_eq!(packed(clamped, start(addend)), [sums[0] + 1, 0xFFFF, sums[2] + 2, sums[3] + 3]);
    }

    #[test]
    fn masked_windows_of_32_bits() {
        let words = code("v_mqsad_u32_u8 v[0:3], v[4:5], v6, v[8:11]", &[0xD63D_0000, 0x0422_0D04]);
        let end = run_all(&start([u32::MAX, 100, 0x1_0000, 0]), words);
        let sums = windows(true);
        let expected = [sums[0] - 1, sums[1] + 100, sums[2] + 0x1_0000, sums[3]];
        assert_eq!([0, 1, 2, 3].map(|register: usize| end.vector[register].0[9]), expected);
    }
}
