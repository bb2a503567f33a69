//! What few requests ask of SAMPLE: filters, penalties and biases beyond [`Draws`](crate::Draws), and the most likely
//! tokens with each choice.
//!
//! | structure | written by | read by |
//! |---|---|---|
//! | [`Extras`], one for each slot | the host, before the command Admit that has a flag | SAMPLE, with SYS scope |
//! | [`TopTokens`], one for each slot | SAMPLE, if the slot has [`EXTRAS_TOPS`] | PLAN |
//! | [`TopTokens`], one for each entry of the output ring | PLAN, before the entry | the host, before it frees the entry |
//! | every `reserved` | the host, zero, before the kernel starts | PLAN, which copies a whole [`TopTokens`]; nothing depends on them |
//!
//! The flags are [`SlotState::extras`](crate::SlotState::extras). Without one SAMPLE does not read [`Extras`].
//!
//! The host may read the `TopTokens` of a token just after it has taken the entry: PLAN leaves one entry free for each
//! slot, so that none of the next [`SLOTS_MAX`](crate::SLOTS_MAX) - 1 tokens lies in the place of the last one taken.

use crate::layout::layout;

/// Maximum number of biases of a request.
pub const BIASES_MAX: usize = 64;
/// Maximum number of most likely tokens that come with a choice.
pub const TOPS_MAX: usize = 20;

/// Flag: biases, a presence penalty or a frequency penalty.
pub const EXTRAS_ADJUST: u32 = 1;
/// Flag: min-p or typical-p.
pub const EXTRAS_FILTER: u32 = 2;
/// Flag: [`TopTokens`] with each choice.
pub const EXTRAS_TOPS: u32 = 4;

/// Tokens of the penalty window that are counted, at most: a count and the number of a bias share a dword.
pub const COUNTED_TOKENS_MAX: u32 = (1 << 24) - 1;

layout! {
    /// A value that is added to the logit of a token.
    Bias {
        /// The token.
        token: u32,
        /// f32 bits of the value.
        value: u32,
    }
}

layout! {
    /// What a slot's request asks of SAMPLE: 544 bytes.
    Extras {
        /// Least share of the greatest weight that a token needs, in units of 2^-32; 0: no min-p.
        min_p: u32,
        /// Share of the weight that the most typical tokens have, in units of 2^-32; 0: no typical-p.
        typical_p: u32,
        /// f32 bits of the presence penalty.
        presence: u32,
        /// f32 bits of the frequency penalty.
        frequency: u32,
        /// How many of the most likely tokens come with a choice, at most [`TOPS_MAX`].
        tops: u32,
        /// How many of `bias` count, at most [`BIASES_MAX`].
        biases: u32,
        /// 0.
        reserved: [u32; 2],
        /// Biases of different tokens.
        bias: [Bias; BIASES_MAX],
    }
}

layout! {
    /// A token and how far it is below the most likely one.
    TopToken {
        /// The token.
        token: u32,
        /// f32 bits of its logit less the greatest logit.
        difference: u32,
    }
}

layout! {
    /// The raw distribution that a token was chosen from, in parts: 192 bytes.
    TopTokens {
        /// How many of `top` count.
        count: u32,
        /// f32 bits of the choice's logit less the greatest logit.
        difference: u32,
        /// Sum of all weights in units of 2^-40, low half; the sum is 0 if no logit is above -inf.
        sum_low: u32,
        /// High half.
        sum_high: u32,
        /// The most likely tokens, in order.
        top: [TopToken; TOPS_MAX],
        /// 0.
        reserved: [u32; 4],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::written;

    /// A dword holds a count and the number of a bias: 24 bits and 8.
    #[test]
    fn a_count_and_the_number_of_a_bias_share_a_dword() {
        assert_eq!(COUNTED_TOKENS_MAX, 0x00ff_ffff);
        assert!((BIASES_MAX as u64) << 24 | u64::from(COUNTED_TOKENS_MAX) <= u64::from(u32::MAX));
    }

    #[test]
    fn extras_lie_as_written_down() {
        let expected = "\
Extras 544
   0 min_p
   4 typical_p
   8 presence
  12 frequency
  16 tops
  20 biases
  24 reserved
  32 bias
";
        assert_eq!(written(&Extras::LAYOUT), expected);
        assert_eq!(written(&Bias::LAYOUT), "Bias 8\n   0 token\n   4 value\n");
    }

    #[test]
    fn the_most_likely_tokens_lie_as_written_down() {
        let expected = "\
TopTokens 192
   0 count
   4 difference
   8 sum_low
  12 sum_high
  16 top
 176 reserved
";
        assert_eq!(written(&TopTokens::LAYOUT), expected);
        assert_eq!(written(&TopToken::LAYOUT), "TopToken 8\n   0 token\n   4 difference\n");
    }
}
