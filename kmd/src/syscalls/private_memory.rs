//! Private memory of the process (`malloc`, `mmap` with MAP_PRIVATE), lent to a device. For the duration of a
//! [`Loan`], its pages are shared ones with the same bytes at the same addresses.
//!
//! Contract: only memory that its owner has offered is lent ([`lending`](super::lending)). No write is lost,
//! whoever writes meanwhile. A userfaultfd in write-protect mode holds writers back while the bytes are copied;
//! then a mapping of the copy is moved over the range, and the writers continue there. A reader sees the old page
//! or the new one, which are equal. Access rights and MADV_DONTFORK are preserved. At the end of the loan, pages
//! that no other loan covers become private again in the same way. Differences in between:
//! - a process that forks shares the pages with its child, unless MADV_DONTFORK is set;
//! - MADV_DONTNEED keeps the bytes, and mlock and MADV_HUGEPAGE are lost;
//! - memory that the process moves elsewhere (mremap) stays shared;
//! - memory that the process unmaps or maps there *during* [`Loan::new`] or its end may be replaced once more;
//! - a concurrent transfer into the pages that bypasses the CPU (O_DIRECT) is lost.
//!
//! The thread that copies must not write to the pages itself, because nothing would wake it again. So it is a
//! separate thread, with a stack and thread-local data that cannot be lent. While writers are held back, it touches
//! only these and the copy, allocates nothing and takes no signal. Cost: a thread and a copy of the populated
//! pages, at either end of a loan. Needs Linux 5.14 (5.19 for the way back); a sandbox may forbid it. Set-up of the
//! virtual device only.

use super::lending::{Lending, lending, uncovered};
use super::memory::{Mapping, MemoryFile, PAGE_BYTES};
use super::process_memory::{Line, ProcessMap, SharedRange, end_of_pages};
use crate::errno::Errno;
use core::ffi::c_void;
use rustix::ioctl::{Updater, opcode};
use rustix::mm::{Advice, MprotectFlags, UserfaultfdFlags};
use rustix::process::Resource;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use thiserror::Error;

/// Name of the file that holds lent pages, as passed to `memfd_create` and as shown in `/proc/self/maps`.
const FILE_NAME: &str = "zrt-lent";
const FILE_NAME_IN_MAP: &str = "/memfd:zrt-lent (deleted)";
/// Length of that file, if the process may make files of that length. It is sparse. If the process extends a
/// mapping, the new part reads as zeros, as for private memory, instead of hitting the end of the file.
const FILE_BYTES: u64 = 1 << 46;
/// Most bytes read of `/proc/self/smaps`: some 65,530 mappings (`vm.max_map_count`) of 1 KiB each.
const SMAPS_BYTES_MAX: u64 = 64 << 20;
/// Attempts at an exchange while the process keeps changing its memory map.
const ATTEMPTS_MAX: usize = 4;
/// Bytes copied at a time.
const CHUNK_BYTES: usize = 4 * PAGE_BYTES;
/// Stack of the thread that copies: the chunk, and the frames of some system calls without optimisation.
const COPIER_STACK_BYTES: usize = 256 << 10;
const _: () = assert!(COPIER_STACK_BYTES >= 8 * CHUNK_BYTES, "the chunk is on the stack");

/// Why memory of the process cannot be lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LendError {
    /// The kernel's driver would refuse it too: `EFAULT` if nothing is mapped, `EPERM` if it is not writable,
    /// `EINVAL` if it is not whole pages.
    #[error("the process cannot lend it: {0}")]
    Refused(Errno),
    /// A private mapping of a file.
    #[error("a private mapping of a file at {address:#x}")]
    PrivateFile {
        /// Start of the mapping, or of the range.
        address: u64,
    },
    /// A stack that grows automatically: the main thread's.
    #[error("a stack at {address:#x}")]
    Stack {
        /// Start of the mapping, or of the range.
        address: u64,
    },
    /// MADV_WIPEONFORK is set, which shared pages cannot have.
    #[error("memory that a fork wipes at {address:#x}")]
    WipedOnFork {
        /// Start of the mapping, or of the range.
        address: u64,
    },
    /// The system does not allow holding back writers, or has no memory.
    #[error("writers cannot be held back: {step} failed with {errno}")]
    Unavailable {
        /// The system call.
        step: &'static str,
        /// Its error.
        errno: Errno,
    },
    /// Its owner has not offered it, so a reference to it may exist.
    #[error(
        "memory at {address:#x} that its owner has not offered to lend: a mapping of this crate, or `offer`"
    )]
    NotOffered {
        /// Start of the range.
        address: u64,
    },
    /// The process kept changing its memory map.
    #[error("the process goes on changing what is mapped there")]
    Restless,
}

