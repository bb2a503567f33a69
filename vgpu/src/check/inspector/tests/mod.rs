//! What is logged of faults and of the memory checker's findings, as whole lines, and what is declared of kernels.

use super::*;
use crate::check::memory::{AccessKind, Actor, Defect, OtherSide};
use crate::config::Config;
use crate::memory::{Cause, Fault, GPU_PAGE_BYTES, Rights};
use crate::shader::code_words::CodeWords;
use crate::shader::dispatch::PacketOrigin;
use crate::shader::program::{Fetch, ProgramCache};
use crate::simd::Level;
use zrt_kmd::{MemoryFile, Protection};
use zrt_mem::{ByteLen, GpuVa};

const CHECK: config::Inspection =
    config::Inspection { check: true, trusts_compilers: false, profile: false, debug: false };

fn inspection(options: config::Inspection) -> Arc<Inspection> {
    Inspection::new(&Config { inspection: options, seed: 9, ..Config::default() }).unwrap()
}

/// The place of the findings of these tests.
const SITE: Site = Site { code_va: 0x1000, launched_at: 0x2000, workgroup: [1, 2, 3], wave: 4 };

fn fault(kind: WaveFaultKind) -> WaveFault {
    WaveFault {
        origin: PacketOrigin { queue_id: 7, packet_va: 0x2000 },
        code_va: 0x1000,
        instruction_va: 0x1010,
        workgroup: [1, 2, 3],
        wave: 4,
        lane: Some(5),
        kind,
        code: CodeWords::new(&[0xBFB0_0000], WaveSize::Wave32),
    }
}

/// The line of a finding at [`SITE`].
fn line(rule: &str, what: &str, remedy: &str, fields: [&str; 4]) -> String {
    let [instruction, other_pc, lane, address] = fields;
    format!(
        concat!(
            r#"{{"rule":"{rule}","what":"{what}","remedy":"{remedy}","pc":4112,"code_va":4096,"#,
            r#""launched_at":8192,"instruction":"{instruction}","other_pc":{other_pc},"workgroup":[1,2,3],"#,
            r#""wave":4,"lane":{lane},"register":null,"address":{address},"seed":9,"count":1}}"#,
        ),
        rule = rule,
        what = what,
        remedy = remedy,
        instruction = instruction,
        other_pc = other_pc,
        lane = lane,
        address = address,
    ) + "\n"
}

const WORDS: [u32; 4] = [1, 2, 3, 4];
const END: &str = "s_endpgm, or a branch, before the end of the code";
const MAPPED: &str = "an address inside of a mapped buffer";
const STORED: &str = "some wave that can still run must store what the loop polls";

const fn page(cause: Cause) -> WaveFaultKind {
    WaveFaultKind::Page(Fault { va: 0x5000, cause, access: Rights::READ })
}

/// Kind, rule, text, remedy and address of faults that are the kernel's.
const FAULTS: &[(WaveFaultKind, &str, &str, &str, &str)] = &[
    (page(Cause::NotPresent), "bounds", "page fault at 0x5000: not mapped", MAPPED, "20480"),
    (page(Cause::ReadOnly), "bounds", "page fault at 0x5000: mapped read-only", MAPPED, "20480"),
    (WaveFaultKind::PastEnd, "bounds", "s_code_end: the program ran past its end", END, "null"),
    (
        WaveFaultKind::UnknownInstruction(WORDS),
        "bounds",
        "unknown instruction [00000001, 00000002, 00000003, 00000004]",
        END,
        "null",
    ),
    (
        WaveFaultKind::MisalignedJump(0x1002),
        "bounds",
        "jump to 0x1002",
        "a target that is a multiple of 4",
        "4098",
    ),
    (
        WaveFaultKind::LdsOutOfRange { address: 1020, width: 8, allocated: 1024 },
        "bounds",
        "LDS access of 8 bytes at 1020, of 1024 allocated",
        "an address below the LDS size of the dispatch",
        "1020",
    ),
    (
        WaveFaultKind::VectorRegister { register: 64, allocated: 64 },
        "bounds",
        "v64 is used, but only 64 vector registers are allocated",
        "more vector registers in RSRC1",
        "null",
    ),
    (
        WaveFaultKind::Misaligned { va: 0x5002, width: 4 },
        "bounds",
        "atomic of 4 bytes at 0x5002, which is not a multiple of it",
        "an address that is a multiple of the width",
        "20482",
    ),
    (
        WaveFaultKind::Scratch { offset: 64, allocated: 0 },
        "bounds",
        "scratch access at 0x40, of 0 bytes that a lane has",
        "an index inside of the array, or a larger private segment",
        "null",
    ),
    (
        WaveFaultKind::BarrierNeverCompletes,
        "progress",
        "the waves left wait at a barrier that cannot complete",
        "every wave of the group signals the barrier as often as any waits for it",
        "null",
    ),
    (
        WaveFaultKind::GoesInCircles { circling_waves: 2, waiting_waves: 0 },
        "progress",
        "2 waves loop forever: nothing that they poll ever changes",
        STORED,
        "null",
    ),
    (
        WaveFaultKind::SpinsForever { waiting_groups: 3 },
        "progress",
        "the resident waves wait for something that none of them does, and 3 groups of the dispatch cannot become \
         resident",
        "launch no more groups than fit the chip together, or do not wait for groups that come later",
        "null",
    ),
];

