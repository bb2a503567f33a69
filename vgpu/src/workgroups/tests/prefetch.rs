//! Scalar prefetches: what enables them, which lines they request, and the effect of an unmapped line.

use super::*;
use crate::memory::{Cause, Fault};
use crate::shader::fault::WaveFaultKind;

const PAGE: u64 = GPU_PAGE_BYTES;
const LINE: u64 = 128;

#[rustfmt::skip]
mod words {
    use super::Code;

    const fn code(name: &'static str, source: &'static str, words: &'static [u32]) -> Code {
        Code { name, source, words }
    }

    pub const ARM: Code = code("arm", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 24, 1), 1\n", &[0xB980_0601, 0x0000_0001]);
    pub const DISARM: Code = code("disarm", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 24, 1), 0\n", &[0xB980_0601, 0x0000_0000]);
    pub const END: Code = code("end", "s_endpgm\n", &[0xBFB0_0000]);
    pub const DATA: Code = code("data", "s_prefetch_data s[0:1], 0x0, null, 0\n", &[0xF404_C000, 0xF800_0000]);
    pub const DATA_32: Code = code("data_32", "s_prefetch_data s[0:1], 0x0, null, 31\n", &[0xF404_C7C0, 0xF800_0000]);
    pub const DATA_LENGTH: Code = code("data_length", "s_prefetch_data s[0:1], 0x0, s2, 1\n", &[0xF404_C040, 0x0400_0000]);
    pub const DATA_M0: Code = code("data_m0", "s_mov_b32 m0, 1\ns_prefetch_data s[0:1], 0x0, m0, 0\n", &[0xBEFD_0081, 0xF404_C000, 0xFA00_0000]);
    pub const DATA_BACK: Code = code("data_back", "s_prefetch_data s[0:1], -0x80, null, 0\n", &[0xF404_C000, 0xF8FF_FF80]);
    pub const DATA_ONE_ON: Code = code("data_one_on", "s_prefetch_data s[0:1], 0x1, null, 0\n", &[0xF404_C000, 0xF800_0001]);
    pub const DATA_PC: Code = code("data_pc", "s_prefetch_data_pc_rel 0x0, null, 0\n", &[0xF405_0000, 0xF800_0000]);
    pub const DATA_PC_ON: Code = code("data_pc_on", "s_prefetch_data_pc_rel 0x1000, null, 0\n", &[0xF405_0000, 0xF800_1000]);
    pub const BUFFER: Code = code("buffer", "s_buffer_prefetch_data s[0:3], 0x0, null, 0\n", &[0xF404_E000, 0xF800_0000]);
    pub const BUFFER_ON: Code = code("buffer_on", "s_buffer_prefetch_data s[0:3], 0x1000, null, 0\n", &[0xF404_E000, 0xF800_1000]);
    pub const BUFFER_BACK: Code = code("buffer_back", "s_buffer_prefetch_data s[0:3], -0x1000, null, 0\n", &[0xF404_E000, 0xF8FF_F000]);
    pub const INSTRUCTIONS: Code = code("instructions", "s_prefetch_inst s[0:1], 0x0, null, 0\n", &[0xF404_8000, 0xF800_0000]);
    pub const INSTRUCTIONS_PC: Code = code("instructions_pc", "s_prefetch_inst_pc_rel 0x0, null, 0\n", &[0xF404_A000, 0xF800_0000]);
    pub const INSTRUCTIONS_PC_ON: Code = code("instructions_pc_on", "s_prefetch_inst_pc_rel 0x1000, null, 0\n", &[0xF404_A000, 0xF800_1000]);
    pub const STORE_MODE: Code = code("store_mode", "s_getreg_b32 s4, hwreg(HW_REG_MODE, 24, 1)\nv_mov_b32_e32 v0, 0\nv_mov_b32_e32 v1, s4\nglobal_store_b32 v0, v1, s[0:1]\n", &[0xB884_0601, 0x7E00_0280, 0x7E02_0204, 0xEE06_8000, 0x0080_0000, 0x0000_0000]);

