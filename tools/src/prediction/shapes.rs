//! Shapes of published models: configuration and storage types, without weights.
//!
//! Contract: a shape becomes a [`Model`] by way of a GGUF header that is made here, so that it takes the path of a
//! file. Nothing but tensor names, sizes and the metadata that a plan needs is in it; weights read as zeros.

use crate::error::ToolError;
use std::sync::Arc;
use zrt_engine::architecture::Architecture;
use zrt_engine::gguf::{Gguf, TensorKind};
use zrt_engine::model::Model;
use zrt_engine::weights::{WeightClass, WeightId};

/// Alignment of tensor data (GGUF's default).
const ALIGNMENT_BYTES: u64 = 32;
/// GGUF's numbers of value types.
const TYPE_U32: u32 = 4;
const TYPE_F32: u32 = 6;
const TYPE_TEXT: u32 = 8;

/// How the matrices of a file are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// Every matrix in Q8_0.
    Q8_0,
    /// The mixture that llama.cpp calls Q4_K - Medium.
    Q4KMedium,
    /// Every matrix in BF16, as models are published.
    Bf16,
}

/// A published model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Name and storage, as in a table.
    pub name: &'static str,
    /// Where the numbers come from.
    pub source: &'static str,
    /// How it is stored.
    pub storage: Storage,
    architecture: Architecture,
    layers: u32,
    width: u32,
    heads: u32,
    kv_heads: u32,
    head_size: u32,
    feed_forward: u32,
    vocabulary: u32,
    context: u32,
    has_output: bool,
    rope_base: f32,
    /// Positions of the layers that look back less far; 0: none do.
    window: u32,
}

/// Qwen3-8B in Q4_K_M.
pub const QWEN3_8B_Q4_K_M: Shape = Shape {
    name: "Qwen3-8B Q4_K_M",
    source: "config.json of Qwen/Qwen3-8B; types by llama.cpp's llama_tensor_get_type",
    storage: Storage::Q4KMedium,
    architecture: Architecture::Qwen3,
    layers: 36,
    width: 4096,
    heads: 32,
    kv_heads: 8,
    head_size: 128,
    feed_forward: 12288,
    vocabulary: 151_936,
    context: 40_960,
    has_output: true,
    rope_base: 1e6,
    window: 0,
};

/// Qwen3-0.6B in Q8_0.
pub const QWEN3_0_6B_Q8_0: Shape = Shape {
    name: "Qwen3-0.6B Q8_0",
    source: "config.json of Qwen/Qwen3-0.6B",
    storage: Storage::Q8_0,
    architecture: Architecture::Qwen3,
    layers: 28,
    width: 1024,
    heads: 16,
    kv_heads: 8,
    head_size: 128,
    feed_forward: 3072,
    vocabulary: 151_936,
    context: 40_960,
    has_output: false,
    rope_base: 1e6,
    window: 0,
};

/// Qwen3-0.6B as published.
pub const QWEN3_0_6B_BF16: Shape =
    Shape { name: "Qwen3-0.6B BF16", storage: Storage::Bf16, ..QWEN3_0_6B_Q8_0 };

/// Published models for cards of 16 and 32 GB, in Q4_K_M.
pub const RELEASES: [Shape; 4] = [
    Shape {
        name: "Llama-3.1-8B Q4_K_M",
        source: "config.json of meta-llama/Llama-3.1-8B; types by llama.cpp's llama_tensor_get_type",
        storage: Storage::Q4KMedium,
        architecture: Architecture::Llama,
        layers: 32,
        width: 4096,
        heads: 32,
        kv_heads: 8,
        head_size: 128,
        feed_forward: 14_336,
        vocabulary: 128_256,
        context: 131_072,
        has_output: true,
        rope_base: 5e5,
        window: 0,
    },
    Shape {
        name: "Gemma-3-12B Q4_K_M",
        source: "config.json of google/gemma-3-12b-it; types by llama.cpp's llama_tensor_get_type",
        storage: Storage::Q4KMedium,
        architecture: Architecture::Gemma3,
        layers: 48,
        width: 3840,
        heads: 16,
        kv_heads: 8,
        head_size: 256,
        feed_forward: 15_360,
        vocabulary: 262_208,
        context: 131_072,
        has_output: false,
        rope_base: 1e6,
        window: 1024,
    },
    Shape {
        name: "Devstral-24B Q4_K_M",
        source: "config.json of mistralai/Devstral-Small-2505; types by llama.cpp's llama_tensor_get_type",
        storage: Storage::Q4KMedium,
        architecture: Architecture::Llama,
        layers: 40,
        width: 5120,
        heads: 32,
        kv_heads: 8,
        head_size: 128,
        feed_forward: 32_768,
        vocabulary: 131_072,
        context: 131_072,
        has_output: true,
        rope_base: 1e9,
        window: 0,
    },
    Shape {
        name: "Qwen3-32B Q4_K_M",
        source: "config.json of Qwen/Qwen3-32B; types by llama.cpp's llama_tensor_get_type",
        storage: Storage::Q4KMedium,
        architecture: Architecture::Qwen3,
        layers: 64,
        width: 5120,
        heads: 64,
        kv_heads: 8,
        head_size: 128,
        feed_forward: 25_600,
        vocabulary: 151_936,
        context: 40_960,
        has_output: true,
        rope_base: 1e6,
        window: 0,
    },
];

