//! A decode step under construction: the parts of which architectures are made.
//!
//! Contract: each method appends operations of the current layer and returns the value that the last of them defines.
//! A vector that matmuls of integers read is quantised once, right before the first of them.

use crate::activations::Activations;
use crate::config::ModelConfig;
use crate::graph::{Form, Graph, Operation, Value, ValueId};
use crate::model::Model;
use crate::weights::{WeightClass, WeightId};

/// A step under construction.
pub struct Step<'a> {
    model: &'a Model,
    activations: Activations,
    graph: Graph,
    /// The layer at work; none before the first and after the last.
    layer: Option<u32>,
}

/// A vector that matmuls read: as it is, and as integers if one of them takes these.
#[derive(Clone, Copy)]
struct MatmulInput {
    exact: ValueId,
    integers: Option<(ValueId, Activations)>,
}

impl<'a> Step<'a> {
    /// A step without operations.
    pub(super) fn new(model: &'a Model, activations: Activations) -> Step<'a> {
        Step { model, activations, graph: Graph::default(), layer: None }
    }

    /// What is appended from here on belongs to this layer.
    pub(super) fn begin_layer(&mut self, layer: u32) {
        self.layer = Some(layer);
    }

    /// Ends the last layer and appends what comes after it: norm, logits and choice.
    pub(super) fn finish(mut self, hidden: ValueId) -> Graph {
        self.layer = None;
        let normed = self.norm(hidden, WeightClass::OutputNorm);
        let logits = self.output(normed);
        self.push(Operation::Sample { logits });
        self.graph
    }

    fn config(&self) -> &'a ModelConfig {
        &self.model.config
    }

    fn elements(&self, value: ValueId) -> u32 {
        self.graph.values[value.0 as usize].elements
    }

    /// The weight of a class in the layer at work.
    fn weight(&self, class: WeightClass) -> WeightId {
        WeightId::new(class, self.layer.unwrap_or(0))
    }

    fn push(&mut self, operation: Operation) {
        self.graph.push(self.layer, operation);
    }

    /// The residual stream as a token begins it.
    pub(super) fn embed(&mut self) -> ValueId {
        let hidden = self.graph.value("hidden", self.config().width);
        let table = self.weight(WeightClass::Embedding);
        self.push(Operation::Embed { table, output: hidden });
        if let Some(factor) = self.config().embedding_scale {
            self.push(Operation::Scale { vector: hidden, factor });
        }
        hidden
    }

    fn output(&mut self, normed: ValueId) -> ValueId {
        let weight = self.model.output();
        let input = self.matmul_input(normed, &[weight]);
        let logits = self.graph.value("logits", self.config().vocabulary);
        self.matmul(weight, input, logits);
        if let Some(cap) = self.config().logit_cap {
            self.push(Operation::SoftCap { vector: logits, cap });
        }
        logits
    }

    /// RMS norm of a whole vector.
    pub(super) fn norm(&mut self, input: ValueId, class: WeightClass) -> ValueId {
        let output = self.graph.value("normed", self.elements(input));
        let weight = self.weight(class);
        self.push(Operation::RmsNorm { input, weight, output });
        output
    }

    /// RMS norm of each head, in place.
    pub(super) fn head_norm(&mut self, vector: ValueId, class: WeightClass) {
        let (weight, heads) = (self.weight(class), self.heads(vector));
        self.push(Operation::QkNorm { vector, weight, heads });
    }

    /// Projections to query, key and value.
    pub(super) fn query_key_value(&mut self, normed: ValueId) -> [ValueId; 3] {
        let classes = [WeightClass::Query, WeightClass::Key, WeightClass::Value];
        let input = self.matmul_input(normed, &classes.map(|class| self.weight(class)));
        let names = ["query", "key", "value"];
        [0, 1, 2].map(|index| self.project(names[index], classes[index], input))
    }

    /// vector += bias, the same in every row.
    pub(super) fn bias_add(&mut self, vector: ValueId, class: WeightClass) {
        let weight = self.weight(class);
        self.push(Operation::BiasAdd { vector, weight });
    }

