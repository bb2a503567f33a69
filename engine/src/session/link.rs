//! The link between host and device: rings, control lines, status.
//!
//! Contract: every flush of a session is here. What a command or a control word refers to (tokens, stop tokens, page
//! numbers) is written before it. A call that sends a command or a control word has flushed it when it returns;
//! [`Link::settle`] flushes [`Link::grant`] and [`Link::consumed`], once per poll. Nothing allocates, locks or makes a
//! system call.
//!
//! Cost: stores to mapped memory; a flush is a store and a read across PCIe.

use super::error::SessionError;
use super::roster::{Admission, Grant, NextResume};
use super::stage::Seat;
use crate::executor::resident::Resident;
use crate::memory_plan::AllocationId;
use std::mem::offset_of;
use zerocopy::IntoBytes;
use zrt_mem::SharedView;
use zrt_protocol::{
    self as protocol, Command, Control, Extras, STOP_TOKENS_MAX, Status, TopToken, TopTokens,
};
use zrt_ring::token_ring::TokenRingError;
use zrt_ring::{ControlDwords, ControlLines, InputRing, OutputRing};

/// Number of consumed events after which the device is notified.
const PUBLISH_EVERY: u32 = 16;

/// Where a control line holds its words.
const CONTROL_DWORDS: ControlDwords = ControlDwords {
    cancel_serial: offset_of!(Control, cancel_serial) / 4,
    preempt_serial: offset_of!(Control, preempt_serial) / 4,
    hold_serial: offset_of!(Control, hold_serial) / 4,
    granted_pages: offset_of!(Control, granted_pages) / 4,
    granted_serial: offset_of!(Control, granted_serial) / 4,
};

/// A control word for a request that holds a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// End, within a layer.
    Cancel,
    /// Take part in no step, from the next layer on.
    Preempt,
    /// Make no further token until released.
    Hold,
    /// Go on.
    Release,
}

/// The rings, the control lines and the status of a session.
#[derive(Debug)]
pub(super) struct Link {
    input: InputRing<Command>,
    output: OutputRing<protocol::Event>,
    control: ControlLines,
    status: SharedView,
    output_tops: SharedView,
}

impl Link {
    /// Clears rings and control lines, before the device reads them.
    pub fn new(resident: &Resident) -> Result<Link, SessionError> {
        let view = |id| resident.buffer(id).view().cloned();
        let status = view(AllocationId::Status)?;
        let entries = resident.capacity.output_entries;
        let (events, consumed) = (view(AllocationId::OutputRing)?, view(AllocationId::Consumed)?);
        let link = Link {
            input: InputRing::new(view(AllocationId::InputRing)?, status.clone(), None)?,
            output: OutputRing::new(events, consumed, None, PUBLISH_EVERY.min(entries))?,
            control: ControlLines::new(view(AllocationId::Control)?, CONTROL_DWORDS, None)?,
            status,
            output_tops: view(AllocationId::OutputTops)?,
        };
        link.settle(resident);
        Ok(link)
    }

    /// The next event, if one is available.
    #[inline]
    pub fn poll(&mut self) -> Result<Option<protocol::Event>, SessionError> {
        Ok(self.output.poll()?)
    }

    /// What came beside the event that was taken last. The device writes it again after 63 further tokens at the
    /// earliest, because PLAN leaves an entry free for each slot.
    pub fn last_tops(&self) -> TopTokens {
        let entry = (self.output.taken().wrapping_sub(1) % u64::from(self.output.capacity())) as usize;
        let dword = |offset: usize| self.output_tops.load_u32(entry * size_of::<TopTokens>() + offset);
        let mut tops = TopTokens {
            count: dword(offset_of!(TopTokens, count)),
            difference: dword(offset_of!(TopTokens, difference)),
            sum_low: dword(offset_of!(TopTokens, sum_low)),
            sum_high: dword(offset_of!(TopTokens, sum_high)),
            ..TopTokens::default()
        };
        // The memory is mapped, and each load goes to it: only what counts is read.
        for (number, top) in tops.top.iter_mut().take(tops.count as usize).enumerate() {
            let at = offset_of!(TopTokens, top) + number * size_of::<TopToken>();
            *top = TopToken {
                token: dword(at + offset_of!(TopToken, token)),
                difference: dword(at + offset_of!(TopToken, difference)),
            };
        }
        tops
    }

