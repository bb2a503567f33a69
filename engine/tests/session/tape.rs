//! The megakernel's tape of a model of two layers, as its memory holds it.

use crate::made::Made;
use crate::played::{Played, device, options};
use zerocopy::IntoBytes;
use zrt_engine::gguf::TensorKind;
use zrt_engine::session::{SessionOptions, waits};
use zrt_mem::ByteLen;
use zrt_protocol::{TapeEntry, TapeWait};

/// Numbers of bodies (protocol/src/tape.rs).
const BOUNDARY: u32 = 0;
const EMBED: u32 = 1;
const MATMUL: u32 = 8;
const NORM: u32 = 15;
const ROPE: u32 = 17;
const KV_WRITE: u32 = 19;
const ATTENTION: u32 = 22;
const SWIGLU: u32 = 25;
const SAMPLE: u32 = 27;
/// Numbers of row sets (protocol/src/params.rs).
const ONCE: u32 = 0;
const EACH: u32 = 1;
const EACH_OUTPUT: u32 = 2;
const ALL: u32 = 3;
const ALL_OUTPUTS: u32 = 4;

/// Tasks from the second on: body, rows, units, what it waits for, the group of its first unit of five, pieces of its
/// weights.
///
/// A unit of a product makes 128 rows, and a piece has 4 of them. A task begins in the group after the last one of the
/// task before, where the number of units is known: those of each row are not.
type Line = (u32, u32, u32, &'static [usize], u32, u32);
const LINES: [Line; 33] = [
    (EMBED, EACH, 1, &[], 0, 0),
    (NORM, EACH, 1, &[1], 0, 0),
    (BOUNDARY, ONCE, 1, &[2], 0, 0),
    (MATMUL, ALL, 2, &[2], 1, 64),
    (MATMUL, ALL, 1, &[2], 3, 32),
    (MATMUL, ALL, 1, &[2], 4, 32),
    (ROPE, EACH, 1, &[4], 0, 0),
    (ROPE, EACH, 1, &[5], 0, 0),
    (KV_WRITE, EACH, 1, &[6, 8], 0, 0),
    (ATTENTION, EACH, 4, &[7, 9], 0, 0),
    (MATMUL, ALL, 2, &[10], 0, 64),
    (NORM, EACH, 1, &[11], 2, 0),
    (MATMUL, ALL, 2, &[12], 2, 64),
    (MATMUL, ALL, 2, &[12], 4, 64),
    (SWIGLU, EACH, 1, &[13, 14], 1, 0),
    (MATMUL, ALL, 2, &[15], 1, 64),
    // The second layer, which the boundary is before.
    (NORM, EACH, 1, &[16, 3], 3, 0),
    (MATMUL, ALL, 2, &[17], 3, 64),
    (MATMUL, ALL, 1, &[17], 0, 32),
    (MATMUL, ALL, 1, &[17], 1, 32),
    (ROPE, EACH, 1, &[18], 2, 0),
    (ROPE, EACH, 1, &[19], 2, 0),
    (KV_WRITE, EACH, 1, &[20, 22], 2, 0),
    (ATTENTION, EACH, 4, &[21, 23], 2, 0),
    (MATMUL, ALL, 2, &[24], 2, 64),
    (NORM, EACH, 1, &[25], 4, 0),
    (MATMUL, ALL, 2, &[26], 4, 64),
    (MATMUL, ALL, 2, &[26], 1, 64),
    (SWIGLU, EACH, 1, &[27, 28], 3, 0),
    (MATMUL, ALL, 2, &[29], 3, 64),
    (NORM, EACH_OUTPUT, 1, &[30], 0, 0),
    (MATMUL, ALL_OUTPUTS, 1, &[31], 0, 4),
    (SAMPLE, EACH_OUTPUT, 1, &[32], 1, 0),
];

/// A task's counter lies behind a line of 256 bytes; the rows of a task that is waited for are in the bits from 28 on.
#[test]
fn the_tape_of_two_layers_is_as_written_down() {
    let model = Made::new("llama", TensorKind::F32).with_layers(2).load().unwrap();
    let mut played = Played::on(device(), &model, &SessionOptions { groups: Some(5), ..options() });
    let allocations = played.session.resident().device.allocations();
    let parameters = allocations.iter().find(|(label, ..)| label == "parameters").unwrap().1.0;
    let parts = played.session.mega_parts().unwrap();
    let mut entries = vec![TapeEntry::default(); parts.tape.len.0 as usize / 64];
    parts.device.download(parts.tape, ByteLen(0), entries.as_mut_bytes()).unwrap();
    let end = entries.pop().unwrap();
    assert_eq!(end, TapeEntry { body: u32::MAX, ..TapeEntry::default() });
    assert_eq!(entries.len(), LINES.len());
    for (at, (entry, (body, _, _, waits, first_group, pieces))) in entries.iter().zip(LINES).enumerate() {
        let task = at as u32 + 1;
        let wait = |number: usize| {
            let Some(earlier) = waits.get(number) else { return TapeWait::default() };
            let (_, rows, units, ..) = LINES[earlier - 1];
            TapeWait { counter: 256 + 4 * *earlier as u32 + (rows << 28), units }
        };
        let expected = TapeEntry {
            body,
            task,
            parameters_va: parameters + 256 * u64::from(task),
            signal: 256 + 4 * task,
            wait: [wait(0), wait(1), wait(2)],
            piece_bytes: if pieces > 0 { 4096 } else { 0 },
            plane_va: entry.plane_va,
            pieces,
            first_group,
        };
        assert_eq!(*entry, expected);
    }
    let resident = played.session.resident();
    let expected: Vec<Vec<usize>> =
        std::iter::once(Vec::new()).chain(LINES.iter().map(|line| line.3.to_vec())).collect();
    assert_eq!(waits(&resident.plan, &resident.tasks), expected);
}
