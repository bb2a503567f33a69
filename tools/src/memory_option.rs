//! Options about where weights lie and how they get there: the same for every command that makes a model resident.
//!
//! Contract: a limit is resolved once a device is open, because `auto` asks it.

use crate::error::ToolError;
use crate::units;
use clap::Args;
use std::str::FromStr;
use zrt_device::Device;
use zrt_engine::executor::upload::{Loading, THREADS_MAX};
use zrt_engine::session::SessionOptions;
use zrt_mem::ByteLen;

/// What `--vram auto` leaves free: code, tape, pages that are not full, and what a desktop takes later.
const RESERVE: ByteLen = ByteLen(64 << 20);

/// Most VRAM that a command may take for a model and its sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VramLimit {
    /// What the device has free, less 64 MiB.
    Free,
    /// So many bytes.
    Bytes(ByteLen),
}

/// The options.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct MemoryOption {
    /// Most VRAM to take, as 12GiB, or auto for what is free: layers beyond it stay in host memory, where kernels read
    /// them over the bus [default: no limit, and everything must fit]
    #[arg(long, value_name = "LIMIT")]
    pub vram: Option<VramLimit>,
    /// Threads that load weights, 1 to 64 [default: one for each core, at most 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=THREADS_MAX as i64))]
    pub load_threads: Option<u32>,
}

impl MemoryOption {
    /// The limit on a device.
    ///
    /// # Errors
    /// [`ToolError::NoFreeVram`] if `auto` is asked of a device whose driver does not say what is free.
    pub fn limit(&self, device: &Device) -> Result<Option<ByteLen>, ToolError> {
        match self.vram {
            None => Ok(None),
            Some(VramLimit::Bytes(bytes)) => Ok(Some(bytes)),
            Some(VramLimit::Free) => {
                let free = device.available_vram().ok_or(ToolError::NoFreeVram)?;
                Ok(Some(ByteLen(free.0.saturating_sub(RESERVE.0))))
            }
        }
    }

    /// Session options with these.
    ///
    /// # Errors
    /// Those of [`limit`](MemoryOption::limit).
    pub fn of_session(&self, device: &Device, options: SessionOptions) -> Result<SessionOptions, ToolError> {
        let load_threads = self.load_threads.map(|threads| threads as usize);
        Ok(SessionOptions { vram_max: self.limit(device)?, load_threads, ..options })
    }

    /// How weights are loaded, told to `progress`.
    pub fn loading<'a>(&self, progress: &'a mut dyn FnMut(u64, u64)) -> Loading<'a> {
        Loading { threads: self.load_threads.map(|threads| threads as usize), ..Loading::new(progress) }
    }
}

impl FromStr for VramLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<VramLimit, String> {
        if text == "auto" {
            return Ok(VramLimit::Free);
        }
        let bytes = units::parse_bytes(text).map(|bytes| VramLimit::Bytes(ByteLen(bytes)));
        bytes.ok_or_else(|| "it is auto, or a number with KiB, MiB or GiB".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_size_or_auto() {
        assert_eq!("auto".parse(), Ok(VramLimit::Free));
        assert_eq!("12GiB".parse(), Ok(VramLimit::Bytes(ByteLen(12 << 30))));
        for text in ["", "all", "12", "12GB", "-1GiB"] {
            assert!(text.parse::<VramLimit>().is_err(), "{text}");
        }
    }

    #[test]
    fn auto_leaves_a_reserve_of_what_is_free() {
        let choice = zrt_bringup::DeviceChoice::Virtual;
        let device = zrt_bringup::open(choice, &zrt_bringup::OpenOptions::default()).unwrap();
        let free = device.available_vram().unwrap().0;
        let limit = |vram| MemoryOption { vram, load_threads: None }.limit(&device).unwrap();
        assert_eq!(limit(Some(VramLimit::Free)), Some(ByteLen(free - (64 << 20))));
        assert_eq!(limit(Some(VramLimit::Bytes(ByteLen(7)))), Some(ByteLen(7)));
        assert_eq!(limit(None), None);
    }

    #[test]
    fn options_of_a_session_have_limit_and_threads() {
        let choice = zrt_bringup::DeviceChoice::Virtual;
        let device = zrt_bringup::open(choice, &zrt_bringup::OpenOptions::default()).unwrap();
        let memory = MemoryOption { vram: Some(VramLimit::Bytes(ByteLen(7))), load_threads: Some(3) };
        let options = SessionOptions { slots: 5, ..SessionOptions::default() };
        let found = memory.of_session(&device, options).unwrap();
        assert_eq!((found.vram_max, found.load_threads, found.slots), (Some(ByteLen(7)), Some(3), 5));
        assert_eq!(memory.loading(&mut |_, _| ()).threads, Some(3));
        assert_eq!(MemoryOption::default().loading(&mut |_, _| ()).threads, None);
    }
}
