//! VOPD: both halves of every pair are what the two instructions are by themselves, in every mode of f32.

use crate::shader::valu::testing::{MODE_USUAL, Random, assert_same, run_all, wave};

const LITERAL: u32 = 0x4049_0FDB;

/// An operation: its number in a pair, and its words by itself on v0, v1, v2 and on v3, v4, v5.
type Operation = (u32, &'static [u32], &'static [u32]);

/// In the order of their numbers; X has no operation for the last three.
const OPERATIONS: [Operation; 15] = [
    // v_fmac_f32, v_fmaak_f32, v_fmamk_f32
    (0, &[0x5600_0501], &[0x5606_0B04]),
    (1, &[0x5A00_0501, LITERAL], &[0x5A06_0B04, LITERAL]),
    (2, &[0x5800_0501, LITERAL], &[0x5806_0B04, LITERAL]),
    // v_mul_f32, v_add_f32, v_sub_f32, v_subrev_f32, v_mul_dx9_zero_f32
    (3, &[0x1000_0501], &[0x1006_0B04]),
    (4, &[0x0600_0501], &[0x0606_0B04]),
    (5, &[0x0800_0501], &[0x0806_0B04]),
    (6, &[0x0A00_0501], &[0x0A06_0B04]),
    (7, &[0x0E00_0501], &[0x0E06_0B04]),
    // v_mov_b32, v_cndmask_b32, v_max_num_f32, v_min_num_f32
    (8, &[0x7E00_0301], &[0x7E06_0304]),
    (9, &[0x0200_0501], &[0x0206_0B04]),
    (10, &[0x2C00_0501], &[0x2C06_0B04]),
    (11, &[0x2A00_0501], &[0x2A06_0B04]),
    // v_add_nc_u32, v_lshlrev_b32, v_and_b32
    (16, &[], &[0x4A06_0B04]),
    (17, &[], &[0x3006_0B04]),
    (18, &[], &[0x3606_0B04]),
];

/// The words of a pair: X on v0, v1, v2 and Y on v3, v4, v5.
fn pair(x: u32, y: u32) -> Vec<u32> {
    const MOVE: u32 = 8;
    let second = |number: u32, register: u32| if number == MOVE { 0 } else { register << 9 };
    let mut words = vec![
        0xC800_0101 | x << 22 | y << 17 | second(x, 2),
        // The destinations are v0 and, with the lowest bit that X does not have, v3.
        0x0002_0104 | second(y, 5),
    ];
    if [x, y].iter().any(|number| matches!(number, 1 | 2)) {
        words.push(LITERAL);
    }
    words
}

#[test]
fn a_pair_is_its_two_instructions_in_every_mode() {
    assert_eq!(
        pair(8, 17),
        [0xCA22_0101, 0x0002_0B04],
        "v_dual_mov_b32 v0, v1 :: v_dual_lshlrev_b32 v3, v4, v5"
    );
    let mut random = Random::new(67);
    // Rounding and denormals of f32; the fields of the others have no influence.
    let modes = [MODE_USUAL, 0xF1, 0xC2, 0xD3, 0xE0, 0x3C];
    for (index, (x, first, _)) in OPERATIONS.iter().enumerate().take(12) {
        // With itself, and with two others: each occurs as Y at least once.
        for (y, _, second) in [index, (index + 3) % 15, (index + 5) % 15].map(|other| OPERATIONS[other]) {
            for mode in modes {
                let mut start = wave();
                start.mode = mode;
                for register in 0..6 {
                    start.vector[register] = random.row();
                    // Small numbers, whose sums and products are denormal.
                    for lane in 0..8 {
                        start.vector[register].0[lane] = random.next() & 0x80FF_FFFF;
                        start.vector[register].0[lane + 8] = random.next() & 0x801F_FFFF | 0x1F80_0000;
                    }
                }
                start.scalar[106] = random.next();
                start.scalar[126] = random.next() | 0xFFFF;
                let together = run_all(&start, &pair(*x, y));
                let one_by_one = run_all(&run_all(&start, first), second);
                assert_same(&together, &one_by_one, &format!("{x} and {y}, mode {mode:#x}"));
            }
        }
    }
}

/// A sum of two denormals and a product that is one, so that the modes above differ in both halves.
#[test]
fn a_pair_flushes_what_mode_says() {
    // v_dual_add_f32 v0, v1, v2 :: v_dual_mul_f32 v3, v4, v5
    let words = pair(4, 3);
    for (mode, sum, product) in [
        (0xF0, 3, 0x0020_0000),
        (0xC0, 0, 0),
        // Results only, and sources only.
        (0xD0, 0, 0),
        (0xE0, 0, 0x0020_0000),
    ] {
        let mut start = wave();
        start.mode = mode;
        // 2^-126 / 4 is denormal; its factors are not.
        for (register, bits) in [(1, 1), (2, 2), (4, 0x0080_0000), (5, f32::to_bits(0.25))] {
            start.vector[register].0 = [bits; 32];
        }
        let end = run_all(&start, &words);
        assert_eq!((end.vector[0].0[9], end.vector[3].0[9]), (sum, product), "mode {mode:#x}");
    }
}
