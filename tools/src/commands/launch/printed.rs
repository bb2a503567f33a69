//! What a kernel printed, as the commands show it.
//!
//! Contract: bytes that are no UTF-8 become U+FFFD; both of a kernel's streams go to standard output, in the order of
//! arrival.

use crate::commands::write_text;
use crate::error::ToolError;
use crate::launch::LaunchError;
use zrt_loader::print::{PRINTED_BYTES_MAX, Printed};

/// The text, as documents have it.
pub(in crate::commands) fn text(printed: &Printed) -> String {
    let mut text = String::from_utf8_lossy(printed.text()).into_owned();
    if printed.dropped_bytes() > 0 {
        let dropped = printed.dropped_bytes();
        text.push_str(&format!("\n[{dropped} bytes more were printed; {PRINTED_BYTES_MAX} are kept]\n"));
    }
    text
}

/// The text as lines of its own, empty where there is none.
pub(super) fn lines(text: &str) -> String {
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{end}")
}

/// Writes the text.
pub(in crate::commands) fn show(printed: &Printed) -> Result<(), ToolError> {
    write_text(&lines(&text(printed)))
}

/// Writes what was printed before an error.
pub(in crate::commands) fn show_before(error: &LaunchError) -> Result<(), ToolError> {
    match error {
        LaunchError::Device { printed, .. } => show(printed),
        _ => Ok(()),
    }
}

/// What was printed before an error, as its document has it; `None` where no kernel printed.
pub(in crate::commands) fn before(error: &ToolError) -> Option<String> {
    match error.untold() {
        ToolError::Launch(LaunchError::Device { printed, .. }) => {
            Some(text(printed)).filter(|text| !text.is_empty())
        }
        _ => None,
    }
}
