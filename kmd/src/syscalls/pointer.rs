//! Bytes of the process that a request lends to a driver: its structure, and the pieces that the structure refers
//! to by address.
//!
//! Contract: an ioctl's argument is an address, and its structure contains further addresses. A driver living in
//! this process (the virtual device) can access, by address, what was lent for the call and nothing else: any other
//! address is `EFAULT`, as it is with the real driver if nothing is mapped there. No pointer is ever made from a
//! number; [`UserPointer::nested`] only names another of the same call's pieces. Cost: one allocation per request
//! and a search of its two or three pieces per copy; set-up only.

use super::{Fd, Syscalls};
use crate::errno::Errno;
use core::cell::Cell;

/// A pointer handed to a driver by number. The driver reads and writes what the request's structure defines, there
/// and at the addresses stored in it.
///
/// The lifetime is that of the lent bytes, so a driver can neither keep it past the call nor take it to another
/// thread:
///
/// ```compile_fail,E0277
/// fn sent<T: Send>(_: T) {}
/// sent(zrt_kmd::UserPointer::invalid());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct UserPointer<'a> {
    address: u64,
    /// The request's structure, then the pieces it refers to. Empty for an invalid pointer.
    lent: &'a [Piece<'a>],
}

/// Bytes that both the caller and the driver may change during the call, on one thread.
type Piece<'a> = &'a [Cell<u8>];

/// A second piece of memory that the argument refers to by address.
#[derive(Debug)]
pub struct Nested<'a> {
    /// Offset of the 64-bit address in the argument.
    pub field_offset: usize,
    /// The bytes that the driver may read and write there.
    pub bytes: &'a mut [u8],
}

/// Issues an ioctl with `argument` as its structure, after storing the address of each nested piece in it.
///
/// The addresses stay in `argument` afterwards. Panics if a field lies outside the argument (our mistake). A driver
/// may follow no other address in `argument`: the virtual driver answers `EFAULT`, and
/// [`LinuxSyscalls`](super::LinuxSyscalls) does not pass the request on.
pub fn ioctl_bytes(
    syscalls: &dyn Syscalls,
    fd: Fd,
    request: u32,
    argument: &mut [u8],
    nested: &mut [Nested<'_>],
) -> Result<i32, Errno> {
    for piece in &mut *nested {
        let address = address(cells(piece.bytes)).to_ne_bytes();
        argument[piece.field_offset..piece.field_offset + address.len()].copy_from_slice(&address);
    }
    let mut lent = Vec::with_capacity(1 + nested.len());
    lent.push(cells(argument));
    lent.extend(nested.iter_mut().map(|piece| cells(piece.bytes)));
    syscalls.ioctl(fd, request, UserPointer { address: address(lent[0]), lent: &lent })
}

fn cells(bytes: &mut [u8]) -> Piece<'_> {
    Cell::from_mut(bytes).as_slice_of_cells()
}

/// The address to pass to a driver, which may follow it.
fn address(piece: Piece<'_>) -> u64 {
    piece.as_ptr().expose_provenance() as u64
}

