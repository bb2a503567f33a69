//! Flags: locations of atomics and of scoped loads and stores, which order waves.
//!
//! Contract: a flag write publishes its wave's clock to the location. A flag load, or an atomic that returns,
//! acquires it if the scopes of both cover both waves. A store replaces what was published; an atomic adds to it.
//! A write that its wave has not waited for is on its way when another wave knows of it by a barrier or a flag: the
//! first load of another wave comes before it. Which one does is a **model**; that one may follows from STOREcnt
//! (instruction set reference §4.1). It is no finding, because a wave that polls is right.
//! Cost: one hash look-up per lane; plain accesses look only if the cell says that there is a flag.

use super::access::{Conflict, Current, Earlier, wgp};
use super::clock::{Clock, Order, WaveState};
use super::finding::{AccessKind, Defect, Scope, Sites};
use super::hash::FastMap;
use super::readers::worse;
use std::sync::Arc;

/// The set of waves that may acquire what was published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Domain {
    Device,
    Wgp(u16),
    Cu(u16),
}

/// A flag access that was not replaced by a plain write.
#[derive(Clone, Copy, Debug)]
struct FlagAccess {
    earlier: Earlier,
    is_write: bool,
    cu: u16,
    mask: u8,
}

/// The newest flag write to a location, unless a plain one replaced it.
#[derive(Clone, Copy, Debug)]
struct Newest {
    earlier: Earlier,
    mask: u8,
    /// The stamp of the first instruction of another wave that loads it; 0 for none.
    first_look: u32,
}

/// One location.
#[derive(Debug, Default)]
struct Flag {
    published: Vec<(Domain, Arc<Clock>)>,
    accesses: Vec<FlagAccess>,
    newest: Option<Newest>,
}

impl Flag {
    /// The conflict with an earlier access, if any. Accesses of a wave to one flag complete in order (a **model**): a
    /// completed later access vouches for the earlier one.
    fn conflict(&self, earlier: Earlier, current: &mut Current, sites: &Sites) -> Option<Conflict> {
        let found = current.conflict(earlier, sites)?;
        let mut later = self.accesses.iter().map(|access| access.earlier);
        let is_done = later.any(|later| {
            later.wave == earlier.wave
                && later.sequence > earlier.sequence
                && current.order(later, sites) == Order::Before
        });
        (!is_done).then_some(found)
    }
}

/// All locations of one memory, by dword.
#[derive(Debug, Default)]
pub(super) struct Flags {
    flags: FastMap<u64, Flag>,
}

/// The domains that a scope covers from a compute unit.
fn domains(scope: Scope, cu: u16) -> impl Iterator<Item = Domain> {
    let wider =
        [(Scope::Cu, Domain::Cu(cu)), (Scope::Se, Domain::Wgp(wgp(cu))), (Scope::Device, Domain::Device)];
    wider.into_iter().filter(move |(least, _)| scope >= *least).map(|(_, domain)| domain)
}

impl Flags {
    pub(super) fn clear(&mut self) {
        self.flags.clear();
    }

    /// Forgets the locations of a range.
    pub(super) fn forget(&mut self, first: u64, end: u64) {
        self.flags.retain(|key, _| *key < first || *key >= end);
    }

    /// The flag access that conflicts with a plain access of the bytes in `mask`.
    pub(super) fn conflict_with_plain(
        &self,
        key: u64,
        mask: u8,
        current: &mut Current,
        sites: &Sites,
    ) -> Option<Conflict> {
        let is_write = current.kind.is_write();
        let flag = self.flags.get(&key)?;
        let meets = |access: &&FlagAccess| access.mask & mask != 0 && (is_write || access.is_write);
        flag.accesses
            .iter()
            .filter(meets)
            .fold(None, |worst, access| worse(worst, flag.conflict(access.earlier, current, sites)))
    }

    /// A plain write of the bytes in `mask` ends what was published. Returns true if nothing is left.
    pub(super) fn replace(&mut self, key: u64, mask: u8) -> bool {
        let Some(flag) = self.flags.get_mut(&key) else { return true };
        flag.published.clear();
        flag.newest = None;
        flag.accesses.retain_mut(|access| {
            access.mask &= !mask;
            access.mask != 0
        });
        if flag.accesses.is_empty() {
            self.flags.remove(&key);
            return true;
        }
        false
    }

    /// The newest write and its bytes, if the current flag load is of another wave and comes before it.
    pub(super) fn on_its_way(
        &mut self,
        key: u64,
        mask: u8,
        current: &mut Current,
        sites: &Sites,
    ) -> Option<(Earlier, u8)> {
        let flag = self.flags.get_mut(&key)?;
        let newest = flag.newest.as_mut()?;
        if newest.earlier.wave == current.wave || newest.mask & mask == 0 {
            return None;
        }
        if newest.first_look == 0 {
            newest.first_look = current.stamp;
        }
        let Newest { earlier, mask, first_look } = *newest;
        let is_unwaited =
            flag.conflict(earlier, current, sites).is_some_and(|found| found.defect != Defect::Race);
        (first_look == current.stamp && is_unwaited).then_some((earlier, mask))
    }

    /// Records a flag access of the current instruction: what it meets, what it acquires, what it publishes.
    pub(super) fn access(
        &mut self,
        key: u64,
        mask: u8,
        current: &mut Current,
        sites: &Sites,
        wave: &mut WaveState,
    ) -> Option<Conflict> {
        let flag = self.flags.entry(key).or_default();
        let (kind, scope) = (current.kind, current.scope);
        let is_write = kind.is_write();
        let mut worst = None;
        let mut own = None;
        for (index, access) in flag.accesses.iter().enumerate() {
            let site = sites.get(access.earlier.site);
            let is_own = access.earlier.wave == current.wave;
            if is_own
                && is_write == access.is_write
                && site.scope == scope
                && site.kind.class() == kind.class()
            {
                own = Some(index);
            } else if !is_own
                && access.mask & mask != 0
                && (is_write || access.is_write)
                && !current.covers(&site, access.cu)
            {
                worst = worse(worst, flag.conflict(access.earlier, current, sites));
            }
        }
        let earlier = Earlier { wave: current.wave, sequence: current.sequence, site: current.site };
        let record = FlagAccess { earlier, is_write, cu: current.cu, mask };
        match own {
            Some(index) => {
                let mask = mask | flag.accesses[index].mask;
                flag.accesses[index] = FlagAccess { mask, ..record };
            }
            None => flag.accesses.push(record),
        }
        let is_lds = matches!(kind, AccessKind::LdsAtomic { .. });
        let reach = if is_lds { Scope::Device } else { scope };
        let returns = matches!(
            kind,
            AccessKind::Load | AccessKind::Atomic { returns: true } | AccessKind::LdsAtomic { returns: true }
        );
        if returns {
            for domain in domains(reach, current.cu) {
                if let Some((_, clock)) = flag.published.iter().find(|(known, _)| *known == domain) {
                    wave.acquire(current.sequence, kind.class(), clock);
                }
            }
        }
        if is_write {
            flag.newest = Some(Newest { earlier, mask, first_look: 0 });
            let release = current.release.get_or_insert_with(|| wave.publish_flag(current.sequence));
            if !kind.is_atomic() {
                flag.published.clear();
            }
            for domain in domains(reach, current.cu) {
                match flag.published.iter_mut().find(|(known, _)| *known == domain) {
                    Some((_, clock)) => Clock::join_shared(clock, release),
                    None => flag.published.push((domain, release.clone())),
                }
            }
        }
        worst
    }
}
