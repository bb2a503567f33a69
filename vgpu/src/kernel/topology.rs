//! The KFD topology as files: one CPU node (0) and one GPU node (1).
//!
//! Contract: property lines in the kernel's order (hardware reference §1.2), with the R9700's values where
//! captured.

use crate::config::KernelRelease;
use crate::kernel::board;
use crate::kernel::files::FileTree;
use crate::kernel::sizes::MemorySizes;
use std::fmt::Write;

/// Root folder of the KFD topology.
pub(crate) const ROOT: &str = "/sys/class/kfd/kfd/topology";

/// Adds all topology files; `used_bytes` returns the VRAM in use when called. With a large BAR all of VRAM is
/// CPU-visible (heap type 1), else not (2; hardware reference §1.3).
pub(crate) fn add(
    tree: &mut FileTree,
    sizes: MemorySizes,
    kernel: KernelRelease,
    used_bytes: impl Fn() -> u64 + Send + Sync + 'static,
) {
    tree.add_alias("/sys/devices/virtual/kfd/kfd", "/sys/class/kfd/kfd");
    tree.add(format!("{ROOT}/generation_id"), "2\n");
    tree.add(format!("{ROOT}/system_properties"), "platform_oem 0\nplatform_id 0\nplatform_rev 0\n");
    add_cpu_node(tree, sizes, kernel);
    add_gpu_node(tree, sizes, kernel);
    let bank = format!("{ROOT}/nodes/1/mem_banks/0");
    tree.add_made(format!("{bank}/used_memory"), move || format!("{}\n", used_bytes()));
}

fn add_cpu_node(tree: &mut FileTree, sizes: MemorySizes, kernel: KernelRelease) {
    let node = format!("{ROOT}/nodes/0");
    tree.add(format!("{node}/gpu_id"), "0\n");
    tree.add(format!("{node}/name"), "\n");
    let cores = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let properties =
        NodeProperties { cpu_cores: cores, mem_banks: 1, io_links: 1, ..NodeProperties::default() };
    tree.add(format!("{node}/properties"), properties.text(false, kernel));
    tree.add(
        format!("{node}/mem_banks/0/properties"),
        lines(&[
            ("heap_type", 0),
            ("size_in_bytes", sizes.gtt_bytes.saturating_mul(2)),
            ("flags", 0),
            ("width", 64),
            ("mem_clk_max", 3200),
        ]),
    );
    tree.add(format!("{node}/io_links/0/properties"), link(0, 1));
}

fn add_gpu_node(tree: &mut FileTree, sizes: MemorySizes, kernel: KernelRelease) {
    let node = format!("{ROOT}/nodes/1");
    tree.add(format!("{node}/gpu_id"), format!("{}\n", board::GPU_ID));
    tree.add(format!("{node}/name"), "gfx1201\n");
    let caches = caches();
    let properties = NodeProperties { cpu_cores: 0, mem_banks: 1, caches: caches.len() as u64, io_links: 1 };
    tree.add(format!("{node}/properties"), properties.text(true, kernel));
    tree.add(
        format!("{node}/mem_banks/0/properties"),
        lines(&[
            ("heap_type", if sizes.large_bar { 1 } else { 2 }),
            ("size_in_bytes", sizes.vram_bytes),
            ("flags", 0),
            ("width", 256),
            ("mem_clk_max", 1258),
        ]),
    );
    for (index, text) in caches.into_iter().enumerate() {
        tree.add(format!("{node}/caches/{index}/properties"), text);
    }
    tree.add(format!("{node}/io_links/0/properties"), link(1, 0));
}

/// The counts that differ between nodes.
#[derive(Default)]
struct NodeProperties {
    cpu_cores: u64,
    mem_banks: u64,
    caches: u64,
    io_links: u64,
}

