//! GPU memory as shaders, packets and the driver reach it.
//!
//! Contract: the lowest room of the crate: it knows who maps, reads and writes by what it is given, and nothing of waves,
//! packets or findings. A `Watcher` is told of every access by way of a port it is put on, and says what loads return;
//! who that is, memory does not know.
//!
//! | part | subject |
//! |---|---|
//! | `page_table` | which host memory stands behind an address, with which rights |
//! | `fill` | what it holds before anything is written |
//! | `port` | one worker's way to it, and the ranges used last |
//! | `watched` | the same for who is watched |
//! | `host_memory` | what lies behind the caches, for a watcher that keeps some |

mod fill;
mod host_memory;
mod page_table;
mod port;
mod watched;

pub(crate) use fill::Fill;
pub(crate) use host_memory::Mapped;
pub use host_memory::{HostMemory, LINE_DWORDS};
pub(crate) use page_table::Backing;
pub use page_table::{
    AddressSpace, Cause, Defects, Fault, GPU_PAGE_BYTES, MapError, MemoryType, PageTable, RANGES_MAX, Rights,
};
pub use port::MemoryPort;
pub(crate) use watched::Watcher;
