//! The virtual driver: files, requests, mappings, as the kernel would serve them.
//!
//! Contract: [`VirtualGpu`] is [`Syscalls`] for one process and one board. It parses raw bytes; nothing typed
//! crosses the seam. The process ends when the board is dropped, or by [`VirtualGpu::replace_process`]; closing
//! files does not end it. Reading order: `requests` (numbers and offsets), `board` (the board's values), `ioctl`
//! (bytes to typed requests), `process` (the requests), `objects`, `fill`, `user_memory`, `queues`, `events`
//! (behaviour), `topology`, `device_files` (sysfs).

mod arguments;
pub mod board;
mod device_files;
pub(crate) mod events;
mod files;
pub mod fill;
mod ioctl;
mod objects;
mod process;
mod queues;
mod render_node;
mod requests;
mod sizes;
mod topology;
pub(crate) mod user_memory;

use crate::check::debug::Debugger;
use crate::check::memory::AllocationUse;
use crate::command_processor::CommandProcessor;
use crate::command_processor::hardware::Hardware;
use crate::command_processor::injection::FaultInjection;
use crate::config::{Config, Inspection, KernelRelease};
use crate::kernel::events::Events;
use crate::kernel::files::FileTree;
use crate::kernel::objects::{MemoryRules, Usage};
use crate::kernel::process::{FileSerial, Process};
use crate::kernel::render_node::RenderFacts;
use crate::kernel::sizes::MemorySizes;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zrt_kmd::{Errno, Fd, Mapping, Protection, Reservation, Syscalls, UserPointer};

/// The device's counters (virtual only): `name value` lines.
pub const COUNTERS_PATH: &str = "/sys/kernel/debug/zrt-vgpu/counters";
/// The log of faults, hangs and breaches of the rules (virtual only): a line each.
pub const FAULTS_PATH: &str = "/sys/kernel/debug/zrt-vgpu/faults";
/// Findings of the checking mode (virtual only): a JSON object per line; empty with the checking mode off.
pub const FINDINGS_PATH: &str = "/sys/kernel/debug/zrt-vgpu/findings";
/// Positions of the waves that have not ended (virtual only): a JSON object per line. Reading it pauses the device.
pub const WAVES_PATH: &str = "/sys/kernel/debug/zrt-vgpu/waves";
/// The profile of the waves (virtual only): a JSON object; empty with the profile off.
pub const PROFILE_PATH: &str = "/sys/kernel/debug/zrt-vgpu/profile";
/// The release that the virtual driver emulates (virtual only): the name of a [`KernelRelease`].
pub const KERNEL_PATH: &str = "/sys/kernel/debug/zrt-vgpu/kernel";
/// Live objects in the virtual driver (virtual only). Anything that a process has not released by a call stays
/// until it ends.
pub const OBJECTS_PATH: &str = "/sys/kernel/debug/zrt-vgpu/objects";

/// First descriptor number: far from those of the real system, so that a mix-up is `EBADF`.
const FIRST_FD: i32 = 1 << 20;
/// Most files open at a time.
const FILES_MAX: usize = 1024;

/// The virtual R9700 behind the kernel's interface.
pub struct VirtualGpu {
    sizes: MemorySizes,
    kernel: KernelRelease,
    tree: FileTree,
    files: Mutex<OpenFiles>,
    process: Arc<Mutex<Process>>,
    usage: Arc<Usage>,
    hardware: Arc<Hardware>,
    processor: CommandProcessor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileKind {
    Kfd,
    Render,
}

#[derive(Clone, Copy, Debug)]
struct OpenFile {
    kind: FileKind,
    serial: FileSerial,
    /// A descriptor is not valid in another process (after fork).
    process_id: u32,
}

#[derive(Debug)]
struct OpenFiles {
    by_fd: BTreeMap<i32, OpenFile>,
    /// Numbers are never reused, so a second close is always detected.
    next_fd: i32,
    next_serial: u64,
}

impl VirtualGpu {
    /// Powers a board up. Fails if the system has no memory or threads for it, and with `EINVAL` if
    /// [`fill::FILL_VARIABLE`] holds no valid fill or [`Config::effective_kernel`] knows no such release.
    pub fn new(config: Config) -> Result<Arc<VirtualGpu>, Errno> {
        VirtualGpu::with_injection(config, FaultInjection::default())
    }

