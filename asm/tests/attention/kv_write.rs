//! KV_WRITE: rows of keys and values into the pages of their slots.

use super::support::BIASES;
use super::support::harness::{Device, FRESH};
use super::support::kv::{self, Cache, KvFormat};
use super::support::weights::Random;
use super::{GAP_BYTES, MIXED_ROWS, ODD_SNAPSHOT, assert_bytes, run, strided};
use zerocopy::IntoBytes;
use zrt_protocol::params::{self, RowSet};

pub struct WriteCase {
    pub cache: Cache,
    rows: Vec<(usize, usize, bool)>,
    keys: Vec<Vec<f32>>,
    values: Vec<Vec<f32>>,
}

impl WriteCase {
    pub fn new(format: KvFormat, elements: usize, rows: &[(usize, usize, bool)]) -> WriteCase {
        let mut random = Random::new((elements * 100 + rows.len()) as u64);
        let slots = rows.iter().map(|row| row.0 + 1).max().unwrap_or(0);
        let mut lengths = vec![0; slots];
        for (slot, position, _) in rows {
            lengths[*slot] = lengths[*slot].max(position + 1);
        }
        let cache = Cache::new(format, elements, &lengths, FRESH, &mut random);
        let keys = rows.iter().map(|_| random.reals(elements)).collect();
        let values = rows.iter().map(|_| random.reals(elements)).collect();
        WriteCase { cache, rows: rows.to_vec(), keys, values }
    }

    /// The pool as it should be: rows that are not alive, padding and other layers as they were.
    fn expected(&mut self) -> Vec<u8> {
        let before = self.cache.bytes.clone();
        for (number, (slot, position, is_alive)) in self.rows.iter().copied().enumerate() {
            if is_alive {
                self.cache.put(slot, position, &self.keys[number], &self.values[number]);
            }
        }
        std::mem::replace(&mut self.cache.bytes, before)
    }

    /// The pool after a run.
    fn run(&self, bias: i32, snapshot: usize, groups: u32, change: Option<[u32; 2]>) -> Vec<u8> {
        self.run_counted(bias, snapshot, groups, change).0
    }

    /// The same, and the wave instructions that were executed.
    pub fn run_counted(
        &self,
        bias: i32,
        snapshot: usize,
        groups: u32,
        change: Option<[u32; 2]>,
    ) -> (Vec<u8>, u64) {
        let mut device = Device::new(bias);
        let elements = self.cache.elements as u32;
        let step_va = kv::step(&mut device, &self.rows, snapshot);
        let units = zrt_protocol::kv_write_units(elements);
        let mut header = params::KvWrite::header(step_va, units, RowSet::EachActive);
        header.rows |= ODD_SNAPSHOT * snapshot as u32;
        let buffer_va = device.upload(&self.cache.bytes);
        let block = params::KvWrite {
            header,
            key_va: device.upload(&strided(&self.keys)),
            value_va: device.upload(&strided(&self.values)),
            page_table_va: device.upload(&self.cache.table),
            pool_va: self.cache.pool_va(buffer_va),
            page_bytes: self.cache.page_bytes,
            pages_per_slot: self.cache.pages_per_slot as u32,
            row_elements: elements,
            row_bytes: self.cache.format.row_bytes(self.cache.elements) as u32,
            stride: elements * 4 + GAP_BYTES as u32,
        };
        let name = format!("kv_write_{}", self.cache.format.name());
        run(&mut device, &name, change, block.as_bytes(), groups);
        (device.bytes(buffer_va, self.cache.bytes.len()), device.wave_instructions())
    }

    pub fn check(&mut self, what: &str, bias: i32, snapshot: usize, groups: u32) {
        let (found, expected) = (self.run(bias, snapshot, groups, None), self.expected());
        let what = format!("{:?}, {what}, bias {bias}, {groups} groups", self.cache.format);
        assert_bytes(&what, &found, &expected);
    }
}

#[test]
fn kv_write_over_rows_of_several_slots_on_any_grid() {
    for format in KvFormat::ALL {
        for elements in [8, 32, 40, 128, 256, 300, 600] {
            let mut case = WriteCase::new(format, elements, &MIXED_ROWS);
            for (groups, snapshot) in [(1, 0), (3, 1), (29, 0)] {
                case.check(&format!("rows of {elements}"), 0, snapshot, groups);
            }
        }
    }
}

/// A full step of 128 rows, half of them alive.
#[test]
fn kv_write_of_a_full_step() {
    let rows: Vec<_> = (0..128).map(|row| (row % 64, row / 64 * 20 + row % 5, row % 3 != 0)).collect();
    for format in KvFormat::ALL {
        WriteCase::new(format, 64, &rows).check("full step", 0, 1, 16);
    }
}

