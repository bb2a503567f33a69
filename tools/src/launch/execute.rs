//! Executes a sequence on an opened device.
//!
//! Contract: the ordinary path of a device: allocate, upload, load, record, submit, wait, download. Everything that was
//! allocated lives until the findings are read, so that an address in them belongs to one thing only. Set-up, packets
//! and arguments cost some hundred bytes for each launch.

use super::error::LaunchError;
use super::labels::null_services;
use super::placement::PlacedBuffer;
use super::printing::Printing;
use super::regions;
use super::report::{Report, Seen};
use super::resident::Resident;
use super::sequence::{Action, Content, Dispatch, Sequence, scratch_bytes};
use super::wait::{self, KernelFault, Limits, Unfinished};
use crate::profile::Profile;
use std::ops::Range;
use zrt_bringup::{DeviceFault, Inspect};
use zrt_device::{Buffer, CodeLabel, Counters, Device, DeviceError, Heap, LaunchParameters};
use zrt_loader::{DISPATCH_PACKET_BYTES, Geometry, Hidden, Kernel, LaunchAddresses, LineTable};
use zrt_mem::{ByteLen, GpuVa};
use zrt_vgpu::VirtualGpu;

/// Alignment of an AQL dispatch packet, which follows the arguments, and of the arguments of the next launch.
const DISPATCH_PACKET_ALIGNMENT: usize = 64;
/// Dispatches for which a recorder needs room for each launch: [`zrt_device::Recorder::launch`] takes that of two.
const RECORDER_CAPACITY: usize = 2;

/// Runs `sequence`, which [`Sequence::check`] has checked. `gpu`: the virtual board below the device, which is told
/// what kernels may touch. `observe` gets what the sequence produces, as it arrives.
pub(super) fn run(
    device: &mut Device,
    sequence: &Sequence<'_>,
    gpu: Option<&VirtualGpu>,
    observe: &mut dyn FnMut(Seen<'_>),
) -> Result<Report, LaunchError> {
    // Names in findings come from what still exists when they are read.
    let mut resident = Resident::default();
    let outcome = carry_out(device, sequence, gpu, &mut resident, observe);
    let findings = match (device.findings(), &outcome) {
        (Ok(findings), _) => {
            let told = numbered(findings, |finding| !resident.printing.permits(finding));
            told.map(|(number, finding)| resident.locate(number, finding)).collect()
        }
        // The failure itself is more important.
        (Err(_), Err(_)) => Vec::new(),
        (Err(source), Ok(_)) => {
            let work = resident.work(sequence, None);
            let printed = Box::new(resident.printing.into_printed());
            let (source, findings, waves) = (source.into(), Vec::new(), Box::default());
            return Err(LaunchError::Device { work, source, findings, printed, waves });
        }
    };
    match outcome {
        Ok(counters) => Ok(Report {
            device: device.name().into(),
            is_virtual: device.is_virtual(),
            counters,
            findings,
            profile: profile(device),
            printed: resident.printing.into_printed(),
            unprinted: resident.unprinted,
        }),
        Err(Failure::Unfinished(source)) => {
            let wave = source.fault().and_then(|fault| fault.fault.wave.as_ref());
            let action = wave.and_then(|wave| resident.launched_at(wave.launched_at?));
            let work = resident.work(sequence, action);
            // If the list is not available, the failure itself is still reported.
            let waves = Box::new(device.waves().unwrap_or_default());
            let printed = Box::new(resident.printing.into_printed());
            Err(LaunchError::Device { work, source, findings, printed, waves })
        }
        Err(Failure::Refused(error)) => Err(*error),
    }
}

/// The findings that are reported, each with its number among all.
fn numbered<T>(findings: Vec<T>, is_told: impl Fn(&T) -> bool) -> impl Iterator<Item = (usize, T)> {
    findings.into_iter().enumerate().filter(move |(_, finding)| is_told(finding))
}

/// Why a sequence did not come to its end.
enum Failure {
    Unfinished(Unfinished),
    Refused(Box<LaunchError>),
}

impl<E: Into<Unfinished>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::Unfinished(error.into())
    }
}

