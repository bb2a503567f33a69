//! Nanoseconds per decoded and per printed instruction, over the golden corpus.

#![allow(missing_docs)] // the macros below make a public function without one

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::fmt::Write as _;
use std::hint::black_box;
use zrt_isa::{Instruction, decode};

fn corpus() -> Vec<Vec<u32>> {
    let lines = include_str!("../tests/golden.txt").lines();
    lines
        .filter(|line| !line.starts_with('#') && !line.ends_with("\t-"))
        .filter_map(|line| line.split_once('\t'))
        .map(|(words, _)| words.split(' ').map(|word| u32::from_str_radix(word, 16).unwrap_or(0)).collect())
        .collect()
}

fn measure(criterion: &mut Criterion) {
    let corpus = corpus();
    let instructions: Vec<Instruction> = corpus.iter().filter_map(|words| decode(words).ok()).collect();
    let mut group = criterion.benchmark_group("isa");
    group.throughput(Throughput::Elements(corpus.len() as u64));
    group.bench_function("decode", |bencher| {
        bencher.iter(|| {
            for words in &corpus {
                black_box(decode(black_box(words)).ok());
            }
        });
    });
    group.bench_function("print", |bencher| {
        let mut text = String::with_capacity(256);
        bencher.iter(|| {
            for instruction in &instructions {
                text.clear();
                write!(text, "{instruction}").ok();
                black_box(&text);
            }
        });
    });
    group.finish();
}

criterion_group!(benches, measure);
criterion_main!(benches);
