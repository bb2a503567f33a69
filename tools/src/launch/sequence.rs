//! What a device is asked to do: launches over shared buffers, and what the host does between them.
//!
//! Contract: plain data, checked by [`Sequence::check`] without a device; `execute` executes it. A launch of
//! one kernel is a sequence of one launch. Launches that follow each other are one graph and one submission: each waits
//! for those before it and sees what they wrote, as in a recorded graph, unless [`Dispatch::waits`] is off. Whatever
//! the host does waits for all launches before it.

use super::error::LaunchError;
use super::placement::Placement;
use super::wait::Pauses;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use zrt_loader::{ArgumentValue, Geometry, Kernel, Program};
use zrt_mem::GpuVa;
use zrt_script::BUFFER_BYTES_MAX;

/// Maximum number of launches of a sequence: those of one graph, and each of them keeps its arguments and packets until
/// the end.
pub const LAUNCHES_MAX: usize = 4096;

/// What is to be done, in order.
#[derive(Clone, Debug)]
pub struct Sequence<'a> {
    /// Programs with the kernels that are launched.
    pub programs: Vec<Cow<'a, Program>>,
    /// Buffers, all of which exist from the beginning.
    pub buffers: Vec<SharedBuffer<'a>>,
    /// The actions.
    pub actions: Vec<Action>,
    /// How long all launches together may run.
    pub deadline: Duration,
    /// Times that do not count, because a debugger holds the waves.
    pub pauses: Option<&'a Pauses>,
    /// Receives the addresses of the buffers before the first kernel runs.
    pub placement: Option<&'a Placement>,
}

/// A buffer that kernels share.
#[derive(Clone, Debug)]
pub struct SharedBuffer<'a> {
    /// Its name in reports.
    pub label: String,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Its number, for look-ups by number: that of its argument.
    pub number: usize,
    /// Its initial contents.
    pub content: Content<'a>,
    /// A store to it is a finding.
    pub is_read_only: bool,
}

/// The initial contents of a buffer.
#[derive(Clone, Debug)]
pub enum Content<'a> {
    /// These bytes.
    Bytes(Cow<'a, [u8]>),
    /// This many zero bytes.
    Zeros(u64),
}

/// One action.
#[derive(Clone, Debug)]
pub enum Action {
    /// A kernel is launched.
    Dispatch(Dispatch),
    /// The host writes into a buffer.
    Write {
        /// The buffer.
        buffer: usize,
        /// Offset in the buffer, in bytes.
        offset: u64,
        /// The bytes.
        bytes: Arc<Vec<u8>>,
    },
    /// The host copies from one buffer into another.
    Copy {
        /// Buffer and bytes from its beginning.
        from: (usize, u64),
        /// The same of the destination.
        to: (usize, u64),
        /// How many bytes.
        bytes: u64,
    },
    /// The host reads a whole buffer, and the caller of the sequence gets it.
    Read {
        /// The buffer.
        buffer: usize,
    },
}

/// A launch of a kernel.
#[derive(Clone, Debug)]
pub struct Dispatch {
    /// Its name in reports, such as `kernel add`.
    pub label: String,
    /// Index of the program.
    pub program: usize,
    /// Index of the kernel in it.
    pub kernel: usize,
    /// Shape of the launch.
    pub geometry: Geometry,
    /// Arguments in the kernel's order.
    pub arguments: Vec<Given>,
    /// It begins after the launches before it have ended, and sees what they wrote.
    pub waits: bool,
}

/// One argument of a launch.
#[derive(Clone, Debug)]
pub enum Given {
    /// The address of a byte in a buffer.
    Buffer {
        /// The buffer.
        buffer: usize,
        /// The byte.
        offset: u64,
    },
    /// A value.
    Value(ArgumentValue),
}

impl Content<'_> {
    /// Length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Content::Bytes(bytes) => bytes.len() as u64,
            Content::Zeros(bytes) => *bytes,
        }
    }

    /// True if it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Dispatch {
    /// The arguments as the kernel's segment holds them.
    pub(super) fn values(&self, va_of: impl Fn(usize) -> GpuVa) -> Vec<ArgumentValue> {
        let value = |given: &Given| match given {
            Given::Buffer { buffer, offset } => {
                ArgumentValue::Buffer(GpuVa(va_of(*buffer).0.wrapping_add(*offset)))
            }
            Given::Value(value) => value.clone(),
        };
        self.arguments.iter().map(value).collect()
    }
}

