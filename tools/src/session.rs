//! A model on the requested device: the one place where tools choose an executor.
//!
//! Contract: the choice is made once, at opening; a step then goes to its executor by a match. Opening uploads or
//! dequantises all weights and shows progress on a terminal.

use crate::error::ToolError;
use crate::loaded_model::LoadedModel;
use crate::memory_option::MemoryOption;
use crate::open_device::{OpenedDevice, open_device};
use crate::progress::{Progress, Unit};
use serde::Serialize;
use zrt_bringup::DeviceChoice;
use zrt_device::Counters;
use zrt_engine::activations::Activations;
use zrt_engine::executor::device::DeviceExecutor;
use zrt_engine::executor::{Cache, Executor, StepSnapshot};
use zrt_engine::executor_error::ExecutorError;
use zrt_engine::graph::ValueId;
use zrt_engine::kv_format::KvFormat;
use zrt_engine::oracle::Oracle;
use zrt_engine::plan::ExecutionPlan;

/// A model that can run, with one sequence.
pub struct Session {
    executor: Chosen,
    device: String,
    activations: Activations,
    is_virtual: bool,
}

/// A model resident on a device.
pub struct OnDevice {
    /// What runs it.
    pub executor: DeviceExecutor,
    /// The device's name.
    pub name: String,
    /// True for the virtual device.
    pub is_virtual: bool,
}

enum Chosen {
    Device(Box<DeviceExecutor>),
    Oracle(Box<Oracle>),
}

/// What the device's own side counted. The CPU has no packets: all zero there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// What ran: `cpu`, or the device's name.
    pub device: String,
    /// Doorbell rings.
    pub doorbells: u64,
    /// PM4 packets executed.
    pub packets: u64,
    /// Dispatches launched.
    pub dispatches: u64,
    /// Submissions.
    pub submissions: u64,
    /// Wave instructions executed, if the device counts them (the virtual one).
    pub wave_instructions: Option<u64>,
}

impl Session {
    /// Opens the device and makes the model resident, with caches of `context` positions. `memory` does not concern the
    /// CPU.
    pub fn open(
        loaded: &LoadedModel,
        choice: DeviceChoice,
        context: u32,
        activations: Activations,
        memory: &MemoryOption,
    ) -> Result<Session, ToolError> {
        if choice == DeviceChoice::Cpu {
            let _progress = Progress::spinner("dequantising weights");
            let oracle = Oracle::new_with(&loaded.model, context, KvFormat::F32, activations)?;
            let executor = Chosen::Oracle(Box::new(oracle));
            return Ok(Session {
                executor,
                device: choice.name().to_owned(),
                activations,
                is_virtual: false,
            });
        }
        let OnDevice { executor, name, is_virtual } =
            open_executor(loaded, choice, context, activations, memory)?;
        Ok(Session { executor: Chosen::Device(Box::new(executor)), device: name, activations, is_virtual })
    }

    /// What runs the model: `cpu`, or the device's name.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Arithmetic of activations.
    pub fn activations(&self) -> Activations {
        self.activations
    }

    /// True if the CPU oracle runs it.
    pub fn is_cpu(&self) -> bool {
        matches!(self.executor, Chosen::Oracle(_))
    }

    /// True if the virtual device runs it.
    pub fn is_virtual(&self) -> bool {
        self.is_virtual
    }

    /// The counts since the device was opened.
    pub fn evidence(&self) -> Result<Evidence, ToolError> {
        let counters = match &self.executor {
            Chosen::Device(executor) => Some(executor.counters()?),
            Chosen::Oracle(_) => None,
        };
        Ok(Evidence::of(&self.device, counters))
    }
}

/// Opens a device (not the CPU) and uploads the model to it.
pub fn open_executor(
    loaded: &LoadedModel,
    choice: DeviceChoice,
    context: u32,
    activations: Activations,
    memory: &MemoryOption,
) -> Result<OnDevice, ToolError> {
    let OpenedDevice { device, name, is_virtual } = open_device(choice)?;
    let progress = Progress::new("uploading weights", loaded.model.weight_bytes(), Unit::Bytes);
    let mut report = |done: u64, total: u64| progress.set_of(done, total);
    let resident = (memory.limit(&device)?, memory.loading(&mut report));
    let executor = DeviceExecutor::within(device, &loaded.model, context, activations, resident)?;
    Ok(OnDevice { executor, name, is_virtual })
}

