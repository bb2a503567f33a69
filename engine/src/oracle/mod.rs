//! The CPU oracle: a second executor of the same plan, written from `docs/arithmetic.md` alone.
//!
//! Contract: it knows nothing of kernels, weight layouts or devices, but for the layout of a quantised row, so
//! agreement with one is evidence. All weights are
//! held dequantised, at 4 bytes per parameter; if activations are integers, also as stored. A step allocates.

pub mod arithmetic;
pub mod blocks;
pub mod dequantise;
pub mod integer;
pub mod kv;
pub mod operations;
pub mod sample;

use crate::activations::Activations;
use crate::executor::{Cache, Executor, StepSnapshot, check_prompt};
use crate::executor_error::ExecutorError;
use crate::graph::{Operation, ValueId};
use crate::kv_format::KvFormat;
use crate::log_probabilities::LogProbabilities;
use crate::model::Model;
use crate::plan::{ExecutionPlan, Place};
use crate::rope::RopeLayout;
use crate::rope_table::rope_tables;
use crate::sampling::Sampling;
use crate::weights::WeightId;
use blocks::IntegerWeights;
use integer::QuantisedRow;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// The oracle's machine: the plan's memory as plain vectors.
pub struct Oracle {
    plan: ExecutionPlan,
    weights: BTreeMap<WeightId, Vec<f32>>,
    /// Weights of the matmuls that take integers.
    integer_weights: BTreeMap<WeightId, IntegerWeights>,
    rope: Vec<f32>,
    activations: Vec<f32>,
    logits: Vec<f32>,
    /// Keys and values as attention reads them: rounded to the format.
    keys: Vec<f32>,
    values: Vec<f32>,
    format: KvFormat,
    tokens: Vec<u32>,
    prompt_length: u32,
    state: StepSnapshot,
}

impl Oracle {
    /// Reads and dequantises every weight. Keys and values are kept as computed.
    pub fn new(model: &Model, context: u32) -> Result<Oracle, ExecutorError> {
        Oracle::new_with(model, context, KvFormat::F32, Activations::F32)
    }

    /// As [`Oracle::new`], with keys and values kept in this format, and with this activation mode. In
    /// [`Activations::F16`], whose bits are the chip's own, it computes as in [`Activations::F32`].
    pub fn new_with(
        model: &Model,
        context: u32,
        format: KvFormat,
        activations: Activations,
    ) -> Result<Oracle, ExecutorError> {
        let plan = ExecutionPlan::step(model, context, 1, activations)?;
        let mut weights = BTreeMap::new();
        let mut integer_weights = BTreeMap::new();
        for (id, weight) in model.weights() {
            let bytes = model
                .gguf
                .read_tensor(&weight.tensor, 0..weight.tensor.bytes)
                .map_err(|source| ExecutorError::Weight { weight: id, source })?;
            let values = dequantise::dequantise(weight.tensor.kind, &bytes).ok_or_else(|| {
                ExecutorError::NoAdapter {
                    executor: "oracle",
                    operation: "dequantise",
                    detail: weight.tensor.kind.to_string(),
                }
            })?;
            weights.insert(id, values);
            if activations.apply_to(weight.tensor.kind) {
                integer_weights.extend(IntegerWeights::new(weight.tensor.kind, bytes).map(|one| (id, one)));
            }
        }
        let config = &plan.config;
        let cache = config.layers as usize * context as usize * config.kv_elements() as usize;
        Ok(Oracle {
            weights,
            integer_weights,
            rope: rope_tables(model, context)?,
            activations: vec![0.0; plan.activations_len().0 as usize / 4],
            logits: vec![0.0; config.vocabulary as usize],
            keys: vec![0.0; cache],
            values: vec![0.0; cache],
            format,
            tokens: vec![0; context as usize],
            prompt_length: 0,
            state: StepSnapshot::default(),
            plan,
        })
    }

    /// The elements of a dequantised weight, to change: for tests that plant a fault.
    pub fn weight_mut(&mut self, id: WeightId) -> Option<&mut [f32]> {
        self.weights.get_mut(&id).map(Vec::as_mut_slice)
    }

