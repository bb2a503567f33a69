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

/// Offsets for mmap have 16 bits for the number of a GPU.
#[test]
fn a_gpu_has_a_number_of_16_bits() {
    let path = format!("{TOPOLOGY_ROOT}/nodes/1/gpu_id");
    let with = |gpu_id: &str| Topology::read(&machine(R9700).file(&path, gpu_id));
    assert_eq!(with("65535\n").unwrap().gpus[0].gpu_id, 65535);
    for text in ["65536\n", "-1\n"] {
        assert_eq!(with(text), Err(TopologyError::Value { path: path.clone(), line: 0, name: "gpu_id" }));
    }
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

/// Hardware reference §1.2. No two values are equal, so that no property is taken for another.
#[test]
fn each_property_is_read_from_its_own_line() {
    let text = "simd_count 64\nsimd_per_cu 4\nmax_waves_per_simd 17\nlds_size_in_kb 65\nwave_front_size 33\n\
        array_count 9\nsimd_arrays_per_engine 3\nmax_slots_scratch_cu 31\ngfx_target_version 120001\n\
        vendor_id 4098\ndevice_id 30033\nlocation_id 1280\ndomain 5\ndrm_render_minor 129\nnum_xcc 2\n\
        max_engine_clk_fcompute 2350\nfw_version 3010\ncwsr_size 30699520\nctl_stack_size 28672\n";
    let expected = GpuProperties {
        simd_count: 64,
        simd_per_cu: 4,
        max_waves_per_simd: 17,
        lds_size_kib: 65,
        wave_front_size: 33,
        array_count: 9,
        simd_arrays_per_engine: 3,
        max_slots_scratch_cu: 31,
        gfx_target_version: 120_001,
        vendor_id: 4098,
        device_id: 30_033,
        location_id: 1280,
        domain: 5,
        drm_render_minor: 129,
        num_xcc: 2,
        max_engine_clk_fcompute_mhz: 2350,
        fw_version: 3010,
        cwsr_bytes: Some(30_699_520),
        control_stack_bytes: Some(28_672),
    };
    assert_eq!(GpuProperties::parse("P", text.as_bytes()), Ok(expected.clone()));
    let reversed: Vec<&str> = text.lines().rev().collect();
    assert_eq!(GpuProperties::parse("P", reversed.join("\n").as_bytes()), Ok(expected));

    // Each one that is not a number is named, with its line.
    for (at, line) in text.lines().enumerate() {
        let name = line.split(' ').next().unwrap();
        for value in ["x", "+5", "-1", "0x10", "4294967296"] {
            let bad = text.replacen(line, &format!("{name} {value}"), 1);
            let error = GpuProperties::parse("P", bad.as_bytes()).unwrap_err().to_string();
            let start = format!("P line {}: {name} is not a number that fits; ", at + 1);
            assert!(error.starts_with(&start), "{error}");
        }
    }
}

#[test]
fn a_kernel_that_does_not_know_of_compute_dies_has_one() {
    let without = R9700.replace("num_xcc 1\n", "");
    assert_eq!(GpuProperties::parse("P", without.as_bytes()).unwrap().num_xcc, 1);
    let two = R9700.replace("num_xcc 1\n", "num_xcc 2\n");
    assert_eq!(Topology::read(&machine(&two)).unwrap().gpus[0].compute_units(), 32, "128 SIMDs, two a unit");
}

#[test]
fn counts_are_possible_up_to_their_limits() {
    let parse = |simd_count: u32, simd_per_cu: u32, num_xcc: u32| {
        let text = format!(
            "simd_count {simd_count}\nsimd_per_cu {simd_per_cu}\ngfx_target_version 120001\ndrm_render_minor 128\n\
             num_xcc {num_xcc}\n"
        );
        GpuProperties::parse("P", text.as_bytes()).map_err(|error| error.to_string())
    };
    for (simd_count, simd_per_cu, num_xcc) in [(65536, 2, 1), (128, 128, 1), (128, 2, 64), (1, 1, 1)] {
        let properties = parse(simd_count, simd_per_cu, num_xcc).unwrap();
        assert_eq!((properties.simd_count, properties.simd_per_cu), (simd_count, simd_per_cu));
    }
    for (counts, expected) in [
        ((65537, 2, 1), "P: simd_count is 65537, which no GPU has"),
        ((128, 129, 1), "P: simd_per_cu is 129, which no GPU has"),
        ((128, 2, 65), "P: num_xcc is 65, which no GPU has"),
    ] {
        let (simd_count, simd_per_cu, num_xcc) = counts;
        assert_eq!(parse(simd_count, simd_per_cu, num_xcc), Err(expected.to_owned()));
    }
}

/// Hardware reference §1.3: a public heap and no private one.
#[test]
fn a_bar_is_large_if_it_covers_all_memory() {
    let bank = |number, heap| {
        let path = format!("{TOPOLOGY_ROOT}/nodes/1/mem_banks/{number}/properties");
        (path, format!("heap_type {heap}\nsize_in_bytes 4096\n"))
    };
    for (heaps, is_large, vram_bytes) in [
        (&[1][..], true, 4096),
        (&[1, 1], true, 8192),
        (&[1, 0, 3], true, 4096),
        (&[2], false, 4096),
        (&[1, 2], false, 8192),
        (&[2, 1], false, 8192),
        (&[0, 3], false, 0),
    ] {
        let banks = heaps.iter().enumerate().map(|(number, heap)| bank(number, heap));
        let system = banks.fold(machine(R9700), |system, (path, text)| system.file(&path, &text));
        let topology = Topology::read(&system).unwrap();
        let gpu = &topology.gpus[0];
        assert_eq!((gpu.has_large_bar(), gpu.vram_bytes()), (is_large, vram_bytes), "{heaps:?}");
    }
}
