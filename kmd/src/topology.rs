//! The devices that the driver shows in sysfs.
//!
//! Contract: hardware reference §1.1–1.3. Files are untrusted bytes: parsing never panics and never allocates more
//! than the file's size. Unknown names are tolerated; a known name with a bad value is an error that says where.
//! Nodes hidden by a device cgroup (`EPERM`) are absent. A walk during which the topology changed is repeated.
//! Set-up only.

use crate::errno::Errno;
use crate::syscalls::Syscalls;

/// The folder in which the driver lists its devices (hardware reference §1.1).
pub const TOPOLOGY_ROOT: &str = "/sys/class/kfd/kfd/topology";
/// The only supported target: gfx1201 as major × 10000 + minor × 100 + stepping.
pub const GFX_TARGET_VERSION: u32 = 120_001;
/// Walks before we give up on a topology that keeps changing.
const WALKS_MAX: usize = 8;
/// Most nodes read.
const NODES_MAX: usize = 1024;
/// Most memory banks of one node.
const MEMORY_BANKS_MAX: usize = 64;
/// Sanity limit on SIMDs of one node: far above any chip, low enough that no size formula overflows.
const SIMD_COUNT_MAX: u32 = 1 << 16;

/// Why there is no usable device in sysfs.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// A file is not readable.
    #[error("cannot read {path}: {errno}; is the amdgpu driver loaded, with KFD support?")]
    Read {
        /// The file.
        path: String,
        /// The system's reason.
        errno: Errno,
    },
    /// A known value is not a number in its range.
    #[error("{path} line {line}: {name} is not a number that fits; report the file and the kernel version")]
    Value {
        /// The file.
        path: String,
        /// Line number from 1; 0 for a file that is a single number.
        line: usize,
        /// The property.
        name: &'static str,
    },
    /// A GPU node lacks a required property.
    #[error("{path} has no {name}: the kernel is too old or the file is not a GPU's")]
    Missing {
        /// The file.
        path: String,
        /// The property.
        name: &'static str,
    },
    /// A property has an impossible value.
    #[error("{path}: {name} is {value}, which no GPU has")]
    Impossible {
        /// The file.
        path: String,
        /// The property.
        name: &'static str,
        /// Its value.
        value: u64,
    },
    /// The topology changed during each walk.
    #[error(
        "the device topology kept changing during {WALKS_MAX} walks: try again when no GPU is being added"
    )]
    Unstable,
    /// No GPU is gfx1201.
    #[error(
        "no gfx1201 GPU among {gpus} GPU node(s) (targets found: {targets:?}): use --device virtual or a machine \
         with a Radeon AI PRO R9700 or RX 9070"
    )]
    NoDevice {
        /// GPU nodes seen.
        gpus: usize,
        /// Their targets.
        targets: Vec<u32>,
    },
}

/// One walk over the topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Changes when the topology does.
    pub generation: u64,
    /// GPU nodes, in the order of their numbers. CPU nodes are not kept.
    pub gpus: Vec<GpuNode>,
}

/// A GPU as the driver describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuNode {
    /// Number of its folder in the topology.
    pub node: u32,
    /// The id used in ioctls; never 0.
    pub gpu_id: u32,
    /// Short ASIC name; may be empty.
    pub name: String,
    /// The properties file.
    pub properties: GpuProperties,
    /// Its memory.
    pub memory_banks: Vec<MemoryBank>,
}

/// What the `properties` file of a GPU says (hardware reference §1.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuProperties {
    /// SIMD32 units that are enabled.
    pub simd_count: u32,
    /// SIMD32 units of one CU: 2.
    pub simd_per_cu: u32,
    /// Waves that one SIMD holds.
    pub max_waves_per_simd: u32,
    /// LDS of a workgroup in KiB.
    pub lds_size_kib: u32,
    /// Lanes of a wave: 32.
    pub wave_front_size: u32,
    /// Shader arrays in all.
    pub array_count: u32,
    /// Shader arrays of one shader engine.
    pub simd_arrays_per_engine: u32,
    /// Waves of one CU that may use scratch.
    pub max_slots_scratch_cu: u32,
    /// Major × 10000 + minor × 100 + stepping.
    pub gfx_target_version: u32,
    /// PCI vendor.
    pub vendor_id: u32,
    /// PCI device.
    pub device_id: u32,
    /// Bus << 8 | device and function.
    pub location_id: u32,
    /// PCI domain.
    pub domain: u32,
    /// The render node is `/dev/dri/renderD<this>`.
    pub drm_render_minor: u32,
    /// Compute dies; 1 if the kernel does not say.
    pub num_xcc: u32,
    /// Highest engine clock for compute, in MHz.
    pub max_engine_clk_fcompute_mhz: u32,
    /// MEC firmware version.
    pub fw_version: u32,
    /// Context save size per queue, if the kernel exports it.
    pub cwsr_bytes: Option<u32>,
    /// Size of its control stack, if the kernel exports it.
    pub control_stack_bytes: Option<u32>,
}

