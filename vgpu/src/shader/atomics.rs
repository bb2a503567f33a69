//! Read-modify-write operations of memory and LDS (instruction set reference §9).
//!
//! Contract: one pure function computes the new value from the old one. On memory it is applied by a host
//! compare-exchange loop, on LDS directly. Lanes execute in ascending order. Addresses must be multiples of the
//! width. Cost: about 10 ns per active lane on memory, 2 on LDS.

use zrt_isa::opcode::Properties;
use zrt_isa::{Instruction, Operand};

use crate::memory::{Defects, Rights};
use crate::shader::address::{AddressMode, Target, vector_source};
use crate::shader::fault::WaveFaultKind;
use crate::shader::float::{Environment, HALF, add};
use crate::shader::lane_access::{active, private_va, target, write_lanes};
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp};
use crate::shader::valu::single;
use crate::shader::wave::{LANES, Wave};
use crate::simd::{Executor, Operation};
use zrt_mem::SharedView;

/// What an operation does with the old value, the data and, for some operations, a second datum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Swap,
    /// New value and value to compare.
    CompareSwap,
    Add,
    Subtract,
    /// Data minus old.
    ReverseSubtract,
    SubtractClamp,
    ConditionalSubtract,
    MinSigned,
    MinUnsigned,
    MaxSigned,
    MaxUnsigned,
    And,
    Or,
    Xor,
    /// Clears the bits of the data, then sets those of the second datum.
    MaskOr,
    Increment,
    Decrement,
    MinFloat,
    MaxFloat,
    AddFloat,
    AddPackedHalf,
    AddPackedBfloat,
}

const KINDS: [Kind; 22] = [
    Kind::Swap,
    Kind::CompareSwap,
    Kind::Add,
    Kind::Subtract,
    Kind::ReverseSubtract,
    Kind::SubtractClamp,
    Kind::ConditionalSubtract,
    Kind::MinSigned,
    Kind::MinUnsigned,
    Kind::MaxSigned,
    Kind::MaxUnsigned,
    Kind::And,
    Kind::Or,
    Kind::Xor,
    Kind::MaskOr,
    Kind::Increment,
    Kind::Decrement,
    Kind::MinFloat,
    Kind::MaxFloat,
    Kind::AddFloat,
    Kind::AddPackedHalf,
    Kind::AddPackedBfloat,
];

/// Bits of [`MicroOp::modifiers`] of an atomic: kind, 64-bit, returns the old value.
const KIND_MASK: u32 = 0xFF;
const WIDE: u32 = 1 << 8;
const RETURNS: u32 = 1 << 9;

impl Kind {
    /// Parses the end of a mnemonic (`add_u32`, `cmpswap_b64`): the kind and whether it is 64 bits wide.
    pub fn parse(name: &str) -> Option<(Kind, bool)> {
        let (verb, data) = name.rsplit_once('_')?;
        let wide = data.ends_with("64");
        let kind = match (verb, data) {
            ("swap" | "storexchg", _) => Kind::Swap,
            ("cmpswap" | "cmpstore", _) => Kind::CompareSwap,
            ("add", "f32") => Kind::AddFloat,
            ("add", "u32" | "u64") => Kind::Add,
            ("sub", _) => Kind::Subtract,
            ("rsub", _) => Kind::ReverseSubtract,
            ("sub_clamp", _) => Kind::SubtractClamp,
            ("cond_sub", _) => Kind::ConditionalSubtract,
            ("min", "i32" | "i64") => Kind::MinSigned,
            ("min", _) => Kind::MinUnsigned,
            ("max", "i32" | "i64") => Kind::MaxSigned,
            ("max", _) => Kind::MaxUnsigned,
            ("and", _) => Kind::And,
            ("or", _) => Kind::Or,
            ("xor", _) => Kind::Xor,
            ("mskor", _) => Kind::MaskOr,
            ("inc", _) => Kind::Increment,
            ("dec", _) => Kind::Decrement,
            ("min_num", _) => Kind::MinFloat,
            ("max_num", _) => Kind::MaxFloat,
            ("pk_add", "f16") => Kind::AddPackedHalf,
            ("pk_add", "bf16") => Kind::AddPackedBfloat,
            _ => return None,
        };
        Some((kind, wide))
    }

    /// The kind that the micro operation names.
    pub fn of(op: &MicroOp) -> Kind {
        KINDS[(op.modifiers & KIND_MASK) as usize % KINDS.len()]
    }

