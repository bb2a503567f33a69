//! `cargo xtask fuzz-seeds`: the inputs from which the fuzzers start.
//!
//! Contract: every seed is small, is made here from numbers of its own and passes its reader's first checks; they are
//! committed under `fuzz/seeds/TARGET`, and `--check` says which differ. Two models of one layer, packets of each kind,
//! the instructions of the golden corpus, an assembled object and two of our kernels, as files and as code alone; what
//! is a file by itself is in [`files`], folders of models in [`folders`], what kernels print in [`printed`].

mod files;
mod folders;
mod printed;

use std::error::Error;
use std::path::{Path, PathBuf};
use zrt_isa::zrt::Kernel;
use zrt_pm4::packet::copy_data::Source;
use zrt_pm4::packet::wait_reg_mem::Comparison;
use zrt_pm4::packet::{
    copy_data, dispatch_direct, event_write, indirect_buffer, release_mem, wait_reg_mem, write_data,
};
use zrt_pm4::registers::{ResourceLimits, WaveSize};
use zrt_pm4::{EmitError, KernelParameters, KernelState, Writer};

#[path = "../../../loader/tests/data/double_object.rs"]
mod double_object;

/// Words of the golden corpus in a seed.
const PIECE_WORDS: usize = 128;
/// The golden corpus: words in hexadecimal, a tab, text.
const GOLDEN: &str = include_str!("../../../isa/tests/golden.txt");
/// A template that joins messages, and a message, after a zero byte.
const CHAT_LOOP: &str = "{% for m in messages[::-1] %}{{ '<|' + m.role + '|>' ~ m.content.split(' ')[0] | trim }}\n\
                         {% endfor %}{% if add_generation_prompt %}{{ bos_token }}{% endif %}\0a <|endoftext|> b";
/// One with a macro, a namespace and JSON.
const CHAT_MACRO: &str = "{% set n = namespace(x=[]) %}{% macro f(a, b={'k': 1}) %}{{ a | tojson(indent=2) }}{{ b }}\
                          {% endmacro %}{% for m in messages if m.content %}{% set n.x = n.x + [m] %}{% endfor %}\
                          {{ f(n.x) }}{{ f(n, b=loop is defined) }}\0<|endof";
/// Kernels of ours that are seeds.
const KERNELS: [&str; 2] = ["copy", "residual_add"];

/// Arguments of `cargo xtask fuzz-seeds`.
#[derive(clap::Args)]
pub struct SeedArguments {
    /// Compare with the committed seeds instead of writing them
    #[arg(long)]
    check: bool,
}

/// One input.
struct Seed {
    /// The target that starts from it.
    target: &'static str,
    /// Its file.
    name: String,
    bytes: Vec<u8>,
}

/// The folder of the committed seeds: one for each target.
pub fn committed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds")
}

/// Writes all seeds into a folder, or compares them with the files there.
pub fn run(folder: &Path, arguments: &SeedArguments) -> Result<(), Box<dyn Error>> {
    let seeds = all()?;
    if arguments.check {
        let differing: Vec<String> = seeds
            .iter()
            .filter(|seed| !is_in(folder, seed))
            .map(|seed| format!("{}/{}", seed.target, seed.name))
            .collect();
        if !differing.is_empty() {
            return Err(format!("{} differ: run `cargo xtask fuzz-seeds`", differing.join(", ")).into());
        }
    } else {
        for seed in &seeds {
            std::fs::create_dir_all(folder.join(seed.target))?;
            std::fs::write(folder.join(seed.target).join(&seed.name), &seed.bytes)?;
        }
    }
    println!("{} seeds, {} bytes", seeds.len(), seeds.iter().map(|seed| seed.bytes.len()).sum::<usize>());
    Ok(())
}

fn is_in(folder: &Path, seed: &Seed) -> bool {
    std::fs::read(folder.join(seed.target).join(&seed.name)).is_ok_and(|bytes| bytes == seed.bytes)
}

