//! An allocation for which there is no room, and what would help.
//!
//! Contract: one sentence that names the allocation, what the whole session needs of that memory, and what was free.

use thiserror::Error;
use zrt_mem::{ByteLen, Heap};

/// No room for an allocation.
#[derive(Debug, Error)]
#[error("there is no room in {} for `{allocation}` of {len:?}: {}", self.memory_name(), self.advice())]
pub struct OutOfMemory {
    /// The allocation's name in plans.
    pub allocation: String,
    /// Its length.
    pub len: ByteLen,
    /// The heap.
    pub heap: Heap,
    /// Whether the heap is in VRAM on this machine: not all of those that the host shares are where the BAR is small.
    pub is_vram: bool,
    /// What the session needs of this memory, VRAM or host memory.
    pub planned: ByteLen,
    /// Free VRAM, as the driver reported it before the first allocation.
    pub available: Option<ByteLen>,
    /// What the driver said.
    pub source: zrt_device::DeviceError,
}

impl OutOfMemory {
    fn advice(&self) -> String {
        let needed = format!("the session needs {:?} of it", self.planned);
        if !self.is_vram {
            let less = match self.heap {
                Heap::HostCached => "leave more in VRAM",
                _ => "a shorter context or fewer slots need less",
            };
            return format!(
                "{needed}, and drivers lend half of the host's memory by default (ttm.pages_limit); {less}"
            );
        }
        let free = self.available.map(|bytes| format!(", and {bytes:?} are free")).unwrap_or_default();
        format!(
            "{needed}{free}; a limit (--vram) keeps the last layers in host memory, and a shorter context or fewer slots \
             need less"
        )
    }

    fn memory_name(&self) -> &'static str {
        if self.is_vram { "VRAM" } else { "host memory that the device may map" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(heap: Heap, is_vram: bool, available: Option<u64>) -> String {
        let error = OutOfMemory {
            allocation: "rope".into(),
            len: ByteLen(4096),
            heap,
            is_vram,
            planned: ByteLen(81920),
            available: available.map(ByteLen),
            source: zrt_device::DeviceError::Lost,
        };
        error.to_string()
    }

    #[test]
    fn each_memory_has_its_own_advice() {
        let vram = "there is no room in VRAM for `rope` of 4096 B: the session needs 81920 B of it";
        let limit = "a limit (--vram) keeps the last layers in host memory, and a shorter context or fewer slots need less";
        assert_eq!(said(Heap::DeviceLocal, true, Some(512)), format!("{vram}, and 512 B are free; {limit}"));
        assert_eq!(said(Heap::HostVisible, true, None), format!("{vram}; {limit}"));
        let host = "there is no room in host memory that the device may map for `rope` of 4096 B: the session needs \
                    81920 B of it, and drivers lend half of the host's memory by default (ttm.pages_limit)";
        assert_eq!(said(Heap::HostCached, false, Some(512)), format!("{host}; leave more in VRAM"));
        let shorter = "a shorter context or fewer slots need less";
        assert_eq!(said(Heap::HostVisible, false, None), format!("{host}; {shorter}"));
    }
}
