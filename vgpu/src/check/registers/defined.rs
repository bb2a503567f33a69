//! Tracks undefined values in a wave's registers, and reports where they matter (instruction set reference §3).
//!
//! Contract: undefined values are tracked by bit and lane, and carried from registers to results as the current
//! instruction carries them ([`Subject::vary`]). A copy, a spill to a lane or to scratch, or a sum whose high half
//! is unused is no finding. A finding is an undefined value that decides something (address, lane, branch, EXEC,
//! message) or is stored to memory or LDS that others see. Partly undefined data in a store is only advice: the
//! tail of a padded vector or structure looks like that. The launch writes the user SGPRs; ttmp8, ttmp9 and ttmp7
//! if RSRC2 enables workgroup ids in them; and v0 in the lanes that it starts. A result counts as defined once its
//! instruction runs; that it may still be outstanding is another rule. Private memory is tracked here like
//! registers ([`super::private`]). For memory and LDS, the caller passes which loaded data is undefined
//! ([`Defined::load`]). Reported values count as defined afterwards, so they are reported once; in memory they stay
//! undefined. Cost: two set tests if everything is defined; some microseconds for an instruction that reads
//! undefined values.

use std::collections::BTreeMap;
use std::ops::Range;

use zrt_isa::effects::{Read, Registers, Role, SCC, VECTOR_FIRST};

use super::bits::{Bits, runs};
use super::finding::{Defect, RegisterFinding, Remedy};
use super::launch_state::LaunchState;
use super::note::Note;
use super::private::PrivateMemory;
use super::subject::{LANES_MAX, Outcome, Subject, Undefined};
use super::transfer::{PrivateOffsets, Transfer};
use crate::check::undefined::{LANE_DWORDS_MAX, LOAD_DWORDS_MAX, Loaded, Origin, Source, Stored};
use crate::shader::address::{Target, flat_address, flat_target};

/// Codes of the trap temporaries that the launch writes.
const TTMP7: usize = 115;
const TTMP8: usize = 116;
const TTMP9: usize = 117;
/// Stored data of at most this many dwords has no padding.
const UNPADDED_DWORDS_MAX: usize = 2;

type Report<'a> = &'a mut dyn FnMut(RegisterFinding);

/// The defined parts of one wave's registers.
#[derive(Clone, Debug)]
pub(super) struct Defined {
    /// Registers with undefined bits; for vector registers, lanes that have never been active are ignored.
    incomplete: Bits,
    /// Lanes in which all bits are defined, by vector register.
    lanes: Box<[u64; 256]>,
    /// Undefined bits by lane, for vector registers in which the lanes not in `lanes` are only partly undefined.
    partial: BTreeMap<usize, Box<[u32; LANES_MAX]>>,
    /// Undefined bits of scalar registers, the condition code last.
    scalars: [u32; VECTOR_FIRST + 1],
    /// Registers whose undefined bits were loaded in that state, and not modified since.
    loaded: Bits,
    /// By register: origin of its undefined bits, if not the register itself.
    origins: BTreeMap<usize, Origin>,
    /// Lanes that have been active so far.
    seen_lanes: u64,
    private: PrivateMemory,
    /// The undefined part of the current store's data.
    stored: Option<Stored>,
}

/// Index of a scalar register or the condition code among the scalars.
fn slot(register: usize) -> usize {
    register.min(VECTOR_FIRST)
}

fn is_vector(register: usize) -> bool {
    (VECTOR_FIRST..SCC).contains(&register)
}

fn lanes_of(mask: u64) -> impl DoubleEndedIterator<Item = usize> {
    (0..LANES_MAX).filter(move |lane| mask >> lane & 1 != 0)
}

impl Defined {
    pub(super) fn new() -> Self {
        Self {
            incomplete: Bits::default(),
            lanes: Box::new([0; 256]),
            partial: BTreeMap::new(),
            scalars: [u32::MAX; VECTOR_FIRST + 1],
            loaded: Bits::default(),
            origins: BTreeMap::new(),
            seen_lanes: 0,
            private: PrivateMemory::default(),
            stored: None,
        }
    }