    pub const ALL: &[Code] = &[
        ARM, DISARM, END, DATA, DATA_32, DATA_LENGTH, DATA_M0, DATA_BACK, DATA_ONE_ON, DATA_PC, DATA_PC_ON, BUFFER,
        BUFFER_ON, BUFFER_BACK, INSTRUCTIONS, INSTRUCTIONS_PC, INSTRUCTIONS_PC_ON, STORE_MODE,
    ];
}
use words::*;

#[test]
fn the_words_are_what_the_assembler_makes_of_the_sources() {
    for Code { name, source, words } in ALL {
        let Some(assembled) = assembled::assemble(source) else { return };
        assert_eq!(assembled, *words, "{name}");
    }
}

fn words_of(parts: &[Code]) -> Vec<u32> {
    parts.iter().chain([&END]).flat_map(|part| part.words.iter().copied()).collect()
}

/// Runs the parts with s[0:1] = `at` from the first byte of a page of data, and s[2:3]. Nothing is mapped next to
/// that page or the code's page. Returns the fault's address relative to the data, and its cause.
fn run(config: Config, parts: &[Code], at: i64, second: u64, is_wave64: bool) -> Option<(i64, Cause)> {
    let mut device = Device::new(config);
    device.next_va += PAGE;
    let data = device.map(PAGE, Rights::READ);
    let code = device.code_words(&words_of(parts));
    let first = data.va.wrapping_add_signed(at);
    let dispatch = device.dispatch(&code, 1, 32, &[first, second]);
    let dispatch = Dispatch { is_wave64, ..dispatch };
    let ticket = device.submit(dispatch);
    device.until("the dispatch ends or fails", || ticket.is_done() || device.engine.has_fault());
    device.engine.take_fault().map(|fault| {
        let WaveFaultKind::Page(Fault { va, cause, .. }) = fault.kind else { panic!("{fault}") };
        let prefetch = parts.last().map_or(0, |part| part.words.len() - 2);
        let before: usize =
            parts.split_last().map_or(0, |(_, parts)| parts.iter().map(|one| one.words.len()).sum());
        assert_eq!(fault.instruction_va, code.va + 4 * (before + prefetch) as u64, "{fault}");
        (va.wrapping_sub(data.va) as i64, cause)
    })
}

/// The prefetch enabled, in both wave sizes.
fn armed(prefetch: Code, at: i64, second: u64) -> Option<(i64, Cause)> {
    let [wave32, wave64] =
        [false, true].map(|is_wave64| run(deterministic(1), &[ARM, prefetch], at, second, is_wave64));
    assert_eq!(wave32, wave64);
    wave32
}

/// The expected fault of an unmapped address.
fn absent(at: u64) -> Option<(i64, Cause)> {
    Some((at as i64, Cause::NotPresent))
}

#[test]
fn lines_are_counted_to_the_last_one() {
    let last = (PAGE - LINE) as i64;
    assert_eq!(armed(DATA, last, 0), None);
    assert_eq!(armed(DATA, PAGE as i64 - 1, 0), None, "the address is rounded down to a line");
    assert_eq!(armed(DATA, PAGE as i64, 0), absent(PAGE));
    assert_eq!(armed(DATA, -1, 0), Some((-(LINE as i64), Cause::NotPresent)));
    assert_eq!(armed(DATA_32, 0, 0), None, "32 lines are a page");
    assert_eq!(armed(DATA_32, LINE as i64, 0), absent(PAGE));
}

