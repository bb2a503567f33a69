//! Positions of waves, like a debugger's list of threads, for anyone waiting for them.
//!
//! Contract: taken while no worker holds a group, so all are from one moment. A JSON object per line, groups in the
//! order of the scheduler's lists, at most [`POSITIONS_MAX`] waves; then a count of what is not in the list.

use serde::Serialize;

use crate::check::circles::SeenLoad;

/// Most waves listed.
pub const POSITIONS_MAX: usize = 256;

/// One wave that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Position {
    pub workgroup: [u32; 3],
    pub wave: u32,
    pub state: PositionState,
    /// Address of the next instruction, or of the one that stopped the wave.
    pub pc: u64,
    /// Address of the dispatch's first instruction.
    pub code_va: u64,
    pub instruction: String,
    /// What a wave that goes in circles reads; empty if unknown.
    pub loads: Vec<SeenLoad>,
}

/// The state of the wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PositionState {
    /// Its group is resident, but the wave has had no turn.
    NotBegun,
    Running,
    /// It waits at its group's barrier.
    Barrier {
        signalled_waves: u32,
        member_waves: u32,
    },
    /// A fault has stopped it.
    Halted,
}

/// What the list omits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Rest {
    /// Waves beyond [`POSITIONS_MAX`].
    pub more_waves: u64,
    /// Groups that are not resident yet.
    pub waiting_groups: u64,
    /// Groups not in the list because a worker, or a debugger, held them for too long.
    pub held_groups: u64,
}

/// The text of the file.
pub(crate) fn text(positions: &[Position], mut rest: Rest) -> String {
    let listed = positions.len().min(POSITIONS_MAX);
    rest.more_waves += (positions.len() - listed) as u64;
    // Serialising plain data cannot fail.
    let mut text: String = positions[..listed]
        .iter()
        .map(|position| serde_json::to_string(position).unwrap_or_default() + "\n")
        .collect();
    if rest != Rest::default() {
        text += &serde_json::to_string(&rest).unwrap_or_default();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_bounded_and_says_what_is_missing() {
        let position = Position {
            workgroup: [1, 0, 0],
            wave: 2,
            state: PositionState::Barrier { signalled_waves: 1, member_waves: 3 },
            pc: 0x1010,
            code_va: 0x1000,
            instruction: "s_barrier_wait 0xffff".to_owned(),
            loads: vec![SeenLoad { pc: 0x1008, address: 64, is_lds: true, value: 7 }],
        };
        let one = text(std::slice::from_ref(&position), Rest::default());
        let json: serde_json::Value = serde_json::from_str(&one).unwrap();
        assert_eq!((&json["state"]["barrier"]["signalled_waves"], one.lines().count()), (&1.into(), 1));
        let many = text(&vec![position; POSITIONS_MAX + 3], Rest { waiting_groups: 9, ..Rest::default() });
        assert_eq!(many.lines().count(), POSITIONS_MAX + 1);
        assert!(many.ends_with("{\"more_waves\":3,\"waiting_groups\":9,\"held_groups\":0}\n"), "{many}");
    }
}