    pub(super) fn begin(&mut self, launch: &LaunchState) {
        let user_sgprs = usize::from(launch.user_sgprs);
        // Y and Z share a register: if only one of them is enabled, the other half is zero.
        let [has_x, has_y, has_z] = launch.has_group_id;
        let temporaries = [(TTMP8, true), (TTMP9, has_x), (TTMP7, has_y || has_z)];
        let written =
            temporaries.into_iter().filter_map(|(register, is_written)| is_written.then_some(register));
        self.incomplete = Bits::below(SCC + 1);
        self.scalars.fill(u32::MAX);
        for register in (0..user_sgprs).chain(written) {
            self.incomplete.remove(register);
            self.scalars[register] = 0;
        }
        self.incomplete.remove(VECTOR_FIRST);
        self.partial.clear();
        self.loaded = Bits::default();
        self.origins.clear();
        self.lanes.fill(0);
        self.lanes[0] = launch.lanes_mask;
        self.seen_lanes = launch.lanes_mask;
        self.private.begin(launch.private_bytes, launch.declared_private_bytes);
        self.stored = None;
    }

    /// Registers with undefined bits.
    #[inline]
    pub(super) fn incomplete(&self) -> &Bits {
        &self.incomplete
    }

    /// True if all these lanes have been active before.
    #[inline]
    pub(super) fn has_seen(&self, exec: u64) -> bool {
        exec & !self.seen_lanes == 0
    }

    #[inline]
    pub(super) fn step<S: Subject>(
        &mut self,
        note: &Note,
        pc: u64,
        exec: u64,
        subject: &mut S,
        report: Report<'_>,
    ) {
        if !self.has_seen(exec) {
            self.see(exec);
        }
        // Instructions that move data to or from memory raise a counter.
        if note.raises != 0
            && let Some(transfer) = note.transfer.as_deref()
        {
            return self.transfer(transfer, note, pc, exec, subject, report);
        }
        if note.touched.meets(&self.incomplete) {
            self.look(note, pc, exec, subject, report);
        } else if note.writes_lane {
            // In lanes that were never active, nobody has read the register, whichever lane is written.
            for register in note.write_list.iter().flat_map(|writes| writes.range()) {
                self.lanes[register - VECTOR_FIRST] = u64::MAX;
            }
        }
    }

    /// Handles an instruction that moves bytes between registers and memory.
    fn transfer<S: Subject>(
        &mut self,
        transfer: &Transfer,
        note: &Note,
        pc: u64,
        exec: u64,
        subject: &mut S,
        report: Report<'_>,
    ) {
        let len = transfer.width_bytes;
        let offsets = transfer.private.as_ref().and_then(|address| address.offsets(subject, exec));
        let has_undefined = note.touched.meets(&self.incomplete);
        self.stored = None;
        if !transfer.is_load {
            if has_undefined {
                self.stored = self.stored(transfer, pc, exec);
            }
            if let Some(offsets) = &offsets {
                self.store_private(offsets, len, exec);
            }
        }
        if let Some(offsets) = &offsets {
            self.bound_private(offsets, len, pc, exec, report);
        }
        if has_undefined {
            self.look(note, pc, exec, subject, report);
        }
        if let Some(offsets) = offsets.filter(|_| transfer.is_load) {
            self.load_private(transfer, &offsets, pc, exec);
        }
    }

    /// Reports accesses beyond the private memory that the kernel declares.
    fn bound_private(&self, offsets: &PrivateOffsets, len: u32, pc: u64, exec: u64, report: Report<'_>) {
        let overrun = |lane: usize| {
            let offset = offsets.of_lane(lane)?;
            self.private.overrun(offset, len).map(|declared| (lane, offset, declared))
        };
        let first = match offsets {
            PrivateOffsets::Same(offset) if self.private.overrun(*offset, len).is_none() => None,
            _ => lanes_of(exec).find_map(overrun),
        };
        if let Some((lane, offset, declared)) = first {
            report(RegisterFinding {
                lane: Some(lane as u32),
                ..RegisterFinding::at(pc, Defect::PrivateBounds { offset, len, declared }, Remedy::Index)
            });
        }
    }

