//! The real system calls, by rustix.
//!
//! Contract: a table here owns the descriptors, so a closed number is `EBADF` and never another file. Every method
//! may block.

use super::requests::check;
use super::{
    DIRECTORY_NAMES_MAX, FILE_BYTES_MAX, Fd, Mapping, PAGE_BYTES, Protection, Reservation, Syscalls,
    UserPointer,
};
use crate::errno::Errno;
use core::ffi::c_void;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode};
use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// System calls of the machine we run on.
#[derive(Debug, Default)]
pub struct LinuxSyscalls {
    files: Mutex<BTreeMap<i32, Arc<OwnedFd>>>,
}

impl LinuxSyscalls {
    /// A table without open files.
    pub fn new() -> LinuxSyscalls {
        LinuxSyscalls::default()
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<i32, Arc<OwnedFd>>> {
        // The table is valid after any panic: every change to it is a single call.
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, fd: Fd) -> Result<Arc<OwnedFd>, Errno> {
        self.files().get(&fd.0).cloned().ok_or(Errno::EBADF)
    }
}

impl Syscalls for LinuxSyscalls {
    fn open(&self, path: &str) -> Result<Fd, Errno> {
        let file = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let number = file.as_raw_fd();
        self.files().insert(number, Arc::new(file));
        Ok(Fd(number))
    }

    fn close(&self, fd: Fd) -> Result<(), Errno> {
        self.files().remove(&fd.0).map(drop).ok_or(Errno::EBADF)
    }

    fn ioctl(&self, fd: Fd, request: u32, argument: UserPointer<'_>) -> Result<i32, Errno> {
        let file = self.file(fd)?;
        let request = RawRequest { request, argument: check(request, argument)? };
        // SAFETY: `check` has verified that the structure, as long as the request number says, and everything that
        // the driver follows from it were lent for this call, by references that outlive it. The bytes are cells of
        // this thread, so they are unchanged since the check, and the driver may change them.
        Ok(unsafe { rustix::ioctl::ioctl(file.as_fd(), request) }?)
    }

    fn reserve(&self, len: usize, alignment: usize) -> Result<Reservation, Errno> {
        Reservation::new(len, alignment)
    }

    fn map(
        &self,
        fd: Fd,
        offset: u64,
        len: usize,
        protection: Protection,
        place: Option<(&Reservation, usize)>,
    ) -> Result<Mapping, Errno> {
        let file = self.file(fd)?;
        let stat = rustix::fs::fstat(&file)?;
        // Accessing pages past the end of a file would kill the process. Only regular files have one.
        let bytes_max = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => (stat.st_size as u64).next_multiple_of(PAGE_BYTES as u64),
            _ => u64::MAX,
        };
        if offset.checked_add(len as u64).is_none_or(|end| end > bytes_max) {
            return Err(Errno::EINVAL);
        }
        Mapping::of_file(file.as_fd(), offset, len, protection, place)
    }

    fn read_file(&self, path: &str) -> Result<Vec<u8>, Errno> {
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path)?;
        file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > FILE_BYTES_MAX { Err(Errno::EFBIG) } else { Ok(bytes) }
    }

    fn read_directory(&self, path: &str) -> Result<Vec<String>, Errno> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path)? {
            if names.len() == DIRECTORY_NAMES_MAX {
                return Err(Errno::EFBIG);
            }
            // Names in sysfs are ASCII; one that is not UTF-8 cannot be one that we look for.
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }
}

/// Any request with one pointer: rustix's trait carries number and pointer, and we define the meaning.
struct RawRequest {
    request: u32,
    argument: *mut c_void,
}

// SAFETY: the pointer is passed unchanged and treated as mutable memory (`IS_MUTATING`). The output is the call's
// result only, so `output_from_ptr` reads nothing. `check` has verified that number and structure match.
unsafe impl Ioctl for RawRequest {
    type Output = IoctlOutput;
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        self.request as Opcode
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.argument
    }

    unsafe fn output_from_ptr(
        output: IoctlOutput,
        _argument: *mut c_void,
    ) -> rustix::io::Result<IoctlOutput> {
        Ok(output)
    }
}

