//! Cases of single packets.

use super::bench::{Bench, Failure, POISON, check, equal};
use std::time::{Duration, Instant};
use zrt_mem::{ByteLen, Heap};
use zrt_pm4::packet::copy_data::Source;
use zrt_pm4::packet::wait_reg_mem::Comparison;
use zrt_pm4::packet::{copy_data, nop, release_mem, wait_reg_mem, write_data};
use zrt_pm4::{DataSelect, HeaderFlags, Writer};

/// The GPU's clock (hardware reference §4.9).
const GPU_CLOCK_HZ: f64 = 1e8;
/// Length of the cases' own VRAM.
const VRAM_BYTES: u64 = 4096;
/// How long the host holds a wait back, to see that it waits.
const HOLD: Duration = Duration::from_millis(3);
/// How long the clock is measured.
const CLOCK_WINDOW: Duration = Duration::from_millis(20);
/// Error of the clock's rate that is accepted: far more than any crystal's.
const CLOCK_ERROR_MAX: f64 = 0.001;

/// Both sides have the page at one address, and a flush of writes to VRAM comes back.
pub(super) fn map(bench: &mut Bench<'_>) -> Result<String, Failure> {
    bench.expect("the first dword of the page, read by the host", 0, POISON)?;
    bench.set(0, 1);
    bench.expect("the dword that the host wrote", 0, 1)?;
    if !bench.device.has_visible_vram() {
        bench.device.flush();
        return Ok(format!("a page of system memory is mapped at {}; the host sees no VRAM", bench.va(0)));
    }
    let vram = bench.device.allocate(Heap::HostVisible, ByteLen(VRAM_BYTES), "self-test VRAM")?;
    let view = vram.view()?;
    view.store_u32(0, 2);
    bench.device.flush();
    equal("the dword that the host wrote through the BAR", view.load_u32(0), 2)?;
    Ok(format!("system memory is mapped at {}, VRAM at {}, writes to it were flushed", bench.va(0), vram.va))
}

pub(super) fn fence(bench: &mut Bench<'_>) -> Result<String, Failure> {
    let start = Instant::now();
    bench.submit(|_| Ok(()))?;
    let round_trip = start.elapsed();
    Ok(format!("a 64-bit fence arrived after {} µs", round_trip.as_micros()))
}

/// If a length is counted wrong, the payload is taken for packets or the fence for payload, and the fence does not
/// come.
pub(super) fn nop(bench: &mut Bench<'_>) -> Result<String, Failure> {
    for dwords in [1, 2, 33, 200] {
        bench.submit(|writer| writer.nop(dwords))?;
    }
    // A payload that would be packets if the command processor lost count: two one-dword NOPs and a bad header.
    let payload = [0xffff_1000, 0xffff_1000, 0x0000_0000];
    bench.submit(|writer| {
        writer.packet(&zrt_pm4::packet::Repr::Nop(nop::Repr {
            header_flags: HeaderFlags::empty(),
            payload: &payload,
        }))
    })?;
    Ok("NOPs of 1, 2, 4, 33 and 200 dwords were skipped exactly".into())
}

/// The host writes nothing to this memory: it is filled by the GPU alone, so writes through the BAR are not suspects.
pub(super) fn write_data_vram(bench: &mut Bench<'_>) -> Result<String, Failure> {
    let vram = bench.device.allocate(Heap::HostVisible, ByteLen(VRAM_BYTES), "self-test VRAM")?;
    for value in [0x0a0a_0001, 0x0b0b_0002] {
        bench.submit(|writer| writer.write_data(&write_data::Repr::memory(vram.va.0, &[value])))?;
        let mut bytes = [0; 4];
        bench.device.download(&vram, ByteLen(0), &mut bytes)?;
        equal("the dword in VRAM", u32::from_le_bytes(bytes), value)?;
    }
    Ok("two values that the GPU wrote to VRAM were read through the BAR".into())
}

