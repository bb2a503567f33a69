//! What hardware reference §1.1 and §1.2 say about the files, and arbitrary bytes.

use super::*;
use crate::scripted::ScriptedSyscalls;
use proptest::prelude::*;

/// An R9700 as hardware reference §1.2 lists it, with unknown names in between.
const R9700: &str = "cpu_cores_count 0\nsimd_count 128\nmem_banks_count 1\ncaches_count 98\nsome_new_name 7\n\
    max_waves_per_simd 16\nlds_size_in_kb 64\ngds_size_in_kb 0\nwave_front_size 32\narray_count 8\n\
    simd_arrays_per_engine 2\ncu_per_simd_array 8\nsimd_per_cu 2\nmax_slots_scratch_cu 32\n\
    gfx_target_version 120001\nvendor_id 4098\ndevice_id 30033\nlocation_id 1280\ndomain 0\n\
    drm_render_minor 128\ncwsr_size 30699520\nctl_stack_size 28672\nmax_engine_clk_fcompute 2350\n\
    local_mem_size 0\nfw_version 3010\nunique_id 18446744073709551615\nnum_xcc 1\n";

fn machine(properties: &str) -> ScriptedSyscalls {
    let node = |path: &str| format!("{TOPOLOGY_ROOT}/nodes/{path}");
    ScriptedSyscalls::new()
        .file(&format!("{TOPOLOGY_ROOT}/generation_id"), "2\n")
        .file(&node("0/gpu_id"), "0\n")
        .file(&node("0/properties"), "cpu_cores_count 16\nsimd_count 0\n")
        .file(&node("1/gpu_id"), "51234\n")
        .file(&node("1/name"), "gfx1201\n")
        .file(&node("1/properties"), properties)
        .file(
            &node("1/mem_banks/0/properties"),
            "heap_type 1\nsize_in_bytes 34208743424\nflags 0\nwidth 256\n",
        )
}

#[test]
fn an_r9700_is_read_whole() {
    let topology = Topology::read(&machine(R9700)).unwrap();
    let node = topology.first_supported().unwrap();
    assert_eq!((node.node, node.gpu_id, node.name.as_str()), (1, 51234, "gfx1201"));
    assert_eq!(node.compute_units(), 64);
    assert_eq!(node.vram_bytes(), 34_208_743_424);
    assert!(node.has_large_bar());
    assert_eq!(node.render_node_path(), "/dev/dri/renderD128");
    assert_eq!(node.properties.cwsr_bytes, Some(30_699_520));
    assert_eq!(node.properties.control_stack_bytes, Some(28_672));
    assert_eq!((node.properties.vendor_id, node.properties.device_id), (0x1002, 0x7551));
}

#[test]
fn save_area_sizes_are_optional_and_a_private_heap_is_a_small_bar() {
    let without: String =
        R9700.lines().filter(|line| !line.starts_with("c")).map(|line| format!("{line}\n")).collect();
    let bank = format!("{TOPOLOGY_ROOT}/nodes/1/mem_banks/0/properties");
    let system = machine(&without).file(&bank, "heap_type 2\nsize_in_bytes 34208743424\n");
    let topology = Topology::read(&system).unwrap();
    assert_eq!(topology.gpus[0].properties.cwsr_bytes, None);
    assert_eq!(topology.gpus[0].properties.control_stack_bytes, None);
    assert!(!topology.gpus[0].has_large_bar());
    assert_eq!(topology.gpus[0].vram_bytes(), 34_208_743_424);
}

#[test]
fn only_the_exact_target_is_driven() {
    for target in ["120000", "120002", "110000", "120100", "0"] {
        let properties = R9700.replace("120001", target);
        let topology = Topology::read(&machine(&properties)).unwrap();
        let expected = TopologyError::NoDevice { gpus: 1, targets: vec![target.parse().unwrap()] };
        assert_eq!(topology.first_supported(), Err(expected));
    }
}

