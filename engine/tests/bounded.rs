//! What hostile model files cost: memory at most eight times the file plus 16 MiB, work in proportion to the file.
//!
//! Every count, length and nesting that a header can state has a case, made in two sizes. Memory is the peak of a
//! counting allocator over opening the file, naming its tensors and building its tokenizer. Work is the processor time
//! of the thread: twice the file takes at most three times as long.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

use std::sync::Arc;
use std::time::Duration;
use zrt_engine::gguf::Gguf;
use zrt_engine::model::Model;
use zrt_engine::tokenizer::Tokenizer;

/// Bytes of memory for each byte of file, and in addition to that.
const BYTES_PER_BYTE: u64 = 8;
const BYTES_MORE: u64 = 16 << 20;
/// Allowance on the time of the larger file: shorter times are too short to compare.
const TIME_MIN: Duration = Duration::from_millis(150);

const MIB: usize = 1 << 20;
/// Attempts to get the time in bounds, before the last one.
const TRIES: usize = 3;

/// GGUF's numbers of types.
const U8: u32 = 0;
const I32: u32 = 5;
const F32: u32 = 6;
const BOOL: u32 = 7;
const STRING: u32 = 8;
const ARRAY: u32 = 9;

/// Processor time of this thread so far, if the kernel reports it.
fn thread_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0))
}

/// Opens a model as a program does; returns the outcome in words.
fn open(bytes: Arc<[u8]>) -> String {
    let gguf = match Gguf::from_bytes(bytes) {
        Ok(gguf) => gguf,
        Err(error) => return error.to_string(),
    };
    let tokenizer = Tokenizer::from_gguf(&gguf);
    let tokens = match &tokenizer {
        Ok(tokenizer) => format!("{} tokens", tokenizer.token_count()),
        Err(error) => error.to_string(),
    };
    match Model::load(Arc::new(gguf)) {
        Ok(_) => format!("{tokens}; a model"),
        Err(error) => format!("{tokens}; {error}"),
    }
}

/// Opens a file of about `size` bytes and one twice as large; returns the outcome of the larger one. Time is measured
/// up to [`TRIES`] times: other load on the machine disturbs the caches, but does not make linear time look quadratic
/// every time.
fn bounded(name: &str, size: usize, make: impl Fn(usize) -> Vec<u8>) -> String {
    let files: [Arc<[u8]>; 2] = [size, 2 * size].map(|size| make(size).into());
    let mut tries = (0..TRIES).map(|_| opened(name, &files));
    let last = tries.find(Result::is_ok).unwrap_or_else(|| opened(name, &files));
    last.unwrap_or_else(|times| panic!("{name}: {times:?} for twice the file"))
}

/// Opens both; returns the times as an error if the second took more than three times the first.
fn opened(name: &str, files: &[Arc<[u8]>; 2]) -> Result<String, [Duration; 2]> {
    let mut outcome = String::new();
    let times = files.each_ref().map(|bytes| {
        let start = thread_time();
        let counted = allocation_counter::measure(|| outcome = open(bytes.clone()));
        let time = thread_time() - start;
        println!(
            "{name}: {:.1} MiB of file, {:.1} MiB of memory, {time:.1?}: {outcome:.100}",
            bytes.len() as f64 / MIB as f64,
            counted.bytes_max as f64 / MIB as f64,
        );
        let limit = BYTES_PER_BYTE * bytes.len() as u64 + BYTES_MORE;
        let peak = counted.bytes_max;
        assert!(peak <= limit, "{name}: {peak} bytes for a file of {}, at most {limit}", bytes.len());
        time
    });
    if times[1] <= 3 * times[0] + TIME_MIN { Ok(outcome) } else { Err(times) }
}

/// Writes a header.
#[derive(Clone, Default)]
struct Header {
    pairs: Vec<u8>,
    pair_count: u64,
    tensors: Vec<u8>,
    tensor_count: u64,
}

fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

fn array(kind: u32, count: usize, elements: &[u8]) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &(count as u64).to_le_bytes(), elements].concat()
}

impl Header {
    fn pair(mut self, key: &str, kind: u32, value: &[u8]) -> Header {
        self.pairs.extend([&string(key), &kind.to_le_bytes()[..], value].concat());
        self.pair_count += 1;
        self
    }

    fn text(self, key: &str, value: &str) -> Header {
        self.pair(key, STRING, &string(value))
    }

