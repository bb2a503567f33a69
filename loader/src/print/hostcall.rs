//! Hostcalls: requests that waves leave in packets, waiting for the answer.
//!
//! Contract: [`HostcallLayout`] defines the layout; [`Services::answer`] answers one lane's request. Requests are
//! untrusted: messages are bounded by [`MESSAGE_BYTES_MAX`] and [`PENDING_BYTES_MAX`]. The owner of the memory
//! walks the packets. The host serves only text; host function calls, memory requests and sanitizer reports are
//! refused by name.
//!
//! Sources: AMD's device libraries, `__ockl_hostcall_internal` and `__ockl_hsa_signal_add` as in ROCm 7.0.2, and
//! the runtime's `devhostcall.hpp`, `devhcmessages.cpp`. Later development versions of the libraries use phases
//! instead of the two stacks. A code object does not say which version it was linked with; the later protocol is
//! not supported.
//!
//! A wave takes a packet from the free stack, fills its header and a slot for each lane, pushes it on the ready
//! stack, adds 1 to the doorbell signal, and waits until the host clears bit 0 of the header's control word. Then
//! it returns the packet. Stack pointers consist of an index and, above it, a tag that changes with each use. The
//! signal has no mailbox here, so no interrupt is sent (`s_sendmsg`): the host polls.

use super::format::Values;
use super::{PrintError, Printed};
use thiserror::Error;
use zrt_mem::GpuVa;

/// Lanes that have a slot.
pub const SLOTS: usize = 64;
/// Quadwords of a slot.
pub const SLOT_QUADWORDS: usize = 8;
/// Length of a slot in bytes.
pub const SLOT_BYTES: usize = SLOT_QUADWORDS * 8;
/// Offset of the ready stack: a tagged pointer, 0 if the stack is empty.
pub const READY_STACK_OFFSET: usize = 32;
/// Offsets in a header: the next packet on the stack, the requesting lanes, the service, and the 32-bit control
/// word.
pub const NEXT_OFFSET: usize = 0;
/// See [`NEXT_OFFSET`].
pub const LANES_OFFSET: usize = 8;
/// See [`NEXT_OFFSET`].
pub const SERVICE_OFFSET: usize = 16;
/// See [`NEXT_OFFSET`].
pub const CONTROL_OFFSET: usize = 20;
/// Most waves, and so packets, that a launch can have.
pub const PACKETS_MAX: u64 = 1 << 14;
/// Longest message in bytes.
pub const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Most bytes of all incomplete messages.
pub const PENDING_BYTES_MAX: usize = 64 << 20;

const HEADERS_POINTER_OFFSET: usize = 0;
const PAYLOADS_POINTER_OFFSET: usize = 8;
const DOORBELL_OFFSET: usize = 16;
const FREE_STACK_OFFSET: usize = 24;
const INDEX_MASK_OFFSET: usize = 40;
/// The doorbell: an `amd_signal_t` of 64 bytes (kind, value, mailbox, event), aligned to 64 bytes.
const SIGNAL_OFFSET: usize = 64;
/// `AMD_SIGNAL_KIND_USER`, the first quadword of a signal.
const SIGNAL_KIND_USER: u64 = 1;
const HEADERS_OFFSET: usize = 128;
const HEADER_BYTES: usize = 24;
const PAYLOAD_BYTES: usize = SLOTS * SLOT_BYTES;
const PAYLOAD_ALIGNMENT: usize = 64;

/// Why a request cannot be answered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HostcallError {
    /// Service 1: a call of a host function.
    #[error("the kernel requests a call of the host function at {address:#x}, which is not supported")]
    FunctionCall {
        /// As passed by the kernel.
        address: u64,
    },
    /// Service 3: device memory.
    #[error(
        "the kernel asks for {bytes} bytes of device memory (malloc, or new), which it cannot get here: allocate \
         before the launch and give it a buffer"
    )]
    Memory {
        /// As passed by the kernel; 0 if it frees memory.
        bytes: u64,
    },
    /// Service 4: the address sanitizer.
    #[error(
        "the kernel reports to the address sanitizer, which is not supported: compile without -fsanitize=address"
    )]
    Sanitizer,
    /// Any other service.
    #[error("the kernel requests the unknown host service {service}")]
    Service {
        /// Its number.
        service: u32,
    },
    /// A part of a message that was never begun.
    #[error("the kernel continues the message {message}, which it has not begun")]
    Message {
        /// Its number.
        message: u64,
    },
    /// A message is too long, or there are too many at once.
    #[error("the messages that the kernel has begun take more than {bytes} bytes")]
    TooLong {
        /// The limit.
        bytes: usize,
    },
    /// The ready stack is damaged.
    #[error("the kernel has damaged the hostcall buffer: {what}")]
    Damaged {
        /// What is wrong.
        what: String,
    },
    /// The message has no text.
    #[error(transparent)]
    Print(#[from] PrintError),
}

