//! The virtual device's own counts of what it has done.
//!
//! Contract: each line of its driver's file has a name and a number; lines that are not needed may follow.

use crate::virtual_files::{self, COUNTERS_PATH};
use zrt_device::{Counters, DeviceError};
use zrt_kmd::Syscalls;

/// The current counts.
pub(crate) fn read(syscalls: &dyn Syscalls) -> Result<Counters, DeviceError> {
    let text = virtual_files::read(syscalls, COUNTERS_PATH)?.unwrap_or_default();
    parse(&text).map_err(|reason| DeviceError::Evidence { path: COUNTERS_PATH, reason })
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
