//! A regular file mapped read-only, for inputs too large to copy (model files).
//!
//! Contract: bytes leave only as copies, through [`SharedView`], so a concurrent writer causes old or new bytes and
//! never undefined behaviour. Opening enters the kernel; reading does not, except for page faults. If another
//! process *shortens* a file while it is mapped, the kernel raises `SIGBUS` on the missing pages: do not do that.
//! Cost: one mapping; a read is one 8-byte move per 8 bytes.

use super::memory::MappedRange;
use core::fmt;
use core::ptr::NonNull;
use rustix::fs::OFlags;
use rustix::mm::{MapFlags, ProtFlags};
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use zrt_mem::SharedView;

/// A read-only mapping of one whole regular file.
pub struct MappedFile {
    /// `None` for an empty file, which the kernel refuses to map.
    view: Option<SharedView>,
}

impl MappedFile {
    /// Maps all of `path`. Directories, devices and pipes are refused.
    pub fn open(path: &Path) -> io::Result<MappedFile> {
        // O_NONBLOCK: opening a pipe must not wait for its writer; the flag has no effect on a regular file.
        let file = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let len = usize::try_from(metadata.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
        if len == 0 {
            return Ok(MappedFile { view: None });
        }
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that Rust knows of.
        let base = unsafe {
            rustix::mm::mmap(core::ptr::null_mut(), len, ProtFlags::READ, MapFlags::PRIVATE, &file, 0)
        }?;
        let first = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::InvalidData)?;
        let range = MappedRange::of_new(base, len);
        // SAFETY: the range was just mapped readable for `range`, which unmaps it when dropped; it is page-aligned
        // and no Rust allocation, and the view, which never leaves the structure, is only read through.
        let view = unsafe { SharedView::new(first, len, range) };
        Ok(MappedFile { view: Some(view) })
    }

    /// Length in bytes, as it was when the file was opened.
    pub fn len(&self) -> u64 {
        self.view.as_ref().map_or(0, |view| view.len() as u64)
    }

    /// True for an empty file.
    pub fn is_empty(&self) -> bool {
        self.view.is_none()
    }

    /// Fills `destination` from byte `offset` on. Returns false and writes nothing if the file is too short.
    #[must_use]
    pub fn read_at(&self, offset: u64, destination: &mut [u8]) -> bool {
        let inside = offset.checked_add(destination.len() as u64).is_some_and(|end| end <= self.len());
        if inside && let Some(view) = &self.view {
            view.read_bytes(offset as usize, destination);
        }
        inside
    }
}

impl fmt::Debug for MappedFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "MappedFile({} B)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;

    #[test]
    #[cfg_attr(miri, ignore = "maps files")]
    fn reads_what_the_file_holds_and_refuses_the_rest() {
        let folder = zrt_needs::TemporaryFolder::new("mapped-file");
        let path = folder.join("file");
        let content: Vec<u8> = (0..10_007u32).map(|index| (index % 251) as u8).collect();
        File::create(&path).unwrap().write_all(&content).unwrap();
        let file = MappedFile::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();

        assert_eq!((file.len(), file.is_empty()), (10_007, false));
        assert_eq!(format!("{file:?}"), "MappedFile(10007 B)");
        let mut part = [0u8; 99];
        assert!(file.read_at(4093, &mut part));
        assert_eq!(part[..], content[4093..4192]);
        assert!(file.read_at(10_007, &mut []));
        assert!(!file.read_at(10_007, &mut [0]));
        assert!(!file.read_at(u64::MAX, &mut part));
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps files")]
    fn an_empty_file_has_no_bytes_and_a_folder_is_no_file() {
        let folder = zrt_needs::TemporaryFolder::new("empty-file");
        let path = folder.join("file");
        File::create(&path).unwrap();
        let file = MappedFile::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(file.is_empty() && file.read_at(0, &mut []) && !file.read_at(0, &mut [0]));
        assert!(MappedFile::open(&folder).is_err());
    }
}