    /// Continues a sequence alone: returns the tokens that a request with this prompt must produce. Stops after
    /// `tokens_max` tokens, after a stop token, or when the context is full.
    pub fn complete(
        &mut self,
        prompt: &[u32],
        tokens_max: u32,
        sampling: &Sampling,
        stops: &[u32],
    ) -> Result<Vec<u32>, ExecutorError> {
        let mut tokens = Vec::new();
        self.complete_with(prompt, tokens_max, sampling, stops, |token| {
            tokens.extend(token.map(|(token, _)| token));
            ControlFlow::Continue(())
        })?;
        Ok(tokens)
    }

    /// The same, told step by step: `on_step` gets `None` after a token of the prompt and the token after each other
    /// step, with log-probabilities if they are asked for, and may break off. Returns true if it did.
    pub fn complete_with(
        &mut self,
        prompt: &[u32],
        tokens_max: u32,
        sampling: &Sampling,
        stops: &[u32],
        mut on_step: impl FnMut(Option<(u32, Option<LogProbabilities>)>) -> ControlFlow<()>,
    ) -> Result<bool, ExecutorError> {
        let vocabulary = self.plan.config.vocabulary;
        let is_unknown = |(token, _): &&(u32, f32)| *token >= vocabulary;
        if let Some((token, _)) = sampling.biases().entries().iter().find(is_unknown) {
            return Err(ExecutorError::Token { token: *token, vocabulary });
        }
        self.begin(prompt)?;
        for _ in prompt {
            self.step()?;
            if on_step(None).is_break() {
                return Ok(true);
            }
        }
        let mut known = prompt.to_vec();
        let limit = (prompt.len() + tokens_max as usize).min(self.plan.context as usize);
        while known.len() < limit {
            let token = sample::choose(&self.logits, &known, sampling);
            known.push(token);
            let tops = sampling.tops().map(|count| sample::top_tokens(&self.logits, token, count));
            let values = tops.and_then(|tops| LogProbabilities::new(token, &tops));
            if on_step(Some((token, values))).is_break() {
                return Ok(true);
            }
            if known.len() == limit || stops.contains(&token) {
                break;
            }
            self.tokens[known.len() - 1] = token;
            self.step()?;
        }
        Ok(false)
    }

    fn range(&self, id: ValueId) -> Option<std::ops::Range<usize>> {
        let elements = self.plan.value(id).elements as usize;
        match self.plan.place(id) {
            Place::Activations(region) => {
                let start = region.offset.0 as usize / 4;
                Some(start..start + elements)
            }
            Place::Logits => None,
        }
    }

    fn get(&self, id: ValueId) -> Vec<f32> {
        self.range(id).map_or_else(|| self.logits.clone(), |range| self.activations[range].to_vec())
    }

    fn put(&mut self, id: ValueId, values: &[f32]) {
        match self.range(id) {
            Some(range) => self.activations[range].copy_from_slice(values),
            None => self.logits.copy_from_slice(values),
        }
    }

    fn cache_row(&self, layer: u32, position: u32) -> std::ops::Range<usize> {
        let row = self.plan.config.kv_elements() as usize;
        let start = (layer as usize * self.plan.context as usize + position as usize) * row;
        start..start + row
    }

    fn execute(&mut self, operation: &Operation) {
        match *operation {
            Operation::Embed { table, output } => self.embed(table, output),
            Operation::RmsNorm { input, weight, output } => self.rms_norm(input, weight, output),
            Operation::QkNorm { vector, weight, .. } => self.qk_norm(vector, weight),
            Operation::Quantise { input, activations, output } => self.quantise(input, activations, output),
            Operation::Matmul { weight, input, activations, output } => {
                self.matmul(weight, input, activations, output);
            }
            Operation::Rope { vector, layout, table, .. } => self.rope(vector, layout, table),
            Operation::KvWrite { key, value, layer } => self.kv_write(key, value, layer),
            Operation::Attention { query, output, layer, window } => {
                self.attention(query, output, layer, window);
            }
            Operation::SwiGlu { gate, up, output } => self.swiglu(gate, up, output),
            Operation::GeGlu { gate, up, output } => self.geglu(gate, up, output),
            Operation::BiasAdd { vector, weight } => self.bias_add(vector, weight),
            Operation::Scale { vector, factor } => self.scale(vector, factor),
            Operation::SoftCap { vector, cap } => self.soft_cap(vector, cap),
            Operation::ResidualAdd { hidden, addend } => self.residual_add(hidden, addend),
            Operation::Sample { .. } => self.sample(),
        }
    }

