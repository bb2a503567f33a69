//! Immediates with special spellings: waits, delays, hardware registers, messages, LDS swizzles, lane controls.
//!
//! Contract: no allocation. Names: instruction set reference §1, §3, §4; spelling as llvm-mc 19.

use crate::opcode::Opcode;
use core::fmt::{Formatter, Result};

/// The immediate of a SOPP or SOPK operation.
pub(super) fn immediate(out: &mut Formatter<'_>, opcode: Opcode, value: u32) -> Result {
    match opcode {
        Opcode::SGetregB32 | Opcode::SSetregB32 | Opcode::SSetregImm32B32 => hardware_register(out, value),
        Opcode::SSendmsg | Opcode::SSendmsghalt => message(out, value),
        Opcode::SDelayAlu => delay(out, value),
        Opcode::SWaitAlu => wait_alu(out, value),
        Opcode::SWaitcnt => wait_legacy(out, value),
        Opcode::SVersion => version(out, value),
        Opcode::SBranch
        | Opcode::SCbranchScc0
        | Opcode::SCbranchScc1
        | Opcode::SCbranchVccz
        | Opcode::SCbranchVccnz
        | Opcode::SCbranchExecz
        | Opcode::SCbranchExecnz
        | Opcode::SCallB64
        | Opcode::SEndpgm => write!(out, "{value}"),
        Opcode::SNop
        | Opcode::SSetkill
        | Opcode::SSethalt
        | Opcode::SSleep
        | Opcode::STrap
        | Opcode::SDenormMode
        | Opcode::SBarrierWait
        | Opcode::SSetprio
        | Opcode::SIncperflevel
        | Opcode::SDecperflevel => match value {
            0..=64 => write!(out, "{value}"),
            _ => write!(out, "{value:#x}"),
        },
        _ => write!(out, "{value:#x}"),
    }
}

/// `-0x10` rather than two's complement.
pub(super) fn signed_hexadecimal(out: &mut Formatter<'_>, value: i32) -> Result {
    write!(out, "{}{:#x}", if value < 0 { "-" } else { "" }, value.unsigned_abs())
}

/// Hardware register names by id (instruction set reference §3).
fn hardware_register_name(id: u32) -> Option<&'static str> {
    Some(match id {
        1 => "MODE",
        2 => "STATUS",
        4 => "STATE_PRIV",
        5 => "GPR_ALLOC",
        6 => "LDS_ALLOC",
        7 => "IB_STS",
        10 => "PERF_SNAPSHOT_DATA",
        11 => "PERF_SNAPSHOT_PC_LO",
        12 => "PERF_SNAPSHOT_PC_HI",
        15 => "PERF_SNAPSHOT_DATA1",
        16 => "PERF_SNAPSHOT_DATA2",
        17 => "EXCP_FLAG_PRIV",
        18 => "EXCP_FLAG_USER",
        19 => "TRAP_CTRL",
        20 => "SCRATCH_BASE_LO",
        21 => "SCRATCH_BASE_HI",
        23 => "HW_ID1",
        24 => "HW_ID2",
        29 => "SHADER_CYCLES_LO",
        30 => "SHADER_CYCLES_HI",
        31 => "DVGPR_ALLOC_LO",
        32 => "DVGPR_ALLOC_HI",
        _ => return None,
    })
}

/// Bits 5:0 id, 10:6 offset, 15:11 size - 1.
fn hardware_register(out: &mut Formatter<'_>, value: u32) -> Result {
    let (id, offset, size) = (value & 63, value >> 6 & 31, (value >> 11 & 31) + 1);
    match hardware_register_name(id) {
        Some(name) => write!(out, "hwreg(HW_REG_{name}")?,
        None => write!(out, "hwreg({id}")?,
    }
    if offset != 0 || size != 32 {
        write!(out, ", {offset}, {size}")?;
    }
    out.write_str(")")
}

