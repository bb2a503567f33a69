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
    use crate::activations::Activations;
    use crate::executor::alone::{self, StepRows};
    use crate::gguf::Gguf;
    use crate::graph::{Node, Operation};
    use crate::kv_format::KvFormat;
    use crate::model::Model;
    use std::path::Path;
    use std::sync::Arc;
    use zrt_protocol::params::Matmul;

    /// The plan of a model of eight layers, and its tasks.
    fn planned() -> (ExecutionPlan, Vec<Task>) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/tales-qwen3-Q4_0.gguf");
        let model = Model::load(Arc::new(Gguf::open(&path).unwrap())).unwrap();
        let plan = ExecutionPlan::step(&model, 64, 1, Activations::F32).unwrap();
        let rows = StepRows::Decode { slots: 1, position: 0 };
        let tasks = alone::tasks(&model, &plan, rows, KvFormat::F32).unwrap();
        (plan, tasks)
    }

    /// Made to add the values to the keys, the norm of queries waits for all three products. As the first of a layer
    /// it waits for the boundary, too, which are more waits than an entry holds.
    #[test]
    fn an_entry_holds_three_waits_and_no_more() {
        let (mut plan, tasks) = planned();
        let operations: Vec<Operation> = plan.instructions.iter().map(|one| one.node.operation).collect();
        let find = |is_it: fn(&Operation) -> bool| operations.iter().position(is_it).unwrap();
        let norm = find(|operation| matches!(operation, Operation::QkNorm { .. }));
        let write = find(|operation| matches!(operation, Operation::KvWrite { .. }));
        let Operation::KvWrite { key, value, .. } = operations[write] else { unreachable!() };
        let layer = plan.instructions[norm].node.layer;
        let add = Node { operation: Operation::ResidualAdd { hidden: key, addend: value }, layer };
        plan.instructions[norm].epilogue = Some(add);
        let task = tasks.iter().position(|task| task.instruction == Some(norm)).unwrap();
        let units = |plan: &ExecutionPlan| {
            let entries = tape(plan, &tasks, 0, 1).map_err(|error| error.to_string())?;
            Ok::<_, String>(entries[task - 1].wait.map(|wait| wait.units > 0))
        };
        assert_eq!(waits(&plan, &tasks)[task].len(), 3);
        assert_eq!(units(&plan), Ok([true; 3]));
        plan.instructions[norm].node.layer = Some(77);
        assert_eq!(waits(&plan, &tasks)[task].len(), 4);
        let text = format!("kernel `qk_norm` is not usable: task {task} waits for 4 others");
        assert_eq!(units(&plan), Err(text));
    }

    #[test]
    fn a_kernel_without_a_body_is_refused() {
        let (plan, mut tasks) = planned();
        assert!(tape(&plan, &tasks, 0, 1).is_ok());
        tasks[5].kernel = "plan";
        let error = tape(&plan, &tasks, 0, 1).unwrap_err().to_string();
        assert_eq!(error, "kernel `plan` is not usable: the megakernel has no such body");
    }

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
        // u32::MAX = 64 * 67,108,863 + 63.
        let many = [task(1, RowSet::Once), task(u32::MAX, RowSet::AllActive), task(1, RowSet::Once)];
        assert_eq!(first_groups(&many, 64), [0, 0, 63]);
    }
}