/// The layout of a hostcall buffer; offsets in bytes from its start, which is aligned to 64 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostcallLayout {
    packets: usize,
}

impl HostcallLayout {
    /// A layout for `waves` concurrent waves. Each may hold one packet, and none checks whether one is left. `None`
    /// for more than [`PACKETS_MAX`].
    pub fn for_waves(waves: u64) -> Option<HostcallLayout> {
        let packets = waves.max(2).checked_next_power_of_two().filter(|packets| *packets <= PACKETS_MAX)?;
        Some(HostcallLayout { packets: packets as usize })
    }

    /// Number of packets: a power of two, at least 2.
    pub fn packets(&self) -> usize {
        self.packets
    }

    /// Length of the buffer.
    pub fn bytes(&self) -> usize {
        self.payloads_offset() + self.packets * PAYLOAD_BYTES
    }

    /// Offset of the header that a tagged pointer refers to.
    pub fn header_offset(&self, pointer: u64) -> usize {
        HEADERS_OFFSET + self.index(pointer) * HEADER_BYTES
    }

    /// Offset of a lane's slot (the lane is below [`SLOTS`]) in the packet that a tagged pointer refers to.
    pub fn slot_offset(&self, pointer: u64, lane: usize) -> usize {
        self.payloads_offset() + self.index(pointer) * PAYLOAD_BYTES + lane % SLOTS * SLOT_BYTES
    }

    /// Whether an offset lies in a link of the stacks. A popping wave may read the link of a packet that another
    /// wave has meanwhile taken and pushed again, by a plain store. Its exchange then fails, because the tag has
    /// changed.
    pub fn is_link(&self, offset: u64) -> bool {
        let headers = HEADERS_OFFSET as u64..(HEADERS_OFFSET + self.packets * HEADER_BYTES) as u64;
        headers.contains(&offset) && (offset - headers.start) % (HEADER_BYTES as u64) < LANES_OFFSET as u64
    }

    /// The initial bytes of a buffer at `va`, before the launch; the kernel writes the rest.
    pub fn initial(&self, va: GpuVa) -> Vec<u8> {
        let mut bytes = vec![0; self.payloads_offset()];
        let mut put = |offset: usize, value: u64| {
            if let Some(place) = bytes.get_mut(offset..offset + 8) {
                place.copy_from_slice(&value.to_le_bytes());
            }
        };
        put(HEADERS_POINTER_OFFSET, va.0 + HEADERS_OFFSET as u64);
        put(PAYLOADS_POINTER_OFFSET, va.0 + self.payloads_offset() as u64);
        put(DOORBELL_OFFSET, va.0 + SIGNAL_OFFSET as u64);
        put(INDEX_MASK_OFFSET, self.packets as u64 - 1);
        put(SIGNAL_OFFSET, SIGNAL_KIND_USER);
        // 0 means no packet, so the packet of index 0 begins with tag 1.
        let pointer = |index: usize| if index == 0 { self.packets as u64 } else { index as u64 };
        for index in 1..self.packets {
            put(self.header_offset(index as u64) + NEXT_OFFSET, pointer(index - 1));
        }
        put(FREE_STACK_OFFSET, pointer(self.packets - 1));
        bytes
    }

    fn index(&self, pointer: u64) -> usize {
        (pointer & (self.packets as u64 - 1)) as usize
    }

    fn payloads_offset(&self) -> usize {
        (HEADERS_OFFSET + self.packets * HEADER_BYTES).next_multiple_of(PAYLOAD_ALIGNMENT)
    }
}

