//! Where the virtual device's waves are: what a debugger's list of threads says.
//!
//! Contract: a JSON object of the virtual driver's file for each wave that has not ended, at most 256 of them. The device stands
//! still while it is read: for waits that took too long, never on the path of a token. A card keeps all of it to itself.

use crate::error::DeviceError;
use crate::findings::Place;
use crate::registry::Registry;
use crate::virtual_tier::WAVES_PATH;
use core::fmt;
use serde::{Deserialize, Serialize};
use zrt_kmd::Syscalls;
use zrt_mem::GpuVa;

/// Waves that a sentence names.
const NAMED_MAX: usize = 4;

/// The waves that have not ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Waves {
    /// Those that are listed.
    pub list: Vec<WavePosition>,
    /// Waves that are resident too.
    pub more_waves: u64,
    /// Workgroups that have no room yet.
    pub waiting_groups: u64,
    /// Workgroups that were running all the time, so that nobody could look at them.
    pub held_groups: u64,
}

/// A wave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WavePosition {
    /// Workgroup id.
    pub workgroup: [u32; 3],
    /// Wave in the workgroup.
    pub wave: u32,
    /// What it does.
    pub state: WaveState,
    /// Where: its next instruction, or the one that stopped it.
    pub place: Place,
    /// That instruction as the assembler writes it.
    pub instruction: String,
    /// What it looks at again and again, where the checking mode has seen that it goes in circles.
    pub loads: Vec<WaveLoad>,
}

/// What a wave does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaveState {
    /// It has had no turn yet.
    NotBegun,
    /// It executes instructions.
    Running,
    /// It waits at its workgroup's barrier.
    Barrier {
        /// Waves that have signalled.
        signalled_waves: u32,
        /// Waves that must.
        member_waves: u32,
    },
    /// A fault has stopped it.
    Halted,
}

/// A load that a wave repeats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WaveLoad {
    /// The instruction.
    pub place: Place,
    /// What its first lane loads from: an address in memory, or in LDS.
    pub address: u64,
    /// It is LDS.
    pub is_lds: bool,
    /// What it gets, cut off after four bytes.
    pub value: u32,
    /// The buffer at the address, in words; `None` for LDS.
    pub buffer: Option<String>,
}

/// A line of the file.
#[derive(Deserialize)]
struct RawPosition {
    workgroup: [u32; 3],
    wave: u32,
    state: WaveState,
    pc: u64,
    instruction: String,
    loads: Vec<RawLoad>,
}

#[derive(Deserialize)]
struct RawLoad {
    pc: u64,
    address: u64,
    is_lds: bool,
    value: u32,
}

/// The last line, where something is not in the list.
#[derive(Deserialize)]
struct RawRest {
    more_waves: u64,
    waiting_groups: u64,
    held_groups: u64,
}

/// All of them now.
pub(crate) fn read(syscalls: &dyn Syscalls, registry: &Registry) -> Result<Waves, DeviceError> {
    let error = |reason| DeviceError::Counters { path: WAVES_PATH, reason };
    let bytes = syscalls.read_file(WAVES_PATH).map_err(|errno| error(errno.to_string()))?;
    parse(&String::from_utf8_lossy(&bytes), registry)
}

fn parse(text: &str, registry: &Registry) -> Result<Waves, DeviceError> {
    let mut waves = Waves::default();
    for line in text.lines() {
        if let Ok(RawRest { more_waves, waiting_groups, held_groups }) = serde_json::from_str(line) {
            waves = Waves { more_waves, waiting_groups, held_groups, ..waves };
            continue;
        }
        let raw: RawPosition = serde_json::from_str(line)
            .map_err(|cause| DeviceError::Counters { path: WAVES_PATH, reason: cause.to_string() })?;
        let load = |load: RawLoad| WaveLoad {
            place: registry.place(GpuVa(load.pc)),
            address: load.address,
            is_lds: load.is_lds,
            value: load.value,
            buffer: if load.is_lds { None } else { registry.describe(GpuVa(load.address)) },
        };
        waves.list.push(WavePosition {
            workgroup: raw.workgroup,
            wave: raw.wave,
            state: raw.state,
            place: registry.place(GpuVa(raw.pc)),
            instruction: raw.instruction,
            loads: raw.loads.into_iter().map(load).collect(),
        });
    }
    Ok(waves)
}

impl Waves {
    /// Whether nothing is known of any wave.
    pub fn is_empty(&self) -> bool {
        *self == Waves::default()
    }
}

impl fmt::Display for Waves {
    /// A clause of a sentence.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.list.len() as u64 + self.more_waves;
        let (waves, have) = if count == 1 { ("wave", "has") } else { ("waves", "have") };
        write!(formatter, "{count} {waves} {have} not ended")?;
        for (index, wave) in self.list.iter().take(NAMED_MAX).enumerate() {
            let [x, y, z] = wave.workgroup;
            let separator = if index == 0 { ": " } else { "; " };
            write!(formatter, "{separator}wave {} of workgroup {x},{y},{z} {wave}", wave.wave)?;
        }
        if count > NAMED_MAX as u64 {
            write!(formatter, "; and {} more", count - NAMED_MAX as u64)?;
        }
        if self.waiting_groups > 0 {
            write!(formatter, "; {} workgroups have no room yet", self.waiting_groups)?;
        }
        if self.held_groups > 0 {
            write!(formatter, "; {} workgroups were running and are not listed", self.held_groups)?;
        }
        Ok(())
    }
}

impl fmt::Display for WavePosition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} at {}: {}", self.state, self.place, self.instruction)
    }
}

impl fmt::Display for WaveState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WaveState::NotBegun => formatter.write_str("has not begun"),
            WaveState::Running => formatter.write_str("runs"),
            WaveState::Barrier { signalled_waves, member_waves } => {
                write!(
                    formatter,
                    "waits at the barrier ({signalled_waves} of {member_waves} waves have signalled)"
                )
            }
            WaveState::Halted => formatter.write_str("was stopped"),
        }
    }
}

impl fmt::Display for WaveLoad {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.buffer, self.is_lds) {
            (_, true) => write!(formatter, "LDS byte {}", self.address)?,
            (Some(buffer), _) => write!(formatter, "{buffer}")?,
            (None, _) => write!(formatter, "{:#x}", self.address)?,
        }
        write!(formatter, " = {:#x}", self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"workgroup":[2,0,0],"wave":1,"state":{"barrier":{"signalled_waves":1,"member_waves":4}},
        "pc":4112,"code_va":4096,"instruction":"s_barrier_wait 0xffff",
        "loads":[{"pc":4100,"address":64,"is_lds":true,"value":7}]}"#;

    #[test]
    fn lines_and_the_rest_are_read() {
        let line = LINE.replace('\n', " ");
        let text = format!("{line}\n{{\"more_waves\":3,\"waiting_groups\":9,\"held_groups\":0}}\n");
        let waves = parse(&text, &Registry::default()).unwrap();
        assert_eq!((waves.list.len(), waves.more_waves, waves.waiting_groups), (1, 3, 9));
        assert_eq!(
            waves.to_string(),
            "4 waves have not ended: wave 1 of workgroup 2,0,0 waits at the barrier (1 of 4 waves have signalled) at \
             0x1010: s_barrier_wait 0xffff; 9 workgroups have no room yet"
        );
        assert_eq!(waves.list[0].loads[0].to_string(), "LDS byte 64 = 0x7");
        assert!(parse("{}", &Registry::default()).is_err());
        assert!(parse("", &Registry::default()).unwrap().is_empty());
    }
}
