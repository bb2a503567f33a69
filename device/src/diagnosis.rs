//! Why a wait failed.
//!
//! Contract: made after a fault or a deadline only; it reads what the host can see (fence, pointers, the ring, events)
//! and what a witness says, and names kernels and buffers by address. Its text is one line.

use crate::waves::Waves;
use core::fmt;
use std::time::Duration;
use zrt_kmd::{HardwareException, MemoryFault};
use zrt_pm4::Listing;
use zrt_ring::Observation;

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopCause {
    /// The time was up.
    Deadline,
    /// The driver reported a bad access.
    MemoryFault(MemoryFault),
    /// The driver reported a reset or failure.
    HardwareException(HardwareException),
}

/// Dwords of the ring in a diagnosis.
pub const RING_EXCERPT_DWORDS: usize = 16;

/// Dwords of the command ring where the device stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingExcerpt {
    /// Position of the first, in dwords since the queue was made.
    pub position: u64,
    /// The device has reported that it read everything; then this is the start of what is waited for, else the read
    /// pointer.
    pub is_all_read: bool,
    /// As they are in memory.
    pub words: [u32; RING_EXCERPT_DWORDS],
    /// How many of them lie before the write pointer. The others are left over from one round ago.
    pub published: usize,
}

/// Everything known about work that did not end.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    /// What ended the wait.
    pub cause: StopCause,
    /// How long the wait was.
    pub waited: Duration,
    /// The work that comes before the fence, as the submission describes it.
    pub work: String,
    /// The fence's value that was waited for.
    pub fence_expected: u64,
    /// Fence and pointers when the wait ended.
    pub observation: Observation,
    /// What the ring holds at the point where the device stopped.
    pub ring: RingExcerpt,
    /// What the pointers and the fence did during the wait.
    pub progress: zrt_ring::Diagnosis,
    /// What is at the faulty address, if there is one and it is ours.
    pub place: Option<String>,
    /// The witness's log, addresses named; empty without one.
    pub device_log: Vec<String>,
    /// Where the waves are, if the time was up and a witness knows.
    pub waves: Waves,
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waited_ms = self.waited.as_millis();
        match &self.cause {
            StopCause::Deadline => write!(formatter, "the device did not finish within {waited_ms} ms")?,
            StopCause::MemoryFault(fault) => {
                write!(formatter, "the device stopped after {waited_ms} ms: {fault}")?
            }
            StopCause::HardwareException(exception) => {
                write!(formatter, "the device stopped after {waited_ms} ms: {exception}")?;
            }
        }
        if let Some(place) = &self.place {
            write!(formatter, " ({place})")?;
        }
        let Observation { fence_value, read_pointer, write_pointer, .. } = self.observation;
        write!(
            formatter,
            "; work: {}; fence {fence_value} of {}; ring read to {read_pointer} of {write_pointer} dwords",
            self.work, self.fence_expected
        )?;
        // What pointers and silence may mean is only for devices about which nothing else is known.
        let is_known = !self.waves.is_empty();
        match is_known {
            true => write!(formatter, "; {}", self.waves)?,
            false => write!(formatter, "; {}", self.progress)?,
        }
        if self.cause == StopCause::Deadline {
            write!(formatter, "; {}", self.ring)?;
        }
        for line in &self.device_log {
            write!(formatter, "; device log: {line}")?;
        }
        let hung = self.cause == StopCause::Deadline && self.device_log.is_empty() && !is_known;
        if hung {
            // What a card does not reveal: hardware reference §8.
            formatter.write_str(
                "; no event was reported: a kernel in an endless loop, an illegal instruction or a bad packet",
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for RingExcerpt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place =
            if self.is_all_read { "what is waited for begins, all read" } else { "the read pointer is" };
        let RingExcerpt { position, published, .. } = self;
        write!(
            formatter,
            "ring from dword {position}, where {place}, {published} of 16 before the write pointer:"
        )?;
        for word in &self.words {
            write!(formatter, " {word:08x}")?;
        }
        // The read pointer is taken for the start of a packet; the last packet may continue beyond what is shown.
        for line in Listing(&self.words[..self.published]).to_string().lines() {
            write!(formatter, " | {}", line.trim_start())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zrt_mem::GpuVa;

    const GUESS: &str =
        "; no event was reported: a kernel in an endless loop, an illegal instruction or a bad packet";

    fn fault() -> StopCause {
        StopCause::MemoryFault(MemoryFault {
            va: GpuVa(0x7000),
            gpu_id: 1,
            not_present: true,
            read_only: false,
            no_execute: false,
            imprecise: false,
            error_type: 0,
        })
    }

    fn diagnosis(cause: StopCause, log: &[&str], more_waves: u64) -> Diagnosis {
        let mut words = [0xabcd_ef01; RING_EXCERPT_DWORDS];
        words[..2].copy_from_slice(&[0xc000_1000, 5]);
        Diagnosis {
            cause,
            waited: Duration::from_micros(120_999),
            work: "submission 4".into(),
            fence_expected: 4,
            observation: Observation {
                time_ns: 0,
                write_pointer: 42,
                read_pointer: 40,
                fence_value: 3,
                fence_target: 5,
            },
            ring: RingExcerpt { position: 40, is_all_read: false, words, published: 2 },
            progress: zrt_ring::Diagnosis::Running { quiet_ns: 9 },
            place: None,
            device_log: log.iter().map(|line| String::from(*line)).collect(),
            waves: Waves { more_waves, ..Waves::default() },
        }
    }

    /// Causes are guessed after a silent deadline only: a fault, a log or the waves say it.
    #[test]
    fn a_guess_is_made_only_where_nothing_is_known() {
        for (cause, log, waves, guesses) in [
            (StopCause::Deadline, &[][..], 0, true),
            (StopCause::Deadline, &["a line"], 0, false),
            (StopCause::Deadline, &[], 1, false),
            (StopCause::Deadline, &["a line"], 1, false),
            (fault(), &[], 0, false),
            (fault(), &["a line"], 0, false),
            (fault(), &[], 1, false),
        ] {
            let text = diagnosis(cause, log, waves).to_string();
            assert_eq!(text.contains("no event was reported"), guesses, "{text}");
            assert_eq!(text.contains("ring from dword"), cause == StopCause::Deadline, "{text}");
            assert_eq!(text.contains("something moved"), waves == 0, "{text}");
        }
    }

    #[test]
    fn a_diagnosis_is_one_line_with_everything_in_its_order() {
        let text = diagnosis(StopCause::Deadline, &[], 0).to_string();
        let unread = " abcdef01".repeat(14);
        let expected = format!(
            "the device did not finish within 120 ms; work: submission 4; fence 3 of 4; ring read to 40 of 42 dwords; \
             the queue is running; something moved 9 ns ago; ring from dword 40, where the read pointer is, \
             2 of 16 before the write pointer: c0001000 00000005{unread} | "
        );
        assert!(text.starts_with(&expected), "{text}");
        assert!(text[expected.len()..].contains("NOP") && text.ends_with(GUESS), "{text}");
        let stopped = Diagnosis { place: Some("data+0x8".into()), ..diagnosis(fault(), &["one", "two"], 2) };
        let text = stopped.to_string();
        assert!(text.starts_with("the device stopped after 120 ms: "), "{text}");
        let rest = " (data+0x8); work: submission 4; fence 3 of 4; ring read to 40 of 42 dwords; \
                    2 waves have not ended; device log: one; device log: two";
        assert!(text.ends_with(rest), "{text}");
    }

    #[test]
    fn an_excerpt_of_a_ring_that_was_read_begins_with_the_work() {
        let ring = RingExcerpt { is_all_read: true, published: 0, ..diagnosis(fault(), &[], 0).ring };
        let text = ring.to_string();
        let start = "ring from dword 40, where what is waited for begins, all read, 0 of 16 before the write pointer: c000";
        assert!(text.starts_with(start) && !text.contains('|'), "{text}");
    }
}
