//! A seam that remembers what went through it, and what follows from the driver's files.

use super::{board, open_over, options};
use crate::{Device, DeviceOptions};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use zrt_kmd::{Errno, Fd, Mapping, Protection, Reservation, Syscalls, UserPointer};
use zrt_mem::SharedView;
use zrt_vgpu::VirtualGpu;

/// Number of WAIT_EVENTS in bits 7:0 of a request (hardware reference §2.1).
const WAIT_EVENTS: u32 = 0x0c;
/// Bits 63:62 of an mmap offset are its type; that of the HDP remap page is 0 (hardware reference §2.5).
const MMAP_TYPE_SHIFT: u32 = 62;

/// The virtual driver with one text replaced by another in its files.
pub(super) struct Seam {
    inner: Arc<VirtualGpu>,
    shown: (&'static str, &'static str),
    kfd: Mutex<Option<Fd>>,
    remap_page: Mutex<Option<SharedView>>,
    /// How often the driver was asked for events.
    waits: AtomicUsize,
}

impl Seam {
    pub(super) fn new(shown: (&'static str, &'static str)) -> Arc<Seam> {
        let inner = board(true);
        Arc::new(Seam {
            inner,
            shown,
            kfd: Mutex::default(),
            remap_page: Mutex::default(),
            waits: AtomicUsize::new(0),
        })
    }

    pub(super) fn waits(&self) -> usize {
        self.waits.load(Ordering::Relaxed)
    }

    /// The page whose first dword flushes the host data path.
    pub(super) fn remap_page(&self) -> SharedView {
        self.remap_page.lock().unwrap().clone().unwrap()
    }
}

impl Syscalls for Seam {
    fn open(&self, path: &str) -> Result<Fd, Errno> {
        let fd = self.inner.open(path)?;
        if path == "/dev/kfd" {
            *self.kfd.lock().unwrap() = Some(fd);
        }
        Ok(fd)
    }
    fn close(&self, fd: Fd) -> Result<(), Errno> {
        self.inner.close(fd)
    }
    fn ioctl(&self, fd: Fd, request: u32, argument: UserPointer<'_>) -> Result<i32, Errno> {
        if request & 0xff == WAIT_EVENTS && *self.kfd.lock().unwrap() == Some(fd) {
            self.waits.fetch_add(1, Ordering::Relaxed);
        }
        self.inner.ioctl(fd, request, argument)
    }
    fn reserve(&self, len: usize, alignment: usize) -> Result<Reservation, Errno> {
        self.inner.reserve(len, alignment)
    }
    fn map(
        &self,
        fd: Fd,
        offset: u64,
        len: usize,
        protection: Protection,
        place: Option<(&Reservation, usize)>,
    ) -> Result<Mapping, Errno> {
        let mapping = self.inner.map(fd, offset, len, protection, place)?;
        if *self.kfd.lock().unwrap() == Some(fd) && offset >> MMAP_TYPE_SHIFT == 0 {
            *self.remap_page.lock().unwrap() = Some(mapping.view().clone());
        }
        Ok(mapping)
    }
    fn read_file(&self, path: &str) -> Result<Vec<u8>, Errno> {
        let text = String::from_utf8(self.inner.read_file(path)?).unwrap();
        Ok(text.replace(self.shown.0, self.shown.1).into_bytes())
    }
    fn read_directory(&self, path: &str) -> Result<Vec<String>, Errno> {
        self.inner.read_directory(path)
    }
}

fn shown(shown: (&'static str, &'static str), options: &DeviceOptions) -> Device {
    open_over(Seam::new(shown), options)
}

/// Boards by their PCI device numbers (hardware reference §1.2), and shader engines of two arrays each.
#[test]
fn a_device_is_named_and_counted_as_the_driver_exports_it() {
    let nothing = ("", "");
    let device = shown(nothing, &options());
    assert_eq!(device.name(), "Radeon R9700 (gfx1201)");
    assert_eq!(format!("{device:?}"), "Device { Radeon R9700 (gfx1201) }");
    assert_eq!((device.info().shader_engines, device.info().compute_units), (4, 64));
    let branded = DeviceOptions { brand: "Some", ..options() };
    for (device_id, name) in
        [("device_id 30032", "Some RX 9070 (gfx1201)"), ("device_id 30034", "Some Navi 48 (gfx1201)")]
    {
        assert_eq!(shown(("device_id 30033", device_id), &branded).name(), name);
    }
    let engines = |of| shown(of, &options()).info().shader_engines;
    assert_eq!(engines(("array_count 8", "array_count 6")), 3);
    assert_eq!(engines(("array_count 8", "array_count 0")), 1);
    assert_eq!(engines(("simd_arrays_per_engine 2", "simd_arrays_per_engine 0")), 8);
}

#[test]
fn options_are_shown_with_whether_there_is_a_witness() {
    let expected = "DeviceOptions { ring_bytes: 4096 B, gtt_only: false, spin_us: 200, brand: \"Radeon\", \
                    has_real_clock: true, has_witness: false }";
    assert_eq!(format!("{:?}", options()), expected);
}
