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

/// Positions that fences stand for.
#[derive(Debug)]
pub(crate) struct ReadProof {
    kept: [FencePosition; POSITIONS_MAX],
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

impl ReadProof {
    /// For a ring of `ring_dwords` whose pointers begin at `start`.
    pub(crate) fn new(ring_dwords: usize, start: u64) -> ReadProof {
        let begin = FencePosition { value: 0, position: start };
        let share_dwords = (ring_dwords / SHARES) as u64;
        ReadProof { kept: [begin; POSITIONS_MAX], next: 0, latest: begin, share_dwords }
    }

    /// A fence with `value`, above all before it, ends at `position`.
    #[inline]
    pub(crate) fn note(&mut self, value: u64, position: u64) {
        self.latest = FencePosition { value, position };
        let newest = self.kept[(self.next + POSITIONS_MAX - 1) % POSITIONS_MAX];
        if position - newest.position >= self.share_dwords {
            self.kept[self.next] = self.latest;
            self.next = (self.next + 1) % POSITIONS_MAX;
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
            let mut proof = ReadProof::new(1024, 7);
            assert_eq!(proof.reached(u64::MAX), 7);
            let last = 3 * 1024 / len;
            for value in 1..=last {
                proof.note(value, 7 + value * len);
            }
            assert_eq!(proof.reached(last), 7 + last * len, "the latest is exact");
            // As far back as a full ring reaches.
            for value in last - 1023 / len..=last {
                let (proved, truth) = (proof.reached(value), 7 + value * len);
                assert!(proved <= truth && truth - proved < 16 + len, "{len}: {value}: {proved} of {truth}");
            }
        }
    }
}
