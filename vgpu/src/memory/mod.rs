//! GPU memory as shaders, packets and the driver access it.
//!
//! Contract: the lowest layer of the crate. It knows its users only through their arguments, and nothing of waves,
//! packets or findings. A `Watcher` on a port is told of every access and decides what loads return; memory does
//! not know who the watcher is.
//!
//! | part | subject |
//! |---|---|
//! | `page_table` | the host memory behind an address, and its access rights |
//! | `fill` | its initial contents |
//! | `watcher` | who performs the accesses of a watched worker |
//! | `port` | one worker's access to it, and the ranges used last |
//! | `watched` | the same for watched workers |
//! | `host_memory` | the memory behind the caches, for a watcher that models caches |

mod fill;
mod host_memory;
mod page_table;
mod port;
mod watched;
mod watcher;

pub(crate) use fill::Fill;
pub(crate) use host_memory::Mapped;
pub use host_memory::{HostMemory, LINE_DWORDS};
pub(crate) use page_table::Backing;
pub use page_table::{
    AddressSpace, Cause, Defects, Fault, GPU_PAGE_BYTES, MapError, MemoryType, PageTable, RANGES_MAX, Rights,
};
pub use port::MemoryPort;
pub(crate) use watcher::Watcher;
