//! What a kernel prints while it runs and when it has ended: the memory for it, and the host's side of hostcalls.
//!
//! Contract: a kernel that does not ask for a service costs nothing. [`Printing::serve`] polls once, without waiting: a
//! load if nothing is asked. It takes at most as many packets at a time as there are, and returns each to its wave. The
//! host stores only into packets that wait for it: it leaves the ready stack as it is, and knows from the tags of its
//! pointers what has been answered. So no atomic of the host meets one of the card. All of it is system memory
//! (`Heap::Host`), and on a card the kernel's atomics go over the bus. Not run on a card.

use super::report::Seen;
use zrt_bringup::Finding;
use zrt_device::{Buffer, Device, DeviceError, Heap};
use zrt_loader::print::hostcall::{
    CONTROL_OFFSET, HostcallError, HostcallLayout, LANES_OFFSET, NEXT_OFFSET, READY_STACK_OFFSET,
    SERVICE_OFFSET, SLOTS, Services,
};
use zrt_loader::print::{PrintError, PrintFormats, Printed, buffer};
use zrt_loader::{Geometry, Hidden, Kernel, ServiceAddresses};
use zrt_mem::{ByteLen, SharedView};

/// Waves that a compute unit can hold: 16 on each of its two vector units (hardware reference §1.2).
const WAVES_PER_COMPUTE_UNIT: u64 = 32;

/// Memory and state of what a launch may print.
#[derive(Default)]
pub(super) struct Printing {
    /// Buffer for [`buffer`].
    left: Option<Buffer>,
    calls: Option<Calls>,
    printed: Printed,
    /// Bytes of the text that have been reported.
    told: usize,
}

/// The hostcall buffer.
struct Calls {
    memory: Buffer,
    view: SharedView,
    layout: HostcallLayout,
    services: Services,
    /// The top of the ready stack at the last poll. Packets below it have been answered, and their links now belong to
    /// others.
    taken: u64,
}

impl Printing {
    /// Makes what the kernels that are launched ask for.
    pub fn new<'k>(
        device: &mut Device,
        launches: impl Iterator<Item = (&'k Kernel, &'k Geometry)>,
    ) -> Result<Printing, DeviceError> {
        let mut printing = Printing::default();
        let mut calls: Option<(&Kernel, u64)> = None;
        for (kernel, geometry) in launches {
            if kernel.asks_for(&Hidden::PrintfBuffer) && printing.left.is_none() {
                let len = ByteLen(buffer::BUFFER_BYTES as u64);
                printing.left = Some(device.allocate(Heap::Host, len, "the printf buffer")?);
            }
            if kernel.asks_for(&Hidden::HostcallBuffer) {
                let (_, most) = calls.unwrap_or((kernel, 0));
                // Launches that do not wait for each other run together.
                calls = Some((kernel, most.saturating_add(waves(kernel, geometry))));
            }
        }
        if let Some((kernel, waves)) = calls {
            let compute_units = u64::from(device.info().compute_units);
            let layout = layout(waves, compute_units).ok_or_else(|| DeviceError::KernelNeeds {
                kernel: kernel.name.clone(),
                reason: "the device runs more waves than the hostcall buffer holds",
            })?;
            let memory =
                device.allocate(Heap::Host, ByteLen(layout.bytes() as u64), "the hostcall buffer")?;
            device.upload(&memory, ByteLen(0), &layout.initial(memory.va))?;
            let view = memory.view()?.clone();
            printing.calls = Some(Calls { memory, view, layout, services: Services::default(), taken: 0 });
        }
        Ok(printing)
    }

    /// Makes the printf buffer ready for kernels.
    pub fn clear(&mut self, device: &mut Device) -> Result<(), DeviceError> {
        match &self.left {
            Some(memory) => device.upload(memory, ByteLen(0), &buffer::initial()),
            None => Ok(()),
        }
    }

    /// For the kernels' implicit arguments.
    pub fn addresses(&self) -> ServiceAddresses {
        ServiceAddresses {
            printf_buffer_va: self.left.as_ref().map_or(0, |memory| memory.va.0),
            hostcall_buffer_va: self.calls.as_ref().map_or(0, |calls| calls.memory.va.0),
        }
    }

    /// The buffers that the kernel may write.
    pub fn buffers(&self) -> impl Iterator<Item = &Buffer> {
        self.left.iter().chain(self.calls.iter().map(|calls| &calls.memory))
    }

    /// Whether waves wait for the host.
    pub fn has_calls(&self) -> bool {
        self.calls.is_some()
    }

    /// Answers what is asked now; returns whether anything was.
    pub fn serve(&mut self) -> Result<bool, HostcallError> {
        match &mut self.calls {
            Some(calls) => calls.serve(&mut self.printed),
            None => Ok(false),
        }
    }

    /// Whether a finding is a race that the protocol of hostcalls tolerates ([`HostcallLayout::is_link`]).
    pub fn permits(&self, finding: &Finding) -> bool {
        let offset = |calls: &Calls| finding.address?.checked_sub(calls.memory.va.0);
        finding.rule == "race"
            && self
                .calls
                .as_ref()
                .is_some_and(|calls| offset(calls).is_some_and(|at| calls.layout.is_link(at)))
    }

    /// Reads what the kernel left in the printf buffer, as far as it can be read; the inner result says why no further.
    pub fn finish(&mut self, formats: &PrintFormats) -> Result<Result<(), PrintError>, DeviceError> {
        let Some(memory) = &self.left else { return Ok(Ok(())) };
        let mut bytes = vec![0; buffer::BUFFER_BYTES];
        memory.view()?.read_bytes(0, &mut bytes);
        Ok(buffer::read(&bytes, formats, &mut self.printed))
    }

    /// Reports what was printed since the last time.
    pub fn tell_news(&mut self, observe: &mut dyn FnMut(Seen<'_>)) {
        let news = self.printed.text().get(self.told..).unwrap_or_default();
        if !news.is_empty() {
            observe(Seen::Printed(news));
            self.told += news.len();
        }
    }

    /// What has been printed.
    pub fn printed(&self) -> &Printed {
        &self.printed
    }

    /// The same, taken out.
    pub fn into_printed(self) -> Printed {
        self.printed
    }
}

