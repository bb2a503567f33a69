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
        pending.scalar.extend(registers_of(destination).into_iter().filter(is_partly_vector_read));
        if destination.starts_with("vcc") {
            return Err("vcc is for compares only");
        }
    }
    if uses_scalar_address(&listed.mnemonic)
        && registers_of(&listed.operands).iter().any(is_partly_vector_read)
    {
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
    if reads_lane && registers_of(destination).iter().any(is_partly_vector_read) {
        return Err("a lane is read into a register that the vector ALU reads");
    }
    let sources = if compares_exec { operands } else { operands.get(1..).unwrap_or(&[]) };
    for range in sources.iter().flat_map(|text| registers_of(text)).filter(|range| range.kind == 's') {
        if !(VECTOR_READ.contains(&range.first) && VECTOR_READ.contains(&range.last)) {
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

/// True if one of the registers is for what the vector ALU reads.
fn is_partly_vector_read(range: &RegisterRange) -> bool {
    range.kind == 's' && range.first <= *VECTOR_READ.end() && range.last >= *VECTOR_READ.start()
}

/// True for memory instructions that take addresses, descriptors or offsets from scalar registers, or load them.
fn uses_scalar_address(mnemonic: &str) -> bool {
    const PREFIXES: [&str; 10] = [
        "s_load",
        "s_buffer",
        "s_prefetch",
        "s_atc_probe",
        "global_",
        "flat_",
        "scratch_",
        "buffer_",
        "tbuffer_",
        "image_",
    ];
    PREFIXES.iter().any(|prefix| mnemonic.starts_with(prefix))
}

/// True for scalar ALU instructions whose first operand is a destination.
fn writes_scalar(mnemonic: &str) -> bool {
    const NO_DESTINATION: [&str; 13] = [
        "s_cmp",
        "s_bitcmp",
        "s_cbranch",
        "s_branch",
        "s_wait",
        "s_load",
        "s_buffer",
        "s_prefetch",
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
            step(&mut pending, &listed(0, mnemonic, operands))?;
        }
        Ok(())
    }

    #[test]
    fn hazards_are_found() {
        const WAIT: &str = "s_wait_alu depctr_sa_sdst(0)";
        const VCC_WAIT: &str = "s_wait_alu depctr_va_vcc(0)";
        const SELECT: &str = "v_cndmask_b32_e32 v1, v2, v3, vcc_lo";
        const COMPARE: &str = "v_cmp_lt_f32_e64 vcc_lo, |v1|, |v2|";
        let unwaited = Err("a scalar write before it is not waited for: s_wait_alu depctr_sa_sdst(0)");
        let outside = Err("the vector ALU reads a scalar register outside s48..s79");
        let memory = Err("s48..s79 are for values that the vector ALU reads");
        let lane = Err("a lane is read into a register that the vector ALU reads");
        let compared = Err("the compare before it is not waited for: s_wait_alu depctr_va_vcc(0)");
        let kind = Err("the destination is not of the kind expected");
        let cases: &[(&[&str], Result<(), &str>)] = &[
            (&["s_mov_b32 s48, s4", WAIT, "v_mov_b32_e32 v1, s48"], Ok(())),
            (&["s_mov_b32 s48, s4", "v_mov_b32_e32 v1, s48"], unwaited),
            (&["s_mov_b32 s48, s4", VCC_WAIT, "v_mov_b32_e32 v1, s48"], unwaited),
            (&["s_mov_b32 s79, s4", "v_mov_b32_e32 v1, s79"], unwaited),
            (&["s_mov_b32 s48, s4", "v_cmpx_gt_u32_e32 s48, v1"], unwaited),
            (&["s_mov_b64 s[48:49], s[4:5]", "v_mov_b32_e32 v1, s49"], unwaited),
            (&["s_mov_b32 s49, s4", "v_lshlrev_b64_e64 v[1:2], v3, s[48:49]"], unwaited),
            // Others than the registers that are written may be read.
            (&["s_mov_b32 s49, s4", "v_mov_b32_e32 v1, s48", "v_mov_b32_e32 v1, s50"], Ok(())),
            // What only compares, writes nothing.
            (&["s_cmp_eq_u32 s48, s49", "v_mov_b32_e32 v1, s48"], Ok(())),
            (&["s_bitcmp1_b32 s48, 0", "v_mov_b32_e32 v1, s48"], Ok(())),
            (&["s_mov_b32 s4, s5", WAIT, "v_mov_b32_e32 v1, s4"], outside),
            (&["v_mov_b32_e32 v1, s47"], outside),
            (&["v_mov_b32_e32 v1, s80"], outside),
            (&["v_lshlrev_b64_e64 v[1:2], v3, s[47:48]"], outside),
            (&["v_lshlrev_b64_e64 v[1:2], v3, s[79:80]"], outside),
            (&["v_readfirstlane_b32 s48, v1"], lane),
            (&["v_readlane_b32 s79, v1, 3"], lane),
            (&["v_readfirstlane_b32 s4, v1", "s_add_co_u32 s5, s4, s4"], Ok(())),
            (&[COMPARE, SELECT], compared),
            (&[COMPARE, WAIT, SELECT], compared),
            (&[COMPARE, VCC_WAIT, SELECT], Ok(())),
            (&["v_cmp_lt_f32_e64 s6, v1, v2"], Err("a compare writes vcc_lo or exec")),
            (&["v_cmpx_gt_u32_e32 v1, v2", "v_cmpx_gt_u32_e32 0, v1"], Ok(())),
            (&["v_mov_b32_e32 s4, v1"], kind),
            (&["v_readfirstlane_b32 v1, v2"], kind),
            (&["s_mov_b32 vcc_lo, 0"], Err("vcc is for compares only")),
            (&["s_load_b64 s[48:49], s[0:1], null"], memory),
            (&["s_load_b64 s[4:5], s[78:79], null"], memory),
            (&["s_load_b64 s[46:47], s[80:81], null"], Ok(())),
            (&["global_load_b32 v1, v2, s[48:49]"], memory),
            (&["global_load_b32 v50, v51, s[4:5]"], Ok(())),
            (&["s_buffer_load_b32 s48, s[4:7], null"], memory),
            (&["s_buffer_load_b32 s4, s[76:79], 0x10"], memory),
            (&["s_buffer_load_b32 s4, s[8:11], 0x10"], Ok(())),
            (&["s_prefetch_data s[48:49], 0, null, 0"], memory),
            (&["buffer_load_b32 v1, off, s[48:51], null"], memory),
            (&["buffer_store_b32 v1, v2, s[8:11], s79 offen"], memory),
            (&["buffer_store_b32 v1, v2, s[8:11], s80 offen"], Ok(())),
            (&["tbuffer_load_format_x v1, off, s[48:51], null format:[BUF_FMT_32_FLOAT]"], memory),
            (&["tbuffer_load_format_x v50, off, s[8:11], null format:[BUF_FMT_32_FLOAT]"], Ok(())),
            (&["image_load v1, [v2, v3], s[72:79] dmask:0x1 dim:SQ_RSRC_IMG_2D"], memory),
            (&["image_load v50, [v2, v3], s[40:47] dmask:0x1 dim:SQ_RSRC_IMG_2D"], Ok(())),
            (&["s_atc_probe 0, s[48:49], 0x10"], memory),
            (&["s_atc_probe_buffer 0, s[8:11], s79"], memory),
            (&["s_atc_probe 0, s[46:47], s80"], Ok(())),
            (&["scratch_load_b32 v1, off, s50"], memory),
            (&["flat_load_b32 v1, v[2:3]"], Ok(())),
            // A load of many registers may begin before them, or end behind them.
            (&["s_load_b256 s[44:51], s[0:1], null"], memory),
            (&["s_load_b256 s[76:83], s[0:1], null"], memory),
            (&["ds_load_b32 v48, v1"], Ok(())),
        ];
        for (code, expected) in cases {
            assert_eq!(check(code), *expected, "{code:?}");
        }
    }

    fn listed(code_offset: u32, mnemonic: &str, operands: &str) -> ListedInstruction {
        ListedInstruction { mnemonic: mnemonic.into(), operands: operands.into(), code_offset }
    }

    #[test]
    fn a_hazard_is_told_with_its_place() {
        let source = Source::made_up("");
        let code = [
            listed(0, "s_mov_b32", "s48, s4"),
            listed(4, "s_nop", "0"),
            listed(16, "v_mov_b32_e32", "v1, s48"),
        ];
        assert!(scalar_hazards(&source, &code[..2]).is_ok());
        assert_eq!(
            scalar_hazards(&source, &code).unwrap_err().to_string(),
            "asm/gfx1201/made_up.s: at 0x10, `v_mov_b32_e32 v1, s48`: a scalar write before it is not waited for: \
             s_wait_alu depctr_sa_sdst(0)"
        );
    }

    /// The field of a wave of 32 lanes counts VGPRs by eights: more slack than seven would cost a block.
    #[test]
    fn stated_registers_cover_those_that_are_used_with_little_slack() {
        let code = [listed(0, "global_load_b64", "v[2:3], v1, s[10:11]"), listed(8, "s_mov_b32", "s4, 0")];
        let said = |vgprs, sgprs| {
            let parameters = "Copy".to_owned();
            let stated = Directives { parameters, workgroup: [64, 1, 1], vgprs, sgprs, lds_bytes: 0 };
            registers(&Source::made_up(""), &stated, &code).map_err(|error| error.to_string())
        };
        for right in [(4, 12), (11, 12), (4, 19)] {
            assert_eq!(said(right.0, right.1), Ok(()));
        }
        for (vgprs, sgprs, reason) in [
            (3, 12, "`//! vgprs 3`, but the code uses 4"),
            (12, 12, "`//! vgprs 12`, but the code uses 4"),
            (4, 11, "`//! sgprs 11`, but the code uses 12"),
            (4, 20, "`//! sgprs 20`, but the code uses 12"),
        ] {
            assert_eq!(said(vgprs, sgprs), Err(format!("asm/gfx1201/made_up.s: {reason}")));
        }
    }

    #[test]
    fn code_ends_in_64_dwords_of_padding() {
        let said = |count: usize| {
            // s_endpgm, then as many s_code_end.
            let words = [&[0xBF9F_0000, 0xBFB0_0000][..], &vec![0xBF9F_0000_u32; count]].concat();
            let code: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
            padding(&Source::made_up(""), &code).map_err(|error| error.to_string())
        };
        assert_eq!((said(64), said(65)), (Ok(()), Ok(())));
        for count in [0, 63] {
            let reason = format!("{count} dwords of s_code_end at the end, 64 are needed");
            assert_eq!(said(count), Err(format!("asm/gfx1201/made_up.s: {reason}")));
        }
    }
}
