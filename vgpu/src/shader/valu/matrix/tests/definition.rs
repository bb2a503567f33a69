//! Matrix operations on random bits, compared with their definition: element by element, in the integer model of
//! arithmetic, at the places given by the tests' own tables.

use super::*;
use crate::shader::float::{BF8, Environment, HALF, SINGLE, SINGLE_NAN, convert, multiply_add};
use proptest::prelude::*;

const A: usize = 0;
const B: usize = 8;
const INDEX: usize = 24;
const C: usize = 32;

/// One operation with its modifiers, on data generated from the seed.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// Its VOP3P opcode.
    opcode: u32,
    destination: usize,
    /// An inline constant in place of registers: its code, and its value in each type of C.
    constant: Option<(u32, [u32; 4])>,
    neg_lo: u32,
    neg_hi: u32,
    clamp: bool,
    key: usize,
    is_wave64: bool,
    exec: u64,
    mode: u32,
    numbers: Numbers,
    seed: u64,
}

/// The kind of numbers in A and B.
#[derive(Clone, Copy, Debug)]
enum Numbers {
    /// Any bits.
    Any,
    /// Close exponents, so that sums round and cancel.
    Moderate,
    /// The same, with a few NaN, infinities, largest values and zeros.
    Mixed,
    /// Denormals and zeros.
    Tiny,
}

/// Inline 0, 1 and 1.0, as f32, f16, bfloat16 and i32.
const CONSTANTS: [(u32, [u32; 4]); 3] =
    [(128, [0; 4]), (129, [1; 4]), (242, [0x3F80_0000, 0x3C00, 0x3F80, 0x3F80_0000])];

fn cases() -> impl Strategy<Value = Case> {
    let opcode = prop_oneof![0x40..=0x4Au32, 0x50..=0x5Au32];
    let numbers = prop::sample::select(vec![Numbers::Any, Numbers::Moderate, Numbers::Mixed, Numbers::Tiny]);
    // Separate, or overlapping A, B, both or the index.
    let destination = prop::sample::select(vec![C, C, C, A, 1, 5, B, 20]);
    let constant = prop_oneof![3 => Just(None), 1 => prop::sample::select(CONSTANTS.to_vec()).prop_map(Some)];
    let exec = prop_oneof![3 => Just(u64::MAX), 2 => any::<u64>(), 1 => Just(0)];
    let modifiers = (0..8u32, 0..8u32, any::<bool>(), 0..4usize);
    (opcode, numbers, destination, constant, modifiers, any::<bool>(), exec, any::<u8>(), any::<u64>())
        .prop_map(|(opcode, numbers, destination, constant, modifiers, is_wave64, exec, mode, seed)| {
            let (neg_lo, neg_hi, clamp, key) = modifiers;
            let mode = u32::from(mode);
            let mut case = Case {
                opcode,
                destination,
                constant,
                neg_lo,
                neg_hi,
                clamp,
                key,
                is_wave64,
                exec,
                mode,
                numbers,
                seed,
            };
            let shape = case.shape();
            if shape.is_sparse {
                // The source is the index, and the destination is C.
                case.constant = None;
            }
            // A key names a part of the index register that holds one lane's pairs.
            let depth = shape.depth();
            let is_split = is_wave64 && depth / 2 * shape.a.bits() > 32;
            let keys = 32 / if is_split { depth / 2 } else { depth };
            case.key = if shape.is_sparse { key % keys } else { 0 };
            // Signs of A and B, and of C; the other modifiers have no encoding.
            let signs =
                if shape.a.bits() == 16 { 0b011 } else { 0 } | if shape.is_sparse { 0 } else { 0b100 };
            if shape.sum == Sum::I32 {
                (case.neg_lo, case.neg_hi) = (neg_lo & 0b011, 0);
            } else {
                (case.neg_lo, case.neg_hi, case.clamp) = (neg_lo & signs, neg_hi & signs, false);
            }
            case
        })
}

impl Case {
    fn words(&self) -> [u32; 2] {
        let is_sparse = self.opcode >= 0x50;
        let registers = 256 + if is_sparse { INDEX } else { C } as u32;
        let third = self.constant.map_or(registers, |(code, _)| code);
        [
            0xCC00_4000
                | self.opcode << 16
                | self.destination as u32
                | self.neg_hi << 8
                | (self.key as u32) << 11
                | u32::from(self.clamp) << 15,
            0x1800_0000 | self.neg_lo << 29 | third << 18 | (256 + B as u32) << 9 | (256 + A as u32),
        ]
    }

