//! Integer and bit operations on 32-bit and 16-bit lanes.
//!
//! Contract: independent of MODE. 16-bit sources arrive in the low half with a zero high half; only the low half of
//! a 16-bit result is used.

#[inline(always)]
pub(super) fn signed24(a: u32) -> i32 {
    (a << 8) as i32 >> 8
}

#[inline(always)]
pub(super) fn signed16(a: u32) -> i32 {
    a as i16 as i32
}

#[inline(always)]
fn bytes(a: u32) -> [u32; 4] {
    [a & 0xFF, a >> 8 & 0xFF, a >> 16 & 0xFF, a >> 24]
}

#[inline(always)]
fn sad_u8(a: u32, b: u32) -> u32 {
    let (a, b) = (bytes(a), bytes(b));
    a[0].abs_diff(b[0]) + a[1].abs_diff(b[1]) + a[2].abs_diff(b[2]) + a[3].abs_diff(b[3])
}

/// Like [`sad_u8`], without the bytes at which `b` is zero.
#[inline(always)]
fn masked_sad_u8(a: u32, b: u32) -> u32 {
    let (a, b) = (bytes(a), bytes(b));
    let term = |index: usize| if b[index] == 0 { 0 } else { a[index].abs_diff(b[index]) };
    term(0) + term(1) + term(2) + term(3)
}

#[inline(always)]
fn bit_field_signed(a: u32, offset: u32, width: u32) -> u32 {
    let width = width & 31;
    let shifted = ((a as i32) >> (offset & 31)) as u32;
    // Shifting the field to the top and back extends its sign; a width of 0 returns 0.
    let unused = 32u32.wrapping_sub(width) & 31;
    if width == 0 { 0 } else { ((shifted << unused) as i32 >> unused) as u32 }
}

#[inline(always)]
fn permute_byte(high: u32, low: u32, select: u32) -> u32 {
    let word = if select & 4 != 0 { high } else { low };
    let byte = word >> ((select & 3) * 8) & 0xFF;
    // 8..=11: the sign of byte 1, 3, 5, 7, repeated.
    let word = if select & 2 != 0 { high } else { low };
    let sign = if (word << (16 - (select & 1) * 16)) as i32 >= 0 { 0 } else { 0xFF };
    let constant = if select == 12 { 0 } else { 0xFF };
    let special = if select < 12 { sign } else { constant };
    if select < 8 { byte } else { special }
}

#[inline(always)]
fn permute(high: u32, low: u32, selectors: u32) -> u32 {
    let s = bytes(selectors);
    permute_byte(high, low, s[0])
        | permute_byte(high, low, s[1]) << 8
        | permute_byte(high, low, s[2]) << 16
        | permute_byte(high, low, s[3]) << 24
}

#[inline(always)]
fn lerp(a: u32, b: u32, round: u32) -> u32 {
    let (a, b, round) = (bytes(a), bytes(b), bytes(round));
    let byte = |index: usize| (a[index] + b[index] + (round[index] & 1)) >> 1;
    byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24
}

/// Median: the largest of the pairwise minima.
#[inline(always)]
fn median<T: Ord + Copy>(a: T, b: T, c: T) -> T {
    a.min(b).max(a.max(b).min(c))
}

#[inline(always)]
fn reverse_bits(a: u32) -> u32 {
    a.reverse_bits()
}

#[inline(always)]
fn leading_zeros(a: u32) -> u32 {
    if a == 0 { u32::MAX } else { a.leading_zeros() }
}

#[inline(always)]
fn leading_sign_bits(a: u32) -> u32 {
    let folded = a ^ ((a as i32) >> 31) as u32;
    leading_zeros(folded)
}