    /// Publishes the count of consumed events to the device.
    pub fn consumed(&mut self) {
        self.output.publish_consumed();
    }

    /// Makes all earlier writes visible to the device.
    pub fn settle(&self, resident: &Resident) {
        resident.device.flush();
    }

    /// Whether a command can be sent now.
    pub fn has_room(&mut self) -> Result<bool, SessionError> {
        Ok(self.input.free()? > 0)
    }

    /// Sends a command.
    pub fn send(&mut self, resident: &Resident, command: &Command) -> Result<(), SessionError> {
        self.input.push(command)?;
        self.settle(resident);
        Ok(())
    }

    /// Sends a control word to the request in a slot.
    pub fn say(&mut self, resident: &Resident, seat: Seat, word: Word) -> Result<(), SessionError> {
        let mut line = self.control.slot(seat.slot.number())?;
        match word {
            Word::Cancel => line.cancel(seat.serial),
            Word::Preempt => line.preempt(seat.serial),
            Word::Hold => line.hold(seat.serial),
            Word::Release => line.release(),
        }
        self.settle(resident);
        Ok(())
    }

    /// Hands a request to the device: its tokens and stop tokens, what was already asked of it, its pages, then the
    /// command.
    pub fn admit(&mut self, resident: &mut Resident, admission: &Admission<'_>) -> Result<(), SessionError> {
        let Seat { slot, serial } = admission.seat;
        let first_token = u64::from(slot.number()) * u64::from(resident.plan.context);
        resident.upload(AllocationId::Tokens, first_token * 4, admission.tokens.as_bytes())?;
        let stops_offset = u64::from(slot.number()) * STOP_TOKENS_MAX as u64 * 4;
        resident.upload(AllocationId::Stops, stops_offset, admission.stops.as_bytes())?;
        if admission.sampling.draws().extras != 0 {
            let offset = u64::from(slot.number()) * size_of::<Extras>() as u64;
            resident.upload(AllocationId::Extras, offset, admission.sampling.extras().as_bytes())?;
        }
        let mut line = self.control.slot(slot.number())?;
        line.renew();
        if admission.is_held {
            line.hold(serial);
        }
        if let Some(grant) = &admission.grant {
            self.grant(resident, grant)?;
        }
        if admission.parks {
            self.control.slot(slot.number())?.preempt(serial);
        }
        let command = Command::Admit {
            slot,
            serial: serial.get(),
            known: admission.tokens.len() as u32,
            limit: admission.limit,
            position: admission.position,
            draws: admission.sampling.draws(),
        };
        self.send(resident, &command)
    }

    /// Writes page numbers into the slot's table, then how many there are.
    pub fn grant(&mut self, resident: &mut Resident, grant: &Grant<'_>) -> Result<(), SessionError> {
        let Seat { slot, serial } = grant.seat;
        let first = u64::from(slot.number()) * u64::from(resident.memory.pages_per_slot) + grant.first as u64;
        resident.upload(AllocationId::HostPages, first * 4, grant.pages.as_bytes())?;
        let pages = grant.first + grant.pages.len();
        Ok(self.control.slot(slot.number())?.grant(serial, pages as u32)?)
    }

    /// Lets a parked request continue.
    pub fn resume(&mut self, resident: &Resident, next: &NextResume) -> Result<(), SessionError> {
        let Seat { slot, serial } = next.seat;
        self.control.slot(slot.number())?.run();
        let command = Command::Resume { slot, serial: serial.get(), position: next.position };
        self.send(resident, &command)
    }

    /// The status that PLAN last reported: how far the device has come.
    pub fn status(&self) -> Status {
        Status {
            input_consumed: self.status.load_u32(offset_of!(Status, input_consumed)),
            heartbeat: self.status.load_u32(offset_of!(Status, heartbeat)),
            epoch: self.status.load_u32(offset_of!(Status, epoch)),
            flags: self.status.load_u32(offset_of!(Status, flags)),
        }
    }

    /// The oldest command that the device has not consumed, and the number of the next event.
    pub fn standing(&mut self) -> Result<(Option<u64>, u64), SessionError> {
        Ok((self.input.oldest_waiting()?, self.output.taken()))
    }

    /// Why the next event will not come, after a wait of `waited_ns`.
    pub fn broken(&self, waited_ns: u64) -> Option<TokenRingError> {
        self.output.broken(waited_ns)
    }
}