    fn shape(&self) -> Shape {
        let plain = Case { constant: None, neg_lo: 0, neg_hi: 0, clamp: false, key: 0, ..*self };
        let opcode = decode(&plain.words()).unwrap().opcode;
        SHAPES.into_iter().find(|(of, _)| *of == opcode).unwrap().1
    }

    fn start(&self) -> Banks {
        let shape = self.shape();
        let mut random = Random::new(self.seed);
        let mut banks = Banks::new();
        banks.0.iter_mut().flat_map(|bank| bank.iter_mut()).for_each(|row| *row = random.row());
        for (first, element, inner) in [(A, shape.a, shape.depth()), (B, shape.b, shape.inner)] {
            let values: Vec<u32> =
                (0..SIDE * inner).map(|_| self.numbers.element(element, &mut random)).collect();
            banks.fill(first, element.bits(), inner, self.is_wave64, |line, k| values[line * inner + k]);
        }
        banks
    }

    /// The expected registers afterwards.
    fn expected(&self, start: &Banks) -> Banks {
        let shape = self.shape();
        let (bits, sum_bits) = (shape.a.bits(), shape.sum.bits());
        let a = start.elements(A, bits, shape.depth(), self.is_wave64);
        let b = start.elements(B, bits, shape.inner, self.is_wave64);
        let mut end = start.clone();
        for i in SIDES {
            for j in SIDES {
                let (lane, g, e) = result_place(sum_bits, i, j, self.is_wave64);
                if self.exec >> lane & 1 == 0 {
                    continue;
                }
                let pairs = (0..shape.depth()).map(|k| {
                    let met = self.meets(start, i, k);
                    ([k, met], a[i][k], b[j][met])
                });
                let first = if shape.is_sparse { self.destination } else { C };
                let addend = match self.constant {
                    Some((_, values)) => values[shape.sum as usize],
                    None => start.get(first + g, lane, sum_bits, e),
                };
                let value = if shape.sum == Sum::I32 {
                    self.integer(bits, addend, pairs)
                } else {
                    self.float(shape, addend, pairs)
                };
                end.set(self.destination + g, lane, sum_bits, e, value);
            }
        }
        end
    }

    /// Row of B that is multiplied with stored element `k` of a row of A.
    fn meets(&self, start: &Banks, row: usize, k: usize) -> usize {
        let shape = self.shape();
        if !shape.is_sparse {
            return k;
        }
        let (lane, nibble) = index_place(row, k / 2, shape.a.bits(), shape.depth(), self.is_wave64, self.key);
        let pair = start.get(INDEX, lane, 4, nibble) as usize;
        4 * (k / 2) + if k % 2 == 0 { pair & 3 } else { pair >> 2 }
    }

    fn integer(&self, bits: usize, addend: u32, pairs: impl Iterator<Item = ([usize; 2], u32, u32)>) -> u32 {
        let signed = |source: u32| self.neg_lo >> source & 1 != 0;
        let products: i64 = pairs
            .map(|(_, a, b)| sign_extended(a, bits, signed(0)) * sign_extended(b, bits, signed(1)))
            .sum();
        let exact = products + i64::from(addend as i32);
        (if self.clamp { exact.clamp(i32::MIN.into(), i32::MAX.into()) } else { exact }) as u32
    }

