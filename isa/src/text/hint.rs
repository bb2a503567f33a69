//! Scope and temporal hint of memory operations (instruction set reference §4.3).

use crate::encoding::Encoding;
use crate::instruction::Instruction;
use crate::opcode::Properties;
use core::fmt::{Formatter, Result};

/// Scope numbers.
const DEVICE: u8 = 2;
const SYSTEM: u8 = 3;
/// Hint bits of an atomic.
const RETURN: u8 = 1;
const NON_TEMPORAL: u8 = 2;
const CASCADE: u8 = 4;

/// Writes ` th:… scope:…`; defaults are omitted.
pub(super) fn write(instruction: &Instruction, out: &mut Formatter<'_>) -> Result {
    let Instruction { temporal_hint, scope, .. } = *instruction;
    if temporal_hint != 0 {
        if instruction.opcode.operands().properties.contains(Properties::ATOMIC) {
            atomic(out, temporal_hint, scope)?;
        } else {
            transfer(out, instruction, temporal_hint, scope)?;
        }
    }
    out.write_str(["", " scope:SCOPE_SE", " scope:SCOPE_DEV", " scope:SCOPE_SYS"][usize::from(scope & 3)])
}

fn atomic(out: &mut Formatter<'_>, hint: u8, scope: u8) -> Result {
    out.write_str(" th:TH_ATOMIC_")?;
    if hint & CASCADE != 0 {
        return match (scope >= DEVICE, hint & NON_TEMPORAL != 0) {
            (true, true) => out.write_str("CASCADE_NT"),
            (true, false) => out.write_str("CASCADE_RT"),
            (false, _) => write!(out, "{hint:#x}"),
        };
    }
    out.write_str(match (hint & NON_TEMPORAL != 0, hint & RETURN != 0) {
        (true, true) => "NT_RETURN",
        (true, false) => "NT",
        (false, _) => "RETURN",
    })
}

fn transfer(out: &mut Formatter<'_>, instruction: &Instruction, hint: u8, scope: u8) -> Result {
    let is_store = instruction.encoding != Encoding::Smem && instruction.opcode.mnemonic().contains("store");
    if !is_store && hint == 7 {
        return write!(out, " th:{hint:#x}");
    }
    out.write_str(if is_store { " th:TH_STORE_" } else { " th:TH_LOAD_" })?;
    out.write_str(match hint {
        1 => "NT",
        2 => "HT",
        3 if scope == SYSTEM => "BYPASS",
        3 if is_store => "RT_WB",
        3 => "LU",
        4 => "NT_RT",
        5 => "RT_NT",
        6 => "NT_HT",
        _ => "NT_WB",
    })
}
