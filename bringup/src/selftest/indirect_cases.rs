//! Cases of indirect buffers that hold nothing but a WRITE_DATA: the jump alone, before anything is launched.

use super::bench::{Bench, Failure};
use zrt_mem::{ByteLen, Heap};
use zrt_pm4::Writer;
use zrt_pm4::packet::{indirect_buffer, write_data};

/// Length of the buffer; its packet has five dwords.
const BUFFER_BYTES: u64 = 4096;
/// What its packet writes.
const VALUE: u32 = 0x1b1b_0001;

pub(super) fn in_system_memory(bench: &mut Bench<'_>) -> Result<String, Failure> {
    jump(bench, Heap::Host)?;
    Ok("one packet of an indirect buffer in system memory was executed, and the ring went on".into())
}

pub(super) fn in_vram(bench: &mut Bench<'_>) -> Result<String, Failure> {
    jump(bench, Heap::HostVisible)?;
    Ok("one packet of an indirect buffer in VRAM was executed, and the ring went on".into())
}

fn jump(bench: &mut Bench<'_>, heap: Heap) -> Result<(), Failure> {
    let mut words = [0; 8];
    let mut writer = Writer::new(&mut words);
    writer.write_data(&write_data::Repr::memory(bench.va(0).0, &[VALUE]))?;
    let used = writer.len();
    let len = ByteLen(BUFFER_BYTES);
    let buffer = bench.device.allocate_executable(heap, len, "self-test indirect buffer")?;
    let bytes: Vec<u8> = words[..used].iter().flat_map(|word| word.to_le_bytes()).collect();
    bench.device.upload(&buffer, ByteLen(0), &bytes)?;
    let after = bench.va(64).0;
    bench.submit(|writer| {
        writer.acquire_everything()?;
        writer.indirect_buffer(&indirect_buffer::Repr::call(buffer.va.0, used as u32))?;
        writer.write_data(&write_data::Repr::memory(after, &[VALUE + 1]))
    })?;
    bench.expect("the dword that the indirect buffer writes", 0, VALUE)?;
    bench.expect("the dword that the ring writes behind it", 64, VALUE + 1)
}
