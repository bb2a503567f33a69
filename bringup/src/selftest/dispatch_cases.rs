//! Cases that run machine code.

use super::bench::{Bench, Failure, POISON, check, equal};
use super::kernels::{COUNT, IDS, PATTERN, REVERSE, SCALAR, STEP};
use std::time::Instant;
use zrt_mem::{ByteLen, GpuVa, Heap};
use zrt_pm4::packet::copy_data::{self, Source};
use zrt_pm4::packet::event_write;

/// Offset of the parameter block in the page; results start at 0.
const PARAMETERS: usize = 60 << 10;
/// Lanes of a wave.
const LANES: u32 = 32;
/// Workgroups of the pattern cases.
const GROUPS: u32 = 96;
/// Dependent dispatches of the chain.
const CHAIN: u32 = 40;
/// Workgroups of the chain.
const CHAIN_GROUPS: u32 = 64;
/// The grid of the workgroup-id case: no two sides alike.
const GRID: [u32; 3] = [5, 3, 7];
/// Workgroups of the LDS case.
const REVERSE_GROUPS: u32 = 6;
/// Work-items of its group.
const REVERSE_ITEMS: u32 = 256;
/// Workgroups of the atomics case.
const COUNT_GROUPS: u32 = 1000;
/// Replays of one graph.
const REPLAYS: u32 = 50;

/// Two addresses as a parameter block.
fn set_addresses(bench: &Bench<'_>, first: GpuVa, second: GpuVa) -> GpuVa {
    bench.set_u64(PARAMETERS, first.0);
    bench.set_u64(PARAMETERS + 8, second.0);
    bench.va(PARAMETERS)
}

/// An address and two dwords as a parameter block.
fn set_parameters(bench: &Bench<'_>, address: GpuVa, first: u32, second: u32) -> GpuVa {
    bench.set_u64(PARAMETERS, address.0);
    bench.set(PARAMETERS + 8, first);
    bench.set(PARAMETERS + 12, second);
    bench.va(PARAMETERS)
}

fn expect_pattern(bench: &Bench<'_>, key: u32) -> Result<(), Failure> {
    for index in 0..GROUPS * LANES {
        bench.expect(&format!("element {index}"), index as usize * 4, key ^ index)?;
    }
    bench.expect("the dword after the last element", (GROUPS * LANES) as usize * 4, POISON)
}

pub(super) fn dispatch(bench: &mut Bench<'_>) -> Result<String, Failure> {
    const KEY: u32 = 0x5a5a_0ff0;
    let kernel = PATTERN.load(bench.device)?;
    let parameters = set_parameters(bench, bench.va(0), KEY, 0);
    let mut recorder = bench.device.recorder(1)?;
    recorder.dispatch(&kernel, parameters, [GROUPS, 1, 1])?;
    let graph = recorder.finish()?;
    let start = Instant::now();
    let ticket = bench.device.submit(&graph)?;
    bench.device.wait(ticket, bench.deadline)?;
    bench.time("one dispatch of 96 waves", start.elapsed(), 1);
    expect_pattern(bench, KEY)?;
    Ok(format!("{} lanes of {GROUPS} workgroups stored their value", GROUPS * LANES))
}

pub(super) fn dispatch_in_ring(bench: &mut Bench<'_>) -> Result<String, Failure> {
    const KEY: u32 = 0x1357_9bdf;
    let kernel = PATTERN.load(bench.device)?;
    let parameters = set_parameters(bench, bench.va(0), KEY, 0);
    let user_data = [parameters.low(), parameters.high()];
    bench.submit(|writer| {
        writer.acquire_everything()?;
        writer.dispatch(kernel.state(), &user_data, [GROUPS, 1, 1])
    })?;
    expect_pattern(bench, KEY)?;
    Ok("registers and launch in the ring itself".into())
}

/// CS_PARTIAL_FLUSH waits for the waves: a copy after it, by the command processor, sees their stores.
pub(super) fn partial_flush(bench: &mut Bench<'_>) -> Result<String, Failure> {
    const KEY: u32 = 0x00c0_ffee;
    let kernel = PATTERN.load(bench.device)?;
    let parameters = set_parameters(bench, bench.va(0), KEY, 0);
    let user_data = [parameters.low(), parameters.high()];
    let last = GROUPS * LANES - 1;
    let (source, copy) = (bench.va(last as usize * 4).0, bench.va(32 << 10).0);
    bench.submit(|writer| {
        writer.acquire_everything()?;
        writer.dispatch(kernel.state(), &user_data, [GROUPS, 1, 1])?;
        writer.event_write(&event_write::Repr::CS_PARTIAL_FLUSH)?;
        writer.copy_data(&copy_data::Repr {
            wide: false,
            ..copy_data::Repr::to_memory(Source::Gl2(source), copy)
        })
    })?;
    bench.expect("the last lane's value, copied after the flush", 32 << 10, KEY ^ last)?;
    Ok("a copy behind the flush saw the last wave's store".into())
}

