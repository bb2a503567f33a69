//! The addresses at which the lanes of a vector memory instruction access memory (instruction set reference §1,
//! §2).
//!
//! Contract: an address mode returns the addresses in two ways. `near`: one base and a 32-bit offset per lane, if
//! all lanes can be expressed that way and access plain memory; inactive lanes have the offset of an active one, so
//! that a range check needs no mask. `lane`: one lane at a time, for every case. Nothing is accessed here.

use crate::shader::micro::{MicroOp, Source};
use crate::shader::wave::{LANES, NULL, Row, Wave};
use crate::simd::{blend, splat};

/// High dword of the LDS aperture: the value of `src_shared_base` (hardware reference §2.4; set by the kernel).
pub(crate) const SHARED_APERTURE_HIGH: u32 = 0x0001_0000;
/// High dword of the scratch aperture: the value of `src_private_base`.
pub(crate) const PRIVATE_APERTURE_HIGH: u32 = 0x0002_0000;

/// The target of one lane's access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Memory.
    Global(u64),
    /// LDS, at a byte offset.
    Lds(u32),
    /// The lane's private segment, at a byte offset.
    Private(u64),
    /// Nothing: loads return zero, stores are dropped.
    Outside,
}

/// How an instruction forms addresses.
pub(crate) trait AddressMode {
    /// Base and offsets if all lanes access plain memory near each other. `exec` is not zero; `bytes` is the width
    /// of a lane's access.
    fn near(wave: &Wave, op: &MicroOp, exec: u32, bytes: u32) -> Option<(u64, Row)>;

    /// The target of one lane's access.
    fn lane(wave: &Wave, op: &MicroOp, lane: usize, bytes: u32) -> Target;

    /// The target of one dword of a lane's access that is not inside as a whole; only buffers have such.
    fn dword(wave: &Wave, op: &MicroOp, lane: usize, _index: usize) -> Target {
        Self::lane(wave, op, lane, 4)
    }
}

/// Register number of a vector source.
#[inline(always)]
pub(crate) fn vector_source(op: &MicroOp, index: usize) -> usize {
    match op.sources[index] {
        Source::Vector(register) => register as usize,
        _ => 0,
    }
}

/// Code of a scalar source; `null` if there is none.
#[inline(always)]
pub(crate) fn scalar_source(op: &MicroOp, index: usize) -> u8 {
    match op.sources[index] {
        Source::Scalar(code) => code,
        _ => NULL,
    }
}

/// The row with an active lane's value copied to every inactive lane.
#[inline(always)]
pub(crate) fn patch_inactive(row: &Row, exec: u32) -> Row {
    if exec == u32::MAX {
        return *row;
    }
    blend(exec, row, &splat(row.0[exec.trailing_zeros() as usize & (LANES - 1)]))
}

/// True if every lane is within `low..=high` and a multiple of `alignment` (a power of two).
#[inline(always)]
pub(crate) fn all_within(row: &Row, low: u32, high: u32, alignment: u32) -> bool {
    // Branch-free, so that all lanes are compared at once.
    let mut is_outside = false;
    for lane in 0..LANES {
        is_outside |= (row.0[lane] < low) | (row.0[lane] > high) | (row.0[lane] & (alignment - 1) != 0);
    }
    !is_outside
}

/// True if the lanes are `stride` bytes apart, in ascending order and without wrapping.
#[inline(always)]
pub(crate) fn are_consecutive(row: &Row, stride: u32) -> bool {
    let start = row.0[0];
    let mut difference = 0;
    for lane in 0..LANES {
        difference |= row.0[lane] ^ start.wrapping_add(lane as u32 * stride);
    }
    difference == 0 && start <= u32::MAX - LANES as u32 * stride
}

/// Scalar base and 32-bit vector offset.
pub(crate) struct ScalarBase;
impl AddressMode for ScalarBase {
    #[inline(always)]
    fn near(wave: &Wave, op: &MicroOp, exec: u32, _bytes: u32) -> Option<(u64, Row)> {
        let base = wave.scalar_pair(scalar_source(op, 2)).wrapping_add_signed(op.immediate as i64);
        Some((base, patch_inactive(&wave.vector[vector_source(op, 0) & 255], exec)))
    }

