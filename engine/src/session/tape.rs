//! Tasks → the megakernel's tape: what each task waits for, and which counter it raises.
//!
//! Contract: a task waits for the tasks whose results it reads or whose memory it reuses, except those that another of
//! its waits implies; a task's counter counts units, and its target follows from the step's rows. A task with more
//! waits than an entry holds is an error when the session is opened.

use crate::executor::lowering::Task;
use crate::executor_error::ExecutorError;
use crate::plan::ExecutionPlan;
use zrt_protocol::params::{PARAMETER_BYTES_MAX, RowSet};
use zrt_protocol::{
    BODIES, COUNTERS_OFFSET, TAPE_END, TAPE_WAIT_OFFSET_BITS, TAPE_WAITS_MAX, TapeEntry, TapeWait,
};

/// The tape of all tasks but PLAN, which the megakernel runs itself between two steps.
pub fn tape(
    plan: &ExecutionPlan,
    tasks: &[Task],
    parameters_va: u64,
    groups: u32,
) -> Result<Vec<TapeEntry>, ExecutorError> {
    let waits = waits(plan, tasks);
    let first_groups = first_groups(tasks, groups);
    let mut entries = Vec::with_capacity(tasks.len());
    for (index, task) in tasks.iter().enumerate().skip(1) {
        let body = BODIES.iter().position(|name| *name == task.kernel).ok_or(ExecutorError::Kernel {
            kernel: task.kernel,
            reason: "the megakernel has no such body".into(),
        })?;
        if waits[index].len() > TAPE_WAITS_MAX {
            let reason = format!("task {index} waits for {} others", waits[index].len());
            return Err(ExecutorError::Kernel { kernel: task.kernel, reason });
        }
        let mut entry = TapeEntry {
            body: body as u32,
            task: index as u32,
            parameters_va: parameters_va + (index * PARAMETER_BYTES_MAX) as u64,
            signal: counter(index),
            first_group: first_groups[index],
            ..TapeEntry::default()
        };
        for (wait, earlier) in entry.wait.iter_mut().zip(&waits[index]) {
            let header = &tasks[*earlier].header;
            *wait = TapeWait {
                counter: counter(*earlier) | (header.rows & 0xff) << TAPE_WAIT_OFFSET_BITS,
                units: header.units,
            };
        }
        if let Some(pieces) = task.weight_pieces {
            (entry.plane_va, entry.piece_bytes, entry.pieces) = (pieces.plane_va, pieces.bytes, pieces.count);
        }
        entries.push(entry);
    }
    entries.push(TapeEntry { body: TAPE_END, ..TapeEntry::default() });
    Ok(entries)
}

/// Byte offset of a task's counter.
fn counter(task: usize) -> u32 {
    COUNTERS_OFFSET + task as u32 * 4
}

/// The workgroup of each task's unit 0, by task number, of `groups` in the dispatch. A task begins where the one before
/// it has ended, so that small tasks that can run at once do not meet in the first groups. How many units an operation
/// over each row has is known in the step alone: the next task begins where it does.
pub fn first_groups(tasks: &[Task], groups: u32) -> Vec<u32> {
    let groups = groups.max(1);
    let each = [RowSet::EachActive as u32, RowSet::EachOutput as u32];
    let mut next = 0;
    let of_task = |task: &Task| {
        let first = next;
        if !each.contains(&(task.header.rows & 0xff)) {
            next = (next + task.header.units % groups) % groups;
        }
        first
    };
    // PLAN is the first group's and stands outside of the tape.
    std::iter::once(0).chain(tasks.iter().skip(1).map(of_task)).collect()
}

/// What each task waits for, by task number. A layer's boundary follows the first task of the layer before; the first
/// task of the layer itself waits for it.
pub fn waits(plan: &ExecutionPlan, tasks: &[Task]) -> Vec<Vec<usize>> {
    let mut task_of = vec![0; plan.instructions.len()];
    for (index, task) in tasks.iter().enumerate() {
        if let Some(instruction) = task.instruction {
            task_of[instruction] = index;
        }
    }
    let dependencies = plan.dependencies();
    let mut waits = vec![Vec::new(); tasks.len()];
    let mut boundary = None;
    for (index, task) in tasks.iter().enumerate().skip(1) {
        match task.instruction {
            Some(instruction) => {
                waits[index] = dependencies[instruction].iter().map(|earlier| task_of[*earlier]).collect();
                let layer = plan.instructions[instruction].node.layer;
                let before = instruction.checked_sub(1).and_then(|one| plan.instructions[one].node.layer);
                if layer != before
                    && let Some(boundary) = boundary.take()
                {
                    waits[index].push(boundary);
                }
            }
            None => {
                waits[index].push(index - 1);
                boundary = Some(index);
            }
        }
    }
    waits
}

#[cfg(test)]
mod tests {
    use super::*;
    use zrt_protocol::params::Matmul;

    /// Products of 128, 32 and 32 units for 48 groups, with an operation over each row between them.
    #[test]
    fn a_task_begins_where_the_one_before_has_ended() {
        let task = |units, rows| Task {
            kernel: "copy",
            parameters: Vec::new(),
            header: Matmul::header(0, units, rows),
            weight_pieces: None,
            units_max: units,
            barrier_before: false,
            instruction: None,
        };
        let tasks = [
            task(1, RowSet::Once),
            task(128, RowSet::AllActive),
            task(32, RowSet::AllActive),
            task(5, RowSet::EachActive),
            task(32, RowSet::AllActive),
            task(1, RowSet::Once),
        ];
        // 128 = 2 * 48 + 32; 32 + 32 = 48 + 16; 16 + 32 = 48.
        assert_eq!(first_groups(&tasks, 48), [0, 0, 32, 16, 16, 0]);
        assert_eq!(first_groups(&tasks, 1), [0; 6]);
    }
}
