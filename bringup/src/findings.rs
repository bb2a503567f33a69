//! What the virtual device's checking mode found, with kernels, source lines and buffers named.
//!
//! Contract: read after the work whose findings are wanted has ended. It takes a lock, reads a file of the virtual
//! driver and allocates: never on the path of a token.

use crate::virtual_files::{self, FINDINGS_PATH};
use core::fmt;
use serde::{Deserialize, Serialize};
use zrt_device::{DeviceError, Place, Registry};
use zrt_kmd::Syscalls;
use zrt_mem::GpuVa;

/// The rule of the entry that only counts the findings that were not kept.
const DROPPED: &str = "dropped";

/// The rule of findings that break nothing.
const ADVICE: &str = "advice";

/// The last line of the file, if some findings were not kept.
#[derive(Deserialize)]
struct Dropped {
    dropped: u64,
}

/// One broken rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// `counters`, `hazard`, `uninitialised`, `race`, `visibility`, `bounds` or `progress`; `advice` if nothing is
    /// broken (see [`Finding::is_advice`]); `dropped` for the last one if there were more than are kept: it counts the
    /// others.
    pub rule: String,
    /// What happened.
    pub what: String,
    /// What would satisfy the rule.
    pub remedy: String,
    /// The place in code; `None` for a packet or the host.
    pub place: Option<Place>,
    /// Address of the packet that launched the wave, if one did: [`Graph`](zrt_device::Graph) has a place for each
    /// launch. It is for whoever recorded the graph and does not appear in a report.
    #[serde(skip)]
    pub launched_at: Option<GpuVa>,
    /// The instruction as the assembler writes it; empty if there is no place.
    pub instruction: String,
    /// The other instruction concerned.
    pub other: Option<Place>,
    /// Workgroup id.
    pub workgroup: [u32; 3],
    /// Wave in the workgroup.
    pub wave: u32,
    /// First lane concerned.
    pub lane: Option<u32>,
    /// Register concerned.
    pub register: Option<String>,
    /// Memory or LDS address concerned.
    pub address: Option<u64>,
    /// The buffer at the address, or the nearest one on either side, and how far off the address is, in words.
    pub buffer: Option<String>,
    /// Seed of the schedule: the run that repeats it.
    pub seed: u64,
    /// How often it was found.
    pub count: u64,
}

/// A line of the virtual device's file.
#[derive(Deserialize)]
struct Raw {
    rule: String,
    what: String,
    remedy: String,
    pc: u64,
    launched_at: u64,
    instruction: String,
    other_pc: Option<u64>,
    workgroup: [u32; 3],
    wave: u32,
    lane: Option<u32>,
    register: Option<String>,
    address: Option<u64>,
    seed: u64,
    count: u64,
}

/// All findings so far; none if the checking mode is off, and on a card.
pub(crate) fn read(syscalls: &dyn Syscalls, registry: &Registry) -> Result<Vec<Finding>, DeviceError> {
    parse(&virtual_files::read(syscalls, FINDINGS_PATH)?.unwrap_or_default(), registry)
}

fn parse(text: &str, registry: &Registry) -> Result<Vec<Finding>, DeviceError> {
    let error = |reason| DeviceError::Evidence { path: FINDINGS_PATH, reason };
    text.lines()
        .map(|line| {
            if let Ok(Dropped { dropped }) = serde_json::from_str(line) {
                return Ok(not_kept(dropped));
            }
            let raw: Raw = serde_json::from_str(line).map_err(|cause| error(cause.to_string()))?;
            Ok(name(raw, registry))
        })
        .collect()
}

/// Says how many findings are not in the list.
fn not_kept(count: u64) -> Finding {
    Finding {
        rule: DROPPED.to_owned(),
        what: format!("{count} further findings were not kept"),
        remedy: "fix the findings above, and run again".to_owned(),
        count,
        ..Finding::default()
    }
}

fn name(raw: Raw, registry: &Registry) -> Finding {
    let place = |pc: u64| registry.place(GpuVa(pc));
    Finding {
        rule: raw.rule,
        what: raw.what,
        remedy: raw.remedy,
        place: (raw.pc != 0).then(|| place(raw.pc)),
        launched_at: (raw.launched_at != 0).then_some(GpuVa(raw.launched_at)),
        instruction: raw.instruction,
        other: raw.other_pc.map(place),
        workgroup: raw.workgroup,
        wave: raw.wave,
        lane: raw.lane,
        register: raw.register,
        address: raw.address,
        buffer: raw.address.and_then(|va| registry.describe(GpuVa(va))),
        seed: raw.seed,
        count: raw.count,
    }
}

