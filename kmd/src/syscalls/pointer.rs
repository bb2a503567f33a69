//! Bytes of the process that are named by number: what an ioctl's argument is to a driver.
//!
//! Contract: a driver living in this process (the virtual device) reads and writes such bytes only through
//! [`UserPointer::read`] and [`UserPointer::write`], which let the kernel do the copy. A bad address is therefore
//! `EFAULT`, as with the real driver, never a crash. Cost: one system call per copy; set-up only.

use super::{Fd, Syscalls};
use crate::errno::Errno;
use core::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};

/// A pointer handed to a driver by number: the driver reads and writes what the request's structure says, there and
/// at the addresses stored in it.
///
/// The lifetime is that of the argument's bytes, so a driver cannot keep it past the call.
#[derive(Clone, Copy, Debug)]
pub struct UserPointer<'a> {
    address: u64,
    bytes: PhantomData<&'a mut [u8]>,
}

/// A second piece of memory that the argument names by address.
#[derive(Debug)]
pub struct Nested<'a> {
    /// Where in the argument the 64-bit address stands.
    pub field_offset: usize,
    /// What the driver may read and write there.
    pub bytes: &'a mut [u8],
}

/// Set once the cross-process copy calls turn out to be forbidden (a sandbox): the pipe is used from then on.
static COPY_CALLS_FORBIDDEN: AtomicBool = AtomicBool::new(false);

/// Bytes moved through the fallback pipe at a time: what a pipe takes without blocking (`PIPE_BUF`).
const PIPE_CHUNK_BYTES: usize = 4096;

/// Issues an ioctl with `argument` as its structure, after storing the address of each nested piece in it.
///
/// The addresses stay in `argument` afterwards. Panics where a field lies outside the argument (our mistake).
/// A driver also follows addresses that the caller wrote into `argument` by hand; these must be ones that are not
/// mapped (to be refused) or that the caller gives up to the device by their documented meaning.
pub fn ioctl_bytes(
    syscalls: &dyn Syscalls,
    fd: Fd,
    request: u32,
    argument: &mut [u8],
    nested: &mut [Nested<'_>],
) -> Result<i32, Errno> {
    for piece in nested {
        let address = (piece.bytes.as_mut_ptr().expose_provenance() as u64).to_ne_bytes();
        argument[piece.field_offset..piece.field_offset + address.len()].copy_from_slice(&address);
    }
    syscalls.ioctl(fd, request, UserPointer::of(argument))
}

impl<'a> UserPointer<'a> {
    /// The address of `bytes`, for one call.
    pub fn of(bytes: &'a mut [u8]) -> UserPointer<'a> {
        UserPointer { address: bytes.as_mut_ptr().expose_provenance() as u64, bytes: PhantomData }
    }

    /// An address in the first page, which is never mapped: what tests hand a driver to see `EFAULT`.
    pub fn invalid() -> UserPointer<'static> {
        UserPointer { address: 8, bytes: PhantomData }
    }

    /// The address as a number.
    pub fn address(self) -> u64 {
        self.address
    }

    /// An address that the request's structure holds: covered by the same call.
    pub fn nested(self, address: u64) -> UserPointer<'a> {
        UserPointer { address, bytes: PhantomData }
    }

    /// The pointer `bytes` further on; past the end of the address space it stays at the end and is refused there.
    pub fn offset(self, bytes: u64) -> UserPointer<'a> {
        UserPointer { address: self.address.saturating_add(bytes), bytes: PhantomData }
    }

    /// Copies from the process. `EFAULT` where any byte cannot be read; the destination is then unspecified.
    pub fn read(self, destination: &mut [u8]) -> Result<(), Errno> {
        if destination.is_empty() {
            return Ok(());
        }
        if !COPY_CALLS_FORBIDDEN.load(Ordering::Relaxed) {
            match copy_by_call(self.address, destination, Direction::FromProcess) {
                Err(Errno::EPERM | Errno::ENOSYS | Errno::EACCES) => {
                    COPY_CALLS_FORBIDDEN.store(true, Ordering::Relaxed)
                }
                outcome => return outcome,
            }
        }
        copy_by_pipe(self.address, destination, Direction::FromProcess)
    }

    /// Copies to the process. `EFAULT` where any byte cannot be written; some may have been.
    pub fn write(self, source: &[u8]) -> Result<(), Errno> {
        if source.is_empty() {
            return Ok(());
        }
        // Both copy routines take one buffer type; the direction says that it is only read.
        let mut copy = source.to_vec();
        if !COPY_CALLS_FORBIDDEN.load(Ordering::Relaxed) {
            match copy_by_call(self.address, &mut copy, Direction::ToProcess) {
                Err(Errno::EPERM | Errno::ENOSYS | Errno::EACCES) => {
                    COPY_CALLS_FORBIDDEN.store(true, Ordering::Relaxed)
                }
                outcome => return outcome,
            }
        }
        copy_by_pipe(self.address, &mut copy, Direction::ToProcess)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    FromProcess,
    ToProcess,
}

