//! Rules that assembled kernels obey: stated registers, the SGPR hazard of gfx1201, padding.
//!
//! Contract: works on the disassembly, in the order of the code. The hazard rule is the convention of
//! `include/machine.inc`, which is stricter than the hardware needs (instruction set reference §5.1): what the vector
//! ALU reads lies in s48..s79, is written by the scalar ALU only, and every such write is followed by
//! `s_wait_alu depctr_sa_sdst(0)` before a vector instruction reads the register; vcc is followed by
//! `s_wait_alu depctr_va_vcc(0)` before its reader.

use super::AsmError;
use super::listing::{ListedInstruction, RegisterRange, registers as registers_of};
use super::source::{Directives, Source};
use zrt_isa::resources::VGPR_FIELD_GRANULE_WAVE32;

/// Scalar registers that the vector ALU may read.
const VECTOR_READ: std::ops::RangeInclusive<u16> = 48..=79;
/// Dwords of `s_code_end` after the code (instruction set reference §4.2).
const PADDING_DWORDS: usize = 64;
const CODE_END: u32 = 0xBF9F_0000;

/// The stated register counts cover what the code uses, without more slack than a granule.
pub fn registers(
    source: &Source,
    directives: &Directives,
    listing: &[ListedInstruction],
) -> Result<(), AsmError> {
    let used = |kind: char| {
        let all = listing.iter().flat_map(|listed| registers_of(&listed.operands));
        all.filter(|range| range.kind == kind).map(|range| range.last + 1).max().unwrap_or(0)
    };
    let slack = VGPR_FIELD_GRANULE_WAVE32 as u16;
    for (name, used, stated) in
        [("vgprs", used('v'), directives.vgprs), ("sgprs", used('s'), directives.sgprs)]
    {
        if stated < used || stated >= used + slack {
            return Err(source.error(format!("`//! {name} {stated}`, but the code uses {used}")));
        }
    }
    Ok(())
}

/// The code ends in padding that the instruction prefetcher may read.
pub fn padding(source: &Source, code: &[u8]) -> Result<(), AsmError> {
    let dwords = code.as_chunks::<4>().0;
    let padding = dwords.iter().rev().take_while(|dword| u32::from_le_bytes(**dword) == CODE_END).count();
    if padding < PADDING_DWORDS {
        return Err(
            source.error(format!("{padding} dwords of s_code_end at the end, {PADDING_DWORDS} are needed"))
        );
    }
    Ok(())
}

/// What is written and not yet waited for.
#[derive(Default)]
struct Pending {
    scalar: Vec<RegisterRange>,
    vcc: bool,
}

/// The SGPR hazard.
pub fn scalar_hazards(source: &Source, listing: &[ListedInstruction]) -> Result<(), AsmError> {
    let mut pending = Pending::default();
    for listed in listing {
        step(&mut pending, listed).map_err(|reason| {
            let text = format!("{} {}", listed.mnemonic, listed.operands);
            source.error(format!("at {:#x}, `{text}`: {reason}", listed.code_offset))
        })?;
    }
    Ok(())
}

fn step(pending: &mut Pending, listed: &ListedInstruction) -> Result<(), &'static str> {
    if listed.mnemonic == "s_wait_alu" {
        if listed.operands.contains("depctr_sa_sdst(0)") {
            pending.scalar.clear();
        }
        if listed.operands.contains("depctr_va_vcc(0)") {
            pending.vcc = false;
        }
        return Ok(());
    }
    let operands = listed.operand_list();
    let destination = operands.first().copied().unwrap_or("");
    if listed.is_vector_alu() {
        return vector_step(pending, listed, destination, &operands);
    }
    if writes_scalar(&listed.mnemonic) {
        let written = registers_of(destination).into_iter().filter(|range| range.kind == 's');
        pending.scalar.extend(written.filter(|range| VECTOR_READ.contains(&range.last)));
        if destination.starts_with("vcc") {
            return Err("vcc is for compares only");
        }
    }
    let memory = listed.mnemonic.starts_with("s_load") || listed.mnemonic.starts_with("global_");
    if memory && registers_of(&listed.operands).iter().any(|range| is_vector_read(*range)) {
        return Err("s48..s79 are for values that the vector ALU reads");
    }
    Ok(())
}

