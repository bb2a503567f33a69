//! Hazards that the hardware does not interlock (instruction set reference §5).
//!
//! Contract: the scalar hazard as the static lint defines it, but along the executed path; see [`Strictness`]. A
//! write that may not be visible is reported at the first read and treated as resolved there. Other hazards: a
//! matrix result as input of the next matrix operation, a lane exchange directly after `v_cmpx`, and stores of
//! system scope. Cost: some bit operations per instruction.

use zrt_isa::effects::{Counter, Registers, VCC_LO};

use super::bits::runs;
use super::finding::{Defect, RegisterFinding, Remedy};
use super::launch_state::Strictness;
use super::note::{HAZARD_REGISTERS, HazardClass, Matrix, Note, STORE_QUEUE, Special};
use super::outstanding::Outstanding;

/// vcc_lo and vcc_hi.
const VCC: u128 = 3 << VCC_LO;
/// Fields of `s_wait_alu` (instruction set reference §4.1).
const SA_SDST: u16 = 1;
const VA_VCC: u16 = 1 << 1;
const VA_SDST: u16 = 7 << 9;
/// SALU instructions after which a SALU write is visible to a VALU read, and to a SALU read.
const EXPIRY_VALU: u32 = 11;
const EXPIRY_SALU: u32 = 10;

/// Writes that a read may miss.
#[derive(Clone, Debug)]
struct Writes {
    open: u128,
    cause: [u64; HAZARD_REGISTERS],
}

impl Writes {
    const NONE: Self = Self { open: 0, cause: [0; HAZARD_REGISTERS] };

    fn open(&mut self, registers: u128, pc: u64) {
        self.open |= registers;
        each(registers, |register| self.cause[register] = pc);
    }
}

/// The scalar hazard of one wave.
#[derive(Clone, Debug)]
pub(super) struct ScalarHazard {
    strictness: Strictness,
    /// Registers of pairs that a VALU instruction has read.
    tracked: u128,
    salu: Writes,
    valu: Writes,
    /// Sequence number of the SALU instruction that wrote, by register.
    written_at: [u32; HAZARD_REGISTERS],
    salu_instructions: u32,
    /// Consecutive `ds_nop` instructions.
    idle: u8,
}

impl ScalarHazard {
    pub(super) fn new(strictness: Strictness) -> Self {
        Self {
            strictness,
            tracked: 0,
            salu: Writes::NONE,
            valu: Writes::NONE,
            written_at: [0; HAZARD_REGISTERS],
            salu_instructions: 0,
            idle: 0,
        }
    }

    pub(super) fn begin(&mut self, strictness: Strictness) {
        (self.tracked, self.salu.open, self.valu.open) = (0, 0, 0);
        (self.salu_instructions, self.idle, self.strictness) = (0, 0, strictness);
    }

    /// True if the next step cannot produce a finding.
    #[inline]
    pub(super) fn is_quiet(&self, note: &Note) -> bool {
        (self.salu.open | self.valu.open) & note.hazard_reads == 0
    }

    #[inline]
    pub(super) fn step(&mut self, note: &Note, pc: u64, report: &mut dyn FnMut(RegisterFinding)) {
        if note.hazard == HazardClass::Idle {
            let enough = note.lane_count / 8;
            self.idle = (self.idle + 1).min(enough);
            if self.idle == enough {
                self.tracked = 0;
            }
            return;
        }
        self.idle = 0;
        let (is_valu, counts) = match note.hazard {
            HazardClass::Valu => (true, false),
            HazardClass::Salu { counts } => (false, counts),
            HazardClass::Leave => {
                self.leave(pc, report);
                (false, true)
            }
            HazardClass::Wait(immediate) => return self.wait(immediate),
            HazardClass::Clear => return self.wait(0),
            HazardClass::Idle | HazardClass::Other => return,
        };
        if !self.is_quiet(note) {
            self.read(note, is_valu, pc, report);
        }
        if is_valu {
            self.tracked |= note.hazard_pairs;
        } else if self.strictness == Strictness::Compiler {
            // LLVM merges over all paths what the VALU may have read; a SALU read of any such register ends VALU
            // writes (AMDGPUWaitSGPRHazards). The executed path alone does not show which registers those are.
            if note.hazard_reads & !VCC != 0 {
                self.valu.open &= VCC;
            }
            self.salu_instructions += u32::from(counts);
        }
        // Compilers insert their waits function by function, and so trust the return address that a call has just
        // written.
        let is_trusted = note.hazard == HazardClass::Leave && self.strictness == Strictness::Compiler;
        let written = note.hazard_writes & self.tracked;
        if written != 0 && !is_trusted {
            match is_valu {
                true => self.valu.open(written, pc),
                false => {
                    self.salu.open(written, pc);
                    each(written, |register| self.written_at[register] = self.salu_instructions);
                }
            }
        }
    }

    fn read(&mut self, note: &Note, is_valu: bool, pc: u64, report: &mut dyn FnMut(RegisterFinding)) {
        let is_strict = self.strictness == Strictness::Strict;
        let expiry = if is_valu { EXPIRY_VALU } else { EXPIRY_SALU };
        let mut late = self.salu.open & note.hazard_reads;
        if !is_strict {
            each(late, |register| {
                if self.salu_instructions - self.written_at[register] >= expiry {
                    late &= !(1 << register);
                }
            });
        }
        list(late, &self.salu.cause, Defect::ScalarWrite, Remedy::ScalarWrites, pc, report);
        self.salu.open &= !late;
        let missed = self.valu.open & note.hazard_reads;
        if is_valu {
            let cause = &self.valu.cause;
            list(missed & !VCC, cause, Defect::VectorWrite, Remedy::VectorWrites, pc, report);
        }
        if is_valu || is_strict {
            list(missed & VCC, &self.valu.cause, Defect::VectorWrite, Remedy::VectorWritesOfVcc, pc, report);
        }
        self.valu.open &= !note.hazard_reads;
    }