pub(super) fn acquire_mem(bench: &mut Bench<'_>) -> Result<String, Failure> {
    let va = bench.va(0).0;
    bench.submit(|writer| {
        writer.acquire_everything()?;
        writer.write_data(&write_data::Repr::memory(va, &[1]))
    })?;
    bench.expect("the dword written behind it", 0, 1)?;
    Ok("every cache was invalidated, and the queue went on".into())
}

pub(super) fn write_data(bench: &mut Bench<'_>) -> Result<String, Failure> {
    let (one, five) = (bench.va(0).0, bench.va(64).0);
    let values = [0x1111_0001, 0x2222_0002, 0x3333_0003, 0x4444_0004, 0x5555_0005];
    bench.submit(|writer| {
        writer.write_data(&write_data::Repr::memory(one, &[0x0123_4567]))?;
        writer.write_data(&write_data::Repr::memory(five, &values))
    })?;
    bench.expect("the single dword", 0, 0x0123_4567)?;
    for (index, value) in values.iter().enumerate() {
        bench.expect(&format!("dword {index} of five"), 64 + index * 4, *value)?;
    }
    bench.expect("the dword after the single one", 4, POISON)?;
    bench.expect("the dword after the five", 64 + 20, POISON)?;
    Ok("1 and 5 dwords arrived, neighbours untouched".into())
}

pub(super) fn write_data_no_increment(bench: &mut Bench<'_>) -> Result<String, Failure> {
    let va = bench.va(0).0;
    let data = [1, 2, 3];
    bench.submit(|writer| {
        writer.write_data(&write_data::Repr { no_increment: true, ..write_data::Repr::memory(va, &data) })
    })?;
    bench.expect("the dword written three times", 0, 3)?;
    bench.expect("the dword after it", 4, POISON)?;
    Ok("3 dwords to one address: the last one stays".into())
}

pub(super) fn copy_data_immediate(bench: &mut Bench<'_>) -> Result<String, Failure> {
    let (narrow, wide) = (bench.va(0).0, bench.va(16).0);
    bench.submit(|writer| {
        writer.copy_data(&copy_data::Repr {
            wide: false,
            ..copy_data::Repr::to_memory(Source::Immediate(0x89ab_cdef), narrow)
        })?;
        writer.copy_data(&copy_data::Repr::to_memory(Source::Immediate(0x0123_4567_89ab_cdef), wide))
    })?;
    bench.expect("the 32-bit immediate", 0, 0x89ab_cdef)?;
    bench.expect("the dword after it", 4, POISON)?;
    bench.expect("the 64-bit immediate's low half", 16, 0x89ab_cdef)?;
    bench.expect("the 64-bit immediate's high half", 20, 0x0123_4567)?;
    Ok("32 and 64 bits arrived".into())
}

pub(super) fn copy_data_memory(bench: &mut Bench<'_>) -> Result<String, Failure> {
    bench.set_u64(0, 0x1122_3344_5566_7788);
    let (source, narrow, wide) = (bench.va(0).0, bench.va(64).0, bench.va(80).0);
    bench.submit(|writer| {
        writer.acquire_everything()?;
        writer.copy_data(&copy_data::Repr {
            wide: false,
            ..copy_data::Repr::to_memory(Source::Gl2(source), narrow)
        })?;
        writer.copy_data(&copy_data::Repr::to_memory(Source::Gl2(source), wide))
    })?;
    bench.expect("the copied dword", 64, 0x5566_7788)?;
    bench.expect("the dword after it", 68, POISON)?;
    bench.expect("the copied quadword's low half", 80, 0x5566_7788)?;
    bench.expect("the copied quadword's high half", 84, 0x1122_3344)?;
    Ok("32 and 64 bits were copied between addresses".into())
}

/// A reading of the GPU's clock, and the host's time before and after it.
struct ClockReading {
    ticks: u64,
    before: Instant,
    after: Instant,
}

fn read_clock(bench: &mut Bench<'_>, offset: usize) -> Result<ClockReading, Failure> {
    let va = bench.va(offset).0;
    let before = Instant::now();
    bench.submit(|writer| writer.copy_data(&copy_data::Repr::to_memory(Source::GpuClock, va)))?;
    Ok(ClockReading { ticks: bench.get_u64(offset), before, after: Instant::now() })
}