    /// The new value.
    pub fn apply(self, wide: bool, old: u64, data: u64, second: u64) -> u64 {
        let value = match self {
            Kind::Swap => data,
            Kind::CompareSwap => {
                if old == second {
                    data
                } else {
                    old
                }
            }
            Kind::Add => old.wrapping_add(data),
            Kind::Subtract => old.wrapping_sub(data),
            Kind::ReverseSubtract => data.wrapping_sub(old),
            Kind::SubtractClamp => old.saturating_sub(data),
            Kind::ConditionalSubtract => {
                if old >= data {
                    old - data
                } else {
                    old
                }
            }
            Kind::MinSigned => {
                if signed(wide, data) < signed(wide, old) {
                    data
                } else {
                    old
                }
            }
            Kind::MaxSigned => {
                if signed(wide, data) > signed(wide, old) {
                    data
                } else {
                    old
                }
            }
            Kind::MinUnsigned => old.min(data),
            Kind::MaxUnsigned => old.max(data),
            Kind::And => old & data,
            Kind::Or => old | data,
            Kind::Xor => old ^ data,
            Kind::MaskOr => old & !data | second,
            Kind::Increment => {
                if old >= data {
                    0
                } else {
                    old + 1
                }
            }
            Kind::Decrement => {
                if old == 0 || old > data {
                    data
                } else {
                    old - 1
                }
            }
            Kind::MinFloat if wide => number_f64(old, data, |a, b| a < b),
            Kind::MaxFloat if wide => number_f64(old, data, |a, b| a > b),
            Kind::MinFloat => single::minimum_number(old as u32, data as u32).into(),
            Kind::MaxFloat => single::maximum_number(old as u32, data as u32).into(),
            Kind::AddFloat => {
                single::canonical(f32::from_bits(old as u32) + f32::from_bits(data as u32)).into()
            }
            Kind::AddPackedHalf => halves(old, data, |a, b| add(HALF, a, b, Environment::DEFAULT)),
            Kind::AddPackedBfloat => halves(old, data, add_bfloat),
        };
        if wide { value } else { value & 0xFFFF_FFFF }
    }
}

fn signed(wide: bool, value: u64) -> i64 {
    if wide { value as i64 } else { value as u32 as i32 as i64 }
}

fn halves(old: u64, data: u64, apply: impl Fn(u64, u64) -> u64) -> u64 {
    apply(old & 0xFFFF, data & 0xFFFF) | apply(old >> 16 & 0xFFFF, data >> 16 & 0xFFFF) << 16
}

/// The f32 sum has more than twice the bits of a bfloat, so rounding it again changes nothing.
fn add_bfloat(a: u64, b: u64) -> u64 {
    let sum = f32::from_bits((a as u32) << 16) + f32::from_bits((b as u32) << 16);
    if sum.is_nan() {
        return 0x7FC0;
    }
    let bits = sum.to_bits();
    u64::from((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)
}

/// Returns the number if one of the two is a NaN; -0 is below +0.
fn number_f64(old: u64, data: u64, before: impl Fn(i64, i64) -> bool) -> u64 {
    const QUIET: u64 = 1 << 51;
    let key = |bits: u64| (bits ^ (((bits as i64) >> 63) as u64 >> 1)) as i64;
    let is_nan = |bits: u64| f64::from_bits(bits).is_nan();
    match (is_nan(old), is_nan(data)) {
        (true, true) => old | QUIET,
        (true, false) => data,
        (false, true) => old,
        _ => {
            if before(key(data), key(old)) {
                data
            } else {
                old
            }
        }
    }
}

/// Fills the fields of a memory atomic.
pub(crate) fn describe(instruction: &Instruction, op: &mut MicroOp) {
    if !instruction.opcode.operands().properties.contains(Properties::ATOMIC) {
        return;
    }
    if let Some((kind, wide)) = parse(instruction) {
        let returns = matches!(instruction.destination, Operand::Vector(_));
        op.modifiers = kind as u32 | if wide { WIDE } else { 0 } | if returns { RETURNS } else { 0 };
    }
}

fn parse(instruction: &Instruction) -> Option<(Kind, bool)> {
    let (_, name) = instruction.opcode.mnemonic().split_once("_atomic_")?;
    Kind::parse(name)
}

/// The function of a memory atomic.
pub(crate) fn function<A: AddressMode>(instruction: &Instruction) -> Option<Executor> {
    parse(instruction)?;
    Some(Executor::baseline::<MemoryAtomic<A>>())
}

struct MemoryAtomic<A>(std::marker::PhantomData<A>);
impl<A: AddressMode> Operation for MemoryAtomic<A> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        let exec = wave.exec();
        let wide = op.modifiers & WIDE != 0;
        let mut old = [[0; LANES]; 2];
        for lane in active(exec) {
            match update::<A>(wave, op, machine, lane, wide) {
                Ok(value) => (old[0][lane], old[1][lane]) = (value as u32, (value >> 32) as u32),
                Err(kind) => return machine.fail_lane(kind, lane),
            }
        }
        if op.modifiers & RETURNS != 0 {
            for (index, row) in old.iter().enumerate().take(1 + wide as usize) {
                write_lanes(wave, op.destination as usize + index, exec, row);
            }
        }
        Flow::Next
    }
}

