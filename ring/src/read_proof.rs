//! What reached fences prove about the read pointer.
//!
//! A fence's packet comes after the work that it covers, and the command processor consumes packets in order: once
//! the value is in memory, everything up to the packet's end has been read. So a ring makes progress even if the
//! reported read pointer lags or is never reported. Contract: it keeps pairs of value and position, ascending, at
//! most [`POSITIONS_MAX`] of them and the latest; nothing allocates. Kept pairs are at least one share of the ring
//! apart, so together they span the ring, and the position they prove is short by less than a share.

/// Shares of the ring: the resolution of the proof.
const SHARES: usize = 64;
/// Pairs kept: two more than shares. The newest may be almost a share before the latest, and the oldest has to be a
/// whole ring before that.
const POSITIONS_MAX: usize = SHARES + 2;

/// Positions that fences mark. `POSITIONS` is [`POSITIONS_MAX`] except in tests, where fewer positions can be tried
/// in every order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadProof<const POSITIONS: usize = POSITIONS_MAX> {
    kept: [FencePosition; POSITIONS],
    /// Index for the next pair. It overwrites the oldest, which is a ring behind.
    next: usize,
    latest: FencePosition,
    share_dwords: u64,
}

/// The position where the packet of a fence ends.
#[derive(Clone, Copy, Debug, Default)]
struct FencePosition {
    value: u64,
    position: u64,
}

impl<const POSITIONS: usize> ReadProof<POSITIONS> {
    /// For a ring of `ring_dwords` whose pointers begin at `start`.
    pub(crate) fn new(ring_dwords: usize, start: u64) -> ReadProof<POSITIONS> {
        let begin = FencePosition { value: 0, position: start };
        let share_dwords = (ring_dwords / (POSITIONS - 2)) as u64;
        ReadProof { kept: [begin; POSITIONS], next: 0, latest: begin, share_dwords }
    }

    /// Notes that a fence with `value`, above all before it, ends at `position`.
    #[inline]
    pub(crate) fn note(&mut self, value: u64, position: u64) {
        self.latest = FencePosition { value, position };
        let newest = self.kept[(self.next + POSITIONS - 1) % POSITIONS];
        if position - newest.position >= self.share_dwords {
            self.kept[self.next] = self.latest;
            self.next = (self.next + 1) % POSITIONS;
        }
    }

    /// The furthest position proved by a fence that reads `value`.
    pub(crate) fn reached(&self, value: u64) -> u64 {
        let reached = self.kept.iter().chain([&self.latest]).filter(|one| one.value <= value);
        reached.map(|one| one.position).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Submissions of every length: the proved position is true, and short by less than a share and a submission.
    #[test]
    fn proved_positions_are_true_and_near() {
        for len in [1, 3, 15, 16, 17, 100, 500] {
            let mut proof = ReadProof::<POSITIONS_MAX>::new(1024, 7);
            assert_eq!(proof.reached(u64::MAX), 7);
            let last = 3 * 1024 / len;
            for value in 1..=last {
                proof.note(value, 7 + value * len);
            }
            assert_eq!(proof.reached(last), 7 + last * len, "the latest is exact");
            // As far back as a full ring reaches.
            for value in last - 1023 / len..=last {
                let (proved, truth) = (proof.reached(value), 7 + value * len);
                assert!(proved <= truth && truth - proved < 16, "{len}: {value}: {proved} of {truth}");
            }
        }
    }

    /// The ring of the searches below, and their extent: two and a half rings, so that every kept position is
    /// overwritten in every way.
    const RING: u64 = 8;
    const DWORDS_MAX: u64 = 20;

    /// Notes submissions of every length after those in `ends`, recursively. Returns how many sequences there were.
    fn search<const POSITIONS: usize>(proof: &ReadProof<POSITIONS>, ends: &mut Vec<u64>) -> u64 {
        let last = *ends.last().expect("the start");
        assert_eq!(proof.reached(ends.len() as u64 - 1), last, "the latest is exact");
        let share = RING / (POSITIONS as u64 - 2);
        for (value, truth) in (0..).zip(ends.iter()) {
            let proved = proof.reached(value);
            assert!(proved <= *truth, "{ends:?}: {value}: {proved} was not reached");
            // What a full ring still needs.
            let is_needed = last - truth <= RING;
            assert!(!is_needed || truth - proved < share, "{ends:?}: {value}: {proved} is all that is known");
        }
        let mut sequences = 1;
        for len in 1..=(RING - 1).min(DWORDS_MAX.saturating_sub(last)) {
            let mut proof = *proof;
            proof.note(ends.len() as u64, last + len);
            ends.push(last + len);
            sequences += search(&proof, ends);
            ends.pop();
        }
        sequences
    }

    /// All sequences of submissions up to a bound, over two, four and eight shares. The type depends on distances
    /// between positions in shares, and every such distance within a ring occurs.
    #[test]
    #[cfg_attr(miri, ignore = "a million sequences of plain numbers")]
    fn every_sequence_of_submissions_is_proved_truly_and_nearly() {
        let two = search(&ReadProof::<4>::new(RING as usize, 0), &mut vec![0]);
        let four = search(&ReadProof::<6>::new(RING as usize, 0), &mut vec![0]);
        let eight = search(&ReadProof::<10>::new(RING as usize, 0), &mut vec![0]);
        assert!(two == four && four == eight && two > 1 << 18, "{two} sequences");
    }
}