    /// Powers up a board with injected misbehaviour.
    pub fn with_injection(config: Config, injection: FaultInjection) -> Result<Arc<VirtualGpu>, Errno> {
        let sizes = MemorySizes::new(&config);
        let kernel = config.effective_kernel().map_err(|_| Errno::EINVAL)?;
        let hardware = Arc::new(Hardware::new(&config, injection)?);
        let usage = Arc::new(Usage::default());
        let rules = MemoryRules::new(&config, kernel)?;
        let process = Process::new(hardware.clone(), usage.clone(), rules, kernel)?;
        let process = Arc::new(Mutex::new(process));
        let mut tree = FileTree::default();
        add_files(&mut tree, sizes, kernel, &hardware, &usage, &process);
        let processor = CommandProcessor::start(hardware.clone())?;
        let files = Mutex::new(OpenFiles { by_fd: BTreeMap::new(), next_fd: FIRST_FD, next_serial: 1 });
        Ok(Arc::new(VirtualGpu { sizes, kernel, tree, files, process, usage, hardware, processor }))
    }

    /// Powers a board up with a debugger attached: see [`debug`](crate::check::debug).
    pub fn with_debugger(config: Config, debugger: Box<dyn Debugger>) -> Result<Arc<VirtualGpu>, Errno> {
        let inspection = Inspection { debug: true, ..config.inspection };
        let gpu = VirtualGpu::new(Config { inspection, ..config })?;
        if let Some(inspection) = gpu.hardware.inspection() {
            inspection.attach(debugger);
        }
        Ok(gpu)
    }

    /// Ends the process and starts another on the same board (virtual only: a real process calls `exit`). Its
    /// descriptors are closed, its queues stopped, its events and memory gone. Memory that this host process still
    /// has mapped stays readable, but no longer belongs to the board.
    pub fn replace_process(&self) {
        self.files().by_fd.clear();
        self.process().release(&self.processor);
    }

    /// Names a range of device memory that shaders may access, for the checking mode. Once one is named, they may
    /// access only named ones. For tools that know what memory a kernel was given.
    pub fn watch_region(&self, name: &str, va: u64, len: u64) {
        if let Some(inspection) = self.hardware.inspection() {
            inspection.add_region(name, va, len, AllocationUse::Written);
        }
    }

    /// The same for a range that shaders may read but not write: code, constants, arguments.
    pub fn watch_read_only_region(&self, name: &str, va: u64, len: u64) {
        if let Some(inspection) = self.hardware.inspection() {
            inspection.add_region(name, va, len, AllocationUse::ReadOnly);
        }
    }

    /// The same for a range of zeros that counts as unwritten until a shader, a packet, or the host writes another
    /// value there.
    pub fn watch_unwritten_region(&self, name: &str, va: u64, len: u64) {
        if let Some(inspection) = self.hardware.inspection() {
            inspection.add_region(name, va, len, AllocationUse::Unwritten);
        }
    }

    /// Names private memory, which shaders may access through its aperture but not by a global address.
    pub fn watch_private_region(&self, name: &str, va: u64, len: u64) {
        if let Some(inspection) = self.hardware.inspection() {
            inspection.add_region(name, va, len, AllocationUse::Private);
        }
    }

    /// Sets the bytes of private memory that a lane of the kernel at `code_va` declares, for the checking mode.
    /// Launches allocate in larger units; anything beyond the declared bytes is out of bounds.
    pub fn watch_private(&self, code_va: u64, bytes: u32) {
        if let Some(inspection) = self.hardware.inspection() {
            inspection.declare_private(code_va, bytes);
        }
    }

    /// Sets the bytes of LDS that the kernel at `code_va` declares, for the checking mode. Launches allocate in
    /// units of 512 bytes (hardware reference §5); anything beyond the declared bytes is out of bounds.
    pub fn watch_lds(&self, code_va: u64, bytes: u32) {
        if let Some(inspection) = self.hardware.inspection() {
            inspection.declare_lds(code_va, bytes);
        }
    }

    /// Sets whether the host changes nothing that waves read until they have ended, for the checking mode. If so,
    /// waves that repeat the same steps never end, which is a finding.
    pub fn silence_host(&self, is_silent: bool) {
        if let Some(inspection) = self.hardware.inspection() {
            inspection.silence_host(is_silent);
        }
    }

