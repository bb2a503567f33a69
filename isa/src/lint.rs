//! Static checks of gfx1201 code: the waits and the order that the hardware needs and that no assembler enforces.
//!
//! Contract: [`check`] follows every path from the entry (branches and loops to a fixed point; at a join, anything
//! that may have happened on one of the paths is assumed) and never panics, whatever the words. It knows registers,
//! not values: paths that the data never takes count too. Results are in code order, each once; where paths bring
//! several causes, one is named.
//!
//! Cost: some microseconds and some hundred bytes per instruction, and some kilobytes where paths meet. Instructions,
//! work for them, what is known where paths meet, and findings have limits for each entry, ten times what kernels need
//! or more, and computed jumps are followed for some rounds (`lint/graph.rs`, `lint/graph/fixed_point.rs`,
//! `lint/finding.rs`). Code beyond one of them is not checked whole, and is reported as such at its entry
//! ([`Rule::NotAnalysed`]): it is never clean.
//!
//! | rule | source |
//! |---|---|
//! | [`Rule::ScalarHazard`] | instruction set reference §5.1, with its expiry; SOPP instructions do not age a write |
//! | [`Rule::MemoryWait`] | instruction set reference §4.1: results of loads, returning atomics, LDS, SMEM, messages, by counter |
//! | [`Rule::BarrierWait`] | instruction set reference §4.2: LDS stores before a barrier signal |
//! | [`Rule::LaneExchange`] | instruction set reference §5.2: v_cmpx, then v_permlane |
//! | [`Rule::MatrixOverlap`] | instruction set reference §5.2: a matrix result used as factor or index of the next |
//! | [`Rule::Unwritten`] | instruction set reference §3: what the launch state leaves undefined |
//! | [`Rule::End`], [`Rule::Target`], [`Rule::Undecodable`] | instruction set reference §1, §4.2 |
//!
//! Functions that call each other are a [`Program`]: each is checked by itself, by the convention of compiled
//! functions. Without one, code is followed from its entry alone ([`check_entry`]). The code after a call is then
//! assumed to be reached with every register written and every scalar pair read by a VALU.
//!
//! Computed jumps (`s_setpc`, `s_swappc`) are followed if the address is made of `s_getpc` and constants. Of the
//! registers that m0 selects, only the first is certainly used: a wait that only the others need is not reported as
//! missing. Graphics instructions cannot be analysed and are reported as such ([`Rule::NotAnalysed`]).

mod addresses;
mod analysis;
mod changes;
mod convention;
mod counters;
pub mod effects;
mod entry;
mod exchange;
mod finding;
mod graph;
mod matrix_overlap;
mod program;
mod scalar_hazard;
mod step;
mod unwritten;

pub use effects::Registers;
pub use entry::Entry;
pub use finding::{Finding, Rule};
pub use program::{Function, Program};

use crate::zrt::Kernel;
use alloc::string::String;
use alloc::vec::Vec;

/// Checks `code` as entered once at `entry_dword` with all user SGPRs: [`Entry::at`]. Offsets of findings are
/// dwords of `code`.
pub fn check(code: &[u32], entry_dword: usize) -> Vec<Finding> {
    check_entry(code, &Entry::at(entry_dword))
}

/// Checks `code` as entered by `entry`.
pub fn check_entry(code: &[u32], entry: &Entry) -> Vec<Finding> {
    program::check_alone(code, entry)
}

/// Checks a kernel as its container describes it, with source lines if its line table has them. `runs_again`: see
/// [`Entry::runs_again`]. Kernels are checked strictly ([`Entry::is_strict`]).
pub fn check_kernel(kernel: &Kernel<'_>, runs_again: bool) -> Vec<Finding> {
    let code: Vec<u32> = kernel.code_dwords().collect();
    let entry = Entry {
        dword: kernel.entry as usize / 4,
        user_sgprs: kernel.user_sgprs,
        is_called: false,
        wave_size: kernel.wave_size,
        runs_again,
        is_strict: true,
    };
    let mut findings = check_entry(&code, &entry);
    for finding in &mut findings {
        let offset = u32::try_from(finding.dword * 4).ok();
        let source = offset.and_then(|offset| kernel.source_line(offset));
        finding.source = source.map(|(file, line)| (String::from(file), line));
    }
    findings
}
