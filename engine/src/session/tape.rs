//! Tasks → the megakernel's tape: what each task waits for, and which counter it raises.
//!
//! Contract: a task waits for the tasks whose results it reads or whose memory it reuses, except those that another of
//! its waits implies; a task's counter counts units, and its target follows from the step's rows. A task with more
//! waits than an entry holds is an error when the session is opened.

use crate::executor::ExecutorError;
use crate::executor::lowering::Task;
use crate::plan::ExecutionPlan;
use zrt_protocol::params::PARAMETER_BYTES_MAX;
use zrt_protocol::{
    BODIES, COUNTERS_OFFSET, TAPE_END, TAPE_WAIT_OFFSET_BITS, TAPE_WAITS_MAX, TapeEntry, TapeWait,
};

/// The tape of all tasks but PLAN, which the megakernel runs itself between two steps.
pub fn tape(
    plan: &ExecutionPlan,
    tasks: &[Task],
    parameters_va: u64,
) -> Result<Vec<TapeEntry>, ExecutorError> {
    let waits = waits(plan, tasks);
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