/// Checks that prompt and answer fit what the model was trained for; returns the context to open.
pub fn context_for(
    loaded: &LoadedModel,
    prompt_tokens: usize,
    answer_tokens: usize,
) -> Result<u32, ToolError> {
    if prompt_tokens == 0 {
        return Err(ToolError::EmptyPrompt);
    }
    let context = loaded.model.config.context;
    let needed = (prompt_tokens as u64).saturating_add(answer_tokens as u64);
    // At most `context`, so it fits 32 bits.
    if needed > u64::from(context) { Err(ToolError::Context { needed, context }) } else { Ok(needed as u32) }
}

impl Evidence {
    /// The counts of a device; without any, all zero.
    pub fn of(device: &str, counters: Option<Counters>) -> Evidence {
        let counters = counters.unwrap_or_default();
        Evidence {
            device: device.to_owned(),
            doorbells: counters.doorbells,
            packets: counters.packets,
            dispatches: counters.dispatches,
            submissions: counters.submissions,
            wave_instructions: counters.wave_instructions,
        }
    }

    /// What was counted between `earlier` and this.
    pub fn since(&self, earlier: &Evidence) -> Evidence {
        let waves = self.wave_instructions.zip(earlier.wave_instructions);
        Evidence {
            device: self.device.clone(),
            doorbells: self.doorbells.saturating_sub(earlier.doorbells),
            packets: self.packets.saturating_sub(earlier.packets),
            dispatches: self.dispatches.saturating_sub(earlier.dispatches),
            submissions: self.submissions.saturating_sub(earlier.submissions),
            wave_instructions: waves.map(|(later, earlier)| later.saturating_sub(earlier)),
        }
    }
}

macro_rules! forward {
    ($self:ident, $executor:ident => $call:expr) => {
        match &mut $self.executor {
            Chosen::Device($executor) => $call,
            Chosen::Oracle($executor) => $call,
        }
    };
}

impl Executor for Session {
    fn plan(&self) -> &ExecutionPlan {
        match &self.executor {
            Chosen::Device(executor) => executor.plan(),
            Chosen::Oracle(executor) => executor.plan(),
        }
    }

    fn begin(&mut self, prompt: &[u32]) -> Result<(), ExecutorError> {
        forward!(self, executor => executor.begin(prompt))
    }

    fn step(&mut self) -> Result<u32, ExecutorError> {
        forward!(self, executor => executor.step())
    }

    fn step_instruction(&mut self, index: usize) -> Result<(), ExecutorError> {
        forward!(self, executor => executor.step_instruction(index))
    }

    fn read_value(&mut self, id: ValueId) -> Result<Vec<f32>, ExecutorError> {
        forward!(self, executor => executor.read_value(id))
    }

    fn read_logits(&mut self, logits: &mut [f32]) -> Result<(), ExecutorError> {
        forward!(self, executor => executor.read_logits(logits))
    }

    fn read_cache_row(&mut self, cache: Cache, layer: u32, position: u32) -> Result<Vec<f32>, ExecutorError> {
        forward!(self, executor => executor.read_cache_row(cache, layer, position))
    }

    fn read_state(&mut self) -> Result<StepSnapshot, ExecutorError> {
        forward!(self, executor => executor.read_state())
    }

