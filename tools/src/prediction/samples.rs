//! Counts of a step's kernels, from a few units of each run on the virtual device.
//!
//! Contract: every distinct task of a step is run alone with its true number of columns and rows and one or two units;
//! what a unit does is the difference, or one unit less what a launch costs by itself, which only a task with a single
//! unit keeps. Units of a task are taken to be equal. Weights and values are zeros: kernels whose path depends on data
//! are counted for these. A sample opens a device of its own and takes milliseconds to a second of one processor.

use super::step::{StepTask, StepWork};
use super::work::Work;
use crate::error::ToolError;
use crate::profile::Profile;
use std::collections::BTreeMap;
use zrt_bringup::{DeviceChoice, Inspect, OpenOptions, VirtualOptions};
use zrt_engine::activations::Activations;
use zrt_engine::executor::alone::{self, StepRows, TaskUnits};
use zrt_engine::executor::lowering::Task;
use zrt_engine::executor_error::ExecutorError;
use zrt_engine::graph::Operation;
use zrt_engine::kv_format::KvFormat;
use zrt_engine::model::Model;
use zrt_engine::plan::ExecutionPlan;
use zrt_engine::session::{first_groups, waits};
use zrt_isa::resources::{GroupNeeds, WaveSize};
use zrt_isa::zrt::Kernel;

/// Lanes of a wave of our kernels.
const WAVE_LANES: u32 = 32;

/// What has been counted so far.
#[derive(Default)]
pub struct Samples {
    known: BTreeMap<Key, Work>,
}

/// What the counts of a sample depend on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    kernel: &'static str,
    shape: Vec<u8>,
    /// The shape has no addresses, so that it does not say whether a product has an addend.
    has_epilogue: bool,
    rows: StepRows,
    units: u32,
    joined_log2: u32,
}

/// A model with plans of one step and of samples with few rows.
pub struct Sampled<'a> {
    /// The model.
    pub model: &'a Model,
    /// The plan of the step.
    pub plan: ExecutionPlan,
    /// Its rows.
    pub rows: StepRows,
    /// How keys and values are stored.
    pub kv_format: KvFormat,
    /// The same plan for two rows.
    few: ExecutionPlan,
}

impl<'a> Sampled<'a> {
    /// A step over `rows` of sequences of at most `context` positions.
    pub fn new(
        model: &'a Model,
        context: u32,
        rows: StepRows,
        activations: Activations,
        kv_format: KvFormat,
    ) -> Result<Sampled<'a>, ToolError> {
        let plan = |rows| ExecutionPlan::step(model, context, rows, activations).map_err(ExecutorError::from);
        Ok(Sampled { model, plan: plan(rows.rows())?, few: plan(2)?, rows, kv_format })
    }

    /// The tasks of the step in order, PLAN first.
    pub fn tasks(&self) -> Result<Vec<Task>, ToolError> {
        Ok(alone::tasks(self.model, &self.plan, self.rows, self.kv_format)?)
    }

    /// Bytes that a task reads and that nothing has read before in the step: weights, keys and values.
    pub fn stream_bytes(&self, task: &Task) -> f64 {
        let Some(index) = task.instruction else { return 0.0 };
        let operation = &self.plan.instructions[index].node.operation;
        let weight = operation.weight().map(|id| self.model.weight(id));
        let bytes = weight.map_or(0.0, |weight| weight.tensor.bytes as f64);
        let config = &self.plan.config;
        let kv_row = 2.0 * f64::from(self.kv_format.row_bytes(config.kv_elements()));
        match operation {
            Operation::Embed { .. } => {
                let table_rows = weight.map_or(1.0, |weight| f64::from(weight.rows));
                bytes / table_rows * f64::from(self.rows.rows())
            }
            Operation::Attention { window, .. } => {
                let sequences = match self.rows {
                    StepRows::Decode { slots, .. } => slots,
                    StepRows::Prompt { .. } => 1,
                };
                // The rows of a prompt have a window each, one position further on.
                let rows = match self.rows {
                    StepRows::Decode { .. } => 1,
                    StepRows::Prompt { rows, .. } => rows,
                };
                let context = self.rows.context();
                let positions = window.map_or(context, |window| context.min(window.saturating_add(rows - 1)));
                f64::from(sequences) * f64::from(positions) * kv_row
            }
            _ => bytes,
        }
    }

    /// Position in the middle of the rows.
    fn position(&self) -> u32 {
        match self.rows {
            StepRows::Decode { position, .. } => position,
            StepRows::Prompt { rows, position } => position + rows / 2,
        }
    }
}