/// Blocks of 32 elements in which the rules for rounding, small numbers and large numbers decide.
fn corner_blocks() -> Vec<Vec<f32>> {
    let block = |largest: f32, rest: &[f32]| {
        let mut block = vec![0.0; 32];
        block[31] = largest;
        block[..rest.len()].copy_from_slice(rest);
        block
    };
    let mut blocks = vec![
        vec![0.0; 32],
        vec![-0.0; 32],
        vec![1.0; 32],
        vec![f32::from_bits(1); 32],
        block(2f32.powi(-126), &[f32::from_bits(1), -2f32.powi(-127)]),
        // The greatest that f16 holds, as an element and as d; then what becomes infinite as an element.
        block(65504.0, &[1.0, -65503.9, 0.1]),
        block(65504.0 * 127.0, &[1e6, -65519.0, 65520.0, -70000.0]),
    ];
    // d is a power of two from below f16's range up: halves of it are ties, and their neighbours are not.
    for exponent in -27..8 {
        let d = 2f32.powi(exponent);
        let ties = [0.5, 1.5, 2.5, 3.5, 63.5, 126.5];
        let around: Vec<f32> = ties
            .iter()
            .flat_map(|tie| [(tie * d).next_down(), tie * d, -tie * d, -(tie * d).next_up()])
            .collect();
        blocks.push(block(127.0 * d, &around));
        // Largest elements around the border below which d is stored as 0, 1 and 2 steps of f16.
        for steps in [0.5f32, 1.5, 2.5] {
            let border = 127.0 * steps * d;
            for largest in [border.next_down(), border, border.next_up(), border.next_up().next_up()] {
                blocks.push(block(-largest, &[largest * 0.5, -largest * 0.25, largest * 0.3]));
            }
        }
    }
    blocks
}

/// These blocks as keys, and as values backwards with the other sign.
fn corner_case(format: KvFormat, mut blocks: Vec<Vec<f32>>) -> WriteCase {
    let elements = 1024;
    let count = blocks.len().div_ceil(elements / 32);
    blocks.resize(count * elements / 32, vec![0.0; 32]);
    let rows: Vec<(usize, usize, bool)> = (0..count).map(|row| (0, row, true)).collect();
    let mut case = WriteCase::new(format, elements, &rows);
    case.keys = blocks.concat().chunks(elements).map(<[f32]>::to_vec).collect();
    case.values = case.keys.iter().map(|row| row.iter().rev().map(|x| -x).collect()).collect();
    case
}

#[test]
fn kv_write_at_the_corners_of_the_formats() {
    let mut blocks = corner_blocks();
    let mut random = Random::new(5);
    // Largest elements with any bits, so that the quotient by 127 and the reciprocal meet many remainders.
    for _ in 0..400 {
        let scale = 2f32.powi(random.below(40) as i32 - 25);
        blocks.push(random.reals(32).iter().map(|x| x * scale).collect());
    }
    for format in KvFormat::ALL {
        let mut case = corner_case(format, blocks.clone());
        for bias in BIASES {
            case.check("corners", bias, 0, 5);
        }
    }
}

/// Small changes of a row's place and of the quantiser show in the stored rows.
#[test]
fn faults_in_kv_write_are_seen() {
    for format in KvFormat::ALL {
        let mut case = WriteCase::new(format, 40, &MIXED_ROWS);
        let expected = case.expected();
        // s_and_b32 s27, s27, 15 becomes 7: tokens 8..15 of a page take the place of 0..7.
        assert_ne!(case.run(0, 0, 3, Some([0x8B1B_8F1B, 0x8B1B_871B])), expected, "{format:?}");
    }
    let mut case = corner_case(KvFormat::Q8_0, corner_blocks());
    let expected = case.expected();
    assert_eq!(case.run(0, 0, 3, None), expected);
    for (what, change) in [
        ("the number below 1/2", [0x3EFF_FFFF, 0x3F00_0000]),
        ("where d is stored as 0", [0x3300_0000, 0x3280_0000]),
        ("1/127", [0x3C01_0204, 0x3C01_0304]),
        ("half away from zero", [0x3EFF_FFFF, 0x3EFF_FF00]),
    ] {
        assert_ne!(case.run(0, 0, 3, Some(change)), expected, "{what}");
    }
}

/// The kernel's quotient by 127 is the correctly rounded one for every significand.
#[test]
fn the_quotient_by_127_is_correctly_rounded() {
    let reciprocal = f32::from_bits(0x3C01_0204);
    for bits in 0x3F80_0000..0x4000_0000u32 {
        let x = f32::from_bits(bits);
        let quotient = x * reciprocal;
        let residual = quotient.mul_add(-127.0, x);
        assert_eq!(residual.mul_add(reciprocal, quotient).to_bits(), (x / 127.0).to_bits(), "{x:e}");
    }
}