#[test]
fn length_operands_are_added_modulo_32_and_null_is_none() {
    let last = (PAGE - LINE) as i64;
    assert_eq!(armed(DATA_LENGTH, last, 0), absent(PAGE), "0 and 1: two lines");
    assert_eq!(armed(DATA_LENGTH, last, 31), None, "31 and 1: one line");
    assert_eq!(armed(DATA_LENGTH, last, 32), absent(PAGE));
    assert_eq!(armed(DATA_LENGTH, 0, 30), None);
    assert_eq!(armed(DATA_LENGTH, LINE as i64, 30), absent(PAGE));
    assert_eq!(armed(DATA_LENGTH, last, u64::from(u32::MAX)), None, "all upper bits are dropped");
    assert_eq!(armed(DATA_M0, last - LINE as i64, 0), None);
    assert_eq!(armed(DATA_M0, last, 0), absent(PAGE));
}

#[test]
fn offsets_have_a_sign_and_their_two_low_bits_count_as_zero() {
    assert_eq!(armed(DATA_BACK, PAGE as i64, 0), None);
    assert_eq!(armed(DATA_BACK, 0, 0), Some((-(LINE as i64), Cause::NotPresent)));
    assert_eq!(armed(DATA_ONE_ON, PAGE as i64 - 1, 0), None);
}

#[test]
fn a_buffer_gives_its_base_and_nothing_else() {
    // A stride in bits 61:48 of the base, no records.
    let swizzled = 0x3FFF << 48;
    assert_eq!(armed(BUFFER, swizzled, 0), None, "its length is not looked at");
    assert_eq!(armed(BUFFER_ON, swizzled, u64::MAX), absent(PAGE));
    assert_eq!(armed(BUFFER_BACK, swizzled, 0), None, "with an offset below zero it is dropped");
}

#[test]
fn relative_forms_count_from_the_next_instruction() {
    assert_eq!(armed(DATA_PC, 0, 0), None);
    // The code's page is two pages after the data, and is followed by an unmapped page.
    assert_eq!(armed(DATA_PC_ON, 0, 0), absent(3 * PAGE));
    assert_eq!(armed(INSTRUCTIONS_PC, 0, 0), None);
    assert_eq!(armed(INSTRUCTIONS_PC_ON, 0, 0), absent(3 * PAGE));
}

#[test]
fn instructions_come_from_code_only() {
    assert_eq!(armed(INSTRUCTIONS, 0, 0), Some((0, Cause::NoExecute)));
    assert_eq!(armed(INSTRUCTIONS, 2 * PAGE as i64, 0), None);
    assert_eq!(armed(INSTRUCTIONS, 3 * PAGE as i64, 0), absent(3 * PAGE));
}

#[test]
fn the_bit_of_mode_decides_and_the_launch_value_is_configured() {
    let set = Config { scalar_prefetch_at_launch: true, ..deterministic(1) };
    for prefetch in [DATA, BUFFER, DATA_PC_ON, INSTRUCTIONS, INSTRUCTIONS_PC_ON] {
        let outcome = |config, parts: &[Code]| run(config, parts, PAGE as i64, 0, false).is_some();
        let [unarmed, disarmed] = [&[prefetch][..], &[ARM, DISARM, prefetch]];
        assert!(!outcome(deterministic(1), unarmed), "{}", prefetch.name);
        assert!(!outcome(deterministic(1), disarmed), "{}", prefetch.name);
        assert!(outcome(set, unarmed), "{}", prefetch.name);
        assert!(!outcome(set, &[DISARM, prefetch]), "{}", prefetch.name);
    }
    for (config, parts, expected) in [
        (deterministic(1), vec![STORE_MODE], 0),
        (deterministic(1), vec![ARM, STORE_MODE], 1),
        (set, vec![STORE_MODE], 1),
        (set, vec![DISARM, STORE_MODE], 0),
    ] {
        let mut device = Device::new(config);
        let out = device.buffer(PAGE);
        out.view.store_u32(0, 7);
        let code = device.code_words(&words_of(&parts));
        device.run(device.dispatch(&code, 1, 32, &[out.va]));
        assert_eq!(out.view.load_u32(0), expected);
    }
}