/// Messages: bits 7:0 id, operation 6:4 and stream 9:8 of the old layout.
pub(super) fn message(out: &mut Formatter<'_>, value: u32) -> Result {
    let name = match value & 0xff {
        1 => "MSG_INTERRUPT",
        2 => "MSG_HS_TESSFACTOR",
        3 => "MSG_DEALLOC_VGPRS",
        9 => "MSG_GS_ALLOC_REQ",
        128 => "MSG_RTN_GET_DOORBELL",
        129 => "MSG_RTN_GET_DDID",
        130 => "MSG_RTN_GET_TMA",
        131 => "MSG_RTN_GET_REALTIME",
        132 => "MSG_RTN_SAVE_WAVE",
        133 => "MSG_RTN_GET_TBA",
        134 => "MSG_RTN_GET_TBA_TO_PC",
        135 => "MSG_RTN_GET_SE_AID_ID",
        id if value == id => return write!(out, "sendmsg({id}, 0, 0)"),
        _ => return write!(out, "{value}"),
    };
    write!(out, "sendmsg({name})")
}

/// `s_delay_alu`: instid0 3:0, instskip 6:4, instid1 10:7 (instruction set reference §4.1).
fn delay(out: &mut Formatter<'_>, value: u32) -> Result {
    const INSTRUCTIONS: [&str; 12] = [
        "NO_DEP",
        "VALU_DEP_1",
        "VALU_DEP_2",
        "VALU_DEP_3",
        "VALU_DEP_4",
        "TRANS32_DEP_1",
        "TRANS32_DEP_2",
        "TRANS32_DEP_3",
        "FMA_ACCUM_CYCLE_1",
        "SALU_CYCLE_1",
        "SALU_CYCLE_2",
        "SALU_CYCLE_3",
    ];
    const SKIPS: [&str; 6] = ["SAME", "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4"];
    let fields: [(&str, u32, &[&str], &str); 3] = [
        ("instid0", value & 15, &INSTRUCTIONS, "/* invalid instid value */"),
        ("instskip", value >> 4 & 7, &SKIPS, "/* invalid instskip value */"),
        ("instid1", value >> 7 & 15, &INSTRUCTIONS, "/* invalid instid value */"),
    ];
    let mut separator = "";
    for (name, field, values, invalid) in fields {
        if field != 0 {
            write!(out, "{separator}{name}({})", values.get(field as usize).unwrap_or(&invalid))?;
            separator = " | ";
        }
    }
    if separator.is_empty() { out.write_str("0") } else { Ok(()) }
}

/// `s_wait_alu`: counters that are not at their maximum (instruction set reference §4.1).
fn wait_alu(out: &mut Formatter<'_>, value: u32) -> Result {
    /// Name, low bit, width.
    const FIELDS: [(&str, u32, u32); 7] = [
        ("hold_cnt", 7, 1),
        ("sa_sdst", 0, 1),
        ("va_vdst", 12, 4),
        ("va_sdst", 9, 3),
        ("va_ssrc", 8, 1),
        ("va_vcc", 1, 1),
        ("vm_vsrc", 2, 3),
    ];
    /// Bits that belong to no counter.
    const UNUSED: u32 = 0x60;
    if value & UNUSED != 0 {
        return write!(out, "{value:#x}");
    }
    let is_wait = |low: u32, width: u32| value >> low & ((1 << width) - 1) != (1 << width) - 1;
    // When every counter is at its maximum, all are written.
    let all = !FIELDS.iter().any(|&(_, low, width)| is_wait(low, width));
    let mut separator = "";
    for (name, low, width) in FIELDS {
        if all || is_wait(low, width) {
            write!(out, "{separator}depctr_{name}({})", value >> low & ((1 << width) - 1))?;
            separator = " ";
        }
    }
    Ok(())
}

/// The old `s_waitcnt`: vmcnt 15:10, lgkmcnt 9:4, expcnt 2:0.
fn wait_legacy(out: &mut Formatter<'_>, value: u32) -> Result {
    let fields =
        [("vmcnt", value >> 10 & 63, 63), ("expcnt", value & 7, 7), ("lgkmcnt", value >> 4 & 63, 63)];
    let all = fields.iter().all(|&(_, count, maximum)| count == maximum);
    let mut separator = "";
    for (name, count, maximum) in fields {
        if all || count != maximum {
            write!(out, "{separator}{name}({count})")?;
            separator = " ";
        }
    }
    Ok(())
}

