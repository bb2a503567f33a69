//! Seeds that are whole files: containers with every table, golden traces, the driver's folder in sysfs.

use std::error::Error;
use zrt_isa::resources::WaveSize;
use zrt_isa::zrt::{Constant, Kernel, Line};

/// Code of three dwords, the last of which is `s_endpgm`.
const CODE: [u8; 12] = [0, 0, 0x80, 0xBF, 7, 0, 0, 0, 0, 0, 0xB0, 0xBF];

/// A container with two source files, two lines and two places of a constant; in waves of 64 lanes one without any.
pub fn container(wave_size: WaveSize) -> Result<Vec<u8>, Box<dyn Error>> {
    let is_full = wave_size == WaveSize::Wave32;
    // RSRC1: granules of VGPRs less one. RSRC2: user SGPRs from bit 1, LDS from bit 15 in units of 512 bytes.
    let kernel = Kernel {
        name: "seed",
        code: &CODE,
        entry: 0,
        rsrc1: 1,
        rsrc2: 3 << 1 | 1 << 15,
        rsrc3: 0,
        wave_size,
        user_sgprs: 3,
        vgprs: if is_full { 12 } else { 5 },
        sgprs: 16,
        workgroup: [64, 2, 1],
        lds_bytes: 256,
        scratch_bytes: 0,
        parameter_version: 1,
        parameter_opcode: 2,
        parameter_bytes: 64,
        files: if is_full { vec!["a/b.s", "c.inc"] } else { Vec::new() },
        lines: match is_full {
            true => {
                vec![Line { code_offset: 0, file: 0, line: 3 }, Line { code_offset: 8, file: 1, line: 1 }]
            }
            false => Vec::new(),
        },
        constants: match is_full {
            true => [0, 4].map(|code_offset| Constant { name: "bias", code_offset, value: 7 }).into(),
            false => Vec::new(),
        },
    };
    Ok(kernel.write()?)
}

/// A prompt whose reference is another engine's, then one whose reference is exact arithmetic's.
pub fn traces() -> Vec<u8> {
    br#"{"model": "m", "n_vocab": 12, "traces": [
{"prompt": "ab", "prompt_token_ids": [1, 8], "prompt_nll_mean": 0.75, "greedy_token_ids": [5, 6, 2],
 "greedy_margins": [1.5, 0.25, 1e-3], "min_margin": 1e-3},
{"prompt": "\u00e9", "prompt_token_ids": [11], "prompt_nll_mean": 2, "greedy_token_ids": [], "greedy_margins": [],
 "reference_f64": {"prompt_nll_mean": 1.875, "greedy_token_ids": [4], "min_margin": 0.5,
  "top5_after_prompt": [[4, -0.5], [5, -1.0]]}}]}
"#
    .to_vec()
}

/// A script with a step of every kind.
pub fn script() -> String {
    r#"[buffers]
a = "in:a.npy"
b = "out:1024*f32:b.npy"
c = "fill:4k:0x0102"
d = "expect:d.npy,1e-3"

[[step]]
launch = { file = "k.co", kernel = "k", grid = [4, 2], block = 64, lds = 256, args = ["buffer:a", "buffer:b+16", "u32:7"] }
[[step]]
launch = { file = "r.bin", grid = 1, block = 32, wave = 32, vgprs = 8, user_sgprs = 2, wait = false }
[[step]]
check = { buffer = "b", expect = "e.npy", tolerance = 0.5 }
[[step]]
check = { buffer = "c", equals = "bytes:0102" }
[[step]]
copy = { from = "a+8", to = "c", bytes = "1k" }
[[step]]
write = { buffer = "c+4", value = "f32:1.5" }
[[step]]
dump = { buffer = "c", file = "c.raw" }
"#
    .to_owned()
}

/// A script with a loop in a loop.
pub fn looped_script() -> String {
    r#"buffers = { a = "zero:64", b = "rand:16*f32:7" }
[[step]]
[step.repeat]
times = 3
variable = "row"
[[step.repeat.steps]]
write = { buffer = "a+row*16", value = "u8:row+1" }
[[step.repeat.steps]]
[step.repeat.steps.repeat]
times = 2
variable = "turn"
[[step.repeat.steps.repeat.steps]]
launch = { file = "k.o", grid = 1, args = ["buffer:a+turn", "i32:0x10-row*turn"] }
[[step.repeat.steps.repeat.steps]]
dump = { buffer = "b", file = "b-{row}-{turn}" }
"#
    .to_owned()
}

