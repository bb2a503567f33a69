//! A small scripted driver for the error paths of this crate. The virtual device is the realistic counterpart for
//! tests.
//!
//! Contract: every request succeeds with plausible answers unless the script says otherwise; every call is logged
//! in order, so that tests can check what was torn down and when. All mappings share the same bytes.

use crate::bindings::kfd::*;
use crate::errno::Errno;
use crate::syscalls::{Fd, Mapping, MemoryFile, Protection, Reservation, Syscalls, UserPointer};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, OnceLock};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// gpu_id of the scripted GPU.
pub(crate) const GPU_ID: u32 = 51_234;
/// gpu_id of a second GPU, for what a process has only once over all of its GPUs.
pub(crate) const OTHER_GPU_ID: u32 = 51_235;

type FileAnswers = Vec<Result<Vec<u8>, Errno>>;

#[derive(Default)]
struct State {
    files: BTreeMap<String, FileAnswers>,
    log: Vec<String>,
    /// Request name, how many times it still succeeds, then its permanent error.
    failures: Vec<(&'static str, usize, Errno)>,
    next_fd: i32,
    next_handle: u64,
    next_event: u32,
    payloads: Vec<kfd_event_data_plain>,
    allocations: Vec<(u64, u64)>,
    mappings: Vec<(Fd, u64, usize)>,
    queue: Option<kfd_ioctl_create_queue_args>,
}

/// See the module's documentation.
pub(crate) struct ScriptedSyscalls {
    state: Mutex<State>,
    /// Made by the first mapping.
    memory: OnceLock<MemoryFile>,
    version: (u32, u32),
    doorbell_offset: u64,
    aperture: (u64, u64),
    maps_on_device: bool,
    place: Option<Reservation>,
}

/// What CREATE_QUEUE answers.
pub(crate) const QUEUE_ID: u32 = 41;
/// What AVAILABLE_MEMORY answers for the GPU.
pub(crate) const AVAILABLE_BYTES: u64 = 31 << 30;

impl ScriptedSyscalls {
    pub(crate) fn new() -> ScriptedSyscalls {
        ScriptedSyscalls {
            state: Mutex::new(State { next_fd: 3, next_handle: 1, next_event: 1, ..State::default() }),
            memory: OnceLock::new(),
            version: (1, 17),
            doorbell_offset: 3 << 62 | u64::from(GPU_ID) << 46 | 0x10,
            aperture: (0x100_0000, (1 << 47) - 1),
            maps_on_device: true,
            place: None,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn file(self, path: &str, text: &str) -> ScriptedSyscalls {
        self.file_sequence(path, &[text])
    }

    /// Successive reads return successive texts; the last one stays.
    pub(crate) fn file_sequence(self, path: &str, texts: &[&str]) -> ScriptedSyscalls {
        let answers = texts.iter().map(|text| Ok(text.as_bytes().to_vec())).collect();
        self.state().files.insert(path.into(), answers);
        self
    }

    pub(crate) fn file_error(self, path: &str, errno: Errno) -> ScriptedSyscalls {
        self.state().files.insert(path.into(), vec![Err(errno)]);
        self
    }

    /// After `successes` calls, `request` fails with `errno`.
    pub(crate) fn failing(self, request: &'static str, successes: usize, errno: Errno) -> ScriptedSyscalls {
        self.state().failures.push((request, successes, errno));
        self
    }

    pub(crate) fn version(mut self, major: u32, minor: u32) -> ScriptedSyscalls {
        self.version = (major, minor);
        self
    }

    pub(crate) fn doorbell_offset(mut self, offset: u64) -> ScriptedSyscalls {
        self.doorbell_offset = offset;
        self
    }

    pub(crate) fn aperture(mut self, base: u64, limit: u64) -> ScriptedSyscalls {
        self.aperture = (base, limit);
        self
    }

    /// MAP succeeds without mapping anything.
    pub(crate) fn mapping_on_no_device(mut self) -> ScriptedSyscalls {
        self.maps_on_device = false;
        self
    }

    /// All address space is this.
    pub(crate) fn reserving(mut self, place: Reservation) -> ScriptedSyscalls {
        self.place = Some(place);
        self
    }

    /// What WAIT_EVENTS leaves in the payloads, by position.
    pub(crate) fn payloads(self, payloads: Vec<kfd_event_data_plain>) -> ScriptedSyscalls {
        self.state().payloads = payloads;
        self
    }

    /// The calls so far.
    pub(crate) fn log(&self) -> Vec<String> {
        self.state().log.clone()
    }

    /// Address and length of each memory object so far.
    pub(crate) fn allocations(&self) -> Vec<(u64, u64)> {
        self.state().allocations.clone()
    }

    /// File, offset and length of each mapping so far.
    pub(crate) fn mappings(&self) -> Vec<(Fd, u64, usize)> {
        self.state().mappings.clone()
    }

    /// The last CREATE_QUEUE.
    pub(crate) fn queue(&self) -> kfd_ioctl_create_queue_args {
        self.state().queue.unwrap()
    }

    /// Logs `entry`, and fails if the script says so for `name`.
    fn step(&self, name: &str, entry: String) -> Result<(), Errno> {
        let mut state = self.state();
        let failing = state.failures.iter_mut().find(|(request, _, _)| *request == name);
        let outcome = match failing {
            Some((_, 0, errno)) => Err(*errno),
            Some((_, successes, _)) => {
                *successes -= 1;
                Ok(())
            }
            None => Ok(()),
        };
        state.log.push(match outcome {
            Ok(()) => entry,
            Err(errno) => format!("{entry} -> {errno}"),
        });
        outcome
    }
}

fn read<T: FromBytes + IntoBytes + FromZeros>(argument: UserPointer<'_>) -> Result<T, Errno> {
    let mut structure = T::new_zeroed();
    argument.read(structure.as_mut_bytes())?;
    Ok(structure)
}

fn name_of(number: u32) -> &'static str {
    match number {
        0x01 => "GET_VERSION",
        0x02 => "CREATE_QUEUE",
        0x03 => "DESTROY_QUEUE",
        0x08 => "CREATE_EVENT",
        0x09 => "DESTROY_EVENT",
        0x0c => "WAIT_EVENTS",
        0x14 => "APERTURES",
        0x15 => "ACQUIRE_VM",
        0x16 => "ALLOC",
        0x17 => "FREE",
        0x18 => "MAP",
        0x19 => "UNMAP",
        0x23 => "AVAILABLE",
        0x25 => "RUNTIME_ENABLE",
        _ => "UNKNOWN",
    }
}

impl Syscalls for ScriptedSyscalls {
    fn open(&self, path: &str) -> Result<Fd, Errno> {
        self.step("open", format!("open {path}"))?;
        let mut state = self.state();
        state.next_fd += 1;
        Ok(Fd(state.next_fd))
    }