    /// Stores data into private memory, defined or not.
    fn store_private(&mut self, offsets: &PrivateOffsets, len: u32, exec: u64) {
        if let (None, PrivateOffsets::Same(offset)) = (&self.stored, offsets)
            && self.private.define(exec, *offset, len)
        {
            return;
        }
        let origin = self.stored.as_ref().map(|stored| stored.origin);
        let elements = self.stored.as_ref().and_then(|stored| stored.elements.first());
        for lane in lanes_of(exec) {
            if let Some(offset) = offsets.of_lane(lane) {
                let bits = elements.map_or([0; LANE_DWORDS_MAX], |lanes| lanes[lane]);
                self.private.store(lane, offset, len, bits, origin);
            }
        }
    }

    fn stored(&self, transfer: &Transfer, pc: u64, exec: u64) -> Option<Stored> {
        let mut data = transfer.elements().flatten();
        let first = data.find(|&register| self.has_undefined(register, exec))?;
        let of_lane = |element: &Range<usize>, lane: usize| {
            let mut bits = [0; LANE_DWORDS_MAX];
            let registers = element.clone().zip(&mut bits);
            registers.for_each(|(register, bits)| *bits = self.bits(register, lane));
            transfer.stored(bits)
        };
        let elements = transfer.elements();
        Some(Stored {
            elements: elements.map(|element| std::array::from_fn(|lane| of_lane(&element, lane))).collect(),
            origin: self.origin(first, pc),
        })
    }

    /// Takes the undefined part of the current store's data to memory or LDS.
    #[inline]
    pub(super) fn take_stored(&mut self) -> Option<Stored> {
        self.stored.take()
    }

    fn load_private(&mut self, transfer: &Transfer, offsets: &PrivateOffsets, pc: u64, exec: u64) {
        let len = transfer.width_bytes;
        if let PrivateOffsets::Same(offset) = offsets
            && self.private.is_defined(exec, *offset, len)
        {
            return;
        }
        // A finding names the origin in the first lane.
        for lane in lanes_of(exec).rev() {
            let Some(offset) = offsets.of_lane(lane) else { continue };
            if let Some((own, origin)) = self.private.load(lane, offset, len, pc) {
                let mut bits = [0; LOAD_DWORDS_MAX];
                bits[..LANE_DWORDS_MAX].copy_from_slice(&own);
                self.load(transfer, &Loaded { lane: lane as u32, element: 0, bits, origin });
            }
        }
    }

    /// Records that a lane has loaded undefined data.
    pub(super) fn load(&mut self, transfer: &Transfer, loaded: &Loaded) {
        transfer.place(loaded.element, &loaded.bits, |register, own| {
            let lane = if is_vector(register) { loaded.lane as usize % LANES_MAX } else { 0 };
            if own != 0 {
                let mut undefined = Undefined { register, bits: self.lane_bits(register) };
                undefined.bits[lane] |= own;
                self.set(undefined, Some(loaded.origin));
                self.loaded.insert(register);
            }
        });
    }

    /// Handles lanes that were never active before.
    #[cold]
    fn see(&mut self, exec: u64) {
        self.seen_lanes |= exec;
        for (number, lanes) in self.lanes.iter().enumerate() {
            if self.seen_lanes & !lanes != 0 {
                self.incomplete.insert(VECTOR_FIRST + number);
            }
        }
    }

    fn look<S: Subject>(&mut self, note: &Note, pc: u64, exec: u64, subject: &mut S, report: Report<'_>) {
        let lanes = if note.crosses_lanes { u64::MAX } else { exec };
        let mut is_carried = false;
        for &Read { registers, role } in &note.read_list {
            match role {
                Role::Control => self.report(registers, exec, pc, report),
                Role::Data => self.store(note, registers, exec, pc, subject, report),
                Role::Value => {
                    is_carried |= registers.range().any(|register| self.has_undefined(register, lanes));
                }
            }
        }
        let is_kept = note.keeps
            && note
                .write_list
                .iter()
                .flat_map(|writes| writes.range())
                .any(|register| self.has_undefined(register, lanes));
        if !(is_carried || is_kept) {
            return note.write_list.iter().for_each(|&writes| self.define(writes, exec, note.loaded_bits));
        }
        self.carry(note, pc, exec, subject, report);
    }

