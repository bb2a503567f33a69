//! Waves under the inspection, one turn after another. Words are llvm-mc 19's for the text next to them.

mod findings;
mod standstill;

use super::*;
use crate::check::watch::Watch;
use crate::config::{self, Config};
use crate::memory::{AddressSpace, GPU_PAGE_BYTES, MemoryPort, Rights};
use crate::shader::dispatch::PacketOrigin;
use crate::shader::interpreter::{self, Code, Turn};
use crate::shader::machine::{Barrier, Clock, Lds, Scratch};
use crate::shader::program::{Fetch, ProgramCache};
use crate::shader::wave::vector_bank;
use crate::simd::Level;
use registers::Strictness;
use std::sync::Arc;
use zrt_isa::resources::WaveSize;
use zrt_kmd::{MemoryFile, Protection};
use zrt_mem::{ByteLen, GpuVa, SharedView};

const CHECK: config::Inspection =
    config::Inspection { check: true, trusts_compilers: false, profile: false, debug: false };

/// Where the code begins, and where code that it may jump to does.
const CODE: u64 = 0x10_0000;
const FAR: u64 = CODE + GPU_PAGE_BYTES;
/// Every program begins with definitions of v1 to v8; what a test is about comes after them.
const DEFINED: u32 = 8;
const BODY: u64 = CODE + 4 * DEFINED as u64;
const DATA: u64 = 0x20_0000;
const LDS_BYTES: u32 = 512;

const END: u32 = 0xBFB0_0000; // s_endpgm
const NOP: u32 = 0xBF80_0000; // s_nop 0
const WAIT_LOADS: u32 = 0xBFC0_0000; // s_wait_loadcnt 0x0
const WAIT_STORES: u32 = 0xBFC1_0000; // s_wait_storecnt 0x0
const WAIT_LDS: u32 = 0xBFC6_0000; // s_wait_dscnt 0x0
const SIGNAL: u32 = 0xBE80_4EC1; // s_barrier_signal -1
const WAIT: u32 = 0xBF94_FFFF; // s_barrier_wait -1
const DS_STORE: [u32; 2] = [0xD834_0000, 0x0000_0100]; // ds_store_b32 v0, v1
const DS_LOAD: [u32; 2] = [0xD8D8_0000, 0x0200_0000]; // ds_load_b32 v2, v0
const STORE: [u32; 3] = [0xEE06_8000, 0x0080_0000, 0]; // global_store_b32 v0, v1, s[0:1]
const LOAD: [u32; 3] = [0xEE05_0000, 2, 0]; // global_load_b32 v2, v0, s[0:1]
const FLAT_STORE: [u32; 3] = [0xEC06_807C, 0x0080_0000, 2]; // flat_store_b32 v[2:3], v1
const FLAT_LOAD: [u32; 3] = [0xEC05_007C, 1, 2]; // flat_load_b32 v1, v[2:3]

/// A workgroup whose waves are run by hand, in waves of one size.
struct Bench {
    inspection: Arc<Inspection>,
    cache: ProgramCache<Noted>,
    main: Arc<Program<Noted>>,
    port: MemoryPort,
    lds: Lds,
    barrier: Barrier,
    clock: Clock,
    group: GroupShadow,
    dispatch: Dispatch,
    data: SharedView,
    wave_size: WaveSize,
}

/// One of its waves.
struct Member {
    wave: Wave,
    shadow: WaveShadow,
    far: Option<Arc<Program<Noted>>>,
    index: u32,
}

/// Maps a page that holds these words.
fn map(space: &AddressSpace, va: u64, words: &[u32]) -> SharedView {
    let len = GPU_PAGE_BYTES as usize;
    let mapping = MemoryFile::new("test", len).unwrap().map(0, len, Protection::ReadWrite, None).unwrap();
    let view = mapping.view().clone();
    words.iter().enumerate().for_each(|(at, word)| view.store_u32(4 * at, *word));
    space.map(GpuVa(va), ByteLen(GPU_PAGE_BYTES), Rights::all(), Arc::new(mapping)).unwrap();
    view
}

impl Bench {
    /// A group of `waves` waves that run `body`.
    fn new(options: config::Inspection, wave_size: WaveSize, waves: u32, body: &[u32]) -> Bench {
        Bench::with_far(options, wave_size, waves, body, &[])
    }

    /// A group of one wave32 that runs `body` under the checking mode.
    fn checked(body: &[u32]) -> Bench {
        Bench::new(CHECK, WaveSize::Wave32, 1, body)
    }

    /// A group of `waves` waves that run `body`, which may jump to `far` at [`FAR`].
    fn with_far(
        options: config::Inspection,
        wave_size: WaveSize,
        waves: u32,
        body: &[u32],
        far: &[u32],
    ) -> Bench {
        let space = Arc::new(AddressSpace::default());
        let definitions = (1..=DEFINED).map(|register| 0x7E00_0280 | register << 17); // v_mov_b32_e32 v1, 0
        let main: Vec<u32> = definitions.chain(body.iter().copied()).collect();
        map(&space, CODE, &main);
        map(&space, FAR, far);
        let data = map(&space, DATA, &[]);
        let table = space.snapshot();
        let is_wave64 = wave_size == WaveSize::Wave64;
        let fetch = Fetch { space_id: space.id(), table: &table, vector_registers: 256, is_wave64 };
        let cache = ProgramCache::new(Level::BASELINE, true);
        let inspection = Inspection::new(&Config { inspection: options, ..Config::default() }).unwrap();
        inspection.silence_host(true);
        assert_eq!(inspection.begin_dispatch(waves.into(), waves), 0);
        let mut port = MemoryPort::default();
        port.refresh(&space);
        Bench {
            inspection,
            main: cache.get(fetch, CODE),
            cache,
            port,
            lds: Lds { bytes: LDS_BYTES, ..Lds::new() },
            barrier: Barrier::new(waves),
            clock: Clock::new(true),
            group: GroupShadow::new(LDS_BYTES),
            dispatch: dispatch(space, is_wave64),
            data,
            wave_size,
        }
    }

