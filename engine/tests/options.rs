//! Every public entry point: any numbers give a typed error or a value that keeps its promises.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

use proptest::prelude::*;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use zrt_engine::activations::Activations;
use zrt_engine::gguf::{Gguf, TensorKind};
use zrt_engine::kv_format::KvFormat;
use zrt_engine::layout::WeightLayout;
use zrt_engine::memory_plan::{AllocationId, Capacity, MemoryPlan};
use zrt_engine::model::Model;
use zrt_engine::model_error::ModelError;
use zrt_engine::placement::Placement;
use zrt_engine::plan::ExecutionPlan;
use zrt_engine::sampling::{LogitBias, SamplingOptions};
use zrt_engine::session::{Mode, SessionOptions};
use zrt_mem::Heap;

fn repository_model() -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/tales-qwen3-Q4_0.gguf")).unwrap()
}

static MODEL: LazyLock<Model> =
    LazyLock::new(|| Model::load(Arc::new(Gguf::from_bytes(repository_model()).unwrap())).unwrap());

/// Numbers that users give by mistake: small, at the edges of powers of two, and any.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![
        0u32..300,
        (0u32..32, -2i64..3).prop_map(|(power, more)| (i64::from(1u32 << power) + more) as u32),
        Just(u32::MAX),
        any::<u32>(),
    ]
}

fn float() -> impl Strategy<Value = f32> {
    prop_oneof![
        Just(0.0f32),
        Just(1.0),
        Just(-1.0),
        Just(f32::NAN),
        Just(f32::INFINITY),
        Just(f32::NEG_INFINITY),
        Just(f32::MIN_POSITIVE),
        0.001f32..2.0,
        any::<u32>().prop_map(f32::from_bits),
    ]
}