impl Calls {
    fn serve(&mut self, printed: &mut Printed) -> Result<bool, HostcallError> {
        let top = self.view.load_u64_acquire(READY_STACK_OFFSET);
        let mut packets = Vec::new();
        let mut pointer = top;
        while pointer != self.taken {
            if packets.len() == self.layout.packets() {
                let what = format!("more than {} packets are ready", packets.len());
                return Err(HostcallError::Damaged { what });
            }
            packets.push(pointer);
            pointer = self.view.load_u64(self.layout.header_offset(pointer) + NEXT_OFFSET);
        }
        self.taken = top;
        let is_asked = !packets.is_empty();
        // The last one to arrive is on top.
        for pointer in packets.into_iter().rev() {
            self.packet(pointer, printed)?;
        }
        Ok(is_asked)
    }

    fn packet(&mut self, pointer: u64, printed: &mut Printed) -> Result<(), HostcallError> {
        let header = self.layout.header_offset(pointer);
        let lanes = self.view.load_u64(header + LANES_OFFSET);
        let service = self.view.load_u32(header + SERVICE_OFFSET);
        for lane in (0..SLOTS).filter(|lane| lanes >> lane & 1 == 1) {
            let slot = self.layout.slot_offset(pointer, lane);
            let request = core::array::from_fn(|index| self.view.load_u64(slot + 8 * index));
            let [first, second] = self.services.answer(service, request, printed)?;
            self.view.store_u64(slot, first);
            self.view.store_u64(slot + 8, second);
        }
        let control = self.view.load_u32(header + CONTROL_OFFSET);
        self.view.store_u32_release(header + CONTROL_OFFSET, control & !1);
        Ok(())
    }
}

/// Waves of a launch.
fn waves(kernel: &Kernel, geometry: &Geometry) -> u64 {
    let waves_per_group = geometry.group_items().div_ceil(kernel.wave_size.lanes().into());
    let groups = geometry.groups.iter().fold(1_u64, |groups, size| groups.saturating_mul((*size).into()));
    waves_per_group.saturating_mul(groups)
}

