//! What is known about a CREATE_QUEUE that the driver refused as invalid.
//!
//! Contract: made only after a refusal. The driver compares every buffer with what it computed, and its errno does
//! not say which one it refused (hardware reference §2.6). So the report lists everything that was sent next to
//! everything that the node exports, and next to the result of our own formula. Only the kernel log names the
//! buffer, and only if debug messages are on: the checks of `kfd_queue.c` report with `pr_debug`.

use crate::errno::Errno;
use crate::ioctl::CreateQueue;
use crate::queue_size::QueueBufferSizes;
use crate::topology::{GpuNode, GpuProperties};
use core::fmt;
use zrt_mem::ByteLen;

/// A refused queue: what was sent, what the node exports.
#[derive(Clone, Debug)]
pub struct QueueRefusal {
    /// The request.
    pub request: CreateQueue,
    /// The sizes of its buffers.
    pub sizes: QueueBufferSizes,
    /// Length of the page with both pointers.
    pub pointer_page_len: ByteLen,
    /// Number of the node's folder in the topology.
    pub node: u32,
    /// The node's `properties` file.
    pub properties: GpuProperties,
    /// The result of our formula for this node; `None` if a size does not fit 32 bits.
    pub computed: Option<QueueBufferSizes>,
}

impl QueueRefusal {
    /// Puts together all that is known about the refusal of `request`.
    pub(crate) fn of(
        request: &CreateQueue,
        sizes: QueueBufferSizes,
        pointer_page_len: ByteLen,
        node: &GpuNode,
    ) -> QueueRefusal {
        QueueRefusal {
            request: *request,
            sizes,
            pointer_page_len,
            node: node.node,
            properties: node.properties.clone(),
            computed: QueueBufferSizes::computed(node.compute_units(), node.properties.num_xcc),
        }
    }

    /// Lists the sizes on which node and formula disagree: the first thing to check.
    fn write_disagreements(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(computed) = self.computed else { return Ok(()) };
        let pairs = [
            ("cwsr_size", self.properties.cwsr_bytes, computed.save_area_bytes),
            ("ctl_stack_size", self.properties.control_stack_bytes, computed.control_stack_bytes),
        ];
        for (name, exported, formula) in pairs {
            if let Some(exported) = exported.filter(|exported| *exported != formula) {
                write!(formatter, "; {name} is exported as {exported} and computed as {formula}")?;
            }
        }
        Ok(())
    }
}

/// A number, or a note that the kernel does not export it.
fn or_absent(value: Option<u32>) -> String {
    value.map_or_else(|| "absent".to_owned(), |value| value.to_string())
}

impl fmt::Display for QueueRefusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let QueueRefusal { request, sizes, properties, .. } = self;
        write!(
            formatter,
            "CREATE_QUEUE failed with {}: a buffer is not what the driver computed; sent for gpu_id {}: ring {} + {} B, \
             pointer page of {} B with write pointer {} and read pointer {}, end-of-pipe buffer {} + {} B, save area {} \
             + {} B, cwsr_size {}, ctl_stack_size {}",
            Errno::EINVAL,
            request.gpu_id,
            request.ring_va,
            request.ring_bytes,
            self.pointer_page_len.0,
            request.write_pointer_va,
            request.read_pointer_va,
            request.eop_va,
            request.eop_bytes,
            request.save_area_va,
            sizes.save_area_total.0,
            request.save_area_bytes,
            request.control_stack_bytes,
        )?;
        write!(
            formatter,
            "; node {} exports cwsr_size {}, ctl_stack_size {}, simd_count {}, simd_per_cu {}, max_waves_per_simd {}, \
             array_count {}, num_xcc {}, gfx_target_version {}",
            self.node,
            or_absent(properties.cwsr_bytes),
            or_absent(properties.control_stack_bytes),
            properties.simd_count,
            properties.simd_per_cu,
            properties.max_waves_per_simd,
            properties.array_count,
            properties.num_xcc,
            properties.gfx_target_version,
        )?;
        self.write_disagreements(formatter)?;
        formatter.write_str(
            "; to learn which buffer it was, run as root `echo 'file kfd_queue.c +p' > \
             /sys/kernel/debug/dynamic_debug/control`, try again, and look at `dmesg | tail`; report that line with \
             `uname -r` and this text",
        )
    }
}
