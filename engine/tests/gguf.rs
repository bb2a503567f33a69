//! The GGUF reader against real files, hand-built files, and hostile files.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use zrt_engine::gguf::{Array, Gguf, GgufError, StringList, TensorKind, Value, limits};

fn repository_model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../models").join(name)
}

/// Writes GGUF bytes field by field; knows nothing of the reader.
struct Builder(Vec<u8>);

impl Builder {
    fn new(version: u32, tensors: u64, pairs: u64) -> Builder {
        Builder(b"GGUF".to_vec()).u32(version).u64(tensors).u64(pairs)
    }

    fn raw(mut self, bytes: &[u8]) -> Builder {
        self.0.extend_from_slice(bytes);
        self
    }

    fn u32(self, value: u32) -> Builder {
        self.raw(&value.to_le_bytes())
    }

    fn u64(self, value: u64) -> Builder {
        self.raw(&value.to_le_bytes())
    }

    fn text(self, text: &str) -> Builder {
        self.u64(text.len() as u64).raw(text.as_bytes())
    }

    fn pair(self, key: &str, value_type: u32, value: &[u8]) -> Builder {
        self.text(key).u32(value_type).raw(value)
    }

    fn tensor(self, name: &str, dimensions: &[u64], kind: u32, offset: u64) -> Builder {
        let counted = self.text(name).u32(dimensions.len() as u32);
        dimensions.iter().fold(counted, |builder, dimension| builder.u64(*dimension)).u32(kind).u64(offset)
    }

    /// Pads to `alignment` and appends `len` bytes that count up.
    fn data(mut self, alignment: usize, len: usize) -> Builder {
        self.0.resize(self.0.len().next_multiple_of(alignment), 0xee);
        self.0.extend((0..len).map(|index| index as u8));
        self
    }

    fn open(self) -> Result<Gguf, GgufError> {
        Gguf::from_bytes(self.0)
    }
}

#[test]
fn the_default_model_is_what_its_makers_say() {
    let gguf = Gguf::open(&repository_model("tales-qwen3-Q4_0.gguf")).unwrap();
    assert_eq!(gguf.version, 3);
    assert_eq!(gguf.file_bytes(), 4_554_368);
    assert_eq!(gguf.element_count_total(), 7_345_408);
    let metadata = &gguf.metadata;
    assert_eq!(metadata.str("general.architecture").unwrap(), "qwen3");
    assert_eq!(metadata.u32("qwen3.embedding_length").unwrap(), 256);
    assert_eq!(metadata.u32("qwen3.block_count").unwrap(), 8);
    assert_eq!(metadata.u32("qwen3.attention.head_count").unwrap(), 4);
    assert_eq!(metadata.u32("qwen3.attention.head_count_kv").unwrap(), 2);
    assert_eq!(metadata.u32("qwen3.feed_forward_length").unwrap(), 768);
    assert_eq!(metadata.u32("qwen3.context_length").unwrap(), 2048);
    assert_eq!(metadata.f32("qwen3.attention.layer_norm_rms_epsilon").unwrap(), 1e-6);
    assert_eq!(metadata.strings("tokenizer.ggml.tokens").unwrap().len(), 4096);
    assert_eq!(metadata.strings("tokenizer.ggml.tokens").unwrap().get(0), Some("<|endoftext|>"));

    let embedding = gguf.tensor("token_embd.weight").unwrap();
    assert_eq!((embedding.kind, &embedding.dimensions[..]), (TensorKind::Q6_K, &[256, 4096][..]));
    assert_eq!((embedding.row_bytes(), embedding.bytes), (210, 210 * 4096));
    assert_eq!(gguf.tensor("blk.7.ffn_down.weight").unwrap().kind, TensorKind::Q4_0);
    assert_eq!(gguf.tensor("blk.0.attn_norm.weight").unwrap().kind, TensorKind::F32);
    assert!(gguf.tensor("output.weight").is_none(), "the output is tied to the embedding");
}

