//! Nanoseconds per entry of the token rings, next to a copy of 64 bytes into the same memory, which is the lower
//! bound of a push.
//!
//! Memory here is ordinary and cached. For memory behind a BAR a push costs what the link takes to accept the line:
//! the store fences then wait for the write-combining buffers. The other side's stores are made by hand and are not
//! part of the figure for a poll.

#![allow(missing_docs)] // the macros below make a public function without one

#[path = "../tests/model/said.rs"]
mod said;

use criterion::{Criterion, criterion_group, criterion_main};
use said::{Said, line as line_of, said};
use std::hint::black_box;
use std::time::{Duration, Instant};
use zrt_mem::SharedView;
use zrt_ring::token_ring::LINE_BYTES;
use zrt_ring::token_ring::mock::DeviceOutput;
use zrt_ring::{InputRing, OutputRing};

/// Entries of the rings.
const ENTRIES: usize = 1024;

fn token_rings(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("token rings");
    let memory = SharedView::zeroed(ENTRIES * LINE_BYTES).expect("memory");
    let word = SharedView::zeroed(8).expect("memory");

    let source = [0x5a; LINE_BYTES];
    let mut line = 0;
    group.bench_function("bound: copy of 64 bytes", |bencher| {
        bencher.iter(|| {
            line = (line + 1) % ENTRIES;
            memory.write_bytes(line * LINE_BYTES, black_box(&source));
        })
    });
    group.bench_function("bound: copy of 64 bytes and two store fences", |bencher| {
        bencher.iter(|| {
            line = (line + 1) % ENTRIES;
            memory.write_bytes(line * LINE_BYTES, black_box(&source));
            zrt_mem::shared::fence_stores();
            zrt_mem::shared::fence_stores();
        })
    });

    let mut ring = InputRing::<Said>::new(memory.clone(), word.clone(), None).expect("a valid ring");
    let entry = said(100);
    group.bench_function("push", |bencher| {
        bencher.iter(|| {
            ring.push(black_box(&entry)).expect("room");
            word.store_u32(0, ring.produced() as u32);
        })
    });

    let mut ring = OutputRing::<Said>::new(memory.clone(), word.clone(), None, 16).expect("a valid ring");
    let mut device = DeviceOutput::new(memory, word, 0, 1);
    let (sent, dwords) = (said(3), line_of(3));
    group.bench_function("poll that finds an entry", |bencher| {
        bencher.iter_custom(|iterations| {
            let (mut left, mut spent) = (iterations, Duration::ZERO);
            while left > 0 {
                let burst = left.min(ENTRIES as u64);
                for _ in 0..burst {
                    assert!(device.put(&dwords, 0), "the burst before was taken");
                }
                let start = Instant::now();
                for _ in 0..burst {
                    assert_eq!(black_box(ring.poll()), Ok(Some(sent)));
                }
                spent += start.elapsed();
                ring.publish_consumed();
                left -= burst;
            }
            spent
        })
    });
    group.bench_function("poll that finds nothing", |bencher| {
        bencher.iter(|| assert_eq!(black_box(ring.poll()), Ok(None)))
    });
    group.finish();
}

criterion_group!(benches, token_rings);
criterion_main!(benches);
