//! The kernel's copy of a request's structure: fields by byte offset, little endian.
//!
//! Contract: an offset outside the structure is our mistake and panics; the structure is at least as long as the
//! kernel's own version of it. One allocation per request (ioctls are not on the path of a token).

use zrt_kmd::{Errno, UserPointer};

/// A request's structure in the kernel.
#[derive(Debug)]
pub(crate) struct Arguments<'a> {
    bytes: Vec<u8>,
    /// The caller's pointer; structures that it refers to are accessed through it.
    pub pointer: UserPointer<'a>,
}

impl<'a> Arguments<'a> {
    /// A structure of `size` zero bytes.
    pub fn zeroed(size: usize, pointer: UserPointer<'a>) -> Arguments<'a> {
        Arguments { bytes: vec![0; size], pointer }
    }

    /// Fills the first `len` bytes from the process.
    pub fn copy_in(&mut self, len: usize) -> Result<(), Errno> {
        self.pointer.read(&mut self.bytes[..len])
    }

    /// Writes the first `len` bytes back to the process.
    pub fn copy_out(&self, len: usize) -> Result<(), Errno> {
        self.pointer.write(&self.bytes[..len])
    }

    /// The dword at a byte offset.
    pub fn u32(&self, at: usize) -> u32 {
        load_u32(&self.bytes, at)
    }

    /// The quadword at a byte offset.
    pub fn u64(&self, at: usize) -> u64 {
        load_u64(&self.bytes, at)
    }

    /// Stores a dword.
    pub fn set_u32(&mut self, at: usize, value: u32) {
        store_u32(&mut self.bytes, at, value);
    }

    /// Stores a quadword.
    pub fn set_u64(&mut self, at: usize, value: u64) {
        store_u64(&mut self.bytes, at, value);
    }

    /// Reads `count` dwords of the process at an address from the structure; at most `count_max`.
    pub fn read_dwords(&self, address: u64, count: usize, count_max: usize) -> Result<Vec<u32>, Errno> {
        if count > count_max {
            return Err(Errno::ENOMEM);
        }
        let mut bytes = vec![0; count * 4];
        self.pointer.nested(address).read(&mut bytes)?;
        Ok((0..count).map(|index| load_u32(&bytes, index * 4)).collect())
    }
}

/// The dword at byte `at` of `bytes`.
pub(crate) fn load_u32(bytes: &[u8], at: usize) -> u32 {
    let mut value = [0; 4];
    value.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(value)
}

/// The quadword at byte `at` of `bytes`.
pub(crate) fn load_u64(bytes: &[u8], at: usize) -> u64 {
    load_u32(bytes, at) as u64 | (load_u32(bytes, at + 4) as u64) << 32
}

/// Stores a dword at byte `at` of `bytes`.
pub(crate) fn store_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// Stores a quadword at byte `at` of `bytes`.
pub(crate) fn store_u64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}
