//! What fits a card: how much VRAM a session takes, and the longest context and most slots for which there is room.
//!
//! Contract: sizes are those of the memory plan, to the byte; nothing is opened. Cost: some ten memory plans for a
//! context, up to 64 for slots.

use super::error::SessionError;
use super::options::SessionOptions;
use crate::memory_plan::{Capacity, MemoryPlan};
use crate::model::Model;
use crate::placement::Placement;
use std::ops::RangeInclusive;
use zrt_mem::ByteLen;
use zrt_protocol::SLOTS_MAX;

/// The shortest context of a session, in tokens.
pub const CONTEXT_MIN: u32 = 2;

impl SessionOptions {
    /// VRAM of a session whose weights lie like this, whatever [`vram_max`](SessionOptions::vram_max) says.
    pub fn vram_len(&self, model: &Model, placement: Placement) -> Result<ByteLen, SessionError> {
        let (plan, capacity) = self.unplaced(model)?;
        Ok(MemoryPlan::new(model, &plan, &Capacity { placement, ..capacity })?.vram_len())
    }

    /// The longest context with which such a session takes at most `limit` of VRAM; `None` if there is none.
    pub fn context_max(&self, model: &Model, placement: Placement, limit: ByteLen) -> Option<u32> {
        let fits = |context| SessionOptions { context, ..self.clone() }.fits(model, placement, limit);
        largest(CONTEXT_MIN..=model.config.context, fits)
    }

    /// The most slots with which such a session takes at most `limit` of VRAM; `None` if there are none.
    pub fn slots_max(&self, model: &Model, placement: Placement, limit: ByteLen) -> Option<u32> {
        let fits =
            |slots: &u32| SessionOptions { slots: *slots, ..self.clone() }.fits(model, placement, limit);
        // Activations are placed by what fits where, so more slots need not need more.
        (1..=SLOTS_MAX as u32).rev().find(fits)
    }

    fn fits(&self, model: &Model, placement: Placement, limit: ByteLen) -> bool {
        self.vram_len(model, placement).is_ok_and(|needed| needed <= limit)
    }

    /// What would fit instead of this session, as the end of a sentence.
    pub(super) fn instead(&self, model: &Model, limit: ByteLen) -> String {
        let placement = Placement::all_in_host(model);
        let one = SessionOptions { slots: 1, ..self.clone() };
        match (self.context_max(model, placement, limit), one.context_max(model, placement, limit)) {
            (Some(context), _) => format!("with {} slots a context of {context} fits", self.slots),
            (None, Some(context)) => format!("one slot with a context of {context} fits"),
            (None, None) => "no session with this model fits".to_owned(),
        }
    }
}

/// The largest number of this range that fits, where more never needs less.
fn largest(range: RangeInclusive<u32>, fits: impl Fn(u32) -> bool) -> Option<u32> {
    let (first, mut low, mut high) = (*range.start(), range.start().checked_sub(1)?, *range.end());
    while low < high {
        let middle = high - (high - low) / 2;
        if fits(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    (low >= first).then_some(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn largest_is_the_last_that_fits() {
        for (first, last) in [(1, 1), (2, 2), (2, 7), (1, 64), (5, 4)] {
            for limit in 0..=last {
                let expected = (limit >= first && limit > 0).then_some(limit);
                assert_eq!(
                    largest(first..=last, |number| number <= limit),
                    expected,
                    "{first} {last} {limit}"
                );
            }
        }
    }
}