    fn strings(self, key: &str, count: usize, text: impl Fn(usize) -> String) -> Header {
        let elements: Vec<u8> = (0..count).flat_map(|index| string(&text(index))).collect();
        self.pair(key, ARRAY, &array(STRING, count, &elements))
    }

    fn tensor(mut self, name: &str, dimensions: &[u64], kind: u32, offset: u64) -> Header {
        self.tensors.extend(string(name));
        self.tensors.extend((dimensions.len() as u32).to_le_bytes());
        dimensions.iter().for_each(|dimension| self.tensors.extend(dimension.to_le_bytes()));
        self.tensors.extend([&kind.to_le_bytes()[..], &offset.to_le_bytes()].concat());
        self.tensor_count += 1;
        self
    }

    fn bytes(&self, data: &[u8]) -> Vec<u8> {
        let counts = [self.tensor_count.to_le_bytes(), self.pair_count.to_le_bytes()].concat();
        let mut bytes = [b"GGUF\x03\0\0\0", &counts[..], &self.pairs, &self.tensors].concat();
        bytes.resize(bytes.len().next_multiple_of(32), 0);
        bytes.extend_from_slice(data);
        bytes
    }
}

#[test]
fn keys_are_counted() {
    let keys = |size: usize| {
        let count = (size / 17).min(65_536);
        (0..count)
            .fold(Header::default(), |header, one| header.pair(&format!("{one:04x}"), U8, &[0]))
            .bytes(&[])
    };
    bounded("keys", MIB / 2, keys);
    let long = |size: usize| {
        let keys = size / 65_535;
        let key = |one: usize| format!("{one:05}{}", "k".repeat(65_530));
        (0..keys).fold(Header::default(), |header, one| header.pair(&key(one), U8, &[0])).bytes(&[])
    };
    bounded("long keys", 8 * MIB, long);
    let more = |size: usize| {
        let header = Header { pair_count: size as u64 / 14, pairs: vec![0; size], ..Header::default() };
        header.bytes(&[])
    };
    assert!(bounded("a count of keys that lies", 4 * MIB, more).contains("at most 65536 is accepted"));
}

#[test]
fn arrays_are_counted() {
    let flat = |kind: u32, bytes: usize| {
        move |size: usize| {
            let elements = vec![0; size / bytes * bytes];
            Header::default().pair("k", ARRAY, &array(kind, size / bytes, &elements)).bytes(&[])
        }
    };
    for (kind, bytes) in [(U8, 1), (2, 2), (I32, 4), (F32, 4), (BOOL, 1), (10, 8)] {
        bounded(&format!("an array of type {kind}"), 4 * MIB, flat(kind, bytes));
    }
    let nested = |kind: u32| {
        move |size: usize| {
            let elements = array(kind, 0, &[]).repeat(size / 12);
            Header::default().pair("k", ARRAY, &array(ARRAY, size / 12, &elements)).bytes(&[])
        }
    };
    for kind in [U8, STRING, ARRAY] {
        bounded(&format!("arrays of empty arrays of type {kind}"), 4 * MIB, nested(kind));
    }
    let deep = |size: usize| {
        let one = array(ARRAY, 1, &array(ARRAY, 1, &array(U8, 1, &[0])));
        let elements = one.repeat(size / one.len());
        Header::default().pair("k", ARRAY, &array(ARRAY, size / one.len(), &elements)).bytes(&[])
    };
    bounded("arrays in arrays in arrays", 4 * MIB, deep);
    let lie = |size: usize| {
        let value = array(STRING, size / 8, &vec![0xFF; size]);
        Header::default().pair("k", ARRAY, &value).bytes(&[])
    };
    assert!(bounded("lengths of strings that lie", 4 * MIB, lie).contains("at most"));
}

#[test]
fn strings_are_counted() {
    let empty = |size: usize| Header::default().strings("k", size / 8, |_| String::new()).bytes(&[]);
    bounded("empty strings", 4 * MIB, empty);
    let long = |size: usize| Header::default().strings("k", size / MIB, |_| "a".repeat(MIB)).bytes(&[]);
    bounded("long strings", 8 * MIB, long);
    let window =
        |size: usize| Header::default().strings("k", size / 65_530, |_| "a".repeat(65_530)).bytes(&[]);
    bounded("strings as long as what is read at a time", 8 * MIB, window);
    let value = |size: usize| {
        let pairs = size.div_ceil(4 * MIB);
        (0..pairs)
            .fold(Header::default(), |header, one| header.text(&one.to_string(), &"a".repeat(4 * MIB)))
            .bytes(&[])
    };
    bounded("long values", 8 * MIB, value);
}