fn all() -> Result<Vec<Seed>, Box<dyn Error>> {
    let seed = |target, name: &str, bytes| Seed { target, name: name.to_owned(), bytes };
    let mut seeds = vec![
        seed("code_object", "metadata", metadata()),
        seed("code_object", "lines", lines()),
        seed("container", "wave32", files::container(zrt_isa::resources::WaveSize::Wave32)?),
        seed("container", "wave64", files::container(zrt_isa::resources::WaveSize::Wave64)?),
        seed("chat", "loop", CHAT_LOOP.into()),
        seed("chat", "macro", CHAT_MACRO.into()),
        seed("golden", "traces", files::traces()),
        seed("print", "hostcalls", printed::hostcalls()),
        seed("print", "buffered", printed::buffered()),
        seed("print", "hashed", printed::hashed()),
        seed("print", "numbered", printed::numbered()),
        seed("script", "steps", files::script().into_bytes()),
        seed("script", "loops", files::looped_script().into_bytes()),
        seed("topology", "machine", files::machine()),
        seed("topology", "changing", files::changing_machine()),
        seed("gguf", "llama", llama()),
        seed("gguf", "qwen3", qwen3()),
        seed("gguf", "unigram", unigram()),
        seed("safetensors", "bytes", folders::bytes()),
        seed("safetensors", "characters", folders::characters()),
        seed("pm4_stream", "dispatch", bytes_of(&dispatch()?)),
        seed("pm4_stream", "packets", bytes_of(&packets()?)),
        seed("program", "double.bundle", bundle(&bytes_of(&double_object::DOUBLE_OBJECT))),
        seed("program", "double.o", bytes_of(&double_object::DOUBLE_OBJECT)),
    ];
    for name in KERNELS {
        let blob = zrt_asm::blob(name).ok_or_else(|| format!("there is no kernel {name}"))?;
        seeds.push(seed("program", &format!("{name}.zrt"), blob.to_vec()));
        let kernel = Kernel::parse(blob)?;
        seeds.push(seed("machine_code", &format!("{name}.bin"), kernel.code.to_vec()));
    }
    let files = seeds.iter().filter(|seed| seed.target == "program");
    let listed = files.map(|file| seed("machine_code", &file.name, file.bytes.clone()));
    seeds.extend(listed.collect::<Vec<_>>());
    for (index, piece) in golden_words()?.chunks(PIECE_WORDS).enumerate() {
        seeds.push(seed("isa_decode", &format!("golden-{index}"), bytes_of(piece)));
    }
    Ok(seeds)
}