impl Shape {
    /// The model of this shape.
    pub fn model(&self) -> Result<Model, ToolError> {
        let (head, file_bytes) = self.header();
        let model = || self.name.to_owned();
        let gguf = Gguf::from_head(head, file_bytes);
        let gguf = gguf.map_err(|source| ToolError::Gguf { model: model(), source })?;
        Model::load(Arc::new(gguf)).map_err(|source| ToolError::Model { model: model(), source })
    }

    /// The header of a file of this shape, and the length of the file.
    fn header(&self) -> (Vec<u8>, u64) {
        let tensors = self.tensors();
        let mut numbers = vec![
            ("embedding_length", self.width),
            ("attention.head_count", self.heads),
            ("attention.head_count_kv", self.kv_heads),
            ("attention.key_length", self.head_size),
            ("attention.value_length", self.head_size),
            ("block_count", self.layers),
            ("feed_forward_length", self.feed_forward),
            ("context_length", self.context),
        ];
        if self.window > 0 {
            numbers.push(("attention.sliding_window", self.window));
        }
        let mut file = b"GGUF\x03\0\0\0".to_vec();
        file.extend((tensors.len() as u64).to_le_bytes());
        file.extend((numbers.len() as u64 + 3).to_le_bytes());
        let architecture = self.architecture.name();
        put_key(&mut file, "general.architecture", TYPE_TEXT);
        put_text(&mut file, architecture);
        for (key, value) in numbers {
            put_key(&mut file, &format!("{architecture}.{key}"), TYPE_U32);
            file.extend(value.to_le_bytes());
        }
        for (key, value) in
            [("attention.layer_norm_rms_epsilon", 1e-6f32), ("rope.freq_base", self.rope_base)]
        {
            put_key(&mut file, &format!("{architecture}.{key}"), TYPE_F32);
            file.extend(value.to_le_bytes());
        }
        let mut data_bytes = 0u64;
        for (id, kind, dimensions) in &tensors {
            put_text(&mut file, &id.tensor_name());
            file.extend((dimensions.len() as u32).to_le_bytes());
            dimensions.iter().for_each(|dimension| file.extend(dimension.to_le_bytes()));
            file.extend(kind.id().to_le_bytes());
            file.extend(data_bytes.to_le_bytes());
            let elements: u64 = dimensions.iter().product();
            let bytes = elements / kind.block_elements() * kind.block_bytes();
            data_bytes = (data_bytes + bytes).next_multiple_of(ALIGNMENT_BYTES);
        }
        let file_bytes = (file.len() as u64).next_multiple_of(ALIGNMENT_BYTES) + data_bytes;
        (file, file_bytes)
    }

    /// Every tensor with its type and dimensions, the contiguous one first.
    fn tensors(&self) -> Vec<(WeightId, TensorKind, Vec<u64>)> {
        let mut tensors = Vec::new();
        for class in WeightClass::ALL.into_iter().filter(|class| self.architecture.has_class(*class)) {
            if class == WeightClass::Output && !self.has_output {
                continue;
            }
            let layers = if class.is_per_layer() { self.layers } else { 1 };
            for layer in 0..layers {
                let (rows, columns) = self.rows_and_columns(class);
                let dimensions = if class.is_vector() { vec![columns] } else { vec![columns, rows] };
                tensors.push((WeightId::new(class, layer), self.kind(class, layer), dimensions));
            }
        }
        tensors
    }

