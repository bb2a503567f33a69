//! Which loads see what the host writes while a kernel runs.
//!
//! Contract: the kernel loads four lines, which fills L0 and GL2; the host rewrites them; the kernel loads each again
//! in one way, the weakest first, so that no way helps an earlier one. Asked for each kind of memory that both sides
//! see.

use super::bench::{Bench, PATIENCE_TICKS, POISON, Parameters, Stop};
use super::finding::Finding;
use super::kernels::ORDER;
use std::time::{Duration, Instant};
use zrt_mem::{ByteLen, Heap};

/// The ways, in the kernel's order.
const WAYS: [&str; 4] = ["cu", "cu_after_inv_dev", "sys", "cu_after_inv_sys"];
/// Those that the project relies on in memory that it relies on: positions in [`WAYS`].
const RELIED_ON: [usize; 2] = [2, 3];
/// Bytes from line to line: GL2 lines are 256 bytes (hardware reference §1.4).
const LINE_BYTES: usize = 256;
/// What the lines hold before and after.
const BEFORE: u32 = 0x0bef_0000;
const AFTER: u32 = 0x0af7_0000;
/// Offsets in the page: ready, go, results.
const READY: usize = 0;
const GO: usize = 256;
const RESULTS: usize = 512;
/// How often the host polls for the kernel's word.
const LOOK_US: u64 = 20;

/// The kinds of memory, and whether kernels of the project read there what the host writes while they run.
const KINDS: [(Heap, bool); 3] = [(Heap::HostShared, true), (Heap::Host, true), (Heap::HostVisible, false)];

/// What was observed in one kind of memory: its name, what the driver calls it, whether kernels of the project read
/// there what the host writes while they run, and which ways saw the new word.
struct Seen {
    name: &'static str,
    kind: String,
    is_relied_on: bool,
    fresh: [bool; 4],
}

pub(super) fn host_writes(bench: &mut Bench<'_>) -> Result<Finding, Stop> {
    let mut seen = Vec::with_capacity(KINDS.len());
    for (heap, is_relied_on) in KINDS {
        let (kind, fresh) = ask(bench, heap)?;
        seen.push(Seen { name: heap.name(), kind, is_relied_on, fresh });
    }
    Ok(told(&seen))
}

fn told(seen: &[Seen]) -> Finding {
    let mut holds = true;
    let mut summary = Vec::new();
    for Seen { name, kind, is_relied_on, fresh } in seen {
        holds &= !is_relied_on || RELIED_ON.iter().all(|way| fresh[*way]);
        let words = |is_fresh| WAYS.iter().zip(fresh).filter(move |(_, seen)| **seen == is_fresh);
        let list = |is_fresh| words(is_fresh).map(|(way, _)| *way).collect::<Vec<_>>().join(", ");
        summary.push(format!("{name} ({kind}): fresh [{}], stale [{}]", list(true), list(false)));
    }
    let mut finding = Finding::of_model(holds, summary.join("; "));
    for Seen { name, fresh, .. } in seen {
        for (way, is_fresh) in WAYS.iter().zip(fresh) {
            finding.text(format!("{name}.{way}"), if *is_fresh { "fresh" } else { "stale" }.into(), "text");
        }
    }
    finding
}

/// Whether a line's word is what the host wrote last.
fn is_fresh(line: usize, seen: u32) -> Result<bool, Stop> {
    match seen {
        word if word == AFTER + line as u32 => Ok(true),
        word if word == BEFORE + line as u32 => Ok(false),
        POISON => Err(Stop::Question("the kernel gave up waiting for the host's word".into())),
        word => Err(Stop::Question(format!("line {line} read {word:#010x}, which nobody wrote"))),
    }
}

/// Where the lines were, and which ways saw the new word.
fn ask(bench: &mut Bench<'_>, heap: Heap) -> Result<(String, [bool; 4]), Stop> {
    let lines = bench.allocate(heap, ByteLen((WAYS.len() * LINE_BYTES) as u64), "probe lines")?;
    let page = bench.page(4096, "probe page")?;
    let (view, page_view) = (lines.view()?, page.view()?);
    page_view.store_u32_release(GO, 0);
    for line in 0..WAYS.len() {
        view.store_u32_release(line * LINE_BYTES, BEFORE + line as u32);
    }
    bench.device.flush();
    let parameters = Parameters { first: lines.va, second: page.va, numbers: [PATIENCE_TICKS, 0] };
    let launch = bench.record(&ORDER, parameters, 1, 1, false)?;
    let ticket = bench.submit(&launch)?;
    let start = Instant::now();
    while page_view.load_u32_acquire(READY) != 1 {
        if start.elapsed() > bench.deadline || bench.device.is_done(ticket) {
            break;
        }
        std::thread::sleep(Duration::from_micros(LOOK_US));
    }
    for line in 0..WAYS.len() {
        view.store_u32_release(line * LINE_BYTES, AFTER + line as u32);
    }
    bench.device.flush();
    page_view.store_u32_release(GO, 1);
    bench.wait(ticket)?;
    let mut fresh = [false; 4];
    for (line, fresh) in fresh.iter_mut().enumerate() {
        *fresh = is_fresh(line, page_view.load_u32_acquire(RESULTS + 4 * line))?;
    }
    Ok((format!("{:?}", lines.kind()), fresh))
}

#[cfg(test)]
mod tests {
    use super::super::finding::tests::lines;
    use super::*;

    #[test]
    fn a_line_is_what_the_host_wrote_before_or_after() {
        let reason = |seen| match is_fresh(2, seen) {
            Err(Stop::Question(reason)) => reason,
            other => panic!("{other:?}"),
        };
        assert!(is_fresh(2, 0x0af7_0002).unwrap() && !is_fresh(2, 0x0bef_0002).unwrap());
        assert_eq!(reason(0x0af7_0001), "line 2 read 0x0af70001, which nobody wrote");
        assert_eq!(reason(0x0bef_0003), "line 2 read 0x0bef0003, which nobody wrote");
        assert_eq!(reason(0xdead_beef), "the kernel gave up waiting for the host's word");
    }

    #[test]
    fn the_model_asks_for_two_ways_in_the_memory_that_is_relied_on() {
        let of = |name, is_relied_on, fresh| Seen { name, kind: "Gtt".into(), is_relied_on, fresh };
        let seen = [of("a", true, [false, false, true, true]), of("b", false, [true, false, false, false])];
        assert_eq!(
            lines(&told(&seen)),
            "Confirms: a (Gtt): fresh [sys, cu_after_inv_sys], stale [cu, cu_after_inv_dev]; b (Gtt): fresh [cu], stale \
             [cu_after_inv_dev, sys, cu_after_inv_sys]\n\
             a.cu \"stale\" text\n\
             a.cu_after_inv_dev \"stale\" text\n\
             a.sys \"fresh\" text\n\
             a.cu_after_inv_sys \"fresh\" text\n\
             b.cu \"fresh\" text\n\
             b.cu_after_inv_dev \"stale\" text\n\
             b.sys \"stale\" text\n\
             b.cu_after_inv_sys \"stale\" text"
        );
        for fresh in [[true, true, false, true], [true, true, true, false]] {
            let seen = [of("a", true, fresh), of("b", true, [true; 4])];
            assert_eq!(told(&seen).verdict, super::super::Verdict::Contradicts, "{fresh:?}");
        }
    }
}