/// One `process_vm_readv` or `process_vm_writev` on this very process.
fn copy_by_call(address: u64, ours: &mut [u8], direction: Direction) -> Result<(), Errno> {
    let local = libc::iovec { iov_base: ours.as_mut_ptr().cast(), iov_len: ours.len() };
    let remote = libc::iovec {
        iov_base: core::ptr::with_exposed_provenance_mut(address as usize),
        iov_len: ours.len(),
    };
    // SAFETY: `local` is one whole live slice that we hold exclusively. `remote` is an address that the caller of
    // the ioctl gave up for the length of the call (its lifetime is in `UserPointer`); the kernel checks it page by
    // page and answers EFAULT for what is not mapped with the needed right, so no bad access happens here.
    let moved = unsafe {
        match direction {
            Direction::FromProcess => libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0),
            Direction::ToProcess => libc::process_vm_writev(libc::getpid(), &local, 1, &remote, 1, 0),
        }
    };
    if moved < 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    // A short copy means that a later page was refused.
    if moved as usize == ours.len() { Ok(()) } else { Err(Errno::EFAULT) }
}

/// The same copy through a pipe: the kernel checks the addresses of `read` and `write` too.
fn copy_by_pipe(address: u64, ours: &mut [u8], direction: Direction) -> Result<(), Errno> {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let mut at = 0;
    while at < ours.len() {
        let len = (ours.len() - at).min(PIPE_CHUNK_BYTES);
        let foreign = address.checked_add(at as u64).ok_or(Errno::EFAULT)? as usize;
        let foreign = core::ptr::with_exposed_provenance_mut::<libc::c_void>(foreign);
        let own = ours[at..at + len].as_mut_ptr().cast::<libc::c_void>();
        let (from, to) = match direction {
            Direction::FromProcess => (foreign, own),
            Direction::ToProcess => (own, foreign),
        };
        let (write_fd, read_fd) = {
            use std::os::fd::AsRawFd;
            (writer.as_raw_fd(), reader.as_raw_fd())
        };
        // SAFETY: both descriptors are open and ours. Of the two addresses one is a live slice of `len` bytes that
        // we hold, the other is as in `copy_by_call`: the kernel checks it and answers EFAULT.
        let (written, read) = unsafe {
            let written = libc::write(write_fd, from, len);
            // Nothing is read unless it is there, so this never blocks.
            let read = if written > 0 { libc::read(read_fd, to, written as usize) } else { written };
            (written, read)
        };
        if written < 0 || read < 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        if written as usize != len || read as usize != len {
            return Err(Errno::EFAULT);
        }
        at += len;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Protection, Reservation, memory::MemoryFile};
    use super::*;

    fn both(check: impl Fn(&dyn Fn(u64, &mut [u8], Direction) -> Result<(), Errno>)) {
        check(&copy_by_call);
        check(&copy_by_pipe);
    }

    #[test]
    fn copies_arrive_whole_by_either_way() {
        both(|copy| {
            for len in [1, 7, 4096, 4097, 70_000] {
                let mut theirs: Vec<u8> = (0..len).map(|byte| byte as u8).collect();
                let expected = theirs.clone();
                let address = UserPointer::of(&mut theirs).address();
                let mut ours = vec![0u8; len];
                copy(address, &mut ours, Direction::FromProcess).unwrap();
                assert_eq!(ours, expected);
                ours.reverse();
                copy(address, &mut ours, Direction::ToProcess).unwrap();
                assert!(theirs.iter().eq(expected.iter().rev()));
            }
        });
    }

    #[test]
    fn bad_addresses_are_errors() {
        let file = MemoryFile::new("bad-address", 4096).unwrap();
        let reservation = Reservation::new(8192, 4096).unwrap();
        let mapping = file.map(0, 4096, Protection::Read, Some((&reservation, 0))).unwrap();
        let start = mapping.view().host_address() as u64;
        both(|copy| {
            let mut bytes = [0u8; 16];
            for address in [0, 8, u64::MAX - 7, 0xffff_8000_0000_0000] {
                assert_eq!(copy(address, &mut bytes, Direction::FromProcess), Err(Errno::EFAULT));
                assert_eq!(copy(address, &mut bytes, Direction::ToProcess), Err(Errno::EFAULT));
            }
            // Readable to its end, not past it; not writable at all.
            assert_eq!(copy(start + 4080, &mut bytes, Direction::FromProcess), Ok(()));
            assert_eq!(copy(start + 4088, &mut bytes, Direction::FromProcess), Err(Errno::EFAULT));
            assert_eq!(copy(start, &mut bytes, Direction::ToProcess), Err(Errno::EFAULT));
        });
    }
}
