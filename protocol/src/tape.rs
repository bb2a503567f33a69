//! The tape: the megakernel's list of tasks, its counters, the breadcrumbs of its workgroups, and their start.
//!
//! | memory | written by | read by |
//! |---|---|---|
//! | [`TapeEntry`], [`TapeWait`] | the host, before the kernel starts | every workgroup |
//! | counters | the host, zero, at first; workgroup 0 resets those of tasks, every workgroup adds | every waiting workgroup |
//! | arrivals | the host, zero, at first; every workgroup adds, when it begins | the same workgroup |
//! | [`Breadcrumb`]: `epoch`, `task`, `spins` | its workgroup | the host, after a hang or on request |
//! | [`Start`]: `groups_and_1` | the host: zero; how many, when they have arrived | workgroups that begin |
//! | words from [`ARRIVED_OFFSET`] on | the host, zero, at first; each by the workgroup with its number | the host |
//! | every `reserved` | the host, zero, before the kernel starts | nobody |

use crate::layout::layout;

/// Maximum number of waits of a task.
pub const TAPE_WAITS_MAX: usize = 3;
/// The body number of the entry after the last task.
pub const TAPE_END: u32 = u32::MAX;
/// Bytes from the counter of workgroups that have ended the step to the first task's counter: a cache line of its own.
pub const COUNTERS_OFFSET: u32 = 256;
/// Bytes from the counter of workgroups that have ended the step to that of workgroups that have begun.
pub const ARRIVALS_OFFSET: u32 = 64;
/// Bytes from [`Start`] to what workgroups store behind it: a line of GL2 of its own.
pub const ARRIVED_OFFSET: u32 = 256;
/// Bits of a wait's counter field that hold its offset; the bits above hold the row set of the task that is waited for.
pub const TAPE_WAIT_OFFSET_BITS: u32 = 28;

layout! {
    /// One task of the megakernel's tape: 64 bytes.
    TapeEntry {
        /// The body, as an index into [`BODIES`]; [`TAPE_END`] after the last task.
        body: u32,
        /// Number of the task, for breadcrumbs.
        task: u32,
        /// The body's parameter block.
        parameters_va: u64,
        /// Byte offset of the task's own counter in the counters.
        signal: u32,
        /// What must be done first.
        wait: [TapeWait; TAPE_WAITS_MAX],
        /// Bytes of a piece of the first weight plane: the weight rows that the lanes of a wave work on at once. At
        /// least 16.
        piece_bytes: u32,
        /// The plane.
        plane_va: u64,
        /// Whole pieces of the plane; 0: nothing is prefetched.
        pieces: u32,
        /// The workgroup that takes unit 0, modulo the number that takes part; the next one takes unit 1.
        first_group: u32,
    }
}

layout! {
    /// A task that must be complete first.
    TapeWait {
        /// Byte offset of its counter; its [`RowSet`](crate::params::RowSet) in bits 31:28.
        counter: u32,
        /// Its units; 0: no wait.
        units: u32,
    }
}

layout! {
    /// Where a workgroup of the megakernel is: 64 bytes.
    Breadcrumb {
        /// The step.
        epoch: u32,
        /// The task.
        task: u32,
        /// Unsuccessful polls while the group waited.
        spins: u32,
        /// 0.
        reserved: [u32; 13],
    }
}

layout! {
    /// How many workgroups take part: 64 bytes. Those with this number or a higher one leave. From [`ARRIVED_OFFSET`]
    /// on there is a u32 for each workgroup of the dispatch: 1 once one has this number.
    Start {
        /// 0 until the host knows how many have arrived; then 1 more than take part, so 1 if all shall leave.
        groups_and_1: u32,
        /// 0.
        reserved: [u32; 15],
    }
}