fn vector_step(
    pending: &mut Pending,
    listed: &ListedInstruction,
    destination: &str,
    operands: &[&str],
) -> Result<(), &'static str> {
    let compares = listed.mnemonic.starts_with("v_cmp_");
    let compares_exec = listed.mnemonic.starts_with("v_cmpx_");
    let reads_lane =
        listed.mnemonic.starts_with("v_readfirstlane") || listed.mnemonic.starts_with("v_readlane");
    if compares && destination != "vcc_lo" {
        return Err("a compare writes vcc_lo or exec");
    }
    let writes_vector = !compares && !compares_exec && !reads_lane;
    let is_vector = destination.starts_with('v') && !destination.starts_with("vcc");
    if !compares_exec && writes_vector != is_vector {
        return Err("the destination is not of the kind expected");
    }
    if reads_lane && registers_of(destination).iter().any(|range| is_vector_read(*range)) {
        return Err("a lane is read into a register that the vector ALU reads");
    }
    let sources = if compares_exec { operands } else { operands.get(1..).unwrap_or(&[]) };
    for range in sources.iter().flat_map(|text| registers_of(text)).filter(|range| range.kind == 's') {
        if !is_vector_read(range) {
            return Err("the vector ALU reads a scalar register outside s48..s79");
        }
        if pending.scalar.iter().any(|written| written.first <= range.last && range.first <= written.last) {
            return Err("a scalar write before it is not waited for: s_wait_alu depctr_sa_sdst(0)");
        }
    }
    if sources.iter().any(|text| text.starts_with("vcc")) && std::mem::take(&mut pending.vcc) {
        return Err("the compare before it is not waited for: s_wait_alu depctr_va_vcc(0)");
    }
    if compares {
        pending.vcc = true;
    }
    Ok(())
}

fn is_vector_read(range: RegisterRange) -> bool {
    range.kind == 's' && VECTOR_READ.contains(&range.first) && VECTOR_READ.contains(&range.last)
}

/// True for scalar ALU instructions whose first operand is a destination.
fn writes_scalar(mnemonic: &str) -> bool {
    const NO_DESTINATION: [&str; 11] = [
        "s_cmp",
        "s_bitcmp",
        "s_cbranch",
        "s_branch",
        "s_wait",
        "s_load",
        "s_barrier",
        "s_endpgm",
        "s_code_end",
        "s_clause",
        "s_nop",
    ];
    mnemonic.starts_with("s_") && !NO_DESTINATION.iter().any(|prefix| mnemonic.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: &[&str]) -> Result<(), &'static str> {
        let mut pending = Pending::default();
        for line in code {
            let (mnemonic, operands) = line.split_once(' ').expect("an operand");
            let listed =
                ListedInstruction { mnemonic: mnemonic.into(), operands: operands.into(), code_offset: 0 };
            step(&mut pending, &listed)?;
        }
        Ok(())
    }

    #[test]
    fn hazards_are_found() {
        let wait = "s_wait_alu depctr_sa_sdst(0)";
        assert!(check(&["s_mov_b32 s48, s4", wait, "v_mov_b32_e32 v1, s48"]).is_ok());
        assert!(check(&["s_mov_b32 s48, s4", "v_mov_b32_e32 v1, s48"]).is_err());
        assert!(check(&["s_mov_b32 s48, s4", "v_cmpx_gt_u32_e32 s48, v1"]).is_err());
        assert!(check(&["s_mov_b32 s4, s5", wait, "v_mov_b32_e32 v1, s4"]).is_err());
        assert!(check(&["v_readfirstlane_b32 s48, v1"]).is_err());
        assert!(check(&["v_readfirstlane_b32 s4, v1", "s_add_co_u32 s5, s4, s4"]).is_ok());
        let select = "v_cndmask_b32_e32 v1, v2, v3, vcc_lo";
        assert!(check(&["v_cmp_lt_f32_e64 vcc_lo, |v1|, |v2|", select]).is_err());
        assert!(
            check(&["v_cmp_lt_f32_e64 vcc_lo, |v1|, |v2|", "s_wait_alu depctr_va_vcc(0)", select]).is_ok()
        );
        assert!(check(&["v_cmp_lt_f32_e64 s6, v1, v2"]).is_err());
        assert!(check(&["s_mov_b32 vcc_lo, 0"]).is_err());
    }
}