#[test]
fn tensors_are_counted() {
    let count = |size: usize| size / 40;
    let tensors = |size: usize| {
        let header = Header::default();
        let name = |one: usize| format!("{one:05x}");
        (0..count(size)).fold(header, |header, one| header.tensor(&name(one), &[8], 0, one as u64 * 32))
    };
    bounded("tensors", 2 * MIB, |size| tensors(size).bytes(&vec![0; 32 * count(size)]));
    let same = |size: usize| {
        let one = Header::default().tensor("t", &[8], 0, 0);
        let tensors = one.tensors.repeat(count(size));
        Header { tensors, tensor_count: count(size) as u64, ..Header::default() }.bytes(&[0; 32])
    };
    let outcome = bounded("tensors at one place", 2 * MIB, same);
    assert!(outcome.contains("overlap") || outcome.contains("twice"), "{outcome}");
    for dimensions in [[u64::MAX, 2, 1, 1], [1 << 16, 1 << 16, 1 << 16, 1 << 16], [u64::MAX, 1, 1, 1]] {
        let product = |size: usize| Header::default().tensor("t", &dimensions, 0, 0).bytes(&vec![0; size]);
        assert!(bounded("products of dimensions", MIB, product).contains("tensor \"t\""));
    }
}

/// A vocabulary without a model around it.
fn vocabulary(kind: &str, count: usize, text: impl Fn(usize) -> String, token_type: i32) -> Header {
    let types = token_type.to_le_bytes().repeat(count);
    Header::default()
        .text("general.architecture", "llama")
        .text("tokenizer.ggml.model", kind)
        .strings("tokenizer.ggml.tokens", count, text)
        .pair("tokenizer.ggml.token_type", ARRAY, &array(I32, count, &types))
        .pair("tokenizer.ggml.scores", ARRAY, &array(F32, count, &vec![0; 4 * count]))
}

/// Short texts that all differ.
fn short(one: usize) -> String {
    let digit = |power: u32| char::from(b'!' + (one / 90usize.pow(power) % 90) as u8);
    (0..4).map(digit).collect()
}

#[test]
fn vocabularies_are_counted() {
    // Normal, control, user-defined, byte.
    for token_type in [1, 3, 4, 6] {
        let pieces = |size: usize| vocabulary("llama", size / 20, short, token_type).bytes(&[]);
        let outcome = bounded(&format!("tokens of type {token_type}"), 4 * MIB, pieces);
        assert!(outcome.contains("tokens;"), "{outcome}");
        let no_merge = |size: usize| {
            vocabulary("gpt2", size / 20, short, token_type)
                .strings("tokenizer.ggml.merges", 0, short)
                .bytes(&[])
        };
        bounded(&format!("byte-pair tokens of type {token_type}"), 4 * MIB, no_merge);
    }
    let same = |size: usize| vocabulary("llama", size / 16, |_| String::new(), 1).bytes(&[]);
    bounded("tokens without text", 4 * MIB, same);
    let long = |size: usize| vocabulary("llama", size / MIB, |_| "\u{2581}".repeat(MIB / 3), 4).bytes(&[]);
    bounded("long tokens", 8 * MIB, long);
}

/// The size that was reported: 1.5 million tokens, 38 MB.
#[test]
fn the_reported_vocabulary() {
    let make = |size: usize| {
        vocabulary("llama", size / 25, |one| format!("{}{:05}", short(one), one % 7), 1).bytes(&[])
    };
    bounded("many tokens", 19 * MIB, make);
}

#[test]
fn merges_are_counted() {
    let merges = |text: fn(usize) -> String, bytes: usize| {
        move |size: usize| {
            vocabulary("gpt2", 300, short, 1).strings("tokenizer.ggml.merges", size / bytes, text).bytes(&[])
        }
    };
    bounded("merges of one pair", 4 * MIB, merges(|_| "! !".into(), 11));
    let unknown = |one: usize| format!("{} {}", short(one), short(7 * one + 1));
    let outcome = bounded("merges of what is no token", 4 * MIB, merges(unknown, 17));
    assert!(outcome.contains("are no tokens"), "{outcome}");
    let all = |size: usize| {
        let count = size / 48;
        // Every token is a merge of two tokens.
        let pair = |one: usize| format!("{} {}", &short(one)[..2], &short(one)[2..]);
        vocabulary("gpt2", count, short, 1).strings("tokenizer.ggml.merges", count, pair).bytes(&[])
    };
    bounded("a merge for each token", 4 * MIB, all);
}
