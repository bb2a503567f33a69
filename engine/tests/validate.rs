//! Two executors in lockstep: what is compared is counted by hand, and any one wrong word is found where it is.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod made;

use made::Made;
use zrt_engine::activations::Activations;
use zrt_engine::executor::{Cache, Executor, StepSnapshot};
use zrt_engine::executor_error::ExecutorError;
use zrt_engine::gguf::TensorKind;
use zrt_engine::graph::ValueId;
use zrt_engine::kv_format::KvFormat;
use zrt_engine::oracle::Oracle;
use zrt_engine::plan::ExecutionPlan;
use zrt_engine::validate::{Agreement, Difference, ValidateError, validate};

/// A word of what an executor says that is another one.
#[derive(Clone, Copy, Debug)]
enum Fault {
    None,
    /// Of values with this name: the element, and its bits.
    Value(&'static str, usize, u32),
    /// Of a cache, at a position: the element, and its bits.
    Cache(Cache, u32, usize, u32),
    /// The position, the choice or the number of steps, when so many steps are done.
    State(usize, u32),
    /// The token at a position.
    Token(u32),
}

/// The oracle with a fault.
struct Faulty {
    oracle: Oracle,
    fault: Fault,
}

impl Executor for Faulty {
    fn plan(&self) -> &ExecutionPlan {
        self.oracle.plan()
    }

    fn begin(&mut self, prompt: &[u32]) -> Result<(), ExecutorError> {
        self.oracle.begin(prompt)
    }

    fn step(&mut self) -> Result<u32, ExecutorError> {
        self.oracle.step()
    }

    fn step_instruction(&mut self, index: usize) -> Result<(), ExecutorError> {
        self.oracle.step_instruction(index)
    }

    fn read_value(&mut self, id: ValueId) -> Result<Vec<f32>, ExecutorError> {
        let mut values = self.oracle.read_value(id)?;
        if let Fault::Value(name, element, bits) = self.fault
            && self.oracle.plan().value(id).name == name
        {
            values[element] = f32::from_bits(bits);
        }
        Ok(values)
    }

    fn read_logits(&mut self, logits: &mut [f32]) -> Result<(), ExecutorError> {
        self.oracle.read_logits(logits)
    }

    fn read_cache_row(&mut self, cache: Cache, layer: u32, position: u32) -> Result<Vec<f32>, ExecutorError> {
        let mut row = self.oracle.read_cache_row(cache, layer, position)?;
        match self.fault {
            Fault::Cache(of, at, element, bits) if (of, at) == (cache, position) => {
                row[element] = f32::from_bits(bits);
            }
            _ => {}
        }
        Ok(row)
    }

    fn read_state(&mut self) -> Result<StepSnapshot, ExecutorError> {
        let mut state = self.oracle.read_state()?;
        match self.fault {
            Fault::State(0, steps) if state.step_count == steps => state.position += 7,
            Fault::State(1, steps) if state.step_count == steps => state.last_token += 7,
            Fault::State(2, steps) if state.step_count == steps => state.step_count += 7,
            _ => {}
        }
        Ok(state)
    }

