//! What a kernel may touch, as the checking mode is told before it runs.
//!
//! Contract: the buffers of the arguments, the kernel's scratch, and what the program itself calls writable, may be read
//! and written; the rest of the program (code, constants) and the argument segment with its dispatch packet may be read.
//! Nothing else is named: a store into the command ring, an indirect buffer or a fence is out of bounds.

use super::{Resident, argument_label};
use zrt_device::{Buffer, Code};
use zrt_loader::{Image, Kernel};
use zrt_vgpu::VirtualGpu;

/// Names what `resident` holds, and `scratch`.
pub(super) fn name(
    gpu: &VirtualGpu,
    kernel: &Kernel,
    image: &Image,
    resident: &Resident,
    scratch: Option<&Buffer>,
) {
    for (argument, buffer) in resident.buffers.iter().enumerate() {
        if let Some(buffer) = buffer {
            gpu.watch_region(&argument_label(kernel, argument), buffer.va.0, buffer.len.0);
        }
    }
    if let Some(scratch) = scratch {
        gpu.watch_region(&format!("the scratch of {}", kernel.name), scratch.va.0, scratch.len.0);
    }
    if let Some(segment) = &resident.segment {
        gpu.watch_read_only_region("the arguments", segment.va.0, segment.len.0);
    }
    if let Some(code) = &resident.code {
        name_program(gpu, &kernel.name, image, code);
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
