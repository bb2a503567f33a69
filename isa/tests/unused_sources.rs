//! Source fields that an operation of VOP3, VOP3SD or VOP3P does not use: their contents do not change the
//! instruction.
//!
//! `unused_sources.txt` lists which words LLVM 22 accepts, and how it writes them. LLVM 22 itself assembles 128,
//! the code of an inline 0, into such fields, so that they do not look like reads of s0.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use proptest::prelude::*;
use std::collections::BTreeSet;
use zrt_isa::opcode::OPCODES;
use zrt_isa::resources::WaveSize;
use zrt_isa::{DecodeError, Encoding, Opcode, decode, decode_for, decode_like_llvm};

/// Where the three source fields begin in the second dword; each has 9 bits.
const FIELDS: [u32; 3] = [0, 9, 18];

fn corpus() -> Vec<(Vec<u32>, &'static str)> {
    let words = |text: &str| text.split(' ').map(|word| u32::from_str_radix(word, 16).unwrap()).collect();
    include_str!("unused_sources.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_once('\t').unwrap())
        .map(|(line, text)| (words(line), text))
        .collect()
}

/// Whether the operation has a 64-bit encoding with an unused source field. That of `v_mov_b16` is LLVM's with
/// `real-true16` alone, where its registers are written otherwise.
fn leaves_one_open(opcode: Opcode) -> bool {
    opcode != Opcode::VMovB16
        && opcode.operands().form.is_some()
        && opcode.operands().sources.iter().any(|kind| !kind.is_present())
}

#[test]
fn text_and_length_are_those_of_llvm_22() {
    let corpus = corpus();
    for (words, text) in &corpus {
        let instruction = decode(words).unwrap_or_else(|error| panic!("{words:08x?} is {text}: {error}"));
        assert_eq!(instruction.to_string(), *text, "{words:08x?}");
        assert_eq!(instruction.dword_count as usize, words.len(), "{words:08x?}");
    }
    let known: BTreeSet<Opcode> = corpus.iter().map(|(words, _)| decode(words).unwrap().opcode).collect();
    let missing: Vec<&Opcode> =
        OPCODES.iter().filter(|opcode| leaves_one_open(**opcode) && !known.contains(opcode)).collect();
    assert!(missing.is_empty(), "no line for {missing:?}");
}

/// llvm-mc 19 accepts none of them, so its dialect does not either.
#[test]
fn the_dialect_of_llvm_19_refuses_them() {
    for (words, text) in corpus() {
        let refused = decode_like_llvm(&words, WaveSize::Wave32);
        assert!(matches!(refused, Err(DecodeError::Unknown { .. })), "{words:08x?} is {text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// Any codes in the unused fields: the same instruction, in both wave sizes; the code of a used field still
    /// matters.
    #[test]
    fn unused_fields_do_not_matter(
        line in 0..corpus().len(),
        codes in proptest::array::uniform3(0_u32..512),
        wave_size in prop_oneof![Just(WaveSize::Wave32), Just(WaveSize::Wave64)],
    ) {
        let (words, text) = corpus().swap_remove(line);
        let expected = decode_for(&words, wave_size).unwrap();
        let mut other = words.clone();
        for (index, low) in FIELDS.into_iter().enumerate() {
            if !expected.opcode.operands().sources[index].is_present() {
                other[1] = other[1] & !(511 << low) | codes[index] << low;
            }
        }
        prop_assert_eq!(decode_for(&other, wave_size), Ok(expected), "{:08x?} is {}", other, text);
        // Code 209 is undefined: it is refused in any source that is read.
        let mut broken = words;
        broken[1] = broken[1] & !(511 << FIELDS[0]) | 209;
        let is_read = expected.opcode.operands().sources[0].is_present();
        prop_assert_eq!(decode_for(&broken, wave_size).is_err(), is_read);
        prop_assert!(matches!(expected.encoding, Encoding::Vop3 | Encoding::Vop3sd | Encoding::Vop3p));
    }
}