/// One lane's operation. Returns the old value.
fn update<A: AddressMode>(
    wave: &Wave,
    op: &MicroOp,
    machine: &mut Machine<'_>,
    lane: usize,
    wide: bool,
) -> Result<u64, WaveFaultKind> {
    let kind = Kind::of(op);
    let data = datum(wave, vector_source(op, 1), lane, wide);
    let second = match kind {
        Kind::CompareSwap => datum(wave, vector_source(op, 1) + 1 + wide as usize, lane, wide),
        _ => 0,
    };
    let width = if wide { 8 } else { 4 };
    machine.memory.set_lane(lane);
    match target::<A>(wave, op, machine, lane, width)? {
        Target::Outside => Ok(0),
        Target::Lds(address) => Ok(machine.lds.update(address, kind, wide, data, second)),
        Target::Global(va) if va % width as u64 == 0 => {
            let watched = machine.memory.watched_atomic(va, width, |old| kind.apply(wide, old, data, second));
            match watched {
                Some(outcome) => outcome.map_err(WaveFaultKind::Page),
                None => update_memory(machine, va, width, kind, data, second),
            }
        }
        Target::Global(va) => Err(WaveFaultKind::Misaligned { va, width: width as u32 }),
        // Dwords of a lane's private segment are not adjacent: only 32 bits have one address.
        Target::Private(offset) if !wide && offset % 4 == 0 => {
            update_memory(machine, private_va(machine, lane, offset), width, kind, data, second)
        }
        Target::Private(offset) => Err(WaveFaultKind::Misaligned { va: offset, width: width as u32 }),
    }
}

/// An update of memory at a multiple of the width.
fn update_memory(
    machine: &mut Machine<'_>,
    va: u64,
    width: usize,
    kind: Kind,
    data: u64,
    second: u64,
) -> Result<u64, WaveFaultKind> {
    let access = Rights::READ | Rights::WRITE;
    let Some((view, offset)) = machine.memory.range(va, va.wrapping_add(width as u64 - 1), access) else {
        return update_slowly(machine, va, width, kind, data, second);
    };
    Ok(exchange(view, offset as usize, width, kind, data, second))
}

/// The same if memory cannot be accessed in the usual way: at the edge of a range, or with a deliberate defect.
#[cold]
fn update_slowly(
    machine: &mut Machine<'_>,
    va: u64,
    width: usize,
    kind: Kind,
    data: u64,
    second: u64,
) -> Result<u64, WaveFaultKind> {
    let table = machine.memory.table();
    let (view, offset) =
        table.translate(va, width, Rights::READ | Rights::WRITE).map_err(WaveFaultKind::Page)?;
    if table.defects(va).contains(Defects::LOSES_ATOMICS) {
        return Ok(0);
    }
    Ok(exchange(view, offset, width, kind, data, second))
}

fn exchange(view: &SharedView, offset: usize, width: usize, kind: Kind, data: u64, second: u64) -> u64 {
    if width == 8 {
        return view.update_u64(offset, |old| kind.apply(true, old, data, second));
    }
    view.update_u32(offset, |old| kind.apply(false, old.into(), data, second) as u32).into()
}