/// The bodies that the megakernel holds, by their number in the tape. Its table of branches is generated from this
/// list.
pub const BODIES: &[&str] = &[
    "boundary",
    "embed_f32",
    "embed_f16",
    "embed_bf16",
    "embed_q8_0",
    "embed_q4_0",
    "embed_q4_k",
    "embed_q6_k",
    "matmul_f32",
    "matmul_f16",
    "matmul_bf16",
    "matmul_q8_0",
    "matmul_q4_0",
    "matmul_q4_k",
    "matmul_q6_k",
    "rms_norm",
    "qk_norm",
    "rope_interleaved",
    "rope_halves",
    "kv_write_f32",
    "kv_write_f16",
    "kv_write_q8_0",
    "attention_f32",
    "attention_f16",
    "attention_q8_0",
    "swiglu",
    "residual_add",
    "sample",
    "quantise_a8",
    "quantise_a16",
    "matmul_q8_0_a8",
    "matmul_q8_0_a16",
    "matmul_q4_0_a8",
    "matmul_q4_0_a16",
    "matmul_q4_k_a8",
    "matmul_q4_k_a16",
    "matmul_q6_k_a8",
    "matmul_q6_k_a16",
    "embed_q4_1",
    "matmul_q4_1",
    "matmul_q4_1_a8",
    "matmul_q4_1_a16",
    "embed_q5_0",
    "matmul_q5_0",
    "matmul_q5_0_a8",
    "matmul_q5_0_a16",
    "embed_q5_1",
    "matmul_q5_1",
    "matmul_q5_1_a8",
    "matmul_q5_1_a16",
    "embed_q2_k",
    "matmul_q2_k",
    "matmul_q2_k_a8",
    "matmul_q2_k_a16",
    "embed_q3_k",
    "matmul_q3_k",
    "matmul_q3_k_a8",
    "matmul_q3_k_a16",
    "embed_q5_k",
    "matmul_q5_k",
    "matmul_q5_k_a8",
    "matmul_q5_k_a16",
    "embed_iq4_nl",
    "matmul_iq4_nl",
    "matmul_iq4_nl_a8",
    "matmul_iq4_nl_a16",
    "embed_iq4_xs",
    "matmul_iq4_xs",
    "matmul_iq4_xs_a8",
    "matmul_iq4_xs_a16",
    "embed_mxfp4",
    "matmul_mxfp4",
    "matmul_mxfp4_a8",
    "matmul_mxfp4_a16",
    "embed_iq_codes",
    "matmul_iq_codes",
    "matmul_iq_codes_a8",
    "matmul_iq_codes_a16",
    "geglu",
    "scale",
    "soft_cap",
    "embed_int8",
    "matmul_int8",
    "matmul_int8_a8",
    "matmul_int8_a16",
    "embed_fp8",
    "matmul_fp8",
    "matmul_f16_w16",
    "matmul_bf16_w16",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::written;

    #[test]
    fn the_tape_lies_as_written_down() {
        let expected = "\
TapeEntry 64
   0 body
   4 task
   8 parameters_va
  16 signal
  20 wait
  44 piece_bytes
  48 plane_va
  56 pieces
  60 first_group
";
        assert_eq!(written(&TapeEntry::LAYOUT), expected);
        assert_eq!(written(&TapeWait::LAYOUT), "TapeWait 8\n   0 counter\n   4 units\n");
        let expected = "Breadcrumb 64\n   0 epoch\n   4 task\n   8 spins\n  12 reserved\n";
        assert_eq!(written(&Breadcrumb::LAYOUT), expected);
        assert_eq!(written(&Start::LAYOUT), "Start 64\n   0 groups_and_1\n   4 reserved\n");
    }

    /// A tape that was written down names its bodies by these numbers.
    #[test]
    fn bodies_have_the_numbers_written_down() {
        let places =
            [(0, "boundary"), (1, "embed_f32"), (8, "matmul_f32"), (12, "matmul_q4_0"), (15, "rms_norm")];
        let places = places.into_iter().chain([
            (19, "kv_write_f32"),
            (22, "attention_f32"),
            (27, "sample"),
            (37, "matmul_q6_k_a16"),
            (77, "matmul_iq_codes_a16"),
            (79, "scale"),
            (80, "soft_cap"),
            (86, "matmul_fp8"),
            (88, "matmul_bf16_w16"),
        ]);
        assert!(places.into_iter().all(|(number, name)| BODIES[number] == name));
        assert_eq!((BODIES.len(), TAPE_END), (89, 0xffff_ffff));
        assert_eq!((ARRIVALS_OFFSET, COUNTERS_OFFSET, ARRIVED_OFFSET), (64, 256, 256));
    }
}
