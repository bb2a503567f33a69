//! What kernels may touch, as the checking mode learns it before they run.
//!
//! Contract: shared buffers, those for text, and what a program itself calls writable, may be read and written; outputs
//! count as unwritten until a kernel writes them, unless the host does; scratch is reached as private memory only;
//! buffers for reading, the rest of the programs (code, constants) and the argument segments with their dispatch
//! packets may be read. Nothing else is named: a store into the command ring, an indirect buffer or a fence is out of
//! bounds. LDS ends where the kernel's and the launch's end, and not with the unit that hardware allocates.

use super::resident::Resident;
use super::sequence::{Action, Content, Sequence};
use std::collections::BTreeSet;
use zrt_device::{Buffer, Code};
use zrt_loader::{Image, Segment};
use zrt_mem::GpuVa;
use zrt_vgpu::VirtualGpu;

/// Where an array without a length may begin: the largest alignment of its elements.
const DYNAMIC_LDS_ALIGNMENT: u32 = 16;

/// Names what `resident` holds before the first launch.
pub(super) fn name(gpu: &VirtualGpu, sequence: &Sequence<'_>, resident: &Resident) {
    for (index, (shared, buffer)) in sequence.buffers.iter().zip(&resident.buffers).enumerate() {
        match shared.content {
            _ if shared.is_read_only => gpu.watch_read_only_region(&shared.label, buffer.va.0, buffer.len.0),
            Content::Zeros(_) if !is_written_by_host(sequence, index) => {
                gpu.watch_unwritten_region(&shared.label, buffer.va.0, buffer.len.0);
            }
            _ => gpu.watch_region(&shared.label, buffer.va.0, buffer.len.0),
        }
    }
    for buffer in resident.printing.buffers() {
        gpu.watch_region(buffer.label(), buffer.va.0, buffer.len.0);
    }
    // The host answers what kernels ask for while they run; if they ask for nothing, it only waits.
    gpu.silence_host(!resident.printing.has_calls());
    for (dispatch, ready) in &resident.kernels {
        let Some(kernel) = sequence.kernel(dispatch) else { continue };
        let Some(GpuVa(entry)) = resident.entry(dispatch, kernel) else { continue };
        if let Some(scratch) = ready.scratch() {
            gpu.watch_private_region(&format!("the scratch of {}", kernel.name), scratch.va.0, scratch.len.0);
        }
        // If a kernel is launched with several lengths, the longest counts.
        let of_kernel = sequence
            .dispatches()
            .filter(|other| (other.program, other.kernel) == (dispatch.program, dispatch.kernel));
        let dynamic =
            of_kernel.filter_map(|other| kernel.dynamic_lds_bytes(&other.geometry.dynamic_lds).ok());
        let lds_bytes = match dynamic.max().unwrap_or(0) {
            0 => kernel.lds_bytes,
            dynamic if !kernel.lds_pointers().is_empty() => kernel.lds_bytes.saturating_add(dynamic),
            dynamic => kernel.lds_bytes.next_multiple_of(DYNAMIC_LDS_ALIGNMENT).saturating_add(dynamic),
        };
        gpu.watch_lds(entry, lds_bytes);
        // If calls need what the compiler could not know, nobody has declared it.
        if !kernel.dynamic_stack {
            gpu.watch_private(entry, kernel.scratch_bytes);
        }
    }
    for (index, (program, code)) in sequence.programs.iter().zip(&resident.codes).enumerate() {
        let Some(code) = code else { continue };
        let of_program = sequence.dispatches().filter(|dispatch| dispatch.program == index);
        let names: BTreeSet<&str> =
            of_program.filter_map(|dispatch| Some(sequence.kernel(dispatch)?.name.as_str())).collect();
        let names: Vec<&str> = names.into_iter().collect();
        name_program(gpu, &names.join(", "), program.image(), code);
    }
}

/// Whether a step of the host writes into a buffer.
fn is_written_by_host(sequence: &Sequence<'_>, buffer: usize) -> bool {
    sequence.actions.iter().any(|action| match action {
        Action::Write { buffer: to, .. } | Action::Copy { to: (to, _), .. } => *to == buffer,
        Action::Dispatch(_) | Action::Read { .. } => false,
    })
}

/// Names the arguments of a submission.
pub(super) fn name_arguments(gpu: &VirtualGpu, arguments: &Buffer) {
    gpu.watch_read_only_region("the arguments", arguments.va.0, arguments.len.0);
}

/// Names the writable segments of a program one by one, and what lies between them as its code.
fn name_program(gpu: &VirtualGpu, kernel: &str, image: &Image, code: &Code) {
    let base = code.va().0;
    for segment in image.segments().iter().filter(|segment| segment.writable) {
        gpu.watch_region(&format!("{} of {kernel}", segment.name), base + segment.offset, segment.bytes);
    }
    for (offset, bytes) in read_only(image.segments(), code.buffer().len.0) {
        gpu.watch_read_only_region(&format!("the code of {kernel}"), base + offset, bytes);
    }
}

/// Where an image of so many bytes is not writable, if these are its segments: offsets and lengths.
fn read_only(segments: &[Segment], image_bytes: u64) -> Vec<(u64, u64)> {
    let mut parts = Vec::new();
    let mut at = 0;
    for segment in segments.iter().filter(|segment| segment.writable) {
        parts.push((at, segment.offset.saturating_sub(at)));
        at = segment.offset + segment.bytes;
    }
    parts.push((at, image_bytes.saturating_sub(at)));
    parts.retain(|(_, bytes)| *bytes > 0);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments that are not writable, and what lies between segments, are told as one; nothing is told of nothing.
    #[test]
    fn what_is_not_writable_is_what_lies_between() {
        let of = |places: &[(u64, u64, bool)], image_bytes| {
            let segment = |(offset, bytes, writable): &(u64, u64, bool)| Segment {
                name: String::new(),
                offset: *offset,
                bytes: *bytes,
                executable: false,
                writable: *writable,
            };
            read_only(&places.iter().map(segment).collect::<Vec<_>>(), image_bytes)
        };
        assert_eq!(of(&[], 0), []);
        assert_eq!(of(&[], 256), [(0, 256)]);
        assert_eq!(of(&[(0, 256, false), (256, 64, false)], 320), [(0, 320)]);
        let all = [(0, 256, false), (256, 64, true), (0x180, 16, true), (0x190, 4, true), (0x200, 8, false)];
        assert_eq!(of(&all, 0x240), [(0, 256), (320, 64), (0x194, 0xac)]);
        assert_eq!(of(&[(0, 64, true)], 64), []);
    }
}