    fn close(&self, fd: Fd) -> Result<(), Errno> {
        self.step("close", format!("close {}", fd.0))
    }

    fn ioctl(&self, _fd: Fd, request: u32, argument: UserPointer<'_>) -> Result<i32, Errno> {
        let name = name_of(request & 0xff);
        match name {
            "GET_VERSION" => {
                self.step(name, name.into())?;
                let (major_version, minor_version) = self.version;
                argument.write(kfd_ioctl_get_version_args { major_version, minor_version }.as_mut_bytes())?;
            }
            "APERTURES" => {
                self.step(name, name.into())?;
                let mut structure: kfd_ioctl_get_process_apertures_new_args = read(argument)?;
                if structure.num_of_nodes > 0 {
                    let (gpuvm_base, gpuvm_limit) = self.aperture;
                    let mut entries = [GPU_ID, OTHER_GPU_ID].map(|gpu_id| kfd_process_device_apertures {
                        gpuvm_base,
                        gpuvm_limit,
                        gpu_id,
                        ..Default::default()
                    });
                    argument
                        .nested(structure.kfd_process_device_apertures_ptr)
                        .write(entries.as_mut_bytes())?;
                }
                structure.num_of_nodes = 2;
                argument.write(structure.as_mut_bytes())?;
            }
            "ALLOC" => {
                let mut structure: kfd_ioctl_alloc_memory_of_gpu_args = read(argument)?;
                self.step(name, format!("ALLOC {:#x} flags {:#x}", structure.size, structure.flags))?;
                let mut state = self.state();
                state.allocations.push((structure.va_addr, structure.size));
                structure.handle = state.next_handle;
                structure.mmap_offset = state.next_handle << 12;
                state.next_handle += 1;
                argument.write(structure.as_mut_bytes())?;
            }
            "FREE" => {
                let structure: kfd_ioctl_free_memory_of_gpu_args = read(argument)?;
                self.step(name, format!("FREE {}", structure.handle))?;
            }
            "MAP" | "UNMAP" => {
                let mut structure: kfd_ioctl_map_memory_to_gpu_args = read(argument)?;
                self.step(name, format!("{name} {}", structure.handle))?;
                let mut device = [0; 4];
                argument.nested(structure.device_ids_array_ptr).read(&mut device)?;
                let is_known = [GPU_ID, OTHER_GPU_ID].contains(&u32::from_ne_bytes(device));
                structure.n_success = u32::from(self.maps_on_device && is_known);
                argument.write(structure.as_mut_bytes())?;
            }
            "CREATE_EVENT" => {
                let mut structure: kfd_ioctl_create_event_args = read(argument)?;
                self.step(name, format!("CREATE_EVENT type {}", structure.event_type))?;
                let mut state = self.state();
                structure.event_id = state.next_event;
                structure.event_slot_index = state.next_event;
                state.next_event += 1;
                argument.write(structure.as_mut_bytes())?;
            }
            "DESTROY_EVENT" => {
                let structure: kfd_ioctl_destroy_event_args = read(argument)?;
                self.step(name, format!("DESTROY_EVENT {}", structure.event_id))?;
            }
            "WAIT_EVENTS" => {
                let mut structure: kfd_ioctl_wait_events_args = read(argument)?;
                self.step(name, format!("WAIT_EVENTS {} ms", structure.timeout))?;
                let state = self.state();
                if state.payloads.is_empty() {
                    structure.wait_result = KFD_IOC_WAIT_RESULT_TIMEOUT;
                } else {
                    argument.nested(structure.events_ptr).write(state.payloads.as_slice().as_bytes())?;
                }
                argument.write(structure.as_mut_bytes())?;
            }
            "CREATE_QUEUE" => {
                let mut structure: kfd_ioctl_create_queue_args = read(argument)?;
                self.step(name, format!("CREATE_QUEUE {}", structure.ring_size))?;
                self.state().queue = Some(structure);
                structure.queue_id = QUEUE_ID;
                structure.doorbell_offset = self.doorbell_offset;
                argument.write(structure.as_mut_bytes())?;
            }
            "AVAILABLE" => {
                self.step(name, name.into())?;
                let mut structure: kfd_ioctl_get_available_memory_args = read(argument)?;
                structure.available = if structure.gpu_id == GPU_ID { AVAILABLE_BYTES } else { 0 };
                argument.write(structure.as_mut_bytes())?;
            }
            other => self.step(other, other.into())?,
        }
        Ok(0)
    }

