//! What a check reports.
//!
//! Contract: plain values; `Display` is one line. Sections are those of the instruction set reference.

use super::effects::Registers;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{Display, Formatter, Result};

/// Most findings of one analysis of an entry; the most of all that was measured is 852.
const FINDINGS_MAX: usize = 32_768;

/// Which rule is broken. Sections: instruction set reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// A scalar register that a VALU instruction has read is later written, and read again without the wait
    /// (instruction set reference §5.1).
    ScalarHazard,
    /// A result of memory is used or overwritten while it may still be outstanding (instruction set reference
    /// §4.1).
    MemoryWait,
    /// A barrier is signalled while LDS stores may be outstanding (instruction set reference §4.2).
    BarrierWait,
    /// `v_permlane*` right after `v_cmpx` (instruction set reference §5.2).
    LaneExchange,
    /// A matrix operation reads the result of the one directly before it as factor or index (instruction set
    /// reference §5.2).
    MatrixOverlap,
    /// A register is read that no path has written (instruction set reference §3).
    Unwritten,
    /// Execution runs off the end of the code or into `s_code_end` (instruction set reference §4.2).
    End,
    /// A branch leads out of the code or into the middle of an instruction (instruction set reference §1).
    Target,
    /// Words on a path are no instruction (instruction set reference §1).
    Undecodable,
    /// The lint cannot determine the registers of an instruction, or the code at an entry exceeds what is followed.
    NotAnalysed,
}

impl Rule {
    /// All rules.
    pub const ALL: [Self; 10] = [
        Self::ScalarHazard,
        Self::MemoryWait,
        Self::BarrierWait,
        Self::LaneExchange,
        Self::MatrixOverlap,
        Self::Unwritten,
        Self::End,
        Self::Target,
        Self::Undecodable,
        Self::NotAnalysed,
    ];

    /// Short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::ScalarHazard => "scalar-hazard",
            Self::MemoryWait => "memory-wait",
            Self::BarrierWait => "barrier-wait",
            Self::LaneExchange => "lane-exchange",
            Self::MatrixOverlap => "matrix-overlap",
            Self::Unwritten => "unwritten",
            Self::End => "end",
            Self::Target => "target",
            Self::Undecodable => "undecodable",
            Self::NotAnalysed => "not-analysed",
        }
    }
}

/// One broken rule at one instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// Dword of the instruction.
    pub dword: usize,
    /// Its text; empty if there is none.
    pub instruction: String,
    /// The registers concerned.
    pub registers: Option<Registers>,
    /// Dword of the write, load or store that the instruction conflicts with (one of them, if paths meet).
    pub cause: Option<usize>,
    /// What would satisfy the rule.
    pub remedy: String,
    /// Source file and line of the instruction, if known.
    pub source: Option<(String, u32)>,
}

impl Finding {
    /// A finding at a dword without an instruction.
    pub fn at(rule: Rule, dword: usize, remedy: String) -> Self {
        let instruction = String::new();
        Self { rule, dword, instruction, registers: None, cause: None, remedy, source: None }
    }
}

impl Display for Finding {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        if let Some((file, line)) = &self.source {
            write!(out, "{file}:{line}: ")?;
        }
        write!(out, "{}: dword {:#x}", self.rule.name(), self.dword)?;
        if !self.instruction.is_empty() {
            write!(out, ": {}", self.instruction)?;
        }
        if let Some(registers) = self.registers {
            write!(out, ": {registers}")?;
        }
        if let Some(cause) = self.cause {
            write!(out, " from dword {cause:#x}")?;
        }
        write!(out, ": {}", self.remedy)
    }
}

/// The findings at one entry while they are collected. Each analysis has room of its own, so that one with many does
/// not hide what others find.
pub(super) struct Findings {
    list: Vec<Finding>,
    /// How many more there may be of this analysis.
    room: usize,
    is_cut: bool,
}

impl Findings {
    pub(super) fn new() -> Self {
        Self { list: Vec::new(), room: FINDINGS_MAX, is_cut: false }
    }

    /// Those that follow are of another analysis.
    pub(super) fn begin_analysis(&mut self) {
        self.room = FINDINGS_MAX;
    }

    /// Adds one if there is room.
    pub(super) fn push(&mut self, finding: Finding) {
        match self.room.checked_sub(1) {
            Some(room) => {
                self.room = room;
                self.list.push(finding);
            }
            None => self.is_cut = true,
        }
    }

    /// In code order, each once, and whether there are others.
    pub(super) fn finish(mut self, entry_dword: usize) -> Vec<Finding> {
        if self.is_cut {
            let remedy =
                format!("the code has more than {FINDINGS_MAX} findings of one kind: not all are listed");
            self.list.push(Finding::at(Rule::NotAnalysed, entry_dword, remedy));
        }
        self.list.sort_by_key(|finding| (finding.dword, finding.rule, finding.registers));
        self.list.dedup();
        self.list
    }
}
