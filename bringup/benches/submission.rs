//! What a submission costs the host, and how long a round trip takes, on the virtual device.
//!
//! The host's part (packets into the ring, write pointer, doorbell) is the same code and the same kind of memory on a
//! card, except that a card's doorbell is uncached; the round trip is the virtual device's and says nothing about a
//! card.

#![allow(missing_docs)] // The macro of the harness makes a public function.

use criterion::{Criterion, criterion_group, criterion_main};
use std::time::{Duration, Instant};
use zerocopy::IntoBytes;
use zrt_bringup::{DeviceChoice, OpenOptions};
use zrt_device::{Buffer, Device, Graph, Heap, Kernel};
use zrt_mem::ByteLen;
use zrt_protocol::params::Copy;

/// Submissions that are measured together: fewer than the ring can hold.
const BATCH: u64 = 256;
const DEADLINE: Duration = Duration::from_secs(10);

/// A device and a graph whose one dispatch copies nothing.
fn set_up() -> (Device, Graph, (Kernel, Buffer)) {
    let mut device =
        zrt_bringup::open(DeviceChoice::Virtual, &OpenOptions::default()).expect("the virtual device opens");
    let kernel = device.load_kernel(zrt_asm::blob("copy").expect("committed")).expect("loads");
    let parameters = device.allocate(Heap::Host, ByteLen(256), "parameters").expect("memory");
    let block = Copy {
        header: Copy::header(0, 1, zrt_protocol::params::RowSet::Once),
        source_va: parameters.va.0,
        destination_va: parameters.va.0,
        count: 0,
        reserved: 0,
    };
    device.upload(&parameters, ByteLen(0), block.as_bytes()).expect("mapped");
    let mut recorder = device.recorder(1).expect("room");
    recorder.dispatch(&kernel, parameters.va, [1, 1, 1]).expect("fits");
    let graph = recorder.finish().expect("memory");
    (device, graph, (kernel, parameters))
}

fn submission(criterion: &mut Criterion) {
    // The graph names the kernel and the parameters, which must stay.
    let (mut device, graph, _named) = set_up();
    criterion.bench_function("submit a graph, host side", |bencher| {
        bencher.iter_custom(|iterations| {
            let mut total = Duration::ZERO;
            let mut left = iterations;
            while left > 0 {
                let batch = left.min(BATCH);
                let start = Instant::now();
                let mut last = None;
                for _ in 0..batch {
                    last = Some(device.submit(&graph).expect("room"));
                }
                total += start.elapsed();
                if let Some(ticket) = last {
                    device.wait(ticket, DEADLINE).expect("finishes");
                }
                left -= batch;
            }
            total
        });
    });
    criterion.bench_function("round trip of a graph, virtual device", |bencher| {
        bencher.iter(|| {
            let ticket = device.submit(&graph).expect("room");
            device.wait(ticket, DEADLINE).expect("finishes");
        });
    });
}

criterion_group!(benches, submission);
criterion_main!(benches);
