//! Scalar loads from an array of bytes; the words are llvm-mc 19's.

use zrt_isa::opcode::OPCODES;
use zrt_isa::{Instruction, decode};

use super::translate;
use crate::shader::fault::WaveFaultKind;
use crate::shader::machine::Stop;
use crate::shader::valu::testing::{assert_same, wave};
use crate::shader::vmem::tests::{BASE, LEN, Memory};
use crate::shader::wave::Wave;

const WORDS: [(&str, u32); 6] = [("b32", 1), ("b64", 2), ("b96", 3), ("b128", 4), ("b256", 8), ("b512", 16)];
const NARROW: [(&str, u32, bool); 4] =
    [("u8", 1, false), ("i8", 1, true), ("u16", 2, false), ("i16", 2, true)];

/// `s_load_… s16, s[8:9], s12 offset:8`, or `s_buffer_load_… s16, s[8:11], s12 offset:8`.
fn load(prefix: &str, datum: &str) -> Instruction {
    let words = if prefix == "s_load" { [0xF400A404, 0x18000008] } else { [0xF4024404, 0x18000008] };
    let name = format!("{prefix}_{datum}");
    let opcode = *OPCODES.iter().find(|opcode| opcode.mnemonic() == name).unwrap();
    Instruction { opcode, ..decode(&words).unwrap() }
}

fn run(memory: &Memory, start: &Wave, instruction: &Instruction) -> Result<Wave, Stop> {
    let op = translate(instruction).unwrap();
    let mut wave = start.clone();
    memory.with(|machine| {
        op.executor.call(&mut wave, &op, machine);
        machine.stop.map_or(Ok(wave), Err)
    })
}

fn bytes_at(bytes: &[u8], at: u32, width: u32) -> u32 {
    bytes[at as usize..][..width as usize].iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte))
}

fn extended(raw: u32, width: u32, is_signed: bool) -> u32 {
    let unused = 32 - 8 * width;
    if is_signed { ((raw << unused) as i32 >> unused) as u32 } else { raw }
}

/// The address is the sum of base, soffset and offset; loads of dwords ignore its low two bits.
#[test]
fn scalars_are_loaded_from_the_sum_of_three() {
    let memory = Memory::new();
    let bytes = memory.bytes();
    // `at` is the sum of the address and what soffset adds.
    let start = |at: u32| {
        let mut start = wave();
        start.set_scalar_pair(8, BASE - 8 - 0x30 + u64::from(at));
        start.scalar[12] = 0x30;
        start
    };
    for at in [0, 4, 65, 66, 67, LEN - 64, 0x2000 - 4, 0x2000 - 30] {
        for (datum, words) in WORDS {
            let start = start(at);
            let end = run(&memory, &start, &load("s_load", datum)).unwrap();
            let mut expected = start.clone();
            for word in 0..words {
                expected.scalar[16 + word as usize] = bytes_at(&bytes, at / 4 * 4 + 4 * word, 4);
            }
            assert_same(&end, &expected, &format!("s_load_{datum} at {at:#x}"));
        }
        for (datum, width, is_signed) in NARROW {
            let start = start(at);
            let end = run(&memory, &start, &load("s_load", datum)).unwrap();
            let mut expected = start.clone();
            expected.scalar[16] = extended(bytes_at(&bytes, at, width), width, is_signed);
            assert_same(&end, &expected, &format!("s_load_{datum} at {at:#x}"));
        }
    }
    for (datum, width) in [("b32", 4), ("b512", 64), ("u16", 2)] {
        assert!(run(&memory, &start(LEN - width), &load("s_load", datum)).is_ok());
        let stop = run(&memory, &start(LEN - width + 4), &load("s_load", datum)).err().unwrap();
        let WaveFaultKind::Page(fault) = stop.kind else { panic!("{}", stop.kind) };
        let first = u64::from(LEN.max(LEN - width + 4));
        assert_eq!((fault.va, stop.lane), (BASE + first, None), "{datum}");
    }
}

/// Dwords (or narrow values) that are not wholly inside the buffer are zero, though memory goes on.
#[test]
fn buffers_end_at_their_records() {
    let memory = Memory::new();
    let bytes = memory.bytes();
    // Without a stride records are bytes; 3 records of 40 bytes are as long as 120 bytes.
    for (stride, records) in [(0, 120), (40, 3)] {
        for at in [0, 8, 56, 60, 64, 90, 104, 108, 112, 116, 117, 119, 120, 1000] {
            let mut start = wave();
            start.set_scalar_pair(8, BASE | stride << 48);
            (start.scalar[10], start.scalar[11], start.scalar[12]) = (records, 0, at);
            // The instruction adds 8.
            let offset = at + 8;
            let inside = |from: u32, width: u32| from + width <= 120;
            for (datum, words) in WORDS {
                let end = run(&memory, &start, &load("s_buffer_load", datum)).unwrap();
                let mut expected = start.clone();
                for word in 0..words {
                    let from = offset / 4 * 4 + 4 * word;
                    expected.scalar[16 + word as usize] =
                        if inside(from, 4) { bytes_at(&bytes, from, 4) } else { 0 };
                }
                assert_same(&end, &expected, &format!("s_buffer_load_{datum} at {at}"));
            }
            for (datum, width, is_signed) in NARROW {
                let end = run(&memory, &start, &load("s_buffer_load", datum)).unwrap();
                let raw = if inside(offset, width) { bytes_at(&bytes, offset, width) } else { 0 };
                let mut expected = start.clone();
                expected.scalar[16] = extended(raw, width, is_signed);
                assert_same(&end, &expected, &format!("s_buffer_load_{datum} at {at}"));
            }
        }
    }
}
