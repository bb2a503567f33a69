//! What runs a session's steps: the host, one submission after another, or the megakernel; and how it is observed.
//!
//! Contract: everything is recorded or allocated before the first request; driving reads and writes mapped memory.
//! Reading breadcrumbs allocates, and happens only after a hang or on request.

use super::error::{SessionError, Standing};
use super::options::{Mode, SessionOptions};
use super::tape;
use crate::executor::resident::Resident;
use crate::memory_plan::AllocationId;
use std::mem::offset_of;
use std::time::{Duration, Instant};
use zerocopy::IntoBytes;
use zrt_device::{Buffer, Device, Graph, Kernel, Ticket};
use zrt_isa::resources::{GroupNeeds, WaveSize};
use zrt_mem::{ByteLen, Heap};
use zrt_protocol::params::{self, PARAMETER_BYTES_MAX, RowSet};
use zrt_protocol::{ARRIVED_OFFSET, Breadcrumb, COUNTERS_OFFSET, Start, TapeEntry};

/// How long after the last workgroup has begun the others count as not resident. On a card they begin within
/// microseconds of each other; the virtual device shares the host's cores.
const ARRIVAL_GAP: Duration = Duration::from_secs(2);
/// How long the host sleeps between two looks at the workgroups that have begun.
const ARRIVAL_PAUSE: Duration = Duration::from_micros(100);
/// How long to wait for the driver's report if none has begun.
const DIAGNOSIS_DEADLINE: Duration = Duration::from_millis(10);

/// What the megakernel needs besides the resident model.
pub(super) struct Mega {
    // Named by packets in flight: they live as long as the session.
    tape: Buffer,
    counters: Buffer,
    breadcrumbs: Buffer,
    start: Buffer,
    _block: Buffer,
    /// Workgroups of the dispatch.
    dispatched: u32,
    /// Those that take part, as the kernel was told; 0 if none began in time.
    groups: Option<u32>,
    kernel: Kernel,
    graph: Graph,
    /// `None` until the kernel is started.
    ticket: Option<Ticket>,
}

/// What the megakernel reads, and the device that holds it: for tests that change it.
pub struct MegaParts<'a> {
    /// The tape: a [`TapeEntry`] for each task but PLAN, in the order of [`Resident::tasks`] from the second on.
    pub tape: &'a Buffer,
    /// The count of workgroups that have ended steps; from [`COUNTERS_OFFSET`] on, a counter for each task.
    pub counters: &'a Buffer,
    /// A [`Breadcrumb`] for each workgroup, which the kernel writes.
    pub breadcrumbs: &'a Buffer,
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The device.
    pub device: &'a mut Device,
}

/// How steps are run.
pub(super) enum Drive {
    /// By the host: one submission for each graph of a step, in order, from `next` on. A step that was submitted only
    /// in part continues where it stopped.
    Host { graphs: Vec<Graph>, next: usize, in_flight: Option<Ticket> },
    /// By the megakernel.
    Mega(Box<Mega>),
}

/// Records or prepares whatever runs steps in the requested mode.
pub(super) fn prepare_drive(
    resident: &mut Resident,
    options: &SessionOptions,
) -> Result<Drive, SessionError> {
    let units = resident.device.info().compute_units;
    if options.groups == Some(0) {
        return Err(SessionError::Option { what: "groups", value: 0, range: "at least 1" });
    }
    let groups = options.groups.unwrap_or(units);
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
        Mode::Mega => Ok(Drive::Mega(Box::new(prepare_mega(resident, options.groups, units)?))),
    }
}

/// Workgroups of the megakernel: as many as can be resident at once, or what was asked for. More than that is refused:
/// they would never take part.
fn mega_groups(needs: &GroupNeeds, asked: Option<u32>, units: u32) -> Result<u32, SessionError> {
    let per_unit = needs.occupancy().map_or(0, |occupancy| occupancy.groups_per_cu);
    let resident = per_unit.saturating_mul(units);
    let groups = asked.unwrap_or(resident);
    if groups <= resident {
        return Ok(groups);
    }
    Err(SessionError::Groups { groups, resident, per_unit, units })
}

