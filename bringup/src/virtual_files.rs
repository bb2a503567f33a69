//! The files in which the virtual driver reports on its device: one reader for all of them.
//!
//! Contract: read through the seam. A card's driver has none of them; that is not an error.

use zrt_device::DeviceError;
use zrt_kmd::{Errno, Syscalls};

pub(crate) use zrt_vgpu::kernel::{
    COUNTERS_PATH, FAULTS_PATH, FINDINGS_PATH, KERNEL_PATH, PROFILE_PATH, WAVES_PATH,
};

/// The text of a file; `None` if the driver has no such file.
pub(crate) fn read(syscalls: &dyn Syscalls, path: &'static str) -> Result<Option<String>, DeviceError> {
    match syscalls.read_file(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        // The directory belongs to root on most systems, and on a card it holds nothing of ours.
        Err(Errno::ENOENT | Errno::EACCES) => Ok(None),
        Err(errno) => Err(DeviceError::Evidence { path, reason: errno.to_string() }),
    }
}
