//! A device over a seam that shows other files, or none of the virtual driver's.

use super::{objects, one_dispatch, small_ring, stopped, untested, with_virtual};
use crate::probe::environment;
use crate::selftest::kernels::ENDLESS;
use crate::virtual_files::{
    COUNTERS_PATH, FAULTS_PATH, FINDINGS_PATH, KERNEL_PATH, PROFILE_PATH, WAVES_PATH,
};
use crate::*;
use std::sync::Arc;
use std::time::Duration;
use zrt_device::{Attachment, DeviceError, Heap};
use zrt_kmd::{Errno, MemoryKind, Syscalls};
use zrt_mem::{ByteLen, GpuVa};
use zrt_vgpu::config::KernelRelease;
use zrt_vgpu::kernel::OBJECTS_PATH;
use zrt_vgpu::{Config, VirtualGpu};

/// What becomes of a file that is read, by its path.
type Reads = fn(&str, Result<Vec<u8>, Errno>) -> Result<Vec<u8>, Errno>;

/// A seam that refuses to open one path, and shows files as they are not.
struct Seam {
    inner: Arc<VirtualGpu>,
    refused: Option<(&'static str, Errno)>,
    reads: Reads,
}

impl Syscalls for Seam {
    fn open(&self, path: &str) -> Result<zrt_kmd::Fd, Errno> {
        match self.refused {
            Some((refused, errno)) if refused == path => Err(errno),
            _ => self.inner.open(path),
        }
    }
    fn close(&self, fd: zrt_kmd::Fd) -> Result<(), Errno> {
        self.inner.close(fd)
    }
    fn ioctl(&self, fd: zrt_kmd::Fd, request: u32, argument: zrt_kmd::UserPointer<'_>) -> Result<i32, Errno> {
        self.inner.ioctl(fd, request, argument)
    }
    fn reserve(&self, len: usize, alignment: usize) -> Result<zrt_kmd::Reservation, Errno> {
        self.inner.reserve(len, alignment)
    }
    fn map(
        &self,
        fd: zrt_kmd::Fd,
        offset: u64,
        len: usize,
        protection: zrt_kmd::Protection,
        place: Option<(&zrt_kmd::Reservation, usize)>,
    ) -> Result<zrt_kmd::Mapping, Errno> {
        self.inner.map(fd, offset, len, protection, place)
    }
    fn read_file(&self, path: &str) -> Result<Vec<u8>, Errno> {
        (self.reads)(path, self.inner.read_file(path))
    }
    fn read_directory(&self, path: &str) -> Result<Vec<String>, Errno> {
        self.inner.read_directory(path)
    }
}

/// A process over a board whose files are shown so.
fn attached(inner: &Arc<VirtualGpu>, reads: Reads) -> Arc<Attachment> {
    Attachment::over(Arc::new(Seam { inner: inner.clone(), refused: None, reads })).unwrap()
}

#[test]
fn a_render_node_without_permission_says_what_to_do() {
    let inner = VirtualGpu::new(Config::default()).unwrap();
    let refused = Some(("/dev/dri/renderD128", Errno::EACCES));
    let seam = Seam { inner: inner.clone(), refused, reads: |_, read| read };
    let process = Attachment::over(Arc::new(seam)).unwrap();
    let error = open_over(&process, &OpenOptions::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot open /dev/dri/renderD128: EACCES (13); add the user to the groups render and video, and log in again"
    );
    assert_eq!(inner.read_file(OBJECTS_PATH).unwrap(), b"");
}

/// The node exports a control stack that differs from the one its driver compares with. Older kernels export none.
#[test]
fn a_queue_that_is_refused_as_invalid_says_what_was_sent_and_what_is_exported() {
    let inner = VirtualGpu::new(Config { kernel: Some(KernelRelease::Newest), ..Config::default() }).unwrap();
    let process = attached(&inner, |_, read| {
        let shown = |bytes: Vec<u8>| {
            String::from_utf8_lossy(&bytes)
                .replace("ctl_stack_size 28672", "ctl_stack_size 32768")
                .into_bytes()
        };
        read.map(shown)
    });
    let error = open_over(&process, &small_ring()).unwrap_err();
    let OpenError::Device(DeviceError::Kmd(kmd)) = &error else { panic!("{error}") };
    assert_eq!(kmd.errno(), Some(Errno::EINVAL));
    let zrt_kmd::KmdError::QueueRefused(refusal) = kmd else { panic!("{error}") };
    let request = &refusal.request;
    let text = error.to_string();
    let addresses = [
        request.ring_va,
        request.write_pointer_va,
        request.read_pointer_va,
        request.eop_va,
        request.save_area_va,
    ];
    for address in addresses {
        assert!(address.0 != 0 && text.contains(&address.to_string()), "{address} in {text}");
    }
    for part in [
        "CREATE_QUEUE failed with EINVAL (22)",
        " + 4096 B, pointer page of 4096 B with ",
        " + 30765056 B, cwsr_size 30699520, ctl_stack_size 32768; node 1 exports cwsr_size 30699520, ctl_stack_size 32768, \
         simd_count 128, simd_per_cu 2,",
        "ctl_stack_size is exported as 32768 and computed as 28672",
        "echo 'file kfd_queue.c +p' > /sys/kernel/debug/dynamic_debug/control",
        "dmesg",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    // What was allocated for it is released; the signal page belongs to the process.
    assert_eq!(objects(&inner).lines().filter(|line| line.starts_with("object ")).count(), 1);
}

/// Whether a path is of a file in which the virtual driver reports on itself.
fn is_report(path: &str) -> bool {
    [COUNTERS_PATH, FAULTS_PATH, FINDINGS_PATH, KERNEL_PATH, PROFILE_PATH, WAVES_PATH].contains(&path)
}

/// The options are those of a device whose clock would count work if it were the virtual one.
#[test]
fn a_driver_that_shows_no_report_is_taken_for_a_cards() {
    let inner = VirtualGpu::new(Config::default()).unwrap();
    let hidden: [Reads; 2] = [
        |path, read| if is_report(path) { Err(Errno::ENOENT) } else { read },
        |path, read| if is_report(path) { Err(Errno::EACCES) } else { read },
    ];
    for reads in hidden {
        let options = untested(&with_virtual(VirtualOptions { check: true, ..VirtualOptions::default() }));
        let process = attached(&inner, reads);
        let mut device = open_over(&process, &options).unwrap();
        assert_eq!((device.name(), device.info().has_real_clock), ("Radeon R9700 (gfx1201)", true));
        assert_eq!((device.is_virtual(), device.virtual_kernel(), device.profile()), (false, None, None));
        let (graph, _kernel, _parameters) = one_dispatch(&mut device, ENDLESS, GpuVa(0), 1);
        let ticket = device.submit(&graph).unwrap();
        let diagnosis = stopped(device.wait(ticket, Duration::from_millis(20)));
        assert!(diagnosis.waves.is_empty() && diagnosis.device_log.is_empty(), "{diagnosis}");
        assert_eq!((device.findings().unwrap(), device.faults()), (Vec::new(), Vec::new()));
        assert!(device.waves().unwrap().is_empty());
        assert_eq!(device.counters().unwrap().wave_instructions, None);
        drop(device);
        drop(process);
        inner.replace_process();
    }
}

#[test]
fn a_report_that_cannot_be_read_is_an_error() {
    let inner = VirtualGpu::new(Config::default()).unwrap();
    let process =
        attached(
            &inner,
            |path, read| {
                if is_report(path) && path != KERNEL_PATH { Err(Errno::EIO) } else { read }
            },
        );
    let device = open_over(&process, &untested(&small_ring())).unwrap();
    let text = |error: DeviceError| error.to_string();
    let refused = |path: &str| format!("cannot read the device's own account from {path}: EIO (5)");
    assert_eq!(device.findings().map_err(text), Err(refused(FINDINGS_PATH)));
    assert_eq!(device.waves().map_err(text).err(), Some(refused(WAVES_PATH)));
    assert_eq!(device.counters().map_err(text).err(), Some(refused(COUNTERS_PATH)));
    assert_eq!((device.faults(), device.profile(), device.is_virtual()), (Vec::new(), None, true));
}

#[test]
fn the_virtual_device_says_which_kernel_it_follows_and_what_it_counts() {
    for kernel in KernelRelease::ALL {
        for profile in [false, true] {
            let virtual_device =
                VirtualOptions { kernel: Some(kernel), profile, ..VirtualOptions::default() };
            let device = open(DeviceChoice::Virtual, &untested(&with_virtual(virtual_device))).unwrap();
            assert_eq!(device.virtual_kernel().as_deref(), Some(kernel.name()));
            assert_eq!(device.profile().is_some_and(|text| text.starts_with('{')), profile, "{kernel}");
        }
    }
}

/// A device that runs one wave after another has a clock that counts its work.
#[test]
fn a_clock_is_real_if_waves_run_as_the_host_lets_them() {
    let none = VirtualOptions::default();
    for (virtual_device, is_real) in [
        (none, true),
        (VirtualOptions { threads: Some(1), trusts_compilers: true, ..none }, true),
        (VirtualOptions { scheduler_seed: Some(1), ..none }, false),
        (VirtualOptions { check: true, ..none }, false),
        (VirtualOptions { profile: true, ..none }, false),
    ] {
        let device = open(DeviceChoice::Virtual, &untested(&with_virtual(virtual_device))).unwrap();
        assert_eq!(device.info().has_real_clock, is_real, "{virtual_device:?}");
    }
}

#[test]
fn a_device_is_opened_with_the_memory_and_the_ring_that_are_asked_for() {
    for (gtt_only, kind) in [(false, MemoryKind::VramPublic), (true, MemoryKind::Gtt)] {
        let options = OpenOptions { gtt_only, ..untested(&small_ring()) };
        let mut device = open(DeviceChoice::Virtual, &options).unwrap();
        assert_eq!((device.info().gtt_only, device.info().ring_bytes), (gtt_only, ByteLen(4096)));
        assert_eq!(device.allocate(Heap::HostVisible, ByteLen(64), "any").unwrap().kind(), kind);
    }
}

/// What the environment is read from: words with and without what identifies a machine, long and empty ones.
fn shown(path: &str, read: Result<Vec<u8>, Errno>) -> Result<Vec<u8>, Errno> {
    let text = match path {
        "/proc/sys/kernel/osrelease" => "6.17.0-rc1+x_y~z/\u{e9}(\"#: second\n",
        "/sys/class/drm/renderD128/device/fw_version/mec_fw_version" => "0x00000bc2\n",
        "/sys/class/drm/renderD128/device/fw_version/vcn_fw_version" => {
            "0123456789012345678901234567890123456789012345678901234567890123456789"
        }
        "/sys/module/amdgpu/parameters/mes" => " -1\n",
        "/sys/module/amdgpu/parameters/sched_policy" => " \n",
        _ if path.starts_with("/sys/class/drm/") || path.starts_with("/sys/module/") => {
            return Err(Errno::ENOENT);
        }
        _ => return read,
    };
    Ok(text.into())
}

/// The numbers are those of the captured board.
#[test]
fn the_environment_names_parts_and_versions_and_no_machine() {
    let config =
        Config { kernel: Some(KernelRelease::Newest), vram_bytes: Some(1 << 32), ..Config::default() };
    let inner = VirtualGpu::new(config).unwrap();
    let device = open_over(&attached(&inner, shown), &untested(&small_ring())).unwrap();
    let named =
        |words: &[(&str, &str)]| words.iter().map(|(name, word)| ((*name).into(), (*word).into())).collect();
    let topology = [
        ("compute_units", 64),
        ("engine_clock_mhz", 2350),
        ("has_large_bar", 1),
        ("kfd_version_major", 1),
        ("kfd_version_minor", u64::from(KernelRelease::Newest.kfd_minor())),
        ("pci_device", 0x7551),
        ("pci_vendor", 0x1002),
        ("ring_bytes", 4096),
        ("shader_engines", 4),
        ("vram_bytes", 1 << 32),
    ];
    let expected = probe::Environment {
        device: "Virtual R9700 (gfx1201)".into(),
        is_virtual: true,
        kernel: "6.17.0-rc1+x_y~z".into(),
        firmware: named(&[
            ("mec_fw_version", "0x00000bc2"),
            ("mec_of_topology", "3010"),
            ("vcn_fw_version", "0123456789012345678901234567890123456789012345678901234567890123"),
        ]),
        driver_options: named(&[("mes", "-1")]),
        topology: topology.into_iter().map(|(name, value)| (name.into(), value)).collect(),
    };
    assert_eq!(environment(&device), expected);
}