impl Samples {
    /// What a unit of task number `index` does in a step of so many workgroups.
    pub fn unit(
        &mut self,
        sampled: &Sampled<'_>,
        (task, index): (&Task, usize),
        groups: u32,
    ) -> Result<Work, ToolError> {
        let units = TaskUnits::of(task, sampled.rows, groups);
        let position = sampled.position();
        let few = |slots| StepRows::Decode { slots, position };
        let joined_log2 = units.joined_log2;
        let mut count = |rows, units| self.count(sampled, (task, index), rows, (units, joined_log2));
        let units_of_row = task.header.units >> joined_log2;
        let rows = match (units.is_of_a_row, units.rows_of_unit) {
            (true, _) | (_, 1) => None,
            (false, rows) if rows == sampled.rows.rows() => Some(sampled.rows),
            // A band of a prompt is a step of as many rows.
            (false, rows) => Some(StepRows::Prompt { rows, position }),
        };
        let mut unit = if units.is_of_a_row && units_of_row < 2 {
            // Units of two rows differ from one by a unit.
            count(few(2), 1)? - count(few(1), 1)?
        } else if units_of_row < 2 {
            count(rows.unwrap_or(few(1)), 1)?
        } else {
            let one = count(few(1), 1)?;
            let unit = count(few(1), 2)? - one;
            let launch = one - unit;
            match rows {
                Some(rows) => count(rows, 1)? - launch,
                None => unit,
            }
        };
        let weights = sampled.stream_bytes(task);
        unit.stream_bytes = weights / f64::from(units.total.max(1));
        unit.repeated_bytes = unit.stream_bytes * f64::from(units.bands.saturating_sub(1));
        Ok(unit)
    }

    /// What a step of the megakernel does, with so many workgroups. PLAN is in it without work: the model has a time
    /// for it.
    pub fn step(&mut self, sampled: &Sampled<'_>, groups: u32) -> Result<StepWork, ToolError> {
        let tasks = sampled.tasks()?;
        let mut all_waits = waits(&sampled.plan, &tasks);
        let first_groups = first_groups(&tasks, groups);
        let mut step_tasks = Vec::with_capacity(tasks.len());
        for (index, task) in tasks.iter().enumerate() {
            let is_plan = index == 0;
            step_tasks.push(StepTask {
                kernel: task.kernel,
                unit: if is_plan { Work::default() } else { self.unit(sampled, (task, index), groups)? },
                units: if is_plan { 0 } else { TaskUnits::of(task, sampled.rows, groups).total },
                first_group: first_groups[index],
                waits: std::mem::take(&mut all_waits[index]),
            });
        }
        let (groups_per_compute_unit, waves_per_group) = megakernel_residency()?;
        Ok(StepWork { tasks: step_tasks, groups, groups_per_compute_unit, waves_per_group })
    }

    fn count(
        &mut self,
        sampled: &Sampled<'_>,
        (task, index): (&Task, usize),
        rows: StepRows,
        (units, joined_log2): (u32, u32),
    ) -> Result<Work, ToolError> {
        let instruction = task.instruction.map(|index| &sampled.plan.instructions[index]);
        let has_epilogue = instruction.is_some_and(|instruction| instruction.epilogue.is_some());
        let key =
            Key { kernel: task.kernel, shape: alone::shape(task), has_epilogue, rows, units, joined_log2 };
        if let Some(work) = self.known.get(&key) {
            return Ok(*work);
        }
        let plan = if rows.rows() <= sampled.few.rows { &sampled.few } else { &sampled.plan };
        let work = run(sampled, plan, (index, units, joined_log2), rows)?;
        self.known.insert(key, work);
        Ok(work)
    }
}

/// Workgroups of the megakernel that a compute unit holds, and waves of each.
pub fn megakernel_residency() -> Result<(f64, f64), ToolError> {
    let unusable = |reason: String| ToolError::from(ExecutorError::Kernel { kernel: "mega", reason });
    let container = zrt_asm::blob("mega").unwrap_or_default();
    let kernel = Kernel::parse(container).map_err(|error| unusable(error.to_string()))?;
    let needs = GroupNeeds {
        wave_size: WaveSize::Wave32,
        vgprs: kernel.vgprs.into(),
        lds_bytes: kernel.lds_bytes,
        work_items: kernel.work_items(),
    };
    let occupancy = needs.occupancy().map_err(|error| unusable(error.to_string()))?;
    Ok((f64::from(occupancy.groups_per_cu.max(1)), f64::from(occupancy.waves_per_group)))
}