/// Caches must be invalidated between submissions: the scalar cache still holds what the host has changed since.
pub(super) fn acquire(bench: &mut Bench<'_>) -> Result<String, Failure> {
    const ROUNDS: u32 = 8;
    let kernel = SCALAR.load(bench.device)?;
    let parameters = set_addresses(bench, bench.va(0), bench.va(1024));
    let user_data = [parameters.low(), parameters.high()];
    for round in 0..ROUNDS {
        bench.set(1024, 0x7000 + round);
        bench.submit(|writer| {
            writer.acquire_everything()?;
            writer.dispatch(kernel.state(), &user_data, [1, 1, 1])
        })?;
        bench.expect(&format!("the value read in round {round}"), 0, 0x7000 + round)?;
    }
    Ok(format!("{ROUNDS} changed values were seen through the scalar cache"))
}

/// Every dispatch reads what the previous one wrote.
pub(super) fn chain(bench: &mut Bench<'_>) -> Result<String, Failure> {
    const KEY: u32 = 0x9e37_79b9;
    let kernel = STEP.load(bench.device)?;
    let elements = (CHAIN_GROUPS * LANES) as usize;
    let data = bench.device.allocate(Heap::DeviceLocal, ByteLen(elements as u64 * 4), "chain data")?;
    let start: Vec<u8> = (0..elements as u32).flat_map(u32::to_le_bytes).collect();
    bench.device.upload(&data, ByteLen(0), &start)?;
    let parameters = set_parameters(bench, data.va, KEY, 0);
    let mut recorder = bench.device.recorder(CHAIN as usize)?;
    for _ in 0..CHAIN {
        recorder.dispatch(&kernel, parameters, [CHAIN_GROUPS, 1, 1])?;
        recorder.barrier()?;
    }
    let graph = recorder.finish()?;
    let clock = Instant::now();
    let ticket = bench.device.submit(&graph)?;
    bench.device.wait(ticket, bench.deadline)?;
    bench.time("dispatch and barrier in a chain", clock.elapsed(), u64::from(CHAIN));
    let mut bytes = vec![0; elements * 4];
    bench.device.download(&data, ByteLen(0), &mut bytes)?;
    for (index, value) in bytes.as_chunks::<4>().0.iter().enumerate() {
        let step = |value: u32, _: u32| value.wrapping_mul(5).wrapping_add(KEY);
        let expected = (0..CHAIN).fold(index as u32, step);
        equal(&format!("element {index} after {CHAIN} steps"), u32::from_le_bytes(*value), expected)?;
    }
    Ok(format!("{CHAIN} dependent dispatches over {elements} elements gave the same as the host"))
}

pub(super) fn workgroup_ids(bench: &mut Bench<'_>) -> Result<String, Failure> {
    let kernel = IDS.load(bench.device)?;
    let [nx, ny, nz] = GRID;
    let parameters = set_parameters(bench, bench.va(0), nx, ny);
    let mut recorder = bench.device.recorder(1)?;
    recorder.dispatch(&kernel, parameters, GRID)?;
    let graph = recorder.finish()?;
    let ticket = bench.device.submit(&graph)?;
    bench.device.wait(ticket, bench.deadline)?;
    let mut offset = 0;
    for (z, y, x) in (0..nz).flat_map(|z| (0..ny).flat_map(move |y| (0..nx).map(move |x| (z, y, x)))) {
        bench.expect(&format!("ttmp9 of workgroup ({x}, {y}, {z})"), offset, x)?;
        bench.expect(&format!("ttmp7 of workgroup ({x}, {y}, {z})"), offset + 4, z << 16 | y)?;
        offset += 8;
    }
    bench.expect("the dword after the last workgroup", offset, POISON)?;
    Ok(format!("{} workgroups of a {nx} x {ny} x {nz} grid found their ids", nx * ny * nz))
}

