//! Fences: a 64-bit value in shared memory that the device writes when work completes.
//!
//! RELEASE_MEM writes it after the GL2 write-back, so everything that the work stored is visible to a host that has
//! seen the value (hardware reference §4.6, §6.3). Values of a [`Timeline`] only grow; 64 bits do not run out.

use crate::clock::{Clock, poll_until};
use crate::error::FenceError;
use crate::queue_memory::QueueMemory;
use zrt_mem::{GpuVa, SharedView};

/// The location of a fence value, as the host and as the device see it.
#[derive(Clone, Debug)]
pub struct Fence<M = SharedView> {
    view: M,
    address: GpuVa,
}

/// A fence whose values are handed out in order.
#[derive(Debug)]
pub struct Timeline<M = SharedView> {
    fence: Fence<M>,
    last: u64,
}

impl<M: QueueMemory> Fence<M> {
    /// The fence in the first 8 bytes of `view`, which the device knows as `address`. Give it a line of 256 bytes of
    /// its own (hardware reference §1.4).
    pub fn new(view: M, address: GpuVa) -> Result<Fence<M>, FenceError> {
        if view.len() < 8 {
            return Err(FenceError::ViewLength { bytes: view.len() });
        }
        if !address.is_aligned_to(8) {
            return Err(FenceError::Misaligned(address));
        }
        Ok(Fence { view, address })
    }

    /// The address for the device.
    pub const fn address(&self) -> GpuVa {
        self.address
    }

    /// The current value. Everything that the device published before it is visible after this call.
    #[inline]
    pub fn value(&self) -> u64 {
        self.view.load_u64_acquire(0)
    }

    /// Waits until the value is at least `value`, at most `timeout_ns`. Returns the value seen.
    pub fn wait<C: Clock>(&self, value: u64, clock: &C, timeout_ns: u64) -> Result<u64, FenceError> {
        poll_until(clock, timeout_ns, || Some(self.value()).filter(|seen| *seen >= value))
            .map_err(|waited_ns| FenceError::Timeout { value, seen: self.value(), waited_ns })
    }
}

impl<M: QueueMemory> Timeline<M> {
    /// A timeline that continues from the value in memory.
    pub fn new(fence: Fence<M>) -> Timeline<M> {
        let last = fence.value();
        Timeline { fence, last }
    }

    /// The fence.
    pub const fn fence(&self) -> &Fence<M> {
        &self.fence
    }

    /// The next value, to be submitted with the work that it marks.
    pub fn advance(&mut self) -> Result<u64, FenceError> {
        self.last = self.last.checked_add(1).ok_or(FenceError::Exhausted)?;
        Ok(self.last)
    }

    /// The last value handed out.
    pub const fn last(&self) -> u64 {
        self.last
    }

    /// The last value that the device has reached.
    pub fn completed(&self) -> Result<u64, FenceError> {
        self.check(self.fence.value())
    }

    /// Waits until the device has reached `value`, at most `timeout_ns`. Returns the value seen.
    pub fn wait<C: Clock>(&self, value: u64, clock: &C, timeout_ns: u64) -> Result<u64, FenceError> {
        if value > self.last {
            return Err(FenceError::NeverSubmitted { value, last: self.last });
        }
        self.check(self.fence.wait(value, clock, timeout_ns)?)
    }

    fn check(&self, seen: u64) -> Result<u64, FenceError> {
        if seen > self.last {
            return Err(FenceError::Ahead { seen, last: self.last });
        }
        Ok(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    fn timeline() -> (SharedView, Timeline) {
        let view = SharedView::zeroed(8).expect("memory");
        (view.clone(), Timeline::new(Fence::new(view, GpuVa(0x1000)).unwrap()))
    }

    #[test]
    fn a_wait_ends_with_the_value_or_by_the_clock() {
        let (view, mut timeline) = timeline();
        assert_eq!(timeline.advance(), Ok(1));
        assert_eq!(timeline.advance(), Ok(2));
        let time = Cell::new(0);
        let clock = || {
            time.set(time.get() + 100);
            if time.get() == 500 {
                view.store_u64(0, 2);
            }
            time.get()
        };
        assert_eq!(timeline.wait(1, &clock, 10_000), Ok(2));
        assert_eq!(timeline.completed(), Ok(2));
        assert_eq!(timeline.advance(), Ok(3));
        assert_eq!(
            timeline.wait(3, &clock, 200),
            Err(FenceError::Timeout { value: 3, seen: 2, waited_ns: 200 })
        );
    }

    #[test]
    fn values_that_nobody_submitted_are_refused() {
        let (view, mut timeline) = timeline();
        timeline.advance().unwrap();
        let clock = || -> u64 { unreachable!("nothing waits") };
        assert_eq!(timeline.wait(2, &clock, 1), Err(FenceError::NeverSubmitted { value: 2, last: 1 }));
        view.store_u64(0, 9);
        assert_eq!(timeline.wait(1, &clock, 1), Err(FenceError::Ahead { seen: 9, last: 1 }));
        assert_eq!(timeline.completed(), Err(FenceError::Ahead { seen: 9, last: 1 }));
        let mut end = Timeline::new(timeline.fence().clone());
        end.last = u64::MAX;
        assert_eq!(end.advance(), Err(FenceError::Exhausted));
    }

    #[test]
    fn a_fence_needs_eight_aligned_bytes() {
        let bytes = SharedView::zeroed(4).expect("memory");
        assert_eq!(Fence::new(bytes, GpuVa(0)).unwrap_err(), FenceError::ViewLength { bytes: 4 });
        let misaligned = Fence::new(SharedView::zeroed(8).expect("memory"), GpuVa(4)).unwrap_err();
        assert_eq!(misaligned, FenceError::Misaligned(GpuVa(4)));
    }
}
