//! Feature-dispatched execution: vector operations of the shader engine are compiled for AVX-512, AVX2 and the
//! baseline, and the host's best level is bound once, when an instruction is decoded. What gains nothing by that is
//! compiled for the baseline alone ([`Executor::baseline`]); a fast form of an operation for the vector levels alone
//! ([`Level::bind_either`]).
//!
//! Contract: the result of an operation has the same bits at every level (`fma` is fused at each one: by the
//! instruction or by the library routine). This is one of the three places of the workspace where `unsafe` is
//! permitted.
//! Cost: one indirect call per instruction.
#![allow(unsafe_code)]

use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp};
use crate::shader::wave::{LANES, Row, Wave};

/// The work of one instruction. Implementations mark `execute` `#[inline(always)]`, so that the body is compiled
/// with the vector features of the level it is bound to; the compiler vectorises plain loops over 32 lanes.
pub trait Operation {
    /// Executes `op` for the wave. The result reports control flow and stops.
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow;
}

/// A vector level that this host was found to support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// The levels, best first, of a host that has or lacks each feature that AVX2 and AVX-512 are compiled with.
#[cfg(target_arch = "x86_64")]
fn kinds(of_avx2: &[bool], of_avx512: &[bool]) -> &'static [Kind] {
    match [of_avx2, of_avx512].map(|features| features.iter().all(|has| *has)) {
        [true, true] => &[Kind::Avx512, Kind::Avx2, Kind::Baseline],
        [true, false] => &[Kind::Avx2, Kind::Baseline],
        [false, _] => &[Kind::Baseline],
    }
}

/// An operation bound to a level.
#[derive(Clone, Copy)]
pub struct Executor(unsafe fn(&mut Wave, &MicroOp, &mut Machine<'_>) -> Flow);

impl Level {
    /// The level that every host supports.
    pub const BASELINE: Level = Level(Kind::Baseline);

    /// The best level of this host.
    pub fn detect() -> Level {
        Self::supported()[0]
    }

    /// Every level of this host, best first; for tests that compare them.
    pub fn supported() -> Vec<Level> {
        #[cfg(target_arch = "x86_64")]
        let kinds = {
            let of_avx2 = [
                is_x86_feature_detected!("avx2"),
                is_x86_feature_detected!("fma"),
                is_x86_feature_detected!("f16c"),
                is_x86_feature_detected!("bmi1"),
                is_x86_feature_detected!("bmi2"),
                is_x86_feature_detected!("lzcnt"),
                is_x86_feature_detected!("popcnt"),
            ];
            let of_avx512 = [
                is_x86_feature_detected!("avx512f"),
                is_x86_feature_detected!("avx512bw"),
                is_x86_feature_detected!("avx512dq"),
                is_x86_feature_detected!("avx512vl"),
                is_x86_feature_detected!("avx512cd"),
            ];
            kinds(&of_avx2, &of_avx512)
        };
        #[cfg(not(target_arch = "x86_64"))]
        let kinds = &[Kind::Baseline];
        kinds.iter().map(|kind| Level(*kind)).collect()
    }

    /// Its name, for reports.
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Baseline => "baseline",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512",
        }
    }

    /// The instructions that it has more than the baseline, for people; `None` if there are none.
    pub fn instructions(self) -> Option<&'static str> {
        match self.0 {
            Kind::Baseline => None,
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => Some("AVX2 with FMA"),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => Some("AVX-512"),
        }
    }

    /// Binds an operation to this level.
    pub fn bind<O: Operation>(self) -> Executor {
        self.bind_either::<O, O>()
    }

    /// Binds `Fast` to a vector level, and to the baseline `General`, which does the same: the baseline is slower
    /// anyway and rarely the best that a host has, so that a fast form of its own would not pay for compiling it.
    pub fn bind_either<Fast: Operation, General: Operation>(self) -> Executor {
        match self.0 {
            Kind::Baseline => Executor::baseline::<General>(),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => Executor(avx2::<Fast>),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => Executor(avx512::<Fast>),
        }
    }
}

impl Executor {
    /// An operation that vector features do not help, or that hardly occurs: it is compiled for the baseline alone.
    pub fn baseline<O: Operation>() -> Executor {
        Executor(baseline::<O>)
    }

    /// Runs the operation.
    #[inline(always)]
    pub fn call(self, wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        // SAFETY: the pointer is that of a function of the baseline, which every host can call, or was made by
        // `Level::bind_either` from another `Level`, which is made only after the features that its functions are
        // compiled with were detected on this host.
        unsafe { (self.0)(wave, op, machine) }
    }
}

