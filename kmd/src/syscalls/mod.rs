//! The seam below the kernel driver interface: raw bytes by ioctl number, mappings, and file reads.
//!
//! Contract: no typed shortcut past [`Syscalls`]. Implementations: [`LinuxSyscalls`] (rustix) and the virtual
//! device, which parses the bytes by request number as the kernel does. A driver can access the memory that a
//! request lends it and nothing else: [`mod@pointer`] ensures that for the virtual driver, and `requests` for the
//! real one, because it lets nothing else out. All `unsafe` of this crate is in the files of this module:
//! [`memory`] (mappings), [`process_memory`] (second mappings of the process's own memory), [`private_memory`] (its
//! private pages, lent), [`lending`] (what may be lent), [`mod@file`] (model files, read-only), [`linux`] (the real
//! system calls).
#![allow(unsafe_code)]

pub mod file;
pub mod lending;
pub mod linux;
pub mod memory;
pub mod pointer;
pub mod private_memory;
pub mod process_memory;
mod requests;

pub use file::MappedFile;
pub use linux::LinuxSyscalls;
pub use memory::{GUARD_BYTES, Mapping, MemoryFile, PAGE_BYTES, Protection, Reservation};
pub use pointer::{Nested, UserPointer, ioctl_bytes};
pub use private_memory::{LendError, Loan};
pub use process_memory::{ProcessMap, SharedRange};
#[cfg(test)]
pub(crate) use requests::passes_on;

use crate::errno::Errno;

/// An open file of some [`Syscalls`] implementation. Only that implementation can interpret it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fd(pub i32);

/// Most bytes that [`Syscalls::read_file`] returns.
pub const FILE_BYTES_MAX: usize = 1 << 20;
/// Most names that [`Syscalls::read_directory`] returns.
pub const DIRECTORY_NAMES_MAX: usize = 1 << 16;

/// The interface that every kernel access goes through.
///
/// All methods may block and may enter the kernel; none is called on the path of a token.
pub trait Syscalls: Send + Sync {
    /// Opens `path` read-write, close-on-exec (`/dev/kfd`, `/dev/dri/renderD128`).
    fn open(&self, path: &str) -> Result<Fd, Errno>;

    /// Closes a file opened here.
    fn close(&self, fd: Fd) -> Result<(), Errno>;

    /// `ioctl(fd, request, argument)`. Returns the system call's non-negative result. The memory that `argument`
    /// refers to is lent for this call.
    fn ioctl(&self, fd: Fd, request: u32, argument: UserPointer<'_>) -> Result<i32, Errno>;

    /// Reserves `len` bytes of inaccessible address space, aligned to `alignment` (a power of two ≥ 4096), followed
    /// by a guard of [`GUARD_BYTES`].
    fn reserve(&self, len: usize, alignment: usize) -> Result<Reservation, Errno>;

    /// Maps `len` bytes of `fd` at `offset`, shared: at byte `place.1` of the reservation `place.0` if given, else at
    /// an address of the system's choice. `EINVAL` for pages past the end of a regular file.
    ///
    /// A placed mapping lies inside its reservation and keeps it alive; dropping it turns the range back into
    /// reserved address space. Ranges of one reservation may not overlap (`EEXIST`).
    fn map(
        &self,
        fd: Fd,
        offset: u64,
        len: usize,
        protection: Protection,
        place: Option<(&Reservation, usize)>,
    ) -> Result<Mapping, Errno>;

    /// Reads the whole of a small text file (sysfs). At most [`FILE_BYTES_MAX`]; a longer one is `EFBIG`.
    fn read_file(&self, path: &str) -> Result<Vec<u8>, Errno>;

    /// Names in a directory, unsorted, without `.` and `..`. At most [`DIRECTORY_NAMES_MAX`]; more is `EFBIG`.
    fn read_directory(&self, path: &str) -> Result<Vec<String>, Errno>;
}
