//! The places of all elements against the reference's tables, and what f32 holds of their products.

use super::layout::Layout;
use super::*;

/// Every operation in both wave sizes.
fn operations() -> impl Iterator<Item = (Shape, bool)> {
    SHAPES.into_iter().flat_map(|(_, shape)| [(shape, false), (shape, true)])
}

#[test]
fn elements_lie_where_the_tables_say() {
    for (shape, is_wave64) in operations() {
        for (element, depth) in [(shape.a, shape.depth()), (shape.b, shape.inner)] {
            let bits = element.bits();
            for (g, e, h, q) in operand_places(bits, depth, is_wave64) {
                let k = table(bits, depth, is_wave64, g, e, h, q);
                for line in SIDES {
                    let place = operand_place(bits, depth, line, k, is_wave64);
                    let found = (place.lane, place.register(bits), place.shift(bits));
                    assert_eq!(
                        found,
                        (32 * q + 16 * h + line, g, bits * e),
                        "{shape:?} {is_wave64} {line} {k}"
                    );
                }
            }
        }
        let bits = shape.sum.bits();
        for row in SIDES {
            for column in SIDES {
                let place = sum_place(bits, row, column, is_wave64);
                let found = (place.lane, place.register(bits), place.shift(bits) / bits);
                assert_eq!(found, result_place(bits, row, column, is_wave64), "{row} {column} {is_wave64}");
            }
        }
    }
}

/// In ascending order of k or rows, those of line 0.
#[test]
fn runs_are_the_dwords_of_the_tables() {
    for (shape, is_wave64) in operations() {
        let layout = Layout::new(shape, is_wave64);
        for (runs, element, depth) in
            [(layout.a(shape), shape.a, shape.depth()), (layout.b(shape), shape.b, shape.inner)]
        {
            let bits = element.bits();
            let mut expected: Vec<_> = operand_places(bits, depth, is_wave64)
                .into_iter()
                .filter(|(_, e, _, _)| *e == 0)
                .map(|(g, e, h, q)| (table(bits, depth, is_wave64, g, e, h, q), 32 * q + 16 * h, g))
                .collect();
            expected.sort_unstable();
            let found: Vec<_> = runs
                .iter()
                .enumerate()
                .map(|(number, run)| (number * 32 / bits, run.first_lane(), usize::from(run.register)))
                .collect();
            assert_eq!(found, expected, "{shape:?} {is_wave64}");
        }
        let bits = shape.sum.bits();
        let first = |row: usize| {
            let (lane, register, _) = result_place(bits, row, 0, is_wave64);
            (lane, register)
        };
        let expected: Vec<_> = SIDES.step_by(32 / bits).map(first).collect();
        let runs = layout.sum(shape).iter();
        let found: Vec<_> = runs.map(|run| (run.first_lane(), usize::from(run.register))).collect();
        assert_eq!(found, expected, "{shape:?} {is_wave64}");
    }
}

/// The bits of a significand, and the exponents of the last place of the smallest number and of the largest number.
fn range(element: Element) -> (i32, i32, i32) {
    match element {
        Element::F16 => (11, -24, 15),
        Element::Bf16 => (8, -133, 127),
        Element::Fp8 => (4, -9, 8),
        Element::Bf8 => (3, -16, 15),
        Element::Byte => (8, 0, 7),
        Element::Nibble => (4, 0, 3),
    }
}

#[test]
fn products_are_exact_if_f32_holds_the_smallest_and_the_largest() {
    for (opcode, shape) in SHAPES {
        let [(bits_a, smallest_a, largest_a), (bits_b, smallest_b, largest_b)] =
            [shape.a, shape.b].map(range);
        let fits = bits_a + bits_b <= 24 && smallest_a + smallest_b >= -149 && largest_a + largest_b < 127;
        assert_eq!(shape.has_exact_products(), fits, "{opcode:?}");
    }
}

/// 1.5 · 2^-75 times 2^-74 plus 2^-149 is 2.5 · 2^-149. If the product were rounded first, it would be 3 · 2^-149.
#[test]
fn a_product_of_bfloats_that_is_too_small_is_rounded_with_the_sum() {
    let mut banks = Banks::new();
    banks.fill(0, 16, 16, false, |_, k| if k == 0 { 0x1A40 } else { 0 });
    banks.fill(8, 16, 16, false, |_, _| 0x1A80);
    for register in 32..40 {
        banks.0[0][register].0 = [1; 32];
    }
    banks.run(
        code("v_wmma_f32_16x16x16_bf16 v[32:39], v[0:3], v[8:11], v[32:39]", &[0xCC41_4020, 0x1C82_1100]),
        false,
    );
    assert!((32..40).all(|register| banks.0[0][register].0 == [2; 32]));
}