pub(super) fn reverse(bench: &mut Bench<'_>) -> Result<String, Failure> {
    let kernel = REVERSE.load(bench.device)?;
    let output = 32 << 10;
    let elements = REVERSE_GROUPS * REVERSE_ITEMS;
    for index in 0..elements {
        bench.set(index as usize * 4, index.wrapping_mul(0x0101_0101) ^ 0x55);
    }
    let parameters = set_addresses(bench, bench.va(0), bench.va(output));
    let mut recorder = bench.device.recorder(1)?;
    recorder.dispatch(&kernel, parameters, [REVERSE_GROUPS, 1, 1])?;
    let graph = recorder.finish()?;
    let ticket = bench.device.submit(&graph)?;
    bench.device.wait(ticket, bench.deadline)?;
    for index in 0..elements {
        let (group, item) = (index / REVERSE_ITEMS, index % REVERSE_ITEMS);
        let source = group * REVERSE_ITEMS + REVERSE_ITEMS - 1 - item;
        let expected = source.wrapping_mul(0x0101_0101) ^ 0x55;
        bench.expect(&format!("element {index}"), output + index as usize * 4, expected)?;
    }
    Ok(format!("{REVERSE_GROUPS} workgroups of 8 waves exchanged {REVERSE_ITEMS} dwords through LDS"))
}

/// A counter in the same memory as those of the layers above; the command processor copies it to where the host can
/// read it.
pub(super) fn atomics(bench: &mut Bench<'_>) -> Result<String, Failure> {
    let counter = bench.device.allocate(Heap::DeviceLocal, ByteLen(256), "counter")?;
    bench.device.upload(&counter, ByteLen(0), &[0; 8])?;
    count(bench, counter.va)?;
    let copy = bench.va(0).0;
    bench.submit(|writer| {
        writer.acquire_everything()?;
        writer.copy_data(&copy_data::Repr::to_memory(Source::Gl2(counter.va.0), copy))
    })?;
    bench.expect("the copied counter", 0, COUNT_GROUPS * LANES)?;
    Ok(format!("{} atomic additions were counted", COUNT_GROUPS * LANES))
}

/// An atomic of uncached system memory leaves the GPU as a PCIe AtomicOp. Nothing above relies on it.
pub(super) fn atomics_in_system_memory(bench: &mut Bench<'_>) -> Result<String, Failure> {
    bench.set(0, 0);
    count(bench, bench.va(0))?;
    let counted = bench.get(0);
    check(counted == COUNT_GROUPS * LANES, || {
        format!(
            "{counted} of {} additions to system memory arrived: the way to it routes no PCIe AtomicOps; nothing needs \
             them",
            COUNT_GROUPS * LANES
        )
    })?;
    Ok(format!("{} atomic additions to system memory were counted", COUNT_GROUPS * LANES))
}

/// Has every lane of the counting kernel add one to the dword at an address.
fn count(bench: &mut Bench<'_>, counter: GpuVa) -> Result<(), Failure> {
    let kernel = COUNT.load(bench.device)?;
    let parameters = set_parameters(bench, counter, 0, 0);
    let mut recorder = bench.device.recorder(1)?;
    recorder.dispatch(&kernel, parameters, [COUNT_GROUPS, 1, 1])?;
    let graph = recorder.finish()?;
    let ticket = bench.device.submit(&graph)?;
    Ok(bench.device.wait(ticket, bench.deadline)?)
}

/// The same recording many times over: nothing changes but data.
pub(super) fn replay(bench: &mut Bench<'_>) -> Result<String, Failure> {
    const KEY: u32 = 3;
    let kernel = STEP.load(bench.device)?;
    for lane in 0..LANES {
        bench.set(lane as usize * 4, lane);
    }
    let parameters = set_parameters(bench, bench.va(0), KEY, 0);
    let mut recorder = bench.device.recorder(1)?;
    recorder.dispatch(&kernel, parameters, [1, 1, 1])?;
    let graph = recorder.finish()?;
    let before = bench.device.counters()?;
    for _ in 0..REPLAYS {
        let ticket = bench.device.submit(&graph)?;
        bench.device.wait(ticket, bench.deadline)?;
    }
    let after = bench.device.counters()?;
    for lane in 0..LANES {
        let step = |value: u32, _: u32| value.wrapping_mul(5).wrapping_add(KEY);
        bench.expect(&format!("lane {lane}"), lane as usize * 4, (0..REPLAYS).fold(lane, step))?;
    }
    let replays = u64::from(REPLAYS);
    let counted = (
        after.doorbells - before.doorbells,
        after.submissions - before.submissions,
        after.dispatches - before.dispatches,
    );
    check(counted == (replays, replays, replays), || {
        format!("{REPLAYS} replays were counted as {counted:?} doorbells, submissions, dispatches")
    })?;
    Ok(format!("{REPLAYS} replays: one doorbell, one indirect buffer and one dispatch each"))
}