    /// A wave at the start of the body: v0 is 4 for each lane, s[0:1] are [`DATA`], s[2:3] are [`FAR`].
    fn wave(&mut self, index: u32) -> Member {
        let lanes = self.wave_size.lanes();
        let mut wave = Wave { index_in_group: index, next: self.main.entry, ..Wave::new() };
        wave.other_half = (self.wave_size == WaveSize::Wave64).then(vector_bank);
        wave.set_scalar_pair(0, DATA);
        wave.set_scalar_pair(2, FAR);
        wave.set_scalar_pair(EXEC_LO, u64::MAX >> (64 - lanes));
        (0..lanes).for_each(|lane| wave.set_lane(0, lane as usize, 4 * lane));
        let trusts = self.inspection.trusts_compilers();
        let launch = LaunchState {
            user_sgprs: 106,
            has_group_id: [true; 3],
            lanes_mask: u64::MAX >> (64 - lanes),
            private_bytes: 0,
            declared_private_bytes: 0,
            wave_size: self.wave_size,
            strictness: if trusts { Strictness::Compiler } else { Strictness::Strict },
        };
        let mut shadow = WaveShadow::default();
        shadow.begin(index, 0, &launch);
        let mut member = Member { wave, shadow, far: None, index };
        assert_eq!(self.turn(&mut member, DEFINED.into()), (Turn::Budget, DEFINED.into()));
        member
    }

    /// Executes at most `budget` instructions. Returns how the turn ended, and the instructions.
    fn turn(&mut self, member: &mut Member, budget: u64) -> (Turn, u64) {
        let begin = member.place(self);
        let Member { wave, shadow, far, index } = member;
        let mut inspector = self.inspection.lock();
        inspector.lend_watch(&mut self.port);
        let mut machine = Machine {
            memory: &mut self.port,
            lds: &mut self.lds,
            barrier: &mut self.barrier,
            clock: &self.clock,
            scratch: Scratch::default(),
            hardware_id: 0,
            code_va: 0,
            jump_va: 0,
            stop: None,
        };
        let circles = machine.memory.watch().map(|watch| &watch.progress.circles);
        let circle_start = circles.and_then(|circles| circles.start(shadow.number()));
        let mut inspect = WaveInspector {
            inspection: &self.inspection,
            inspector: &mut inspector,
            shadow,
            group: &mut self.group,
            dispatch: &self.dispatch,
            main: &self.main,
            workgroup: [0; 3],
            index: *index,
            circle_start,
            circle_next: circle_start.map_or(u32::MAX, |start| start.next),
            is_at_start: circle_start == Some(begin),
        };
        let code = Code { main: &self.main, far, cache: &self.cache };
        let turn = interpreter::run(wave, code, &mut machine, budget, &mut inspect);
        inspector.take_watch_back(&mut self.port);
        turn
    }

    /// A wave executes everything up to its end.
    fn finish(&mut self, member: &mut Member) {
        assert_eq!(self.turn(member, 10_000).0, Turn::End);
    }

    /// Continues at a dword of the body.
    fn enter(&self, member: &mut Member, dword: u64) {
        member.wave.next = self.main.index_of(BODY + 4 * dword).unwrap();
    }

    fn watch<T>(&mut self, act: impl FnOnce(&mut Watch) -> T) -> T {
        let mut inspector = self.inspection.lock();
        inspector.lend_watch(&mut self.port);
        let result = act(self.port.watch().unwrap());
        inspector.take_watch_back(&mut self.port);
        result
    }

    /// The findings, with addresses in the code.
    fn told(&self) -> Vec<String> {
        let text = self.inspection.findings_text();
        let line = |line| {
            let finding: serde_json::Value = serde_json::from_str(line).unwrap();
            let field = |name| finding[name].as_str().unwrap();
            let pc = finding["pc"].as_u64().unwrap() - CODE;
            let [wave, lane, count] = ["wave", "lane", "count"].map(|name| &finding[name]);
            format!("{} at {pc:#x}: wave {wave}, lane {lane}, {count}: {}", field("rule"), field("what"))
        };
        text.lines().map(line).collect()
    }
}

impl Member {
    fn place(&self, bench: &Bench) -> Place {
        Place { program_va: self.far.as_ref().unwrap_or(&bench.main).base_va, next: self.wave.next }
    }

    fn set_exec(&mut self, exec: u64) {
        self.wave.set_scalar_pair(EXEC_LO, exec);
    }

    /// Sets all 64 or 32 lanes of a register.
    fn set(&mut self, register: u8, value: impl Fn(u32) -> u32) {
        (0..64).for_each(|lane| self.wave.set_lane(register, lane, value(lane as u32)));
    }
}

fn dispatch(address_space: Arc<AddressSpace>, is_wave64: bool) -> Dispatch {
    Dispatch {
        code_va: CODE,
        rsrc1: 0,
        rsrc2: 0,
        rsrc3: 0,
        user_data: [0; 16],
        first: [0; 3],
        count: [1; 3],
        group: [64, 1, 1],
        last_group: [64, 1, 1],
        scratch_base_va: 0,
        tmpring_size: 0,
        is_wave64,
        address_space,
        origin: PacketOrigin { queue_id: 1, packet_va: 0x7000 },
    }
}
