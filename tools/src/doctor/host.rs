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
    const SUBJECT: &str = "processor";
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let name = processor_name(syscalls);
    let vectors = vector_extension(Level::detect());
    let found = format!("{name}, {threads} thread(s), {}", vectors.unwrap_or("no AVX2 with FMA"));
    match vectors {
        Some(_) => Finding::ok(SUBJECT, found),
        None => Finding::warn(
            SUBJECT,
            found,
            "the virtual device is slow without AVX2 and FMA; use another machine",
        ),
    }
}

/// The vector instructions of a level of the virtual device.
fn vector_extension(level: Level) -> Option<&'static str> {
    match level.name() {
        "avx512" => Some("AVX-512"),
        "avx2" => Some("AVX2 with FMA"),
        _ => None,
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
    fn each_level_but_the_baseline_has_the_name_of_its_instructions() {
        assert_eq!(vector_extension(Level::BASELINE), None);
        for level in Level::supported() {
            let named = vector_extension(level).map(|name| name.to_lowercase().replace('-', ""));
            let named = named.as_deref().unwrap_or("baseline");
            assert!(named.starts_with(level.name()), "{named}");
        }
    }
}
