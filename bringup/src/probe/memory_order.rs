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

pub(super) fn host_writes(bench: &mut Bench<'_>) -> Result<Finding, Stop> {
    let mut holds = true;
    let mut told = Vec::new();
    let mut measures = Vec::new();
    for (heap, is_relied_on) in KINDS {
        let name = heap.name();
        let (kind, fresh) = ask(bench, heap)?;
        holds &= !is_relied_on || RELIED_ON.iter().all(|way| fresh[*way]);
        let words = |is_fresh| WAYS.iter().zip(fresh).filter(move |(_, seen)| *seen == is_fresh);
        let list = |is_fresh| words(is_fresh).map(|(way, _)| *way).collect::<Vec<_>>().join(", ");
        told.push(format!("{name} ({kind}): fresh [{}], stale [{}]", list(true), list(false)));
        measures.extend(WAYS.iter().zip(fresh).map(|(way, seen)| (format!("{name}.{way}"), seen)));
    }
    let mut finding = Finding::of_model(holds, told.join("; "));
    for (name, seen) in measures {
        finding.text(name, if seen { "fresh" } else { "stale" }.into(), "text");
    }
    Ok(finding)
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
    for (line, is_fresh) in fresh.iter_mut().enumerate() {
        let seen = page_view.load_u32_acquire(RESULTS + 4 * line);
        *is_fresh = match seen {
            word if word == AFTER + line as u32 => true,
            word if word == BEFORE + line as u32 => false,
            POISON => return Err(Stop::Question("the kernel gave up waiting for the host's word".into())),
            word => return Err(Stop::Question(format!("line {line} read {word:#010x}, which nobody wrote"))),
        };
    }
    Ok((format!("{:?}", lines.kind()), fresh))
}