fn baseline<O: Operation>(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
    O::execute(wave, op, machine)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn avx2<O: Operation>(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
    O::execute(wave, op, machine)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn avx512<O: Operation>(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
    O::execute(wave, op, machine)
}

/// A row with the same value in every lane.
#[inline(always)]
pub fn splat(value: u32) -> Row {
    Row([value; LANES])
}

/// All ones in the lanes whose bit is set, zero in the others.
#[inline(always)]
pub fn spread(mask: u32) -> Row {
    // Two halves of 16 bits: the compiler turns each into one mask register.
    let (low, high) = (mask & 0xFFFF, mask >> 16);
    let mut row = Row([0; LANES]);
    for lane in 0..16 {
        row.0[lane] = ((low >> lane) & 1).wrapping_neg();
    }
    for lane in 0..16 {
        row.0[lane + 16] = ((high >> lane) & 1).wrapping_neg();
    }
    row
}

/// `chosen` in the lanes whose bit is set, `other` elsewhere.
#[inline(always)]
pub fn blend(mask: u32, chosen: &Row, other: &Row) -> Row {
    let spread = spread(mask);
    let mut row = Row([0; LANES]);
    for lane in 0..LANES {
        row.0[lane] = (chosen.0[lane] & spread.0[lane]) | (other.0[lane] & !spread.0[lane]);
    }
    row
}

/// The old row with one half of every lane replaced.
#[inline(always)]
pub(crate) fn merge_half(result: &Row, old: &Row, high: bool) -> Row {
    let (shift, keep) = if high { (16, 0xFFFF) } else { (0, 0xFFFF_0000) };
    let mut new = Row([0; LANES]);
    for lane in 0..LANES {
        new.0[lane] = old.0[lane] & keep | (result.0[lane] & 0xFFFF) << shift;
    }
    new
}

/// One bit per lane from a row of all-ones and zero lanes.
#[inline(always)]
pub fn collect(flags: Row) -> u32 {
    // The row passes through memory: if kept in values, the compiler assembles the bits one by one.
    let flags = core::hint::black_box(flags);
    let mut mask = 0;
    for lane in 0..LANES {
        mask |= flags.0[lane] & (1 << lane);
    }
    mask
}

/// Lane `i` of `result` becomes lane `source[i] % 32` of the row. Moves data only, so every implementation returns
/// the same.
#[inline(always)]
pub fn permute(row: &Row, source: &[u8; LANES], result: &mut Row) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the feature that the function is compiled with was just detected.
        return unsafe { permute_avx512(row, source, result) };
    }
    permute_anywhere(row, source, result);
}