pub(super) fn copy_data_clock(bench: &mut Bench<'_>) -> Result<String, Failure> {
    let first = read_clock(bench, 0)?;
    std::thread::sleep(CLOCK_WINDOW);
    let second = read_clock(bench, 8)?;
    advanced(&first, &second, bench.device.info().has_real_clock)
}

/// What two readings say of the clock.
fn advanced(first: &ClockReading, second: &ClockReading, has_real_clock: bool) -> Result<String, Failure> {
    let (from, to) = (first.ticks, second.ticks);
    if !has_real_clock {
        check(from <= to, || format!("the clock went from {from} back to {to}"))?;
        return Ok(format!("the GPU clock counts work, not time, and went from {from} to {to}"));
    }
    // Each reading happened somewhere between its two host times, however late the host came back.
    let seconds = to.wrapping_sub(from) as f64 / GPU_CLOCK_HZ;
    let least = (second.before - first.after).as_secs_f64() * (1.0 - CLOCK_ERROR_MAX);
    let most = (second.after - first.before).as_secs_f64() * (1.0 + CLOCK_ERROR_MAX);
    check(least <= seconds && seconds <= most, || {
        format!(
            "the clock went from {from} to {to}: {seconds:.6} s at 100 MHz, but {least:.6} to {most:.6} s passed"
        )
    })?;
    Ok(format!("the GPU clock of 100 MHz advanced {seconds:.6} s while {least:.6} to {most:.6} s passed"))
}

pub(super) fn release_mem_low_32(bench: &mut Bench<'_>) -> Result<String, Failure> {
    let va = bench.va(0).0;
    bench.submit(|writer| {
        writer.release_mem(&release_mem::Repr {
            data: DataSelect::Low32,
            ..release_mem::Repr::fence(va, 0x0bad_cafe)
        })
    })?;
    bench.expect("the 32-bit fence", 0, 0x0bad_cafe)?;
    bench.expect("the dword after it", 4, POISON)?;
    Ok("a 32-bit fence wrote 4 bytes".into())
}

pub(super) fn release_mem_timestamp(bench: &mut Bench<'_>) -> Result<String, Failure> {
    let (first, second) = (bench.va(0).0, bench.va(8).0);
    bench.submit(|writer| {
        writer.release_mem(&release_mem::Repr::timestamp(first))?;
        writer.release_mem(&release_mem::Repr::timestamp(second))
    })?;
    let (first, second) = (bench.get_u64(0), bench.get_u64(8));
    let poison = u64::from(POISON) << 32 | u64::from(POISON);
    check(first != poison && second != poison && first <= second, || {
        format!("two timestamps in a row read {first} and {second}")
    })?;
    Ok(format!("two timestamps in a row are {} ticks of 10 ns apart", second - first))
}

pub(super) fn release_mem_interrupt(bench: &mut Bench<'_>) -> Result<String, Failure> {
    let slot = bench.device.events().signal_slot_va().0;
    let id = bench.device.events().signal().0;
    let start = Instant::now();
    bench.submit(|writer| writer.release_mem(&release_mem::Repr::event_interrupt(slot, id)))?;
    let report = bench
        .device
        .events()
        .wait(bench.deadline)
        .map_err(|error| Failure::wrong(format!("waiting for the event: {error}")))?;
    if !report.signalled {
        let waited_ms = bench.deadline.as_millis();
        return Err(Failure::stop(format!("the fence came, and no interrupt within {waited_ms} ms of it")));
    }
    Ok(format!("the event was signalled after {} µs", start.elapsed().as_micros()))
}

