//! What the virtual device's checking mode found, with kernels, source lines and buffers named.
//!
//! Contract: read after the work whose findings are wanted has ended. A lock, a file of the virtual driver and
//! allocations: never on the path of a token.

use crate::error::DeviceError;
use crate::registry::Registry;
use crate::virtual_tier::FINDINGS_PATH;
use core::fmt;
use serde::{Deserialize, Serialize};
use zrt_kmd::Syscalls;
use zrt_mem::GpuVa;

/// A place in code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Address of the instruction.
    pub pc: u64,
    /// Kernel, where it is one that this device loaded.
    pub kernel: Option<String>,
    /// Offset from the beginning of the kernel's code, in bytes.
    pub offset: Option<u64>,
    /// Source file and line, where the kernel's line table has them.
    pub source: Option<(String, u32)>,
}

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// `counters`, `hazard`, `uninitialised`, `race`, `visibility`, `bounds` or `progress`.
    pub rule: String,
    /// What happened.
    pub what: String,
    /// What would satisfy the rule.
    pub remedy: String,
    /// Where; `None` for a packet or the host.
    pub place: Option<Place>,
    /// The instruction as the assembler writes it.
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
    /// The buffer at the address, and the offset in it, in words.
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

/// All findings so far; none where the checking mode is off.
pub(crate) fn read(syscalls: &dyn Syscalls, registry: &Registry) -> Result<Vec<Finding>, DeviceError> {
    let error = |reason| DeviceError::Counters { path: FINDINGS_PATH, reason };
    let bytes = syscalls.read_file(FINDINGS_PATH).map_err(|errno| error(errno.to_string()))?;
    let text = String::from_utf8_lossy(&bytes);
    // The last line may count those that were not kept.
    let lines = text.lines().filter(|line| !line.starts_with("{\"dropped\""));
    lines
        .map(|line| {
            let raw: Raw = serde_json::from_str(line).map_err(|cause| error(cause.to_string()))?;
            Ok(name(raw, registry))
        })
        .collect()
}

fn name(raw: Raw, registry: &Registry) -> Finding {
    let place = |pc: u64| registry.place(GpuVa(pc));
    Finding {
        rule: raw.rule,
        what: raw.what,
        remedy: raw.remedy,
        place: (raw.pc != 0).then(|| place(raw.pc)),
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

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.kernel, self.offset) {
            (Some(kernel), Some(offset)) => write!(formatter, "{kernel}+{offset:#x}")?,
            _ => write!(formatter, "{:#x}", self.pc)?,
        }
        match &self.source {
            Some((file, line)) => write!(formatter, " ({file}:{line})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.rule, self.what)?;
        if let Some(place) = &self.place {
            write!(formatter, "\n    at {place}: {}", self.instruction)?;
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
            if let Some(buffer) = &self.buffer {
                write!(formatter, " ({buffer})")?;
            }
        }
        if let Some(other) = &self.other {
            write!(formatter, "\n    the other: {other}")?;
        }
        write!(formatter, "\n    remedy: {}\n    {} time(s), seed {}", self.remedy, self.count, self.seed)
    }
}
