//! PLAN's state between steps, and the status that shows the host how far the device has come.
//!
//! | structure | written by | read by |
//! |---|---|---|
//! | [`PlanState`]: `input_tag`, `output_tag` | the host, 1, before the first step; PLAN | PLAN |
//! | [`PlanState`]: `reserved` | the host, zero, before the kernel starts | nobody |
//! | the rest of [`PlanState`] | the host, zero, before the first step; PLAN | PLAN |
//! | [`Status`] | PLAN, in one store of system scope | the host |

use crate::layout::layout;

/// Polls of an idle PLAN between two stores of its status, if nothing else changes: a power of two. The heartbeat is
/// late by less than this.
pub const STATUS_LOOKS: usize = 32;

layout! {
    /// PLAN's own state between steps: 48 bytes.
    PlanState {
        /// The newest step.
        epoch: u32,
        /// Entries consumed from the input ring, modulo 2^32.
        input_index: u32,
        /// Tag of the next entry of the input ring.
        input_tag: u32,
        /// Entries put into the output ring, modulo 2^32.
        output_index: u32,
        /// Tag of the next entry of the output ring.
        output_tag: u32,
        /// 1: no request is admitted any more.
        draining: u32,
        /// Times that PLAN has looked for work.
        heartbeat: u32,
        /// 1: leave.
        leave: u32,
        /// The slot that the next step begins with.
        first_slot: u32,
        /// 0.
        reserved: [u32; 3],
    }
}

layout! {
    /// What PLAN reports to the host: 16 bytes.
    Status {
        /// Entries consumed from the input ring, modulo 2^32.
        input_consumed: u32,
        /// Times that PLAN has looked for work: grows while the device is alive, idle or not.
        heartbeat: u32,
        /// The newest step.
        epoch: u32,
        /// Bit 0: the device has left or is leaving. Bits 15:8: slots in use.
        flags: u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::written;

    #[test]
    fn the_memory_of_plan_and_the_status_lie_as_written_down() {
        let expected = "\
PlanState 48
   0 epoch
   4 input_index
   8 input_tag
  12 output_index
  16 output_tag
  20 draining
  24 heartbeat
  28 leave
  32 first_slot
  36 reserved
";
        assert_eq!(written(&PlanState::LAYOUT), expected);
        let expected = "Status 16\n   0 input_consumed\n   4 heartbeat\n   8 epoch\n  12 flags\n";
        assert_eq!(written(&Status::LAYOUT), expected);
    }
}
