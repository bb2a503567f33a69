//! Why the driver no longer serves a process.
//!
//! Contract: a plain value. Its text says what happened and what to do.

use core::fmt;

/// Why the driver no longer serves a process. The process cannot recover: it has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessLoss {
    /// A faulting access by the GPU. The driver evicts every queue of the process, and those made later, until it
    /// ends (Linux `kfd_evict_process_device`, and `is_evicted` in `create_queue_cpsch`).
    PageFault,
    /// The whole GPU was reset: memory and queues are gone.
    Reset,
}

impl fmt::Display for ProcessLoss {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            ProcessLoss::PageFault => {
                "after a page fault the driver runs no further queue of this process: end it and start a new one"
            }
            ProcessLoss::Reset => {
                "the GPU was reset, its memory is lost, and the driver no longer serves this process: end it and start a \
                 new one"
            }
        })
    }
}
