//! Plays the engine: counts the operations of waves, places them on compute units, and provides their memory.

use crate::check::memory::{
    Access, AccessKind, CacheActions, CacheControl, Completed, Defect, GroupShadow, Issue, MemoryChecker,
    Scope, WaveId,
};
use crate::memory::{HostMemory, MemoryType};
use std::collections::HashMap;

/// First byte of the memory of the tests.
pub const BASE: u64 = 0x1_0000;
/// Length of that memory.
pub const LEN: usize = 0x4000;

/// The bytes, and how they are mapped.
pub struct Host(pub Vec<u8>, pub MemoryType);

impl HostMemory for Host {
    fn read(&mut self, va: u64, destination: &mut [u8]) {
        let at = (va - BASE) as usize;
        destination.copy_from_slice(&self.0[at..at + destination.len()]);
    }

    fn write(&mut self, va: u64, source: &[u8]) {
        let at = (va - BASE) as usize;
        self.0[at..at + source.len()].copy_from_slice(source);
    }

    fn memory_type(&mut self, _va: u64) -> MemoryType {
        self.1
    }
}

impl Host {
    pub fn dword(&self, va: u64) -> u32 {
        let at = (va - BASE) as usize;
        u32::from_le_bytes(self.0[at..at + 4].try_into().unwrap())
    }

    pub fn set(&mut self, va: u64, value: u32) {
        self.write(va, &value.to_le_bytes());
    }
}

pub struct Rig {
    pub checker: MemoryChecker,
    pub host: Host,
    pub group: GroupShadow,
    /// Per wave: operations so far, compute unit.
    waves: HashMap<u32, (u32, u16)>,
    pc: u64,
}

impl Rig {
    /// One dispatch of two waves, each a group of its own, on two WGPs.
    pub fn new() -> Rig {
        Rig::on(MemoryType::default())
    }

    /// The same on memory mapped with `memory_type`.
    pub fn on(memory_type: MemoryType) -> Rig {
        let mut rig = Rig {
            checker: MemoryChecker::new(),
            host: Host(vec![0; LEN], memory_type),
            group: GroupShadow::new(1024),
            waves: HashMap::new(),
            pc: 0x1000,
        };
        rig.checker.begin_dispatch(2, 1, WaveId(0));
        rig.place(0, 0);
        rig.place(1, 2);
        rig
    }

    /// Puts a wave on a compute unit.
    pub fn place(&mut self, wave: u32, cu: u16) {
        self.waves.insert(wave, (0, cu));
    }

    /// A second dispatch: wave 2 on the compute unit of wave 1.
    pub fn second_dispatch(&mut self, ordered_before: u32) {
        assert_eq!(self.checker.begin_dispatch(1, 1, WaveId(ordered_before)), WaveId(2));
        self.place(2, 2);
    }

    pub fn begin(&mut self, wave: u32, kind: AccessKind, scope: Scope) -> u64 {
        let (sequence, cu) = self.waves.get_mut(&wave).unwrap();
        *sequence += 1;
        self.pc += 8;
        let access = Access { wave: WaveId(wave), sequence: *sequence, pc: self.pc, cu: *cu, scope, kind };
        self.checker.begin_access(access);
        self.pc
    }

    pub fn load(&mut self, wave: u32, scope: Scope, va: u64) -> u32 {
        self.load_as(wave, AccessKind::Load, scope, va)
    }

    pub fn scalar_load(&mut self, wave: u32, va: u64) -> u32 {
        self.load_as(wave, AccessKind::ScalarLoad, Scope::Cu, va)
    }

    /// A scalar prefetch of the line of an address.
    pub fn prefetch(&mut self, wave: u32, va: u64) {
        self.begin(wave, AccessKind::Prefetch, Scope::Cu);
        self.checker.prefetch(va & !127, 128, true, &mut self.host);
    }

    fn load_as(&mut self, wave: u32, kind: AccessKind, scope: Scope, va: u64) -> u32 {
        self.begin(wave, kind, scope);
        let mut out = [0; 4];
        self.checker.load(0, va, &mut self.host, &mut out);
        u32::from_le_bytes(out)
    }

    pub fn store(&mut self, wave: u32, scope: Scope, va: u64, value: u32) {
        self.store_bytes(wave, scope, va, &value.to_le_bytes());
    }

    pub fn store_bytes(&mut self, wave: u32, scope: Scope, va: u64, bytes: &[u8]) {
        self.begin(wave, AccessKind::Store, scope);
        self.checker.store(0, va, bytes, &mut self.host);
        self.checker.end_access();
    }

    /// Adds one. Returns the old value.
    pub fn atomic(&mut self, wave: u32, returns: bool, scope: Scope, va: u64) -> u32 {
        self.begin(wave, AccessKind::Atomic { returns }, scope);
        let mut old = [0; 4];
        self.checker.atomic(0, va, &mut self.host, &mut old, |bytes| {
            let value = u32::from_le_bytes(bytes.try_into().unwrap()).wrapping_add(1);
            bytes.copy_from_slice(&value.to_le_bytes());
        });
        self.checker.end_access();
        u32::from_le_bytes(old)
    }

    pub fn lds(&mut self, wave: u32, kind: AccessKind, address: u32, len: u32) -> bool {
        self.begin(wave, kind, Scope::Cu);
        let element_bytes = AccessKind::lds_alignment_bytes(len);
        self.checker.lds_access(&mut self.group, 0, address, len, element_bytes)
    }

    pub fn wait(&mut self, wave: u32, loads: bool, stores: bool, lds: bool) {
        let sequence = self.waves[&wave].0;
        let of = |is_waited: bool| if is_waited { sequence } else { 0 };
        let completed = Completed { loads: of(loads), stores: of(stores), lds: of(lds), scalar: 0 };
        self.checker.waited(WaveId(wave), completed);
    }

    pub fn wait_loads(&mut self, wave: u32) {
        self.wait(wave, true, false, false);
    }

    pub fn wait_stores(&mut self, wave: u32) {
        self.wait(wave, false, true, false);
    }

    pub fn wait_scalar_loads(&mut self, wave: u32) {
        let completed = Completed { loads: 0, stores: 0, lds: 0, scalar: self.waves[&wave].0 };
        self.checker.waited(WaveId(wave), completed);
    }

    pub fn cache(&mut self, wave: u32, control: CacheControl, scope: Scope) {
        let (sequence, cu) = self.waves.get_mut(&wave).unwrap();
        *sequence += 1;
        let (sequence, cu) = (*sequence, *cu);
        let issue = Issue { wave: WaveId(wave), sequence, cu, scope };
        self.checker.cache_control(issue, control, &mut self.host);
    }

    pub fn invalidate(&mut self, wave: u32, scope: Scope) {
        self.cache(wave, CacheControl::Invalidate, scope);
    }

    /// All given waves signal, then all wait.
    pub fn barrier(&mut self, waves: &[u32]) {
        for wave in waves {
            self.checker.barrier_signal(&mut self.group, WaveId(*wave));
        }
        self.group.barrier_completed();
        for wave in waves {
            self.checker.barrier_wait(&self.group, WaveId(*wave));
        }
    }

    pub fn acquire(&mut self, actions: CacheActions) {
        self.checker.acquire_mem(actions, &mut self.host);
    }

    /// The defects found, each once.
    pub fn defects(&self) -> Vec<Defect> {
        let mut defects: Vec<_> = self.checker.findings().iter().map(|finding| finding.defect).collect();
        defects.sort();
        defects.dedup();
        defects
    }
}