/// `s_version`: 7:0 version, 12:8 unused, flags above.
fn version(out: &mut Formatter<'_>, value: u32) -> Result {
    const FLAGS: [(&str, u32); 3] =
        [("UC_VERSION_W64_BIT", 0x2000), ("UC_VERSION_W32_BIT", 0x4000), ("UC_VERSION_MDP_BIT", 0x8000)];
    if value & 0x1f00 != 0 {
        return write!(out, "{value:#x}");
    }
    // Each further flag encloses what was written before it.
    let flags = FLAGS.iter().filter(|(_, bit)| value & bit != 0);
    for _ in 1..flags.clone().count() {
        out.write_str("(")?;
    }
    match value & 0xff {
        0 => out.write_str("UC_VERSION_GFX7")?,
        4 => out.write_str("UC_VERSION_GFX10")?,
        6 => out.write_str("UC_VERSION_GFX11")?,
        9 => out.write_str("UC_VERSION_GFX12")?,
        version => write!(out, "{version}")?,
    }
    for (index, (flag, _)) in flags.enumerate() {
        write!(out, "{}|{flag}", if index > 0 { ")" } else { "" })?;
    }
    Ok(())
}

/// ` quad_perm:[…]` and the other DPP16 controls (instruction set reference §1).
pub(super) fn dpp_control(out: &mut Formatter<'_>, control: u16) -> Result {
    let amount = control & 15;
    match control {
        0..=0xff => write!(
            out,
            " quad_perm:[{},{},{},{}]",
            control & 3,
            control >> 2 & 3,
            control >> 4 & 3,
            control >> 6 & 3
        ),
        0x100..=0x10f => write!(out, " row_shl:{amount}"),
        0x110..=0x11f => write!(out, " row_shr:{amount}"),
        0x120..=0x12f => write!(out, " row_ror:{amount}"),
        0x140 => out.write_str(" row_mirror"),
        0x141 => out.write_str(" row_half_mirror"),
        0x150..=0x15f => write!(out, " row_share:{amount}"),
        _ => write!(out, " row_xmask:{amount}"),
    }
}

/// The offset of an LDS operation: one of 16 bits, two of 8, or a swizzle.
pub(super) fn local_offset(out: &mut Formatter<'_>, opcode: Opcode, value: u32) -> Result {
    if opcode == Opcode::DsSwizzleB32 {
        return swizzle(out, value);
    }
    if opcode.mnemonic().contains("_2addr") {
        let (first, second) = (value & 0xff, value >> 8);
        if first != 0 {
            write!(out, " offset0:{first}")?;
        }
        if second != 0 {
            write!(out, " offset1:{second}")?;
        }
        return Ok(());
    }
    if value != 0 { write!(out, " offset:{value}") } else { Ok(()) }
}

/// `ds_swizzle_b32` patterns (instruction set reference §9): and-mask 4:0, or-mask 9:5, xor-mask 14:10.
fn swizzle(out: &mut Formatter<'_>, value: u32) -> Result {
    if value == 0 {
        return Ok(());
    }
    if value & 0xff00 == 0x8000 {
        let lane = |index: u32| value >> (2 * index) & 3;
        return write!(out, " offset:swizzle(QUAD_PERM,{},{},{},{})", lane(0), lane(1), lane(2), lane(3));
    }
    if value >= 0x8000 {
        return write!(out, " offset:{value}");
    }
    let (and, or, xor) = (value & 31, value >> 5 & 31, value >> 10 & 31);
    if and == 31 && or == 0 && xor.is_power_of_two() {
        return write!(out, " offset:swizzle(SWAP,{xor})");
    }
    if and == 31 && or == 0 && xor > 0 && (xor + 1).is_power_of_two() {
        return write!(out, " offset:swizzle(REVERSE,{})", xor + 1);
    }
    // A group of lanes reads one of its own: the and-mask keeps the group's bits.
    let group = 32 - and;
    if xor == 0 && group > 1 && group.is_power_of_two() && or < group {
        return write!(out, " offset:swizzle(BROADCAST,{group},{or})");
    }
    out.write_str(" offset:swizzle(BITMASK_PERM,\"")?;
    for bit in (0..5).rev() {
        let with = |lane: u32| (lane & and | or) ^ xor;
        let (zero, one) = (with(0) >> bit & 1, with(31) >> bit & 1);
        out.write_str(match (zero, one) {
            (0, 0) => "0",
            (1, 1) => "1",
            (0, 1) => "p",
            _ => "i",
        })?;
    }
    out.write_str("\")")
}

