//! Linux error numbers with their names.
//!
//! Contract: plain values; no allocation. Numbers are those of x86-64 and arm64 Linux (`asm-generic/errno*.h`);
//! 524 is `ENOTSUPP` of the kernel's internal `linux/errno.h`, which `AMDKFD_IOC_CREATE_QUEUE` lets through to user
//! space (hardware reference §2.6).

use core::fmt;

/// A Linux error number, positive (`EINVAL` is 22). `ENOTSUPP`, 524, is internal to the kernel but can reach us.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(pub i32);

macro_rules! names {
    ($($name:ident = $number:literal, $meaning:literal;)*) => {
        impl Errno {
            $(
                #[doc = $meaning]
                pub const $name: Errno = Errno($number);
            )*

            /// The symbol in the header files, if it is one that a driver is known to return.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

names! {
    EPERM = 1, "Operation not permitted.";
    ENOENT = 2, "No such file, directory or object.";
    ESRCH = 3, "No such process.";
    EINTR = 4, "Interrupted by a signal.";
    EIO = 5, "Input or output failed.";
    ENXIO = 6, "No such device or address.";
    E2BIG = 7, "Argument list too long.";
    EBADF = 9, "Not an open file of this process.";
    EAGAIN = 11, "Try again.";
    ENOMEM = 12, "Out of memory.";
    EACCES = 13, "Permission denied.";
    EFAULT = 14, "Bad address.";
    EBUSY = 16, "In use.";
    EEXIST = 17, "Exists already.";
    ENODEV = 19, "No such device.";
    ENOTDIR = 20, "Not a directory.";
    EISDIR = 21, "Is a directory.";
    EINVAL = 22, "Invalid argument.";
    ENFILE = 23, "Too many open files in the system.";
    EMFILE = 24, "Too many open files in the process.";
    ENOTTY = 25, "The driver does not know this request.";
    EFBIG = 27, "File too large.";
    ENOSPC = 28, "No space, or no slot, left.";
    EROFS = 30, "Read-only file system.";
    EPIPE = 32, "Nothing reads the pipe.";
    ERANGE = 34, "Out of range.";
    ENOSYS = 38, "No such system call.";
    ETIME = 62, "Timer expired.";
    EOVERFLOW = 75, "Value too large for its type.";
    EOPNOTSUPP = 95, "Operation not supported.";
    EADDRINUSE = 98, "Address in use.";
    ETIMEDOUT = 110, "Timed out.";
    ECANCELED = 125, "Cancelled.";
    ENOTSUPP = 524, "Operation not supported, in the kernel's internal numbering.";
}

impl fmt::Debug for Errno {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(formatter, "{name} ({})", self.0),
            None => write!(formatter, "errno {}", self.0),
        }
    }
}

impl core::error::Error for Errno {}

impl From<rustix::io::Errno> for Errno {
    fn from(error: rustix::io::Errno) -> Errno {
        Errno(error.raw_os_error())
    }
}

impl From<std::io::Error> for Errno {
    /// `EIO` if the error did not come from the system.
    fn from(error: std::io::Error) -> Errno {
        error.raw_os_error().map_or(Errno::EIO, Errno)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree_with_the_c_library() {
        for (errno, number) in [
            (Errno::EINVAL, libc::EINVAL),
            (Errno::EFAULT, libc::EFAULT),
            (Errno::ENOTTY, libc::ENOTTY),
            (Errno::ETIME, libc::ETIME),
            (Errno::EADDRINUSE, libc::EADDRINUSE),
            (Errno::EOPNOTSUPP, libc::EOPNOTSUPP),
            (Errno::ENOSPC, libc::ENOSPC),
        ] {
            assert_eq!(errno.0, number);
        }
        assert_eq!(Errno::EINVAL.to_string(), "EINVAL (22)");
        assert_eq!(format!("{:?}", Errno::EINVAL), "EINVAL (22)");
        assert_eq!(Errno(524).to_string(), "ENOTSUPP (524)");
        assert_eq!(Errno(4000).to_string(), "errno 4000");
    }
}
