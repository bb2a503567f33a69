//! Who else uses the card: other compute processes, and displays.
//!
//! Contract: as [`super`]. What a container or missing rights hide is reported as unknown, not as absent. Lists whose
//! length comes from outside are shown up to [`SHOWN_MAX`] entries.

use super::finding::Finding;
use super::small_file::read_text;
use zrt_kmd::{Errno, Syscalls};

/// Where KFD lists the processes that opened it, by number (kfd_process.c, kfd_procfs_init).
const PROCESSES: &str = "/sys/class/kfd/kfd/proc";
/// Processes or connectors that are named; of further ones only the number is given.
const SHOWN_MAX: usize = 4;

/// Other processes that have KFD open. Call this before this process opens it: its own entry stays until it exits, and
/// has another number in a container.
pub(super) fn other_processes(syscalls: &dyn Syscalls) -> Finding {
    const SUBJECT: &str = "other compute clients";
    let names = match syscalls.read_directory(PROCESSES) {
        Ok(names) => names,
        Err(Errno::ENOENT) => Vec::new(),
        Err(errno) => {
            let remedy =
                format!("make sure that no other process has /dev/kfd open (`ls {PROCESSES}` as root)");
            return Finding::warn(SUBJECT, format!("cannot be listed: {errno}"), remedy);
        }
    };
    let mut processes: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
    processes.retain(|process| *process != std::process::id());
    processes.sort_unstable();
    if processes.is_empty() {
        return Finding::ok(SUBJECT, "none");
    }
    let name = |process: &u32| match read_text(syscalls, &format!("/proc/{process}/comm")) {
        // Another user chose the name: no control characters on the terminal.
        Some(name) => format!("{process} ({})", name.escape_debug()),
        None => process.to_string(),
    };
    let found = format!("/dev/kfd is open in process {}", listed(&processes, name));
    let remedy = "end them: the scheduler takes turns between processes, and preempts a kernel that never ends for each";
    Finding::warn(SUBJECT, found, remedy)
}

/// Displays on the card's connectors.
pub(super) fn displays(syscalls: &dyn Syscalls, device: &str) -> Finding {
    const SUBJECT: &str = "displays";
    let connectors = connectors(syscalls, device);
    let connected: Vec<&String> = connectors
        .iter()
        .filter(|path| read_text(syscalls, &format!("{path}/status")).as_deref() == Some("connected"))
        .collect();
    if connected.is_empty() {
        let found = if connectors.is_empty() { "no connector is shown" } else { "none connected: headless" };
        return Finding::ok(SUBJECT, found);
    }
    let name = |path: &&String| path.rsplit('/').next().unwrap_or(path).to_owned();
    let found = format!("connected at {}", listed(&connected, name));
    let remedy = "put the display on another GPU, or stop the desktop: it shares the card, and a hang takes the screen";
    Finding::warn(SUBJECT, found, remedy)
}

/// Folders of the card's connectors: `drm/card1/card1-DP-1` below the device.
fn connectors(syscalls: &dyn Syscalls, device: &str) -> Vec<String> {
    let folder = format!("{device}/drm");
    let cards = syscalls.read_directory(&folder).unwrap_or_default();
    let cards = cards.into_iter().filter(|name| name.starts_with("card"));
    let mut found: Vec<String> = cards
        .flat_map(|card| {
            let names = syscalls.read_directory(&format!("{folder}/{card}")).unwrap_or_default();
            let of_card =
                names.into_iter().filter(|name| name.starts_with(&format!("{card}-"))).collect::<Vec<_>>();
            of_card.into_iter().map(|name| format!("{folder}/{card}/{name}")).collect::<Vec<_>>()
        })
        .collect();
    found.sort_unstable();
    found
}

/// The first [`SHOWN_MAX`] of them, and how many more there are.
fn listed<T>(all: &[T], name: impl Fn(&T) -> String) -> String {
    let shown = all.iter().take(SHOWN_MAX).map(name).collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(SHOWN_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