/// What the driver shows of a machine: a processor and a card (hardware reference §1.1 to §1.3), in the form of the
/// fuzz target.
pub fn machine() -> Vec<u8> {
    folder(&[("generation_id", "2\n"), CPU[0], CPU[1], CARD[0], CARD[1], CARD[2], CARD[3]])
}

/// The same while another card is added that this process may not see, and that has a small BAR.
pub fn changing_machine() -> Vec<u8> {
    let generations = ["1\n", "2\n", "2\n"].map(|number| ("generation_id", number));
    let hidden = [("nodes/2/gpu_id", "EPERM"), ("nodes/3/gpu_id", "EPERM"), ("nodes/3/gpu_id", "77\n")];
    let second = [
        (
            "nodes/3/properties",
            "simd_count 4\nsimd_per_cu 2\ngfx_target_version 120000\ndrm_render_minor 129\n",
        ),
        ("nodes/3/mem_banks/0/properties", "heap_type 2\nsize_in_bytes 17095983104\n"),
        ("nodes/3/mem_banks/1/properties", "heap_type 5\nsize_in_bytes 65536\n"),
    ];
    folder(&[&generations[..], &CPU, &CARD, &hidden, &second].concat())
}

const CPU: [(&str, &str); 2] =
    [("nodes/0/gpu_id", "0\n"), ("nodes/0/properties", "cpu_cores_count 16\nsimd_count 0\n")];

const CARD: [(&str, &str); 4] = [
    ("nodes/1/gpu_id", "51234\n"),
    ("nodes/1/name", "gfx1201\n"),
    (
        "nodes/1/properties",
        "cpu_cores_count 0\nsimd_count 128\nmax_waves_per_simd 16\nlds_size_in_kb 64\nwave_front_size 32\n\
         array_count 8\nsimd_arrays_per_engine 2\nsimd_per_cu 2\nmax_slots_scratch_cu 32\n\
         gfx_target_version 120001\nvendor_id 4098\ndevice_id 30033\nlocation_id 1280\ndomain 0\n\
         drm_render_minor 128\ncwsr_size 30699520\nctl_stack_size 28672\nmax_engine_clk_fcompute 2350\n\
         fw_version 3010\nnum_xcc 1\n",
    ),
    ("nodes/1/mem_banks/0/properties", "heap_type 1\nsize_in_bytes 34208743424\nflags 0\n"),
];

/// Paths and contents, each followed by a zero byte.
fn folder(files: &[(&str, &str)]) -> Vec<u8> {
    files
        .iter()
        .flat_map(|(path, content)| [path.as_bytes(), b"\0", content.as_bytes(), b"\0"].concat())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use zrt_kmd::topology::GpuProperties;

    #[test]
    fn containers_are_read_with_their_tables() {
        let bytes = [WaveSize::Wave32, WaveSize::Wave64].map(|wave| container(wave).unwrap());
        let [full, bare] = bytes.each_ref().map(|bytes| Kernel::parse(bytes).unwrap());
        assert_eq!((full.source_line(4), full.source_line(8)), (Some(("a/b.s", 3)), Some(("c.inc", 1))));
        assert_eq!((full.constants.len(), bare.constants.len(), bare.files.len()), (2, 0, 0));
    }

    #[test]
    fn traces_are_json_and_folders_hold_a_card() {
        let traces: serde_json::Value = serde_json::from_slice(&traces()).unwrap();
        assert_eq!(traces["traces"].as_array().map(Vec::len), Some(2));
        for folder in [machine(), changing_machine()] {
            let text = String::from_utf8(folder).unwrap();
            let parts: Vec<&str> = text.split('\0').collect();
            let at = parts.iter().position(|part| *part == "nodes/1/properties").unwrap();
            let properties = GpuProperties::parse("seed", parts[at + 1].as_bytes()).unwrap();
            assert_eq!((parts.len() % 2, properties.gfx_target_version), (1, 120_001));
        }
    }
}