    /// Handles an instruction whose results may be undefined.
    fn carry<S: Subject>(&mut self, note: &Note, pc: u64, exec: u64, subject: &mut S, report: Report<'_>) {
        let values = note.read_list.iter().filter(|read| read.role == Role::Value).map(|read| read.registers);
        let mut inputs: Vec<usize> =
            values.clone().chain(note.write_list.iter().copied()).flat_map(Registers::range).collect();
        inputs.sort_unstable();
        inputs.dedup();
        let inputs: Vec<Undefined> =
            inputs.into_iter().filter_map(|register| self.undefined(register)).collect();
        let lanes = if note.crosses_lanes { u64::MAX } else { exec };
        let origin = values
            .flat_map(Registers::range)
            .find(|&register| self.has_undefined(register, lanes))
            .map(|register| self.origin(register, pc));
        match subject.vary(&inputs, &note.write_list) {
            Some(Outcome { steers: true, .. }) => {
                let values = note.read_list.iter().filter(|read| read.role == Role::Value);
                values.for_each(|read| self.report(read.registers, lanes, pc, report));
                note.write_list.iter().for_each(|&writes| self.define(writes, exec, u32::MAX));
            }
            Some(outcome) => outcome.results.into_iter().for_each(|result| self.set(result, origin)),
            // All of its bits, in the active lanes; the other lanes keep their state.
            None if origin.is_some() => {
                for register in note.write_list.iter().flat_map(|writes| writes.range()) {
                    let lanes = if is_vector(register) { exec } else { 1 };
                    let bits = std::array::from_fn(|lane| match lanes >> lane & 1 {
                        0 => self.bits(register, lane),
                        _ => u32::MAX,
                    });
                    self.set(Undefined { register, bits }, origin);
                }
            }
            None => note.write_list.iter().for_each(|&writes| self.define(writes, exec, u32::MAX)),
        }
    }

    /// Handles data that goes to memory or LDS.
    fn store<S: Subject>(
        &mut self,
        note: &Note,
        registers: Registers,
        exec: u64,
        pc: u64,
        subject: &S,
        report: Report<'_>,
    ) {
        if note.is_private || !registers.range().any(|register| self.has_undefined(register, exec)) {
            return;
        }
        // Private memory keeps undefined values, like registers.
        let is_private = |lane: usize| {
            note.flat_address.is_some_and(|(register, immediate)| {
                let vector = |register| subject.vector(register, lane as u32);
                let va = flat_address(vector(register), vector(register.wrapping_add(1)), immediate);
                matches!(flat_target(va), Target::Private(_))
            })
        };
        let dwords = registers.range().len();
        let mut padded = None;
        for lane in lanes_of(exec).filter(|&lane| !is_private(lane)) {
            let missing = |register| self.bits(register, lane) & note.stored_bits;
            // Copying a structure with unwritten members is allowed; using the copy is reported. Two dwords may be
            // part of one if they are not both undefined.
            let is_part =
                dwords > UNPADDED_DWORDS_MAX || registers.range().any(|register| missing(register) == 0);
            let is_copied = |register| is_part && self.loaded.contains(register);
            // Members are aligned: the start of a dword is no padding, unless the whole dword is.
            let first_byte = 0xff << note.stored_bits.trailing_zeros();
            let mut unpadded = registers.range().take(if dwords <= UNPADDED_DWORDS_MAX { dwords } else { 1 });
            if unpadded.any(|register| missing(register) & first_byte != 0 && !is_copied(register)) {
                return self.report(registers, 1 << lane, pc, report);
            }
            if padded.is_none() && registers.range().any(|register| missing(register) != 0) {
                padded = Some(lane as u32);
            }
        }
        if padded.is_some() {
            report(RegisterFinding {
                registers: Some(registers),
                lane: padded,
                ..RegisterFinding::at(pc, Defect::PartlyUndefined, Remedy::Write)
            });
            self.define(registers, exec, u32::MAX);
        }
    }

    /// Reports the undefined bits of `registers` in `lanes`, and marks them defined from then on.
    fn report(&mut self, registers: Registers, lanes: u64, pc: u64, report: Report<'_>) {
        let missing: Bits = registers.range().fold(Bits::default(), |mut missing, register| {
            if self.has_undefined(register, lanes) {
                missing.insert(register);
            }
            missing
        });
        runs(
            registers,
            |register| missing.contains(register),
            |hit| {
                let first = hit.range().start;
                let origin = self.origins.get(&first).copied();
                let lane = lanes_of(lanes).find(|&lane| is_vector(first) && self.bits(first, lane) != 0);
                report(RegisterFinding {
                    registers: Some(hit),
                    lane: lane.map(|lane| lane as u32),
                    cause_pc: origin.map(|origin| origin.pc),
                    ..RegisterFinding::at(
                        pc,
                        match origin {
                            Some(origin) => Defect::Undefined(origin.source),
                            None => Defect::Unwritten,
                        },
                        Remedy::Write,
                    )
                });
                self.define(hit, self.seen_lanes | lanes, u32::MAX);
            },
        );
    }