pub(super) fn wait_reg_mem(bench: &mut Bench<'_>) -> Result<String, Failure> {
    const VALUE: u32 = 1000;
    bench.set(0, VALUE);
    let (source, result) = (bench.va(0).0, bench.va(64).0);
    let held = [
        (Comparison::Always, 0),
        (Comparison::Less, VALUE + 1),
        (Comparison::LessEqual, VALUE),
        (Comparison::Equal, VALUE),
        (Comparison::NotEqual, VALUE + 1),
        (Comparison::GreaterEqual, VALUE),
        (Comparison::Greater, VALUE - 1),
    ];
    bench.submit(|writer| {
        writer.acquire_everything()?;
        for (index, (comparison, reference)) in held.iter().enumerate() {
            writer.wait_reg_mem(&wait_reg_mem::Repr::memory(*comparison, source, *reference))?;
            writer.write_data(&write_data::Repr::memory(result + index as u64 * 4, &[index as u32]))?;
        }
        Ok(())
    })?;
    for index in 0..held.len() {
        bench.expect(&format!("the mark after comparison {index}"), 64 + index * 4, index as u32)?;
    }
    Ok("all seven comparisons let a value pass that satisfies them".into())
}

/// A wait whose condition is false must hold the queue, which continues when the host writes the value.
pub(super) fn wait_reg_mem_host(bench: &mut Bench<'_>) -> Result<String, Failure> {
    // All of it is enough; what the mask leaves is not: 0x105 & 0xff = 5.
    bench.set(0, 0x105);
    bench.set(64, 0);
    let (flag, mark) = (bench.va(0).0, bench.va(64).0);
    let mut words = [0; 64];
    let mut writer = Writer::new(&mut words);
    writer.acquire_everything()?;
    writer.wait_reg_mem(&wait_reg_mem::Repr {
        mask: 0xff,
        ..wait_reg_mem::Repr::memory(Comparison::GreaterEqual, flag, 6)
    })?;
    writer.write_data(&write_data::Repr::memory(mark, &[1]))?;
    let used = writer.len();
    let ticket = bench.device.submit_words(&words[..used])?;
    std::thread::sleep(HOLD);
    let held = bench.get(64);
    // The masked value satisfies the wait: 0x106 & 0xff = 6.
    bench.set(0, 0x106);
    let start = Instant::now();
    bench.device.wait(ticket, bench.deadline)?;
    let released = start.elapsed();
    equal("the mark while the wait must hold", held, 0)?;
    bench.expect("the mark after the wait", 64, 1)?;
    bench.time("host store to fence", released, 1);
    Ok(format!("the queue was held for {} ms and released by the host", HOLD.as_millis()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Between the readings 20 ms passed at least, and 23 at most; crystals are off by less than 0.1 %.
    #[test]
    fn a_clock_may_be_as_far_on_as_the_host_allows() {
        let base = Instant::now();
        let reading = |ticks, before, after| ClockReading {
            ticks,
            before: base + Duration::from_millis(before),
            after: base + Duration::from_millis(after),
        };
        let text = |to, has_real_clock| {
            let (first, second) = (reading(1000, 0, 1), reading(to, 21, 23));
            match advanced(&first, &second, has_real_clock) {
                Ok(text) => text,
                Err(Failure { text, is_stop }) => format!("wrong, {is_stop}: {text}"),
            }
        };
        // 20 ms less 0.1 % are 1 998 000 ticks of 10 ns; 23 ms and 0.1 % are 2 302 300.
        let passed = |seconds| {
            format!("the GPU clock of 100 MHz advanced {seconds} s while 0.019980 to 0.023023 s passed")
        };
        let wrong = |to, seconds| {
            format!(
                "wrong, false: the clock went from 1000 to {to}: {seconds} s at 100 MHz, but 0.019980 to 0.023023 s passed"
            )
        };
        assert_eq!(text(1000 + 1_998_001, true), passed("0.019980"));
        assert_eq!(text(1000 + 2_302_299, true), passed("0.023023"));
        assert_eq!(text(1000 + 1_997_999, true), wrong(1_998_999, "0.019980"));
        assert_eq!(text(1000 + 2_302_301, true), wrong(2_303_301, "0.023023"));
        assert_eq!(text(1000, true), wrong(1000, "0.000000"));
        assert_eq!(text(1000, false), "the GPU clock counts work, not time, and went from 1000 to 1000");
        assert_eq!(text(999, false), "wrong, false: the clock went from 1000 back to 999");
    }
}
