//! Where waves are, like a debugger's list of threads.
//!
//! Contract: data, filled in by a [`Witness`](crate::Witness), and its text. For waits that took too long, never on the
//! path of a token. A card reveals none of it.

use crate::registry::Place;
use core::fmt;
use serde::{Deserialize, Serialize};

/// Waves that a sentence names.
const NAMED_MAX: usize = 4;

/// The waves that have not ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Waves {
    /// Those that are listed.
    pub list: Vec<WavePosition>,
    /// Further waves that are resident.
    pub more_waves: u64,
    /// Workgroups that have no room yet.
    pub waiting_groups: u64,
    /// Workgroups that were running all the time, so that they could not be inspected.
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
    /// Its position: its next instruction, or the one that stopped it.
    pub place: Place,
    /// That instruction as the assembler writes it.
    pub instruction: String,
    /// What it polls, if the checking mode has seen that it loops forever.
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
    /// True for LDS.
    pub is_lds: bool,
    /// What it returns, cut off after four bytes.
    pub value: u32,
    /// The buffer at the address, in words; `None` for LDS.
    pub buffer: Option<String>,
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
            write!(formatter, "; {} workgroups are not resident yet", self.waiting_groups)?;
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

    fn wave(wave: u32, state: WaveState) -> WavePosition {
        let place = Place { pc: 0x4000, kernel: None, offset: None, source: None, source_text: None };
        let instruction = "s_nop 0".to_owned();
        WavePosition { workgroup: [1, 2, 3], wave, state, place, instruction, loads: Vec::new() }
    }

    #[test]
    fn a_sentence_counts_all_waves_and_says_only_what_there_is() {
        let one = Waves { list: vec![wave(7, WaveState::Running)], ..Waves::default() };
        let named = "1 wave has not ended: wave 7 of workgroup 1,2,3 runs at 0x4000: s_nop 0";
        assert_eq!(one.to_string(), named);
        let text =
            |waiting_groups, held_groups| Waves { waiting_groups, held_groups, ..one.clone() }.to_string();
        assert_eq!(text(1, 0), format!("{named}; 1 workgroups are not resident yet"));
        assert_eq!(text(0, 1), format!("{named}; 1 workgroups were running and are not listed"));
        let both = "2 workgroups are not resident yet; 3 workgroups were running and are not listed";
        assert_eq!(text(2, 3), format!("{named}; {both}"));

        let barrier = WaveState::Barrier { signalled_waves: 3, member_waves: 4 };
        let list: Vec<_> = (0..4).map(|number| wave(number, WaveState::Halted)).collect();
        let four = Waves { list, ..Waves::default() };
        assert!(
            four.to_string().ends_with("wave 3 of workgroup 1,2,3 was stopped at 0x4000: s_nop 0"),
            "{four}"
        );

        let states =
            [WaveState::NotBegun, WaveState::Halted, barrier, WaveState::Running, WaveState::Running];
        let list = states.into_iter().zip(0..).map(|(state, number)| wave(number, state)).collect();
        let many = Waves { list, more_waves: 10, ..Waves::default() };
        assert_eq!(
            many.to_string(),
            "15 waves have not ended: wave 0 of workgroup 1,2,3 has not begun at 0x4000: s_nop 0; \
             wave 1 of workgroup 1,2,3 was stopped at 0x4000: s_nop 0; \
             wave 2 of workgroup 1,2,3 waits at the barrier (3 of 4 waves have signalled) at 0x4000: s_nop 0; \
             wave 3 of workgroup 1,2,3 runs at 0x4000: s_nop 0; and 11 more"
        );
    }

    #[test]
    fn a_load_says_where_it_looks_and_what_it_finds() {
        let text = |is_lds, buffer: Option<&str>| {
            let (buffer, place) = (buffer.map(String::from), wave(0, WaveState::Running).place);
            WaveLoad { place, address: 0x50, is_lds, value: 0x2a, buffer }.to_string()
        };
        assert_eq!(text(true, None), "LDS byte 80 = 0x2a");
        assert_eq!(text(true, Some("flags+0x10")), "LDS byte 80 = 0x2a");
        assert_eq!(text(false, Some("flags+0x10")), "flags+0x10 = 0x2a");
        assert_eq!(text(false, None), "0x50 = 0x2a");
    }
}
