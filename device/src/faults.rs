//! The virtual device's diary of faults: which of its lines mean that work will never end, and what they say.
//!
//! Contract: lines as `FaultRecord` of the virtual device prints them; an unknown kind is one that work survives. A file
//! of the virtual driver and allocations: for waits that take long, never on the path of a token.

use crate::registry::Registry;
use crate::virtual_tier::FAULTS_PATH;
use core::fmt;
use zrt_kmd::Syscalls;
use zrt_vgpu::command_processor::faults::FaultKind;

/// Kinds after which the queue, and with it the submission, comes to no end. After the others the ring goes on.
const FINAL: [FaultKind; 5] =
    [FaultKind::PageFault, FaultKind::Wave, FaultKind::Packet, FaultKind::Launch, FaultKind::Reset];

/// One line of the diary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceFault {
    /// What went wrong, in words.
    pub what: String,
    /// Where: queue, packet, code, workgroup and wave, addresses named.
    pub place: String,
    /// The submission that met it never ends.
    pub is_final: bool,
}

/// All lines so far, oldest first.
pub(crate) fn read(syscalls: &dyn Syscalls, registry: &Registry) -> Vec<DeviceFault> {
    let text = syscalls.read_file(FAULTS_PATH).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().map(|line| parse(line, registry)).collect()
}

fn parse(line: &str, registry: &Registry) -> DeviceFault {
    let kind = line.strip_prefix("kind=").and_then(|rest| rest.split_whitespace().next());
    let is_final = FINAL.iter().any(|known| Some(known.name()) == kind);
    let annotated = registry.annotate(line);
    let (place, what) = annotated.split_once(" : ").unwrap_or(("", &annotated));
    DeviceFault { what: what.to_owned(), place: place.to_owned(), is_final }
}

impl fmt::Display for DeviceFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place.as_str() {
            "" => formatter.write_str(&self.what),
            place => write!(formatter, "{} ({place})", self.what),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_whether_work_can_end() {
        let fault = |line| parse(line, &Registry::default());
        let trap = fault("kind=wave queue=1 packet=DISPATCH_DIRECT wave=0 : s_trap 2 without a trap handler");
        assert!(trap.is_final);
        assert_eq!(
            trap.to_string(),
            "s_trap 2 without a trap handler (kind=wave queue=1 packet=DISPATCH_DIRECT wave=0)"
        );
        let torn = fault("kind=torn-packet queue=1 two dwords are missing");
        assert!(!torn.is_final);
        assert_eq!(torn.to_string(), "kind=torn-packet queue=1 two dwords are missing");
        assert!(!fault("and 3 more").is_final);
    }
}