fn prepare_mega(resident: &mut Resident, groups: Option<u32>, units: u32) -> Result<Mega, SessionError> {
    let container = zrt_asm::blob("mega").unwrap_or_default();
    let parsed = zrt_isa::zrt::Kernel::parse(container).map_err(zrt_device::DeviceError::from)?;
    let needs = GroupNeeds {
        wave_size: WaveSize::Wave32,
        vgprs: parsed.vgprs.into(),
        lds_bytes: parsed.lds_bytes,
        work_items: parsed.work_items(),
    };
    let groups = mega_groups(&needs, groups, units)?;
    let tasks = resident.tasks.len() as u32;
    let parameters_va = resident.buffer(AllocationId::Parameters).va;
    let entries = tape::tape(&resident.plan, &resident.tasks, parameters_va.0, groups)?;
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
    // In system memory, which needs no flush: both sides poll it, and only at the start.
    let start_len = ByteLen(u64::from(ARRIVED_OFFSET) + u64::from(groups) * 4);
    let start = device.allocate(Heap::Host, start_len, "start")?;
    device.upload(&start, ByteLen(0), &vec![0; start_len.0 as usize])?;
    let step_va = resident.tasks[0].header.step_va;
    let block = params::Mega {
        header: params::Mega::header(step_va, 1, RowSet::Once),
        tape_va: tape.va.0,
        counters_va: counters.va.0,
        breadcrumbs_va: breadcrumbs.va.0,
        plan_va: parameters_va.0,
        start_va: start.va.0,
        tasks,
        reserved: 0,
    };
    let device = &mut resident.device;
    let parameters = device.allocate(Heap::DeviceLocal, ByteLen(PARAMETER_BYTES_MAX as u64), "mega")?;
    device.upload(&parameters, ByteLen(0), block.as_bytes())?;
    let mut recorder = device.recorder(1)?;
    recorder.dispatch(&kernel, parameters.va, [groups, 1, 1])?;
    let graph = recorder.finish()?;
    let (dispatched, groups, ticket) = (groups, None, None);
    Ok(Mega {
        tape,
        counters,
        breadcrumbs,
        start,
        _block: parameters,
        dispatched,
        groups,
        kernel,
        graph,
        ticket,
    })
}

impl Drive {
    /// Starts the megakernel if it runs the steps and was not started yet, and tells it how many of its workgroups are
    /// resident. Returns whether it was started now.
    ///
    /// # Errors
    /// [`SessionError::NotStarted`] if no workgroup begins within `deadline`: the kernel leaves as soon as it does, and
    /// cannot be started again.
    pub fn start(&mut self, device: &mut Device, deadline: Duration) -> Result<bool, SessionError> {
        let Drive::Mega(mega) = self else { return Ok(false) };
        match mega.groups {
            Some(0) => {
                return Err(SessionError::NotStarted { waited: Duration::ZERO, groups: mega.dispatched });
            }
            Some(_) => return Ok(false),
            None => {}
        }
        let ticket = device.submit_resident(&mega.graph)?;
        mega.ticket = Some(ticket);
        let arrived = mega.await_arrivals(device, ticket, deadline);
        let groups = *arrived.as_ref().unwrap_or(&0);
        mega.groups = Some(groups);
        mega.start.view()?.store_u32(offset_of!(Start, groups_and_1), groups + 1);
        arrived.map(|_| true)
    }

    /// Workgroups of the megakernel that take part, once it has started. `None` in the other modes.
    pub fn groups(&self) -> Option<u32> {
        let Drive::Mega(mega) = self else { return None };
        mega.groups
    }

    /// Submits the next step if the host drives steps and there may be something to do. Returns whether a step was
    /// submitted.
    pub fn run(&mut self, device: &mut Device, has_work: bool) -> Result<bool, SessionError> {
        let Drive::Host { graphs, next, in_flight } = self else { return Ok(false) };
        if *next == 0 {
            if in_flight.is_some_and(|ticket| !device.is_done(ticket)) {
                return Ok(false);
            }
            *in_flight = None;
            if !has_work {
                return Ok(false);
            }
        }
        for graph in &graphs[*next..] {
            *in_flight = Some(device.submit(graph)?);
            *next += 1;
        }
        *next = 0;
        Ok(true)
    }

    /// The submission to wait for, if any.
    pub fn ticket(&self) -> Option<Ticket> {
        match self {
            Drive::Mega(mega) => mega.ticket,
            Drive::Host { in_flight, .. } => *in_flight,
        }
    }

    /// True if the megakernel was started: it takes commands while no step runs, and must be told to leave.
    pub fn is_resident_kernel(&self) -> bool {
        matches!(self, Drive::Mega(mega) if mega.ticket.is_some())
    }

    /// What the megakernel reads; `None` in the other modes.
    pub fn parts<'a>(&'a self, device: &'a mut Device) -> Option<MegaParts<'a>> {
        let Drive::Mega(mega) = self else { return None };
        let Mega { tape, counters, breadcrumbs, kernel, .. } = &**mega;
        Some(MegaParts { tape, counters, breadcrumbs, kernel, device })
    }

    /// Where the megakernel's workgroups were last seen. Allocates.
    pub fn standings(&self, resident: &mut Resident) -> Result<Vec<Standing>, SessionError> {
        let crumbs = self.breadcrumbs(&mut resident.device)?;
        let standing = |(group, crumb): (usize, &Breadcrumb)| {
            let task = resident.tasks.get(crumb.task as usize)?;
            let (epoch, task, kernel) = (crumb.epoch, crumb.task, task.kernel);
            (epoch > 0).then_some(Standing { group: group as u32, epoch, task, kernel })
        };
        Ok(crumbs.iter().enumerate().filter_map(standing).collect())
    }

