//! The cases in the order of a first boot.
//!
//! Contract: data only. Each case needs what the ones before it have shown to work, and one thing more, which `suspect`
//! names; so the first line that is not `passed` says where to look. Cases that may end the queue's life and that
//! nothing else needs come late, the end of the ring last.

use super::bench::{Bench, Failure};
use super::{dispatch_cases, first_dispatch_cases, indirect_cases, packet_cases, queue_cases};

/// One case.
pub(super) struct Case {
    pub(super) name: &'static str,
    /// What is new in it.
    pub(super) suspect: &'static str,
    pub(super) needs: Needs,
    pub(super) verdict: Verdict,
    /// True if every open runs it.
    pub(super) at_open: bool,
    pub(super) test: fn(&mut Bench<'_>) -> Result<String, Failure>,
}

/// What a device must have for a case to mean something.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    Nothing,
    /// Buffers in VRAM.
    Vram,
    /// VRAM that the host can access.
    VisibleVram,
}

/// What a failure means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The device is not usable.
    Failed,
    /// It lacks something that nothing here relies on.
    Noted,
}

/// A case of the full extent.
const fn case(
    name: &'static str,
    suspect: &'static str,
    test: fn(&mut Bench<'_>) -> Result<String, Failure>,
) -> Case {
    Case { name, suspect, needs: Needs::Nothing, verdict: Verdict::Failed, at_open: false, test }
}

impl Case {
    const fn at_open(self) -> Case {
        Case { at_open: true, ..self }
    }

    const fn in_vram(self) -> Case {
        Case { needs: Needs::Vram, ..self }
    }

    const fn in_visible_vram(self) -> Case {
        Case { needs: Needs::VisibleVram, ..self }
    }

    const fn informative(self) -> Case {
        Case { verdict: Verdict::Noted, ..self }
    }
}

/// All of them.
pub(super) const CASES: [Case; 36] = [
    // Memory and the queue.
    case("map-and-flush", "allocation, one address for both sides, the HDP flush page", packet_cases::map)
        .at_open(),
    case(
        "fence",
        "the queue: doorbell, write pointer, fetch from the ring, RELEASE_MEM of 64 bits to system memory",
        packet_cases::fence,
    )
    .at_open(),
    case("nop", "the length of a packet: how many dwords its header makes the queue skip", packet_cases::nop),
    case("write-data", "WRITE_DATA to system memory", packet_cases::write_data).at_open(),
    case("write-data-no-increment", "WRITE_DATA to one address", packet_cases::write_data_no_increment),
    case("release-mem-low-32", "RELEASE_MEM of 32 bits", packet_cases::release_mem_low_32),
    case("release-mem-timestamp", "RELEASE_MEM of the GPU clock", packet_cases::release_mem_timestamp),
    case(
        "release-mem-interrupt",
        "the interrupt of RELEASE_MEM, the event page, waiting in the driver",
        packet_cases::release_mem_interrupt,
    ),
    case(
        "write-data-vram",
        "VRAM: its mapping on the GPU, reads through the BAR",
        packet_cases::write_data_vram,
    )
    .in_visible_vram(),
    case("acquire-mem", "ACQUIRE_MEM and its cache operations", packet_cases::acquire_mem).at_open(),
    case("indirect-buffer-gtt", "INDIRECT_BUFFER in a user queue", indirect_cases::in_system_memory)
        .at_open(),
    case(
        "indirect-buffer-vram",
        "packets in VRAM: host writes through the BAR, their flush, the command processor's fetch",
        indirect_cases::in_vram,
    )
    .in_visible_vram()
    .at_open(),
    // The first waves.
    case(
        "dispatch-end",
        "SET_SH_REG, DISPATCH_DIRECT, the launch of a wave, instruction fetch from system memory",
        first_dispatch_cases::end,
    )
    .at_open(),
    case(
        "dispatch-store",
        "user data in SGPRs, vector instructions, a vector store",
        first_dispatch_cases::store,
    )
    .at_open(),
    case("dispatch-ttmp9", "several workgroups, and their id in ttmp9", first_dispatch_cases::group),
    case("dispatch-s-load", "a scalar load from system memory", first_dispatch_cases::load).at_open(),
    case(
        "dispatch-code-vram",
        "code in VRAM: host writes through the BAR (on a small BAR the copy kernel), instruction fetch",
        first_dispatch_cases::code_in_vram,
    )
    .in_vram()
    .at_open(),
    case(
        "dispatch-indirect-buffer",
        "a recorded dispatch, many workgroups, all lanes",
        dispatch_cases::dispatch,
    )
    .at_open(),
    // The rest of what the layers above rely on.
    case("set-sh-reg-dispatch-direct", "the same dispatch in the ring", dispatch_cases::dispatch_in_ring),
    case("workgroup-ids", "workgroup ids in three dimensions: ttmp7", dispatch_cases::workgroup_ids),
    case("copy-data-immediate", "COPY_DATA of an immediate", packet_cases::copy_data_immediate),
    case("copy-data-memory", "COPY_DATA from memory", packet_cases::copy_data_memory),
    case("copy-data-clock", "COPY_DATA of the GPU clock, and its rate", packet_cases::copy_data_clock),
    case("wait-reg-mem", "WAIT_REG_MEM that holds", packet_cases::wait_reg_mem),
    case("wait-reg-mem-host", "WAIT_REG_MEM that the host releases", packet_cases::wait_reg_mem_host),
    case("event-write-partial-flush", "CS_PARTIAL_FLUSH", dispatch_cases::partial_flush),
    case("acquire-scalar-cache", "ACQUIRE_MEM drops the scalar cache", dispatch_cases::acquire),
    case("dispatch-chain-barrier", "barriers between recorded dispatches", dispatch_cases::chain),
    case("lds-workgroup-barrier", "LDS, and the barrier of a workgroup", dispatch_cases::reverse),
    case("global-atomics", "atomics in device-local memory", dispatch_cases::atomics).in_vram(),
    case("graph-replay", "one recording many times", dispatch_cases::replay),
    case("device-local-transfers", "transfers of odd ranges", queue_cases::transfers),
    case("submissions-in-flight", "many submissions that are not waited for", queue_cases::in_flight),
    case("round-trip", "nothing new: what a submission costs", queue_cases::round_trip),
    case(
        "global-atomics-gtt",
        "atomics in system memory: PCIe AtomicOps, which root ports need not have",
        dispatch_cases::atomics_in_system_memory,
    )
    .informative(),
    case("ring-wrap", "the end of the ring, and the reported read pointer", queue_cases::ring_wrap),
];