    /// Rotary embedding of query and key, the row's place in the cache, and attention.
    pub(super) fn attention(&mut self, query: ValueId, key: ValueId, value: ValueId) -> ValueId {
        let layer = self.layer.unwrap_or(0);
        let (layout, table) = (self.config().rope_layout, self.config().rope_of(layer));
        for vector in [query, key] {
            let heads = self.heads(vector);
            self.push(Operation::Rope { vector, heads, layout, table });
        }
        self.push(Operation::KvWrite { key, value, layer });
        let output = self.graph.value("attended", self.config().query_elements());
        let window = self.config().window_of(layer);
        self.push(Operation::Attention { query, output, layer, window });
        output
    }

    /// Projection of the attention result.
    pub(super) fn attention_output(&mut self, attended: ValueId) -> ValueId {
        self.project_alone("attention_output", WeightClass::AttentionOutput, attended)
    }

    /// Projections to gate and up.
    pub(super) fn gate_up(&mut self, normed: ValueId) -> (ValueId, ValueId) {
        let (gate, up) = (self.weight(WeightClass::Gate), self.weight(WeightClass::Up));
        let input = self.matmul_input(normed, &[gate, up]);
        (self.project("gate", WeightClass::Gate, input), self.project("up", WeightClass::Up, input))
    }

    /// silu(gate) × up.
    pub(super) fn swiglu(&mut self, gate: ValueId, up: ValueId) -> ValueId {
        let output = self.graph.value("gated", self.elements(gate));
        self.push(Operation::SwiGlu { gate, up, output });
        output
    }

    /// gelu(gate) × up, in the tanh form.
    pub(super) fn geglu(&mut self, gate: ValueId, up: ValueId) -> ValueId {
        let output = self.graph.value("gated", self.elements(gate));
        self.push(Operation::GeGlu { gate, up, output });
        output
    }

    /// Down projection.
    pub(super) fn down(&mut self, gated: ValueId) -> ValueId {
        self.project_alone("down", WeightClass::Down, gated)
    }

    /// hidden += addend.
    pub(super) fn residual_add(&mut self, hidden: ValueId, addend: ValueId) {
        self.push(Operation::ResidualAdd { hidden, addend });
    }

    fn heads(&self, vector: ValueId) -> u32 {
        self.elements(vector) / self.config().head_size
    }

    /// Whether activations of a matmul with this weight are integers.
    fn takes_integers(&self, weight: WeightId) -> bool {
        self.activations.apply_to(self.model.weight(weight).tensor.kind)
    }

    /// What these matmuls read of `exact`.
    fn matmul_input(&mut self, exact: ValueId, weights: &[WeightId]) -> MatmulInput {
        let activations = self.activations;
        let is_needed = weights.iter().any(|weight| self.takes_integers(*weight));
        let integers = is_needed.then(|| {
            let elements = activations.row_words(self.elements(exact));
            let value = Value { name: "quantised", elements, form: Form::Quantised };
            let output = self.graph.push_value(value);
            self.push(Operation::Quantise { input: exact, activations, output });
            (output, activations)
        });
        MatmulInput { exact, integers }
    }

    fn matmul(&mut self, weight: WeightId, input: MatmulInput, output: ValueId) {
        let integers = input.integers.filter(|_| self.takes_integers(weight));
        let of_floats = self.activations.of_floats(self.model.weight(weight).tensor.kind);
        let (input, activations) = integers.unwrap_or((input.exact, of_floats));
        self.push(Operation::Matmul { weight, input, activations, output });
    }

    fn project(&mut self, name: &'static str, class: WeightClass, input: MatmulInput) -> ValueId {
        let output = self.graph.value(name, self.config().shape(class).0);
        self.matmul(self.weight(class), input, output);
        output
    }

    /// The projection of a vector that no other matmul reads.
    fn project_alone(&mut self, name: &'static str, class: WeightClass, input: ValueId) -> ValueId {
        let input = self.matmul_input(input, &[self.weight(class)]);
        self.project(name, class, input)
    }
}
