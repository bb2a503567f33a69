//! One type per command of `/dev/kfd`.
//!
//! Contract: a command defines its name, its request number (composed by rustix's opcode helpers from direction,
//! number and structure; the tests compare it with what the C compiler makes of the header), how it fills the
//! structure, and what it returns. [`Command::call`] issues it through the byte-level seam. Each call is one system
//! call. Errors carry the command's name, the errno and its meaning for this command (hardware reference §2.6,
//! §2.8).

mod error;
pub mod event;
pub mod memory;
pub mod process;
pub mod queue;

pub use error::CommandError;
pub use event::{
    CreateEvent, CreatedEvent, DestroyEvent, EventId, EventKind, ResetEvent, SetEvent, WaitEvents,
    WaitedEvents,
};
pub use memory::{
    AllocateMemory, AllocatedMemory, AllocationFlags, AvailableMemory, FreeMemory, MapMemory, MemoryHandle,
    UnmapMemory,
};
pub use process::{
    AcquireVm, GetClockCounters, GetProcessApertures, GetVersion, RuntimeDisable, SetTrapHandler,
    SetXnackMode, Version,
};
pub use queue::{CreateQueue, CreatedQueue, DestroyQueue, SetCuMask, UpdateQueue};

use crate::errno::Errno;
use crate::syscalls::{Fd, Nested, Syscalls, ioctl_bytes};
use zerocopy::{FromBytes, IntoBytes};

/// KFD's ioctl group, 'K' (`AMDKFD_IOCTL_BASE`).
const GROUP: u8 = b'K';

/// One request to the driver.
pub trait Command {
    /// The structure in the header.
    type Structure: FromBytes + IntoBytes;
    /// The result of a successful call.
    type Output;
    /// Name in the header, without `AMDKFD_IOC_`.
    const NAME: &'static str;
    /// Direction, structure size, group and number combined.
    const REQUEST: u32;

    /// The structure as passed to the driver.
    fn structure(&self) -> Self::Structure;

    /// Reads the result from the structure that the driver returned.
    fn output(structure: Self::Structure) -> Self::Output;

    /// What an errno means for this command, and what to do.
    fn remedy(errno: Errno) -> &'static str {
        common_remedy(errno)
    }

    /// Issues the request.
    fn call(&self, syscalls: &dyn Syscalls, fd: Fd) -> Result<Self::Output, CommandError> {
        let mut structure = self.structure();
        issue::<Self>(syscalls, fd, &mut structure, &mut [])?;
        Ok(Self::output(structure))
    }
}

fn issue<C: Command + ?Sized>(
    syscalls: &dyn Syscalls,
    fd: Fd,
    structure: &mut C::Structure,
    nested: &mut [Nested<'_>],
) -> Result<(), CommandError> {
    match ioctl_bytes(syscalls, fd, C::REQUEST, structure.as_mut_bytes(), nested) {
        Ok(_) => Ok(()),
        Err(errno) => Err(CommandError { ioctl: C::NAME, errno, remedy: C::remedy(errno) }),
    }
}

/// What an errno means if the command has no remedy of its own.
fn common_remedy(errno: Errno) -> &'static str {
    match errno {
        Errno::ENOTTY => "this kernel's KFD does not know the request; use a newer kernel",
        Errno::EBADF => "the file belongs to another process (after a fork, open the device again)",
        Errno::EFAULT => "the driver could not read or write the structure; this is a bug of zrt",
        Errno::ENOMEM => "out of memory; free some or ask for less",
        Errno::EPERM | Errno::EACCES => "not permitted; check the render group and the device cgroup",
        Errno::ENODEV => "the VM is not acquired or the device is gone; open it again",
        Errno::EIO => {
            "the GPU was reset or does not answer, and the driver no longer serves this process: end it and start a new \
             one (see the kernel log)"
        }
        Errno::EINVAL => "the driver refused an argument; this is a bug of zrt",
        _ => "see the kernel log",
    }
}

/// `opcode` as the 32 bits that the kernel takes (rustix uses a wider type on some C libraries).
#[allow(clippy::unnecessary_cast)]
const fn request(opcode: rustix::ioctl::Opcode) -> u32 {
    opcode as u32
}

#[cfg(test)]
mod tests;