#[test]
fn a_mapped_file_and_its_bytes_in_memory_are_the_same_model() {
    let path = repository_model("tales-llama-Q4_K_M.gguf");
    let mapped = Gguf::open(&path).unwrap();
    let memory = Gguf::from_bytes(std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(mapped.tensors(), memory.tensors());
    assert!(mapped.metadata.iter().eq(memory.metadata.iter()));
    let file = std::fs::read(&path).unwrap();
    for tensor in mapped.tensors() {
        let begin = tensor.offset as usize;
        let expected = &file[begin..begin + tensor.bytes as usize];
        assert_eq!(mapped.read_tensor(tensor, 0..tensor.bytes).unwrap(), expected);
        assert_eq!(memory.read_tensor(tensor, 3..7).unwrap(), expected[3..7]);
    }
}

/// A file that is still being downloaded: its tensors as soon as the header is there, and no bytes of those that are
/// not.
#[test]
fn the_beginning_of_a_file_has_its_shapes_and_no_other_weights() {
    let bytes = std::fs::read(repository_model("tales-qwen3-Q4_0.gguf")).unwrap();
    let whole = Gguf::from_bytes(bytes.clone()).unwrap();
    let first = whole.tensors().iter().map(|tensor| tensor.offset as usize).min().unwrap();
    let folder = zrt_needs::TemporaryFolder::new("part");
    let path = folder.join("part.gguf");
    for (length, is_header) in [(first, true), (bytes.len() / 2, true), (first / 2, false)] {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let part = Gguf::open_beginning(&path);
        assert_eq!(part.as_ref().is_ok_and(|part| part.tensors() == whole.tensors()), is_header, "{length}");
        assert!(Gguf::open(&path).is_err());
        let Ok(part) = part else { continue };
        for tensor in part.tensors() {
            let is_there = tensor.offset + tensor.bytes <= length as u64;
            assert_eq!(part.read_tensor(tensor, 0..tensor.bytes).is_ok(), is_there, "{}", tensor.name);
        }
    }
}

/// The first half of a file, and its length: the same tensors, and zeros for what is not there.
#[test]
fn a_head_has_the_shapes_of_its_file() {
    let path = repository_model("tales-qwen3-Q4_0.gguf");
    let bytes = std::fs::read(path).unwrap();
    let whole = Gguf::from_bytes(bytes.clone()).unwrap();
    let head = Gguf::from_head(bytes[..bytes.len() / 2].to_vec(), bytes.len() as u64).unwrap();
    assert_eq!(head.tensors(), whole.tensors());
    let last = whole.tensors().iter().max_by_key(|tensor| tensor.offset).unwrap();
    assert!(head.read_tensor(last, 0..last.bytes).unwrap().iter().all(|byte| *byte == 0));
    // A file that is shorter than its tensors say is refused.
    assert!(Gguf::from_head(bytes[..bytes.len() / 2].to_vec(), bytes.len() as u64 / 2).is_err());
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Gguf::open(Path::new("no/such/model.gguf")).unwrap_err();
    assert!(error.to_string().contains("no/such/model.gguf"), "{error}");
    assert!(matches!(Gguf::open(Path::new("/")), Err(GgufError::Open { .. })));
    assert!(matches!(Gguf::open(Path::new("/dev/zero")), Err(GgufError::Open { .. })));
}

#[test]
fn every_value_type_reads_as_written_in_both_versions() {
    for version in [2, 3] {
        let nested = Builder(vec![]).u32(9).u64(2).u32(0).u64(2).raw(&[1, 2]).u32(8).u64(1).text("é");
        let gguf = Builder::new(version, 0, 17)
            .pair("u8", 0, &[0xfe])
            .pair("i8", 1, &[0xfe])
            .pair("u16", 2, &[0xfe, 0xff])
            .pair("i16", 3, &[0xfe, 0xff])
            .pair("u32", 4, &[1, 2, 3, 4])
            .pair("i32", 5, &(-5i32).to_le_bytes())
            .pair("f32", 6, &1.5f32.to_le_bytes())
            .pair("bool", 7, &[1])
            .pair("string", 8, &Builder(vec![]).text("héllo").0)
            .pair("u64", 10, &u64::MAX.to_le_bytes())
            .pair("i64", 11, &i64::MIN.to_le_bytes())
            .pair("f64", 12, &0.1f64.to_le_bytes())
            .pair("f32s", 9, &Builder(vec![]).u32(6).u64(2).raw(&[0, 0, 128, 63, 0, 0, 0, 64]).0)
            .pair("strings", 9, &Builder(vec![]).u32(8).u64(3).text("a").text("").text("bc").0)
            .pair("bools", 9, &Builder(vec![]).u32(7).u64(2).raw(&[0, 1]).0)
            .pair("empty", 9, &Builder(vec![]).u32(12).u64(0).0)
            .pair("nested", 9, &nested.0)
            .open()
            .unwrap();
        assert_eq!(gguf.version, version);
        let metadata = &gguf.metadata;
        assert_eq!(metadata.get("u8"), Some(&Value::U8(0xfe)));
        assert_eq!(metadata.get("i8"), Some(&Value::I8(-2)));
        assert_eq!(metadata.get("u16"), Some(&Value::U16(0xfffe)));
        assert_eq!(metadata.get("i16"), Some(&Value::I16(-2)));
        assert_eq!(metadata.u32("u32").unwrap(), 0x0403_0201);
        assert_eq!(metadata.get("i32"), Some(&Value::I32(-5)));
        assert_eq!(metadata.f32("f32").unwrap(), 1.5);
        assert!(metadata.bool("bool").unwrap());
        assert_eq!(metadata.str("string").unwrap(), "héllo");
        assert_eq!(metadata.u64("u64").unwrap(), u64::MAX);
        assert_eq!(metadata.get("i64"), Some(&Value::I64(i64::MIN)));
        assert_eq!(metadata.f32("f64").unwrap(), 0.1);
        assert_eq!(metadata.f32s("f32s").unwrap(), [1.0, 2.0]);
        assert!(metadata.strings("strings").unwrap().iter().eq(["a", "", "bc"]));
        assert_eq!(metadata.array("bools").unwrap(), &Array::Bool(vec![false, true]));
        assert!(metadata.array("empty").unwrap().is_empty());
        let inner = Array::String(["é"].into_iter().collect());
        assert_eq!(metadata.array("nested").unwrap(), &Array::Array(vec![Array::U8(vec![1, 2]), inner]));
        assert_eq!(metadata.len(), 17);
    }
}

#[test]
fn getters_convert_what_fits_and_name_what_does_not() {
    let gguf = Builder::new(3, 0, 3)
        .pair("small", 0, &[7])
        .pair("negative", 5, &(-1i32).to_le_bytes())
        .pair("text", 8, &Builder(vec![]).text("x").0)
        .open()
        .unwrap();
    let metadata = &gguf.metadata;
    assert_eq!(metadata.u32("small").unwrap(), 7);
    assert_eq!(metadata.u32_or("absent", 9).unwrap(), 9);
    assert_eq!(metadata.str_or("absent", "fallback").unwrap(), "fallback");
    assert!(matches!(metadata.u32("absent"), Err(GgufError::MissingKey { .. })));
    assert!(matches!(metadata.u32("negative"), Err(GgufError::WrongType { .. })));
    // A default replaces an absent key, not a wrong type.
    let error = metadata.f32_or("text", 1.0).unwrap_err();
    assert_eq!(error.to_string(), "metadata key \"text\" holds a string, but a float is needed");
}

/// Whole numbers of any type that GGUF has; what does not fit is refused by the name of its type.
#[test]
fn an_integer_of_any_width_is_read_as_one() {
    let types: [(&str, u32, &[u8]); 8] = [
        ("a U8", 0, &[200]),
        ("an I8", 1, &[100]),
        ("a U16", 2, &[0x10, 0x27]),
        ("an I16", 3, &[0xd0, 0x07]),
        ("a U32", 4, &[0, 0, 0, 0x80]),
        ("an I32", 5, &[1, 0, 1, 0]),
        ("a U64", 10, &[9, 0, 0, 0, 0, 0, 0, 0]),
        ("an I64", 11, &[7, 1, 0, 0, 0, 0, 0, 0]),
    ];
    let values = [200, 100, 10_000, 2_000, 0x8000_0000, 0x0001_0001, 9, 263];
    for ((name, value_type, bytes), expected) in types.into_iter().zip(values) {
        let open = |bytes: &[u8]| Builder::new(3, 0, 1).pair("k", value_type, bytes).open().unwrap().metadata;
        assert_eq!(open(bytes).u32("k").unwrap(), expected, "{name}");
        assert_eq!(open(bytes).u64("k").unwrap(), u64::from(expected), "{name}");
        let ones = open(&vec![0xff; bytes.len()]).u32("k");
        if name.starts_with("an I") || name == "a U64" {
            let wanted =
                format!("metadata key \"k\" holds {name}, but an integer from 0 to 4294967295 is needed");
            assert_eq!(ones.unwrap_err().to_string(), wanted);
        } else {
            assert_eq!(ones.unwrap(), u32::MAX >> (32 - 8 * bytes.len()), "{name}");
        }
    }
}

#[test]
fn lengths_of_metadata_arrays_and_lists_are_those_of_the_file() {
    // Bytes of an element, by the number of its type; 7 are booleans.
    for (element_type, bytes) in
        [(0, 1), (1, 1), (2, 2), (3, 2), (4, 4), (5, 4), (6, 4), (7, 1), (10, 8), (12, 8)]
    {
        let array = Builder(vec![]).u32(element_type).u64(3).raw(&vec![0; 3 * bytes]).0;
        let metadata = Builder::new(3, 0, 1).pair("k", 9, &array).open().unwrap().metadata;
        let array = metadata.array("k").unwrap();
        assert_eq!((array.len(), array.is_empty()), (3, false), "type {element_type}");
        assert!(!metadata.is_empty());
    }
    assert!(Builder::new(3, 0, 0).open().unwrap().metadata.is_empty());
    let list: StringList = ["a", "", "b\u{e9}"].into_iter().collect();
    assert_eq!((list.len(), list.is_empty(), list.text_bytes()), (3, false, 4));
    assert!(StringList::default().is_empty());
}

/// Header of `tensors` entries and no metadata, followed by 128 bytes of data.
fn with_tensors(tensors: &[(&str, &[u64], u32, u64)]) -> Result<Gguf, GgufError> {
    let header = Builder::new(3, tensors.len() as u64, 0);
    tensors
        .iter()
        .fold(header, |builder, (name, dimensions, kind, offset)| {
            builder.tensor(name, dimensions, *kind, *offset)
        })
        .data(32, 128)
        .open()
}

#[test]
fn tensors_are_found_and_read() {
    let gguf =
        with_tensors(&[("a", &[2, 3], 0, 0), ("b", &[32], 8, 32), ("c", &[1, 1, 1, 5], 24, 96)]).unwrap();
    let b = gguf.tensor("b").unwrap();
    assert_eq!((b.kind, b.bytes, b.columns(), b.rows()), (TensorKind::Q8_0, 34, 32, 1));
    let data = gguf.tensor("a").unwrap().offset;
    assert_eq!((data % 32, b.offset, gguf.file_bytes()), (0, data + 32, data + 128));
    assert_eq!(gguf.read_tensor(b, 0..3).unwrap(), [32, 33, 34]);
    let c = gguf.tensor("c").unwrap();
    assert_eq!((c.bytes, c.rows(), c.element_count()), (5, 5, 5));
    assert_eq!(gguf.read_tensor(c, 4..5).unwrap(), [100]);
    assert!(matches!(gguf.read_tensor(c, 4..6), Err(GgufError::RangeOutsideTensor { .. })));
    #[allow(clippy::reversed_empty_ranges)]
    let backwards = gguf.read_tensor(c, 3..2);
    assert!(matches!(backwards, Err(GgufError::RangeOutsideTensor { .. })));
    assert!(gguf.tensor("d").is_none());
    assert_eq!(gguf.tensor_bytes_total(), 24 + 34 + 5);
    assert!(!gguf.is_made());
    // Behind a tensor lies the next one: it is not read as a part of the first.
    let mut two = [0; 2];
    gguf.read_tensor_into(gguf.tensor("a").unwrap(), 22, &mut two).unwrap();
    assert_eq!(two, [22, 23]);
    let error = gguf.read_tensor_into(gguf.tensor("a").unwrap(), 23, &mut two).unwrap_err();
    assert_eq!(error.to_string(), "bytes 23..25 of tensor \"a\" do not exist: it has 24");
    let size = gguf.file_bytes();
    assert_eq!(
        format!("{gguf:?}"),
        format!("Gguf {{ version: 3, alignment: 32, metadata_pairs: 0, tensors: 3, file_bytes: {size} }}")
    );
}

/// What is missing of a file that is being downloaded takes no memory: here more than any machine has.
#[test]
fn a_tensor_that_has_not_arrived_is_refused_before_memory_is_asked_for() {
    let folder = zrt_needs::TemporaryFolder::new("arriving");
    let path = folder.join("part.gguf");
    std::fs::write(&path, Builder::new(3, 1, 0).tensor("t", &[1 << 57], 0, 0).data(32, 0).0).unwrap();
    let part = Gguf::open_beginning(&path).unwrap();
    let tensor = part.tensor("t").unwrap();
    assert_eq!(tensor.bytes, 1 << 59);
    assert!(matches!(
        part.read_tensor(tensor, 0..tensor.bytes),
        Err(GgufError::RangeOutsideTensor { begin: 0, .. })
    ));
}

/// The least bytes of an entry, by the specification's fields: a key or a name has at least one byte, a value too, and
/// a tensor one dimension.
#[test]
fn a_count_is_refused_if_the_file_has_no_room_for_the_least_entries() {
    let cut = |file: Builder| match file.open() {
        Err(GgufError::Truncated { what, offset, wanted, available }) => (what, offset, wanted, available),
        other => panic!("{other:?}"),
    };
    // Key length, key, type, value: 8 + 1 + 4 + 1.
    assert_eq!(cut(Builder::new(3, 0, 3).raw(&[0; 41])), ("the metadata count", 24, 42, 41));
    Builder::new(3, 0, 1).pair("k", 0, &[1]).open().unwrap();
    // Name length, name, count, dimension, type, offset: 8 + 1 + 4 + 8 + 4 + 8.
    assert_eq!(cut(Builder::new(3, 2, 0).raw(&[0; 65])), ("the tensor count", 24, 66, 65));
    // A tensor of one byte after an entry of the least length.
    let least = Builder::new(3, 1, 0).tensor("t", &[1], 24, 0);
    assert_eq!(least.0.len(), 24 + 33);
    least.data(32, 1).open().unwrap();
    // Arrays of numbers, of texts, of arrays (type and count).
    for (element_type, bytes) in [(0, 1), (3, 2), (6, 4), (7, 1), (8, 8), (9, 12), (11, 8)] {
        let array = Builder(vec![]).u32(element_type).u64(3).raw(&vec![0; 3 * bytes - 1]).0;
        let expected = ("an array's element count", 49, 3 * bytes as u64, 3 * bytes as u64 - 1);
        assert_eq!(cut(Builder::new(3, 0, 1).pair("k", 9, &array)), expected, "type {element_type}");
    }
}

/// The reader holds 65536 bytes at a time; texts that end at its edge and beyond are read like any other.
#[test]
fn texts_of_any_length_are_read_whole() {
    let text = |length: usize| (0..length).map(|at| char::from(b'a' + (at % 23) as u8)).collect::<String>();
    for length in [0, 1, 65_535, 65_536, 65_537, 200_000] {
        let written = text(length);
        let gguf = Builder::new(3, 0, 2)
            .pair("before", 8, &Builder(vec![]).text(&written).0)
            .pair("after", 4, &[4, 3, 2, 1])
            .open()
            .unwrap();
        assert!(gguf.metadata.str("before").unwrap() == written, "{length}");
        assert_eq!(gguf.metadata.u32("after").unwrap(), 0x0102_0304, "{length}");
    }
}

#[test]
fn limits_are_accepted_and_one_more_is_refused() {
    let limit = |file: Result<Gguf, GgufError>| match file {
        Err(GgufError::Limit { what, offset, found, limit }) => (what, offset, found, limit),
        other => panic!("{other:?}"),
    };
    let key = |length: usize| Builder::new(3, 0, 1).pair(&"k".repeat(length), 0, &[1]).open();
    assert_eq!(key(65_535).unwrap().metadata.len(), 1);
    assert_eq!(limit(key(65_536)), ("a metadata key", 24, 65_536, 65_535));
    let name = |length: usize| with_tensors(&[(&"t".repeat(length), &[1], 24, 0)]);
    assert_eq!(name(256).unwrap().tensors().len(), 1);
    assert_eq!(limit(name(257)), ("a tensor name", 24, 257, 256));
    let shape = |count: usize| with_tensors(&[("t", &vec![1; count], 24, 0)]);
    assert_eq!(shape(4).unwrap().tensors()[0].dimensions, [1; 4]);
    assert_eq!(limit(shape(5)), ("a dimension count", 33, 5, 4));
    let alignment = |bytes: u32| {
        let file = Builder::new(3, 1, 1).pair("general.alignment", 4, &bytes.to_le_bytes());
        file.tensor("t", &[1], 24, 0).data(bytes as usize, 1).open()
    };
    assert_eq!(alignment(1).unwrap().alignment, 1);
    assert_eq!(alignment(1 << 20).unwrap().tensors()[0].offset, 1 << 20);
    assert!(matches!(alignment(1 << 21), Err(GgufError::Alignment { found: 0x0020_0000 })));
}

#[test]
fn the_alignment_of_the_file_is_used_and_checked() {
    let file = |alignment: u32, data_at: usize| {
        Builder::new(3, 1, 1)
            .pair("general.alignment", 4, &alignment.to_le_bytes())
            .tensor("t", &[4], 24, 0)
            .data(data_at, 4)
            .open()
    };
    let gguf = file(256, 256).unwrap();
    let tensor = gguf.tensor("t").unwrap();
    assert_eq!((tensor.offset, gguf.read_tensor(tensor, 0..4).unwrap()), (256, vec![0, 1, 2, 3]));
    for alignment in [0, 3, 48, 1 << 21, u32::MAX] {
        assert!(matches!(file(alignment, 64), Err(GgufError::Alignment { found }) if found == alignment));
    }
}

#[test]
fn a_wrong_start_is_told_apart() {
    let open = |bytes: &[u8]| Gguf::from_bytes(bytes.to_vec()).unwrap_err();
    assert!(matches!(open(b""), GgufError::Truncated { offset: 0, available: 0, .. }));
    assert!(matches!(open(b"GGU"), GgufError::Truncated { available: 3, .. }));
    assert!(matches!(open(b"GGML\x03\0\0\0"), GgufError::Magic { found } if &found == b"GGML"));
    assert!(matches!(open(b"GGUF\0\0\0\x03"), GgufError::BigEndian { found: 0x0300_0000 }));
    for version in [0u32, 1, 4, 77] {
        let error = Builder::new(version, 0, 0).open().unwrap_err();
        assert!(matches!(error, GgufError::Version { found } if found == version));
    }
    assert_eq!(Builder::new(2, 0, 0).open().unwrap().tensors().len(), 0);
}

#[test]
fn counts_are_checked_before_anything_is_allocated() {
    let huge = u64::MAX;
    assert!(matches!(
        Builder::new(3, 0, huge).open(),
        Err(GgufError::Limit { offset: 16, found: u64::MAX, .. })
    ));
    assert!(matches!(
        Builder::new(3, huge, 0).open(),
        Err(GgufError::Limit { offset: 8, found: u64::MAX, .. })
    ));
    let pairs = limits::METADATA_PAIRS_MAX;
    assert!(matches!(Builder::new(3, 0, pairs).open(), Err(GgufError::Truncated { available: 0, .. })));
    let tensors = limits::TENSORS_MAX;
    assert!(matches!(Builder::new(3, tensors, 0).open(), Err(GgufError::Truncated { available: 0, .. })));

    let value =
        |value_type: u32, value: Builder| Builder::new(3, 0, 1).pair("k", value_type, &value.0).open();
    let text = |length: u64| value(8, Builder(vec![]).u64(length));
    assert!(matches!(text(huge), Err(GgufError::Limit { offset: 37, .. })));
    assert!(matches!(text(limits::STRING_BYTES_MAX), Err(GgufError::Truncated { available: 0, .. })));
    for element_type in 0..=12 {
        let array = |count: u64| value(9, Builder(vec![]).u32(element_type).u64(count));
        assert!(matches!(array(huge), Err(GgufError::Limit { offset: 41, .. })), "type {element_type}");
        let most = limits::ARRAY_ELEMENTS_MAX;
        assert!(matches!(array(most), Err(GgufError::Truncated { available: 0, .. })), "type {element_type}");
    }
    let key = Builder::new(3, 0, 1).u64(1 << 16).data(1, 1 << 17).open();
    assert!(matches!(key, Err(GgufError::Limit { offset: 24, .. })));
}

#[test]
fn arrays_nest_only_so_deep() {
    let nested = |depth: u64| {
        let opened = (0..depth).fold(Builder(vec![]), |builder, _| builder.u32(9).u64(1));
        Builder::new(3, 0, 1).pair("k", 9, &opened.u32(0).u64(1).raw(&[1]).0).open()
    };
    let limit = u64::from(limits::ARRAY_NESTING_MAX);
    assert!(nested(limit - 1).is_ok());
    assert!(matches!(nested(limit), Err(GgufError::Limit { .. })));
    assert!(matches!(nested(100_000), Err(GgufError::Limit { .. })));
}

#[test]
fn values_that_mean_nothing_are_refused() {
    let value = |value_type: u32, bytes: &[u8]| Builder::new(3, 0, 1).pair("k", value_type, bytes).open();
    assert!(matches!(value(13, &[0; 16]), Err(GgufError::ValueType { found: 13, offset: 33, .. })));
    assert!(matches!(
        value(9, &[13, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        Err(GgufError::ValueType { found: 13, .. })
    ));
    assert!(matches!(value(7, &[2]), Err(GgufError::Boolean { found: 2, offset: 37, .. })));
    let bad_text = Builder(vec![]).u64(2).raw(&[0xc3, 0x28]).0;
    assert!(matches!(value(8, &bad_text), Err(GgufError::NotUtf8 { offset: 45, .. })));
    let same_key = Builder::new(3, 0, 2).pair("k", 0, &[1]).pair("k", 0, &[1]).open();
    assert!(matches!(same_key, Err(GgufError::DuplicateKey { offset: 38, .. })));
    assert!(matches!(Builder::new(3, 0, 1).pair("", 4, &[0; 4]).open(), Err(GgufError::Empty { .. })));
}

#[test]
fn tensors_that_cannot_be_are_refused() {
    let one = |dimensions: &[u64], kind: u32, offset: u64| with_tensors(&[("t", dimensions, kind, offset)]);
    assert!(matches!(one(&[], 0, 0), Err(GgufError::Dimensions { .. })));
    assert!(matches!(one(&[4, 0], 0, 0), Err(GgufError::Dimensions { .. })));
    assert!(matches!(one(&[1 << 32, 1 << 32], 0, 0), Err(GgufError::Dimensions { .. })));
    assert!(matches!(one(&[u64::MAX / 2], 0, 0), Err(GgufError::Dimensions { .. })));
    assert!(matches!(one(&[1; 5], 0, 0), Err(GgufError::Limit { found: 5, limit: 4, .. })));
    assert!(matches!(one(&[4], 4, 0), Err(GgufError::TensorKind { found: 4, offset: 45, .. })));
    assert!(matches!(one(&[33], 8, 0), Err(GgufError::PartialBlock { columns: 33, block: 32, .. })));
    assert_eq!(
        one(&[33], 8, 0).unwrap_err().to_string(),
        "tensor \"t\" has rows of 33 elements, not a multiple of the 32 of its type Q8_0"
    );
    assert!(matches!(one(&[4], 0, 8), Err(GgufError::Misaligned { offset: 8, alignment: 32, .. })));
    assert!(one(&[32], 0, 0).is_ok());
    assert!(matches!(one(&[33], 0, 0), Err(GgufError::Outside { bytes: 132, .. })));
    assert!(matches!(one(&[8], 0, 128), Err(GgufError::Outside { .. })));
    assert!(matches!(one(&[8], 0, u64::MAX - 31), Err(GgufError::Outside { .. })));
    let twice = with_tensors(&[("t", &[8], 0, 0), ("t", &[8], 0, 32)]);
    assert!(matches!(twice, Err(GgufError::DuplicateTensor { .. })));
    let overlap = with_tensors(&[("late", &[8], 0, 32), ("early", &[9], 0, 0)]);
    assert!(matches!(overlap, Err(GgufError::Overlap { first, .. }) if &*first == "early"));
}

/// The default model with its tensor data cut off after the first bytes: a real header of real size.
static REAL_FILE: LazyLock<Vec<u8>> =
    LazyLock::new(|| std::fs::read(repository_model("tales-qwen3-Q4_0.gguf")).unwrap());

fn header_len() -> usize {
    static LEN: LazyLock<usize> = LazyLock::new(|| {
        let gguf = Gguf::from_bytes(REAL_FILE.clone()).unwrap();
        gguf.tensors().iter().map(|tensor| tensor.offset).min().unwrap() as usize
    });
    *LEN
}

/// Does what a caller does with any file that opens: reads everything.
fn read_all(gguf: &Gguf) {
    for tensor in gguf.tensors() {
        assert!(tensor.offset + tensor.bytes <= gguf.file_bytes());
        assert_eq!(gguf.read_tensor(tensor, 0..tensor.bytes).unwrap().len() as u64, tensor.bytes);
    }
    assert!(gguf.tensor_bytes_total() <= gguf.file_bytes());
    assert_eq!(gguf.metadata.iter().count(), gguf.metadata.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_real_header_with_bytes_changed_never_hurts(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        // Most changes go where the structure is dense: the first kilobyte and the tensor directory at the end.
        region in 0..3usize,
    ) {
        let mut bytes = REAL_FILE.clone();
        let header = header_len();
        let (begin, end) = [(0, 1024), (header - 4096, header), (0, header)][region];
        for (index, value) in changes {
            bytes[begin + index.index(end - begin)] = value;
        }
        if let Ok(gguf) = Gguf::from_bytes(bytes) {
            read_all(&gguf);
        }
    }

    #[test]
    fn a_cut_file_is_an_error_and_says_so(cut in any::<prop::sample::Index>()) {
        let len = cut.index(REAL_FILE.len());
        // Bytes after the last tensor are padding only; the cut must fall before its end.
        let error = Gguf::from_bytes(REAL_FILE[..len].to_vec());
        if len < REAL_FILE.len() - 4096 {
            let cut_was_named = matches!(error, Err(GgufError::Truncated { .. } | GgufError::Outside { .. }));
            prop_assert!(cut_was_named);
        }
    }

    #[test]
    fn arbitrary_bytes_behind_a_good_start_never_hurt(
        tensors in 0..3u64,
        pairs in 0..3u64,
        tail in prop::collection::vec(prop_oneof![Just(0u8), 0..13u8, any::<u8>()], 0..400),
    ) {
        let bytes: Arc<[u8]> = Builder::new(3, tensors, pairs).raw(&tail).0.into();
        if let Ok(gguf) = Gguf::from_bytes(bytes) {
            read_all(&gguf);
        }
    }
}

/// Needs `ZRT_MODELS`: every model file there opens, and its directory fills the file.
#[test]
fn all_model_files_open() {
    let Some(folder) = zrt_needs::models() else { return };
    // Parameters and sizes as the folder's README states them.
    let expected = [
        ("stories260K-F32.gguf", 1_185_600),
        ("stories260K-F16.gguf", 601_440),
        ("stories260K-Q8_0.gguf", 379_360),
        ("stories260K-ff192-BF16.gguf", 639_840),
        ("stories260K-ff192-Q4_1.gguf", 226_144),
        ("stories260K-ff192-Q5_0.gguf", 243_552),
        ("stories260K-ff192-Q5_1.gguf", 260_960),
        ("stories260K-ff192-IQ4_NL.gguf", 208_736),
        ("stories260K-w256-Q2_K.gguf", 904_640),
        ("stories260K-w256-Q3_K_M.gguf", 1_151_424),
        ("stories260K-w256-Q5_K_M.gguf", 1_601_216),
        ("stories260K-w256-IQ4_XS.gguf", 1_247_424),
        ("tales-qwen3-Q8_0.gguf", 7_954_048),
        ("tales-llama-Q8_0.gguf", 7_949_120),
    ];
    for (name, bytes) in expected {
        let gguf = Gguf::open(&folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(gguf.file_bytes(), bytes, "{name}");
        // ggml pads each tensor and the file's end to the alignment, and leaves no other gap: block sizes are right
        // exactly when the padded sizes fill the file.
        let mut end = gguf.tensors().iter().map(|tensor| tensor.offset).min().unwrap();
        for tensor in gguf.tensors() {
            assert_eq!(tensor.offset, end, "{name}: {}", tensor.name);
            end = (tensor.offset + tensor.bytes).next_multiple_of(u64::from(gguf.alignment));
        }
        assert!(end == bytes, "{name}: directory ends at {end} of {bytes}");
    }
}
