//! Cases of the queue as a whole, and of transfers.

use super::bench::{Bench, Failure, check};
use super::kernels::STEP;
use crate::times::least_and_median;
use std::time::Instant;
use zrt_mem::{ByteLen, Heap};
use zrt_pm4::packet::write_data;

/// How often the ring wraps.
const WRAPS: u64 = 3;
/// Maximum number of submissions of the ring case: a long ring is then not wrapped as often.
const WRAP_SUBMISSIONS_MAX: u64 = 4000;
/// Dwords of a submission of the ring case: WRITE_DATA (5), NOP (7), fence (8). Not a divisor of any ring.
const WRAP_DWORDS: u64 = 20;
/// Submissions that are not waited for.
const IN_FLIGHT: u32 = 500;
/// Round trips measured.
const ROUND_TRIPS: u32 = 200;
/// Length of the transfer case's buffer: more than one staging piece, not a multiple of a unit.
const TRANSFER_BYTES: usize = (2 << 20) + 4099;

/// Ranges that begin and end anywhere arrive and leave others untouched.
pub(super) fn transfers(bench: &mut Bench<'_>) -> Result<String, Failure> {
    let len = ByteLen(TRANSFER_BYTES as u64);
    let buffer = bench.device.allocate(Heap::DeviceLocal, len, "transfer")?;
    // No two pages alike, nor two pieces of a copy.
    let byte = |index: usize| (index * 7 + (index >> 8) + (index >> 16)) as u8;
    let mut expected: Vec<u8> = (0..TRANSFER_BYTES).map(byte).collect();
    let start = Instant::now();
    bench.device.upload(&buffer, ByteLen(0), &expected)?;
    bench.time("upload of 2 MiB", start.elapsed(), 1);
    for (offset, len) in [(0, 1), (15, 2), (4093, 33), ((1 << 20) - 5, 10), (TRANSFER_BYTES - 3, 3), (64, 0)]
    {
        let piece = vec![0xa5; len];
        bench.device.upload(&buffer, ByteLen(offset as u64), &piece)?;
        expected[offset..offset + len].copy_from_slice(&piece);
    }
    let mut observed = vec![0; TRANSFER_BYTES];
    bench.device.download(&buffer, ByteLen(0), &mut observed)?;
    if let Some(index) = observed.iter().zip(&expected).position(|(seen, wanted)| seen != wanted) {
        return Err(Failure::wrong(format!(
            "byte {index} came back as {:#04x}, expected {:#04x}",
            observed[index], expected[index]
        )));
    }
    let mut tail = [0; 5];
    bench.device.download(&buffer, ByteLen(TRANSFER_BYTES as u64 - 5), &mut tail)?;
    check(tail == expected[TRANSFER_BYTES - 5..], || format!("the last five bytes came back as {tail:?}"))?;
    let way = if buffer.view.is_some() { "through the BAR" } else { "by staging copies" };
    Ok(format!("{TRANSFER_BYTES} bytes and six odd ranges arrived {way}"))
}

/// Packets straddle the end of the ring, again and again.
pub(super) fn ring_wrap(bench: &mut Bench<'_>) -> Result<String, Failure> {
    let ring_dwords = bench.device.info().ring_bytes.0 / 4;
    let submissions = (ring_dwords * WRAPS).div_ceil(WRAP_DWORDS).min(WRAP_SUBMISSIONS_MAX);
    let mut words = [0; 12];
    let va = bench.va(0).0;
    let mut last = None;
    for index in 0..submissions {
        let mut writer = zrt_pm4::Writer::new(&mut words);
        writer.write_data(&write_data::Repr::memory(va + index % 64 * 4, &[index as u32]))?;
        writer.nop(7)?;
        last = Some(bench.device.submit_words(&words)?);
    }
    if let Some(ticket) = last {
        bench.device.wait(ticket, bench.deadline)?;
    }
    for slot in 0..submissions.min(64) {
        let value = (submissions - 1 - slot) as u32;
        bench.expect(&format!("the dword of submission {value}"), value as usize % 64 * 4, value)?;
    }
    let times = submissions * WRAP_DWORDS / ring_dwords;
    Ok(format!("{submissions} submissions went {times} times round a ring of {ring_dwords} dwords"))
}

/// Submissions overlap with the host and stay in order.
pub(super) fn in_flight(bench: &mut Bench<'_>) -> Result<String, Failure> {
    const KEY: u32 = 1;
    const PARAMETERS: usize = 1024;
    let kernel = STEP.load(bench.device)?;
    for lane in 0..32 {
        bench.set(lane * 4, 0);
    }
    bench.set_u64(PARAMETERS, bench.va(0).0);
    bench.set(PARAMETERS + 8, KEY);
    let parameters = bench.va(PARAMETERS);
    let mut recorder = bench.device.recorder(1)?;
    recorder.dispatch(&kernel, parameters, [1, 1, 1])?;
    let graph = recorder.finish()?;
    let mut last = bench.device.submit(&graph)?;
    let start = Instant::now();
    for _ in 1..IN_FLIGHT {
        last = bench.device.submit(&graph)?;
    }
    let submitted = start.elapsed();
    bench.device.wait(last, bench.deadline)?;
    bench.time("submission of a graph, ring full at times", submitted, u64::from(IN_FLIGHT - 1));
    let expected = (0..IN_FLIGHT).fold(0u32, |value, _| value.wrapping_mul(5).wrapping_add(KEY));
    bench.expect("lane 31 after all steps", 31 * 4, expected)?;
    Ok(format!("{IN_FLIGHT} submissions without waiting ran in order"))
}

/// From a doorbell to its fence.
pub(super) fn round_trip(bench: &mut Bench<'_>) -> Result<String, Failure> {
    let mut times = Vec::with_capacity(ROUND_TRIPS as usize);
    for _ in 0..ROUND_TRIPS {
        let start = Instant::now();
        bench.submit(|writer| writer.nop(1))?;
        times.push(start.elapsed());
    }
    let [least, median] = least_and_median(times);
    bench.time("round trip, least", least, 1);
    bench.time("round trip, median", median, 1);
    Ok(format!("doorbell to fence: {} µs at least, {} µs median", least.as_micros(), median.as_micros()))
}