/// One memory of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBank {
    /// Its kind.
    pub heap: HeapKind,
    /// Its size.
    pub bytes: u64,
}

/// `heap_type` (hardware reference §1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeapKind {
    /// 0.
    System,
    /// 1: VRAM that the CPU can access.
    VramPublic,
    /// 2: VRAM that the CPU cannot access, or not entirely.
    VramPrivate,
    /// Anything else (GDS, LDS, scratch).
    Other(u32),
}

impl Topology {
    /// Walks the topology; repeats the walk if the topology changed meanwhile.
    pub fn read(syscalls: &dyn Syscalls) -> Result<Topology, TopologyError> {
        for _ in 0..WALKS_MAX {
            let before = read_generation(syscalls)?;
            let walk = read_nodes(syscalls);
            // A failed walk counts only if nothing changed: a removed node takes its files with it.
            if read_generation(syscalls)? == before {
                return Ok(Topology { generation: before, gpus: walk? });
            }
        }
        Err(TopologyError::Unstable)
    }

    /// The first supported GPU.
    pub fn first_supported(&self) -> Result<&GpuNode, TopologyError> {
        self.gpus.iter().find(|node| node.is_supported()).ok_or_else(|| TopologyError::NoDevice {
            gpus: self.gpus.len(),
            targets: self.gpus.iter().map(|node| node.properties.gfx_target_version).collect(),
        })
    }
}

impl GpuNode {
    /// True only for gfx1201: another stepping has another errata list.
    pub fn is_supported(&self) -> bool {
        self.properties.gfx_target_version == GFX_TARGET_VERSION
    }

    /// Compute units that are enabled, per compute die.
    pub fn compute_units(&self) -> u32 {
        self.properties.simd_count / self.properties.simd_per_cu / self.properties.num_xcc
    }

    /// VRAM in bytes. `local_mem_size` in the properties is always 0.
    pub fn vram_bytes(&self) -> u64 {
        let vram = |bank: &&MemoryBank| matches!(bank.heap, HeapKind::VramPublic | HeapKind::VramPrivate);
        self.memory_banks.iter().filter(vram).fold(0, |sum, bank| sum.saturating_add(bank.bytes))
    }

    /// True if the BAR covers all VRAM: a public heap and no private one (hardware reference §1.3).
    pub fn has_large_bar(&self) -> bool {
        let has = |heap| self.memory_banks.iter().any(|bank| bank.heap == heap);
        has(HeapKind::VramPublic) && !has(HeapKind::VramPrivate)
    }

    /// The file that owns the address space.
    pub fn render_node_path(&self) -> String {
        format!("/dev/dri/renderD{}", self.properties.drm_render_minor)
    }
}

