//! What fits a card, against every size that could be asked for, and what options plan for.

use crate::made::{Made, WIDTH};
use crate::played::options;
use zrt_engine::gguf::TensorKind;
use zrt_engine::model::Model;
use zrt_engine::placement::Placement;
use zrt_engine::session::{SessionError, SessionOptions};
use zrt_mem::ByteLen;

/// A layer with an output matrix of its own; it was trained for 64 tokens.
fn model() -> Model {
    Made::new("llama", TensorKind::F32).with_matrix("output.weight", WIDTH, 16).load().unwrap()
}

fn vram(options: &SessionOptions, model: &Model) -> u64 {
    options.vram_len(model, Placement::default()).unwrap().0
}

/// Rows of 256 numbers of 4 bytes: embedding and output matrix of 16, five matrices of 256 and two of 128.
#[test]
fn what_lies_in_host_memory_takes_no_vram() {
    let model = model();
    let matrices = (2 * 16 + 5 * 256 + 2 * 128) * 1024;
    let in_host = options().vram_len(&model, Placement::all_in_host(&model)).unwrap().0;
    assert_eq!(vram(&options(), &model) - in_host, matrices);
    // The limit does not count here.
    let limited = SessionOptions { vram_max: Some(ByteLen(1)), ..options() };
    assert_eq!(vram(&limited, &model), in_host + matrices);
}

#[test]
fn the_longest_context_and_the_most_slots_are_the_last_that_fit() {
    let model = model();
    let placement = Placement::default();
    let of_context = |context| vram(&SessionOptions { context, ..options() }, &model);
    let of_slots = |slots| vram(&SessionOptions { slots, ..options() }, &model);
    assert!(of_context(2) < of_context(64) && of_slots(1) < of_slots(64));
    for wanted in [2, 3, 17, 40, 63, 64] {
        for limit in [of_context(wanted), of_context(wanted) - 1] {
            let last = (2..=64).rev().find(|context| of_context(*context) <= limit);
            assert_eq!(options().context_max(&model, placement, ByteLen(limit)), last, "{wanted}");
        }
    }
    for wanted in [1, 2, 31, 64] {
        for limit in [of_slots(wanted), of_slots(wanted) - 1] {
            let last = (1..=64).rev().find(|slots| of_slots(*slots) <= limit);
            assert_eq!(options().slots_max(&model, placement, ByteLen(limit)), last, "{wanted}");
        }
    }
    assert_eq!(options().slots_max(&model, placement, ByteLen(of_slots(1) - 1)), None);
    assert_eq!(options().context_max(&model, placement, ByteLen(of_context(2) - 1)), None);
}

/// Too little for the context that was asked for: the longest that would fit is named, or what one slot could have.
#[test]
fn a_limit_that_is_too_little_says_what_would_fit() {
    let model = model();
    let least = |slots, context| {
        let options = SessionOptions { slots, context, ..options() };
        options.vram_len(&model, Placement::all_in_host(&model)).unwrap()
    };
    let said = |limit: ByteLen| {
        let options = SessionOptions { vram_max: Some(limit), ..options() };
        options.plan(&model).map(|_| String::new()).unwrap_or_else(|error| error.to_string())
    };
    let one_less = |len: ByteLen| ByteLen(len.0 - 1);
    let whole = options().vram_len(&model, Placement::default()).unwrap();
    let text = |limit, instead: &str| {
        format!(
            "a session with 3 slots of context 64 needs {whole:?} of VRAM, and {:?} with every matrix in host memory, \
             but the limit is {limit:?}: {instead}",
            least(3, 64)
        )
    };
    assert_eq!(said(least(3, 64)), "");
    let limit = one_less(least(3, 33));
    assert_eq!(said(limit), text(limit, "with 3 slots a context of 32 fits"));
    let limit = one_less(least(3, 2));
    let longest = (2..=64).rev().find(|context| least(1, *context) <= limit).unwrap();
    assert_eq!(said(limit), text(limit, &format!("one slot with a context of {longest} fits")));
    let limit = one_less(least(1, 2));
    assert_eq!(said(limit), text(limit, "no session with this model fits"));
}

/// A step has a row for each slot and those of prompts; no more than 512, nor than there are positions.
#[test]
fn steps_and_pages_are_planned_for_slots_and_contexts() {
    let model = model();
    let planned = |slots, context, chunk_rows, pages| {
        let options = SessionOptions { slots, context, chunk_rows, pages, ..options() };
        let (plan, capacity) = options.plan(&model).unwrap();
        (plan.rows, capacity.pages)
    };
    assert_eq!(planned(3, 40, 10, None), (13, 9));
    assert_eq!(planned(3, 64, 10, Some(2)), (13, 2));
    assert_eq!(planned(3, 2, 10, None), (6, 3));
    assert_eq!(planned(64, 64, 512, None), (512, 256));
    let error = SessionOptions { context: 65, ..options() }.plan(&model).err().unwrap();
    assert!(matches!(error, SessionError::ModelContext { context: 65, trained: 64 }), "{error}");
    let error = SessionOptions { context: 66, ..options() }.plan(&model).err().unwrap();
    assert_eq!(
        error.to_string(),
        "the context of 66 tokens is more than the 64 that the model was trained for"
    );
}
