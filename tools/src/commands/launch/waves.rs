//! Where waves were when a kernel was stopped, as a table: what debuggers call a list of threads.
//!
//! Contract: the virtual device's waves, in the order in which it listed them; nothing if none is known.

use crate::commands::write_text;
use crate::error::ToolError;
use crate::launch::LaunchError;
use crate::table::{Alignment, Table};
use zrt_device::{WavePosition, Waves};

/// Waves that are shown.
const SHOWN_MAX: usize = 32;

/// The table, and a line about what is not in it; empty if nothing is known.
pub(super) fn text(waves: &Waves) -> String {
    if waves.list.is_empty() {
        return String::new();
    }
    let columns = [
        ("workgroup", Alignment::Left),
        ("wave", Alignment::Right),
        ("state", Alignment::Left),
        ("at", Alignment::Left),
        ("instruction", Alignment::Left),
        ("looks at", Alignment::Left),
    ];
    let mut table = Table::new(&columns);
    for wave in waves.list.iter().take(SHOWN_MAX) {
        table.row(row(wave));
    }
    let more = waves.list.len().saturating_sub(SHOWN_MAX) as u64 + waves.more_waves;
    let mut rest = Vec::new();
    for (count, what) in [
        (more, "more waves"),
        (waves.waiting_groups, "workgroups without room yet"),
        (waves.held_groups, "workgroups that could not be inspected"),
    ] {
        if count > 0 {
            rest.push(format!("{count} {what}"));
        }
    }
    let rest = if rest.is_empty() { String::new() } else { format!("and {}\n", rest.join(", ")) };
    format!("\nwaves that had not ended:\n{table}\n{rest}")
}

fn row(wave: &WavePosition) -> Vec<String> {
    let [x, y, z] = wave.workgroup;
    let loads: Vec<String> = wave.loads.iter().map(ToString::to_string).collect();
    vec![
        format!("{x},{y},{z}"),
        wave.wave.to_string(),
        wave.state.to_string(),
        wave.place.to_string(),
        wave.instruction.clone(),
        loads.join("; "),
    ]
}

/// Writes the table for an error of a kernel.
pub(in crate::commands) fn show_before(error: &LaunchError) -> Result<(), ToolError> {
    match error {
        LaunchError::Device { waves, .. } => write_text(&text(waves)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zrt_device::{Place, WaveLoad, WaveState};

    fn place() -> Place {
        Place { pc: 0x20, kernel: Some("k".to_owned()), offset: Some(8), source: None, source_text: None }
    }

    fn wave(wave: u32, loads: Vec<WaveLoad>) -> WavePosition {
        let instruction = "s_nop 0".to_owned();
        WavePosition {
            workgroup: [1, 2, 3],
            wave,
            state: WaveState::Running,
            place: place(),
            instruction,
            loads,
        }
    }

    #[test]
    fn waves_are_a_table_and_what_is_not_in_it() {
        assert_eq!(text(&Waves::default()), "");
        let load = |value| WaveLoad { place: place(), address: 64, is_lds: true, value, buffer: None };
        let list = vec![wave(0, Vec::new()), wave(11, vec![load(1), load(2)])];
        let table = "
waves that had not ended:
| workgroup | wave | state | at    | instruction | looks at                             |
| --------- | ---: | ----- | ----- | ----------- | ------------------------------------ |
| 1,2,3     |    0 | runs  | k+0x8 | s_nop 0     |                                      |
| 1,2,3     |   11 | runs  | k+0x8 | s_nop 0     | LDS byte 64 = 0x1; LDS byte 64 = 0x2 |

";
        assert_eq!(text(&Waves { list: list.clone(), ..Waves::default() }), table);
        let waves = Waves { list, more_waves: 3, waiting_groups: 4, held_groups: 5 };
        let rest =
            "and 3 more waves, 4 workgroups without room yet, 5 workgroups that could not be inspected\n";
        assert_eq!(text(&waves), format!("{table}{rest}"));
    }

    #[test]
    fn a_long_list_is_cut_and_its_rest_is_counted() {
        let of = |count: u32, more_waves| {
            let list = (0..count).map(|number| wave(number, Vec::new())).collect();
            let text = text(&Waves { list, more_waves, ..Waves::default() });
            (text.matches("| 1,2,3 ").count(), text.lines().last().map(str::to_owned))
        };
        assert_eq!(of(32, 0), (32, Some(String::new())));
        assert_eq!(of(33, 0), (32, Some("and 1 more waves".to_owned())));
        assert_eq!(of(40, 2), (32, Some("and 10 more waves".to_owned())));
    }
}
