//! A control line: the host's flags for a slot while its request runs.
//!
//! | field of [`Control`] | written by | read by |
//! |---|---|---|
//! | `cancel_serial`, `preempt_serial`, `hold_serial` | the host | PLAN, BOUNDARY |
//! | `granted_pages`, `granted_serial` | the host, pages before the serial | PLAN, the serial before the pages |
//! | `reserved` | the host, zero, before the kernel starts | nobody |
//!
//! A request is named by its serial number, so a word that arrives late, when another request has the slot, does not
//! affect that one. 0 names no request.

use crate::layout::layout;

layout! {
    /// What the host tells the device about a slot at any time: 64 bytes, one line for each of the slots.
    Control {
        /// Cancel this request.
        cancel_serial: u32,
        /// Park this request.
        preempt_serial: u32,
        /// Give this request no rows.
        hold_serial: u32,
        /// Entries of the host's page table that are valid, for the request `granted_serial`.
        granted_pages: u32,
        /// The request that these pages belong to.
        granted_serial: u32,
        /// 0.
        reserved: [u32; 11],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::written;

    #[test]
    fn a_control_line_lies_as_written_down() {
        let expected = "\
Control 64
   0 cancel_serial
   4 preempt_serial
   8 hold_serial
  12 granted_pages
  16 granted_serial
  20 reserved
";
        assert_eq!(written(&Control::LAYOUT), expected);
    }
}