    fn lane(wave: &Wave, op: &MicroOp, lane: usize, _bytes: u32) -> Target {
        let base = wave.scalar_pair(scalar_source(op, 2)).wrapping_add_signed(op.immediate as i64);
        Target::Global(base.wrapping_add(wave.vector[vector_source(op, 0) & 255].0[lane] as u64))
    }
}

/// A 64-bit address in a pair of vector registers.
pub(crate) struct VectorPair;
impl AddressMode for VectorPair {
    #[inline(always)]
    fn near(wave: &Wave, op: &MicroOp, exec: u32, _bytes: u32) -> Option<(u64, Row)> {
        let (high, offsets) = near_pair(wave, op, exec)?;
        Some((((high as u64) << 32).wrapping_add_signed(op.immediate as i64), offsets))
    }

    fn lane(wave: &Wave, op: &MicroOp, lane: usize, _bytes: u32) -> Target {
        Target::Global(pair(wave, op, lane))
    }
}

/// Like [`VectorPair`], with the apertures of LDS and scratch.
pub(crate) struct Flat;
impl AddressMode for Flat {
    #[inline(always)]
    fn near(wave: &Wave, op: &MicroOp, exec: u32, _bytes: u32) -> Option<(u64, Row)> {
        let (high, offsets) = near_pair(wave, op, exec)?;
        let base = ((high as u64) << 32).wrapping_add_signed(op.immediate as i64);
        // The immediate may reach the lowest page of an aperture from below.
        let near_aperture = |aperture: u32| high.wrapping_add(1).wrapping_sub(aperture) <= 2;
        if near_aperture(SHARED_APERTURE_HIGH) || near_aperture(PRIVATE_APERTURE_HIGH) {
            return None;
        }
        Some((base, offsets))
    }

    fn lane(wave: &Wave, op: &MicroOp, lane: usize, _bytes: u32) -> Target {
        flat_target(pair(wave, op, lane))
    }
}

/// The target of a flat address: the apertures apply after the immediate was added.
pub(crate) fn flat_target(va: u64) -> Target {
    match (va >> 32) as u32 {
        SHARED_APERTURE_HIGH => Target::Lds(va as u32),
        PRIVATE_APERTURE_HIGH => Target::Private(va & 0xFFFF_FFFF),
        _ => Target::Global(va),
    }
}

/// The address formed from two registers and an immediate.
pub(crate) fn flat_address(low: u32, high: u32, immediate: i32) -> u64 {
    (u64::from(low) | u64::from(high) << 32).wrapping_add_signed(immediate.into())
}

/// The high dword common to all lanes, if there is one, and the low dwords.
#[inline(always)]
fn near_pair(wave: &Wave, op: &MicroOp, exec: u32) -> Option<(u32, Row)> {
    let register = vector_source(op, 0);
    let high = patch_inactive(&wave.vector[(register + 1) & 255], exec);
    let first = high.0[0];
    let mut difference = 0;
    for lane in 0..LANES {
        difference |= high.0[lane] ^ first;
    }
    (difference == 0).then(|| (first, patch_inactive(&wave.vector[register & 255], exec)))
}

fn pair(wave: &Wave, op: &MicroOp, lane: usize) -> u64 {
    let register = vector_source(op, 0);
    let (low, high) = (wave.vector[register & 255].0[lane], wave.vector[(register + 1) & 255].0[lane]);
    flat_address(low, high, op.immediate)
}

/// Scalar base and four bytes per lane (`_addtid`).
pub(crate) struct LaneIndex;
impl AddressMode for LaneIndex {
    #[inline(always)]
    fn near(wave: &Wave, op: &MicroOp, exec: u32, _bytes: u32) -> Option<(u64, Row)> {
        let base = wave.scalar_pair(scalar_source(op, 2)).wrapping_add_signed(op.immediate as i64);
        let mut offsets = Row([0; LANES]);
        for (lane, offset) in offsets.0.iter_mut().enumerate() {
            *offset = 4 * lane as u32;
        }
        Some((base, patch_inactive(&offsets, exec)))
    }

