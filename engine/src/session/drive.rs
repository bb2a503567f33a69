//! Who runs a session's steps: the host, submission by submission, or the megakernel; and what is seen of it.
//!
//! Contract: everything is recorded or allocated before the first request; driving reads and writes mapped memory. Looking
//! at breadcrumbs allocates, and happens after a hang or on request only.

use super::{Mode, Session, SessionError, SessionOptions, Standing, tape};
use crate::executor::resident::Resident;
use crate::memory_plan::AllocationId;
use zerocopy::{FromBytes, IntoBytes};
use zrt_device::{Buffer, Device, Graph, Kernel, Ticket};
use zrt_isa::resources::{GroupNeeds, WaveSize};
use zrt_mem::{ByteLen, Heap};
use zrt_protocol::params::{self, PARAMETER_BYTES_MAX, RowSet};
use zrt_protocol::{Breadcrumb, COUNTERS_OFFSET, TapeEntry};

/// What the megakernel needs besides the resident model.
pub(super) struct Mega {
    // Named by packets in flight: they live as long as the session.
    tape: Buffer,
    counters: Buffer,
    breadcrumbs: Buffer,
    _block: Buffer,
    kernel: Kernel,
    pub(super) graph: Graph,
    /// `None` until the kernel is started.
    pub(super) ticket: Option<Ticket>,
}

/// What the megakernel reads, and the device that holds it: for tests that change it.
pub struct MegaParts<'a> {
    /// The tape: a [`TapeEntry`] for each task but PLAN, in the order of [`Resident::tasks`] from the second on.
    pub tape: &'a Buffer,
    /// Workgroups that have ended steps, then, from [`COUNTERS_OFFSET`], a counter for each task.
    pub counters: &'a Buffer,
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The device.
    pub device: &'a mut Device,
}

/// How steps are run.
pub(super) enum Drive {
    /// By the host: one submission for each graph of a step, in order, from `next` on. A step that could not be submitted
    /// whole goes on where it stopped.
    Host { graphs: Vec<Graph>, next: usize, in_flight: Option<Ticket> },
    /// By the megakernel.
    Mega(Box<Mega>),
}

/// Records or prepares what runs steps in the mode that is asked for.
pub(super) fn prepare_drive(
    resident: &mut Resident,
    options: &SessionOptions,
) -> Result<Drive, SessionError> {
    let units = resident.device.info().compute_units;
    let groups = options.groups.unwrap_or(units);
    if groups == 0 {
        return Err(SessionError::Option { what: "groups", value: 0, range: "at least 1" });
    }
    match options.mode {
        Mode::Graph => {
            let tasks = resident.tasks.len();
            let graphs = vec![resident.record(0..tasks, groups)?];
            Ok(Drive::Host { graphs, next: 0, in_flight: None })
        }
        Mode::Dispatch => {
            let each = (0..resident.tasks.len()).map(|task| resident.record(task..task + 1, groups));
            let graphs = each.collect::<Result<Vec<_>, _>>()?;
            Ok(Drive::Host { graphs, next: 0, in_flight: None })
        }
        Mode::Mega => Ok(Drive::Mega(Box::new(prepare_mega(resident, groups, units)?))),
    }
}

/// Refuses more workgroups than are resident at once: they wait for each other.
fn check_groups(needs: &GroupNeeds, groups: u32, units: u32) -> Result<(), SessionError> {
    let per_unit = needs.occupancy().map_or(0, |occupancy| occupancy.groups_per_cu);
    let resident = per_unit.saturating_mul(units);
    if groups <= resident {
        return Ok(());
    }
    Err(SessionError::Groups { groups, resident, per_unit, units })
}