    fn embed(&mut self, table: WeightId, output: ValueId) {
        let width = self.plan.config.width as usize;
        let token = self.tokens[self.state.position as usize] as usize;
        let row = self.weights[&table][token * width..][..width].to_vec();
        self.put(output, &row);
    }

    fn rms_norm(&mut self, input: ValueId, weight: WeightId, output: ValueId) {
        let input = self.get(input);
        let mut result = vec![0.0; input.len()];
        operations::rms_norm(&input, &self.weights[&weight], self.plan.config.rms_epsilon, &mut result);
        self.put(output, &result);
    }

    fn qk_norm(&mut self, vector: ValueId, weight: WeightId) {
        let mut heads = self.get(vector);
        for head in heads.chunks_exact_mut(self.plan.config.head_size as usize) {
            operations::qk_norm(head, &self.weights[&weight], self.plan.config.rms_epsilon);
        }
        self.put(vector, &heads);
    }

    fn quantise(&mut self, input: ValueId, activations: Activations, output: ValueId) {
        let row = QuantisedRow::new(&self.get(input), activations);
        self.put(output, &row.words());
    }

    fn matmul(&mut self, weight: WeightId, input: ValueId, activations: Activations, output: ValueId) {
        let input = self.get(input);
        let mut result = vec![0.0; self.plan.value(output).elements as usize];
        match self.integer_weights.get(&weight) {
            Some(weights) => {
                let columns = self.plan.config.shape(weight.class).1;
                let row = QuantisedRow::from_words(&input, columns, activations);
                integer::matmul(weights, &row, &mut result);
            }
            None => operations::matmul(&self.weights[&weight], &input, &mut result),
        }
        self.put(output, &result);
    }

    fn rope(&mut self, vector: ValueId, layout: RopeLayout, table: u32) {
        let rotary = self.plan.config.rope.dimensions as usize;
        let row = table as usize * self.plan.context as usize + self.state.position as usize;
        let angles = self.rope[row * rotary..][..rotary].to_vec();
        let mut heads = self.get(vector);
        for head in heads.chunks_exact_mut(self.plan.config.head_size as usize) {
            operations::rope(head, &angles, layout == RopeLayout::Interleaved);
        }
        self.put(vector, &heads);
    }

    fn kv_write(&mut self, key: ValueId, value: ValueId, layer: u32) {
        let row = self.cache_row(layer, self.state.position);
        let as_stored =
            |elements: Vec<f32>| kv::load(self.format, &kv::store(self.format, &elements), elements.len());
        let (key, value) = (as_stored(self.get(key)), as_stored(self.get(value)));
        self.keys[row.clone()].copy_from_slice(&key);
        self.values[row].copy_from_slice(&value);
    }

    fn attention(&mut self, query: ValueId, output: ValueId, layer: u32, window: Option<u32>) {
        let config = &self.plan.config;
        let (size, row) = (config.head_size as usize, config.kv_elements() as usize);
        let group = (config.heads / config.kv_heads) as usize;
        let layer_start = self.cache_row(layer, 0).start;
        let (keys, values) = (&self.keys[layer_start..], &self.values[layer_start..]);
        let end = self.state.position as usize + 1;
        let first = window.map_or(0, |window| end.saturating_sub(window as usize));
        let scale = config.attention_scale;
        let query = self.get(query);
        let mut result = vec![0.0; query.len()];
        for (head, (query, output)) in query.chunks_exact(size).zip(result.chunks_exact_mut(size)).enumerate()
        {
            let cache = operations::HeadCache { keys, values, row, offset: head / group * size };
            operations::attention(query, &cache, first..end, scale, output);
        }
        self.put(output, &result);
    }