bits_operations! {
    hot 1 VMovB32 |a, _, _| a;
    hot 1 VNotB32 |a, _, _| !a;
    cold 1 VBfrevB32 |a, _, _| reverse_bits(a);
    cold 1 VClzI32U32 |a, _, _| leading_zeros(a);
    cold 1 VCtzI32B32 |a, _, _| if a == 0 { u32::MAX } else { a.trailing_zeros() };
    cold 1 VClsI32 |a, _, _| leading_sign_bits(a);
    cold 1 VMovB16 |a, _, _| a;
    cold 1 VNotB16 |a, _, _| !a;
    cold 1 VCvtI32I16 |a, _, _| signed16(a) as u32;
    cold 1 VCvtU32U16 |a, _, _| a & 0xFFFF;
    cold 1 VSatPkU8I16 |a, _, _| {
        signed16(a).clamp(0, 255) as u32 | (signed16(a >> 16).clamp(0, 255) as u32) << 8
    };

    hot 2 VMulI32I24 |a, b, _| signed24(a).wrapping_mul(signed24(b)) as u32;
    cold 2 VMulHiI32I24 |a, b, _| ((signed24(a) as i64 * signed24(b) as i64) >> 32) as u32;
    hot 2 VMulU32U24 |a, b, _| (a & 0xFF_FFFF).wrapping_mul(b & 0xFF_FFFF);
    cold 2 VMulHiU32U24 |a, b, _| (((a & 0xFF_FFFF) as u64 * (b & 0xFF_FFFF) as u64) >> 32) as u32;
    hot 2 VMinI32 |a, b, _| (a as i32).min(b as i32) as u32;
    hot 2 VMaxI32 |a, b, _| (a as i32).max(b as i32) as u32;
    hot 2 VMinU32 |a, b, _| a.min(b);
    hot 2 VMaxU32 |a, b, _| a.max(b);
    hot 2 VLshlrevB32 |a, b, _| b << (a & 31);
    hot 2 VLshrrevB32 |a, b, _| b >> (a & 31);
    hot 2 VAshrrevI32 |a, b, _| ((b as i32) >> (a & 31)) as u32;
    hot 2 VAndB32 |a, b, _| a & b;
    hot 2 VOrB32 |a, b, _| a | b;
    hot 2 VXorB32 |a, b, _| a ^ b;
    cold 2 VXnorB32 |a, b, _| !(a ^ b);
    hot 2 VAddNcU32 |a, b, _| a.wrapping_add(b);
    hot 2 VSubNcU32 |a, b, _| a.wrapping_sub(b);
    hot 2 VSubrevNcU32 |a, b, _| b.wrapping_sub(a);
    cold 2 VAddNcI32 |a, b, _| a.wrapping_add(b);
    cold 2 VSubNcI32 |a, b, _| a.wrapping_sub(b);
    hot 2 VMulLoU32 |a, b, _| a.wrapping_mul(b);
    cold 2 VMulHiU32 |a, b, _| ((a as u64 * b as u64) >> 32) as u32;
    cold 2 VMulHiI32 |a, b, _| ((a as i32 as i64 * b as i32 as i64) >> 32) as u32;
    cold 2 VBfmB32 |a, b, _| ((1u32 << (a & 31)) - 1) << (b & 31);
    cold 2 VBcntU32B32 |a, b, _| a.count_ones().wrapping_add(b);

    cold 2 VAddNcU16 |a, b, _| a.wrapping_add(b);
    cold 2 VSubNcU16 |a, b, _| a.wrapping_sub(b);
    cold 2 VAddNcI16 |a, b, _| a.wrapping_add(b);
    cold 2 VSubNcI16 |a, b, _| a.wrapping_sub(b);
    cold 2 VMulLoU16 |a, b, _| a.wrapping_mul(b);
    cold 2 VMaxU16 |a, b, _| a.max(b);
    cold 2 VMinU16 |a, b, _| a.min(b);
    cold 2 VMaxI16 |a, b, _| signed16(a).max(signed16(b)) as u32;
    cold 2 VMinI16 |a, b, _| signed16(a).min(signed16(b)) as u32;
    cold 2 VLshlrevB16 |a, b, _| b << (a & 15);
    cold 2 VLshrrevB16 |a, b, _| b >> (a & 15);
    cold 2 VAshrrevI16 |a, b, _| (signed16(b) >> (a & 15)) as u32;
    cold 2 VAndB16 |a, b, _| a & b;
    cold 2 VOrB16 |a, b, _| a | b;
    cold 2 VXorB16 |a, b, _| a ^ b;
    cold 2 VPackB32F16 |a, b, _| a & 0xFFFF | b << 16;
    cold 2 VCvtPkU16U32 |a, b, _| a.min(0xFFFF) | b.min(0xFFFF) << 16;
    cold 2 VCvtPkI16I32 |a, b, _| {
        let saturate = |value: u32| (value as i32).clamp(-32768, 32767) as u32 & 0xFFFF;
        saturate(a) | saturate(b) << 16
    };

    hot 3 VMadI32I24 |a, b, c| (signed24(a).wrapping_mul(signed24(b)) as u32).wrapping_add(c);
    hot 3 VMadU32U24 |a, b, c| (a & 0xFF_FFFF).wrapping_mul(b & 0xFF_FFFF).wrapping_add(c);
    hot 3 VBfeU32 |a, b, c| a >> (b & 31) & ((1u32 << (c & 31)) - 1);
    hot 3 VBfeI32 |a, b, c| bit_field_signed(a, b, c);
    hot 3 VBfiB32 |a, b, c| a & b | !a & c;
    cold 3 VLerpU8 |a, b, c| lerp(a, b, c);
    hot 3 VAlignbitB32 |a, b, c| (((a as u64) << 32 | b as u64) >> (c & 31)) as u32;
    cold 3 VAlignbyteB32 |a, b, c| (((a as u64) << 32 | b as u64) >> ((c & 3) * 8)) as u32;
    cold 3 VMin3I32 |a, b, c| (a as i32).min(b as i32).min(c as i32) as u32;
    cold 3 VMin3U32 |a, b, c| a.min(b).min(c);
    cold 3 VMax3I32 |a, b, c| (a as i32).max(b as i32).max(c as i32) as u32;
    cold 3 VMax3U32 |a, b, c| a.max(b).max(c);
    cold 3 VMed3I32 |a, b, c| median(a as i32, b as i32, c as i32) as u32;
    cold 3 VMed3U32 |a, b, c| median(a, b, c);
    cold 3 VMaxminU32 |a, b, c| a.max(b).min(c);
    cold 3 VMinmaxU32 |a, b, c| a.min(b).max(c);
    cold 3 VMaxminI32 |a, b, c| (a as i32).max(b as i32).min(c as i32) as u32;
    cold 3 VMinmaxI32 |a, b, c| (a as i32).min(b as i32).max(c as i32) as u32;
    cold 3 VSadU8 |a, b, c| sad_u8(a, b).wrapping_add(c);
    cold 3 VSadHiU8 |a, b, c| (sad_u8(a, b) << 16).wrapping_add(c);
    cold 3 VSadU16 |a, b, c| {
        let low = (a & 0xFFFF).abs_diff(b & 0xFFFF);
        low.wrapping_add((a >> 16).abs_diff(b >> 16)).wrapping_add(c)
    };
    cold 3 VSadU32 |a, b, c| a.abs_diff(b).wrapping_add(c);
    cold 3 VMsadU8 |a, b, c| masked_sad_u8(a, b).wrapping_add(c);
    hot 3 VXor3B32 |a, b, c| a ^ b ^ c;
    hot 3 VPermB32 |a, b, c| permute(a, b, c);
    hot 3 VXadU32 |a, b, c| (a ^ b).wrapping_add(c);
    hot 3 VLshlAddU32 |a, b, c| (a << (b & 31)).wrapping_add(c);
    hot 3 VAddLshlU32 |a, b, c| a.wrapping_add(b) << (c & 31);
    hot 3 VAdd3U32 |a, b, c| a.wrapping_add(b).wrapping_add(c);
    hot 3 VLshlOrB32 |a, b, c| a << (b & 31) | c;
    hot 3 VAndOrB32 |a, b, c| a & b | c;
    hot 3 VOr3B32 |a, b, c| a | b | c;
    cold 3 VMadU32U16 |a, b, c| (a & 0xFFFF).wrapping_mul(b & 0xFFFF).wrapping_add(c);
    cold 3 VMadI32I16 |a, b, c| (signed16(a).wrapping_mul(signed16(b)) as u32).wrapping_add(c);
    cold 3 VMadU16 |a, b, c| a.wrapping_mul(b).wrapping_add(c);
    cold 3 VMadI16 |a, b, c| a.wrapping_mul(b).wrapping_add(c);
    cold 3 VMin3I16 |a, b, c| signed16(a).min(signed16(b)).min(signed16(c)) as u32;
    cold 3 VMin3U16 |a, b, c| a.min(b).min(c);
    cold 3 VMax3I16 |a, b, c| signed16(a).max(signed16(b)).max(signed16(c)) as u32;
    cold 3 VMax3U16 |a, b, c| a.max(b).max(c);
    cold 3 VMed3I16 |a, b, c| median(signed16(a), signed16(b), signed16(c)) as u32;
    cold 3 VMed3U16 |a, b, c| median(a, b, c);
}