    fn lane(wave: &Wave, op: &MicroOp, lane: usize, _bytes: u32) -> Target {
        let base = wave.scalar_pair(scalar_source(op, 2)).wrapping_add_signed(op.immediate as i64);
        Target::Global(base.wrapping_add(4 * lane as u64))
    }
}

/// The lane's private segment: optional vector and scalar offset. `immediate2` bit 0: the vector offset is used.
pub(crate) struct Scratch;

/// Bit of `immediate2`: the instruction has a vector offset.
pub(crate) const SCRATCH_VECTOR_OFFSET: u32 = 1;

impl Scratch {
    /// Offsets in the private segment, wrapping at 32 bits.
    #[inline(always)]
    pub fn offsets(wave: &Wave, op: &MicroOp) -> Row {
        let scalar = wave.scalar[scalar_source(op, 2) as usize].wrapping_add(op.immediate as u32);
        let mut offsets = splat(scalar);
        if op.immediate2 & SCRATCH_VECTOR_OFFSET != 0 {
            let vector = &wave.vector[vector_source(op, 0) & 255];
            for lane in 0..LANES {
                offsets.0[lane] = offsets.0[lane].wrapping_add(vector.0[lane]);
            }
        }
        offsets
    }
}

impl AddressMode for Scratch {
    #[inline(always)]
    fn near(_wave: &Wave, _op: &MicroOp, _exec: u32, _bytes: u32) -> Option<(u64, Row)> {
        None
    }

    fn lane(wave: &Wave, op: &MicroOp, lane: usize, _bytes: u32) -> Target {
        Target::Private(Scratch::offsets(wave, op).0[lane] as u64)
    }
}

/// A buffer described by four scalars. `immediate2` bits: 0 offen, 1 idxen; `wide[0]` is the code of soffset.
///
/// Descriptor words (instruction set reference §1 leaves them to the RDNA4 manual): base 47:0, stride 61:48,
/// swizzle enable 63:62 (element of 4, 8 or 16 bytes), records 95:64, index stride 118:117 (8, 16, 32 or 64),
/// add-tid 119 (the lane number is added to the index), out-of-range rule 125:124.
///
/// Addresses and ranges: RDNA4 instruction set guide §9.4.1 and §9.4.2. A swizzled buffer interleaves the elements of
/// as many records as the index stride says; all offsets together, of 32 bits, say which element. Further dwords of an
/// access follow the first one in memory, also where it leaves its element.
pub(crate) struct Buffer;

/// Bits of `immediate2`.
pub(crate) const BUFFER_OFFSET_ENABLE: u32 = 1;
pub(crate) const BUFFER_INDEX_ENABLE: u32 = 2;

#[derive(Clone, Copy)]
struct Descriptor {
    base: u64,
    stride: u32,
    records: u32,
    rule: u32,
    adds_lane: bool,
    /// Bytes of a swizzled element; 0 if the buffer is linear.
    element_bytes: u32,
    index_stride: u32,
}

impl Descriptor {
    /// Distance from the base to a byte of a record. The buffer consists of groups of `index_stride` records; each
    /// group holds the first elements of all its records, then the second ones, and so on.
    fn swizzled(&self, index: u64, offset: u64) -> u64 {
        let (stride, element) = (self.stride as u64, self.element_bytes as u64);
        let (group, record) = (index / self.index_stride as u64, index % self.index_stride as u64);
        let before = (group.wrapping_mul(stride)).wrapping_add(offset / element * element);
        before.wrapping_mul(self.index_stride as u64).wrapping_add(record * element + offset % element)
    }
}