    fn read_token(&mut self, position: u32) -> Result<u32, ExecutorError> {
        let token = self.oracle.read_token(position)?;
        Ok(if matches!(self.fault, Fault::Token(at) if at == position) { token + 7 } else { token })
    }
}

/// Of a llama of one layer whose matrices are zeros, for sequences of 4 tokens.
fn faulty(kind: TensorKind, activations: Activations, fault: Fault) -> Faulty {
    let model = Made::new("llama", kind).load().unwrap();
    Faulty { oracle: Oracle::new_with(&model, 4, KvFormat::F32, activations).unwrap(), fault }
}

fn run(reference: Fault, candidate: Fault) -> Result<Agreement, ValidateError> {
    let of = |fault| faulty(TensorKind::F32, Activations::F32, fault);
    validate(&mut of(reference), &mut of(candidate), &[1, 2, 3], 2, |_| ())
}

fn difference(candidate: Fault) -> Difference {
    match run(Fault::None, candidate) {
        Err(ValidateError::Difference(difference)) => *difference,
        other => panic!("{candidate:?}: {other:?}"),
    }
}

/// A step: the residual stream as the token begins it, after attention and after the feed-forward layer, three norms,
/// query twice (rotated too), attention, gate, up and their product, and of both caches a row, 256 together; key twice
/// and value, of 128; 16 logits; four words of state. Products that are added at once are in no memory.
#[test]
fn everything_that_an_instruction_leaves_is_compared() {
    const ELEMENTS: u64 = 13 * 256 + 3 * 128 + 16 + 4;
    for (prompt, tokens, steps) in [(&[1, 2, 3][..], 2, 4), (&[1, 2, 3], 1, 3), (&[1, 2], 0, 2), (&[1], 4, 4)]
    {
        let [mut one, mut other] = [0; 2].map(|_| faulty(TensorKind::F32, Activations::F32, Fault::None));
        let mut told = Vec::new();
        let agreement = validate(&mut one, &mut other, prompt, tokens, |step| told.push(step)).unwrap();
        assert_eq!(agreement, Agreement { steps, instructions: 18 * steps, elements: ELEMENTS * steps });
        assert_eq!(told, (1..=steps).collect::<Vec<u64>>());
    }
}

#[test]
fn one_wrong_word_is_found_in_its_buffer_at_its_position() {
    const ONE: u32 = 0x3f80_0000;
    let place = |found: &Difference| (found.position, found.buffer, found.element);
    for name in ["hidden", "normed", "query", "key", "value", "attended", "gate", "up", "gated", "logits"] {
        let found = difference(Fault::Value(name, 15, ONE));
        assert_eq!(place(&found), (0, name, 15));
        assert_eq!((found.expected, found.found), (0, ONE), "{name}");
    }
    for (cache, name) in [(Cache::Key, "key cache"), (Cache::Value, "value cache")] {
        let found = difference(Fault::Cache(cache, 3, 127, 0x8000_0000));
        assert_eq!(place(&found), (3, name, 127), "a zero has a sign");
        assert_eq!((found.index, found.expected, found.found), (7, 0, 0x8000_0000));
    }
    let state = "step state (position, choice, steps, next token)";
    for (element, steps) in [(0, 1), (1, 3), (2, 4)] {
        let found = difference(Fault::State(element, steps));
        assert_eq!(place(&found), (steps - 1, state, element));
        assert_eq!((found.index, found.found), (17, found.expected + 7));
    }
    // Tokens of the prompt 1, 2, 3, and the first choice; behind the last position there is none.
    for (at, token) in [(1, 2), (2, 3)] {
        let found = difference(Fault::Token(at));
        assert_eq!(place(&found), (at - 1, state, 3));
        assert_eq!((found.expected, found.found), (token, token + 7));
    }
    assert_eq!(place(&difference(Fault::Token(3))), (2, state, 3));
    for name in ["attention_output", "down"] {
        assert!(run(Fault::None, Fault::Value(name, 15, ONE)).is_ok(), "{name} stays in registers");
    }
    assert!(run(Fault::None, Fault::Token(0)).is_ok(), "no step makes the first token");
    assert!(run(Fault::None, Fault::Token(4)).is_ok(), "the context ends before");
}

/// Bits of two NaNs may differ in floats, and not in the words of a quantised row.
#[test]
fn nans_are_equal_in_floats_only() {
    let (one, other) = (0x7fc0_0000, 0xffc0_1234);
    let cache = |bits| Fault::Cache(Cache::Key, 1, 5, bits);
    assert!(run(Fault::Value("query", 3, one), Fault::Value("query", 3, other)).is_ok());
    assert!(run(cache(one), cache(other)).is_ok());
    let of = |bits| faulty(TensorKind::Q8_0, Activations::A8, Fault::Value("quantised", 3, bits));
    match validate(&mut of(one), &mut of(other), &[1], 1, |_| ()) {
        Err(ValidateError::Difference(found)) => {
            assert_eq!(
                (found.buffer, found.element, found.expected, found.found),
                ("quantised", 3, one, other)
            );
        }
        other => panic!("{other:?}"),
    }
    assert!(validate(&mut of(one), &mut of(one), &[1], 1, |_| ()).is_ok());
}

#[test]
fn a_difference_says_what_where_and_which_numbers() {
    let words = run(Fault::None, Fault::Value("gate", 9, 0xc000_0000)).unwrap_err().to_string();
    let wanted = "(layer 0, instruction 11, position 0): gate[9] is -2.0 (0xc0000000), the oracle has 0.0 (0x00000000)";
    assert!(words.ends_with(wanted), "{words}");
    let words = run(Fault::None, Fault::Value("logits", 9, 0xc000_0000)).unwrap_err().to_string();
    assert!(words.contains("(no layer, instruction 16, position 0): logits[9] is -2.0"), "{words}");
}

#[test]
fn executors_of_different_plans_are_not_compared() {
    let mut one = faulty(TensorKind::Q8_0, Activations::F32, Fault::None);
    let mut other = faulty(TensorKind::Q8_0, Activations::A8, Fault::None);
    let error = validate(&mut one, &mut other, &[1], 1, |_| ()).unwrap_err();
    assert_eq!(error.to_string(), "the two executors run different plans");
}
