//! Nanoseconds per submission: replaying a recorded graph and its fence, up to and including the doorbell store.
//!
//! The other side does not run: the read pointer is set by hand so that the ring never fills. On a card the
//! doorbell is a store to uncached memory and costs more; this figure is the host's work.

#![allow(missing_docs)] // the macros below make a public function without one

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use zrt_mem::{DwordLen, GpuVa, SharedView};
use zrt_pm4::registers::{ResourceLimits, WaveSize};
use zrt_pm4::{KernelParameters, KernelState};
use zrt_ring::{CommandRing, FenceSignal, GraphRecorder};

/// Dispatches of the recorded graph.
const DISPATCHES: u32 = 256;

fn kernel() -> KernelState {
    let parameters = KernelParameters {
        code_address: 0x7f00_1234_5600,
        rsrc1: 3,
        rsrc2: 3 << 1,
        rsrc3: 0,
        workgroup: [64, 1, 1],
        limits: ResourceLimits::default(),
        wave: WaveSize::Wave32,
    };
    KernelState::new(&parameters).expect("the parameters above are valid")
}

fn submissions(criterion: &mut Criterion) {
    let words = [
        SharedView::zeroed(8).expect("memory"),
        SharedView::zeroed(8).expect("memory"),
        SharedView::zeroed(8).expect("memory"),
    ];
    let [write, read, doorbell] = words;
    let mut ring =
        CommandRing::new(SharedView::zeroed(65536).expect("memory"), write, read.clone(), doorbell)
            .expect("a valid ring");
    let kernel = kernel();
    let capacity = DwordLen(10 + 49 * DISPATCHES);
    let memory = SharedView::zeroed(capacity.bytes().0 as usize).expect("memory");
    let mut recorder = GraphRecorder::new(capacity).expect("room");

    let mut group = criterion.benchmark_group("graph");
    group.throughput(criterion::Throughput::Elements(DISPATCHES.into()));
    group.bench_function("record 256 dispatches with barriers", |bencher| {
        bencher.iter(|| {
            recorder.clear().expect("room");
            for at in 0..DISPATCHES {
                recorder.dispatch(&kernel, GpuVa(black_box(u64::from(at) * 256)), [40, 1, 1]).expect("room");
                recorder.barrier().expect("room");
            }
        })
    });
    group.finish();

    let graph = recorder.finish(&memory, GpuVa(0x7f00_0000_0000)).expect("a sound graph");
    let mut group = criterion.benchmark_group("submission");
    let mut value = 0;
    group.bench_function("submit_graph", |bencher| {
        bencher.iter(|| {
            value += 1;
            let signal = FenceSignal::new(GpuVa(0x7f00_0010_0000), black_box(value));
            let submission = ring.submit_graph(black_box(&graph), signal).expect("room");
            read.store_u64(0, submission.end);
        })
    });
    let packets = [0xc000_4600, 0x407];
    group.bench_function("submit of 2 dwords", |bencher| {
        bencher.iter(|| {
            let submission = ring.submit(black_box(&packets)).expect("room");
            read.store_u64(0, submission.end);
        })
    });
    group.finish();
}

criterion_group!(benches, submissions);
criterion_main!(benches);