fn bytes_of(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A clang bundle with one code object: magic, count, offset, length, length of the name, name, content.
fn bundle(object: &[u8]) -> Vec<u8> {
    let (magic, name) = (b"__CLANG_OFFLOAD_BUNDLE__", b"hipv4-amdgcn-amd-amdhsa--gfx1201");
    let offset = magic.len() + 4 * 8 + name.len();
    let numbers = [1, offset, object.len(), name.len()].map(|number| (number as u64).to_le_bytes());
    [magic, &numbers.concat()[..], name, object].concat()
}

/// Metadata with a version and no kernel, after the byte that selects it.
fn metadata() -> Vec<u8> {
    // MessagePack: a map of two, strings of 14 bytes, two small numbers, an empty list.
    [&[0, 0x82, 0xAE][..], b"amdhsa.version", &[0x92, 1, 2, 0xAE], b"amdhsa.kernels", &[0x90]].concat()
}

/// A line program of DWARF 4 §6.2 with one file and two rows, then strings of the same length, after the byte that
/// selects it.
fn lines() -> Vec<u8> {
    // Advances that the standard opcodes take, by opcode from 1.
    const OPERAND_COUNTS: [u8; 12] = [0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1];
    // Instructions of 4 bytes, one operation, statements, lines from -5 in steps of 14, special opcodes from 13.
    let fields = [&[4, 1, 1, 0xFB, 14, 13][..], &OPERAND_COUNTS].concat();
    let names = b"\0a.c\0\0\0\0\0";
    // The address 0, a row, another one line and one instruction on, the end of the sequence.
    let program = [&[0, 9, 2][..], &[0; 8], &[1, 0x21, 0, 1, 1]].concat();
    let header = [fields.as_slice(), names].concat();
    let unit = [&4u16.to_le_bytes()[..], &(header.len() as u32).to_le_bytes(), &header, &program].concat();
    let section = [&(unit.len() as u32).to_le_bytes()[..], &unit].concat();
    let strings = vec![b'x'; section.len()];
    [&[1][..], &section, &strings].concat()
}

/// The words of the golden corpus, one instruction after the other.
fn golden_words() -> Result<Vec<u32>, Box<dyn Error>> {
    let lines = GOLDEN.lines().filter(|line| !line.starts_with('#'));
    let words = lines.flat_map(|line| line.split('\t').next().unwrap_or_default().split_whitespace());
    Ok(words.map(|word| u32::from_str_radix(word, 16)).collect::<Result<_, _>>()?)
}

/// The packets of a recorded kernel: its registers, a launch, the barrier after it.
fn dispatch() -> Result<Vec<u32>, EmitError> {
    let state = KernelState::new(&KernelParameters {
        code_address: 0x7f00_1234_5600,
        rsrc1: 3,
        rsrc2: 4 << 1,
        rsrc3: 0,
        workgroup: [64, 2, 1],
        limits: ResourceLimits::default(),
        wave: WaveSize::Wave32,
    })?;
    written(|writer| {
        writer.acquire_everything()?;
        writer.dispatch(&state, &[1, 2, 3, 4], [40, 1, 1])?;
        writer.barrier()
    })
}

/// A packet of each other kind.
fn packets() -> Result<Vec<u32>, EmitError> {
    written(|writer| {
        writer.nop(1)?;
        writer.nop(7)?;
        writer.write_data(&write_data::Repr::memory(0x7f00_0000_1000, &[1, 2, 3]))?;
        writer.copy_data(&copy_data::Repr::to_memory(Source::GpuClock, 0x7f00_0000_2000))?;
        writer.wait_reg_mem(&wait_reg_mem::Repr::memory(Comparison::Equal, 0x7f00_0000_3000, 5))?;
        writer.event_write(&event_write::Repr::CS_PARTIAL_FLUSH)?;
        writer.dispatch_direct(&dispatch_direct::Repr::wave32([3, 2, 1]))?;
        writer.indirect_buffer(&indirect_buffer::Repr::call(0x7f00_0000_4000, 64))?;
        writer.release_mem(&release_mem::Repr::fence(0x7f00_0000_5000, 9))
    })
}

/// The words that a function writes.
fn written(write: impl FnOnce(&mut Writer<'_>) -> Result<(), EmitError>) -> Result<Vec<u32>, EmitError> {
    let mut words = vec![0; 256];
    let mut writer = Writer::new(&mut words);
    write(&mut writer)?;
    let length = writer.len();
    words.truncate(length);
    Ok(words)
}

/// Width of the models, and of their feed-forward layers: a block of each quantised type.
const WIDTH: u64 = 32;
/// Tokens of the models.
const TOKENS: u64 = 12;
/// GGUF's numbers of tensor types: F32, Q4_0, Q8_0 (llama.cpp, `enum ggml_type`).
const F32: u32 = 0;
const Q4_0: u32 = 2;
const Q8_0: u32 = 8;

/// A model file field by field: version 3 (the GGUF specification of ggml). Tensors before pairs, as they are needed
/// for the counts.
struct ModelFile {
    pairs: Vec<u8>,
    pair_count: u64,
    tensors: Vec<u8>,
    tensor_count: u64,
    data: Vec<u8>,
}

impl ModelFile {
    /// The pairs that each architecture has.
    fn new(architecture: &str) -> ModelFile {
        let file = ModelFile {
            pairs: Vec::new(),
            pair_count: 0,
            tensors: Vec::new(),
            tensor_count: 0,
            data: Vec::new(),
        };
        let name = |key: &str| format!("{architecture}.{key}");
        file.text("general.architecture", architecture)
            .number(&name("block_count"), 1)
            .number(&name("context_length"), 64)
            .number(&name("embedding_length"), WIDTH as u32)
            .number(&name("feed_forward_length"), WIDTH as u32)
            .number(&name("attention.head_count"), 2)
            .number(&name("attention.head_count_kv"), 1)
            .number(&name("attention.key_length"), 16)
            .number(&name("attention.value_length"), 16)
            .pair(&name("attention.layer_norm_rms_epsilon"), 6, &1e-5f32.to_le_bytes())
    }

    fn pair(mut self, key: &str, kind: u32, value: &[u8]) -> ModelFile {
        push_text(&mut self.pairs, key);
        self.pairs.extend(kind.to_le_bytes());
        self.pairs.extend(value);
        self.pair_count += 1;
        self
    }

    fn number(self, key: &str, value: u32) -> ModelFile {
        self.pair(key, 4, &value.to_le_bytes())
    }

    fn text(self, key: &str, value: &str) -> ModelFile {
        let mut bytes = Vec::new();
        push_text(&mut bytes, value);
        self.pair(key, 8, &bytes)
    }

    fn texts(self, key: &str, values: &[&str]) -> ModelFile {
        let mut bytes = array_head(8, values.len());
        values.iter().for_each(|value| push_text(&mut bytes, value));
        self.pair(key, 9, &bytes)
    }

    fn floats(self, key: &str, values: &[f32]) -> ModelFile {
        let mut bytes = array_head(6, values.len());
        values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
        self.pair(key, 9, &bytes)
    }

    fn integers(self, key: &str, values: &[i32]) -> ModelFile {
        let mut bytes = array_head(5, values.len());
        values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
        self.pair(key, 9, &bytes)
    }

    /// A tensor of `rows` times `columns` elements, whose bytes count up.
    fn tensor(mut self, name: &str, kind: u32, columns: u64, rows: u64) -> ModelFile {
        push_text(&mut self.tensors, &format!("{name}.weight"));
        let dimensions: &[u64] = if rows == 1 { &[columns] } else { &[columns, rows] };
        self.tensors.extend((dimensions.len() as u32).to_le_bytes());
        dimensions.iter().for_each(|dimension| self.tensors.extend(dimension.to_le_bytes()));
        self.tensors.extend(kind.to_le_bytes());
        self.tensors.extend((self.data.len() as u64).to_le_bytes());
        // Bytes of a block of 32 elements.
        let block_bytes = match kind {
            Q4_0 => 18,
            Q8_0 => 34,
            _ => 128,
        };
        let bytes = rows * columns * block_bytes / 32;
        self.data.extend((0..bytes).map(|index| index as u8));
        self.data.resize(self.data.len().next_multiple_of(ALIGNMENT), 0);
        self.tensor_count += 1;
        self
    }

    /// The tensors of one layer and of what is around it, matrices of one type.
    fn matrices(self, kind: u32) -> ModelFile {
        let kv = WIDTH / 2;
        self.tensor("token_embd", kind, WIDTH, TOKENS)
            .tensor("blk.0.attn_norm", F32, WIDTH, 1)
            .tensor("blk.0.attn_q", kind, WIDTH, WIDTH)
            .tensor("blk.0.attn_k", kind, WIDTH, kv)
            .tensor("blk.0.attn_v", kind, WIDTH, kv)
            .tensor("blk.0.attn_output", kind, WIDTH, WIDTH)
            .tensor("blk.0.ffn_norm", F32, WIDTH, 1)
            .tensor("blk.0.ffn_gate", kind, WIDTH, WIDTH)
            .tensor("blk.0.ffn_up", kind, WIDTH, WIDTH)
            .tensor("blk.0.ffn_down", kind, WIDTH, WIDTH)
            .tensor("output_norm", F32, WIDTH, 1)
    }

    fn finish(self) -> Vec<u8> {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(3u32.to_le_bytes());
        bytes.extend(self.tensor_count.to_le_bytes());
        bytes.extend(self.pair_count.to_le_bytes());
        bytes.extend(self.pairs);
        bytes.extend(self.tensors);
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        bytes.extend(self.data);
        bytes
    }
}

/// Alignment of tensors if a file specifies none.
const ALIGNMENT: usize = 32;

fn push_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
}

fn array_head(kind: u32, count: usize) -> Vec<u8> {
    [kind.to_le_bytes().as_slice(), &(count as u64).to_le_bytes()].concat()
}

/// A SentencePiece vocabulary and matrices in Q8_0.
fn llama() -> Vec<u8> {
    let tokens =
        ["<unk>", "<s>", "</s>", "<0x0A>", "\u{2581}", "a", "b", "c", "ab", "\u{2581}a", "\u{2581}ab", "é"];
    ModelFile::new("llama")
        .text("tokenizer.ggml.model", "llama")
        .texts("tokenizer.ggml.tokens", &tokens)
        .floats(
            "tokenizer.ggml.scores",
            &[0.0, 0.0, 0.0, 0.0, -1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0, -8.0],
        )
        .integers("tokenizer.ggml.token_type", &[2, 3, 3, 6, 1, 1, 1, 1, 1, 1, 4, 5])
        .number("tokenizer.ggml.eos_token_id", 2)
        .matrices(Q8_0)
        .finish()
}

/// A unigram vocabulary with a map that replaces `A` by `ab`, and matrices in Q8_0.
fn unigram() -> Vec<u8> {
    let tokens = ["<unk>", "</s>", "<turn>", "\u{2581}", "a", "b", "ab", "\u{2581}a", "c", "é", "bc", "abc"];
    let mut nodes = [0u32; 128];
    let place = 8 ^ usize::from(b'A');
    (nodes[0], nodes[16]) = (8 << 10, 1 << 31);
    nodes[place] = u32::from(b'A') | 1 << 8 | ((place ^ 16) as u32) << 10;
    let trie: Vec<u8> = nodes.iter().flat_map(|node| node.to_le_bytes()).collect();
    let map = [&(trie.len() as u32).to_le_bytes()[..], &trie, b"ab\0"].concat();
    let array = [array_head(0, map.len()), map].concat();
    ModelFile::new("llama")
        .text("tokenizer.ggml.model", "t5")
        .texts("tokenizer.ggml.tokens", &tokens)
        .floats(
            "tokenizer.ggml.scores",
            &[0.0, 0.0, 0.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0, -8.0, -9.0, -9.5],
        )
        .integers("tokenizer.ggml.token_type", &[2, 3, 4, 1, 1, 1, 1, 1, 1, 1, 5, 1])
        .pair("tokenizer.ggml.precompiled_charsmap", 9, &array)
        .number("tokenizer.ggml.unknown_token_id", 0)
        .number("tokenizer.ggml.eos_token_id", 1)
        .matrices(Q8_0)
        .finish()
}

/// A byte-pair vocabulary, norms of heads and matrices in Q4_0.
fn qwen3() -> Vec<u8> {
    let tokens = ["<|end|>", "O", "n", "c", "e", "On", "ce", "Once", "\u{120}", "u", "\u{120}u", "3"];
    ModelFile::new("qwen3")
        .text("tokenizer.ggml.model", "gpt2")
        .text("tokenizer.ggml.pre", "qwen2")
        .texts("tokenizer.ggml.tokens", &tokens)
        .texts("tokenizer.ggml.merges", &["O n", "c e", "On ce", "\u{120} u"])
        .integers("tokenizer.ggml.token_type", &[3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1])
        .pair("tokenizer.ggml.add_bos_token", 7, &[0])
        .matrices(Q4_0)
        .tensor("blk.0.attn_q_norm", F32, 16, 1)
        .tensor("blk.0.attn_k_norm", F32, 16, 1)
        .tensor("output", Q4_0, WIDTH, TOKENS)
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use zrt_engine::gguf::Gguf;
    use zrt_engine::model::Model;
    use zrt_engine::tokenizer::Tokenizer;

    fn of(target: &str) -> Vec<Seed> {
        all().unwrap().into_iter().filter(|seed| seed.target == target).collect()
    }

    #[test]
    fn every_target_has_seeds_and_they_are_committed() {
        for target in super::super::TARGETS {
            let seeds = of(target.name);
            assert!(!seeds.is_empty(), "{}", target.name);
            for seed in seeds {
                assert!(
                    is_in(&committed(), &seed),
                    "{}/{}: run `cargo xtask fuzz-seeds`",
                    seed.target,
                    seed.name
                );
                assert!(seed.bytes.len() <= target.input_bytes_max, "{}/{}", seed.target, seed.name);
            }
        }
        let files = |target: &str| std::fs::read_dir(committed().join(target)).unwrap().count();
        let count: usize = super::super::TARGETS.iter().map(|target| files(target.name)).sum();
        assert_eq!(count, all().unwrap().len(), "a file in fuzz/seeds that nobody makes");
    }

    #[test]
    fn a_check_names_the_seeds_that_differ_and_a_run_mends_them() {
        let folder = zrt_needs::TemporaryFolder::new("seeds");
        let said = |check| run(&folder, &SeedArguments { check }).map_err(|error| error.to_string());
        let differ = |names: &str| Err(format!("{names} differ: run `cargo xtask fuzz-seeds`"));
        let names: Vec<String> =
            all().unwrap().iter().map(|seed| format!("{}/{}", seed.target, seed.name)).collect();
        assert_eq!(said(true), differ(&names.join(", ")));
        assert_eq!((said(false), said(true)), (Ok(()), Ok(())));
        std::fs::write(folder.join("script/steps"), "").unwrap();
        std::fs::remove_file(folder.join("gguf/llama")).unwrap();
        assert_eq!(said(true), differ("script/steps, gguf/llama"));
        assert_eq!((said(false), said(true)), (Ok(()), Ok(())));
    }

    #[test]
    fn models_load_and_their_tokenizers_take_text() {
        for seed in of("gguf") {
            let gguf = Arc::new(Gguf::from_bytes(seed.bytes).unwrap());
            let tokenizer = Tokenizer::from_gguf(&gguf).unwrap();
            assert!(!tokenizer.encode("Once a").is_empty());
            let model = Model::load(gguf).unwrap();
            assert_eq!((model.config.layers, u64::from(model.config.vocabulary)), (1, TOKENS));
        }
    }

    #[test]
    fn programs_have_kernels() {
        for seed in of("program") {
            assert_eq!(zrt_loader::Program::parse(&seed.bytes).unwrap().kernels().len(), 1, "{}", seed.name);
        }
    }

    #[test]
    fn streams_are_packets_to_their_end() {
        for words in [dispatch().unwrap(), packets().unwrap()] {
            let items: Vec<_> = zrt_pm4::Reader::new(&words).collect();
            assert!(items.iter().all(|item| item.as_ref().is_ok_and(|item| item.parse().is_ok())));
            assert_eq!(items.into_iter().map(|item| item.unwrap().words.len()).sum::<usize>(), words.len());
        }
    }

    #[test]
    fn most_of_the_golden_words_are_instructions() {
        let words = golden_words().unwrap();
        let mut rest = words.as_slice();
        let mut count = 0;
        while !rest.is_empty() {
            let length = zrt_isa::decode(rest).map_or(1, |instruction| usize::from(instruction.dword_count));
            count += usize::from(zrt_isa::decode(rest).is_ok());
            rest = &rest[length.min(rest.len())..];
        }
        assert!(count > 400, "{count} of {} words", words.len());
    }
}