prop_compose! {
    fn session_options()(
        mode in prop::sample::select(Mode::ALL.to_vec()),
        (slots, waiting_max, context, chunk_rows) in (number(), number(), number(), number()),
        (pages, groups) in (prop::option::of(number()), prop::option::of(number())),
        (input_entries, output_entries) in (number(), number()),
        output_heap in prop::sample::select(vec![Heap::Host, Heap::HostShared, Heap::DeviceLocal]),
        hang_after in any::<u64>(),
        is_usual in any::<u32>(),
    ) -> SessionOptions {
        // A few numbers at a time, so that each is tested.
        let usual = SessionOptions::default();
        let pick = |bit: u32, value, default| if is_usual >> bit & 1 == 1 { default } else { value };
        SessionOptions {
            mode,
            slots: pick(0, slots, usual.slots),
            waiting_max: pick(1, waiting_max, usual.waiting_max),
            context: pick(2, context, usual.context),
            pages,
            chunk_rows: pick(3, chunk_rows, usual.chunk_rows),
            groups,
            input_entries: pick(4, input_entries, usual.input_entries),
            output_entries: pick(5, output_entries, usual.output_entries),
            output_heap: if is_usual >> 6 & 1 == 1 { usual.output_heap } else { output_heap },
            hang_after: Duration::from_nanos(hang_after),
            ..usual
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn session_options_keep_their_ranges(options in session_options()) {
        if let Err(error) = options.check() {
            prop_assert!(error.to_string().contains("must be"), "{}", error);
            return Ok(());
        }
        let (slots, context) = (u64::from(options.slots), u64::from(options.context));
        prop_assert!((1..=64).contains(&slots) && context >= 2);
        prop_assert!(slots * context < 1 << 32);
        prop_assert!((slots + u64::from(options.waiting_max)) * context * 4 <= 1 << 30);
        prop_assert!((1..=512).contains(&options.chunk_rows));
        for entries in [options.input_entries, options.output_entries] {
            prop_assert!(entries.is_power_of_two() && entries <= 4096);
        }
        prop_assert!(options.output_entries >= 128 && options.output_heap != Heap::DeviceLocal);
    }

    #[test]
    fn sampling_holds_what_is_in_range(
        (temperature, top_p, repetition_penalty) in (float(), float(), float()),
        (min_p, typical_p) in (float(), float()),
        (presence_penalty, frequency_penalty) in (float(), float()),
        log_probabilities in prop::option::of(0u32..40),
        (top_k, penalty_window, seed) in (any::<u32>(), any::<u32>(), any::<u64>()),
    ) {
        let options = SamplingOptions {
            temperature,
            top_k,
            top_p,
            repetition_penalty,
            penalty_window,
            min_p,
            typical_p,
            presence_penalty,
            frequency_penalty,
            logit_bias: LogitBias::default(),
            log_probabilities,
            seed,
        };
        let Ok(sampling) = options.validate() else {
            let is_right = (temperature == 0.0 || (0.001..=1000.0).contains(&temperature))
                && top_p > 0.0
                && top_p <= 1.0
                && (0.01..=100.0).contains(&repetition_penalty)
                && (0.0..=1.0).contains(&min_p)
                && typical_p > 0.0
                && typical_p <= 1.0
                && presence_penalty.abs() <= 100.0
                && frequency_penalty.abs() <= 100.0
                && log_probabilities.is_none_or(|count| count <= 20);
            prop_assert!(!is_right, "{:?}", options);
            return Ok(());
        };
        let draws = sampling.draws();
        let inverse = f32::from_bits(draws.inverse_temperature);
        prop_assert!(inverse == 0.0 || (0.000_999..=1000.1).contains(&inverse), "{}", inverse);
        for factor in [draws.penalty, draws.inverse_penalty] {
            prop_assert!((0.009_99..=100.1).contains(&f32::from_bits(factor)));
        }
        let extras = sampling.extras();
        for penalty in [extras.presence, extras.frequency] {
            prop_assert!(f32::from_bits(penalty).abs() <= 100.0);
        }
        prop_assert!(extras.tops <= 20 && (extras.min_p == 0) == (min_p == 0.0));
        prop_assert_eq!(extras.typical_p == 0, typical_p == 1.0);
        prop_assert!(draws.penalty_window < 1 << 24);
    }

    #[test]
    fn biases_hold_what_is_in_range(biases in prop::collection::vec((0u32..40, float()), 0..70)) {
        let mut tokens: Vec<u32> = biases.iter().map(|(token, _)| *token).collect();
        tokens.sort_unstable();
        tokens.dedup();
        let is_right = biases.iter().all(|(_, value)| value.is_finite() || *value == f32::NEG_INFINITY)
            && tokens.len() == biases.len();
        match LogitBias::new(&biases) {
            Ok(bias) => {
                prop_assert!(is_right && biases.len() <= 64);
                prop_assert_eq!(bias.entries(), &biases);
            }
            Err(_) => prop_assert!(!is_right || biases.len() > 64, "{:?}", biases),
        }
    }

    #[test]
    fn layouts_of_weights_count_without_overflow(
        kind in prop::sample::select(TensorKind::ALL.to_vec()),
        (rows, blocks) in (any::<u64>(), number()),
    ) {
        let columns = u64::from(blocks) * 256;
        if let Some(layout) = WeightLayout::new(kind, rows, columns) {
            prop_assert!(u128::from(layout.len.0) >= u128::from(rows) * u128::from(columns) / 4);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn memory_plans_count_without_overflow(
        (slots, pages, tasks, context, rows) in (number(), number(), number(), number(), 1u32..129),
        kv_format in prop::sample::select(KvFormat::ALL.to_vec()),
        activations in prop::sample::select(Activations::ALL.to_vec()),
        (input_entries, output_entries) in (number(), number()),
    ) {
        let output_heap = Heap::Host;
        let placement = Placement::default();
        let capacity =
            Capacity { slots, pages, kv_format, tasks, input_entries, output_entries, output_heap, placement };
        let plan = ExecutionPlan::step(&MODEL, context, rows, activations).unwrap();
        let Ok(memory) = MemoryPlan::new(&MODEL, &plan, &capacity) else {
            prop_assert!(!(1..=64).contains(&slots), "{:?}", capacity);
            return Ok(());
        };
        let pool = memory.allocations.iter().find(|one| one.id == AllocationId::KvPool).unwrap();
        let config = &MODEL.config;
        let page_bytes = kv_format.page_bytes(config.layers, config.kv_elements());
        prop_assert_eq!(u128::from(pool.len.0), u128::from(page_bytes) * u128::from(pages));
    }

    #[test]
    fn names_are_read_or_not(name in prop::collection::vec(prop_oneof![any::<char>(), prop::char::range('0', 'z')], 0..8)) {
        let name: String = name.into_iter().collect();
        prop_assert!(Mode::parse(&name).is_none_or(|mode| mode.name() == name));
        prop_assert!(KvFormat::parse(&name).is_none_or(|format| format.name() == name));
    }
}

#[test]
fn an_embedding_has_a_row_for_each_token() {
    let mut bytes = repository_model();
    let name = b"token_embd.weight";
    let at = bytes.windows(name.len()).position(|window| window == name).unwrap() + name.len();
    // Count of dimensions, columns, rows.
    let rows = at + 4 + 8;
    assert_eq!(bytes[rows..rows + 8], 4096u64.to_le_bytes());
    for found in [1u64, 4095] {
        bytes[rows..rows + 8].copy_from_slice(&found.to_le_bytes());
        let gguf = Gguf::from_bytes(bytes.clone()).unwrap();
        let error = Model::load(Arc::new(gguf)).unwrap_err();
        let is_told =
            matches!(error, ModelError::Vocabulary { tokens: 4096, rows } if u64::from(rows) == found);
        assert!(is_told, "{error}");
    }
}