/// The forms that `clamp` selects: the exact result, saturated to the range of its type.
pub(super) mod saturating {
    use super::{signed16, signed24};

    fn unsigned32(value: i128) -> u32 {
        value.clamp(0, u32::MAX as i128) as u32
    }

    fn signed32(value: i128) -> u32 {
        value.clamp(i32::MIN as i128, i32::MAX as i128) as i32 as u32
    }

    fn unsigned16(value: i64) -> u32 {
        value.clamp(0, 0xFFFF) as u32
    }

    fn to_signed16(value: i64) -> u32 {
        value.clamp(-32768, 32767) as u32 & 0xFFFF
    }

    fn s16(a: u32) -> i64 {
        signed16(a) as i64
    }

    bits_operations! {
        saturating 2 VAddNcU32 |a, b, _| a.saturating_add(b);
        saturating 2 VSubNcU32 |a, b, _| a.saturating_sub(b);
        saturating 2 VSubrevNcU32 |a, b, _| b.saturating_sub(a);
        saturating 2 VAddNcI32 |a, b, _| (a as i32).saturating_add(b as i32) as u32;
        saturating 2 VSubNcI32 |a, b, _| (a as i32).saturating_sub(b as i32) as u32;
        saturating 2 VAddNcU16 |a, b, _| unsigned16(a as i64 + b as i64);
        saturating 2 VSubNcU16 |a, b, _| unsigned16(a as i64 - b as i64);
        saturating 2 VAddNcI16 |a, b, _| to_signed16(s16(a) + s16(b));
        saturating 2 VSubNcI16 |a, b, _| to_signed16(s16(a) - s16(b));
        saturating 3 VMadU16 |a, b, c| unsigned16(a as i64 * b as i64 + c as i64);
        saturating 3 VMadI16 |a, b, c| to_signed16(s16(a) * s16(b) + s16(c));
        saturating 3 VMadU32U24 |a, b, c| {
            unsigned32((a & 0xFF_FFFF) as i128 * (b & 0xFF_FFFF) as i128 + c as i128)
        };
        saturating 3 VMadI32I24 |a, b, c| {
            signed32(signed24(a) as i128 * signed24(b) as i128 + c as i32 as i128)
        };
        saturating 3 VMadU32U16 |a, b, c| {
            unsigned32((a & 0xFFFF) as i128 * (b & 0xFFFF) as i128 + c as i128)
        };
        saturating 3 VMadI32I16 |a, b, c| {
            signed32(signed16(a) as i128 * signed16(b) as i128 + c as i32 as i128)
        };
        saturating 3 VSadU8 |a, b, c| super::sad_u8(a, b).saturating_add(c);
        saturating 3 VSadHiU8 |a, b, c| (super::sad_u8(a, b) << 16).saturating_add(c);
        saturating 3 VSadU16 |a, b, c| {
            let low = (a & 0xFFFF).abs_diff(b & 0xFFFF);
            (low + (a >> 16).abs_diff(b >> 16)).saturating_add(c)
        };
        saturating 3 VSadU32 |a, b, c| a.abs_diff(b).saturating_add(c);
        saturating 3 VMsadU8 |a, b, c| super::masked_sad_u8(a, b).saturating_add(c);
    }
}