    /// Bytes that lanes have loaded from each named range; empty unless the checking mode is on.
    pub fn region_read_bytes(&self) -> Vec<(String, u64)> {
        self.hardware.inspection().map_or_else(Vec::new, |inspection| inspection.region_read_bytes())
    }

    fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn files(&self) -> MutexGuard<'_, OpenFiles> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn events(&self) -> &Events {
        self.hardware.events()
    }

    fn hardware(&self) -> &Hardware {
        &self.hardware
    }

    fn processor(&self) -> &CommandProcessor {
        &self.processor
    }

    fn file(&self, fd: Fd) -> Result<OpenFile, Errno> {
        let file = self.files().by_fd.get(&fd.0).copied().ok_or(Errno::EBADF)?;
        if file.process_id == std::process::id() { Ok(file) } else { Err(Errno::EBADF) }
    }

    /// The render node file for a descriptor in a request.
    fn render_file(&self, fd: u32) -> Option<FileSerial> {
        let file = self.file(Fd(i32::try_from(fd).ok()?)).ok()?;
        (file.kind == FileKind::Render).then_some(file.serial)
    }

    fn render_facts(&self) -> RenderFacts {
        let (vram_used_bytes, gtt_used_bytes) = self.usage.bytes();
        let last_fault = self.hardware.last_page_fault();
        RenderFacts {
            vram_used_bytes,
            gtt_used_bytes,
            sizes: self.sizes,
            kernel: self.kernel,
            gpu_clock: self.hardware.gpu_clock(),
            last_fault_va: last_fault.map_or(0, |fault| fault.page_va()),
            last_fault_status: u32::from(last_fault.is_some()),
            vram_lost_count: self.hardware.reset_count(),
        }
    }

    /// One request on the render node.
    fn render_ioctl(&self, request: u32, pointer: UserPointer<'_>) -> Result<i32, Errno> {
        render_node::answer(request, pointer, &self.render_facts()).map(|()| 0)
    }
}

impl Drop for VirtualGpu {
    /// Ends the process.
    fn drop(&mut self) {
        self.process().release(&self.processor);
    }
}

fn add_files(
    tree: &mut FileTree,
    sizes: MemorySizes,
    kernel: KernelRelease,
    hardware: &Arc<Hardware>,
    usage: &Arc<Usage>,
    process: &Arc<Mutex<Process>>,
) {
    let of_topology = usage.clone();
    topology::add(tree, sizes, kernel, move || of_topology.bytes().0);
    let of_device = usage.clone();
    device_files::add(tree, sizes, move || of_device.bytes());
    tree.add(KERNEL_PATH, format!("{kernel}\n"));
    let counted = hardware.clone();
    tree.add_made(COUNTERS_PATH, move || counted.counters_text());
    let faulted = hardware.clone();
    tree.add_made(FAULTS_PATH, move || faulted.faults().text());
    let inspected = hardware.clone();
    tree.add_made(FINDINGS_PATH, move || {
        inspected.inspection().map_or_else(String::new, |inspection| inspection.findings_text())
    });
    let examined = hardware.clone();
    tree.add_made(WAVES_PATH, move || examined.waves_text());
    let inspected = hardware.clone();
    tree.add_made(PROFILE_PATH, move || {
        inspected.inspection().map_or_else(String::new, |inspection| inspection.profile_text())
    });
    let described = process.clone();
    tree.add_made(OBJECTS_PATH, move || described.lock().unwrap_or_else(PoisonError::into_inner).describe());
}

impl Syscalls for VirtualGpu {
    fn open(&self, path: &str) -> Result<Fd, Errno> {
        let kind = match path {
            board::KFD_PATH => FileKind::Kfd,
            board::RENDER_PATH => FileKind::Render,
            _ => return Err(Errno::ENOENT),
        };
        let mut files = self.files();
        if files.by_fd.len() >= FILES_MAX {
            return Err(Errno::EMFILE);
        }
        let (fd, serial) = (files.next_fd, files.next_serial);
        files.next_fd = fd.checked_add(1).ok_or(Errno::EMFILE)?;
        files.next_serial += 1;
        let file = OpenFile { kind, serial: FileSerial(serial), process_id: std::process::id() };
        files.by_fd.insert(fd, file);
        Ok(Fd(fd))
    }