fn prepare_mega(resident: &mut Resident, groups: u32, units: u32) -> Result<Mega, SessionError> {
    let container = zrt_asm::blob("mega").unwrap_or_default();
    let parsed = zrt_isa::zrt::Kernel::parse(container).map_err(zrt_device::DeviceError::from)?;
    let needs = GroupNeeds {
        wave_size: WaveSize::Wave32,
        vgprs: parsed.vgprs.into(),
        lds_bytes: parsed.lds_bytes,
        work_items: parsed.work_items(),
    };
    check_groups(&needs, groups, units)?;
    let tasks = resident.tasks.len() as u32;
    let parameters_va = resident.buffer(AllocationId::Parameters).va;
    let entries = tape::tape(&resident.plan, &resident.tasks, parameters_va.0)?;
    let device = &mut resident.device;
    let kernel = device.load_kernel(container)?;
    let tape_len = ByteLen((entries.len() * size_of::<TapeEntry>()) as u64);
    let tape = device.allocate(Heap::DeviceLocal, tape_len, "tape")?;
    device.upload(&tape, ByteLen(0), entries.as_bytes())?;
    let counters_len = ByteLen(u64::from(COUNTERS_OFFSET) + u64::from(tasks) * 4);
    let counters = device.allocate(Heap::DeviceLocal, counters_len, "counters")?;
    device.upload(&counters, ByteLen(0), &vec![0; counters_len.0 as usize])?;
    let breadcrumbs_len = ByteLen(u64::from(groups) * size_of::<Breadcrumb>() as u64);
    let breadcrumbs = device.allocate(Heap::HostShared, breadcrumbs_len, "breadcrumbs")?;
    device.upload(&breadcrumbs, ByteLen(0), &vec![0; breadcrumbs_len.0 as usize])?;
    let step_va = resident.tasks[0].header.step_va;
    let block = params::Mega {
        header: params::Mega::header(step_va, 1, RowSet::Once),
        tape_va: tape.va.0,
        counters_va: counters.va.0,
        breadcrumbs_va: breadcrumbs.va.0,
        plan_va: parameters_va.0,
        tasks,
        reserved: 0,
    };
    let device = &mut resident.device;
    let parameters = device.allocate(Heap::DeviceLocal, ByteLen(PARAMETER_BYTES_MAX as u64), "mega")?;
    device.upload(&parameters, ByteLen(0), block.as_bytes())?;
    let mut recorder = device.recorder(1)?;
    recorder.dispatch(&kernel, parameters.va, [groups, 1, 1])?;
    let graph = recorder.finish()?;
    Ok(Mega { tape, counters, breadcrumbs, _block: parameters, kernel, graph, ticket: None })
}

impl Session {
    /// What the megakernel reads; `None` in the other modes.
    pub fn mega_parts(&mut self) -> Option<MegaParts<'_>> {
        let Drive::Mega(mega) = &self.drive else { return None };
        let (tape, counters, kernel) = (&mega.tape, &mega.counters, &mega.kernel);
        Some(MegaParts { tape, counters, kernel, device: &mut self.resident.device })
    }

    /// Submits the next step where the host drives steps and there may be something to do.
    pub(super) fn drive(&mut self) -> Result<(), SessionError> {
        let device = &mut self.resident.device;
        let has_work = self.slots.iter().any(Option::is_some);
        match &mut self.drive {
            Drive::Mega(_) => {}
            Drive::Host { graphs, next, in_flight } => {
                if *next == 0 {
                    if in_flight.is_some_and(|ticket| !device.is_done(ticket)) {
                        return Ok(());
                    }
                    *in_flight = None;
                    if !has_work {
                        return Ok(());
                    }
                }
                for graph in &graphs[*next..] {
                    *in_flight = Some(device.submit(graph)?);
                    *next += 1;
                }
                *next = 0;
                self.watch.note_submission();
            }
        }
        Ok(())
    }

    /// The submission that is waited for, where there is one.
    pub(super) fn ticket(&self) -> Option<Ticket> {
        match &self.drive {
            Drive::Mega(mega) => mega.ticket,
            Drive::Host { in_flight, .. } => *in_flight,
        }
    }

    /// Where the megakernel's workgroups were last seen. Allocates.
    pub fn standings(&mut self) -> Result<Vec<Standing>, SessionError> {
        let Drive::Mega(mega) = &self.drive else { return Ok(Vec::new()) };
        let mut bytes = vec![0; mega.breadcrumbs.len.0 as usize];
        self.resident.device.download(&mega.breadcrumbs, ByteLen(0), &mut bytes)?;
        let crumbs = bytes.chunks_exact(size_of::<Breadcrumb>()).enumerate();
        let standing = |(group, bytes): (usize, &[u8])| {
            let crumb = Breadcrumb::read_from_bytes(bytes).ok()?;
            let task = self.resident.tasks.get(crumb.task as usize)?;
            let (epoch, task, kernel) = (crumb.epoch, crumb.task, task.kernel);
            (epoch > 0).then_some(Standing { group: group as u32, epoch, task, kernel })
        };
        Ok(crumbs.filter_map(standing).collect())
    }

    /// Times that the megakernel's workgroups have looked in vain while they waited, in all.
    pub fn spins(&mut self) -> Result<u64, SessionError> {
        let Drive::Mega(mega) = &self.drive else { return Ok(0) };
        let mut bytes = vec![0; mega.breadcrumbs.len.0 as usize];
        self.resident.device.download(&mega.breadcrumbs, ByteLen(0), &mut bytes)?;
        let crumbs = bytes.chunks_exact(size_of::<Breadcrumb>());
        Ok(crumbs
            .filter_map(|one| Breadcrumb::read_from_bytes(one).ok())
            .map(|one| u64::from(one.spins))
            .sum())
    }
}
