//! Machine code, decoded once.
//!
//! Contract: a [`Program`] is the code that can be reached from its entry by branches with targets in the code.
//! Other jumps (`s_setpc`) go through the [`ProgramCache`] to the program that begins at the target. Data between
//! or after code is never decoded. Words that are no instruction, cannot be fetched or are not supported become
//! operations that stop the wave when it reaches them. Programs are immutable: after an invalidation of the
//! instruction cache, or a change of the page table, the words are compared with memory, and the program is decoded
//! again if any differ.
//! Cost: about 100 ns per instruction, once; a look-up is one lock and one hash.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zrt_isa::resources::WaveSize;
use zrt_isa::{Instruction, Opcode};

use crate::memory::{Cause, Defects, Fault, PageTable, Rights};
use crate::shader::code_words::CodeWords;
use crate::shader::code_words::FAULT_WORDS;
use crate::shader::control::{self, FarBranch, KnownStop, Successors, blank};
use crate::shader::fault::WaveFaultKind;
use crate::shader::micro::MicroOp;
use crate::shader::translate::{highest_vector_register, translate};
use crate::shader::wave64;
use crate::simd::{Executor, Level};

/// Most instructions of one program; code beyond them becomes another program.
const INSTRUCTIONS_MAX: usize = 1 << 16;
/// Most programs in the cache. At the limit it is emptied.
const PROGRAMS_MAX: usize = 4096;

/// What a fetch sees in deliberately hidden code: no instruction (instruction set reference §1).
const HIDDEN_CODE: u32 = u32::MAX;

/// What the inspection keeps for an instruction, made once when it is decoded.
pub(crate) trait Note {
    /// The note of an instruction in waves of that size.
    fn new(instruction: &Instruction, wave_size: WaveSize) -> Self;

    /// The note of the operation that executes lanes 32 to 63 of a wave64.
    fn of_high_half(instruction: &Instruction) -> Self;
}

/// Decoded code with one entry; `N` is what the inspection keeps for its instructions.
pub(crate) struct Program<N> {
    /// The address that `code_dword` counts from: the entry.
    pub base_va: u64,
    pub ops: Vec<MicroOp>,
    /// The note of each operation, if programs are inspected; no instruction is left out then.
    pub notes: Vec<Option<N>>,
    /// Whether any instruction is an `s_wait_alu`: the author of the code knows about the scalar hazard.
    pub knows_scalar_hazard: bool,
    /// Micro operation of the entry.
    pub entry: u32,
    /// Micro operation at each instruction's address, sorted. Omitted instructions are not included.
    index: Vec<(u64, u32)>,
    stops: Vec<WaveFaultKind>,
    /// The words that it was decoded from, as runs of adjacent dwords.
    runs: Vec<Run>,
    /// Whether an instruction could not be fetched; a later attempt may succeed.
    has_fetch_faults: bool,
    /// Generations of instruction cache and page table at the last comparison.
    checked: AtomicU64,
}

#[derive(Debug)]
struct Run {
    va: u64,
    words: Vec<u32>,
}

/// The parameters that a program depends on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    space_id: u64,
    entry_va: u64,
    /// A register beyond the allocation becomes a stop at decode time.
    vector_registers: u32,
    is_wave64: bool,
}

/// All programs of an engine.
pub(crate) struct ProgramCache<N> {
    programs: Mutex<HashMap<Key, Arc<Program<N>>>>,
    /// Invalidations of the instruction cache so far.
    generation: AtomicU32,
    level: Level,
    /// Whether programs keep notes and omit nothing.
    is_inspected: bool,
}

/// The memory from which code is fetched.
#[derive(Clone, Copy)]
pub(crate) struct Fetch<'a> {
    pub space_id: u64,
    pub table: &'a PageTable,
    pub vector_registers: u32,
    /// Whether the code runs 64 lanes.
    pub is_wave64: bool,
}

impl Fetch<'_> {
    fn wave_size(&self) -> WaveSize {
        if self.is_wave64 { WaveSize::Wave64 } else { WaveSize::Wave32 }
    }

    /// Why words are no instruction in such a wave.
    fn refused(&self, words: [u32; FAULT_WORDS], count: usize) -> WaveFaultKind {
        match zrt_isa::decode(&words[..count]) {
            Ok(instruction) if wave64::is_wave32_only(&instruction) => {
                WaveFaultKind::DualInWave64(trimmed(words, usize::from(instruction.dword_count)))
            }
            _ => WaveFaultKind::UnknownInstruction(words),
        }
    }

    fn key(&self, entry_va: u64) -> Key {
        let Fetch { space_id, vector_registers, is_wave64, .. } = *self;
        Key { space_id, entry_va, vector_registers, is_wave64 }
    }

    fn word(&self, va: u64) -> Result<u32, Fault> {
        let (view, offset) = self.table.translate(va, 4, Rights::READ | Rights::EXECUTE)?;
        if offset % 4 != 0 {
            return Err(Fault { va, cause: Cause::NotPresent, access: Rights::EXECUTE });
        }
        if self.table.defects(va).contains(Defects::HIDES_CODE) {
            return Ok(HIDDEN_CODE);
        }
        Ok(view.load_u32(offset))
    }

    /// Up to four words and how many could be read, or the fault if none could.
    fn words(&self, va: u64) -> Result<([u32; FAULT_WORDS], usize), Fault> {
        let mut words = [self.word(va)?; FAULT_WORDS];
        let mut count = 1;
        while count < FAULT_WORDS {
            let Ok(word) = self.word(va.wrapping_add(4 * count as u64)) else { break };
            words[count] = word;
            count += 1;
        }
        words[count..].fill(0);
        Ok((words, count))
    }
}