    fn reserve(&self, len: usize, alignment: usize) -> Result<Reservation, Errno> {
        self.step("reserve", format!("reserve {len:#x}"))?;
        match &self.place {
            Some(place) => Ok(place.clone()),
            None => Reservation::new(len, alignment),
        }
    }

    fn map(
        &self,
        fd: Fd,
        offset: u64,
        len: usize,
        protection: Protection,
        place: Option<(&Reservation, usize)>,
    ) -> Result<Mapping, Errno> {
        let name = match offset >> 46 {
            0 => "map object",
            type_and_gpu if type_and_gpu >> 16 == 3 => "map doorbells",
            _ => "map remap page",
        };
        self.step(name, name.into())?;
        self.state().mappings.push((fd, offset, len));
        let memory = self.memory.get_or_init(|| MemoryFile::new("scripted", 1 << 30).unwrap());
        memory.map(0, len, protection, place)
    }

    fn read_file(&self, path: &str) -> Result<Vec<u8>, Errno> {
        let mut state = self.state();
        let answers = state.files.get_mut(path).ok_or(Errno::ENOENT)?;
        if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() }
    }

    fn read_directory(&self, path: &str) -> Result<Vec<String>, Errno> {
        let prefix = format!("{path}/");
        let state = self.state();
        let below = state.files.keys().filter_map(|file| file.strip_prefix(&prefix));
        let names: BTreeSet<String> =
            below.filter_map(|rest| rest.split('/').next()).map(String::from).collect();
        if names.is_empty() { Err(Errno::ENOENT) } else { Ok(names.into_iter().collect()) }
    }
}

/// A driver that is a function of file, request and pointer. It has neither files nor memory.
pub(crate) struct Driver<F>(pub(crate) F);

impl<F> Syscalls for Driver<F>
where
    F: Fn(Fd, u32, UserPointer<'_>) -> Result<i32, Errno> + Send + Sync,
{
    fn open(&self, _: &str) -> Result<Fd, Errno> {
        Err(Errno::ENOENT)
    }

    fn close(&self, _: Fd) -> Result<(), Errno> {
        Err(Errno::EBADF)
    }

    fn ioctl(&self, fd: Fd, request: u32, argument: UserPointer<'_>) -> Result<i32, Errno> {
        (self.0)(fd, request, argument)
    }

    fn reserve(&self, _: usize, _: usize) -> Result<Reservation, Errno> {
        Err(Errno::ENOMEM)
    }

    fn map(
        &self,
        _: Fd,
        _: u64,
        _: usize,
        _: Protection,
        _: Option<(&Reservation, usize)>,
    ) -> Result<Mapping, Errno> {
        Err(Errno::ENOMEM)
    }

    fn read_file(&self, _: &str) -> Result<Vec<u8>, Errno> {
        Err(Errno::ENOENT)
    }

    fn read_directory(&self, _: &str) -> Result<Vec<String>, Errno> {
        Err(Errno::ENOENT)
    }
}