/// A lane's datum of 32 or 64 bits.
pub(crate) fn datum(wave: &Wave, register: usize, lane: usize, wide: bool) -> u64 {
    let low = wave.vector[register & 255].0[lane] as u64;
    if wide { low | (wave.vector[(register + 1) & 255].0[lane] as u64) << 32 } else { low }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_atomic_of_memory_has_a_kind_except_the_ordered_one() {
        for opcode in zrt_isa::opcode::OPCODES {
            let Some((_, name)) = opcode.mnemonic().split_once("_atomic_") else { continue };
            assert_eq!(Kind::parse(name).is_some(), name != "ordered_add_b64", "{name}");
        }
        for (index, kind) in KINDS.iter().enumerate() {
            assert_eq!(*kind as usize, index);
        }
    }

    #[test]
    fn operations_give_the_documented_results() {
        let check = |name: &str, old: u64, data: u64, second: u64, expected: u64| {
            let (kind, wide) = Kind::parse(name).unwrap();
            assert_eq!(kind.apply(wide, old, data, second), expected, "{name}");
        };
        check("add_u32", 0xFFFF_FFFF, 2, 0, 1);
        check("add_u64", 0xFFFF_FFFF, 2, 0, 0x1_0000_0001);
        check("sub_u32", 1, 2, 0, 0xFFFF_FFFF);
        check("rsub_u32", 1, 3, 0, 2);
        check("sub_clamp_u32", 1, 2, 0, 0);
        check("cond_sub_u32", 1, 2, 0, 1);
        check("cond_sub_u32", 5, 2, 0, 3);
        check("min_i32", 0xFFFF_FFFF, 1, 0, 0xFFFF_FFFF);
        check("min_u32", 0xFFFF_FFFF, 1, 0, 1);
        check("max_i64", u64::MAX, 1, 0, 1);
        check("max_u64", u64::MAX, 1, 0, u64::MAX);
        check("inc_u32", 4, 5, 0, 5);
        check("inc_u32", 5, 5, 0, 0);
        check("dec_u32", 0, 5, 0, 5);
        check("dec_u32", 6, 5, 0, 5);
        check("dec_u32", 3, 5, 0, 2);
        check("cmpswap_b32", 7, 9, 7, 9);
        check("cmpswap_b32", 7, 9, 8, 7);
        check("mskor_b32", 0xFF, 0x0F, 0x100, 0x1F0);
        check("add_f32", 0x3FC0_0000, 0x3F00_0000, 0, 0x4000_0000);
        check("min_num_f32", 0x7FC0_0000, 0x4000_0000, 0, 0x4000_0000);
        check("max_num_f64", 0x8000_0000_0000_0000, 0, 0, 0);
        check("pk_add_f16", 0x3C00_4000, 0x3C00_3C00, 0, 0x4000_4200);
        check("pk_add_bf16", 0x3F80_4000, 0x3F80_3F80, 0, 0x4000_4040);
        // 1 + 2^-8 lies half-way between two bfloats and rounds to even. 1 + 2^-8 + 2^-15 is above.
        check("pk_add_bf16", 0x3F80, 0x3B80, 0, 0x3F80);
        check("pk_add_bf16", 0x3F81, 0x3B80, 0, 0x3F82);
    }

    /// Every integer operation on all pairs of values at the edges, in arithmetic that does not wrap.
    #[test]
    fn integers_follow_their_definitions_at_the_edges() {
        for bits in [32, 64] {
            let modulus = 1i128 << bits;
            let half = modulus / 2;
            let signed = |value: i128| if value >= half { value - modulus } else { value };
            let edges = [0, 1, 2, 0x5555, half - 1, half, half + 1, modulus - 2, modulus - 1];
            for (old, data) in edges.into_iter().flat_map(|old| edges.map(|data| (old, data))) {
                let (lesser, greater) = if signed(data) < signed(old) { (data, old) } else { (old, data) };
                for (name, expected) in [
                    ("swap_b", data),
                    ("storexchg_b", data),
                    ("add_u", (old + data) % modulus),
                    ("sub_u", (old - data).rem_euclid(modulus)),
                    ("rsub_u", (data - old).rem_euclid(modulus)),
                    ("sub_clamp_u", (old - data).max(0)),
                    ("cond_sub_u", if old >= data { old - data } else { old }),
                    ("min_i", lesser),
                    ("max_i", greater),
                    ("min_u", old.min(data)),
                    ("max_u", old.max(data)),
                    ("and_b", old & data),
                    ("or_b", old | data),
                    ("xor_b", (old | data) - (old & data)),
                    ("inc_u", if old >= data { 0 } else { old + 1 }),
                    ("dec_u", if old == 0 || old > data { data } else { old - 1 }),
                ] {
                    let name = format!("{name}{bits}");
                    let (kind, wide) = Kind::parse(&name).unwrap();
                    assert_eq!(wide, bits == 64, "{name}");
                    let result = kind.apply(wide, old as u64, data as u64, 0);
                    assert_eq!(i128::from(result), expected, "{name} of {old:#x} {data:#x}");
                }
                for second in edges {
                    let with = |verb: &str| {
                        let (kind, wide) = Kind::parse(&format!("{verb}_b{bits}")).unwrap();
                        i128::from(kind.apply(wide, old as u64, data as u64, second as u64))
                    };
                    assert_eq!(with("cmpstore"), if old == second { data } else { old });
                    assert_eq!(with("cmpswap"), if old == second { data } else { old });
                    // The bits of the datum are cleared, those of the second datum are set.
                    assert_eq!(with("mskor"), old & (modulus - 1 - data) | second);
                }
            }
        }
    }

    /// A number wins against a NaN, -0 is below +0, and a NaN alone becomes quiet.
    #[test]
    fn floats_have_an_order() {
        let check = |name: &str, ascending: &[u64], [quiet, signalling]: [u64; 2]| {
            let apply = |verb: &str, old: u64, data: u64| {
                let (kind, wide) = Kind::parse(&format!("{verb}_{name}")).unwrap();
                kind.apply(wide, old, data, 0)
            };
            for (index, low) in ascending.iter().enumerate() {
                for high in &ascending[index..] {
                    for (old, data) in [(*low, *high), (*high, *low)] {
                        assert_eq!(apply("min_num", old, data), *low, "{name} {old:#x} {data:#x}");
                        assert_eq!(apply("max_num", old, data), *high, "{name} {old:#x} {data:#x}");
                    }
                }
                for nan in [quiet, signalling] {
                    for verb in ["min_num", "max_num"] {
                        assert_eq!(apply(verb, *low, nan), *low, "{verb} {name}");
                        assert_eq!(apply(verb, nan, *low), *low, "{verb} {name}");
                    }
                }
            }
            for verb in ["min_num", "max_num"] {
                assert_eq!(
                    apply(verb, signalling, signalling),
                    signalling | (quiet & !signalling),
                    "{verb} {name}"
                );
                assert_eq!(apply(verb, quiet, quiet), quiet, "{verb} {name}");
            }
        };
        check(
            "f32",
            &[0xFF80_0000, 0xBF80_0000, 0x8000_0001, 0x8000_0000, 0, 1, 0x3F80_0000, 0x7F80_0000],
            [0x7FC0_0000, 0x7F80_0001],
        );
        check(
            "f64",
            &[0xFFF << 52, 0xBFF << 52, 1 << 63 | 1, 1 << 63, 0, 1, 0x3FF << 52, 0x7FF << 52],
            [0x7FF8 << 48, 0x7FF << 52 | 1],
        );
    }

    /// The halves of a packed sum do not affect each other; denormals are kept; a NaN is the canonical one.
    #[test]
    fn packed_sums_are_rounded_for_themselves() {
        let check = |name: &str, old: u64, data: u64, expected: u64| {
            let (kind, wide) = Kind::parse(name).unwrap();
            assert_eq!(kind.apply(wide, old, data, 0), expected, "{name} {old:#x} {data:#x}");
        };
        // Infinity and -infinity; the smallest denormals.
        check("pk_add_f16", 0x7C00_0001, 0xFC00_0001, 0x7E00_0002);
        // The largest numbers overflow; 1 + 2^-11 is a tie.
        check("pk_add_f16", 0x7BFF_3C00, 0x7BFF_1000, 0x7C00_3C00);
        check("pk_add_f16", 0x8000_3C01, 0x8000_1000, 0x8000_3C02);
        check("pk_add_bf16", 0x7F80_0001, 0xFF80_0001, 0x7FC0_0002);
        check("pk_add_bf16", 0x7F7F_BF80, 0x7F7F_3F80, 0x7F80_0000);
        check("pk_add_bf16", 0x3F80_8000, 0x3B80_8000, 0x3F80_8000);
        // Half a place below a power of two rounds up into the next exponent.
        check("pk_add_bf16", 0x3FFF_0000, 0x3B80_0000, 0x4000_0000);
        check("add_f32", 0x7F80_0000, 0xFF80_0000, 0x7FC0_0000);
        check("add_f32", 1, 1, 2);
    }
}
