//! What `zrt-bench` asks of a session: requests of known lengths.
//!
//! Contract: pure and the same on every machine; tokens are spread over the vocabulary, so that embedding rows differ.
//! Lengths are those of a card times a scale, rounded, at least 1.

use zrt_mem::Random;

/// Requests of W2 and W3.
const REQUESTS: usize = 16;
/// Start of W2's lengths.
const SEED: u64 = 3;
/// A prime, so that a prompt visits every row of a vocabulary that it does not divide.
const STRIDE: u64 = 7919;

/// A set of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// One request for each slot: a prompt of 256 tokens, 256 to generate.
    W1,
    /// 16 requests of mixed lengths: prompts of 32 to 1024 tokens, 64 to 256 to generate.
    W2,
    /// 16 requests whose prompts begin with the same 1024 tokens; 32 of their own, 64 to generate.
    W3,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// Its prompt.
    pub prompt: Vec<u32>,
    /// Tokens to generate.
    pub tokens_max: u32,
}

impl Workload {
    /// The name on the command line and in the table.
    pub const fn name(self) -> &'static str {
        match self {
            Workload::W1 => "W1",
            Workload::W2 => "W2",
            Workload::W3 => "W3",
        }
    }

    /// The workload of this name.
    pub fn parse(name: &str) -> Result<Workload, String> {
        let all = [Workload::W1, Workload::W2, Workload::W3];
        let found = all.into_iter().find(|one| one.name().eq_ignore_ascii_case(name));
        found.ok_or_else(|| "there are W1, W2 and W3".to_owned())
    }

    /// Its requests for a session of `slots` and a model of `vocabulary` tokens.
    pub fn requests(self, slots: u32, scale: f64, vocabulary: u32) -> Vec<Sequence> {
        let scaled = |length: u64| scaled(length, scale);
        let request = |number: usize, shared: u64, own: u64, tokens_max: u64| {
            let token = |index: u64| {
                let start = if index < shared { 0 } else { number as u64 + 1 };
                ((start + index * STRIDE) % u64::from(vocabulary.max(1))) as u32
            };
            Sequence { prompt: (0..shared + own).map(token).collect(), tokens_max: tokens_max as u32 }
        };
        match self {
            Workload::W1 => {
                (0..slots as usize).map(|number| request(number, 0, scaled(256), scaled(256))).collect()
            }
            Workload::W2 => {
                let mut random = Random::new(SEED);
                let mut between = |low: u64, high: u64| low + random.bits() % (high - low + 1);
                (0..REQUESTS)
                    .map(|number| {
                        let prompt = scaled(between(32, 1024));
                        request(number, 0, prompt, scaled(between(64, 256)))
                    })
                    .collect()
            }
            Workload::W3 => {
                (0..REQUESTS).map(|number| request(number, scaled(1024), scaled(32), scaled(64))).collect()
            }
        }
    }
}

fn scaled(length: u64, scale: f64) -> u64 {
    ((length as f64 * scale).round() as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benchmark_lengths_are_scaled_and_never_zero() {
        let lengths = |requests: Vec<Sequence>| -> Vec<(usize, u32)> {
            requests.iter().map(|one| (one.prompt.len(), one.tokens_max)).collect()
        };
        assert_eq!(lengths(Workload::W1.requests(2, 1.0, 512)), [(256, 256); 2]);
        assert_eq!(lengths(Workload::W1.requests(1, 1.0 / 16.0, 512)), [(16, 16)]);
        assert_eq!(lengths(Workload::W1.requests(1, 0.0001, 512)), [(1, 1)]);
        assert_eq!(lengths(Workload::W3.requests(4, 1.0 / 16.0, 512)), [(66, 4); 16]);
    }

    #[test]
    fn benchmark_w2_is_mixed_and_in_range() {
        let requests = Workload::W2.requests(1, 1.0, 100);
        assert_eq!(requests.len(), 16);
        for request in &requests {
            assert!((32..=1024).contains(&request.prompt.len()) && (64..=256).contains(&request.tokens_max));
            assert!(request.prompt.iter().all(|token| *token < 100));
        }
        assert!(requests.iter().any(|one| one.prompt.len() < 512));
        assert!(requests.iter().any(|one| one.prompt.len() > 512));
    }

    #[test]
    fn benchmark_w3_shares_its_beginning_and_nothing_else() {
        let requests = Workload::W3.requests(1, 1.0, 1_000_003);
        let (first, second) = (&requests[0].prompt, &requests[1].prompt);
        assert_eq!(first[..1024], second[..1024]);
        assert!(first[1024..].iter().zip(&second[1024..]).all(|(one, other)| one != other));
    }

    /// Tokens are a stride of 7919 apart and begin with the request's number from 1; what is shared begins with 0.
    #[test]
    fn benchmark_tokens_are_spread_by_request() {
        let own = Workload::W1.requests(2, 1.0 / 128.0, 1_000_000);
        assert_eq!([&own[0].prompt[..], &own[1].prompt], [&[1, 7920], &[2, 7921]]);
        let shared = Workload::W3.requests(1, 1.0, 100_000_000);
        // 7919 × 1024 is 8,109,056.
        assert_eq!([0, 1, 1024].map(|at| shared[1].prompt[at]), [0, 7919, 8_109_058]);
        assert_eq!(Workload::W1.requests(1, 1.0 / 128.0, 7919)[0].prompt, [1, 1]);
        assert_eq!(Workload::W1.requests(1, 1.0 / 128.0, 0)[0].prompt, [0, 0]);
    }

    /// Both ends of both ranges can be drawn: 993 lengths of prompts, 193 of answers.
    #[test]
    fn benchmark_w2_is_drawn_from_whole_ranges() {
        let mut random = Random::new(SEED);
        for request in Workload::W2.requests(1, 1.0, 512) {
            let [prompt, answer] = [random.bits(), random.bits()];
            assert_eq!(request.prompt.len() as u64, 32 + prompt % 993);
            assert_eq!(u64::from(request.tokens_max), 64 + answer % 193);
        }
    }

    #[test]
    fn benchmark_workloads_have_names() {
        for (name, workload) in [("W1", Workload::W1), ("w2", Workload::W2), ("W3", Workload::W3)] {
            assert_eq!(Workload::parse(name), Ok(workload));
            assert_eq!(workload.name(), name.to_uppercase());
        }
        assert_eq!(Workload::parse("W4"), Err("there are W1, W2 and W3".to_owned()));
    }
}