impl GpuProperties {
    /// Parses a `properties` file; `path` is for the error only.
    pub fn parse(path: &str, bytes: &[u8]) -> Result<GpuProperties, TopologyError> {
        let mut properties = GpuProperties { num_xcc: 1, ..GpuProperties::default() };
        let mut seen = [false; 4];
        for (line, name, value) in lines(bytes) {
            let number =
                |name: &'static str| match parse_number(value).and_then(|wide| u32::try_from(wide).ok()) {
                    Some(number) => Ok(number),
                    None => Err(TopologyError::Value { path: path.into(), line, name }),
                };
            let field = match name {
                b"simd_count" => (&mut properties.simd_count, "simd_count"),
                b"simd_per_cu" => (&mut properties.simd_per_cu, "simd_per_cu"),
                b"max_waves_per_simd" => (&mut properties.max_waves_per_simd, "max_waves_per_simd"),
                b"lds_size_in_kb" => (&mut properties.lds_size_kib, "lds_size_in_kb"),
                b"wave_front_size" => (&mut properties.wave_front_size, "wave_front_size"),
                b"array_count" => (&mut properties.array_count, "array_count"),
                b"simd_arrays_per_engine" => {
                    (&mut properties.simd_arrays_per_engine, "simd_arrays_per_engine")
                }
                b"max_slots_scratch_cu" => (&mut properties.max_slots_scratch_cu, "max_slots_scratch_cu"),
                b"gfx_target_version" => (&mut properties.gfx_target_version, "gfx_target_version"),
                b"vendor_id" => (&mut properties.vendor_id, "vendor_id"),
                b"device_id" => (&mut properties.device_id, "device_id"),
                b"location_id" => (&mut properties.location_id, "location_id"),
                b"domain" => (&mut properties.domain, "domain"),
                b"drm_render_minor" => (&mut properties.drm_render_minor, "drm_render_minor"),
                b"num_xcc" => (&mut properties.num_xcc, "num_xcc"),
                b"max_engine_clk_fcompute" => {
                    (&mut properties.max_engine_clk_fcompute_mhz, "max_engine_clk_fcompute")
                }
                b"fw_version" => (&mut properties.fw_version, "fw_version"),
                b"cwsr_size" => (properties.cwsr_bytes.insert(0), "cwsr_size"),
                b"ctl_stack_size" => (properties.control_stack_bytes.insert(0), "ctl_stack_size"),
                _ => continue,
            };
            *field.0 = number(field.1)?;
            for (index, required) in REQUIRED.iter().enumerate() {
                seen[index] |= required.as_bytes() == name;
            }
        }
        if let Some(index) = seen.iter().position(|seen| !seen) {
            return Err(TopologyError::Missing { path: path.into(), name: REQUIRED[index] });
        }
        properties.check(path)?;
        Ok(properties)
    }

    /// Refuses values that would break the size formulas.
    fn check(&self, path: &str) -> Result<(), TopologyError> {
        let impossible = |name, value: u32| {
            Err(TopologyError::Impossible { path: path.into(), name, value: u64::from(value) })
        };
        if self.simd_count == 0 || self.simd_count > SIMD_COUNT_MAX {
            return impossible("simd_count", self.simd_count);
        }
        if self.simd_per_cu == 0 || self.simd_per_cu > self.simd_count {
            return impossible("simd_per_cu", self.simd_per_cu);
        }
        if self.num_xcc == 0 || self.num_xcc > self.simd_count / self.simd_per_cu {
            return impossible("num_xcc", self.num_xcc);
        }
        Ok(())
    }
}

/// Properties without which a GPU cannot be opened.
const REQUIRED: [&str; 4] = ["simd_count", "simd_per_cu", "gfx_target_version", "drm_render_minor"];

impl MemoryBank {
    /// Parses the `properties` file of a memory bank; `path` is for the error only.
    pub fn parse(path: &str, bytes: &[u8]) -> Result<MemoryBank, TopologyError> {
        let mut heap = None;
        let mut size = None;
        for (line, name, value) in lines(bytes) {
            let number = |name| {
                parse_number(value).ok_or_else(|| TopologyError::Value { path: path.into(), line, name })
            };
            match name {
                b"heap_type" => heap = Some(number("heap_type")?),
                b"size_in_bytes" => size = Some(number("size_in_bytes")?),
                _ => {}
            }
        }
        let missing = |name| TopologyError::Missing { path: path.into(), name };
        let heap = match heap.ok_or_else(|| missing("heap_type"))? {
            0 => HeapKind::System,
            1 => HeapKind::VramPublic,
            2 => HeapKind::VramPrivate,
            other => HeapKind::Other(u32::try_from(other).unwrap_or(u32::MAX)),
        };
        Ok(MemoryBank { heap, bytes: size.ok_or_else(|| missing("size_in_bytes"))? })
    }
}

/// Line number from 1, name and value of every line with two words.
fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8], &[u8])> {
    bytes.split(|byte| *byte == b'\n').enumerate().filter_map(|(index, line)| {
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        Some((index + 1, words.next()?, words.next()?))
    })
}