#[test]
fn a_fault_of_the_kernel_is_a_finding_and_one_of_the_device_is_none() {
    for &(kind, rule, what, remedy, address) in FAULTS {
        let inspection = inspection(CHECK);
        inspection.fault(&fault(kind));
        let fields = ["s_endpgm", "null", "5", address];
        assert_eq!(inspection.findings_text(), line(rule, what, remedy, fields));
        assert_eq!(inspection.finding_count(), 1);
    }
    let opcode = zrt_isa::Opcode::SNop;
    for kind in [
        WaveFaultKind::NotExecuted { opcode, words: WORDS },
        WaveFaultKind::DualInWave64(WORDS),
        WaveFaultKind::Trap(2),
        WaveFaultKind::Halted,
        WaveFaultKind::BufferDescriptor(WORDS),
    ] {
        let inspection = inspection(CHECK);
        inspection.fault(&fault(kind));
        assert_eq!(inspection.findings_text(), "", "{kind}");
    }
    let profile = inspection(config::Inspection { check: false, profile: true, ..CHECK });
    profile.fault(&fault(WaveFaultKind::PastEnd));
    assert_eq!(profile.findings_text(), "");
}

/// The rules told at an instruction before the fault, and whether the fault is then told.
#[test]
fn a_fault_is_not_told_where_its_rule_has_been() {
    let scratch = |allocated| WaveFaultKind::Scratch { offset: 64, allocated };
    for (rule, pc, kind, is_told) in [
        (Rule::Bounds, 0x1010, WaveFaultKind::PastEnd, false),
        (Rule::Bounds, 0x1014, WaveFaultKind::PastEnd, true),
        (Rule::Progress, 0x1010, WaveFaultKind::PastEnd, true),
        (Rule::Uninitialised, 0x1010, WaveFaultKind::PastEnd, true),
        (Rule::Uninitialised, 0x1010, scratch(64), true),
        (Rule::Uninitialised, 0x1010, scratch(0), false),
        (Rule::Bounds, 0x1010, scratch(0), false),
        (Rule::Uninitialised, 0x1014, scratch(0), true),
    ] {
        let inspection = inspection(CHECK);
        inspection.log(SITE, |finding| Finding { rule, pc, ..finding });
        inspection.fault(&fault(kind));
        assert_eq!(inspection.finding_count(), 1 + usize::from(is_told), "{rule} at {pc:#x}: {kind}");
    }
}

