//! How the virtual board behaves: what a user or a test may choose.
//!
//! Contract: plain values, read once when the board is made; the defaults are those of the captured R9700 on a host
//! with a large BAR, under the newest kernel.

mod release;

pub use release::{KERNEL_VARIABLE, KernelRelease, SaveAreaCheck, UnknownRelease};

/// Order in which waves run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// Worker threads on the host's cores; the order depends on the host.
    Parallel {
        /// Threads besides the command processor's, which helps. `None`: the host's cores minus one, at least one.
        worker_count: Option<usize>,
    },
    /// No thread of its own: waves run when the command processor helps, interleaved as [`Config::seed`] says.
    Deterministic,
}

/// What is looked at while waves run. Anything on makes the device deterministic and single-threaded, whatever
/// [`Config::scheduler`] says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// The checking mode: see [`check`](crate::check).
    pub check: bool,
    /// For code of compilers: the scalar hazard is judged as leniently as any compiler that knows it does, and code
    /// without a single `s_wait_alu` is told once, as that.
    pub trusts_compilers: bool,
    /// Counts instructions, bytes and LDS conflicts.
    pub profile: bool,
    /// A debugger may be attached.
    pub debug: bool,
}

/// What VRAM holds that nobody has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VramFill {
    /// This dword, over and over, whatever the kernel does: a client that needs zeros is found out.
    Pattern(u32),
    /// Zeros where the kernel that is played clears memory ([`KernelRelease::clears_vram`]), else the default pattern.
    AsKernel,
}

/// The choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// All VRAM is visible to the CPU (`heap_type` 1); otherwise it is not (hardware reference §1.3).
    pub large_bar: bool,
    /// Order in which waves run.
    pub scheduler: Scheduler,
    /// What undefined registers hold, and the order of waves under [`Scheduler::Deterministic`].
    pub seed: u64,
    /// Compute units that groups reside on (hardware reference §1.4: 64). At least 1.
    pub compute_units: u32,
    /// Error of the approximate operations in units of the last place: -1, 0 or 1.
    pub approximation_bias: i32,
    /// MODE.SCALAR_PREFETCH_EN when a wave begins. No source says what the card has there; clear is the stricter
    /// assumption: a prefetch that nobody has armed does nothing, and the checking mode says so.
    pub scalar_prefetch_at_launch: bool,
    /// How long an idle worker spins before it sleeps, in microseconds. A dispatch that arrives meanwhile starts
    /// without a system call; a dependent one follows within a few microseconds in a recorded decode step.
    pub worker_spin_us: u64,
    /// What VRAM holds wherever nothing was written since it was allocated; `None`: what
    /// [`FILL_VARIABLE`](crate::kernel::fill::FILL_VARIABLE) says, else
    /// [`FILL_DEFAULT`](crate::kernel::fill::FILL_DEFAULT).
    pub vram_fill: Option<VramFill>,
    /// What is looked at while waves run.
    pub inspection: Inspection,
    /// Whose rules the virtual driver plays; `None`: see [`Config::effective_kernel`].
    pub kernel: Option<KernelRelease>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            large_bar: true,
            scheduler: Scheduler::Parallel { worker_count: None },
            seed: 0x7A72_7400,
            compute_units: 64,
            approximation_bias: 0,
            scalar_prefetch_at_launch: false,
            worker_spin_us: 100,
            vram_fill: None,
            inspection: Inspection::default(),
            kernel: None,
        }
    }
}

impl Inspection {
    /// Whether anything is looked at.
    pub fn is_on(self) -> bool {
        self.check || self.profile || self.debug
    }
}

impl Config {
    /// The order in which waves really run.
    pub fn effective_scheduler(&self) -> Scheduler {
        if self.inspection.is_on() { Scheduler::Deterministic } else { self.scheduler }
    }

    /// Whose rules the driver plays: as chosen, else as [`KERNEL_VARIABLE`] says, else the newest.
    pub fn effective_kernel(&self) -> Result<KernelRelease, UnknownRelease> {
        Ok(self.chosen_kernel()?.unwrap_or_default())
    }

    /// Allocation flags each of which makes system memory uncached for the checking mode. Where nobody has chosen a
    /// kernel, none does: a program that is clean then is clean under all of them.
    pub fn uncached_system_flags(&self) -> Result<u32, UnknownRelease> {
        Ok(self.chosen_kernel()?.map_or(0, KernelRelease::uncached_system_flags))
    }

    fn chosen_kernel(&self) -> Result<Option<KernelRelease>, UnknownRelease> {
        self.kernel.map_or_else(KernelRelease::from_environment, |kernel| Ok(Some(kernel)))
    }
}

impl Scheduler {
    /// Threads to start.
    pub fn worker_count(self) -> usize {
        match self {
            Scheduler::Deterministic => 0,
            Scheduler::Parallel { worker_count: Some(count) } => count,
            Scheduler::Parallel { worker_count: None } => {
                std::thread::available_parallelism().map_or(1, |cores| cores.get().saturating_sub(1).max(1))
            }
        }
    }
}