impl NodeProperties {
    /// The lines of `properties` in kernel order, for a GPU or a CPU node.
    fn text(&self, is_gpu: bool, kernel: KernelRelease) -> String {
        let of_gpu = |value: u32| if is_gpu { value as u64 } else { 0 };
        let mut text = lines(&[
            ("cpu_cores_count", self.cpu_cores),
            ("simd_count", of_gpu(board::SIMD_COUNT)),
            ("mem_banks_count", self.mem_banks),
            ("caches_count", self.caches),
            ("io_links_count", self.io_links),
            ("p2p_links_count", 0),
            ("cpu_core_id_base", 0),
            // The kernel numbers SIMDs of GPUs from bit 31 up.
            ("simd_id_base", of_gpu(0x8000_1000)),
            ("max_waves_per_simd", of_gpu(board::MAX_WAVES_PER_SIMD)),
            ("lds_size_in_kb", of_gpu(board::LDS_KIB)),
            ("gds_size_in_kb", 0),
            ("num_gws", 0),
            ("wave_front_size", of_gpu(board::WAVE_LANES)),
            ("array_count", of_gpu(board::ARRAY_COUNT)),
            ("simd_arrays_per_engine", of_gpu(board::SHADER_ARRAYS_PER_ENGINE)),
            ("cu_per_simd_array", of_gpu(board::CU_PER_ARRAY)),
            ("simd_per_cu", of_gpu(board::SIMD_PER_CU)),
            ("max_slots_scratch_cu", of_gpu(board::MAX_SLOTS_SCRATCH_CU)),
            ("gfx_target_version", of_gpu(board::GFX_TARGET_VERSION)),
            ("vendor_id", of_gpu(board::VENDOR_ID)),
            ("device_id", of_gpu(board::DEVICE_ID)),
            ("location_id", of_gpu(board::LOCATION_ID)),
            ("domain", 0),
            ("drm_render_minor", of_gpu(board::RENDER_MINOR)),
            ("hive_id", 0),
            ("num_sdma_engines", of_gpu(board::SDMA_ENGINES)),
            ("num_sdma_xgmi_engines", 0),
            ("num_sdma_queues_per_engine", of_gpu(board::SDMA_QUEUES_PER_ENGINE)),
            ("num_cp_queues", of_gpu(board::CP_QUEUES)),
        ]);
        if kernel.exports_save_area() {
            text += &lines(&[
                ("cwsr_size", of_gpu(board::CWSR_BYTES)),
                ("ctl_stack_size", of_gpu(board::CTL_STACK_BYTES)),
            ]);
        }
        if is_gpu {
            let precise = if kernel.claims_precise_memory() { board::CAPABILITY_PRECISE_MEMORY } else { 0 };
            text += &lines(&[
                ("max_engine_clk_fcompute", board::ENGINE_CLOCK_MHZ as u64),
                // Always 0: sum `mem_banks` instead.
                ("local_mem_size", 0),
                ("fw_version", board::MEC_FIRMWARE as u64),
                ("capability", (board::CAPABILITY | precise) as u64),
            ]);
            if kernel.exports_capability2() {
                text += &lines(&[("capability2", 0)]);
            }
            text += &lines(&[
                ("debug_prop", board::DEBUG_PROPERTIES),
                ("sdma_fw_version", board::SDMA_FIRMWARE as u64),
                ("unique_id", board::UNIQUE_ID),
                ("num_xcc", 1),
            ]);
        }
        text + &lines(&[("max_engine_clk_ccompute", 3500)])
    }
}

/// `type` bits of a cache (hardware reference §1.1).
const CACHE_DATA: u64 = 1;
const CACHE_INSTRUCTION: u64 = 2;
const CACHE_OF_GPU: u64 = 8;

/// One entry per cache: L0 per CU, scalar and instruction caches per WGP, GL2 and MALL for the chip. Sizes of L0, GL2
/// and MALL are those of hardware reference §1.4; 16 KiB scalar and 64 KiB instruction caches are chosen.
fn caches() -> Vec<String> {
    let data = CACHE_DATA | CACHE_OF_GPU;
    let instruction = CACHE_INSTRUCTION | CACHE_OF_GPU;
    let units = board::COMPUTE_UNITS;
    let mut caches = Vec::new();
    for unit in 0..units {
        caches.push(cache(unit, 1, 1, board::L0_KIB, 128, data));
    }
    for pair in 0..units / 2 {
        caches.push(cache(pair * 2, 2, 1, 16, 128, data));
        caches.push(cache(pair * 2, 2, 1, 64, 128, instruction));
    }
    caches.push(cache(0, units, 2, board::GL2_KIB, board::GL2_LINE_BYTES, data));
    caches.push(cache(0, units, 3, board::MALL_KIB, board::GL2_LINE_BYTES, data));
    caches
}

fn cache(unit: u32, sharers: u32, level: u64, kib: u32, line_bytes: u32, kind: u64) -> String {
    let mut text = lines(&[
        ("processor_id_low", 0x8000_1000 + unit as u64),
        ("level", level),
        ("size", kib as u64),
        ("cache_line_size", line_bytes as u64),
        ("cache_lines_per_tag", 1),
        ("association", 16),
        ("latency", 0),
        ("type", kind),
    ]);
    let siblings: Vec<&str> = (0..board::COMPUTE_UNITS)
        .map(|other| if (unit..unit + sharers).contains(&other) { "1" } else { "0" })
        .collect();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "sibling_map {}", siblings.join(","));
    text
}

