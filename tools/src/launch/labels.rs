//! Labels for a kernel's arguments: names for reports, and services that do not exist.
//!
//! Contract: pure. Names are those of the code object's metadata, if it has them.

use zrt_loader::{Argument, Arguments, Hidden, Kernel, ValueKind};

/// The name of an argument in reports: its number, and its name if the kernel has one.
pub fn argument_label(kernel: &Kernel, index: usize) -> String {
    match argument_name(kernel, index) {
        Some(name) => format!("argument {index} ({name})"),
        None => format!("argument {index}"),
    }
}

/// The name of a given argument, if the file has it.
pub fn argument_name(kernel: &Kernel, index: usize) -> Option<&str> {
    let Arguments::Described { list, .. } = &kernel.arguments else { return None };
    list.iter().filter(|argument| argument.is_given()).nth(index)?.name.as_deref()
}

/// Implicit arguments of services that do not exist, as the metadata calls them: the kernel gets null for each.
pub(super) fn null_services(kernel: &Kernel) -> Vec<&str> {
    let Arguments::Described { list, .. } = &kernel.arguments else { return Vec::new() };
    let name = |argument| match argument {
        &Argument { kind: ValueKind::Hidden(Hidden::Null(ref name)), .. } => Some(name.as_str()),
        _ => None,
    };
    list.iter().filter_map(name).collect()
}