#[test]
fn a_finding_about_memory_names_rule_other_side_and_figures() {
    let wave = Actor::Wave { wave: WaveId(3), group: 1 };
    let by = |kind, actor, pc| Some(OtherSide { actor, pc, kind });
    let lds_atomic = AccessKind::LdsAtomic { returns: true };
    for (defect, other, detail, rule, end, other_pc) in [
        (
            Defect::Race,
            by(Some(AccessKind::Load), wave, 0x30),
            "",
            "race",
            "a load by wave 3 of group 1",
            "48",
        ),
        (
            Defect::Race,
            by(Some(lds_atomic), wave, 0x30),
            "",
            "race",
            "an LDS atomic by wave 3 of group 1",
            "48",
        ),
        (
            Defect::UnwaitedStore,
            by(Some(AccessKind::Atomic { returns: false }), wave, 0x30),
            "",
            "counters",
            "an atomic by wave 3 of group 1",
            "48",
        ),
        (
            Defect::UnwaitedScalarLoad,
            by(Some(AccessKind::ScalarLoad), wave, 0x30),
            "",
            "counters",
            "a scalar load by wave 3 of group 1",
            "48",
        ),
        (Defect::StaleVram, by(None, Actor::Host, 0), "", "visibility", "a write by the host", "null"),
        (
            Defect::StaleVectorCache,
            by(None, Actor::CommandProcessor, 0),
            "",
            "visibility",
            "a write by the command processor",
            "null",
        ),
        (Defect::UninitialisedLds, None, "", "uninitialised", "", "null"),
        (Defect::LdsOutOfBounds, None, "4 bytes at 8 of 8 bytes", "bounds", "", "null"),
        (Defect::MisalignedLds, None, "address 2, 4 bytes expected", "advice", "", "null"),
        (
            Defect::LanesClash,
            by(Some(AccessKind::Store), wave, 0x30),
            "lane 1 stores 0x2, lane 3 stores 0x4",
            "race",
            "a store by wave 3 of group 1",
            "48",
        ),
    ] {
        let inspection = inspection(CHECK);
        let memory = MemoryFinding {
            defect,
            actor: wave,
            pc: 0x1010,
            lane: Some(5),
            address: 0x5000,
            other,
            detail: detail.to_owned(),
            count: 1,
        };
        inspection.log_memory(memory, SITE, "s_nop 0".to_owned());
        let other_side = if end.is_empty() { String::new() } else { format!("; the other is {end}") };
        let detail = if detail.is_empty() { String::new() } else { format!("; {detail}") };
        let what = format!("{}{other_side}{detail}", defect.what());
        let fields = ["s_nop 0", other_pc, "5", "20480"];
        assert_eq!(inspection.findings_text(), line(rule, &what, defect.remedy(), fields));
    }
}

/// s_nop 0 and s_endpgm, mapped and decoded.
#[test]
fn code_that_the_host_has_changed_is_told_by_the_checking_mode_alone() {
    let len = GPU_PAGE_BYTES;
    let mapping = MemoryFile::new("test", len as usize).unwrap();
    let mapping = Arc::new(mapping.map(0, len as usize, Protection::ReadWrite, None).unwrap());
    mapping.view().store_u32(0, 0xBF80_0000);
    mapping.view().store_u32(4, 0xBFB0_0000);
    let space = AddressSpace::default();
    space.map(GpuVa(0x10_0000), ByteLen(len), Rights::all(), mapping).unwrap();
    let table = space.snapshot();
    let fetch = Fetch { space_id: space.id(), table: &table, vector_registers: 256, is_wave64: false };
    let program = ProgramCache::<Noted>::new(Level::BASELINE, true).get(fetch, 0x10_0000);
    let told = |options, is_stale| {
        let inspection = inspection(options);
        inspection.fetch(&program, WaveSize::Wave32, is_stale, &space);
        inspection.findings_text()
    };
    let line = concat!(
        r#"{"rule":"visibility","what":"the instruction cache holds the code that was here before,"#,
        r#" and it is run","remedy":"ACQUIRE_MEM with GLI_INV after the code is written","pc":1048576,"#,
        r#""code_va":1048576,"launched_at":0,"instruction":"s_nop 0","other_pc":null,"workgroup":[0,0,0],"#,
        r#""wave":0,"lane":null,"register":null,"address":null,"seed":9,"count":1}"#,
    );
    assert_eq!(told(CHECK, true), format!("{line}\n"));
    assert_eq!(told(CHECK, false), "");
    assert_eq!(told(config::Inspection { check: false, debug: true, ..CHECK }, true), "");

    // What the command processor has written is no code that the cache has.
    let inspection = inspection(CHECK);
    inspection.packet_write(0x10_0004, &0xBFB0_0000_u32.to_le_bytes(), &space);
    inspection.fetch(&program, WaveSize::Wave32, false, &space);
    let line = concat!(
        r#"{"rule":"visibility","#,
        r#""what":"the instruction cache may hold the code that was here before; the other is a write by the command processor","#,
        r#""remedy":"ACQUIRE_MEM with GLI_INV, or s_icache_inv, after the write","pc":1048576,"code_va":0,"#,
        r#""launched_at":0,"instruction":"s_nop 0","other_pc":null,"workgroup":[0,0,0],"wave":0,"lane":null,"#,
        r#""register":null,"address":1048580,"seed":9,"count":1}"#,
    );
    assert_eq!(inspection.findings_text(), format!("{line}\n"));
    let mut bytes = [0; 8];
    inspection.packet_read(0x10_0000, &mut bytes, &space);
    assert_eq!(bytes, [0, 0, 0x80, 0xBF, 0, 0, 0xB0, 0xBF]);
}