#[test]
fn a_hidden_node_is_absent() {
    for hidden in ["gpu_id", "properties"] {
        let path = format!("{TOPOLOGY_ROOT}/nodes/1/{hidden}");
        let topology = Topology::read(&machine(R9700).file_error(&path, Errno::EPERM)).unwrap();
        assert_eq!(topology.gpus, []);
    }
    let path = format!("{TOPOLOGY_ROOT}/nodes/1/gpu_id");
    let other = Topology::read(&machine(R9700).file_error(&path, Errno::EIO));
    assert_eq!(other, Err(TopologyError::Read { path, errno: Errno::EIO }));
}

#[test]
fn a_node_is_read_once_whatever_other_folders_are_called() {
    let beside = ["01", "001", "+1", "1.", "4294967297", "power"];
    let node = |name: &str| format!("{TOPOLOGY_ROOT}/nodes/{name}/gpu_id");
    let system = beside.iter().fold(machine(R9700), |system, name| system.file(&node(name), "51234\n"));
    let numbers: Vec<u32> = Topology::read(&system).unwrap().gpus.iter().map(|gpu| gpu.node).collect();
    assert_eq!(numbers, [1]);
}

#[test]
fn a_changed_topology_is_walked_again() {
    let path = format!("{TOPOLOGY_ROOT}/generation_id");
    let settles = machine(R9700).file_sequence(&path, &["1\n", "2\n", "3\n", "3\n"]);
    assert_eq!(Topology::read(&settles).unwrap().generation, 3);
    let numbers: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    let never = machine(R9700).file_sequence(&path, &numbers);
    assert_eq!(Topology::read(&never), Err(TopologyError::Unstable));
}

#[test]
fn bad_values_are_named() {
    let check = |from: &str, to: &str, expected: &str| {
        let error = GpuProperties::parse("P", R9700.replace(from, to).as_bytes()).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
    };
    check("simd_count 128", "simd_count x", "P line 2: simd_count is not a number");
    check("simd_count 128", "simd_count -1", "P line 2: simd_count is not a number");
    check("simd_count 128", "simd_count 4294967296", "P line 2: simd_count is not a number");
    check("simd_count 128", "simd_count 0", "P: simd_count is 0");
    check("simd_per_cu 2", "simd_per_cu 0", "P: simd_per_cu is 0");
    check("num_xcc 1", "num_xcc 0", "P: num_xcc is 0");
    check("num_xcc 1", "num_xcc 65", "P: num_xcc is 65");
    check("drm_render_minor 128", "", "P has no drm_render_minor");
    check("simd_count 128", "simd_count", "P has no simd_count");
}

#[test]
fn without_the_driver_the_error_says_so() {
    let error = Topology::read(&ScriptedSyscalls::new()).unwrap_err().to_string();
    assert_eq!(
        error,
        "cannot read /sys/class/kfd/kfd/topology/generation_id: ENOENT (2); is the amdgpu driver loaded, with KFD \
         support?"
    );
}

/// A property's value: any number, a small one, or none.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![any::<u64>().prop_map(|value| value.to_string()), "[0-9]{1,3}", "[a-z ]{0,4}"]
}

proptest! {
    /// Whatever the files hold, the parsers return, and their results are usable.
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = MemoryBank::parse("m", &bytes);
        if let Ok(properties) = GpuProperties::parse("p", &bytes) {
            prop_assert!(properties.simd_per_cu > 0 && properties.num_xcc > 0);
        }
    }

    /// Plausible lines with wild values: accepted ones produce finite sizes.
    #[test]
    fn plausible_files_never_panic(
        values in proptest::collection::vec((0usize..8, value()), 0..24)
    ) {
        const NAMES: [&str; 8] = ["simd_count", "simd_per_cu", "gfx_target_version", "drm_render_minor", "num_xcc",
            "cwsr_size", "ctl_stack_size", "unknown"];
        let text: String = values.iter().map(|(name, value)| format!("{} {value}\n", NAMES[*name])).collect();
        if let Ok(properties) = GpuProperties::parse("p", text.as_bytes()) {
            let node = GpuNode { node: 0, gpu_id: 1, name: String::new(), properties, memory_banks: Vec::new() };
            prop_assert!(node.compute_units() >= 1);
            let _ = crate::queue_size::QueueBufferSizes::of(&node);
        }
    }
}