impl Sequence<'_> {
    /// The kernel of a launch; `None` if indices are wrong.
    pub fn kernel(&self, dispatch: &Dispatch) -> Option<&Kernel> {
        self.programs.get(dispatch.program)?.kernels().get(dispatch.kernel)
    }

    /// Its launches, in order.
    pub(super) fn dispatches(&self) -> impl Iterator<Item = &Dispatch> {
        self.actions.iter().filter_map(|action| match action {
            Action::Dispatch(dispatch) => Some(dispatch),
            _ => None,
        })
    }

    /// Checks it without a device.
    ///
    /// # Errors
    /// Lengths of buffers, ranges outside of them, arguments and shapes that do not fit their kernels, too many
    /// launches.
    pub fn check(&self) -> Result<(), LaunchError> {
        for buffer in &self.buffers {
            let bytes = buffer.content.len();
            if bytes == 0 || bytes > BUFFER_BYTES_MAX {
                return Err(LaunchError::BufferLength { buffer: buffer.label.clone(), bytes });
            }
        }
        let launches = self.dispatches().count();
        if launches > LAUNCHES_MAX {
            return Err(LaunchError::Launches { launches, limit: LAUNCHES_MAX });
        }
        self.actions.iter().try_for_each(|action| self.check_action(action))
    }

    /// Checks one action, in the sequence or not yet.
    pub fn check_action(&self, action: &Action) -> Result<(), LaunchError> {
        match action {
            Action::Dispatch(dispatch) => self.check_dispatch(dispatch),
            Action::Write { buffer, offset, bytes } => self.check_range(*buffer, *offset, bytes.len() as u64),
            Action::Copy { from, to, bytes } => {
                self.check_range(from.0, from.1, *bytes)?;
                self.check_range(to.0, to.1, *bytes)
            }
            Action::Read { buffer } => self.check_range(*buffer, 0, 0),
        }
    }

    fn check_dispatch(&self, dispatch: &Dispatch) -> Result<(), LaunchError> {
        let kernel = self.kernel(dispatch).ok_or_else(|| LaunchError::Kernel {
            asked: format!("{} has no kernel", dispatch.label),
            names: String::new(),
        })?;
        for given in &dispatch.arguments {
            if let Given::Buffer { buffer, offset } = given {
                self.check_range(*buffer, *offset, 1)?;
            }
        }
        kernel.pack(&dispatch.values(|_| GpuVa(0)), dispatch.geometry)?;
        kernel.resource_words(kernel.dynamic_lds_bytes(&dispatch.geometry.dynamic_lds)?)?;
        if !dispatch.waits && scratch_bytes(kernel) > 0 {
            return Err(LaunchError::SharedScratch { kernel: kernel.name.clone() });
        }
        Ok(())
    }

    fn check_range(&self, buffer: usize, offset: u64, bytes: u64) -> Result<(), LaunchError> {
        let range =
            |label: &str, length| LaunchError::Range { buffer: label.to_owned(), length, offset, bytes };
        let shared = self.buffers.get(buffer).ok_or_else(|| range("that is not there", 0))?;
        let length = shared.content.len();
        match offset.checked_add(bytes) {
            Some(end) if end <= length => Ok(()),
            _ => Err(range(&shared.label, length)),
        }
    }
}

/// Scratch of a lane: what the kernel states, and room for calls whose need the compiler could not know.
pub(super) fn scratch_bytes(kernel: &Kernel) -> u32 {
    /// What compilers assume of such calls (LLVM's `amdgpu-assume-dynamic-stack-object-size` and
    /// `amdgpu-assume-external-call-stack-size`).
    const DYNAMIC_STACK_BYTES: u32 = 16 << 10;
    match kernel.dynamic_stack {
        true => kernel.scratch_bytes.saturating_add(DYNAMIC_STACK_BYTES),
        false => kernel.scratch_bytes,
    }
}
