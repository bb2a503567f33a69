//! The settings of the virtual board that a user or a test may choose.
//!
//! Contract: plain values, read once when the board is made; the defaults are those of the captured R9700 on a host
//! with a large BAR, under the newest kernel.

mod release;

pub use release::{KERNEL_VARIABLE, KernelRelease, SaveAreaCheck, UnknownRelease};

/// The order in which waves run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// Worker threads on the host's cores; the order depends on the host.
    Parallel {
        /// Threads besides the command processor's, which helps. `None`: the host's cores minus one, at least one.
        worker_count: Option<usize>,
    },
    /// No threads of its own: waves run when the command processor helps, interleaved according to
    /// [`Config::seed`].
    Deterministic,
}

/// The inspections enabled while waves run. Any of them makes the device deterministic and single-threaded,
/// whatever [`Config::scheduler`] says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// The checking mode: see [`check`](crate::check).
    pub check: bool,
    /// For compiled code: the scalar hazard is checked as leniently as the most lenient compiler that handles it,
    /// and code without a single `s_wait_alu` is reported once, as such.
    pub trusts_compilers: bool,
    /// Counts instructions, bytes and LDS conflicts.
    pub profile: bool,
    /// Allows a debugger to be attached.
    pub debug: bool,
}

/// The initial contents of VRAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VramFill {
    /// This dword, repeated, whatever the kernel does: exposes a client that relies on zeros.
    Pattern(u32),
    /// Zeros if the emulated kernel clears memory ([`KernelRelease::clears_vram`]), else the default pattern.
    AsKernel,
}

/// The settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// All VRAM is visible to the CPU (`heap_type` 1); otherwise it is not (hardware reference §1.3).
    pub large_bar: bool,
    /// VRAM in bytes; `None`: the captured board's.
    pub vram_bytes: Option<u64>,
    /// System memory that the GPU may map, in bytes; `None`: 16 GiB.
    pub gtt_bytes: Option<u64>,
    /// The order in which waves run.
    pub scheduler: Scheduler,
    /// Seed for the contents of undefined registers, and for the order of waves under [`Scheduler::Deterministic`].
    pub seed: u64,
    /// Compute units that groups can reside on (hardware reference §1.4: 64). At least 1.
    pub compute_units: u32,
    /// Error of the approximate operations in units of the last place: -1, 0 or 1.
    pub approximation_bias: i32,
    /// MODE.SCALAR_PREFETCH_EN when a wave begins. No source gives the card's value. Clear is the stricter
    /// assumption: a prefetch that was not enabled has no effect, and the checking mode reports that.
    pub scalar_prefetch_at_launch: bool,
    /// How long an idle worker spins before it sleeps, in microseconds. A dispatch that arrives in that time starts
    /// without a system call; in a recorded decode step a dependent one follows within a few microseconds.
    pub worker_spin_us: u64,
    /// The initial contents of VRAM after allocation. `None`: the value of
    /// [`FILL_VARIABLE`](crate::kernel::fill::FILL_VARIABLE), else
    /// [`FILL_DEFAULT`](crate::kernel::fill::FILL_DEFAULT).
    pub vram_fill: Option<VramFill>,
    /// The inspections enabled while waves run.
    pub inspection: Inspection,
    /// The kernel release that the virtual driver emulates; `None`: see [`Config::effective_kernel`].
    pub kernel: Option<KernelRelease>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            large_bar: true,
            vram_bytes: None,
            gtt_bytes: None,
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
    /// Whether any inspection is enabled.
    pub fn is_on(self) -> bool {
        self.check || self.profile || self.debug
    }
}

impl Config {
    /// The order in which waves actually run.
    pub fn effective_scheduler(&self) -> Scheduler {
        if self.inspection.is_on() { Scheduler::Deterministic } else { self.scheduler }
    }

    /// The emulated kernel release: as configured, else as in [`KERNEL_VARIABLE`], else the newest.
    pub fn effective_kernel(&self) -> Result<KernelRelease, UnknownRelease> {
        Ok(self.chosen_kernel()?.unwrap_or_default())
    }

    /// Allocation flags, each of which makes system memory uncached for the checking mode. If no kernel was chosen,
    /// there are none: a program that is clean then is clean under all of them.
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
                workers_beside(std::thread::available_parallelism().map_or(1, usize::from))
            }
        }
    }
}

/// Threads on so many cores: one is left to the command processor, and one there is at least.
fn workers_beside(cores: usize) -> usize {
    cores.saturating_sub(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_inspection_makes_the_device_deterministic() {
        let off = Inspection::default();
        let parallel = Scheduler::Parallel { worker_count: Some(3) };
        for (inspection, is_on) in [
            (off, false),
            (Inspection { trusts_compilers: true, ..off }, false),
            (Inspection { check: true, ..off }, true),
            (Inspection { profile: true, ..off }, true),
            (Inspection { debug: true, ..off }, true),
        ] {
            let config = Config { inspection, scheduler: parallel, ..Config::default() };
            let expected = if is_on { Scheduler::Deterministic } else { parallel };
            assert_eq!((inspection.is_on(), config.effective_scheduler()), (is_on, expected));
        }
    }

    #[test]
    fn workers_are_as_many_as_asked_for_or_one_for_each_other_core() {
        let parallel = |worker_count| Scheduler::Parallel { worker_count }.worker_count();
        assert_eq!([Some(0), Some(1), Some(7)].map(parallel), [0, 1, 7]);
        assert_eq!(Scheduler::Deterministic.worker_count(), 0);
        assert_eq!([1, 2, 3, 16].map(workers_beside), [1, 1, 2, 15]);
        assert!(parallel(None) >= 1);
    }

    #[test]
    fn the_rules_are_those_of_the_kernel_that_was_chosen() {
        let under = |kernel| Config { kernel: Some(kernel), ..Config::default() };
        for kernel in KernelRelease::ALL {
            assert_eq!(under(kernel).effective_kernel(), Ok(kernel));
        }
        // UNCACHED, bit 25, since the behaviour was restored; before that nothing made system memory uncached.
        let flags = KernelRelease::ALL.map(|kernel| under(kernel).uncached_system_flags());
        assert_eq!(flags, [Ok(0), Ok(0), Ok(1 << 25), Ok(1 << 25)]);
    }
}