    fn close(&self, fd: Fd) -> Result<(), Errno> {
        // Nothing else: the driver's state belongs to the process, not to the file.
        self.files().by_fd.remove(&fd.0).map(|_| ()).ok_or(Errno::EBADF)
    }

    fn ioctl(&self, fd: Fd, request: u32, argument: UserPointer<'_>) -> Result<i32, Errno> {
        match self.file(fd)?.kind {
            FileKind::Kfd => ioctl::kfd(self, request, argument),
            FileKind::Render => self.render_ioctl(request, argument),
        }
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
        if offset % board::PAGE_BYTES != 0 || len == 0 {
            return Err(Errno::EINVAL);
        }
        match file.kind {
            FileKind::Kfd => self.process().map_kfd(offset, len, protection, place),
            FileKind::Render => self.process().map_render(file.serial, offset, len, protection, place),
        }
    }

    fn read_file(&self, path: &str) -> Result<Vec<u8>, Errno> {
        self.tree.read(path)
    }

    fn read_directory(&self, path: &str) -> Result<Vec<String>, Errno> {
        self.tree.list(path)
    }
}

impl std::fmt::Debug for VirtualGpu {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("VirtualGpu")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::objects::AllocRequest;
    use crate::kernel::process::MapRequest;
    use crate::kernel::requests::{alloc, event};
    use crate::memory::Rights;
    use zrt_kmd::syscalls::ioctl_bytes;

    /// What a child has after `fork`, or a process to which a descriptor was sent.
    #[test]
    fn a_descriptor_that_another_process_opened_is_none() {
        let gpu = VirtualGpu::new(Config::default()).unwrap();
        let [kfd, render] = [board::KFD_PATH, board::RENDER_PATH].map(|path| gpu.open(path).unwrap());
        let used = || {
            let mut acquire = [render.0.to_le_bytes(), board::GPU_ID.to_le_bytes()].concat();
            [
                ioctl_bytes(&*gpu, kfd, 0x8008_4B01, &mut [0; 8], &mut []),
                ioctl_bytes(&*gpu, render, 0xC040_6400, &mut [0; 64], &mut []),
                ioctl_bytes(&*gpu, kfd, 0x4008_4B15, &mut acquire, &mut []),
            ]
        };
        let opened_elsewhere = |fd: Fd| gpu.files().by_fd.get_mut(&fd.0).unwrap().process_id ^= 1;
        let bad = Err(Errno::EBADF);
        assert_eq!(used(), [Ok(0); 3]);
        opened_elsewhere(render);
        assert_eq!(used(), [Ok(0), bad, Err(Errno::EINVAL)]);
        opened_elsewhere(kfd);
        assert_eq!(used(), [bad; 3]);
        assert_eq!(gpu.map(kfd, 0, 4096, Protection::Read, None).err(), Some(Errno::EBADF));
    }

    /// Whoever still has a part of the board finds that the process has ended.
    #[test]
    fn a_board_that_is_dropped_ends_its_process() {
        const VA: u64 = 0x20_0000_0000;
        let gpu = VirtualGpu::new(Config::default()).unwrap();
        let hardware = gpu.hardware.clone();
        let render = gpu.open(board::RENDER_PATH).unwrap();
        let file = gpu.render_file(render.0 as u32);
        let mut process = gpu.process();
        process.acquire_vm(file, board::GPU_ID).unwrap();
        let request = AllocRequest {
            va: VA,
            size: 4096,
            flags: alloc::FLAG_GTT | alloc::FLAG_WRITABLE,
            user_address: 0,
        };
        let (handle, _) = process.alloc(board::GPU_ID, &request).unwrap();
        let mut map = MapRequest { handle, device_count: 1, success_count: 0 };
        process.map(&mut map, &[board::GPU_ID]).unwrap();
        process.ensure_event_page().unwrap();
        drop(process);
        hardware.events().create(event::TYPE_SIGNAL, false).unwrap();
        let state = || {
            let is_mapped = hardware.memory().translate(VA, 4096, Rights::WRITE).is_ok();
            (is_mapped, hardware.events().count())
        };
        assert_eq!(state(), (true, 1));
        drop(gpu);
        assert_eq!(state(), (false, 0));
    }
}