    fn float(&self, shape: Shape, addend: u32, pairs: impl Iterator<Item = ([usize; 2], u32, u32)>) -> u32 {
        let sign = |is_negated: bool| if is_negated { 1 << 31 } else { 0u32 };
        let flip = |source: u32, k: usize| {
            let bits = if k % 2 == 0 { self.neg_lo } else { self.neg_hi };
            sign(bits >> source & 1 != 0)
        };
        let mut sum = match shape.sum {
            Sum::F16 => single(Element::F16, addend),
            Sum::Bf16 => single(Element::Bf16, addend),
            Sum::F32 | Sum::I32 => addend,
        };
        if !shape.is_sparse {
            sum = sum & !sign(self.neg_hi >> 2 != 0) ^ sign(self.neg_lo >> 2 != 0);
        }
        for ([k, met], a, b) in pairs {
            let (a, b) = (single(shape.a, a) ^ flip(0, k), single(shape.b, b) ^ flip(1, met));
            let sources = [a, b, sum].map(u64::from);
            sum = multiply_add(SINGLE, sources, Environment::DEFAULT) as u32;
        }
        match shape.sum {
            Sum::F16 => convert(SINGLE, HALF, sum.into(), Environment::DEFAULT, Environment::DEFAULT) as u32,
            Sum::Bf16 if SINGLE.is_nan(sum.into()) => 0x7FC0,
            Sum::Bf16 => {
                let (kept, rest) = (sum >> 16, sum & 0xFFFF);
                let is_up = rest > 0x8000 || rest == 0x8000 && kept & 1 != 0;
                kept + u32::from(is_up)
            }
            Sum::F32 | Sum::I32 => sum,
        }
    }
}

impl Numbers {
    fn element(self, element: Element, random: &mut Random) -> u32 {
        let (bits, fraction_bits, exponent_bits) = match element {
            Element::F16 => (16, 10, 5),
            Element::Bf16 => (16, 7, 8),
            Element::Fp8 => (8, 3, 4),
            Element::Bf8 => (8, 2, 5),
            Element::Byte | Element::Nibble => return random.next() & (u32::MAX >> (32 - element.bits())),
        };
        let any = random.next() & (u32::MAX >> (32 - bits));
        let (sign, fraction) = (any & 1 << (bits - 1), any & ((1 << fraction_bits) - 1));
        let moderate =
            sign | fraction | ((1 << (exponent_bits - 1)) - 4 + random.next() % 7) << fraction_bits;
        let infinity = ((1 << exponent_bits) - 1) << fraction_bits;
        match self {
            Numbers::Any => any,
            Numbers::Moderate => moderate,
            Numbers::Mixed if random.next() % 64 == 0 => {
                sign | [0, 1, infinity - 1, infinity, infinity | fraction][random.next() as usize % 5]
            }
            Numbers::Mixed => moderate,
            Numbers::Tiny => sign | if random.next() % 4 == 0 { 0 } else { fraction },
        }
    }
}

impl Banks {
    /// Lines of A or B.
    fn elements(&self, first: usize, bits: usize, inner: usize, is_wave64: bool) -> Vec<Vec<u32>> {
        let mut lines = vec![vec![0; inner]; SIDE];
        for (line, elements) in lines.iter_mut().enumerate() {
            for (g, e, h, q) in operand_places(bits, inner, is_wave64) {
                elements[table(bits, inner, is_wave64, g, e, h, q)] =
                    self.get(first + g, 32 * q + 16 * h + line, bits, e);
            }
        }
        lines
    }
}

/// f32 of an element.
fn single(element: Element, bits: u32) -> u32 {
    let of = |format| convert(format, SINGLE, bits.into(), Environment::DEFAULT, Environment::DEFAULT) as u32;
    match element {
        Element::F16 => of(HALF),
        Element::Bf8 => of(BF8),
        Element::Bf16 => bits << 16,
        Element::Fp8 => {
            let (exponent, fraction) = ((bits >> 3 & 15) as i32, (bits & 7) as f32);
            let magnitude = match exponent {
                15 if bits & 7 == 7 => return SINGLE_NAN,
                0 => fraction * 2f32.powi(-9),
                _ => (8.0 + fraction) * 2f32.powi(exponent - 10),
            };
            magnitude.to_bits() | (bits >> 7) << 31
        }
        Element::Byte | Element::Nibble => unreachable!("integers have a sum of their own"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn results_are_those_of_the_definition(case in cases()) {
        let mut banks = case.start();
        let expected = case.expected(&banks);
        banks.run_with(&case.words(), case.is_wave64, case.exec, case.mode);
        for (bank, (found, expected)) in banks.0.iter().zip(&expected.0).enumerate() {
            for (register, (found, expected)) in found.iter().zip(expected.iter()).enumerate() {
                for (lane, (found, expected)) in found.0.iter().zip(expected.0).enumerate() {
                    prop_assert!(
                        *found == expected,
                        "v{register} lane {}: {found:#010x}, not {expected:#010x}", 32 * bank + lane
                    );
                }
            }
        }
    }
}
