//! What reached fences prove of the read pointer.
//!
//! A fence's packet stands behind what it is for, and the command processor takes packets in order: once the value is in
//! memory, everything up to the packet's end has been read. So a ring goes on where the reported read pointer lags, or is
//! never told. Contract: pairs of value and position, ascending, at most [`POSITIONS_MAX`] of them and the latest; nothing
//! allocates. Kept pairs stand at least a share of the ring apart, so that together they span the ring, and what they do
//! not tell is less than a share.

/// Shares of the ring: how finely is told what was read.
const SHARES: usize = 64;
/// Pairs kept. Two more than shares: the newest may lie almost a share behind the latest, and the oldest has to lie a ring
/// behind that.
const POSITIONS_MAX: usize = SHARES + 2;

/// Positions that fences stand for. `POSITIONS` is [`POSITIONS_MAX`] but in tests, where fewer can be tried in every order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadProof<const POSITIONS: usize = POSITIONS_MAX> {
    kept: [FencePosition; POSITIONS],
    /// Where the next one is kept: over the oldest, which lies a ring behind.
    next: usize,
    latest: FencePosition,
    share_dwords: u64,
}

/// Where the packet of a fence ends.
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

    /// A fence with `value`, above all before it, ends at `position`.
    #[inline]
    pub(crate) fn note(&mut self, value: u64, position: u64) {
        self.latest = FencePosition { value, position };
        let newest = self.kept[(self.next + POSITIONS - 1) % POSITIONS];
        if position - newest.position >= self.share_dwords {
            self.kept[self.next] = self.latest;
            self.next = (self.next + 1) % POSITIONS;
        }
    }

    /// The furthest position that a fence which reads `value` proves.
    pub(crate) fn reached(&self, value: u64) -> u64 {
        let reached = self.kept.iter().chain([&self.latest]).filter(|one| one.value <= value);
        reached.map(|one| one.position).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Submissions of every length: what is proved is true, and misses less than a share and a submission.
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

    /// The ring of the searches below, and how far they go: two and a half rings, so that every kept position was
    /// written over in every way.
    const RING: u64 = 8;
    const DWORDS_MAX: u64 = 20;

    /// Notes submissions of every length behind those in `ends`, and so on. Returns how many sequences there were.
    fn search<const POSITIONS: usize>(proof: &ReadProof<POSITIONS>, ends: &mut Vec<u64>) -> u64 {
        let last = *ends.last().expect("the start");
        assert_eq!(proof.reached(ends.len() as u64 - 1), last, "the latest is exact");
        let share = RING / (POSITIONS as u64 - 2);
        for (value, truth) in (0..).zip(ends.iter()) {
            let proved = proof.reached(value);
            assert!(proved <= *truth, "{ends:?}: {value}: {proved} was not reached");
            // What a full ring still needs to know.
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

    /// Sequences of any submissions, over two, four and eight shares. All of them up to a bound: what the type does
    /// depends on distances between positions in shares, and every such distance within a ring comes up.
    #[test]
    fn every_sequence_of_submissions_is_proved_truly_and_nearly() {
        let two = search(&ReadProof::<4>::new(RING as usize, 0), &mut vec![0]);
        let four = search(&ReadProof::<6>::new(RING as usize, 0), &mut vec![0]);
        let eight = search(&ReadProof::<10>::new(RING as usize, 0), &mut vec![0]);
        assert!(two == four && four == eight && two > 1 << 18, "{two} sequences");
    }
}
