//! What a kernel may touch, as the checking mode is told before it runs.
//!
//! Contract: the buffers of the arguments, those for text, the kernel's scratch, and what the program itself calls writable, may be read
//! and written; input buffers, the rest of the program (code, constants) and the argument segment with its dispatch packet
//! may be read. Nothing else is named: a store into the command ring, an indirect buffer or a fence is out of bounds. LDS
//! ends where the kernel's and the launch's end, and not with the unit that hardware allocates.

use super::{LaunchArgument, LaunchRequest, Resident, argument_label};
use zrt_device::{Buffer, Code};
use zrt_loader::{Image, Kernel};
use zrt_vgpu::VirtualGpu;

/// Where the first dynamic LDS may begin: the largest alignment of what a pointer to it points to.
const DYNAMIC_LDS_ALIGNMENT: u32 = 16;

/// Names what `resident` holds, and `scratch`.
pub(super) fn name(
    gpu: &VirtualGpu,
    request: &LaunchRequest<'_>,
    kernel: &Kernel,
    resident: &Resident,
    scratch: Option<&Buffer>,
) {
    for (argument, buffer) in resident.buffers.iter().enumerate() {
        let Some(buffer) = buffer else { continue };
        let label = argument_label(kernel, argument);
        match request.arguments.get(argument) {
            Some(LaunchArgument::In(_)) => gpu.watch_read_only_region(&label, buffer.va.0, buffer.len.0),
            _ => gpu.watch_region(&label, buffer.va.0, buffer.len.0),
        }
    }
    if let Some(scratch) = scratch {
        gpu.watch_region(&format!("the scratch of {}", kernel.name), scratch.va.0, scratch.len.0);
    }
    for buffer in resident.printing.buffers() {
        gpu.watch_region(buffer.label(), buffer.va.0, buffer.len.0);
    }
    if let Some(segment) = &resident.segment {
        gpu.watch_read_only_region("the arguments", segment.va.0, segment.len.0);
    }
    if let Some(code) = &resident.code {
        name_program(gpu, &kernel.name, request.program.image(), code);
        let lds_bytes = match request.geometry.dynamic_lds_bytes {
            0 => kernel.lds_bytes,
            dynamic => kernel.lds_bytes.next_multiple_of(DYNAMIC_LDS_ALIGNMENT).saturating_add(dynamic),
        };
        gpu.watch_lds(code.va().0 + kernel.entry_offset, lds_bytes);
    }
}

/// Names the writable segments of a program one by one, and what lies between them as its code.
fn name_program(gpu: &VirtualGpu, kernel: &str, image: &Image, code: &Code) {
    let base = code.va().0;
    let read_only = |start: u64, end: u64| {
        if start < end {
            gpu.watch_read_only_region(&format!("the code of {kernel}"), base + start, end - start);
        }
    };
    let mut at = 0;
    for segment in image.segments().iter().filter(|segment| segment.writable) {
        read_only(at, segment.offset);
        gpu.watch_region(&format!("{} of {kernel}", segment.name), base + segment.offset, segment.bytes);
        at = segment.offset + segment.bytes;
    }
    read_only(at, code.buffer().len.0);
}
