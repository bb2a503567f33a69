//! The part of the examination that any machine has: processor, memory, limits, groups; and the order of all.
//!
//! Contract: as [`super`].

use super::finding::Finding;
use super::small_file::read_text;
use crate::units;
use zrt_kmd::Syscalls;
use zrt_vgpu::simd::Level;

/// Host memory below which the virtual device may run short with models of a few megabytes.
const MEMORY_MIN: u64 = 512 << 20;
/// Locked memory below which pinning host buffers may be refused.
const LOCKED_MIN: u64 = 64 << 20;

pub(super) fn examine(syscalls: &dyn Syscalls) -> Vec<Finding> {
    let findings = [
        Some(processor(syscalls)),
        memory(syscalls),
        Some(super::kernel::examine(syscalls)),
        Some(super::kernel::examine_virtual()),
        locked_memory(syscalls),
        address_space(syscalls),
        Some(groups(syscalls)),
    ];
    findings.into_iter().flatten().collect()
}

/// The processor's name from `/proc/cpuinfo`, or the architecture.
pub fn processor_name(syscalls: &dyn Syscalls) -> String {
    let cpuinfo = read_text(syscalls, "/proc/cpuinfo").unwrap_or_default();
    let name = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

fn processor(syscalls: &dyn Syscalls) -> Finding {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    processor_with(&processor_name(syscalls), threads, Level::detect().instructions())
}

/// A processor with these vector instructions, if the virtual device uses any that it has.
fn processor_with(name: &str, threads: usize, vectors: Option<&str>) -> Finding {
    const SUBJECT: &str = "processor";
    let found = format!("{name}, {threads} thread(s)");
    match vectors {
        Some(vectors) => Finding::ok(SUBJECT, format!("{found}, {vectors}")),
        None => Finding::warn(
            SUBJECT,
            format!("{found}, none of the vector instructions that the virtual device uses"),
            "the virtual device is slow without them; use another machine",
        ),
    }
}

fn memory(syscalls: &dyn Syscalls) -> Option<Finding> {
    const SUBJECT: &str = "host memory";
    let meminfo = read_text(syscalls, "/proc/meminfo")?;
    let available = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = available.split_whitespace().next()?.parse().ok()?;
    let bytes = kibibytes.saturating_mul(1024);
    let found = format!("{} available", units::bytes(bytes));
    Some(if bytes >= MEMORY_MIN {
        Finding::ok(SUBJECT, found)
    } else {
        Finding::warn(
            SUBJECT,
            found,
            "the virtual device keeps its memory here: free some before large models",
        )
    })
}

/// Soft limit of the process in bytes from `/proc/self/limits`; `None` if unknown, `u64::MAX` if unlimited.
fn limit(syscalls: &dyn Syscalls, name: &str) -> Option<u64> {
    let limits = read_text(syscalls, "/proc/self/limits")?;
    let values = limits.lines().find_map(|line| line.strip_prefix(name))?;
    match values.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

fn locked_memory(syscalls: &dyn Syscalls) -> Option<Finding> {
    const SUBJECT: &str = "locked memory limit";
    Some(match limit(syscalls, "Max locked memory")? {
        u64::MAX => Finding::ok(SUBJECT, "unlimited"),
        bytes if bytes >= LOCKED_MIN => Finding::ok(SUBJECT, units::bytes(bytes)),
        bytes => Finding::warn(
            SUBJECT,
            units::bytes(bytes),
            "pinning host buffers may be refused: raise `memlock` in /etc/security/limits.conf (`ulimit -l`)",
        ),
    })
}

fn address_space(syscalls: &dyn Syscalls) -> Option<Finding> {
    const SUBJECT: &str = "address space limit";
    Some(match limit(syscalls, "Max address space")? {
        u64::MAX => Finding::ok(SUBJECT, "unlimited"),
        bytes => Finding::warn(
            SUBJECT,
            units::bytes(bytes),
            "device memory is reserved as address space first: lift the limit with `ulimit -v unlimited`",
        ),
    })
}

fn groups(syscalls: &dyn Syscalls) -> Finding {
    const SUBJECT: &str = "groups";
    let status = read_text(syscalls, "/proc/self/status").unwrap_or_default();
    let numbers = |name: &str| -> Vec<u32> {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("");
        line.split_whitespace().filter_map(|number| number.parse().ok()).collect()
    };
    if numbers("Uid:").get(1) == Some(&0) {
        return Finding::ok(SUBJECT, "root, which may open every device");
    }
    let mine = numbers("Groups:");
    let file = read_text(syscalls, "/etc/group").unwrap_or_default();
    let is_member = |name: &str| {
        let entry =
            file.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|entry| entry[0] == name);
        entry.and_then(|entry| entry.get(2)?.parse().ok()).is_some_and(|id: u32| mine.contains(&id))
    };
    let (members, strangers): (Vec<&str>, Vec<&str>) =
        ["render", "video"].into_iter().partition(|name| is_member(name));
    if strangers.is_empty() {
        return Finding::ok(SUBJECT, "member of render and video");
    }
    let found = match members[..] {
        [] => "member of neither render nor video".to_owned(),
        _ => format!("member of {}, not of {}", members.join(", "), strangers.join(", ")),
    };
    // Only a device that cannot be opened is a hindrance; distributions differ in the groups they use.
    Finding::warn(SUBJECT, found, format!("if a device is refused: {JOIN_GROUPS}"))
}

/// How to get access to the device files.
pub(super) const JOIN_GROUPS: &str = "`sudo usermod -aG render,video $USER`, then log in again";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_without_vector_instructions_is_slow() {
        let with = |vectors| processor_with("Ryzen", 12, vectors);
        let subject = "processor";
        assert_eq!(with(Some("AVX-512")), Finding::ok(subject, "Ryzen, 12 thread(s), AVX-512"));
        let found = "Ryzen, 12 thread(s), none of the vector instructions that the virtual device uses";
        let advice = "the virtual device is slow without them; use another machine";
        assert_eq!(with(None), Finding::warn(subject, found, advice));
    }
}