    fn wait(&mut self, immediate: u16) {
        if immediate & SA_SDST == 0 {
            self.salu.open = 0;
        }
        if immediate & VA_SDST == 0 {
            self.valu.open &= VCC;
        }
        if immediate & VA_VCC == 0 {
            self.valu.open &= !VCC;
        }
    }

    /// A jump out of the known code requires everything to be done.
    fn leave(&mut self, pc: u64, report: &mut dyn FnMut(RegisterFinding)) {
        let instructions = self.salu_instructions;
        let mut late = self.salu.open;
        if self.strictness == Strictness::Compiler {
            each(late, |register| {
                if instructions - self.written_at[register] >= EXPIRY_VALU {
                    late &= !(1 << register);
                }
            });
        }
        let valu = &self.valu;
        list(late, &self.salu.cause, Defect::OpenAtJump, Remedy::ScalarWrites, pc, report);
        list(valu.open & !VCC, &valu.cause, Defect::OpenAtJump, Remedy::VectorWrites, pc, report);
        list(valu.open & VCC, &valu.cause, Defect::OpenAtJump, Remedy::VectorWritesOfVcc, pc, report);
        self.wait(0);
    }
}

fn each(mut registers: u128, mut call: impl FnMut(usize)) {
    while registers != 0 {
        call(registers.trailing_zeros() as usize);
        registers &= registers - 1;
    }
}

/// Produces one finding per run of registers.
fn list(
    registers: u128,
    cause: &[u64; HAZARD_REGISTERS],
    defect: Defect,
    remedy: Remedy,
    pc: u64,
    report: &mut dyn FnMut(RegisterFinding),
) {
    if registers == 0 {
        return;
    }
    runs(
        Registers::new(0, HAZARD_REGISTERS),
        |register| registers >> register & 1 != 0,
        |hit| {
            report(RegisterFinding {
                cause_pc: Some(cause[hit.range().start]),
                registers: Some(hit),
                ..RegisterFinding::at(pc, defect, remedy)
            });
        },
    );
}

/// State for the other hazards of one wave.
#[derive(Clone, Debug, Default)]
pub(super) struct OtherHazards {
    /// The latest matrix operation not yet followed by a VALU instruction.
    matrix: Option<(Registers, u64)>,
    /// The latest `v_cmpx` not yet followed by a VALU instruction other than `v_nop`.
    compare_pc: Option<u64>,
}

impl OtherHazards {
    /// Advances over an instruction that has no finding.
    #[inline]
    pub(super) fn pass(&mut self, special: Special) {
        match special {
            Special::Nop => self.matrix = None,
            Special::Valu => (self.matrix, self.compare_pc) = (None, None),
            _ => {}
        }
    }

    #[inline]
    pub(super) fn step(
        &mut self,
        note: &Note,
        pc: u64,
        outstanding: &Outstanding,
        report: &mut dyn FnMut(RegisterFinding),
    ) {
        for &(defect, remedy) in &note.dual_defects {
            report(RegisterFinding::at(pc, defect, remedy));
        }
        match note.special {
            Special::None | Special::Scratch => {}
            Special::SystemStore => system_store(pc, outstanding, report),
            Special::Nop | Special::Valu => self.pass(note.special),
            Special::Compare => (self.matrix, self.compare_pc) = (None, Some(pc)),
            Special::Exchange => {
                if self.compare_pc.is_some() {
                    report(RegisterFinding {
                        cause_pc: self.compare_pc,
                        ..RegisterFinding::at(pc, Defect::LaneExchange, Remedy::RealVectorInstruction)
                    });
                }
                (self.matrix, self.compare_pc) = (None, None);
            }
            Special::Matrix => {
                self.compare_pc = None;
                if let Some(matrix) = note.matrix.as_deref() {
                    self.matrix(matrix, pc, report);
                }
            }
        }
    }

    fn matrix(&mut self, matrix: &Matrix, pc: u64, report: &mut dyn FnMut(RegisterFinding)) {
        if let Some((destination, cause)) = self.matrix {
            let last = destination.range();
            let overlaps =
                |input: &Registers| input.range().start < last.end && last.start < input.range().end;
            if let Some(input) = matrix.inputs.iter().flatten().find(|input| overlaps(input)) {
                report(RegisterFinding {
                    cause_pc: Some(cause),
                    registers: Some(*input),
                    ..RegisterFinding::at(pc, Defect::MatrixChain, Remedy::VectorInstruction)
                });
            }
        }
        self.matrix = Some((matrix.destination, pc));
    }
}

fn system_store(pc: u64, outstanding: &Outstanding, report: &mut dyn FnMut(RegisterFinding)) {
    let queues = [Counter::Load as usize, Counter::Km as usize, STORE_QUEUE];
    if queues.iter().any(|&queue| outstanding.count(queue) > 0) {
        report(RegisterFinding::at(pc, Defect::SystemStore, Remedy::AllWaits));
    }
}