/// Runs units of a task on a device that counts.
fn run(
    sampled: &Sampled<'_>,
    plan: &ExecutionPlan,
    task: (usize, u32, u32),
    rows: StepRows,
) -> Result<Work, ToolError> {
    let choice = DeviceChoice::Virtual;
    let options = OpenOptions {
        self_test: false,
        virtual_device: VirtualOptions {
            profile: true,
            // Memory that nobody fills takes no memory of the host.
            vram_fill: Some(0),
            ..VirtualOptions::default()
        },
        ..OpenOptions::default()
    };
    let opened = zrt_bringup::open(choice, &options);
    let mut device = opened.map_err(|source| ToolError::Device { device: choice.name(), source })?;
    alone::run(&mut device, sampled.model, plan, rows, sampled.kv_format, task)?;
    let text = device.profile().unwrap_or_default();
    let profile: Profile = serde_json::from_str(&text)
        .map_err(|error| ToolError::BadInput { what: format!("the profile cannot be read: {error}") })?;
    Ok(Work::of(&profile, WAVE_LANES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prediction::shapes::{QWEN3_0_6B_BF16, QWEN3_8B_Q4_K_M, RELEASES, Shape};
    use zrt_engine::weights::WeightClass;

    /// Lines that the products of a step touch, for each line that their weights have.
    fn lines_of_products(shape: Shape, activations: Activations, slots: u32) -> f64 {
        let model = shape.model().unwrap();
        let rows = StepRows::Decode { slots, position: 511 };
        let sampled = Sampled::new(&model, 512, rows, activations, KvFormat::F32).unwrap();
        let step = Samples::default().step(&sampled, 128).unwrap();
        let products = step.tasks.iter().filter(|task| task.kernel.starts_with("matmul_"));
        let sum = |of: fn(&Work) -> f64| {
            products.clone().map(|task| of(&task.unit) * f64::from(task.units)).sum::<f64>()
        };
        sum(|unit| unit.lines) / sum(|unit| unit.stream_bytes / 128.0)
    }

    /// A wave's loads are contiguous: few lines are touched that the weights do not have. Floats: two loads come to
    /// each line, and the x of a unit's 32 weight rows is a 16th of their bytes for each row of the step; with 64 bytes
    /// from lane to lane weights were 4, and x 4 for each row. Integers: a wave of 16 weight rows and 2 segments has 36
    /// lines of Q4_K, and two lines for each of 16 loads of x, of 32 with A16.
    #[test]
    fn products_touch_few_lines_more_than_their_weights_have() {
        for (shape, activations, slots, most) in [
            (QWEN3_0_6B_BF16, Activations::F32, 1, 2.2),
            (QWEN3_0_6B_BF16, Activations::F32, 8, 2.8),
            (QWEN3_8B_Q4_K_M, Activations::A8, 1, 2.0),
            (QWEN3_8B_Q4_K_M, Activations::A16, 1, 2.8),
        ] {
            let found = lines_of_products(shape, activations, slots);
            assert!(found <= most && found >= 1.0, "{} {activations:?} {slots}: {found:.3}", shape.name);
        }
    }

    /// By hand, of Gemma-3-12B: an embedding row has 3840 elements of Q6_K, a position 8 heads of 256 elements twice in
    /// f16, and five layers of six look back 1024 positions; a query matrix has 4096 × 3840 elements of Q4_K.
    #[test]
    fn a_task_streams_its_weights_or_the_keys_and_values_that_it_looks_back_at() {
        let model = RELEASES[1].model().unwrap();
        let of = |rows| {
            let sampled = Sampled::new(&model, 2048, rows, Activations::A8, KvFormat::F16).unwrap();
            let tasks = sampled.tasks().unwrap();
            assert_eq!((tasks[0].instruction, sampled.stream_bytes(&tasks[0])), (None, 0.0), "PLAN");
            let bytes_of = |is_it: fn(&Operation) -> bool| -> Vec<f64> {
                let operation =
                    |task: &&Task| task.instruction.map(|at| &sampled.plan.instructions[at].node.operation);
                let tasks = tasks.iter().filter(|task| operation(task).is_some_and(is_it));
                tasks.map(|task| sampled.stream_bytes(task)).collect()
            };
            let embedding = bytes_of(|one| matches!(one, Operation::Embed { .. }));
            let attention = bytes_of(|one| matches!(one, Operation::Attention { .. }));
            let others = bytes_of(|one| one.weight().is_some() && !matches!(one, Operation::Embed { .. }));
            assert!(others.contains(&f64::from(4096 * 3840 / 256 * 144)), "{others:?}");
            (sampled.position(), embedding, attention[..6].to_vec())
        };
        let row = f64::from(3840 / 256 * 210);
        let position = f64::from(8 * 256 * 2 * 2);
        let layers = |near: f64, far: f64| [vec![near; 5], vec![far]].concat();
        let decode = of(StepRows::Decode { slots: 3, position: 2047 });
        let attention = layers(3.0 * 1024.0 * position, 3.0 * 2048.0 * position);
        assert_eq!(decode, (2047, vec![3.0 * row], attention));
        // The rows of a prompt have a window each: 127 positions more.
        let prompt = of(StepRows::Prompt { rows: 128, position: 1920 });
        let attention = layers(1151.0 * position, 2048.0 * position);
        assert_eq!(prompt, (1984, vec![128.0 * row], attention));
    }

    /// The megakernel has 256 work-items, so eight waves, and leaves room for another workgroup (docs/prediction.md).
    #[test]
    fn two_workgroups_of_the_megakernel_share_a_compute_unit() {
        assert_eq!(megakernel_residency().unwrap(), (2.0, 8.0));
    }

    /// SWIGLU: each of a unit's 256 work-items loads two floats and stores one. What a launch reads besides, its
    /// parameters and its step, is less than 32 bytes for each; nothing that the device did before is counted.
    #[test]
    fn a_sample_counts_its_launch_alone() {
        let model = crate::loaded_model::LoadedModel::open(None).unwrap().model;
        let rows = StepRows::Decode { slots: 1, position: 0 };
        let sampled = Sampled::new(&model, 512, rows, Activations::F32, KvFormat::F32).unwrap();
        let index = sampled.tasks().unwrap().iter().position(|task| task.kernel == "swiglu").unwrap();
        let [one, two] =
            [1, 2].map(|units| run(&sampled, &sampled.few, (index, units, 0), rows).unwrap().vector_bytes);
        assert_eq!(two - one, 256.0 * 12.0);
        assert!((256.0 * 12.0..256.0 * (12.0 + 32.0)).contains(&one), "{one}");
    }

    /// By hand, of the model that is built in, whatever the rows of a step: whether a unit of a task belongs to a row,
    /// and whether a row, or a band of rows, has a single unit. Its keys and values have 128 elements each, which are
    /// one unit of a product; its products are otherwise larger.
    fn units_by_hand(sampled: &Sampled<'_>, task: &Task) -> (bool, bool) {
        let operation = task.instruction.map(|index| &sampled.plan.instructions[index].node.operation);
        let weight = operation.and_then(Operation::weight).map(|weight| weight.class);
        let is_short = matches!(weight, Some(WeightClass::Key | WeightClass::Value));
        match task.kernel {
            "embed_q6_k" | "rms_norm" | "qk_norm" | "rope_halves" | "kv_write_f32" | "sample" => (true, true),
            "attention_f32" | "swiglu" => (true, false),
            "boundary" => (false, true),
            "matmul_q4_0" | "matmul_q4_0_a8" => (false, is_short),
            "matmul_q6_k" | "matmul_q6_k_a8" => (false, false),
            other => panic!("{other}"),
        }
    }

    /// What a launch costs in the made-up samples below, and a unit for each row that it works on.
    const LAUNCH: f64 = 1000.0;
    const ROW: f64 = 7.0;

    /// Samples that have been taken already: of a task's own rows or band, and of one and two rows of a decoding step.
    fn made_up(
        sampled: &Sampled<'_>,
        tasks: &[Task],
        groups: u32,
        is_single: impl Fn(&Task) -> bool,
    ) -> Samples {
        let mut samples = Samples::default();
        let position = sampled.position();
        for task in tasks {
            let units = TaskUnits::of(task, sampled.rows, groups);
            let own = match units.rows_of_unit == sampled.rows.rows() {
                true => sampled.rows,
                false => StepRows::Prompt { rows: units.rows_of_unit, position },
            };
            let few = |slots| StepRows::Decode { slots, position };
            // Rows are compared only if none has several units: others would be run, and have no such counts.
            let of_rows = if is_single(task) { (few(2), 1) } else { (few(1), 2) };
            for (rows, count) in [(own, 1), (few(1), 1), of_rows] {
                let instruction = task.instruction.map(|index| &sampled.plan.instructions[index]);
                let key = Key {
                    kernel: task.kernel,
                    shape: alone::shape(task),
                    has_epilogue: instruction.is_some_and(|one| one.epilogue.is_some()),
                    rows,
                    units: count,
                    joined_log2: units.joined_log2,
                };
                let scalar = LAUNCH + ROW * f64::from(count * rows.rows());
                samples.known.insert(key, Work { scalar, ..Work::default() });
            }
        }
        samples
    }

    /// A unit costs what it does for its rows, and no launch; only a task that has a single unit keeps that of its
    /// launch. Every unit has the same share of the weights, and those of further bands have it from GL2.
    #[test]
    fn a_unit_is_what_samples_differ_by() {
        let model = crate::loaded_model::LoadedModel::open(None).unwrap().model;
        let mut paths = [0; 3];
        for rows in [
            StepRows::Decode { slots: 1, position: 511 },
            StepRows::Decode { slots: 8, position: 511 },
            StepRows::Prompt { rows: 512, position: 0 },
        ] {
            for activations in [Activations::F32, Activations::A8] {
                let sampled = Sampled::new(&model, 512, rows, activations, KvFormat::F32).unwrap();
                let tasks = sampled.tasks().unwrap();
                let mut samples = made_up(&sampled, &tasks[1..], 128, |task| units_by_hand(&sampled, task).1);
                for (index, task) in tasks.iter().enumerate().skip(1) {
                    let units = TaskUnits::of(task, rows, 128);
                    let (path, expected) = match units_by_hand(&sampled, task) {
                        (true, _) => (0, ROW),
                        (false, false) => (1, ROW * f64::from(units.rows_of_unit)),
                        (false, true) => (2, LAUNCH + ROW * f64::from(units.rows_of_unit)),
                    };
                    paths[path] += 1;
                    let unit = samples.unit(&sampled, (task, index), 128).unwrap();
                    assert_eq!(unit.scalar, expected, "{} {rows:?} {units:?}", task.kernel);
                    let share = sampled.stream_bytes(task) / f64::from(units.total);
                    assert_eq!(unit.stream_bytes, share, "{}", task.kernel);
                    assert_eq!(unit.repeated_bytes, share * f64::from(units.bands - 1), "{}", task.kernel);
                }
            }
        }
        assert!(paths.iter().all(|&count| count > 0), "{paths:?}");
    }

    /// Two heads that are joined into one unit: a row has no second one, so two rows are compared.
    #[test]
    fn units_of_a_row_are_counted_as_they_are_joined() {
        let model = crate::loaded_model::LoadedModel::open(None).unwrap().model;
        let rows = StepRows::Prompt { rows: 512, position: 0 };
        let sampled = Sampled::new(&model, 512, rows, Activations::A8, KvFormat::F32).unwrap();
        let mut tasks = sampled.tasks().unwrap();
        tasks.retain(|task| task.kernel == "attention_f32");
        tasks.truncate(1);
        tasks[0].header.units = 2;
        let units = TaskUnits::of(&tasks[0], rows, 128);
        assert_eq!((units.is_of_a_row, units.joined_log2, units.total), (true, 1, 512));
        let unit = made_up(&sampled, &tasks, 128, |_| true).unit(&sampled, (&tasks[0], 1), 128).unwrap();
        assert_eq!(unit.scalar, ROW);
    }

    /// PLAN comes first and has a time of its own; every task has its units, and those that it waits for lie before it.
    #[test]
    fn a_step_has_its_tasks_in_order() {
        let model = crate::loaded_model::LoadedModel::open(None).unwrap().model;
        let rows = StepRows::Decode { slots: 8, position: 511 };
        let sampled = Sampled::new(&model, 512, rows, Activations::A8, KvFormat::F32).unwrap();
        let tasks = sampled.tasks().unwrap();
        let step = made_up(&sampled, &tasks[1..], 96, |task| units_by_hand(&sampled, task).1)
            .step(&sampled, 96)
            .unwrap();
        assert_eq!((step.groups, step.groups_per_compute_unit, step.waves_per_group), (96, 2.0, 8.0));
        assert_eq!((step.tasks[0].unit, step.tasks[0].units), (Work::default(), 0));
        assert_eq!(step.tasks.len(), tasks.len());
        for (index, (found, task)) in step.tasks.iter().zip(&tasks).enumerate().skip(1) {
            assert_eq!((found.kernel, found.units), (task.kernel, TaskUnits::of(task, rows, 96).total));
            assert!(found.units > 0 && found.unit.scalar >= ROW && found.first_group < 96, "{found:?}");
            assert!(found.waits.iter().all(|wait| *wait < index), "{found:?}");
        }
        assert!(step.tasks.iter().any(|task| !task.waits.is_empty()));
    }
}