/// Lent memory; dropping it ends the loan. Loans may overlap, in whole or in part.
#[derive(Debug)]
pub struct Loan {
    address: u64,
    len: usize,
}

/// Pages of one mapping to be exchanged.
#[derive(Clone, Copy, Debug)]
struct Part {
    address: u64,
    len: usize,
    is_executable: bool,
    /// True if MADV_DONTFORK is set.
    stays_out_of_forks: bool,
}

/// The kind of the new pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Shared,
    Private,
}

impl Loan {
    /// Lends `len` bytes at `address`, whole pages. Shared mappings stay unchanged.
    pub fn new(address: u64, len: usize) -> Result<Loan, LendError> {
        // Held while pages are exchanged, so that two threads never exchange the same ones.
        let mut lending = lending();
        if let Err(error) = share(address, len, &lending) {
            // If there are several mappings, some may have been exchanged already.
            let _ = give_back(address, len, &lending.loans);
            return Err(error);
        }
        lending.loans.push((address, len));
        Ok(Loan { address, len })
    }

    /// First byte.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Length in bytes, whole pages.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Always false: a loan has at least one page.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The pages as currently mapped. Private memory that the process has mapped there since is lent as well.
    pub fn pages(&self) -> Result<SharedRange, LendError> {
        share(self.address, self.len, &lending())
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        let loans = &mut lending().loans;
        if let Some(at) = loans.iter().position(|loan| *loan == (self.address, self.len)) {
            loans.swap_remove(at);
        }
        // If this fails, the pages stay shared, which makes a difference only to forks and MADV_DONTNEED.
        let _ = give_back(self.address, self.len, loans);
    }
}

/// Makes the private parts of a range shared. Returns what is mapped there then.
fn share(address: u64, len: usize, lending: &Lending) -> Result<SharedRange, LendError> {
    let offered = || match lending.allows(address, len) {
        true => Ok(()),
        false => Err(LendError::NotOffered { address }),
    };
    for _ in 0..ATTEMPTS_MAX {
        let map = ProcessMap::read().map_err(unavailable("reading maps"))?;
        match map.shared_range(address, len) {
            Ok(range) => return offered().map(|()| range),
            Err(Errno::ENOTSUPP) => {}
            Err(errno) => return Err(LendError::Refused(errno)),
        }
        let parts = find_parts(address, len, check_private)?;
        offered()?;
        for part in parts {
            exchange(part, Kind::Shared, Userfaultfd::open()?)?;
        }
    }
    Err(LendError::Restless)
}

/// Makes the lent parts of a range private again, except those in any of `others`.
fn give_back(address: u64, len: usize, others: &[(u64, usize)]) -> Result<(), LendError> {
    let is_ours = |line: &Line<'_>, _: &str| Ok(line.is_shared() && line.name == FILE_NAME_IN_MAP);
    for part in find_parts(address, len, is_ours)? {
        for (start, end) in uncovered(part.address, part.address + part.len as u64, others) {
            let part = Part { address: start, len: (end - start) as usize, ..part };
            exchange(part, Kind::Private, Userfaultfd::open()?)?;
        }
    }
    Ok(())
}

/// True if a mapping is private memory that can be shared; an error if it is private and cannot. `flags` are the
/// `VmFlags` of `/proc/self/smaps` (proc_pid_smaps(5)).
fn check_private(line: &Line<'_>, flags: &str) -> Result<bool, LendError> {
    let (address, has) = (line.start, |name: &str| flags.split_ascii_whitespace().any(|flag| flag == name));
    if line.is_shared() {
        Ok(false)
    } else if has("gd") || line.name.starts_with("[stack") {
        Err(LendError::Stack { address })
    } else if line.inode != 0 {
        Err(LendError::PrivateFile { address })
    } else if has("wf") {
        Err(LendError::WipedOnFork { address })
    } else {
        Ok(true)
    }
}