/// A PCIe link (type 2).
fn link(from: u64, to: u64) -> String {
    lines(&[
        ("type", 2),
        ("version_major", 0),
        ("version_minor", 0),
        ("node_from", from),
        ("node_to", to),
        ("weight", 20),
        ("min_latency", 0),
        ("max_latency", 0),
        ("min_bandwidth", 312),
        ("max_bandwidth", 63_015),
        ("recommended_transfer_size", 0),
        ("recommended_sdma_engine_id_mask", 0),
        ("flags", 1),
    ])
}

/// `name value` lines.
pub(crate) fn lines(pairs: &[(&str, u64)]) -> String {
    pairs.iter().fold(String::new(), |mut text, (name, value)| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name} {value}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn tree(large_bar: bool) -> FileTree {
        tree_of(large_bar, KernelRelease::Newest)
    }

    fn tree_of(large_bar: bool, kernel: KernelRelease) -> FileTree {
        let mut tree = FileTree::default();
        let config = Config { large_bar, ..Config::default() };
        add(&mut tree, MemorySizes::new(&config), kernel, || 4096);
        tree
    }

    fn read(tree: &FileTree, path: &str) -> String {
        String::from_utf8(tree.read(&format!("{ROOT}/{path}")).unwrap()).unwrap()
    }

    /// Order and values of hardware reference §1.2, with what is chosen where the reference has no value.
    const GPU_PROPERTIES: &str = "\
cpu_cores_count 0
simd_count 128
mem_banks_count 1
caches_count 130
io_links_count 1
p2p_links_count 0
cpu_core_id_base 0
simd_id_base 2147487744
max_waves_per_simd 16
lds_size_in_kb 64
gds_size_in_kb 0
num_gws 0
wave_front_size 32
array_count 8
simd_arrays_per_engine 2
cu_per_simd_array 8
simd_per_cu 2
max_slots_scratch_cu 32
gfx_target_version 120001
vendor_id 4098
device_id 30033
location_id 1280
domain 0
drm_render_minor 128
hive_id 0
num_sdma_engines 2
num_sdma_xgmi_engines 0
num_sdma_queues_per_engine 6
num_cp_queues 4
cwsr_size 30699520
ctl_stack_size 28672
max_engine_clk_fcompute 2350
local_mem_size 0
fw_version 3010
capability 1749262976
capability2 0
debug_prop 1495
sdma_fw_version 700
unique_id 7607916237085355008
num_xcc 1
max_engine_clk_ccompute 3500
";

    #[test]
    fn the_gpu_node_has_the_captured_values_in_kernel_order() {
        let tree = tree(true);
        assert_eq!(read(&tree, "nodes/1/properties"), GPU_PROPERTIES);
        assert_eq!(read(&tree, "nodes/1/gpu_id"), "40267\n");
        assert_eq!(read(&tree, "nodes/1/name"), "gfx1201\n");
        assert_eq!(read(&tree, "generation_id"), "2\n");
        assert_eq!(read(&tree, "system_properties"), "platform_oem 0\nplatform_id 0\nplatform_rev 0\n");
    }

    /// The same lines as of a GPU up to the save area, all of them 0 but for what a processor has.
    #[test]
    fn the_cpu_node_has_cores_a_bank_and_a_link() {
        let tree = tree(true);
        let text = read(&tree, "nodes/0/properties");
        let cores = std::thread::available_parallelism().unwrap();
        let expected: String = GPU_PROPERTIES
            .lines()
            .map(|line| line.split(' ').next().unwrap())
            .take_while(|name| *name != "max_engine_clk_fcompute")
            .map(|name| match name {
                "cpu_cores_count" => format!("{name} {cores}\n"),
                "mem_banks_count" | "io_links_count" => format!("{name} 1\n"),
                _ => format!("{name} 0\n"),
            })
            .chain(["max_engine_clk_ccompute 3500\n".to_owned()])
            .collect();
        assert_eq!(text, expected);
        assert_eq!(read(&tree, "nodes/0/name"), "\n");
    }

    #[test]
    fn banks_and_links_of_both_nodes() {
        let tree = tree(true);
        // Twice what the GPU may map: 32 GiB.
        let system = "heap_type 0\nsize_in_bytes 34359738368\nflags 0\nwidth 64\nmem_clk_max 3200\n";
        let local = "heap_type 1\nsize_in_bytes 34208743424\nflags 0\nwidth 256\nmem_clk_max 1258\n";
        let banks = [0, 1].map(|node| read(&tree, &format!("nodes/{node}/mem_banks/0/properties")));
        assert_eq!(banks, [system, local]);
        let link = |from: u32, to: u32| {
            format!(
                "type 2\nversion_major 0\nversion_minor 0\nnode_from {from}\nnode_to {to}\nweight 20\n\
                 min_latency 0\nmax_latency 0\nmin_bandwidth 312\nmax_bandwidth 63015\n\
                 recommended_transfer_size 0\nrecommended_sdma_engine_id_mask 0\nflags 1\n"
            )
        };
        let links = [0, 1].map(|node| read(&tree, &format!("nodes/{node}/io_links/0/properties")));
        assert_eq!(links, [link(0, 1), link(1, 0)]);
    }

    /// Caches with the units that share them: vectors' of each unit, scalars' and instructions' of each pair, and
    /// two of the chip. Bits of the type: hardware reference §1.1. Sizes: hardware reference §1.4.
    #[test]
    fn caches_belong_to_units_to_pairs_and_to_the_chip() {
        let tree = tree(true);
        let text = |index: u32| read(&tree, &format!("nodes/1/caches/{index}/properties"));
        let expected = |first: usize, sharers: usize, level: u32, kib: u32, line: u32, kind: u32| {
            let shares = |unit: usize| if (first..first + sharers).contains(&unit) { "1" } else { "0" };
            let siblings: Vec<&str> = (0..64).map(shares).collect();
            format!(
                "processor_id_low {}\nlevel {level}\nsize {kib}\ncache_line_size {line}\n\
                 cache_lines_per_tag 1\nassociation 16\nlatency 0\ntype {kind}\nsibling_map {}\n",
                2_147_487_744 + first,
                siblings.join(",")
            )
        };
        for unit in 0..64 {
            assert_eq!(text(unit), expected(unit as usize, 1, 1, 32, 128, 9), "unit {unit}");
        }
        for pair in 0..32 {
            let first = pair as usize * 2;
            assert_eq!(text(64 + 2 * pair), expected(first, 2, 1, 16, 128, 9), "scalars of pair {pair}");
            assert_eq!(text(65 + 2 * pair), expected(first, 2, 1, 64, 128, 10), "instructions of {pair}");
        }
        assert_eq!(text(128), expected(0, 64, 2, 8192, 256, 9));
        assert_eq!(text(129), expected(0, 64, 3, 65_536, 256, 9));
    }

    #[test]
    fn properties_come_with_the_kernels_that_have_them() {
        let has = |kernel: KernelRelease, name: &str| {
            let text = read(&tree_of(true, kernel), "nodes/1/properties");
            text.lines().any(|line| line.split(' ').next() == Some(name))
        };
        let columns = |name: &str| KernelRelease::ALL.map(|kernel| has(kernel, name));
        assert_eq!(columns("ctl_stack_size"), [false, false, false, true]);
        assert_eq!(columns("cwsr_size"), [false, false, false, true]);
        assert_eq!(columns("capability2"), [false, false, true, true]);
        let old = read(&tree_of(true, KernelRelease::V6_12), "nodes/1/properties");
        assert!(old.contains("capability 1749525120\n"), "precise memory operations: {old}");
        assert!(!read(&tree_of(true, KernelRelease::V6_17), "nodes/0/properties").contains("cwsr_size"));
    }

    #[test]
    fn the_bar_changes_the_heap_type() {
        let small = tree(false);
        assert!(
            read(&small, "nodes/1/mem_banks/0/properties")
                .starts_with("heap_type 2\nsize_in_bytes 34208743424\n")
        );
        assert!(read(&tree(true), "nodes/1/mem_banks/0/properties").starts_with("heap_type 1\n"));
        assert_eq!(read(&small, "nodes/1/mem_banks/0/used_memory"), "4096\n");
    }

    #[test]
    fn the_walk_of_a_client_finds_two_nodes_and_as_many_caches_as_announced() {
        let tree = tree(true);
        assert_eq!(tree.list(&format!("{ROOT}/nodes")).unwrap(), ["0", "1"]);
        assert_eq!(read(&tree, "nodes/0/gpu_id"), "0\n");
        assert!(read(&tree, "nodes/0/properties").contains("simd_count 0\n"));
        let announced = read(&tree, "nodes/1/properties");
        let count = tree.list(&format!("{ROOT}/nodes/1/caches")).unwrap().len();
        assert!(announced.contains(&format!("caches_count {count}\n")));
        let twin = "/sys/devices/virtual/kfd/kfd/topology/generation_id";
        assert_eq!(tree.read(twin).unwrap(), b"2\n");
    }
}