impl Finding {
    /// Whether nothing is broken: what the code asks for just does not happen, and no result depends on it.
    pub fn is_advice(&self) -> bool {
        self.rule == ADVICE
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.rule, self.what)?;
        if let Some(place) = &self.place {
            write!(formatter, "\n    at {place}: {}", self.instruction)?;
            if let Some(text) = &place.source_text {
                write!(formatter, "\n    source: {text}")?;
            }
            let [x, y, z] = self.workgroup;
            write!(formatter, "\n    in workgroup {x},{y},{z} wave {}", self.wave)?;
            if let Some(lane) = self.lane {
                write!(formatter, " lane {lane}")?;
            }
        }
        if let Some(register) = &self.register {
            write!(formatter, ", {register}")?;
        }
        if let Some(address) = self.address {
            write!(formatter, ", address {address:#x}")?;
            // A finding out of bounds already says where.
            if let Some(buffer) = self.buffer.as_ref().filter(|buffer| !self.what.contains(*buffer)) {
                write!(formatter, " ({buffer})")?;
            }
        }
        if let Some(other) = &self.other {
            write!(formatter, "\n    the other: {other}")?;
        }
        write!(formatter, "\n    remedy: {}", self.remedy)?;
        if self.rule == DROPPED {
            return Ok(());
        }
        write!(formatter, "\n    {} time(s), seed {}", self.count, self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_told_with_its_place_its_buffer_and_its_remedy() {
        let registry = Registry::default();
        registry.add_buffer(GpuVa(0x10_0000), zrt_mem::ByteLen(0x1000), "data");
        let told = |changed: &[(&str, &str)]| {
            let line = r#"{"rule":"bounds","what":"w","remedy":"r","pc":4112,"launched_at":16,"instruction":"s_nop 0",
                "other_pc":4100,"workgroup":[1,2,3],"wave":4,"lane":5,"register":"v3","address":1048572,"seed":9,"count":2}"#;
            let line =
                changed.iter().fold(line.replace('\n', " "), |line, (from, to)| line.replace(from, to));
            let findings = parse(&line, &registry).unwrap();
            (findings[0].to_string(), findings[0].is_advice())
        };
        let text = "bounds: w\n    at 0x1010: s_nop 0\n    in workgroup 1,2,3 wave 4 lane 5, v3, address 0xffffc (4 bytes \
                    before the beginning of data)\n    the other: 0x1004\n    remedy: r\n    2 time(s), seed 9";
        assert_eq!(told(&[]), (text.into(), false));
        // What already says where is not told twice; and what breaks nothing is advice.
        let (what, advice) = ("4 bytes before the beginning of data", "advice: w");
        let (said, is_advice) = told(&[("\"w\"", &format!("\"{what}\""))]);
        assert_eq!(said, text.replace(&format!(" ({what})"), "").replace(": w", &format!(": {what}")));
        assert!(!is_advice);
        assert_eq!(told(&[("bounds", "advice")]), (text.replace("bounds: w", advice), true));
        // One of a packet has no place.
        let none = [("4112", "0"), ("4100", "null"), ("1048572", "null"), ("\"v3\"", "null")];
        assert_eq!(told(&none), ("bounds: w\n    remedy: r\n    2 time(s), seed 9".into(), false));
    }

    /// The second line is what the virtual device writes where more was found than it keeps.
    #[test]
    fn what_was_not_kept_is_told() {
        let kept = r#"{"rule":"race","what":"w","remedy":"r","pc":0,"code_va":0,"launched_at":16,"instruction":"","other_pc":null,
            "workgroup":[0,0,0],"wave":0,"lane":null,"register":null,"address":null,"seed":1,"count":2}"#;
        let text = format!("{}\n{{\"dropped\":3}}\n", kept.replace('\n', " "));
        let findings = parse(&text, &Registry::default()).unwrap();
        let told: Vec<_> = findings.iter().map(|finding| (finding.rule.as_str(), finding.count)).collect();
        assert_eq!(told, [("race", 2), ("dropped", 3)]);
        assert_eq!((findings[0].launched_at, findings[1].launched_at), (Some(GpuVa(16)), None));
        assert_eq!(
            findings[1].to_string(),
            "dropped: 3 further findings were not kept\n    remedy: fix the findings above, and run again"
        );
        assert!(parse("{\"other\":3}", &Registry::default()).is_err());
    }
}
