//! Static checks of gfx1201 code: the waits and order that the hardware needs and no assembler asks for.
//!
//! Contract: [`check`] follows every path from the entry (branches and loops to a fixed point; where paths meet, whatever
//! may have happened on one of them is assumed) and never panics, whatever the words. It knows registers, not values: a
//! path that the data never takes counts. Results are in code order, each once. Cost: some microseconds per instruction.
//!
//! | rule | instruction set reference |
//! |---|---|
//! | [`Rule::ScalarHazard`] | §5.1, the whole table with its expiry; SOPP does not count among the SALU instructions that let a write age |
//! | [`Rule::MemoryWait`] | §4.1: results of loads, returning atomics, LDS, SMEM, messages, by counter |
//! | [`Rule::BarrierWait`] | §4.2: LDS stores before a barrier signal |
//! | [`Rule::LaneExchange`] | §5.2: v_cmpx, then v_permlane |
//! | [`Rule::Unwritten`] | §3: what the launch state leaves undefined |
//! | [`Rule::End`], [`Rule::Target`], [`Rule::Undecodable`] | §1, §4.2 |
//!
//! Out of reach, and said so where met ([`Rule::NotAnalysed`]): relative register moves and graphics instructions. Code
//! behind `s_setpc` and `s_swappc` is not followed; what follows a call is taken as reached with every register written
//! and every scalar pair read by a VALU.

mod counters;
pub mod effects;
mod exchange;
mod finding;
mod graph;
mod scalar_hazard;
mod unwritten;

pub use effects::Registers;
pub use finding::{Finding, Rule};

use crate::resources::WaveSize;
use crate::zrt::Kernel;
use alloc::string::String;
use alloc::vec::Vec;
use graph::Graph;

/// Most user SGPRs a launch can preload (hardware reference §5).
const USER_SGPRS_MAX: u8 = 16;

/// How the code is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Dword of the first instruction.
    pub dword: usize,
    /// Scalar registers from s0 that the launch writes.
    pub user_sgprs: u8,
    /// Lanes of a wave.
    pub wave_size: WaveSize,
    /// Whether the same wave may run the code again after its end, as a program made of several bodies does: the hazards
    /// that the end leaves then meet the beginning.
    pub runs_again: bool,
    /// The scalar hazard: trust nothing that only one compiler relies on. If false, a SALU write expires by itself, and a
    /// SALU read resolves VALU writes of other registers, and of vcc; if true, they do not.
    pub is_strict: bool,
}

impl Entry {
    /// A wave32 entry at `dword` with every user SGPR that a launch can have, run once.
    pub fn at(dword: usize) -> Self {
        Self {
            dword,
            user_sgprs: USER_SGPRS_MAX,
            wave_size: WaveSize::Wave32,
            runs_again: false,
            is_strict: false,
        }
    }
}

/// Checks `code` as entered once at `entry_dword` with all user SGPRs: [`Entry::at`]. Offsets of findings are dwords of `code`.
pub fn check(code: &[u32], entry_dword: usize) -> Vec<Finding> {
    check_entry(code, &Entry::at(entry_dword))
}

/// Checks `code` as entered by `entry`.
pub fn check_entry(code: &[u32], entry: &Entry) -> Vec<Finding> {
    let mut findings = Vec::new();
    let graph = Graph::build(code, entry, &mut findings);
    graph.solve(&scalar_hazard::ScalarHazard { entry: *entry }, &mut findings);
    graph.solve(&counters::Counters, &mut findings);
    graph.solve(&exchange::Exchange, &mut findings);
    graph.solve(&unwritten::Unwritten { entry: *entry }, &mut findings);
    findings.sort_by_key(|finding| (finding.dword, finding.rule, finding.registers));
    findings.dedup();
    findings
}

/// Checks a kernel by what its container says, with source lines where its line table has them. `runs_again`: see
/// [`Entry::runs_again`]. Kernels are checked strictly ([`Entry::is_strict`]).
pub fn check_kernel(kernel: &Kernel<'_>, runs_again: bool) -> Vec<Finding> {
    let code: Vec<u32> = kernel.code_dwords().collect();
    let entry = Entry {
        dword: kernel.entry as usize / 4,
        user_sgprs: kernel.user_sgprs,
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
