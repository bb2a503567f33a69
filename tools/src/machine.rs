//! What is recorded about this machine.
//!
//! Contract: reads files and the scheduler's mask; never fails.

use crate::doctor;
use zrt_kmd::LinuxSyscalls;

/// The processor's name.
pub fn processor_name() -> String {
    doctor::processor_name(&LinuxSyscalls::new())
}

/// Threads that this process may use.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
