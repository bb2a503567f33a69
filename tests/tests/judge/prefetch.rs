//! Cases of scalar prefetches: armed past the end of what is mapped, and not armed at all.

use crate::case::{Case, WAVE};

/// An armed prefetch of one line from the end of a buffer of whole pages; the right twin's is of the last line.
macro_rules! armed {
    ($name:literal, $before:literal, $wrong:literal, $right:literal) => {
        Case {
            name: $name,
            rule: "bounds",
            buffer_bytes: 4096,
            wrong: concat!(
                "
    s_setreg_imm32_b32 hwreg(HW_REG_MODE, 24, 1), 1",
                $before,
                "
    ",
                $wrong,
                "  // caught at output+0x1000"
            ),
            right: concat!(
                "
    s_setreg_imm32_b32 hwreg(HW_REG_MODE, 24, 1), 1",
                $before,
                "
    ",
                $right
            ),
            ..WAVE
        }
    };
}

pub const BOUNDS: &[Case] = &[
    armed!(
        "prefetch_behind_the_last_line",
        "",
        "s_prefetch_data s[6:7], 0x1000, null, 0",
        "s_prefetch_data s[6:7], 0xf80, null, 0"
    ),
    armed!(
        "prefetch_of_a_line_too_many",
        "",
        "s_prefetch_data s[6:7], 0x80, null, 31",
        "s_prefetch_data s[6:7], 0x0, null, 31"
    ),
    armed!(
        "prefetch_of_a_length_in_a_register",
        "
    s_mov_b32 s20, 1",
        "s_prefetch_data s[6:7], 0xf80, s20, 0",
        "s_prefetch_data s[6:7], 0xf80, s20, 31"
    ),
    armed!(
        "prefetch_of_a_descriptor_behind_its_memory",
        "
    s_mov_b64 s[20:21], s[6:7]
    s_mov_b64 s[22:23], 0",
        "s_buffer_prefetch_data s[20:23], 0x1000, null, 0",
        "s_buffer_prefetch_data s[20:23], -0x1000, null, 0"
    ),
    Case {
        name: "prefetch_of_instructions_that_are_data",
        rule: "bounds",
        wrong: "
    s_setreg_imm32_b32 hwreg(HW_REG_MODE, 24, 1), 1
    s_prefetch_inst s[6:7], 0x0, null, 0  // caught at output+0x0",
        right: "
    s_setreg_imm32_b32 hwreg(HW_REG_MODE, 24, 1), 1
    s_prefetch_inst_pc_rel 0x0, null, 0",
        ..WAVE
    },
];

pub const ADVICE: &[Case] = &[
    Case {
        name: "prefetch_that_nobody_has_armed",
        rule: "advice",
        wrong: "
    s_prefetch_data s[6:7], 0x1000, null, 0  // caught",
        right: "
    s_setreg_imm32_b32 hwreg(HW_REG_MODE, 24, 1), 1
    s_prefetch_data s[6:7], 0x0, null, 0",
        ..WAVE
    },
    Case {
        name: "prefetch_that_is_disarmed",
        rule: "advice",
        wrong: "
    s_setreg_imm32_b32 hwreg(HW_REG_MODE, 24, 1), 1
    s_setreg_imm32_b32 hwreg(HW_REG_MODE, 24, 1), 0
    s_prefetch_inst_pc_rel 0x0, null, 31  // caught",
        right: "
    s_mov_b32 s20, -1
    s_setreg_b32 hwreg(HW_REG_MODE, 24, 1), s20
    s_prefetch_inst_pc_rel 0x0, null, 0",
        ..WAVE
    },
];