    fn rows_and_columns(&self, class: WeightClass) -> (u64, u64) {
        let (width, feed_forward) = (u64::from(self.width), u64::from(self.feed_forward));
        let query = u64::from(self.heads * self.head_size);
        let kv = u64::from(self.kv_heads * self.head_size);
        match class {
            WeightClass::Embedding | WeightClass::Output => (self.vocabulary.into(), width),
            WeightClass::AttentionNorm
            | WeightClass::AttentionPostNorm
            | WeightClass::FeedForwardNorm
            | WeightClass::FeedForwardPostNorm
            | WeightClass::OutputNorm => (1, width),
            WeightClass::QueryBias => (1, query),
            WeightClass::KeyBias | WeightClass::ValueBias => (1, kv),
            WeightClass::QueryNorm | WeightClass::KeyNorm => (1, self.head_size.into()),
            WeightClass::Query => (query, width),
            WeightClass::Key | WeightClass::Value => (kv, width),
            WeightClass::AttentionOutput => (width, query),
            WeightClass::Gate | WeightClass::Up => (feed_forward, width),
            WeightClass::Down => (width, feed_forward),
        }
    }

    fn kind(&self, class: WeightClass, layer: u32) -> TensorKind {
        match (self.storage, class) {
            _ if class.is_vector() => TensorKind::F32,
            (Storage::Q8_0, _) => TensorKind::Q8_0,
            (Storage::Bf16, _) => TensorKind::BF16,
            (Storage::Q4KMedium, WeightClass::Output) => TensorKind::Q6_K,
            (Storage::Q4KMedium, WeightClass::Embedding) if !self.has_output => TensorKind::Q6_K,
            (Storage::Q4KMedium, WeightClass::Value | WeightClass::Down) if self.has_more_bits(layer) => {
                TensorKind::Q6_K
            }
            (Storage::Q4KMedium, _) => TensorKind::Q4_K,
        }
    }

    /// The layers whose value and down projections Q4_K_M stores in Q6_K: llama.cpp's `use_more_bits`.
    fn has_more_bits(&self, layer: u32) -> bool {
        let eighth = self.layers / 8;
        layer < eighth || layer >= 7 * self.layers / 8 || (layer - eighth) % 3 == 2
    }
}

fn put_text(file: &mut Vec<u8>, text: &str) {
    file.extend((text.len() as u64).to_le_bytes());
    file.extend(text.as_bytes());
}