    fn read_token(&mut self, position: u32) -> Result<u32, ExecutorError> {
        forward!(self, executor => executor.read_token(position))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zrt_engine::graph::Operation;

    #[test]
    fn counts_between_two_times_are_their_differences() {
        let of = |one: u64, wave_instructions| {
            let counters = Counters {
                doorbells: one,
                packets: 10 * one,
                dispatches: 100 * one,
                submissions: 1000 * one,
                wave_instructions,
            };
            Evidence::of("card", Some(counters))
        };
        assert_eq!(of(7, Some(9)).since(&of(3, Some(4))), of(4, Some(5)));
        assert_eq!(of(7, None).since(&of(3, Some(4))), of(4, None));
        assert_eq!(of(3, Some(4)).since(&of(7, Some(9))), of(0, Some(0)));
        // What has no counters has counted nothing.
        let cpu = Evidence::of("cpu", None);
        assert_eq!((cpu.device.as_str(), cpu.packets, cpu.wave_instructions), ("cpu", 0, None));
    }

    /// Prompt and answer together fill the context exactly, and are one too many after that.
    #[test]
    fn a_context_holds_prompt_and_answer() {
        let loaded = LoadedModel::open(None).unwrap();
        let trained = loaded.model.config.context as usize;
        let of = |prompt, answer| context_for(&loaded, prompt, answer).map_err(|error| error.to_string());
        assert_eq!((of(3, 4), of(trained - 4, 4)), (Ok(7), Ok(trained as u32)));
        let told = format!("{} tokens are needed, but the model's context is {trained}", trained + 1);
        assert_eq!(of(trained - 4, 5), Err(told));
        assert_eq!(of(0, 4), Err("the prompt is empty".to_owned()));
        let endless = of(2, usize::MAX).unwrap_err();
        assert!(endless.starts_with(&format!("{} tokens are needed", u64::MAX)), "{endless}");
    }

    /// What a session answers on the CPU is what the reference implementation answers.
    #[test]
    fn a_session_on_the_cpu_is_the_oracle() {
        let loaded = LoadedModel::open(None).unwrap();
        let memory = MemoryOption::default();
        let mut session = Session::open(&loaded, DeviceChoice::Cpu, 4, Activations::A8, &memory).unwrap();
        let mut oracle = Oracle::new_with(&loaded.model, 4, KvFormat::F32, Activations::A8).unwrap();
        assert_eq!((session.device(), session.activations()), ("cpu", Activations::A8));
        assert!(session.is_cpu() && !session.is_virtual());
        assert_eq!(session.evidence().unwrap(), Evidence::of("cpu", None));
        let both: [&mut dyn FnMut() -> Seen; 2] = [&mut || seen(&mut session), &mut || seen(&mut oracle)];
        let [of_session, of_oracle] = both.map(|run| run());
        assert_eq!(of_session, of_oracle);
        // None of it is what a step that did nothing leaves.
        assert!(of_session.value.iter().any(|number| *number != 0.0), "{of_session:?}");
        assert!(of_session.cache.iter().any(|number| *number != 0.0), "{of_session:?}");
        assert_eq!((of_session.tokens[0], of_session.value.len() > 1), (5, true));
    }

    #[test]
    fn a_session_on_the_virtual_device_says_so() {
        let loaded = LoadedModel::open(None).unwrap();
        let memory = MemoryOption::default();
        let session = Session::open(&loaded, DeviceChoice::Virtual, 4, Activations::F32, &memory).unwrap();
        assert!(session.is_virtual() && !session.is_cpu() && session.device().contains("R9700"));
    }

    /// What an executor shows of a prompt of two tokens.
    #[derive(Debug, PartialEq)]
    struct Seen {
        state: StepSnapshot,
        value: Vec<f32>,
        cache: Vec<f32>,
        tokens: [u32; 3],
    }

    fn seen(executor: &mut dyn Executor) -> Seen {
        executor.begin(&[5, 7]).unwrap();
        executor.step().unwrap();
        // The last token instruction by instruction.
        let count = executor.plan().instructions.len();
        (0..count).for_each(|index| executor.step_instruction(index).unwrap());
        let Operation::Embed { output, .. } = executor.plan().instructions[0].node.operation else {
            panic!()
        };
        Seen {
            state: executor.read_state().unwrap(),
            value: executor.read_value(output).unwrap(),
            cache: executor.read_cache_row(Cache::Key, 1, 0).unwrap(),
            tokens: [0, 1, 2].map(|position| executor.read_token(position).unwrap()),
        }
    }
}