impl Buffer {
    #[inline(always)]
    fn descriptor(wave: &Wave, op: &MicroOp) -> Descriptor {
        let at = scalar_source(op, 2);
        let low = wave.scalar_pair(at);
        let last = wave.scalar[at as usize + 3];
        let swizzle = (low >> 62) as u32;
        Descriptor {
            base: low & 0xFFFF_FFFF_FFFF,
            stride: (low >> 48) as u32 & 0x3FFF,
            records: wave.scalar[at as usize + 2],
            rule: last >> 28 & 3,
            adds_lane: last >> 23 & 1 != 0,
            element_bytes: if swizzle == 0 { 0 } else { 2 << swizzle },
            index_stride: 8 << (last >> 21 & 3),
        }
    }

    /// Index and offset of one lane.
    #[inline(always)]
    fn parts(wave: &Wave, op: &MicroOp, lane: usize) -> (u32, u32) {
        let register = vector_source(op, 0);
        let has_index = op.immediate2 & BUFFER_INDEX_ENABLE != 0;
        let index = if has_index { wave.vector[register & 255].0[lane] } else { 0 };
        let offset = if op.immediate2 & BUFFER_OFFSET_ENABLE != 0 {
            wave.vector[(register + has_index as usize) & 255].0[lane]
        } else {
            0
        };
        (index, offset)
    }

    /// The target of the bytes from `first` on of a lane's access.
    fn part(wave: &Wave, op: &MicroOp, lane: usize, first: u64, bytes: u32) -> Target {
        let buffer = Self::descriptor(wave, op);
        let (index, own_offset) = Self::parts(wave, op, lane);
        // Lanes of the high half are 32 and up.
        let number = lane + if wave.is_high { LANES } else { 0 };
        let index = u64::from(if buffer.adds_lane { index.wrapping_add(number as u32) } else { index });
        let offset = Self::uniform_offset(wave, op).wrapping_add(own_offset as u64);
        let (records, stride) = (buffer.records as u64, buffer.stride as u64);
        let is_swizzled = buffer.element_bytes != 0;
        let start = match is_swizzled {
            true => buffer.swizzled(index, offset as u32 as u64),
            false => offset.wrapping_add(index * stride),
        };
        let start = start.wrapping_add(first);
        let end_in_record = offset.saturating_add(first + bytes as u64);
        let is_outside = match buffer.rule {
            0 => index >= records || end_in_record > stride,
            1 => index >= records,
            2 => records == 0,
            _ if stride != 0 && is_swizzled => index >= records || end_in_record > stride,
            _ => start.saturating_add(bytes as u64) > records,
        };
        if is_outside { Target::Outside } else { Target::Global(buffer.base.wrapping_add(start)) }
    }

    /// soffset and immediate.
    #[inline(always)]
    fn uniform_offset(wave: &Wave, op: &MicroOp) -> u64 {
        (wave.scalar[op.wide[0] as u8 as usize] as u64).wrapping_add_signed(op.immediate as i64)
    }
}

impl AddressMode for Buffer {
    #[inline(always)]
    fn near(wave: &Wave, op: &MicroOp, exec: u32, bytes: u32) -> Option<(u64, Row)> {
        let buffer = Self::descriptor(wave, op);
        let uniform = Self::uniform_offset(wave, op);
        let is_raw = op.immediate2 & BUFFER_INDEX_ENABLE == 0 && buffer.stride == 0;
        if !is_raw || buffer.adds_lane || buffer.element_bytes != 0 {
            return None;
        }
        let offsets = if op.immediate2 & BUFFER_OFFSET_ENABLE != 0 {
            patch_inactive(&wave.vector[vector_source(op, 0) & 255], exec)
        } else {
            splat(0)
        };
        let limit = (buffer.records as u64).checked_sub(bytes as u64)?.checked_sub(uniform)?;
        let is_inside = all_within(&offsets, 0, limit as u32, 1);
        is_inside.then_some((buffer.base.wrapping_add(uniform), offsets))
    }

    fn lane(wave: &Wave, op: &MicroOp, lane: usize, bytes: u32) -> Target {
        Self::part(wave, op, lane, 0, bytes)
    }

    fn dword(wave: &Wave, op: &MicroOp, lane: usize, index: usize) -> Target {
        Self::part(wave, op, lane, 4 * index as u64, 4)
    }
}

#[cfg(test)]
mod tests;