#[inline(always)]
fn permute_anywhere(row: &Row, source: &[u8; LANES], result: &mut Row) {
    for (value, &source) in result.0.iter_mut().zip(source) {
        *value = row.0[source as usize % LANES];
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn permute_avx512(row: &Row, source: &[u8; LANES], result: &mut Row) {
    use core::arch::x86_64::*;
    // SAFETY: a row is 128 bytes, which the two loads and the two stores of 64 bytes at offsets 0 and 64 cover; the
    // sources are 32 bytes, which the two loads of 16 bytes cover; unaligned access is allowed by each of them. The
    // permutation uses the low five bits of an index.
    unsafe {
        let low = _mm512_loadu_si512(row.0.as_ptr().cast());
        let high = _mm512_loadu_si512(row.0.as_ptr().add(16).cast());
        for half in 0..2 {
            let bytes = _mm_loadu_si128(source.as_ptr().add(16 * half).cast());
            let moved = _mm512_permutex2var_epi32(low, _mm512_cvtepu8_epi32(bytes), high);
            _mm512_storeu_si512(result.0.as_mut_ptr().add(16 * half).cast(), moved);
        }
    }
}

/// Adds for each lane the products of four bytes of either row, signed or unsigned. Integers, so every
/// implementation returns the same.
#[inline(always)]
pub fn add_byte_products(left: &Row, right: &Row, is_signed: [bool; 2], sums: &mut [i32; LANES]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the feature that the function is compiled with was just detected.
        return unsafe { add_byte_products_avx2(left, right, is_signed, sums) };
    }
    add_byte_products_anywhere(left, right, is_signed, sums);
}

#[inline(always)]
fn add_byte_products_anywhere(left: &Row, right: &Row, is_signed: [bool; 2], sums: &mut [i32; LANES]) {
    let byte = |dword: u32, shift: u32, is_signed: bool| {
        let byte = dword >> shift & 0xFF;
        if is_signed { i32::from(byte as i8) } else { byte as i32 }
    };
    for shift in [0, 8, 16, 24] {
        for (lane, sum) in sums.iter_mut().enumerate() {
            let (x, y) = (byte(left.0[lane], shift, is_signed[0]), byte(right.0[lane], shift, is_signed[1]));
            *sum = sum.wrapping_add(x * y);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn add_byte_products_avx2(left: &Row, right: &Row, is_signed: [bool; 2], sums: &mut [i32; LANES]) {
    use core::arch::x86_64::*;
    /// The even and the odd bytes as 16-bit integers.
    #[target_feature(enable = "avx2")]
    fn pairs(bytes: __m256i, is_signed: bool) -> [__m256i; 2] {
        let even = _mm256_slli_epi16::<8>(bytes);
        if is_signed {
            [_mm256_srai_epi16::<8>(even), _mm256_srai_epi16::<8>(bytes)]
        } else {
            [_mm256_srli_epi16::<8>(even), _mm256_srli_epi16::<8>(bytes)]
        }
    }
    for first in [0, 8, 16, 24] {
        // SAFETY: both rows and the sums are 32 dwords, of which 8 from `first` on are read and written; unaligned
        // access is allowed.
        unsafe {
            let [even_left, odd_left] =
                pairs(_mm256_loadu_si256(left.0.as_ptr().add(first).cast()), is_signed[0]);
            let [even_right, odd_right] =
                pairs(_mm256_loadu_si256(right.0.as_ptr().add(first).cast()), is_signed[1]);
            let even = _mm256_madd_epi16(even_left, even_right);
            let odd = _mm256_madd_epi16(odd_left, odd_right);
            let target = sums.as_mut_ptr().add(first).cast();
            let sum = _mm256_add_epi32(_mm256_loadu_si256(target), _mm256_add_epi32(even, odd));
            _mm256_storeu_si256(target, sum);
        }
    }
}

/// Truncates to a signed integer; saturates; NaN becomes 0. Its vector code is shorter than that of `as`.
#[inline(always)]
pub fn truncate_to_i32(value: f32) -> i32 {
    let fits = (-2_147_483_648.0..2_147_483_648.0).contains(&value);
    // SAFETY: the argument is 0 or was just checked to be within the range of i32, so it is neither NaN nor too
    // large.
    let truncated: i32 = unsafe { (if fits { value } else { 0.0 }).to_int_unchecked() };
    let truncated = if value >= 2_147_483_648.0 { i32::MAX } else { truncated };
    if value < -2_147_483_648.0 { i32::MIN } else { truncated }
}

/// Truncates to an unsigned integer; saturates; NaN becomes 0.
#[inline(always)]
pub fn truncate_to_u32(value: f32) -> u32 {
    let fits = (0.0..4_294_967_296.0).contains(&value);
    // SAFETY: the argument is 0 or was just checked to be within the range of u32, so it is neither NaN nor too
    // large.
    let truncated: u32 = unsafe { (if fits { value } else { 0.0 }).to_int_unchecked() };
    if value >= 4_294_967_296.0 { u32::MAX } else { truncated }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_and_rows_convert_both_ways() {
        for mask in [0, 1, 0x8000_0000, 0xFFFF, 0xFFFF_0000, 0xDEAD_BEEF, u32::MAX] {
            let row = spread(mask);
            for lane in 0..LANES {
                assert_eq!(row.0[lane], if mask >> lane & 1 != 0 { u32::MAX } else { 0 });
            }
            assert_eq!(collect(row), mask);
        }
    }

    #[test]
    fn permute_moves_lanes() {
        let mut row = Row([0; LANES]);
        let mut source = [0; LANES];
        for (lane, source) in source.iter_mut().enumerate() {
            row.0[lane] = 100 + lane as u32;
            *source = (lane * 7 + 3) as u8; // also beyond 31: modulo 32
        }
        for permute in [permute, permute_anywhere] {
            let mut moved = Row([0; LANES]);
            permute(&row, &source, &mut moved);
            for lane in 0..LANES {
                assert_eq!(moved.0[lane], 100 + (lane as u32 * 7 + 3) % 32);
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_level_needs_every_feature_that_it_is_compiled_with() {
        let (best, middle) = ([Kind::Avx512, Kind::Avx2, Kind::Baseline], [Kind::Avx2, Kind::Baseline]);
        assert_eq!(kinds(&[true; 7], &[true; 5]), best);
        assert_eq!(kinds(&[true; 7], &[false; 5]), middle);
        for missing in 0..7 {
            let of_avx2: [bool; 7] = std::array::from_fn(|feature| feature != missing);
            assert_eq!(kinds(&of_avx2, &[true; 5]), [Kind::Baseline], "AVX-512 has AVX2's too: {missing}");
        }
        for missing in 0..5 {
            let of_avx512: [bool; 5] = std::array::from_fn(|feature| feature != missing);
            assert_eq!(kinds(&[true; 7], &of_avx512), middle, "{missing}");
        }
    }

    #[test]
    fn the_levels_of_a_host_have_names_and_end_with_the_baseline() {
        let names: Vec<_> = Level::supported().into_iter().map(Level::name).collect();
        assert!(["avx512", "avx2", "baseline"].ends_with(&names), "{names:?}");
        assert_eq!((Level::supported().last(), Level::BASELINE.name()), (Some(&Level::BASELINE), "baseline"));
        let instructions: Vec<_> = Level::supported().into_iter().map(Level::instructions).collect();
        assert!([Some("AVX-512"), Some("AVX2 with FMA"), None].ends_with(&instructions), "{instructions:?}");
    }

    /// A half holds 16 bits; what is above them in the result does not come in.
    #[test]
    fn rows_are_merged_by_lane_and_by_half() {
        let chosen = Row(std::array::from_fn(|lane| 0xA5A5_0F00 + lane as u32));
        let other = Row(std::array::from_fn(|lane| 0x5AFF_F0C0 - lane as u32));
        let [blended, low, high] = [
            blend(0x8001_3C0F, &chosen, &other),
            merge_half(&chosen, &other, false),
            merge_half(&chosen, &other, true),
        ];
        for lane in 0..LANES as u32 {
            let (new, old) = (0x0F00 + lane, 0x5AFF_F0C0 - lane);
            let picked = if 0x8001_3C0Fu32 >> lane & 1 != 0 { 0xA5A5_0000 + new } else { old };
            let found = [blended, low, high].map(|row| row.0[lane as usize]);
            assert_eq!(found, [picked, 0x5AFF_0000 + new, new * 0x1_0000 + (0xF0C0 - lane)], "{lane}");
        }
    }

    #[test]
    fn products_of_bytes_are_the_same_every_way() {
        // Every pair of bytes, four per lane.
        for is_signed in [[false, false], [false, true], [true, false], [true, true]] {
            let value =
                |byte: u32, is_signed: bool| if is_signed { i32::from(byte as i8) } else { byte as i32 };
            for start in (0..0x1_0000).step_by(4 * LANES) {
                let (mut left, mut right, mut expected) = (Row([0; LANES]), Row([0; LANES]), [-7; LANES]);
                for (lane, expected) in expected.iter_mut().enumerate() {
                    for place in 0..4 {
                        let pair = (start + 4 * lane + place) as u32;
                        // Neighbours differ in both bytes.
                        let (x, y) = (pair >> 8, (pair ^ pair >> 8) & 0xFF);
                        left.0[lane] |= x << (8 * place);
                        right.0[lane] |= y << (8 * place);
                        *expected += value(x, is_signed[0]) * value(y, is_signed[1]);
                    }
                }
                for add in [add_byte_products, add_byte_products_anywhere] {
                    let mut sums = [-7; LANES];
                    add(&left, &right, is_signed, &mut sums);
                    assert_eq!(sums, expected, "from {start:#x}, signed {is_signed:?}");
                }
            }
        }
    }

    #[test]
    fn truncation_saturates() {
        for (value, signed, unsigned) in [
            (1.9, 1, 1),
            (-1.9, -1, 0),
            (3e9, i32::MAX, 3_000_000_000),
            (-3e9, i32::MIN, 0),
            (1e20, i32::MAX, u32::MAX),
            (f32::NEG_INFINITY, i32::MIN, 0),
            (f32::NAN, 0, 0),
            (2_147_483_648.0, i32::MAX, 2_147_483_648),
            (-2_147_483_648.0, i32::MIN, 0),
        ] {
            assert_eq!(truncate_to_i32(value), signed, "{value}");
            assert_eq!(truncate_to_u32(value), unsigned, "{value}");
        }
    }
}