impl<N: Note> ProgramCache<N> {
    pub fn new(level: Level, is_inspected: bool) -> ProgramCache<N> {
        ProgramCache { programs: Mutex::default(), generation: AtomicU32::new(0), level, is_inspected }
    }

    /// Forces every program to be compared with memory before its next use.
    pub fn invalidate(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Arc<Program<N>>>> {
        // Entries are inserted whole, so the map is valid after any panic.
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program that starts at an address, which is a multiple of 4.
    pub fn get(&self, fetch: Fetch<'_>, entry_va: u64) -> Arc<Program<N>> {
        let stamp = u64::from(self.generation.load(Ordering::Acquire)) << 32
            | u64::from(fetch.table.generation() as u32);
        let key = fetch.key(entry_va);
        let known = self.lock().get(&key).cloned();
        if let Some(program) = known
            && (program.checked.load(Ordering::Relaxed) == stamp || program.is_current(fetch))
        {
            program.checked.store(stamp, Ordering::Relaxed);
            return program;
        }
        let program = Arc::new(decode(fetch, entry_va, stamp, self.level, self.is_inspected));
        let mut programs = self.lock();
        if programs.len() >= PROGRAMS_MAX {
            programs.clear();
        }
        programs.insert(key, program.clone());
        program
    }

    /// Whether memory no longer holds the program that [`ProgramCache::get`] would return.
    pub fn is_stale(&self, fetch: Fetch<'_>, entry_va: u64) -> bool {
        let known = self.lock().get(&fetch.key(entry_va)).cloned();
        let generation = u64::from(self.generation.load(Ordering::Acquire));
        known.is_some_and(|program| {
            program.checked.load(Ordering::Relaxed) >> 32 == generation
                && !program.runs.iter().all(|run| run.is_current(fetch))
        })
    }

    /// Forgets the programs of an address space.
    pub fn forget(&self, space_id: u64) {
        self.lock().retain(|key, _| key.space_id != space_id);
    }
}

impl<N> Program<N> {
    /// The note of the operation at an index, if programs are inspected.
    pub fn noted(&self, at: usize) -> Option<&N> {
        self.notes.get(at)?.as_ref()
    }

    /// Why the micro operation stops the wave.
    pub fn stop(&self, op: &MicroOp) -> Option<WaveFaultKind> {
        self.stops.get(op.wide[0] as usize).copied()
    }

    /// The parts of the code that it was decoded from: address and length in bytes.
    pub fn parts(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.runs.iter().map(|run| (run.va, 4 * run.words.len() as u64))
    }

    /// The instruction at an address, as decoded; no words if this program does not reach it.
    pub fn code_at(&self, va: u64, wave_size: WaveSize) -> CodeWords {
        let words = self.runs.iter().find_map(|run| {
            let offset = va.checked_sub(run.va)?;
            run.words.get(usize::try_from(offset / 4).ok()?..).filter(|words| !words.is_empty())
        });
        CodeWords::new(words.unwrap_or_default(), wave_size)
    }

    /// Address of a micro operation's instruction.
    pub fn address(&self, op: &MicroOp) -> u64 {
        self.base_va.wrapping_add_signed(4 * i64::from(op.code_dword as i32))
    }

    /// The micro operation of the instruction at an address.
    pub fn index_of(&self, va: u64) -> Option<u32> {
        let at = self.index.binary_search_by_key(&va, |entry| entry.0).ok()?;
        Some(self.index[at].1)
    }

    fn is_current(&self, fetch: Fetch<'_>) -> bool {
        !self.has_fetch_faults && self.runs.iter().all(|run| run.is_current(fetch))
    }
}

impl Run {
    fn is_current(&self, fetch: Fetch<'_>) -> bool {
        let access = Rights::READ | Rights::EXECUTE;
        if let Ok((view, offset)) = fetch.table.translate(self.va, 4 * self.words.len(), access)
            && fetch.table.defects(self.va).is_empty()
        {
            return offset % 4 == 0 && view.equals_words(offset, &self.words);
        }
        // Not within one mapping, or different from memory.
        let same =
            |(index, word): (usize, &u32)| fetch.word(self.va.wrapping_add(4 * index as u64)) == Ok(*word);
        self.words.iter().enumerate().all(same)
    }
}

/// One reachable address.
struct Reached {
    /// `Err`: the wave stops there.
    what: Result<Instruction, WaveFaultKind>,
    words: [u32; FAULT_WORDS],
    dwords: usize,
}

impl Reached {
    fn at(fetch: Fetch<'_>, va: u64) -> Reached {
        let (words, count) = match fetch.words(va) {
            Ok(words) => words,
            Err(fault) => {
                let fault = Fault { access: Rights::EXECUTE, ..fault };
                let what = Err(WaveFaultKind::Page(fault));
                return Reached { what, words: [0; FAULT_WORDS], dwords: 0 };
            }
        };
        let wave_size = fetch.wave_size();
        let (what, dwords) = match zrt_isa::decode_for(&words[..count], wave_size) {
            Ok(instruction) => (Ok(instruction), usize::from(instruction.dword_count)),
            Err(_) => (Err(fetch.refused(words, count)), count),
        };
        let allocated = fetch.vector_registers;
        let beyond = what.ok().and_then(|instruction| highest_vector_register(&instruction, wave_size));
        let what = match beyond {
            Some(register) if register >= allocated => {
                Err(WaveFaultKind::VectorRegister { register, allocated })
            }
            _ => what,
        };
        Reached { what, words, dwords }
    }

    fn own_words(&self) -> [u32; FAULT_WORDS] {
        trimmed(self.words, self.dwords)
    }

    /// Whether control always continues with the next instruction, without passing through other code.
    fn always_goes_on(&self) -> bool {
        let leaves =
            |instruction: &Instruction| matches!(instruction.opcode, Opcode::SSwappcB64 | Opcode::SIcacheInv);
        self.successors() == Successors::Next && !self.what.as_ref().is_ok_and(leaves)
    }

    fn successors(&self) -> Successors {
        match &self.what {
            Ok(instruction) => control::successors(instruction),
            Err(_) => Successors::Nowhere,
        }
    }
}

/// Everything reachable from the entry, and the targets of branches.
fn explore(fetch: Fetch<'_>, entry_va: u64) -> (BTreeMap<u64, Reached>, HashSet<u64>) {
    let mut reached = BTreeMap::new();
    let mut targets = HashSet::from([entry_va]);
    let mut pending = vec![entry_va];
    while let Some(start) = pending.pop() {
        let mut va = start;
        while reached.len() < INSTRUCTIONS_MAX && !reached.contains_key(&va) {
            let here = Reached::at(fetch, va);
            let after = va.wrapping_add(4 * here.dwords as u64);
            let successors = here.successors();
            reached.insert(va, here);
            if let Successors::Target(distance) | Successors::NextAndTarget(distance) = successors {
                let target = after.wrapping_add_signed(4 * i64::from(distance));
                targets.insert(target);
                pending.push(target);
            }
            if !matches!(successors, Successors::Next | Successors::NextAndTarget(_)) {
                break;
            }
            va = after;
        }
    }
    (reached, targets)
}

fn decode<N: Note>(
    fetch: Fetch<'_>,
    entry_va: u64,
    stamp: u64,
    level: Level,
    is_inspected: bool,
) -> Program<N> {
    let (reached, targets) = explore(fetch, entry_va);
    let mut program = Program {
        base_va: entry_va,
        ops: Vec::with_capacity(reached.len()),
        notes: Vec::new(),
        knows_scalar_hazard: false,
        entry: 0,
        index: Vec::new(),
        stops: Vec::new(),
        runs: runs(&reached),
        has_fetch_faults: reached.values().any(|at| matches!(at.what, Err(WaveFaultKind::Page(_)))),
        checked: AtomicU64::new(stamp),
    };
    // Branches whose targets are filled in once all indices are known.
    let mut branches = Vec::new();
    let mut previous: Option<(u64, bool)> = None;
    let mut can_fold = false;
    for (va, here) in &reached {
        let after = va.wrapping_add(4 * here.dwords as u64);
        if let Some((expected, falls_through)) = previous
            && falls_through
            && expected != *va
        {
            // Overlapping instructions: control continues in another order than that of the addresses.
            program.push_far_branch(entry_va, expected);
        }
        if can_fold && !targets.contains(va) && program.fold(here) {
            previous = Some((after, true));
            continue;
        }
        can_fold = !is_inspected && here.always_goes_on();
        let index = program.ops.len() as u32;
        program.index.push((*va, index));
        let ops = if fetch.is_wave64 {
            program.micro_ops_of_wave64(here, level)
        } else {
            vec![program.micro_op(here, level)]
        };
        if let (true, Ok(instruction)) = (is_inspected, &here.what) {
            program.note(ops.len(), instruction, fetch.wave_size());
        }
        ops.into_iter().for_each(|op| program.push(op, entry_va, *va, here.dwords));
        let successors = here.successors();
        if let Successors::Target(distance) | Successors::NextAndTarget(distance) = successors {
            branches.push((index, after.wrapping_add_signed(4 * i64::from(distance))));
        }
        previous = Some((after, matches!(successors, Successors::Next | Successors::NextAndTarget(_))));
    }
    if let Some((expected, true)) = previous {
        program.push_far_branch(entry_va, expected);
    }
    for (index, target) in branches {
        let at = match program.index_of(target) {
            Some(at) => at,
            None => program.push_far_branch(entry_va, target),
        };
        program.ops[index as usize].immediate = at as i32;
    }
    program.entry = program.index_of(entry_va).unwrap_or(0);
    program
}

/// The words of everything reachable, with adjacent ones merged.
fn runs(reached: &BTreeMap<u64, Reached>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (va, here) in reached {
        let words = &here.words[..here.dwords];
        match runs.last_mut() {
            Some(run) if run.va.wrapping_add(4 * run.words.len() as u64) == *va => run.words.extend(words),
            _ => runs.push(Run { va: *va, words: words.to_vec() }),
        }
    }
    runs
}

impl<N: Note> Program<N> {
    /// Counts an effectless instruction with the previous operation, which always continues with the next. Nothing is
    /// counted with a jump over code, which itself counts nothing.
    fn fold(&mut self, here: &Reached) -> bool {
        let Ok(instruction) = &here.what else { return false };
        let Some(last) = self.ops.last_mut() else { return false };
        if !control::is_without_effect(instruction) || last.weight == u8::MAX || last.weight == 0 {
            return false;
        }
        last.weight += 1;
        true
    }

    fn micro_op(&mut self, here: &Reached, level: Level) -> MicroOp {
        let kind = match &here.what {
            Err(kind) => *kind,
            Ok(instruction) => match translate(instruction, level) {
                Some(op) => return op,
                None => WaveFaultKind::NotExecuted { opcode: instruction.opcode, words: here.own_words() },
            },
        };
        self.known_stop(kind)
    }

    fn micro_ops_of_wave64(&mut self, here: &Reached, level: Level) -> Vec<MicroOp> {
        let kind = match &here.what {
            Err(kind) => *kind,
            Ok(instruction) => match wave64::translate(instruction, level) {
                Some(ops) => return ops,
                None => WaveFaultKind::NotExecuted { opcode: instruction.opcode, words: here.own_words() },
            },
        };
        vec![self.known_stop(kind)]
    }

    fn known_stop(&mut self, kind: WaveFaultKind) -> MicroOp {
        let mut op = blank(bind::<KnownStop>());
        op.wide[0] = self.stops.len() as u32;
        self.stops.push(kind);
        op
    }

    fn push(&mut self, mut op: MicroOp, base_va: u64, va: u64, dwords: usize) {
        op.code_dword = (va.wrapping_sub(base_va) as i64 / 4) as u32;
        op.dword_count = dwords as u8;
        self.ops.push(op);
    }

    /// Sets notes for the operations of the instruction that is pushed next; earlier operations without a note get
    /// none. Of the four of a wave64, the first stands for the instruction, the third for its high half.
    fn note(&mut self, op_count: usize, instruction: &Instruction, wave_size: WaveSize) {
        self.knows_scalar_hazard |= instruction.opcode == Opcode::SWaitAlu;
        self.notes.resize_with(self.ops.len(), || None);
        self.notes.push(Some(N::new(instruction, wave_size)));
        if op_count == wave64::OPS_OF_HALVES {
            self.notes.push(None);
            self.notes.push(Some(N::of_high_half(instruction)));
        }
    }

    /// Continues at an address outside the program. Returns its index. It is no instruction and is not counted.
    fn push_far_branch(&mut self, base_va: u64, va: u64) -> u32 {
        let index = self.ops.len() as u32;
        let mut op = blank(bind::<FarBranch>());
        op.wide = [va as u32, (va >> 32) as u32, 0];
        op.code_dword = (va.wrapping_sub(base_va) as i64 / 4) as u32;
        op.weight = 0;
        self.ops.push(op);
        index
    }
}

fn bind<O: crate::simd::Operation>() -> Executor {
    Executor::baseline::<O>()
}

/// The words of an instruction, padded with zeros.
fn trimmed(mut words: [u32; FAULT_WORDS], dwords: usize) -> [u32; FAULT_WORDS] {
    words[dwords.min(FAULT_WORDS)..].fill(0);
    words
}

#[cfg(test)]
pub(crate) mod tests;
