//! What others measured on cards of the same chip: shown beside predictions, each with its source.
//!
//! Contract: data only. None of these was measured for this project, and none is an input of the model.

/// Somebody's measurement.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Peer {
    /// Program and way.
    pub program: &'static str,
    /// Model as its source names it.
    pub model: &'static str,
    /// Card.
    pub card: &'static str,
    /// Test by llama-bench's names; a number of rows at once is said.
    pub test: &'static str,
    /// Tokens per second.
    pub tokens_per_second: f64,
    /// Where it was published.
    pub source: &'static str,
}

macro_rules! peers {
    ($($program:literal, $model:literal, $card:literal, $test:literal, $speed:literal, $source:literal;)*) => {
        /// All of them.
        pub const PEERS: &[Peer] = &[$(Peer {
            program: $program,
            model: $model,
            card: $card,
            test: $test,
            tokens_per_second: $speed,
            source: $source,
        }),*];
    };
}

peers! {
    "llama.cpp Vulkan", "Qwen3-8B Q4_K_M", "RX 9070 XT", "tg128", 104.3, "llama.cpp issue 26663";
    "llama.cpp HIP", "Qwen3-8B Q4_K_M", "RX 9070 XT", "tg128", 91.1, "llama.cpp issue 26663";
    "llama.cpp Vulkan", "Qwen3-8B Q4_K_M", "RX 9070 XT", "pp512", 2866.0, "llama.cpp issue 26663";
    "llama.cpp HIP", "Qwen3-8B Q4_K_M", "RX 9070 XT", "pp512", 4199.0, "llama.cpp issue 26663";
    "llama.cpp HIP", "Llama-8B Q4_K_M", "R9700", "tg64", 94.9, "llama.cpp PR 26284";
    "llama.cpp HIP", "Llama-8B Q4_K_M", "R9700", "pp2048, 512 at once", 4095.0, "llama.cpp PR 26284";
    "llama.cpp HIP", "Llama-8B Q4_K_S", "R9700", "pp, 8 at once", 272.0, "llama.cpp PR 18816";
    "llama.cpp HIP", "Llama-8B Q4_K_S", "R9700", "pp, 16 at once", 905.0, "llama.cpp PR 18816";
    "hipfire", "Qwen3.5-9B MFP4", "R9700", "decode", 87.5, "hipfire PR 235";
    "llama.cpp Vulkan", "Qwen3-0.6B Q4_K_M", "RX 9070 XT", "tg128", 571.9, "llama.cpp issue 26663";
    "llama.cpp HIP", "Qwen3-0.6B Q4_K_M", "RX 9070 XT", "tg128", 292.2, "llama.cpp issue 26663";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_measurement_names_its_source() {
        for peer in PEERS {
            assert!(peer.tokens_per_second > 0.0 && peer.source.chars().any(|one| one.is_ascii_digit()));
        }
    }
}
