//! Nanoseconds per packet emitted and per recorded dispatch.
//!
//! The dispatch is the one that RADV needs 124 ns to record on a machine like the one this benchmark first ran on:
//! three buffers (two dwords of user data each), 16 bytes of constants and a barrier. The target here is 20 ns.

#![allow(missing_docs)] // the macros below make a public function without one

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use zrt_pm4::packet::{acquire_mem, dispatch_direct, event_write, indirect_buffer, release_mem};
use zrt_pm4::registers::{ResourceLimits, WaveSize};
use zrt_pm4::{AcquireControl, EmitError, KernelParameters, KernelState, Register, Writer};

/// Dispatches recorded per pass, about as many as in a decode step of a small model.
const DISPATCHES: usize = 256;

/// Nanoseconds that RADV, the peer, needs for the same dispatch.
const PEER_NS: f64 = 124.0;

fn kernel_state() -> Result<KernelState, EmitError> {
    KernelState::new(&KernelParameters {
        code_address: 0x7f00_1234_5600,
        rsrc1: 3,
        rsrc2: 10 << 1,
        rsrc3: 0,
        workgroup: [64, 1, 1],
        limits: ResourceLimits::default(),
        wave: WaveSize::Wave32,
    })
}

fn record(words: &mut [u32], state: &KernelState, buffers: [u64; 3], constants: [u32; 4]) -> usize {
    let mut writer = Writer::new(words);
    for step in 0..DISPATCHES as u32 {
        let mut user_data = [0; 10];
        for (pair, address) in user_data.chunks_exact_mut(2).zip(buffers) {
            pair[0] = (address as u32).wrapping_add(step * 256);
            pair[1] = (address >> 32) as u32;
        }
        user_data[6..].copy_from_slice(&constants);
        user_data[6] = step;
        let recorded = writer.dispatch(state, &user_data, [40, 1, 1]).and_then(|()| writer.barrier());
        assert!(recorded.is_ok(), "the buffer is large enough");
    }
    writer.len()
}

fn packets(criterion: &mut Criterion) {
    let mut words = vec![0u32; 64 * DISPATCHES];
    let Ok(state) = kernel_state() else { unreachable!("the parameters above are valid") };

    let mut group = criterion.benchmark_group("packet");
    macro_rules! bench {
        ($name:literal, |$writer:ident| $emit:expr) => {
            group.bench_function($name, |bencher| {
                bencher.iter(|| {
                    let mut $writer = Writer::new(black_box(&mut words));
                    $emit.is_ok()
                })
            });
        };
    }
    bench!("set_sh_reg of 2", |writer| writer.set_sh_reg(Register::USER_DATA_0, &black_box([1, 2])));
    bench!("dispatch_direct", |writer| writer
        .dispatch_direct(&dispatch_direct::Repr::wave32(black_box([40, 1, 1]))));
    bench!("acquire_mem", |writer| writer
        .acquire_mem(&acquire_mem::Repr::all_addresses(black_box(AcquireControl::DEVICE))));
    bench!("release_mem fence", |writer| writer
        .release_mem(&release_mem::Repr::fence(black_box(0x7f_1234_5678), black_box(9))));
    bench!("event_write", |writer| writer.event_write(black_box(&event_write::Repr::CS_PARTIAL_FLUSH)));
    bench!("indirect_buffer", |writer| writer
        .indirect_buffer(&indirect_buffer::Repr::call(black_box(0x7f_1234_5678), black_box(4096))));
    group.finish();

    let mut group = criterion.benchmark_group("recorded");
    group.throughput(criterion::Throughput::Elements(DISPATCHES as u64));
    group.bench_function("256 dispatches with barriers", |bencher| {
        bencher.iter(|| {
            record(&mut words, black_box(&state), black_box([0x7f_0000_1000; 3]), black_box([1, 2, 3, 4]))
        })
    });
    group.finish();

    // One number for the reader, next to the peer's.
    let passes = 2000;
    let start = std::time::Instant::now();
    for _ in 0..passes {
        black_box(record(
            &mut words,
            black_box(&state),
            black_box([0x7f_0000_1000; 3]),
            black_box([1, 2, 3, 4]),
        ));
    }
    let ns = start.elapsed().as_nanos() as f64 / f64::from(passes) / DISPATCHES as f64;
    println!(
        "one dispatch (3 buffers, 16 bytes of constants) with its barrier: {ns:.1} ns; aim 20 ns; RADV {PEER_NS} ns"
    );
}

criterion_group!(benches, packets);
criterion_main!(benches);