fn put_key(file: &mut Vec<u8>, key: &str, value_type: u32) {
    put_text(file, key);
    file.extend(value_type.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use zrt_engine::activations::Activations;
    use zrt_engine::kv_format::KvFormat;
    use zrt_engine::memory_plan::{Allocation, AllocationId};
    use zrt_engine::session::SessionOptions;
    use zrt_mem::Heap;

    /// The published files have 5,027,783,488 and 639,446,688 bytes, with tokenizers of some 6 MB.
    #[test]
    fn files_of_these_shapes_are_as_long_as_the_published_ones() {
        for (shape, published) in [(QWEN3_8B_Q4_K_M, 5_027_783_488), (QWEN3_0_6B_Q8_0, 639_446_688)] {
            let model = shape.model().unwrap();
            let header = published - model.weight_bytes();
            assert!((5_000_000..7_000_000).contains(&header), "{}: {header}", shape.name);
        }
    }

    /// 8,190,735,360 parameters by the model's card, and 596 million with tied embeddings.
    #[test]
    fn parameters_are_those_of_the_cards() {
        assert_eq!(QWEN3_8B_Q4_K_M.model().unwrap().parameter_count(), 8_190_735_360);
        assert_eq!(QWEN3_0_6B_Q8_0.model().unwrap().parameter_count(), 596_049_920);
        // Of Gemma 3 the card counts the vision tower too.
        let counts = RELEASES.map(|shape| shape.model().unwrap().parameter_count());
        assert_eq!([counts[0], counts[2], counts[3]], [8_030_261_248, 23_572_403_200, 32_762_123_264]);
        assert!((11_500_000_000..12_187_325_040).contains(&counts[1]), "{}", counts[1]);
        // None but Gemma 3 attends within a window.
        let windows = RELEASES.map(|shape| {
            let model = shape.model().unwrap();
            let key = format!("{}.attention.sliding_window", model.config.architecture.name());
            model.gguf.metadata.u32(&key).ok()
        });
        assert_eq!(windows, [None, Some(1024), None, None]);
    }

    /// As published every matrix has 16 bits. Norms are F32: 128 elements each for queries and keys of a layer, 1024
    /// for each of its two parts, and 1024 at the end.
    #[test]
    fn a_published_model_has_two_bytes_for_each_parameter_of_a_matrix() {
        let model = QWEN3_0_6B_BF16.model().unwrap();
        let norms = 28 * (2 * 128 + 2 * 1024) + 1024;
        assert_eq!(model.weight_bytes(), 2 * model.parameter_count() + 2 * norms);
        let named = [QWEN3_0_6B_BF16, QWEN3_0_6B_Q8_0].map(|shape| (shape.name, shape.storage));
        assert_eq!(named, [("Qwen3-0.6B BF16", Storage::Bf16), ("Qwen3-0.6B Q8_0", Storage::Q8_0)]);
    }

    /// The figures of decision 49, in MiB: values of steps of 128 and of 512 rows.
    #[test]
    fn values_of_a_full_step_take_a_hundredth_of_a_card() {
        let model = QWEN3_8B_Q4_K_M.model().unwrap();
        let mib = |chunk_rows| {
            let options = SessionOptions { chunk_rows, context: 512, ..SessionOptions::default() };
            let memory = options.memory(&model).unwrap();
            let is_values = |one: &&Allocation| one.id == AllocationId::Activations;
            memory.allocations.iter().find(is_values).unwrap().len.0 >> 20
        };
        assert_eq!([64, 448].map(mib), [26, 106]);
    }

    /// With 8192 tokens all fit 32 GiB, and all but the largest 16 GiB; a session needs little more than its weights.
    #[test]
    fn releases_fit_their_cards() {
        for (shape, card_gib) in RELEASES.into_iter().zip([16, 16, 16, 32]) {
            let options = SessionOptions {
                slots: 1,
                context: 8192,
                kv_format: KvFormat::F16,
                activations: Activations::A8,
                ..SessionOptions::default()
            };
            let memory = options.memory(&shape.model().unwrap()).unwrap();
            let bytes = memory.heap_len(Heap::DeviceLocal).0 + memory.heap_len(Heap::HostShared).0;
            let weights = shape.model().unwrap().weight_bytes();
            assert!(bytes < card_gib << 30, "{}: {bytes}", shape.name);
            assert!((weights..weights + (5 << 30)).contains(&bytes), "{}: {bytes}, {weights}", shape.name);
        }
    }

    /// Of 36 layers: the first eighth, the last one, and every third between them from the seventh on (llama.cpp,
    /// `use_more_bits`).
    #[test]
    fn q4_k_m_stores_half_of_the_value_and_down_projections_with_more_bits() {
        let model = QWEN3_8B_Q4_K_M.model().unwrap();
        let in_six_bits = |class| -> Vec<u32> {
            let weights = model.weights().filter(|(id, _)| id.class == class);
            let of = weights.filter(|(_, weight)| weight.tensor.kind == TensorKind::Q6_K);
            of.map(|(id, _)| id.layer).collect()
        };
        let more = [0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 31, 32, 33, 34, 35];
        assert_eq!(in_six_bits(WeightClass::Value), more);
        assert_eq!(in_six_bits(WeightClass::Down), more);
        assert_eq!(in_six_bits(WeightClass::Query), [0; 0]);
        assert_eq!(
            (in_six_bits(WeightClass::Output), in_six_bits(WeightClass::Embedding)),
            (vec![0], vec![])
        );
        // Without an output matrix the embedding is used as one.
        let kinds = RELEASES.map(|shape| shape.kind(WeightClass::Embedding, 0));
        assert_eq!(kinds, [TensorKind::Q4_K, TensorKind::Q6_K, TensorKind::Q4_K, TensorKind::Q4_K]);
    }

    /// Of 64 layers eight at each end, and 10, 13, ... 55.
    #[test]
    fn every_third_layer_between_the_eighths_has_more_bits() {
        let [.., qwen3_32b] = RELEASES;
        let more: Vec<u32> = (0..64).filter(|layer| qwen3_32b.has_more_bits(*layer)).collect();
        let expected: Vec<u32> = (0..8).chain((10..56).step_by(3)).chain(56..64).collect();
        assert_eq!(more, expected);
    }

    /// All tensors are multiples of 32 bytes here, so nothing lies between them.
    #[test]
    fn a_file_is_as_long_as_its_head_and_its_tensors() {
        let (head, file_bytes) = QWEN3_0_6B_Q8_0.header();
        let tensors = QWEN3_0_6B_Q8_0.model().unwrap().weight_bytes();
        assert_eq!(file_bytes, (head.len() as u64).next_multiple_of(32) + tensors);
    }
}
