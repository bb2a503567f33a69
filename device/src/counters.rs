//! Evidence: what the device has done.

use crate::error::DeviceError;
use crate::virtual_tier::COUNTERS_PATH;
use zrt_kmd::Syscalls;

/// Totals since the device was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Doorbell stores that the device saw: one per submission where each is waited for, fewer where it polls and
    /// several came between two looks. On a card: stores made.
    pub doorbells: u64,
    /// Packets executed, in rings and indirect buffers. On a card: packets submitted.
    pub packets: u64,
    /// Dispatches launched. On a card: dispatches submitted.
    pub dispatches: u64,
    /// Indirect buffers executed. On a card: submitted.
    pub submissions: u64,
    /// Instructions that waves executed, where the device counts them (virtual only).
    pub wave_instructions: Option<u64>,
}

/// Reads the virtual device's own counts through the seam.
pub(crate) fn read_virtual_counters(syscalls: &dyn Syscalls) -> Result<Counters, DeviceError> {
    let bytes = syscalls
        .read_file(COUNTERS_PATH)
        .map_err(|errno| DeviceError::Counters { path: COUNTERS_PATH, reason: errno.to_string() })?;
    parse(&String::from_utf8_lossy(&bytes))
        .map_err(|reason| DeviceError::Counters { path: COUNTERS_PATH, reason })
}

fn parse(text: &str) -> Result<Counters, String> {
    let value = |name: &str| -> Result<u64, String> {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let line = line.ok_or_else(|| format!("there is no line \"{name}\""))?;
        line.trim().parse().map_err(|_| format!("{name} is {line:?}, not a number"))
    };
    Ok(Counters {
        doorbells: value("doorbells")?,
        packets: value("packets")?,
        dispatches: value("dispatches")?,
        submissions: value("submissions")?,
        wave_instructions: Some(value("wave_instructions")?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_lines() {
        let text = "doorbells 1\npackets 22\nother 9\ndispatches 3\nsubmissions 4\nwave_instructions 500\n";
        let counters = parse(text).unwrap();
        assert_eq!((counters.doorbells, counters.packets, counters.dispatches), (1, 22, 3));
        assert_eq!((counters.submissions, counters.wave_instructions), (4, Some(500)));
        assert_eq!(parse("doorbells x\n").unwrap_err(), "doorbells is \"x\", not a number");
        assert_eq!(parse("").unwrap_err(), "there is no line \"doorbells\"");
    }
}
