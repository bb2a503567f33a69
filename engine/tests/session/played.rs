//! A session whose megakernel is not started: the case reads what the session writes, and writes what a device would.

use crate::made::Made;
use zerocopy::IntoBytes;
use zrt_bringup::{DeviceChoice, OpenOptions};
use zrt_device::Device;
use zrt_engine::activations::Activations;
use zrt_engine::gguf::TensorKind;
use zrt_engine::memory_plan::AllocationId;
use zrt_engine::model::Model;
use zrt_engine::sampling::SamplingOptions;
use zrt_engine::session::{Event, Handle, Mode, Request, Session, SessionError, SessionOptions};

/// Positions of a slot, and entries in its page table.
pub const CONTEXT: u32 = 64;
pub const PAGES_PER_SLOT: usize = 4;
/// Dwords of a line of a ring or of a slot's control words.
pub const LINE: usize = 16;

/// A session, and the events that its device has told so far.
pub struct Played {
    pub session: Session,
    told: u32,
}

pub fn model() -> Model {
    Made::new("llama", TensorKind::F32).load().unwrap()
}

pub fn device() -> Device {
    let options = OpenOptions { self_test: false, ..OpenOptions::default() };
    zrt_bringup::open(DeviceChoice::Virtual, &options).unwrap()
}

pub fn options() -> SessionOptions {
    SessionOptions {
        mode: Mode::Mega,
        slots: 3,
        waiting_max: 2,
        context: CONTEXT,
        chunk_rows: 8,
        groups: Some(2),
        input_entries: 8,
        output_entries: 128,
        activations: Activations::F32,
        ..SessionOptions::default()
    }
}

/// A greedy request.
pub fn request(prompt: &[u32], tokens_max: u32) -> Request<'_> {
    Request { prompt, tokens_max, sampling: SamplingOptions::default(), stops: &[] }
}

/// The dwords of a line of the output ring: kind and slot, serial, token, index, reason, as the protocol has them.
pub fn token(slot: u32, serial: u32, token: u32, index: u32) -> [u32; 5] {
    [1 | slot << 8, serial, token, index, 0]
}

pub fn finished(slot: u32, serial: u32, reason: u32, known: u32) -> [u32; 5] {
    [2 | slot << 8, serial, 0, known, reason]
}

pub fn preempted(slot: u32, serial: u32, position: u32, index: u32) -> [u32; 5] {
    [3 | slot << 8, serial, position, index, 0]
}

impl Played {
    pub fn new(options: &SessionOptions) -> Played {
        Played::on(device(), &model(), options)
    }

    pub fn on(device: Device, model: &Model, options: &SessionOptions) -> Played {
        let session = Session::prepare(device, model, options, &mut |_, _| {}).unwrap();
        Played { session, told: 0 }
    }

    pub fn submit(&mut self, prompt: &[u32], tokens_max: u32) -> Handle {
        self.session.submit(&request(prompt, tokens_max)).unwrap()
    }

    /// Dwords of an allocation.
    pub fn dwords(&mut self, id: AllocationId, first: usize, count: usize) -> Vec<u32> {
        let mut dwords = vec![0; count];
        self.session.resident().download(id, first as u64 * 4, dwords.as_mut_bytes()).unwrap();
        dwords
    }

    /// All of them.
    pub fn all(&mut self, id: AllocationId) -> Vec<u32> {
        let bytes = self.session.resident().buffer(id).len.0 as usize;
        self.dwords(id, 0, bytes / 4)
    }

    pub fn put(&mut self, id: AllocationId, first: usize, dwords: &[u32]) {
        self.session.resident().upload(id, first as u64 * 4, dwords.as_bytes()).unwrap();
    }

    /// A line of the input ring.
    pub fn sent(&mut self, line: usize) -> Vec<u32> {
        self.dwords(AllocationId::InputRing, line * LINE, LINE)
    }

    /// The device's next event.
    pub fn tell(&mut self, event: [u32; 5]) {
        self.tell_with(event, 0);
    }

    /// The same; 1 if most likely tokens come with it.
    pub fn tell_with(&mut self, [kind_slot, serial, token, index, reason]: [u32; 5], has_tops: u32) {
        let tag = self.told + 1;
        let line = [tag, kind_slot, serial, token, index, reason, 77, has_tops, 0, 0, 0, 0, 0, 0, 0, !tag];
        self.put(AllocationId::OutputRing, self.told as usize % 128 * LINE, &line);
        self.told = tag;
    }

    /// Tells tokens up to this many known ones, and takes their events.
    pub fn tell_tokens(&mut self, (slot, serial): (u32, u32), known: std::ops::Range<u32>) {
        for index in known {
            self.tell(token(slot, serial, index % 16, index));
            assert_eq!(self.poll().unwrap().len(), 1);
        }
    }

    /// PLAN's status: commands taken, heartbeat, step, flags.
    pub fn status(&mut self, status: [u32; 4]) {
        self.put(AllocationId::Status, 0, &status);
    }

    pub fn poll(&mut self) -> Result<Vec<Event>, SessionError> {
        let mut events = [Event::default(); 8];
        let count = self.session.poll(&mut events)?;
        Ok(events[..count].to_vec())
    }
}
