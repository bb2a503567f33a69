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