    /// True if any bit is undefined in one of `lanes`.
    fn has_undefined(&self, register: usize, lanes: u64) -> bool {
        match is_vector(register) {
            true => {
                self.incomplete.contains(register)
                    && lanes & self.seen_lanes & !self.lanes[register - VECTOR_FIRST] != 0
            }
            false => self.scalars[slot(register)] != 0,
        }
    }

    /// The undefined bits in a lane.
    fn bits(&self, register: usize, lane: usize) -> u32 {
        match is_vector(register) {
            true if self.lanes[register - VECTOR_FIRST] >> lane & 1 != 0 => 0,
            true => self.partial.get(&register).map_or(u32::MAX, |bits| bits[lane]),
            false => self.scalars[slot(register)],
        }
    }

    /// The undefined bits in all lanes, if any.
    fn undefined(&self, register: usize) -> Option<Undefined> {
        let bits = self.lane_bits(register);
        (bits != [0; LANES_MAX]).then_some(Undefined { register, bits })
    }

    /// The undefined bits by lane, as in [`Undefined`].
    fn lane_bits(&self, register: usize) -> [u32; LANES_MAX] {
        let lanes = if is_vector(register) { LANES_MAX } else { 1 };
        let mut all = [0; LANES_MAX];
        all[..lanes].iter_mut().enumerate().for_each(|(lane, bits)| *bits = self.bits(register, lane));
        all
    }

    /// Origin of the undefined bits in `register`, if the instruction at `pc` is about to read it.
    fn origin(&self, register: usize, pc: u64) -> Origin {
        self.origins
            .get(&register)
            .copied()
            .unwrap_or(Origin { source: Source::Register(register as u16), pc })
    }

    /// Records that `bits` of `registers` are written in `lanes`.
    fn define(&mut self, registers: Registers, lanes: u64, bits: u32) {
        for register in registers.range() {
            if !self.incomplete.contains(register) {
                continue;
            }
            if bits != u32::MAX && is_vector(register) {
                if let Some(mut undefined) = self.undefined(register) {
                    lanes_of(lanes).for_each(|lane| undefined.bits[lane] &= !bits);
                    self.set(undefined, None);
                }
                continue;
            }
            let is_complete = !is_vector(register) || {
                let defined = &mut self.lanes[register - VECTOR_FIRST];
                *defined |= lanes;
                self.seen_lanes & !*defined == 0
            };
            if is_complete {
                self.complete(register);
            }
        }
    }

    /// Marks a register as fully defined.
    fn complete(&mut self, register: usize) {
        self.incomplete.remove(register);
        self.loaded.remove(register);
        match is_vector(register) {
            true => drop(self.partial.remove(&register)),
            false => self.scalars[slot(register)] = 0,
        }
        self.origins.remove(&register);
    }

    /// Marks exactly these bits of a register as undefined.
    fn set(&mut self, undefined: Undefined, origin: Option<Origin>) {
        let Undefined { register, bits } = undefined;
        self.loaded.remove(register);
        if let Some(origin) = origin.filter(|origin| origin.source != Source::Register(register as u16)) {
            self.origins.insert(register, origin);
        }
        if !is_vector(register) {
            self.scalars[slot(register)] = bits[0];
            return match bits[0] {
                0 => self.complete(register),
                _ => self.incomplete.insert(register),
            };
        }
        let defined = (0..LANES_MAX).fold(0, |lanes, lane| lanes | u64::from(bits[lane] == 0) << lane);
        self.lanes[register - VECTOR_FIRST] = defined;
        if self.seen_lanes & !defined == 0 {
            return self.complete(register);
        }
        self.incomplete.insert(register);
        match bits.iter().all(|bits| matches!(*bits, 0 | u32::MAX)) {
            true => drop(self.partial.remove(&register)),
            false => drop(self.partial.insert(register, Box::new(bits))),
        }
    }
}
