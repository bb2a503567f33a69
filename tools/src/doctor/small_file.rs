//! Small files of the system.

use zrt_kmd::Syscalls;

/// The trimmed text of a small file; `None` if it cannot be read.
pub(super) fn read_text(syscalls: &dyn Syscalls, path: &str) -> Option<String> {
    let bytes = syscalls.read_file(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim().to_owned())
}
