//! Every assembled kernel against the static lint of `zrt_isa::lint`: waits, hazards, registers never written.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use std::path::Path;
use zrt_isa::lint::{Entry, check_entry, check_kernel};
use zrt_isa::zrt::Kernel;
use zrt_isa::{Instruction, decode};

/// `s_nop 0`.
const NOP: u32 = 0xbf80_0000;

/// Calls `check` for every container in the folder of blobs.
fn for_each_kernel(mut check: impl FnMut(&Kernel<'_>)) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../asm/blobs");
    let entries = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|ending| ending == "zrt")).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no kernels in {}", folder.display());
    for path in paths {
        let bytes = std::fs::read(&path).unwrap();
        match Kernel::parse(&bytes) {
            Ok(kernel) => check(&kernel),
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }
}

/// Run once, and over and over in one wave, as the megakernel runs bodies. Of the megakernel itself the lint sees what
/// it reaches without following the jump to a body.
#[test]
fn every_kernel_is_clean() {
    let mut lines = Vec::new();
    for_each_kernel(|kernel| {
        for runs_again in [false, true] {
            let findings = check_kernel(kernel, runs_again);
            lines.extend(findings.iter().map(|finding| format!("{}: {finding}", kernel.name)));
        }
    });
    lines.dedup();
    assert!(lines.is_empty(), "\n{}", lines.join("\n"));
}

/// The waits of a kernel: dword and instruction.
fn waits(code: &[u32], entry: usize) -> Vec<(usize, Instruction)> {
    let mut found = Vec::new();
    let mut dword = entry;
    while dword < code.len() {
        let instruction = decode(&code[dword..]).unwrap();
        if instruction.to_string().starts_with("s_wait_") {
            found.push((dword, instruction));
        }
        dword += instruction.dword_count as usize;
    }
    found
}

/// Of how many waits the short run leaves out all but one.
const STRIDE: usize = 5;

/// The lint sees a wait that is missing: without any one of them a kernel is not clean. A few waits may be superfluous
/// on every path, so one in twenty is allowed to go unmissed. This takes every fifth wait.
#[test]
fn a_missing_wait_is_found() {
    leave_out_each_wait(|number| number % STRIDE == 0);
}

/// The same of all the others.
#[test]
fn every_other_missing_wait_is_found() {
    leave_out_each_wait(|number| number % STRIDE != 0);
}

/// Checks kernels without each of the waits that are chosen, by their number among all.
fn leave_out_each_wait(is_chosen: impl Fn(usize) -> bool) {
    let (mut all, mut tried, mut unmissed) = (0, 0, Vec::new());
    for_each_kernel(|kernel| {
        // The megakernel's bodies are reached by a computed jump; they are checked in kernels of their own. Half of
        // PLAN's waits are for what the host sees, which the lint does not judge: the checking mode does.
        if ["mega", "plan"].contains(&kernel.name) {
            return;
        }
        let code: Vec<u32> = kernel.code_dwords().collect();
        let entry = Entry {
            dword: kernel.entry as usize / 4,
            user_sgprs: kernel.user_sgprs,
            is_called: false,
            wave_size: kernel.wave_size,
            runs_again: true,
            is_strict: true,
        };
        for (dword, instruction) in waits(&code, entry.dword) {
            // The wrapper's barrier waits for LDS, whether its body uses any or not.
            let place = kernel.source_line(dword as u32 * 4);
            if place.is_some_and(|(file, _)| file.ends_with("machine.inc")) {
                continue;
            }
            all += 1;
            if !is_chosen(all) {
                continue;
            }
            tried += 1;
            let mut without = code.clone();
            without[dword] = NOP;
            if check_entry(&without, &entry).is_empty() {
                unmissed.push(format!("{} dword {dword:#x} {place:?}: {instruction}", kernel.name));
            }
        }
    });
    assert!(tried > 100, "only {tried} of {all} waits");
    assert!(unmissed.len() * 20 <= tried, "{} of {tried}:\n{}", unmissed.len(), unmissed.join("\n"));
}