/// The host's services for kernels: their messages, until they are complete.
#[derive(Debug, Default)]
pub struct Services {
    /// By number; `None` for a free number.
    messages: Vec<Option<Vec<u8>>>,
    free: Vec<usize>,
    pending_bytes: usize,
}

impl Services {
    /// Answers the request of one lane. Returns the new content of its slot's first two quadwords. Text goes to
    /// `printed`.
    pub fn answer(
        &mut self,
        service: u32,
        slot: [u64; SLOT_QUADWORDS],
        printed: &mut Printed,
    ) -> Result<[u64; 2], HostcallError> {
        match service {
            1 => Err(HostcallError::FunctionCall { address: slot[0] }),
            2 => self.message(slot, printed),
            3 => Err(HostcallError::Memory { bytes: slot[1] }),
            4 => Err(HostcallError::Sanitizer),
            _ => Err(HostcallError::Service { service }),
        }
    }

    /// Handles a part of a message. In the first quadword, bit 0 begins a message, bit 1 ends it, bits 7:5 count
    /// the quadwords that follow, and bits from 8 on are the number that answered the beginning.
    fn message(
        &mut self,
        slot: [u64; SLOT_QUADWORDS],
        printed: &mut Printed,
    ) -> Result<[u64; 2], HostcallError> {
        const BEGINS: u64 = 1;
        const ENDS: u64 = 2;
        const NUMBER_SHIFT: u32 = 8;
        let mut part = slot[0];
        if part & BEGINS != 0 {
            let number = self.free.pop().unwrap_or_else(|| {
                self.messages.push(None);
                self.messages.len() - 1
            });
            self.messages[number] = Some(Vec::new());
            part = part & 0xFF & !BEGINS | (number as u64) << NUMBER_SHIFT;
        }
        let message = part >> NUMBER_SHIFT;
        let number = usize::try_from(message).map_err(|_| HostcallError::Message { message })?;
        // A message in progress takes memory of its own.
        let places_bytes = self.messages.len() * size_of::<Option<Vec<u8>>>();
        let place = self.messages.get_mut(number).ok_or(HostcallError::Message { message })?;
        let bytes = place.as_mut().ok_or(HostcallError::Message { message })?;
        let count = (part >> 5 & 7) as usize;
        for quadword in &slot[1..=count] {
            bytes.extend_from_slice(&quadword.to_le_bytes());
        }
        self.pending_bytes += 8 * count;
        if bytes.len() > MESSAGE_BYTES_MAX {
            return Err(HostcallError::TooLong { bytes: MESSAGE_BYTES_MAX });
        }
        if self.pending_bytes + places_bytes > PENDING_BYTES_MAX {
            return Err(HostcallError::TooLong { bytes: PENDING_BYTES_MAX });
        }
        if part & ENDS == 0 {
            return Ok([part, slot[1]]);
        }
        let bytes = place.take().unwrap_or_default();
        self.pending_bytes -= bytes.len();
        self.free.push(number);
        let (control, content) = bytes.split_first_chunk().unwrap_or((&[0; 8], &[]));
        // Bit 0: standard error. Any other bit means no text, and the answer is that of a failed printf.
        let result = match u64::from_le_bytes(*control) {
            control @ (0 | 1) => {
                let mut values = Values::Slots(content);
                let format = values.string().unwrap_or_default();
                printed.message(format, values, control == 1)? as u64
            }
            _ => u64::MAX,
        };
        Ok([result, slot[1]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINT: u32 = 2;

    fn quadword(bytes: &[u8], offset: usize) -> u64 {
        u64::from_le_bytes(bytes[offset..offset + 8].try_into().unwrap())
    }

    /// A slot: its first quadword, then text.
    fn slot(first: u64, text: &[u8]) -> [u64; SLOT_QUADWORDS] {
        let mut bytes = [0; SLOT_BYTES];
        bytes[8..8 + text.len()].copy_from_slice(text);
        bytes[..8].copy_from_slice(&first.to_le_bytes());
        core::array::from_fn(|index| quadword(&bytes, 8 * index))
    }

    /// What the device libraries walk: every packet is on the free stack once, and every pointer is inside the
    /// buffer.
    #[test]
    fn the_initial_buffer_is_what_devices_walk() {
        for waves in [0, 2, 3, 8, 2048] {
            let layout = HostcallLayout::for_waves(waves).unwrap();
            let va = 0x7000_0000;
            let bytes = layout.initial(GpuVa(va));
            let (mask, payloads) = (quadword(&bytes, 40), quadword(&bytes, 8));
            assert_eq!(quadword(&bytes, 32), 0, "nothing is ready");
            assert_eq!(
                quadword(&bytes, quadword(&bytes, 16) as usize - va as usize + 16),
                0,
                "the mailbox is null"
            );
            assert_eq!(payloads % 64, 0);
            let mut seen = vec![false; layout.packets()];
            let mut pointer = quadword(&bytes, 24);
            while pointer != 0 {
                let index = (pointer & mask) as usize;
                assert!(!std::mem::replace(&mut seen[index], true), "packet {index} is there twice");
                let header = quadword(&bytes, 0) as usize - va as usize + 24 * index;
                assert_eq!(header, layout.header_offset(pointer));
                let end = payloads - va + 4096 * (index as u64 + 1);
                assert!(end <= layout.bytes() as u64);
                assert_eq!(layout.slot_offset(pointer, 63) as u64 + 64, end);
                assert!(layout.is_link(header as u64) && !layout.is_link(header as u64 + 8));
                pointer = quadword(&bytes, header);
            }
            assert!(seen.into_iter().all(|seen| seen) && layout.packets() as u64 >= waves);
        }
        assert_eq!(HostcallLayout::for_waves(PACKETS_MAX + 1), None);
        assert_eq!(HostcallLayout::for_waves(u64::MAX), None);
    }

    /// Lengths and places by the layout of AMD's runtime: 128 bytes, headers of 24 bytes, then, at a multiple of 64,
    /// payloads of 64 slots with 64 bytes.
    #[test]
    fn a_buffer_is_as_long_as_its_packets() {
        for (waves, packets, payloads, bytes) in [
            (0, 2, 192, 192 + 2 * 4096),
            (2, 2, 192, 192 + 2 * 4096),
            (3, 4, 256, 256 + 4 * 4096),
            (8, 8, 320, 320 + 8 * 4096),
            (9, 16, 512, 512 + 16 * 4096),
            (16_384, 16_384, 393_344, 393_344 + 16_384 * 4096),
        ] {
            let layout = HostcallLayout::for_waves(waves).unwrap();
            assert_eq!((layout.packets(), layout.bytes()), (packets, bytes), "{waves} waves");
            assert_eq!(layout.slot_offset(0, 0), payloads, "{waves} waves");
            assert_eq!(
                layout.slot_offset(packets as u64 + 1, 2),
                payloads + 4096 + 128,
                "the tag is no index"
            );
            let headers_end = 128 + 24 * packets as u64;
            let links = (0..headers_end + 48).filter(|offset| layout.is_link(*offset));
            let expected = (0..packets as u64).flat_map(|index| 128 + 24 * index..136 + 24 * index);
            assert!(links.eq(expected), "{waves} waves");
        }
    }

    #[test]
    fn services_that_are_not_offered_are_refused_by_name() {
        let slot = [0x1111, 0x2222, 3, 4, 5, 6, 7, 8];
        for (service, error, text) in [
            (
                1,
                HostcallError::FunctionCall { address: 0x1111 },
                "the kernel requests a call of the host function at 0x1111, which is not supported",
            ),
            (
                3,
                HostcallError::Memory { bytes: 0x2222 },
                "the kernel asks for 8738 bytes of device memory (malloc, or new), which it cannot get here: allocate \
                 before the launch and give it a buffer",
            ),
            (
                4,
                HostcallError::Sanitizer,
                "the kernel reports to the address sanitizer, which is not supported: compile without \
                 -fsanitize=address",
            ),
            (0, HostcallError::Service { service: 0 }, "the kernel requests the unknown host service 0"),
            (5, HostcallError::Service { service: 5 }, "the kernel requests the unknown host service 5"),
        ] {
            let answer = Services::default().answer(service, slot, &mut Printed::default());
            assert_eq!((error.to_string().as_str(), answer), (text, Err(error)), "service {service}");
        }
    }

    #[test]
    fn messages_of_several_lanes_interleave() {
        let (mut services, mut printed) = (Services::default(), Printed::default());
        let mut ask =
            |first, text: &[u8]| services.answer(PRINT, slot(first, text), &mut printed).unwrap()[0];
        let begin = 1 | 1 << 5;
        let [one, two] = [ask(begin, &[0; 8]), ask(begin, &[1, 0, 0, 0, 0, 0, 0, 0])];
        assert!(one != two && one & 1 == 0, "the answer is what goes on with the message");
        let with_length = |message: u64, count: u64, ends: u64| message & !0xFF | count << 5 | ends;
        ask(with_length(one, 1, 0), b"one %d\n\0");
        assert_eq!(ask(with_length(two, 1, 2), b"two\n\0\0\0\0"), 4, "printf returns the length");
        assert_eq!(ask(with_length(one, 1, 2), &7_u64.to_le_bytes()), 6);
        assert_eq!((printed.text(), printed.complaint()), (&b"two\none 7\n"[..], Some(&b"two\n"[..])));
        // A number is free again; another control word has no text.
        let mut ask =
            |first, text: &[u8]| services.answer(PRINT, slot(first, text), &mut printed).unwrap()[0];
        assert!([one >> 8, two >> 8].contains(&(ask(begin, &[0; 8]) >> 8)));
        assert_eq!(ask(1 | 2 | 1 << 5, &[2, 0, 0, 0, 0, 0, 0, 0]), u64::MAX);
    }

    #[test]
    fn what_is_begun_is_bounded() {
        let (mut services, mut printed) = (Services::default(), Printed::default());
        let mut ask = |first| services.answer(PRINT, slot(first, &[b'x'; 56]), &mut printed);
        let message = ask(1).unwrap()[0];
        let parts = (0..).take_while(|_| ask(message & !0xFF | 7 << 5).is_ok()).count();
        assert_eq!(parts, MESSAGE_BYTES_MAX / 56);
        // Messages that never end: each takes its 56 bytes, and with its place in the list no more than 56 again.
        let mut services = Services::default();
        let mut ask = |first| services.answer(PRINT, slot(first, &[b'x'; 56]), &mut printed);
        let begun = (0..).take_while(|_| ask(1 | 7 << 5).is_ok()).count();
        assert!(((64 << 20) / 112..(64 << 20) / 56).contains(&begun), "{begun}");
        let error = services.answer(PRINT, slot(!1, &[]), &mut printed).unwrap_err();
        assert_eq!(error, HostcallError::Message { message: u64::MAX >> 8 });
    }

    #[test]
    fn a_message_has_a_mebibyte_at_most() {
        let (mut services, mut printed) = (Services::default(), Printed::default());
        let mut ask = |first| services.answer(PRINT, slot(first, &[0; 56]), &mut printed);
        let message = ask(1).unwrap()[0];
        // 131,072 quadwords.
        (0..18_724).for_each(|_| assert!(ask(message & !0xFF | 7 << 5).is_ok()));
        assert!(ask(message & !0xFF | 4 << 5).is_ok());
        assert_eq!(ask(message & !0xFF | 1 << 5), Err(HostcallError::TooLong { bytes: 1 << 20 }));
    }

    /// What other messages take is stated instead of sent.
    #[test]
    fn messages_that_are_not_complete_have_64_mebibytes_at_most() {
        let all = 64 << 20;
        let place = size_of::<Option<Vec<u8>>>();
        for (others, expected) in [
            (all - place - 56, Ok([0, 0x7878_7878_7878_7878])),
            (all - place - 55, Err(HostcallError::TooLong { bytes: all })),
        ] {
            let mut services = Services { pending_bytes: others, ..Services::default() };
            let answer = services.answer(PRINT, slot(1 | 7 << 5, &[b'x'; 56]), &mut Printed::default());
            assert_eq!(
                answer.map(|[part, second]| [part >> 8, second]),
                expected,
                "{others} bytes of others"
            );
        }
    }

    #[test]
    fn complete_messages_take_no_space() {
        let (mut services, mut printed) = (Services::default(), Printed::default());
        for _ in 0..3 {
            let begun = services.answer(PRINT, slot(1 | 1 << 5, &[0; 8]), &mut printed).unwrap()[0];
            let end = services.answer(PRINT, slot(begun & !0xFF | 1 << 5 | 2, b"text\n\0\0\0"), &mut printed);
            assert_eq!(end.unwrap()[0], 5);
        }
        assert_eq!((services.pending_bytes, services.messages.len()), (0, 1));
    }
}
