//! Where the virtual device's waves are, from its driver's file.
//!
//! Contract: a JSON object for each wave that has not ended, at most 256 of them. The device is paused while the file
//! is read: for waits that took too long, never on the path of a token.

use crate::virtual_files::{self, WAVES_PATH};
use serde::Deserialize;
use zrt_device::{DeviceError, Registry, WaveLoad, WavePosition, WaveState, Waves};
use zrt_kmd::Syscalls;
use zrt_mem::GpuVa;

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

/// The last line, if something is not in the list.
#[derive(Deserialize)]
struct RawRest {
    more_waves: u64,
    waiting_groups: u64,
    held_groups: u64,
}

/// All current positions; none on a card.
pub(crate) fn read(syscalls: &dyn Syscalls, registry: &Registry) -> Result<Waves, DeviceError> {
    parse(&virtual_files::read(syscalls, WAVES_PATH)?.unwrap_or_default(), registry)
}

fn parse(text: &str, registry: &Registry) -> Result<Waves, DeviceError> {
    let mut waves = Waves::default();
    for line in text.lines() {
        if let Ok(RawRest { more_waves, waiting_groups, held_groups }) = serde_json::from_str(line) {
            waves = Waves { more_waves, waiting_groups, held_groups, ..waves };
            continue;
        }
        let raw: RawPosition = serde_json::from_str(line)
            .map_err(|cause| DeviceError::Evidence { path: WAVES_PATH, reason: cause.to_string() })?;
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
             0x1010: s_barrier_wait 0xffff; 9 workgroups are not resident yet"
        );
        assert_eq!(waves.list[0].loads[0].to_string(), "LDS byte 64 = 0x7");
        assert!(parse("{}", &Registry::default()).is_err());
        assert!(parse("", &Registry::default()).unwrap().is_empty());
    }
}