impl<'a> UserPointer<'a> {
    /// An address in the first page, which is never mapped. Tests pass it to a driver to see `EFAULT`.
    pub fn invalid() -> UserPointer<'static> {
        UserPointer { address: 8, lent: &[] }
    }

    /// The address as a number.
    pub fn address(self) -> u64 {
        self.address
    }

    /// An address from the request's structure. It is valid only if the same call has lent memory there.
    pub fn nested(self, address: u64) -> UserPointer<'a> {
        UserPointer { address, ..self }
    }

    /// The pointer `bytes` further on. Past the end of the address space it saturates, and is refused there.
    pub fn offset(self, bytes: u64) -> UserPointer<'a> {
        UserPointer { address: self.address.saturating_add(bytes), ..self }
    }

    /// Copies from the process. `EFAULT`, with nothing copied, if any byte was not lent.
    pub fn read(self, destination: &mut [u8]) -> Result<(), Errno> {
        let source = self.lent(destination.len())?;
        destination.iter_mut().zip(source).for_each(|(byte, lent)| *byte = lent.get());
        Ok(())
    }

    /// Copies to the process. `EFAULT`, with nothing copied, if any byte was not lent.
    pub fn write(self, source: &[u8]) -> Result<(), Errno> {
        let destination = self.lent(source.len())?;
        destination.iter().zip(source).for_each(|(lent, byte)| lent.set(*byte));
        Ok(())
    }

    /// The `len` bytes from here on, which must lie in one piece; an empty range is valid anywhere.
    pub(super) fn lent(self, len: usize) -> Result<&'a [Cell<u8>], Errno> {
        let inside = |piece: &Piece<'a>| {
            let at = usize::try_from(self.address.checked_sub(piece.as_ptr().addr() as u64)?).ok()?;
            piece.get(at..at.checked_add(len)?)
        };
        match self.lent.iter().find_map(inside) {
            Some(bytes) => Ok(bytes),
            None if len == 0 => Ok(&[]),
            None => Err(Errno::EFAULT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Driver;

    fn call(
        argument: &mut [u8],
        nested: &mut [Nested<'_>],
        driver: impl Fn(UserPointer<'_>) -> Result<i32, Errno> + Send + Sync,
    ) -> Result<i32, Errno> {
        ioctl_bytes(&Driver(|_, _, pointer: UserPointer<'_>| driver(pointer)), Fd(0), 0, argument, nested)
    }

    #[test]
    fn a_driver_reads_and_writes_what_was_lent() {
        let (mut argument, mut table) = ([7u8; 24], *b"seventeen bytes..");
        let nested = &mut [Nested { field_offset: 8, bytes: &mut table }];
        let answer = call(&mut argument, nested, |pointer| {
            let mut structure = [0; 24];
            pointer.read(&mut structure)?;
            assert_eq!((&structure[..8], &structure[16..]), ([7u8; 8].as_slice(), [7u8; 8].as_slice()));
            let [.., field] = structure[8..16].as_chunks::<8>().0 else { unreachable!("eight bytes") };
            let table = pointer.nested(u64::from_ne_bytes(*field));
            let mut text = [0; 17];
            table.read(&mut text)?;
            assert_eq!(&text, b"seventeen bytes..");
            table.offset(10).write(b"BYTES")?;
            pointer.offset(20).write(&[1, 2, 3, 4])?;
            Ok(5)
        });
        assert_eq!(answer, Ok(5));
        assert_eq!(&table, b"seventeen BYTES..");
        assert_eq!(argument[16..], [7, 7, 7, 7, 1, 2, 3, 4]);
    }

    #[test]
    fn what_was_not_lent_is_a_bad_address() {
        let neighbour = [1u8; 64];
        let beside = neighbour.as_ptr().expose_provenance() as u64;
        // Each is surrounded by bytes that are not lent, wherever the compiler puts the two.
        let (mut tables, mut arguments) = ([2u8; 48], [3u8; 48]);
        let nested = &mut [Nested { field_offset: 0, bytes: &mut tables[16..32] }];
        let driver = |pointer: UserPointer<'_>| {
            let mut bytes = [0; 16];
            for address in [0, 8, beside, u64::MAX - 7, 0xffff_8000_0000_0000] {
                assert_eq!(pointer.nested(address).read(&mut bytes), Err(Errno::EFAULT), "{address:#x}");
                assert_eq!(pointer.nested(address).write(&bytes), Err(Errno::EFAULT), "{address:#x}");
            }
            let mut field = [0; 8];
            pointer.read(&mut field)?;
            let table = pointer.nested(u64::from_ne_bytes(field));
            for piece in [pointer, table] {
                // Up to its end, and not a byte after or before it.
                assert_eq!(piece.offset(8).read(&mut bytes[..8]), Ok(()));
                assert_eq!(piece.offset(8).read(&mut bytes[..9]), Err(Errno::EFAULT));
                assert_eq!(piece.offset(8).write(&bytes[..9]), Err(Errno::EFAULT));
                assert_eq!(piece.nested(piece.address() - 1).read(&mut bytes[..1]), Err(Errno::EFAULT));
            }
            assert_eq!(UserPointer::invalid().read(&mut bytes), Err(Errno::EFAULT));
            assert_eq!(UserPointer::invalid().nested(table.address()).write(&bytes), Err(Errno::EFAULT));
            assert_eq!(UserPointer::invalid().read(&mut []), Ok(()));
            Ok(0)
        };
        assert_eq!(call(&mut arguments[16..32], nested, driver), Ok(0));
        assert_eq!((neighbour, tables, &arguments[24..]), ([1; 64], [2; 48], [3u8; 24].as_slice()));
    }
}