fn carry_out(
    device: &mut Device,
    sequence: &Sequence<'_>,
    gpu: Option<&VirtualGpu>,
    resident: &mut Resident,
    observe: &mut dyn FnMut(Seen<'_>),
) -> Result<Counters, Failure> {
    for shared in &sequence.buffers {
        let buffer = device.allocate(Heap::DeviceLocal, ByteLen(shared.content.len()), &shared.label)?;
        match &shared.content {
            Content::Bytes(bytes) => device.upload(&buffer, ByteLen(0), bytes)?,
            Content::Zeros(bytes) => device.upload(&buffer, ByteLen(0), &vec![0; *bytes as usize])?,
        }
        resident.buffers.push(buffer);
    }
    load(device, sequence, resident)?;
    let launched =
        sequence.dispatches().filter_map(|dispatch| Some((sequence.kernel(dispatch)?, &dispatch.geometry)));
    resident.printing = Printing::new(device, launched)?;
    if let Some(gpu) = gpu {
        regions::name(gpu, sequence, resident);
    }
    if let Some(placement) = sequence.placement {
        let placed = sequence.buffers.iter().zip(&resident.buffers).map(|(shared, buffer)| PlacedBuffer {
            argument: shared.number,
            name: shared.name.clone(),
            va: buffer.va.0,
            bytes: buffer.len.0,
        });
        placement.tell(placed.collect());
    }
    let mut counters = Counters { wave_instructions: Some(0), ..Counters::default() };
    let mut limits = Limits::new(sequence.deadline, sequence.pauses);
    let mut at = 0;
    while let Some(action) = sequence.actions.get(at) {
        match action {
            Action::Dispatch(_) => {
                let count = submitted_together(sequence, at);
                let part = submit(device, sequence, at..at + count, gpu, resident, &mut limits, observe)?;
                add(&mut counters, &part);
                at += count;
                continue;
            }
            Action::Write { buffer, offset, bytes } => {
                device.upload(&resident.buffers[*buffer], ByteLen(*offset), bytes)?;
            }
            Action::Copy { from, to, bytes } => {
                let mut copied = vec![0; *bytes as usize];
                device.download(&resident.buffers[from.0], ByteLen(from.1), &mut copied)?;
                device.upload(&resident.buffers[to.0], ByteLen(to.1), &copied)?;
            }
            Action::Read { buffer } => {
                let buffer = &resident.buffers[*buffer];
                let mut bytes = vec![0; buffer.len.0 as usize];
                device.download(buffer, ByteLen(0), &mut bytes)?;
                observe(Seen::Read { action: at, bytes });
            }
        }
        at += 1;
    }
    Ok(counters)
}

/// Loads the code of each program of which a kernel is launched, and prepares each kernel in each shape.
fn load(device: &mut Device, sequence: &Sequence<'_>, resident: &mut Resident) -> Result<(), Failure> {
    resident.codes = sequence.programs.iter().map(|_| None).collect();
    for dispatch in sequence.dispatches() {
        let kernel = sequence.kernel(dispatch).ok_or_else(|| no_kernel(dispatch))?;
        let program = &sequence.programs[dispatch.program];
        if resident.codes[dispatch.program].is_none() {
            let image = program.image();
            let (functions, lines) = (program.functions(), lines_of(program.lines()));
            let files = program.lines().files();
            let label = CodeLabel { name: &kernel.name, functions: &functions, files, lines: &lines };
            let len = ByteLen(image.bytes().len() as u64);
            let code = device.load_code(&label, len, |va| image.placed_at(va.0))?;
            resident.codes[dispatch.program] = Some(code);
        }
        if resident.kernels.iter().any(|(of, _)| is_same_kernel(of, dispatch)) {
            continue;
        }
        let lds_bytes = kernel.dynamic_lds_bytes(&dispatch.geometry.dynamic_lds).ok();
        let words = lds_bytes.and_then(|bytes| kernel.resource_words(bytes).ok()).ok_or_else(|| {
            DeviceError::KernelNeeds { kernel: kernel.name.clone(), reason: "its LDS does not fit" }
        })?;
        let ready = device.prepare_launch(&LaunchParameters {
            name: &kernel.name,
            entry: resident.entry(dispatch, kernel).ok_or_else(|| no_kernel(dispatch))?,
            rsrc1: words.rsrc1,
            rsrc2: words.rsrc2,
            rsrc3: words.rsrc3,
            wave_size: kernel.wave_size,
            workgroup: dispatch.geometry.group,
            scratch_bytes: scratch_bytes(kernel),
        })?;
        resident.kernels.push((dispatch.clone(), ready));
    }
    Ok(())
}

/// The error for a launch of something that does not exist: its sequence was not checked.
fn no_kernel(dispatch: &Dispatch) -> Failure {
    let asked = format!("{} has no kernel that was loaded", dispatch.label);
    Failure::Refused(Box::new(LaunchError::Kernel { asked, names: String::new() }))
}

/// Whether two launches differ in nothing that a prepared kernel depends on.
fn is_same_kernel(one: &Dispatch, other: &Dispatch) -> bool {
    let of = |dispatch: &Dispatch| {
        let geometry = &dispatch.geometry;
        (dispatch.program, dispatch.kernel, geometry.group, geometry.dynamic_lds)
    };
    of(one) == of(other)
}

/// How many launches, from an action on, one submission has: all up to the next thing that the host does, or up to one
/// whose printed messages have format strings of another program.
fn submitted_together(sequence: &Sequence<'_>, first: usize) -> usize {
    let mut printing_program = None;
    let belongs = |action: &&Action| {
        let Action::Dispatch(dispatch) = action else { return false };
        let prints = sequence.kernel(dispatch).is_some_and(|kernel| kernel.asks_for(&Hidden::PrintfBuffer));
        !prints || *printing_program.get_or_insert(dispatch.program) == dispatch.program
    };
    sequence.actions[first..].iter().take_while(belongs).count()
}

/// Launches as the device takes them.
struct Recorded {
    /// Segments and dispatch packets.
    arguments: Buffer,
    graph: zrt_device::Graph,
    /// Address range of each launch's packets, and the number of its action.
    packets: Vec<(Range<u64>, usize)>,
}

/// Packs the arguments of launches, uploads them, and records the launches with the numbers of their actions.
fn record(
    device: &mut Device,
    launches: &[(usize, &Dispatch, &Kernel)],
    resident: &Resident,
) -> Result<Recorded, Failure> {
    let mut segments = Vec::with_capacity(launches.len());
    let mut room = 0;
    for (_, dispatch, kernel) in launches {
        let values = dispatch.values(|buffer| resident.va(buffer));
        let geometry = Geometry { services: resident.printing.addresses(), ..dispatch.geometry };
        let segment =
            kernel.pack(&values, geometry).map_err(|error| Failure::Refused(Box::new(error.into())))?;
        let packet_at = (room + segment.len()).next_multiple_of(DISPATCH_PACKET_ALIGNMENT);
        segments.push((room, packet_at, segment));
        room = (packet_at + DISPATCH_PACKET_BYTES).next_multiple_of(DISPATCH_PACKET_ALIGNMENT);
    }
    let arguments = device.allocate(Heap::HostVisible, ByteLen(room as u64), "arguments")?;
    let mut bytes = vec![0; room];
    let mut recorder = device.recorder(RECORDER_CAPACITY * launches.len())?;
    let mut recorded = Vec::with_capacity(launches.len());
    for ((at, dispatch, kernel), (segment_at, packet_at, segment)) in launches.iter().zip(segments) {
        let ready = resident.kernels.iter().find(|(of, _)| is_same_kernel(of, dispatch));
        let (_, ready) = ready.ok_or_else(|| no_kernel(dispatch))?;
        let (segment_va, packet_va) = (arguments.va.0 + segment_at as u64, arguments.va.0 + packet_at as u64);
        let object_va = resident.entry(dispatch, kernel).ok_or_else(|| no_kernel(dispatch))?.0;
        let packet = kernel.dispatch_packet(&dispatch.geometry, segment_va, object_va);
        bytes[segment_at..segment_at + segment.len()].copy_from_slice(&segment);
        bytes[packet_at..packet_at + packet.len()].copy_from_slice(&packet);
        let user_data = kernel.user_data(&LaunchAddresses {
            arguments_va: segment_va,
            dispatch_packet_va: packet_va,
            dispatch_id: resident.launched + recorded.len() as u64,
            group_count: dispatch.geometry.groups[0],
        });
        if dispatch.waits && !recorder.is_empty() {
            recorder.barrier()?;
        }
        let start = recorder.len().bytes().0;
        recorder.launch(ready, &user_data, dispatch.geometry.groups)?;
        recorded.push((start..recorder.len().bytes().0, *at));
    }
    device.upload(&arguments, ByteLen(0), &bytes)?;
    let graph = recorder.finish()?;
    let graph_va = graph.buffer().map_or(0, |buffer| buffer.va.0);
    Ok(Recorded { arguments, packets: placed(recorded, graph_va), graph })
}

/// Ranges of bytes of a graph as ranges of addresses, each with the number of its action.
fn placed(ranges: Vec<(Range<u64>, usize)>, graph_va: u64) -> Vec<(Range<u64>, usize)> {
    ranges.into_iter().map(|(range, at)| (graph_va + range.start..graph_va + range.end, at)).collect()
}

/// Submits launches that follow each other and waits; returns what the device counted in between.
fn submit(
    device: &mut Device,
    sequence: &Sequence<'_>,
    actions: Range<usize>,
    gpu: Option<&VirtualGpu>,
    resident: &mut Resident,
    limits: &mut Limits<'_>,
    observe: &mut dyn FnMut(Seen<'_>),
) -> Result<Counters, Failure> {
    resident.last = actions.clone();
    let launches = actions.filter_map(|at| match &sequence.actions[at] {
        Action::Dispatch(dispatch) => {
            let kernel = sequence.kernel(dispatch).ok_or_else(|| no_kernel(dispatch));
            Some(kernel.map(|kernel| (at, dispatch, kernel)))
        }
        _ => None,
    });
    let launches = launches.collect::<Result<Vec<(usize, &Dispatch, &Kernel)>, Failure>>()?;
    let Recorded { arguments, graph, packets } = record(device, &launches, resident)?;
    resident.launched += launches.len() as u64;
    resident.packets.extend(packets);
    if let Some(gpu) = gpu {
        regions::name_arguments(gpu, &arguments);
    }
    let printer = launches.iter().find(|(.., kernel)| kernel.asks_for(&Hidden::PrintfBuffer));
    let formats = printer.map(|(_, dispatch, _)| sequence.programs[dispatch.program].print_formats());
    let mut printing = std::mem::take(&mut resident.printing);
    if formats.is_some() {
        printing.clear(device)?;
    }
    let before = device.counters()?;
    let faults_before = device.faults().len();
    let ticket = device.submit(&graph)?;
    resident.submitted.push((arguments, graph));
    let tell = |fault: DeviceFault, printing: &Printing| {
        let launched_at = fault.wave.as_ref().and_then(|wave| resident.launched_at(wave.launched_at?));
        let of_fault = launches.iter().find(|(at, ..)| Some(*at) == launched_at).or(launches.first());
        let services = of_fault.map(|(_, _, kernel)| null_services(kernel)).unwrap_or_default();
        KernelFault::new(fault, &services, printing.printed().complaint())
    };
    let outcome = wait::wait(device, ticket, limits, faults_before, &mut printing, tell, observe);
    let finished = formats.map_or(Ok(Ok(())), |formats| printing.finish(formats));
    printing.tell_news(observe);
    resident.printing = printing;
    outcome?;
    // The kernel has ended, and what it computed stands.
    if let Err(error) = finished? {
        resident.unprinted.get_or_insert(error);
    }
    Ok(difference(&device.counters()?, &before))
}

/// What waves did, with the places of instructions named while their code is there.
fn profile(device: &Device) -> Option<Profile> {
    let mut profile: Profile = serde_json::from_str(&device.profile()?).ok()?;
    for counts in &mut profile.places {
        counts.place = Some(device.place(GpuVa(counts.pc)));
    }
    Some(profile)
}

pub(super) fn lines_of(table: &LineTable) -> Vec<(u64, usize, u32)> {
    table.rows().iter().map(|row| (row.offset, row.file as usize, row.line)).collect()
}

fn difference(after: &Counters, before: &Counters) -> Counters {
    Counters {
        doorbells: after.doorbells.saturating_sub(before.doorbells),
        packets: after.packets.saturating_sub(before.packets),
        dispatches: after.dispatches.saturating_sub(before.dispatches),
        submissions: after.submissions.saturating_sub(before.submissions),
        wave_instructions: match (after.wave_instructions, before.wave_instructions) {
            (Some(after), Some(before)) => Some(after.saturating_sub(before)),
            _ => None,
        },
    }
}

/// Adds what a submission counted; a count that the device does not make is none.
fn add(sum: &mut Counters, part: &Counters) {
    sum.doorbells += part.doorbells;
    sum.packets += part.packets;
    sum.dispatches += part.dispatches;
    sum.submissions += part.submissions;
    sum.wave_instructions = sum.wave_instructions.zip(part.wave_instructions).map(|(sum, part)| sum + part);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number is that of the device's list: a recorder of instructions also counts those that are not reported.
    #[test]
    fn findings_keep_their_numbers_in_the_list() {
        let told: Vec<(usize, char)> = numbered(vec!['r', 'a', 'r', 'b'], |one| *one != 'r').collect();
        assert_eq!(told, [(1, 'a'), (3, 'b')]);
    }

    fn dispatch(program: usize, kernel: usize, groups: u32, group: u32) -> Dispatch {
        let geometry = Geometry::new([groups, 1, 1], [group, 1, 1]);
        Dispatch { label: String::new(), program, kernel, geometry, arguments: Vec::new(), waits: true }
    }

    /// Grids and arguments may differ; what the kernel is prepared for may not.
    #[test]
    fn launches_of_one_kernel_in_one_shape_share_what_is_prepared() {
        let one = dispatch(0, 1, 4, 64);
        assert!(is_same_kernel(&one, &Dispatch { waits: false, ..dispatch(0, 1, 9, 64) }));
        let mut longer = dispatch(0, 1, 4, 64);
        longer.geometry.dynamic_lds = zrt_loader::DynamicLds::of(16);
        for other in [dispatch(1, 1, 4, 64), dispatch(0, 0, 4, 64), dispatch(0, 1, 4, 32), longer] {
            assert!(!is_same_kernel(&one, &other), "{other:?}");
        }
    }

    #[test]
    fn packets_lie_where_their_graph_does() {
        let ranges = vec![(0..8, 3), (12..20, 5)];
        assert_eq!(placed(ranges, 0x1000), [(0x1000..0x1008, 3), (0x100c..0x1014, 5)]);
    }

    #[test]
    fn counts_of_submissions_are_differences_that_add_up() {
        let of = |one: u64, wave_instructions| Counters {
            doorbells: one,
            packets: 10 * one,
            dispatches: 100 * one,
            submissions: 1000 * one,
            wave_instructions,
        };
        assert_eq!(difference(&of(5, Some(9)), &of(3, Some(2))), of(2, Some(7)));
        assert_eq!(difference(&of(5, None), &of(3, Some(2))), of(2, None));
        let mut sum = of(1, Some(4));
        add(&mut sum, &of(2, Some(7)));
        assert_eq!(sum, of(3, Some(11)));
        add(&mut sum, &of(2, None));
        assert_eq!(sum, of(5, None));
    }
}