/// The parts of a range, cut at mappings, for which `is_meant` is true. Gaps are skipped.
fn find_parts(
    address: u64,
    len: usize,
    is_meant: impl Fn(&Line<'_>, &str) -> Result<bool, LendError>,
) -> Result<Vec<Part>, LendError> {
    let failed = unavailable("reading smaps");
    let end = end_of_pages(address, len).map_err(LendError::Refused)?;
    let smaps = File::open("/proc/self/smaps").map_err(|error| failed(error.into()))?;
    let (mut parts, mut header) = (Vec::new(), String::new());
    // File names may be in any encoding; the parts that are read are ASCII.
    for text in BufReader::new(smaps.take(SMAPS_BYTES_MAX)).split(b'\n') {
        let text = text.map_err(|error| failed(error.into()))?;
        let text = String::from_utf8_lossy(&text);
        let Some(flags) = text.strip_prefix("VmFlags:") else {
            if Line::parse(&text).is_some() {
                header = text.into_owned();
            }
            continue;
        };
        let Some(line) = Line::parse(&header).filter(|line| line.end > address) else { continue };
        if line.start >= end {
            break;
        }
        if is_meant(&line, flags)? {
            let start = line.start.max(address);
            parts.push(Part {
                address: start,
                len: (line.end.min(end) - start) as usize,
                is_executable: line.rights.as_bytes().get(2) == Some(&b'x'),
                stays_out_of_forks: flags.split_ascii_whitespace().any(|flag| flag == "dc"),
            });
        }
    }
    Ok(parts)
}

/// Replaces the pages of a part by new ones with the same bytes.
fn exchange(part: Part, kind: Kind, faults: Userfaultfd) -> Result<(), LendError> {
    let new = part.new_pages(kind)?;
    register(part, kind, &faults)?;
    std::thread::scope(|scope| {
        let copier = std::thread::Builder::new().stack_size(COPIER_STACK_BYTES);
        let copier = copier.spawn_scoped(scope, || exchange_held_back(part, new, faults));
        let copier = copier.map_err(|error| unavailable("starting a thread")(error.into()))?;
        copier.join().unwrap_or(Err(unavailable("copying")(Errno::EIO)))
    })
}

/// Makes every page of a part one to which writers can be held back.
fn register(part: Part, kind: Kind, faults: &Userfaultfd) -> Result<(), LendError> {
    if kind == Kind::Shared {
        // Unpopulated pages cannot be protected; a read populates them.
        part.advise(Advice::LinuxPopulateRead).map_err(unavailable("madvise of MADV_POPULATE_READ"))?;
    }
    faults.register(part).map_err(unavailable("UFFDIO_REGISTER"))
}

/// The part of [`exchange`] during which a write to the pages by this thread would never return: see the module's
/// contract. An error return also drops `faults`, which removes the protection and wakes the writers.
fn exchange_held_back(part: Part, new: Mapping, faults: Userfaultfd) -> Result<(), LendError> {
    let _signals = SignalsBlocked::new();
    // Dropped before the signals are let through, on every way out: a handler that writes to the pages would wait.
    let faults = faults;
    faults.protect(part).map_err(unavailable("UFFDIO_WRITEPROTECT"))?;
    copy_pages(part.address, &new).map_err(unavailable("process_vm_readv"))?;
    // SAFETY: the bytes at the address equal those of `new`, and stay so until `new` is there, because writers are
    // held back. So every user of that memory finds the same bytes as before. `new` was passed by value; no view of
    // it is left.
    unsafe { new.move_over(part.address) }.map_err(unavailable("mremap"))?;
    Ok(())
}

/// The error of a step.
fn unavailable(step: &'static str) -> impl Fn(Errno) -> LendError {
    move |errno| LendError::Unavailable { step, errno }
}

/// Copies the process's memory from `from` on; zero pages stay holes.
fn copy_pages(from: u64, to: &Mapping) -> Result<(), Errno> {
    let mut chunk = [0; CHUNK_BYTES];
    for at in (0..to.len()).step_by(CHUNK_BYTES) {
        let chunk = &mut chunk[..CHUNK_BYTES.min(to.len() - at)];
        read_process(from + at as u64, chunk)?;
        for (index, page) in chunk.chunks_exact(PAGE_BYTES).enumerate() {
            if *page != [0; PAGE_BYTES] {
                to.view().write_bytes(at + index * PAGE_BYTES, page);
            }
        }
    }
    Ok(())
}

/// Copies the process's memory at `address`. The kernel checks what is mapped: `EFAULT` if any byte is not.
fn read_process(address: u64, destination: &mut [u8]) -> Result<(), Errno> {
    let len = destination.len();
    let local = libc::iovec { iov_base: destination.as_mut_ptr().cast(), iov_len: len };
    let remote =
        libc::iovec { iov_base: core::ptr::with_exposed_provenance_mut(address as usize), iov_len: len };
    // SAFETY: `local` is one whole live slice that we hold exclusively. The kernel reads `remote` and checks it
    // page by page; writers of these bytes are held back, so no Rust access runs concurrently.
    let moved = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    match usize::try_from(moved) {
        Ok(moved) if moved == len => Ok(()),
        // A short copy means that a later page was refused.
        Ok(_) => Err(Errno::EFAULT),
        Err(_) => Err(std::io::Error::last_os_error().into()),
    }
}

impl Part {
    fn pointer(self) -> *mut c_void {
        core::ptr::with_exposed_provenance_mut(self.address as usize)
    }

    /// Zero pages with the part's access rights, at another address.
    fn new_pages(self, kind: Kind) -> Result<Mapping, LendError> {
        let new = match kind {
            Kind::Shared => {
                // Exceeding the limit would kill the process by a signal (setrlimit(2)).
                let limit = rustix::process::getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
                MemoryFile::new(FILE_NAME, (FILE_BYTES.min(limit) as usize).max(self.len))
                    .and_then(|file| file.map_alone(self.len))
            }
            Kind::Private => Mapping::private_alone(self.len),
        };
        let new = new.map_err(unavailable("mmap"))?;
        let there = Part { address: new.address(), ..self };
        if self.is_executable {
            let rights = MprotectFlags::READ | MprotectFlags::WRITE | MprotectFlags::EXEC;
            // SAFETY: the range belongs to `new`, which nobody else knows of; it gains a right and loses none.
            unsafe { rustix::mm::mprotect(there.pointer(), self.len, rights) }
                .map_err(|error| unavailable("mprotect")(error.into()))?;
        }
        if self.stays_out_of_forks {
            there.advise(Advice::LinuxDontFork).map_err(unavailable("madvise of MADV_DONTFORK"))?;
        }
        Ok(new)
    }

    /// Applies an `advice` that leaves the bytes alone.
    fn advise(self, advice: Advice) -> Result<(), Errno> {
        // SAFETY: MADV_POPULATE_READ only fills page tables, and MADV_DONTFORK (and MADV_WIPEONFORK, in tests) only
        // affects later forks; none changes a byte, and on unmapped memory they return errors.
        Ok(unsafe { rustix::mm::madvise(self.pointer(), self.len, advice) }?)
    }
}

/// Holds back writers to registered and protected pages. Closing it removes the protection and lets them continue.
#[derive(Debug)]
struct Userfaultfd(OwnedFd);

/// `struct uffdio_api`, `uffdio_register` and `uffdio_writeprotect` (`linux/userfaultfd.h`).
#[repr(C)]
struct ApiArgument {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
struct RegisterArgument {
    start: u64,
    len: u64,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
struct ProtectArgument {
    start: u64,
    len: u64,
    mode: u64,
}

impl Userfaultfd {
    /// `UFFDIO`, the request group, and `UFFD_API`.
    const GROUP: u8 = 0xAA;
    const API: u64 = 0xAA;
    /// `UFFD_FEATURE_PAGEFAULT_FLAG_WP`: the kernel supports the write-protect mode.
    const FEATURE_PROTECT: u64 = 1;
    /// `UFFDIO_REGISTER_MODE_WP` and `UFFDIO_WRITEPROTECT_MODE_WP`.
    const REGISTER_PROTECT: u64 = 1 << 1;
    const PROTECT: u64 = 1;
    /// `UFFD_USER_MODE_ONLY`.
    const USER_MODE_ONLY: u32 = 1;

    /// Catches all writers if the process has the right (CAP_SYS_PTRACE, or `vm.unprivileged_userfaultfd`), else
    /// only those in user mode: a system call of another thread that writes to the pages during the copy then
    /// returns `EFAULT`.
    fn open() -> Result<Userfaultfd, LendError> {
        match Userfaultfd::open_with(0) {
            Err(LendError::Unavailable { errno: Errno::EPERM, .. }) => {
                Userfaultfd::open_with(Userfaultfd::USER_MODE_ONLY)
            }
            opened => opened,
        }
    }

    fn open_with(mode: u32) -> Result<Userfaultfd, LendError> {
        let flags = UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::from_bits_retain(mode);
        // SAFETY: a new file that affects no memory yet; each caller proves the safety of what it registers.
        let file = unsafe { rustix::mm::userfaultfd(flags) }
            .map_err(|error| unavailable("userfaultfd")(error.into()))?;
        const REQUEST: rustix::ioctl::Opcode = opcode::read_write::<ApiArgument>(Userfaultfd::GROUP, 0x3F);
        let mut argument = ApiArgument { api: Userfaultfd::API, features: 0, ioctls: 0 };
        // SAFETY: number and structure are those of the header, and the structure is ours for the call.
        unsafe { rustix::ioctl::ioctl(&file, Updater::<REQUEST, ApiArgument>::new(&mut argument)) }
            .map_err(|error| unavailable("UFFDIO_API")(error.into()))?;
        Userfaultfd::check_features(argument.features)?;
        Ok(Userfaultfd(file))
    }

    /// `EOPNOTSUPP` if these features of a kernel do not include the write-protect mode.
    fn check_features(features: u64) -> Result<(), LendError> {
        match features & Userfaultfd::FEATURE_PROTECT {
            0 => Err(unavailable("UFFDIO_API")(Errno::EOPNOTSUPP)),
            _ => Ok(()),
        }
    }

    /// `EBUSY` if another userfaultfd has the pages.
    fn register(&self, part: Part) -> Result<(), Errno> {
        const REQUEST: rustix::ioctl::Opcode = opcode::read_write::<RegisterArgument>(Userfaultfd::GROUP, 0);
        let (start, len) = (part.address, part.len as u64);
        let mut argument = RegisterArgument { start, len, mode: Userfaultfd::REGISTER_PROTECT, ioctls: 0 };
        // SAFETY: number and structure are those of the header, and the structure is ours for the call. Registration
        // changes no access before pages are protected.
        Ok(unsafe {
            rustix::ioctl::ioctl(&self.0, Updater::<REQUEST, RegisterArgument>::new(&mut argument))
        }?)
    }

    /// Makes writers wait until this file is closed.
    fn protect(&self, part: Part) -> Result<(), Errno> {
        const REQUEST: rustix::ioctl::Opcode = opcode::read_write::<ProtectArgument>(Userfaultfd::GROUP, 6);
        let mut argument =
            ProtectArgument { start: part.address, len: part.len as u64, mode: Userfaultfd::PROTECT };
        // SAFETY: number and structure are those of the header, and the structure is ours for the call. Memory
        // keeps its bytes; writers wait, and `exchange` closes the file on every path out.
        Ok(unsafe { rustix::ioctl::ioctl(&self.0, Updater::<REQUEST, ProtectArgument>::new(&mut argument)) }?)
    }
}

/// While this lives, this thread handles no signal: a handler might write to pages whose writers are held back.
struct SignalsBlocked {
    before: libc::sigset_t,
}

impl SignalsBlocked {
    fn new() -> SignalsBlocked {
        // SAFETY: both sets are plain data of this frame, and all zeros is a valid value; the calls fill them and
        // change only this thread's signal mask.
        unsafe {
            let (mut all, mut before) = (core::mem::zeroed(), core::mem::zeroed());
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            SignalsBlocked { before }
        }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: the set is the one that the system returned when this was made.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, core::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests;