/// Attribute and waits of the LDS-direct loads: word bits 23:8.
pub(super) fn direct_load(out: &mut Formatter<'_>, opcode: Opcode, value: u32) -> Result {
    if opcode == Opcode::DsParamLoad {
        let channel = ["x", "y", "z", "w"][(value & 3) as usize];
        write!(out, ", attr{}.{channel}", value >> 2 & 63)?;
    }
    write!(out, " wait_va_vdst:{} wait_vm_vsrc:{}", value >> 8 & 15, value >> 15 & 1)
}

/// Formats of the typed buffer operations by number; 1 is the default and is not written.
const BUFFER_FORMATS: [&str; 64] = [
    "INVALID",
    "8_UNORM",
    "8_SNORM",
    "8_USCALED",
    "8_SSCALED",
    "8_UINT",
    "8_SINT",
    "16_UNORM",
    "16_SNORM",
    "16_USCALED",
    "16_SSCALED",
    "16_UINT",
    "16_SINT",
    "16_FLOAT",
    "8_8_UNORM",
    "8_8_SNORM",
    "8_8_USCALED",
    "8_8_SSCALED",
    "8_8_UINT",
    "8_8_SINT",
    "32_UINT",
    "32_SINT",
    "32_FLOAT",
    "16_16_UNORM",
    "16_16_SNORM",
    "16_16_USCALED",
    "16_16_SSCALED",
    "16_16_UINT",
    "16_16_SINT",
    "16_16_FLOAT",
    "10_11_11_FLOAT",
    "11_11_10_FLOAT",
    "10_10_10_2_UNORM",
    "10_10_10_2_SNORM",
    "10_10_10_2_UINT",
    "10_10_10_2_SINT",
    "2_10_10_10_UNORM",
    "2_10_10_10_SNORM",
    "2_10_10_10_USCALED",
    "2_10_10_10_SSCALED",
    "2_10_10_10_UINT",
    "2_10_10_10_SINT",
    "8_8_8_8_UNORM",
    "8_8_8_8_SNORM",
    "8_8_8_8_USCALED",
    "8_8_8_8_SSCALED",
    "8_8_8_8_UINT",
    "8_8_8_8_SINT",
    "32_32_UINT",
    "32_32_SINT",
    "32_32_FLOAT",
    "16_16_16_16_UNORM",
    "16_16_16_16_SNORM",
    "16_16_16_16_USCALED",
    "16_16_16_16_SSCALED",
    "16_16_16_16_UINT",
    "16_16_16_16_SINT",
    "16_16_16_16_FLOAT",
    "32_32_32_UINT",
    "32_32_32_SINT",
    "32_32_32_FLOAT",
    "32_32_32_32_UINT",
    "32_32_32_32_SINT",
    "32_32_32_32_FLOAT",
];

/// ` format:[…]` of a typed buffer operation.
pub(super) fn buffer_format(out: &mut Formatter<'_>, opcode: Opcode, format: u32) -> Result {
    if !opcode.mnemonic().starts_with("tbuffer") || format == 1 {
        return Ok(());
    }
    match BUFFER_FORMATS.get(format as usize) {
        Some(name) => write!(out, " format:[BUF_FMT_{name}]"),
        None => write!(out, " format:{format}"),
    }
}