#[test]
fn a_kernel_may_use_what_it_declares_until_its_code_is_unmapped() {
    let inspection = inspection(CHECK);
    let space = AddressSpace::default();
    let lds = |va, allocated| inspection.declared_lds(va, allocated);
    let private = |va, allocated| inspection.lock().declared_private(va, allocated);
    for va in [0xfff, 0x1000, 0x1fff, 0x2000] {
        inspection.declare_lds(va, 100);
        inspection.declare_private(va, 32);
    }
    assert_eq!([lds(0x1000, 256), lds(0x1000, 64), lds(0x3000, 256)], [100, 64, 256]);
    assert_eq!([private(0x1000, 48), private(0x1000, 16), private(0x3000, 48)], [32, 16, 48]);
    inspection.forget(0x1000, 0x1000, &space);
    assert_eq!([0xfff, 0x1000, 0x1fff, 0x2000].map(|va| lds(va, 256)), [100, 256, 256, 100]);
    assert_eq!([0xfff, 0x1000, 0x1fff, 0x2000].map(|va| private(va, 48)), [32, 48, 48, 32]);
    inspection.reset();
    assert_eq!((lds(0x2000, 256), private(0x2000, 48)), (256, 48));
}

/// A search for waves that go in circles ends with whatever may change what they wait for.
#[test]
fn packets_and_the_driver_end_a_search_for_circles() {
    use crate::check::circles::Place;
    use crate::shader::wave::Wave;

    let space = AddressSpace::default();
    type Act = fn(&Inspection, &AddressSpace);
    let acts: [(Act, bool); 5] = [
        (|inspection, space| inspection.acquire(CacheActions::empty(), space), true),
        (|inspection, space| inspection.release(CacheActions::empty(), None, space), true),
        (|inspection, space| inspection.packet_write(0x1000, &[1], space), true),
        (|inspection, space| inspection.forget(0x1000, 0x1000, space), true),
        (|inspection, space| inspection.packet_read(0x1000, &mut [0], space), false),
    ];
    for (at, (act, is_change)) in acts.into_iter().enumerate() {
        let inspection = inspection(CHECK);
        inspection.silence_host(true);
        let circles = |act: &mut dyn FnMut(&mut Watch)| act(inspection.lock().watch.as_mut().unwrap());
        let place = Place { program_va: 0x1000, next: 0 };
        circles(&mut |watch| {
            watch.progress.circles.turn_ended(0, place, 1_000_000, &Wave::new(), || Some(Vec::new()));
            assert!(watch.progress.circles.is_looking());
        });
        act(&inspection, &space);
        circles(&mut |watch| assert_eq!(watch.progress.circles.is_looking(), !is_change, "{at}"));
    }
}

#[test]
fn waves_spin_if_they_poll_for_groups_that_have_no_room() {
    for (polls, waiting_groups, is_told) in [(1_000, 1, true), (999, 1, false), (1_000, 0, false)] {
        let inspection = inspection(CHECK);
        (0..polls).for_each(|_| inspection.lock().watch.as_mut().unwrap().progress.poll(0, 0x1000, false));
        assert_eq!(inspection.is_spinning(1_000_000, 1, waiting_groups), is_told, "{polls} {waiting_groups}");
    }
    let profile = inspection(config::Inspection { check: false, profile: true, ..CHECK });
    assert!(!profile.is_spinning(1_000_000, 0, 1), "nothing is watched");
}

#[test]
fn options_are_as_configured_and_waves_are_numbered_over_the_device() {
    let checking = inspection(CHECK);
    assert!(checking.is_checking() && !checking.trusts_compilers());
    assert_eq!([checking.begin_dispatch(5, 1), checking.begin_dispatch(2, 1)], [0, 5]);
    checking.reset();
    assert_eq!([checking.begin_dispatch(1, 1), checking.begin_dispatch(2, 1)], [0, 1]);
    assert_eq!(checking.profile_text(), "", "nothing is counted");
    checking.add_region("x", 0x5000, 64, AllocationUse::Written);
    assert_eq!(checking.region_read_bytes(), [("x".to_owned(), 0)]);

    let other =
        inspection(config::Inspection { check: false, trusts_compilers: true, profile: true, debug: false });
    assert!(!other.is_checking() && other.trusts_compilers());
    assert_eq!([other.begin_dispatch(5, 1), other.begin_dispatch(2, 1)], [0, 0], "no wave is told apart");
    assert!(other.profile_text().starts_with(r#"{"wave_instructions":0,"#));
    other.add_region("x", 0x5000, 64, AllocationUse::Written);
    assert!(other.region_read_bytes().is_empty());
    assert!(
        Inspection::new(&Config { inspection: config::Inspection::default(), ..Config::default() }).is_none()
    );
}
