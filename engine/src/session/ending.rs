//! How a session ends: drained, stopped, closed.
//!
//! Contract: [`Session::drain`] refuses further requests and serves those that are there. [`Session::stop`] lets the device
//! leave behind the step at hand; what has not ended can be submitted to another session. [`Session::close`] waits for the
//! device, and gives the session back where the device does not leave. Neither is on the way of a token.

use super::drive::Drive;
use super::{Session, SessionError};
use std::fmt;
use std::time::{Duration, Instant};
use zrt_device::{Device, DeviceError};
use zrt_protocol::Command;

/// How long [`Session::close`] sleeps between two looks for room in the input ring.
const ROOM_PAUSE: Duration = Duration::from_micros(50);

/// How far a session has come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// It takes requests.
    No,
    /// It takes no further ones.
    Draining,
    /// The device was told to leave.
    Stopped,
}

/// A session that could not be closed, and why: it can be polled, and closed again.
pub struct NotClosed {
    /// The session.
    pub session: Box<Session>,
    /// Why.
    pub error: SessionError,
}

impl fmt::Debug for NotClosed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.error, formatter)
    }
}

impl fmt::Display for NotClosed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, formatter)
    }
}

impl std::error::Error for NotClosed {}

impl From<NotClosed> for SessionError {
    fn from(not_closed: NotClosed) -> SessionError {
        not_closed.error
    }
}

impl Session {
    /// Refuses requests from now on. Those that are there go on to their ends: poll until
    /// [`unfinished_count`](Session::unfinished_count) is 0, then close.
    pub fn drain(&mut self) {
        if self.ending == Ending::No {
            self.ending = Ending::Draining;
        }
    }

    /// Lets the device leave behind the step at hand. Poll until it [has left](Session::has_left) and there are no events;
    /// then [`unfinished`](Session::unfinished) names what has not ended, for another session. Where the input ring is
    /// full, nothing happens: poll, then try again.
    pub fn stop(&mut self) -> Result<(), SessionError> {
        if self.ending == Ending::Stopped {
            return Ok(());
        }
        if self.is_resident_kernel() {
            self.input.push(&Command::Stop)?;
            self.resident.device.flush();
        }
        self.ending = Ending::Stopped;
        Ok(())
    }

    /// No step runs, and none will unless requests are submitted.
    pub fn has_left(&self) -> bool {
        self.ticket().is_none_or(|ticket| self.resident.device.is_done(ticket))
    }

    /// Lets the device leave, and waits for it; the device can then be used again. Every request must have ended, or the
    /// session have been stopped. A device that stays longer than the deadline counts as hung from
    /// [`hang_after`](super::SessionOptions::hang_after) on only.
    pub fn close(mut self, deadline: Duration) -> Result<Device, NotClosed> {
        match self.leave(deadline) {
            Ok(()) => Ok(self.resident.device),
            Err(error) => Err(NotClosed { session: Box::new(self), error }),
        }
    }

    fn leave(&mut self, deadline: Duration) -> Result<(), SessionError> {
        let live = self.unfinished_count();
        if live > 0 && self.ending != Ending::Stopped {
            return Err(SessionError::Live { live });
        }
        let start = Instant::now();
        if self.is_resident_kernel() && self.ending != Ending::Stopped {
            while self.input.free()? == 0 {
                if start.elapsed() > deadline {
                    return Err(SessionError::NotLeft { waited: start.elapsed() });
                }
                std::thread::sleep(ROOM_PAUSE);
            }
            self.input.push(&Command::Drain)?;
            self.resident.device.flush();
        }
        self.ending = Ending::Stopped;
        // In the other modes the step that told the last end still runs, on memory that goes with the session.
        let Some(ticket) = self.ticket() else { return Ok(()) };
        let device = &mut self.resident.device;
        match device.wait(ticket, deadline.saturating_sub(start.elapsed())) {
            // Before `hang_after` a device is slow at worst: no kernel is blamed.
            Err(DeviceError::Stopped(_))
                if !device.is_lost() && start.elapsed() < self.options.hang_after =>
            {
                Err(SessionError::NotLeft { waited: start.elapsed() })
            }
            result => Ok(result?),
        }
    }

    /// The megakernel was started.
    fn is_resident_kernel(&self) -> bool {
        matches!(&self.drive, Drive::Mega(mega) if mega.ticket.is_some())
    }
}