/// Room for the packets of as many of these waves as can run at a time; `None` if the layout cannot have that many
/// packets.
fn layout(waves: u64, compute_units: u64) -> Option<HostcallLayout> {
    HostcallLayout::for_waves(waves.min(compute_units.saturating_mul(WAVES_PER_COMPUTE_UNIT)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::tests::object::{NOTHING, Small, object};
    use zrt_bringup::{DeviceChoice, OpenOptions};
    use zrt_loader::print::hostcall::PACKETS_MAX;

    /// Fewer packets than waves would make waves wait for each other, so that is refused.
    #[test]
    fn every_resident_wave_has_a_packet() {
        let packets = |waves, units| layout(waves, units).map(|layout| layout.packets() as u64);
        assert_eq!(packets(3, 64), Some(4), "a power of two");
        assert_eq!(packets(u64::MAX, 64), Some(64 * WAVES_PER_COMPUTE_UNIT));
        let most = PACKETS_MAX / WAVES_PER_COMPUTE_UNIT;
        assert_eq!(packets(u64::MAX, most), Some(PACKETS_MAX));
        assert_eq!(packets(PACKETS_MAX + 1, most + 1), None);
        assert_eq!(packets(0, u64::MAX), Some(2), "at least");
    }

    /// What a launch of one wave with one implicit argument has, and its device, which must outlive it.
    fn printing_of(argument: &str) -> (Device, Printing) {
        let options = OpenOptions { self_test: false, ..OpenOptions::default() };
        let mut device = zrt_bringup::open(DeviceChoice::Virtual, &options).unwrap();
        let program = object(&[Small { name: "asks", arguments: &[argument], ..NOTHING }]);
        let geometry = Geometry::new([1; 3], [32, 1, 1]);
        let launches = [(&program.kernels()[0], &geometry)].into_iter();
        let printing = Printing::new(&mut device, launches).unwrap();
        (device, printing)
    }

    /// Headers have 24 bytes, from 128 on, and a link is in the first eight; there are two packets.
    #[test]
    fn only_races_on_links_are_the_protocols_own() {
        let (_device, printing) = printing_of("hidden_hostcall_buffer");
        let va = printing.calls.as_ref().unwrap().memory.va.0;
        let permits = |printing: &Printing, rule: &str, address| {
            printing.permits(&Finding { rule: rule.into(), address, ..Finding::default() })
        };
        let races =
            [0, 127, 128, 135, 136, 152, 176].map(|offset| permits(&printing, "race", Some(va + offset)));
        assert_eq!(races, [false, false, true, true, false, true, false]);
        assert!(!permits(&printing, "race", Some(va - 1)) && !permits(&printing, "race", None));
        assert!(!permits(&printing, "bounds", Some(va + 128)));
        assert!(!permits(&Printing::default(), "race", Some(va + 128)));
    }

    /// By the layout of AMD's runtime for two packets: the ready stack at 32, the header of index 1 at 128 + 24 (lanes
    /// at 8, service at 16, control word at 20), and its slots of 64 bytes at 192 + 4096. Lanes 0 and 2 each begin and
    /// end a message of two quadwords: standard output, and the format.
    #[test]
    fn a_poll_answers_what_is_ready_and_nothing_else() {
        let (_other_device, mut silent) = printing_of("hidden_none");
        let (_device, mut printing) = printing_of("hidden_hostcall_buffer");
        assert!(!silent.has_calls() && !silent.serve().unwrap());
        assert!(printing.has_calls() && !printing.serve().unwrap());
        let view = printing.calls.as_ref().unwrap().view.clone();
        let (header, slots) = (152, 4288);
        view.store_u64(header + 8, 0b101);
        view.store_u64(header + 16, 7 << 32 | 2);
        for lane in [0, 2] {
            let request = [2 << 5 | 2 | 1, 0, u64::from_le_bytes(*b"text\n\0\0\0"), 3, 4, 5, 6, 7];
            (0..8).for_each(|index| view.store_u64(slots + 64 * lane + 8 * index, request[index]));
        }
        view.store_u64(32, 1);
        let news = |printing: &mut Printing| {
            let mut news = Vec::new();
            printing.tell_news(&mut |seen| match seen {
                Seen::Printed(text) => news.push(text.to_vec()),
                Seen::Read { .. } => panic!("nothing was read"),
            });
            news
        };
        assert_eq!(news(&mut printing), [[0; 0]; 0]);
        assert!(printing.serve().unwrap());
        assert_eq!(printing.printed().text(), b"text\ntext\n");
        assert_eq!(news(&mut printing), [b"text\ntext\n"]);
        assert_eq!(news(&mut printing), [[0; 0]; 0]);
        assert_eq!(view.load_u64(header + 16), 6 << 32 | 2);
        let answered = [5, 0, u64::from_le_bytes(*b"text\n\0\0\0"), 3, 4, 5, 6, 7];
        let content: Vec<u64> = (0..24).map(|index| view.load_u64(slots + 8 * index)).collect();
        assert_eq!(content, [answered, [0; 8], answered].concat());
        assert!(!printing.serve().unwrap());
    }

    /// 33 work-items are two waves of 32 lanes, or one of 64, in each of 2 × 3 × 4 groups.
    #[test]
    fn a_launch_has_the_waves_of_all_its_groups() {
        use zrt_isa::resources::WaveSize::{Wave32, Wave64};
        let options = |wave_size| zrt_loader::RawOptions { wave_size, ..zrt_loader::RawOptions::default() };
        let of = |wave_size, geometry: &Geometry| {
            // s_endpgm
            let program = zrt_loader::Program::raw(&[0, 0, 0xb0, 0xbf], &options(wave_size)).unwrap();
            waves(&program.kernels()[0], geometry)
        };
        let geometry = Geometry::new([2, 3, 4], [11, 3, 1]);
        assert_eq!([of(Wave32, &geometry), of(Wave64, &geometry)], [48, 24]);
        let most = Geometry::new([u32::MAX; 3], [32, 1, 1]);
        assert_eq!(of(Wave32, &most), u64::MAX);
    }
}
