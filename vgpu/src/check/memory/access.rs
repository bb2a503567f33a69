//! The current memory instruction, and the relation of an earlier access to it.
//!
//! Contract: one [`Current`] per device, refilled for each instruction. Cost: the last answer is cached, since
//! neighbouring lanes meet the same earlier access.

use super::clock::{Clock, Order};
use super::finding::{AccessKind, Class, Defect, Scope, Site, Sites};
use std::sync::Arc;

/// No wave: never written, or not written by a wave.
pub(super) const NOBODY: u32 = u32::MAX;
/// The host, as the writer of a value.
pub(super) const HOST: u32 = u32::MAX - 1;
/// The command processor, as the writer of a value.
pub(super) const COMMAND_PROCESSOR: u32 = u32::MAX - 2;
/// Compute unit number for actors other than waves.
pub(super) const NO_CU: u16 = u16::MAX;

/// Compute units of a WGP.
const CUS_OF_WGP: u16 = 2;

/// The WGP of a compute unit.
pub(super) fn wgp(cu: u16) -> u16 {
    cu / CUS_OF_WGP
}

/// An earlier access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Earlier {
    pub(super) wave: u32,
    pub(super) sequence: u32,
    pub(super) site: u32,
}

/// An earlier access that conflicts with the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Conflict {
    pub(super) earlier: Earlier,
    /// [`Defect::Race`] or one of the defects about missing waits.
    pub(super) defect: Defect,
}

/// The access being judged.
#[derive(Debug, Default)]
pub(super) struct Current {
    /// Counts instructions; cached answers of one instruction carry it.
    pub(super) stamp: u32,
    pub(super) wave: u32,
    pub(super) sequence: u32,
    pub(super) pc: u64,
    pub(super) site: u32,
    pub(super) cu: u16,
    pub(super) scope: Scope,
    pub(super) kind: AccessKind,
    pub(super) is_flag: bool,
    /// Whether a write-back of its wave is on its way, unless it has been told that it writes for the host meanwhile.
    pub(super) is_before_write_back: bool,
    /// Logical time of its writes.
    pub(super) time: u32,
    /// Waves below this number have ended and were flushed before the dispatch began.
    pub(super) ordered_before: u32,
    /// First wave of the dispatch.
    pub(super) dispatch_first: u32,
    /// One past its last wave.
    pub(super) dispatch_end: u32,
    pub(super) clock: Arc<Clock>,
    /// What a flag write of this instruction publishes, once computed.
    pub(super) release: Option<Arc<Clock>>,
    /// The earlier access of the last query, and the answer.
    memo: Option<(Earlier, Order)>,
}

impl Current {
    /// Forgets cached answers about the previous instruction.
    pub(super) fn renew(&mut self) {
        self.stamp = self.stamp.wrapping_add(1).max(1);
        self.memo = None;
        self.release = None;
    }

    /// How an earlier access relates to this one.
    #[inline]
    pub(super) fn order(&mut self, earlier: Earlier, sites: &Sites) -> Order {
        if earlier.wave == self.wave
            || earlier.wave < self.ordered_before
            || earlier.wave >= COMMAND_PROCESSOR
        {
            return Order::Before;
        }
        match self.memo {
            Some((known, order)) if known == earlier => order,
            _ => self.order_slow(earlier, sites),
        }
    }

    #[inline(never)]
    fn order_slow(&mut self, earlier: Earlier, sites: &Sites) -> Order {
        let site = sites.get(earlier.site);
        let order = self.clock.order(earlier.wave, earlier.sequence, site.kind.class(), site.is_flag());
        self.memo = Some((earlier, order));
        order
    }

    /// The conflict with an earlier access, if any; at least one of the two is a write.
    #[inline]
    pub(super) fn conflict(&mut self, earlier: Earlier, sites: &Sites) -> Option<Conflict> {
        let defect = match self.order(earlier, sites) {
            Order::Before => return None,
            Order::None => Defect::Race,
            Order::Unwaited => match sites.get(earlier.site).kind.class() {
                Class::Load => Defect::UnwaitedLoad,
                Class::Store => Defect::UnwaitedStore,
                Class::Lds => Defect::UnwaitedLds,
                Class::Scalar => Defect::UnwaitedScalarLoad,
            },
        };
        Some(Conflict { earlier, defect })
    }

    /// True if this flag operation and an earlier one are atomic to each other: the smaller scope covers both.
    pub(super) fn covers(&self, site: &Site, cu: u16) -> bool {
        // The LDS belongs to one group: every scope covers it.
        if matches!(site.kind, AccessKind::LdsAtomic { .. }) {
            return true;
        }
        match self.scope.min(site.scope) {
            Scope::Cu => cu == self.cu,
            Scope::Se => wgp(cu) == wgp(self.cu),
            Scope::Device | Scope::System => true,
        }
    }
}