    fn swiglu(&mut self, gate: ValueId, up: ValueId, output: ValueId) {
        let (gate, up) = (self.get(gate), self.get(up));
        let mut result = vec![0.0; gate.len()];
        operations::swiglu(&gate, &up, &mut result);
        self.put(output, &result);
    }

    fn geglu(&mut self, gate: ValueId, up: ValueId, output: ValueId) {
        let (gate, up) = (self.get(gate), self.get(up));
        let mut result = vec![0.0; gate.len()];
        operations::geglu(&gate, &up, &mut result);
        self.put(output, &result);
    }

    fn bias_add(&mut self, vector: ValueId, weight: WeightId) {
        let mut sum = self.get(vector);
        operations::residual_add(&mut sum, &self.weights[&weight]);
        self.put(vector, &sum);
    }

    fn scale(&mut self, vector: ValueId, factor: f32) {
        let scaled: Vec<f32> = self.get(vector).iter().map(|x| x * factor).collect();
        self.put(vector, &scaled);
    }

    fn soft_cap(&mut self, vector: ValueId, cap: f32) {
        let mut capped = self.get(vector);
        operations::soft_cap(&mut capped, cap);
        self.put(vector, &capped);
    }

    fn residual_add(&mut self, hidden: ValueId, addend: ValueId) {
        let mut sum = self.get(hidden);
        operations::residual_add(&mut sum, &self.get(addend));
        self.put(hidden, &sum);
    }

    fn sample(&mut self) {
        let choice = sample::choose(&self.logits, &[], &Sampling::default());
        let next = self.state.position + 1;
        if next >= self.prompt_length && next < self.plan.context {
            self.tokens[next as usize] = choice;
        }
        self.state =
            StepSnapshot { position: next, last_token: choice, step_count: self.state.step_count + 1 };
    }

    fn check_position(&self) -> Result<(), ExecutorError> {
        let context = self.plan.context;
        if self.state.position < context {
            return Ok(());
        }
        Err(ExecutorError::Context { tokens: self.state.position as usize + 1, context })
    }
}

impl Executor for Oracle {
    fn plan(&self) -> &ExecutionPlan {
        &self.plan
    }

    fn begin(&mut self, prompt: &[u32]) -> Result<(), ExecutorError> {
        check_prompt(&self.plan, prompt)?;
        self.tokens[..prompt.len()].copy_from_slice(prompt);
        self.prompt_length = prompt.len() as u32;
        self.state = StepSnapshot::default();
        Ok(())
    }

    fn step(&mut self) -> Result<u32, ExecutorError> {
        self.check_position()?;
        for index in 0..self.plan.instructions.len() {
            self.step_instruction(index)?;
        }
        Ok(self.state.last_token)
    }

    fn step_instruction(&mut self, index: usize) -> Result<(), ExecutorError> {
        self.check_position()?;
        let instruction = self.plan.instructions[index];
        instruction.nodes().for_each(|node| self.execute(&node.operation));
        Ok(())
    }

    fn read_value(&mut self, id: ValueId) -> Result<Vec<f32>, ExecutorError> {
        Ok(self.get(id))
    }

    fn read_logits(&mut self, logits: &mut [f32]) -> Result<(), ExecutorError> {
        logits.copy_from_slice(&self.logits);
        Ok(())
    }

    fn read_cache_row(&mut self, cache: Cache, layer: u32, position: u32) -> Result<Vec<f32>, ExecutorError> {
        let row = self.cache_row(layer, position);
        Ok(match cache {
            Cache::Key => self.keys[row].to_vec(),
            Cache::Value => self.values[row].to_vec(),
        })
    }

    fn read_state(&mut self) -> Result<StepSnapshot, ExecutorError> {
        Ok(self.state)
    }

    fn read_token(&mut self, position: u32) -> Result<u32, ExecutorError> {
        Ok(self.tokens[position as usize])
    }
}