/// A decimal number without sign.
fn parse_number(bytes: &[u8]) -> Option<u64> {
    // Rust's parser takes a plus sign, too.
    if !bytes.iter().all(u8::is_ascii_digit) {
        return None;
    }
    core::str::from_utf8(bytes).ok()?.parse().ok()
}

fn read(syscalls: &dyn Syscalls, path: &str) -> Result<Vec<u8>, TopologyError> {
    syscalls.read_file(path).map_err(|errno| TopologyError::Read { path: path.into(), errno })
}

/// Reads a file; `None` for a hidden device.
fn read_visible(syscalls: &dyn Syscalls, path: &str) -> Result<Option<Vec<u8>>, TopologyError> {
    match syscalls.read_file(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(Errno::EPERM) => Ok(None),
        Err(errno) => Err(TopologyError::Read { path: path.into(), errno }),
    }
}

fn read_generation(syscalls: &dyn Syscalls) -> Result<u64, TopologyError> {
    let path = format!("{TOPOLOGY_ROOT}/generation_id");
    let bytes = read(syscalls, &path)?;
    parse_number(bytes.trim_ascii()).ok_or(TopologyError::Value { path, line: 0, name: "generation_id" })
}

/// Names in a folder that are numbers, ascending, at most `most`. A number in another notation than the driver's is
/// skipped, because it names another folder than the one that would be read.
fn read_numbers(syscalls: &dyn Syscalls, path: &str, most: usize) -> Result<Vec<u32>, TopologyError> {
    let names = match syscalls.read_directory(path) {
        Ok(names) => names,
        Err(errno) => return Err(TopologyError::Read { path: path.into(), errno }),
    };
    let number = |name: &String| u32::try_from(parse_number(name.as_bytes())?).ok();
    let is_plain = |name: &String, number: &u32| *name == number.to_string();
    let numbers = names.iter().filter_map(|name| number(name).filter(|number| is_plain(name, number)));
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    numbers.truncate(most);
    Ok(numbers)
}

fn read_nodes(syscalls: &dyn Syscalls) -> Result<Vec<GpuNode>, TopologyError> {
    let root = format!("{TOPOLOGY_ROOT}/nodes");
    let mut gpus = Vec::new();
    for node in read_numbers(syscalls, &root, NODES_MAX)? {
        gpus.extend(read_node(syscalls, &format!("{root}/{node}"), node)?);
    }
    Ok(gpus)
}

/// A GPU node, or `None` for a CPU or a hidden device.
fn read_node(syscalls: &dyn Syscalls, root: &str, node: u32) -> Result<Option<GpuNode>, TopologyError> {
    let path = format!("{root}/gpu_id");
    let Some(bytes) = read_visible(syscalls, &path)? else { return Ok(None) };
    // Offsets for mmap have 16 bits for it (KFD_GPU_ID_HASH_WIDTH in kfd_priv.h).
    let gpu_id = match parse_number(bytes.trim_ascii()).and_then(|wide| u16::try_from(wide).ok()) {
        Some(0) => return Ok(None),
        Some(gpu_id) => u32::from(gpu_id),
        None => return Err(TopologyError::Value { path, line: 0, name: "gpu_id" }),
    };
    let path = format!("{root}/properties");
    let Some(bytes) = read_visible(syscalls, &path)? else { return Ok(None) };
    let properties = GpuProperties::parse(&path, &bytes)?;
    // The name is for reports only; it is empty if absent.
    let name = syscalls.read_file(&format!("{root}/name")).unwrap_or_default();
    let name = String::from_utf8_lossy(name.trim_ascii()).into_owned();
    let mut memory_banks = Vec::new();
    let banks = format!("{root}/mem_banks");
    for bank in read_numbers(syscalls, &banks, MEMORY_BANKS_MAX)? {
        let path = format!("{banks}/{bank}/properties");
        if let Some(bytes) = read_visible(syscalls, &path)? {
            memory_banks.push(MemoryBank::parse(&path, &bytes)?);
        }
    }
    Ok(Some(GpuNode { node, gpu_id, name, properties, memory_banks }))
}

#[cfg(test)]
mod tests;