    /// Total number of unsuccessful polls by waiting workgroups of the megakernel. Allocates.
    pub fn spins(&self, device: &mut Device) -> Result<u64, SessionError> {
        Ok(self.breadcrumbs(device)?.iter().map(|crumb| u64::from(crumb.spins)).sum())
    }

    /// The breadcrumbs, one for each workgroup; none in the other modes.
    fn breadcrumbs(&self, device: &mut Device) -> Result<Vec<Breadcrumb>, SessionError> {
        let Drive::Mega(mega) = self else { return Ok(Vec::new()) };
        let mut crumbs =
            vec![Breadcrumb::default(); mega.breadcrumbs.len.0 as usize / size_of::<Breadcrumb>()];
        device.download(&mega.breadcrumbs, ByteLen(0), crumbs.as_mut_bytes())?;
        Ok(crumbs)
    }
}

impl Mega {
    /// Waits until all workgroups have begun, or those that fit. Returns how many.
    fn await_arrivals(
        &self,
        device: &mut Device,
        ticket: Ticket,
        deadline: Duration,
    ) -> Result<u32, SessionError> {
        let start = self.start.view()?;
        let has_arrived = |group: &u32| start.load_u32(ARRIVED_OFFSET as usize + 4 * *group as usize) != 0;
        let began = Instant::now();
        let mut arrivals = Arrivals::new(self.dispatched, deadline);
        loop {
            // Numbers are given one by one, so those that count are the first.
            let arrived = (0..self.dispatched).take_while(has_arrived).count() as u32;
            match arrivals.judge(arrived, began.elapsed()) {
                Some(0) => break,
                Some(groups) => return Ok(groups),
                None => std::thread::sleep(ARRIVAL_PAUSE),
            }
        }
        if let Err(error) = device.wait(ticket, DIAGNOSIS_DEADLINE)
            && device.is_lost()
        {
            return Err(error.into());
        }
        Err(SessionError::NotStarted { waited: began.elapsed(), groups: self.dispatched })
    }
}

/// The wait for workgroups that begin.
struct Arrivals {
    dispatched: u32,
    deadline: Duration,
    /// How many had begun at the last look, and when the last of them was first seen.
    seen: u32,
    moved: Duration,
}

impl Arrivals {
    fn new(dispatched: u32, deadline: Duration) -> Arrivals {
        Arrivals { dispatched, deadline, seen: 0, moved: Duration::ZERO }
    }

    /// How many take part, if the wait is over when `arrived` have begun `after` its beginning: all, those that fit, or
    /// none.
    fn judge(&mut self, arrived: u32, after: Duration) -> Option<u32> {
        if arrived != self.seen {
            (self.seen, self.moved) = (arrived, after);
        }
        let limit = if arrived == 0 { self.deadline } else { self.moved.saturating_add(ARRIVAL_GAP) };
        (arrived == self.dispatched || after >= limit).then_some(arrived)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 192 registers of 1536 leave each SIMD 8 waves: two SIMDs hold two groups of 8. Their 30 KiB fit twice into half
    /// of 128 KiB, too; 33 KiB fit once.
    #[test]
    fn as_many_groups_are_resident_as_have_registers_and_lds() {
        let needs =
            |lds_bytes| GroupNeeds { wave_size: WaveSize::Wave32, vgprs: 192, lds_bytes, work_items: 256 };
        for (lds_bytes, asked, groups) in [
            (30 << 10, None, 128),
            (33 << 10, None, 64),
            (30 << 10, Some(1), 1),
            (30 << 10, Some(127), 127),
            (30 << 10, Some(128), 128),
        ] {
            assert_eq!(mega_groups(&needs(lds_bytes), asked, 64).ok(), Some(groups), "{lds_bytes} {asked:?}");
        }
        let error = mega_groups(&needs(30 << 10), Some(129), 64).unwrap_err().to_string();
        assert_eq!(
            error,
            "129 workgroups of the megakernel are more than the 128 that are resident at once (2 on each of 64 \
             compute units); the others would take no part"
        );
    }

    /// Looks at the second of each, in order: how many have begun, and what is made of it.
    fn waits(dispatched: u32, looks: &[(u64, u32, Option<u32>)]) {
        let mut arrivals = Arrivals::new(dispatched, Duration::from_secs(30));
        for (second, arrived, expected) in looks {
            let found = arrivals.judge(*arrived, Duration::from_secs(*second));
            assert_eq!(found, *expected, "{arrived} of {dispatched} after {second} s");
        }
    }

    #[test]
    fn the_wait_for_workgroups_ends_with_all_or_those_that_fit_or_none() {
        waits(3, &[(0, 3, Some(3))]);
        waits(3, &[(0, 0, None), (29, 0, None), (29, 3, Some(3))]);
        waits(1, &[(29, 0, None), (30, 0, Some(0))]);
        // Each that begins is waited after for two seconds, though the deadline passes.
        waits(3, &[(28, 1, None), (29, 1, None), (29, 2, None), (30, 2, None), (31, 2, Some(2))]);
        waits(2, &[(0, 1, None), (1, 1, None), (2, 1, Some(1))]);
    }
}