#[cfg(test)]
mod tests {
    use super::super::ioctl_bytes;
    use super::super::requests::REQUEST_OF_THE_TESTS;
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "makes system calls")]
    fn files_directories_and_closed_numbers() {
        let system = LinuxSyscalls::new();
        assert_eq!(system.read_file("/nonexistent/file"), Err(Errno::ENOENT));
        assert!(!system.read_file("/proc/self/status").unwrap().is_empty());
        assert!(system.read_directory("/proc/self").unwrap().iter().any(|name| name == "status"));
        assert_eq!(system.read_directory("/nonexistent").err(), Some(Errno::ENOENT));
        assert_eq!(system.close(Fd(5)), Err(Errno::EBADF));
        let fd = system.open("/dev/null").unwrap();
        // /dev/null has no ioctls: the number reaches the kernel and is refused there.
        assert_eq!(ioctl_bytes(&system, fd, 0x8008_4b01, &mut [0; 8], &mut []), Err(Errno::ENOTTY));
        system.close(fd).unwrap();
        assert_eq!(ioctl_bytes(&system, fd, 0x8008_4b01, &mut [0; 8], &mut []), Err(Errno::EBADF));
        assert_eq!(system.map(fd, 0, 4096, Protection::Read, None).err(), Some(Errno::EBADF));
    }

    /// A child that the process starts does not get the driver's file.
    #[test]
    #[cfg_attr(miri, ignore = "makes system calls")]
    fn a_file_is_opened_to_read_and_to_write_and_for_this_process_alone() {
        let folder = zrt_needs::TemporaryFolder::new("opened");
        let path = folder.join("file");
        std::fs::write(&path, [7; 8192]).unwrap();
        let system = LinuxSyscalls::new();
        let fd = system.open(path.to_str().unwrap()).unwrap();
        let mapping = system.map(fd, 4096, 4096, Protection::ReadWrite, None).unwrap();
        mapping.view().store_u32(4, 0x0808_0808);
        assert_eq!(std::fs::read(&path).unwrap()[4096..4104], [7, 7, 7, 7, 8, 8, 8, 8], "the file itself");
        let file = system.file(fd).unwrap();
        assert_eq!(rustix::fs::fcntl_getfl(&file).unwrap() & OFlags::ACCMODE, OFlags::RDWR);
        assert_eq!(rustix::io::fcntl_getfd(&file).unwrap(), rustix::io::FdFlags::CLOEXEC);
    }

    #[test]
    #[cfg_attr(miri, ignore = "makes system calls")]
    fn a_regular_file_is_mapped_up_to_its_last_page_and_a_device_has_no_end() {
        let folder = zrt_needs::TemporaryFolder::new("mapped");
        let path = folder.join("file");
        std::fs::write(&path, [7; 5000]).unwrap();
        let system = LinuxSyscalls::new();
        let map = |path: &str, offset, len| {
            let fd = system.open(path).unwrap();
            let mapping = system.map(fd, offset, len, Protection::ReadWrite, None)?;
            Ok(mapping.view().load_u8(mapping.len() - 1))
        };
        let file = path.to_str().unwrap();
        assert_eq!([map(file, 0, 5000), map(file, 0, 5001), map(file, 4096, 904)], [Ok(7), Ok(0), Ok(7)]);
        assert_eq!([map(file, 0, 8192), map(file, 4096, 4096)], [Ok(0); 2], "to the end of the page");
        for (offset, len) in [(0, 8193), (4096, 4097), (8192, 1), (1 << 40, 1), (u64::MAX - 4095, 4097)] {
            assert_eq!(map(file, offset, len), Err(Errno::EINVAL), "{len} bytes at {offset:#x}");
        }
        assert_eq!(map("/dev/zero", 0, 4096), Ok(0));
    }

    #[test]
    #[cfg_attr(miri, ignore = "makes system calls")]
    fn a_file_is_read_whole_up_to_its_limit() {
        let folder = zrt_needs::TemporaryFolder::new("long-file");
        let path = folder.join("file");
        let read = |len: usize| {
            std::fs::write(&path, vec![b'x'; len]).unwrap();
            LinuxSyscalls::new().read_file(path.to_str().unwrap()).map(|bytes| bytes.len())
        };
        for (len, outcome) in [
            (0, Ok(0)),
            (FILE_BYTES_MAX - 1, Ok(FILE_BYTES_MAX - 1)),
            (FILE_BYTES_MAX, Ok(FILE_BYTES_MAX)),
            (FILE_BYTES_MAX + 1, Err(Errno::EFBIG)),
            (2 * FILE_BYTES_MAX, Err(Errno::EFBIG)),
        ] {
            assert_eq!(read(len), outcome, "{len} bytes");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "makes system calls")]
    fn a_real_ioctl_writes_its_argument() {
        let system = LinuxSyscalls::new();
        let fd = system.open("/dev/urandom").unwrap();
        let mut answer = [0xff; 8];
        ioctl_bytes(&system, fd, REQUEST_OF_THE_TESTS, &mut answer, &mut []).unwrap();
        // Bits in the pool: 256 at most, or 4096 before Linux 5.18.
        assert!((1..=4096).contains(&u32::from_ne_bytes([answer[0], answer[1], answer[2], answer[3]])));
        assert_eq!(answer[4..], [0xff; 4]);
        let nowhere = system.ioctl(fd, REQUEST_OF_THE_TESTS, UserPointer::invalid());
        assert_eq!(nowhere, Err(Errno::EFAULT));
        system.close(fd).unwrap();
    }
}
