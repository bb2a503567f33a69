//! One decode step as transformer-shaped operations on named values, and the checks that make it a [`VerifiedGraph`].
//!
//! Contract: a graph is a straight line of operations; a value is defined once by its first writer and may then be
//! updated in place. Only [`Graph::verify`] makes a [`VerifiedGraph`], so a plan cannot be built from an unchecked
//! one. Allocates; not for the path of a token.

use crate::activations::Activations;
use crate::config::ModelConfig;
use crate::rope::RopeLayout;
use crate::weights::WeightId;
use std::fmt;
use thiserror::Error;

/// Index of a value in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u32);

/// A logical register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// What it is, for reports.
    pub name: &'static str,
    /// Length in elements of 4 bytes.
    pub elements: u32,
    /// What the elements are.
    pub form: Form,
}

/// What the elements of a value are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// f32.
    Vector,
    /// Words of a quantised row (`docs/kernels.md`).
    Quantised,
}

/// The operations of a decode step. What each computes, to the bit, is in `docs/arithmetic.md`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operation {
    /// Row of the embedding table for the token at the current position.
    Embed {
        /// Table.
        table: WeightId,
        /// Defined here.
        output: ValueId,
    },
    /// RMS norm of a vector.
    RmsNorm {
        /// Read.
        input: ValueId,
        /// Norm weights.
        weight: WeightId,
        /// Defined here.
        output: ValueId,
    },
    /// RMS norm of each head.
    QkNorm {
        /// Updated in place.
        vector: ValueId,
        /// Norm weights of one head.
        weight: WeightId,
        /// Heads in the vector.
        heads: u32,
    },
    /// A vector as integers.
    Quantise {
        /// Read.
        input: ValueId,
        /// A8 or A16.
        activations: Activations,
        /// Defined here: a quantised row.
        output: ValueId,
    },
    /// Matrix times vector.
    Matmul {
        /// Matrix.
        weight: WeightId,
        /// Read: a vector, or a quantised row.
        input: ValueId,
        /// What the input is.
        activations: Activations,
        /// Defined here.
        output: ValueId,
    },
    /// Rotary embedding at the current position.
    Rope {
        /// Updated in place.
        vector: ValueId,
        /// Heads in the vector.
        heads: u32,
        /// How elements are paired.
        layout: RopeLayout,
        /// Number of the table among those of the model.
        table: u32,
    },
    /// Stores key and value at the current position of the layer's cache.
    KvWrite {
        /// Read.
        key: ValueId,
        /// Read.
        value: ValueId,
        /// The layer whose cache is written.
        layer: u32,
    },
    /// Attention over positions up to the current one.
    Attention {
        /// Read.
        query: ValueId,
        /// Defined here.
        output: ValueId,
        /// The layer whose cache is read.
        layer: u32,
        /// Positions that are read at most, the current one included; none: all.
        window: Option<u32>,
    },
    /// silu(gate) × up.
    SwiGlu {
        /// Read.
        gate: ValueId,
        /// Read.
        up: ValueId,
        /// Defined here.
        output: ValueId,
    },
    /// gelu(gate) × up, in the tanh form.
    GeGlu {
        /// Read.
        gate: ValueId,
        /// Read.
        up: ValueId,
        /// Defined here.
        output: ValueId,
    },
    /// vector += bias.
    BiasAdd {
        /// Updated in place.
        vector: ValueId,
        /// The bias: a vector.
        weight: WeightId,
    },
    /// vector × factor.
    Scale {
        /// Updated in place.
        vector: ValueId,
        /// The factor.
        factor: f32,
    },
    /// cap × tanh(vector / cap).
    SoftCap {
        /// Updated in place.
        vector: ValueId,
        /// No element is beyond it.
        cap: f32,
    },
    /// hidden += addend.
    ResidualAdd {
        /// Updated in place.
        hidden: ValueId,
        /// Read.
        addend: ValueId,
    },
    /// Chooses the next token and advances the step state.
    Sample {
        /// Read.
        logits: ValueId,
    },
}

/// An operation and the layer it belongs to (`None` outside the layers).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Node {
    /// What to do.
    pub operation: Operation,
    /// Layer, for reports.
    pub layer: Option<u32>,
}

/// A step under construction.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Values by [`ValueId`].
    pub values: Vec<Value>,
    /// Operations in order.
    pub nodes: Vec<Node>,
}

/// A graph that passed [`Graph::verify`].
#[derive(Clone, Debug)]
pub struct VerifiedGraph(Graph);

/// How an operation uses a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Reads it.
    Read,
    /// Writes its first contents.
    Define,
    /// Reads and writes it in place.
    Update,
}

/// Why a graph is refused.
#[derive(Debug, Error, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum GraphError {
    #[error("operation {node} ({operation}) uses value {value}, which the graph does not have")]
    UnknownValue { node: usize, operation: &'static str, value: u32 },
    #[error("operation {node} ({operation}) reads `{value}` before anything defines it")]
    Undefined { node: usize, operation: &'static str, value: &'static str },
    #[error("operation {node} ({operation}) defines `{value}` a second time")]
    Redefined { node: usize, operation: &'static str, value: &'static str },
    #[error("operation {node} ({operation}) expects `{value}` of {expected} elements, it has {found}")]
    Length { node: usize, operation: &'static str, value: &'static str, expected: u32, found: u32 },
    #[error(
        "operation {node} ({operation}) reads layer {layer}'s cache before this position is written to it"
    )]
    CacheOrder { node: usize, operation: &'static str, layer: u32 },
    #[error("operation {node} (attention) reads a window without a position")]
    Window { node: usize },
    #[error("operation {node} (scale) comes after a layer, where its rows would be taken for others")]
    LateScale { node: usize },
    #[error("the graph does not end in SAMPLE, or has more than one")]
    End,
}

impl Operation {
    /// Its name in reports and counters.
    pub const fn name(&self) -> &'static str {
        match self {
            Operation::Embed { .. } => "embed",
            Operation::RmsNorm { .. } => "rms_norm",
            Operation::QkNorm { .. } => "qk_norm",
            Operation::Quantise { .. } => "quantise",
            Operation::Matmul { .. } => "matmul",
            Operation::Rope { .. } => "rope",
            Operation::KvWrite { .. } => "kv_write",
            Operation::Attention { .. } => "attention",
            Operation::SwiGlu { .. } => "swiglu",
            Operation::GeGlu { .. } => "geglu",
            Operation::BiasAdd { .. } => "bias_add",
            Operation::Scale { .. } => "scale",
            Operation::SoftCap { .. } => "soft_cap",
            Operation::ResidualAdd { .. } => "residual_add",
            Operation::Sample { .. } => "sample",
        }
    }

    /// The weight that it reads, if any.
    pub const fn weight(&self) -> Option<WeightId> {
        match self {
            Operation::Embed { table: weight, .. }
            | Operation::RmsNorm { weight, .. }
            | Operation::QkNorm { weight, .. }
            | Operation::BiasAdd { weight, .. }
            | Operation::Matmul { weight, .. } => Some(*weight),
            _ => None,
        }
    }

    /// The values that it touches, and how. At most three.
    pub fn uses(&self) -> Vec<(ValueId, Use)> {
        match *self {
            Operation::Embed { output, .. } => vec![(output, Use::Define)],
            Operation::RmsNorm { input, output, .. }
            | Operation::Quantise { input, output, .. }
            | Operation::Matmul { input, output, .. } => {
                vec![(input, Use::Read), (output, Use::Define)]
            }
            Operation::QkNorm { vector, .. }
            | Operation::Rope { vector, .. }
            | Operation::BiasAdd { vector, .. }
            | Operation::Scale { vector, .. }
            | Operation::SoftCap { vector, .. } => vec![(vector, Use::Update)],
            Operation::KvWrite { key, value, .. } => vec![(key, Use::Read), (value, Use::Read)],
            Operation::Attention { query, output, .. } => vec![(query, Use::Read), (output, Use::Define)],
            Operation::SwiGlu { gate, up, output } | Operation::GeGlu { gate, up, output } => {
                vec![(gate, Use::Read), (up, Use::Read), (output, Use::Define)]
            }
            Operation::ResidualAdd { hidden, addend } => vec![(hidden, Use::Update), (addend, Use::Read)],
            Operation::Sample { logits } => vec![(logits, Use::Read)],
        }
    }

    /// The value that it writes, if any (KV_WRITE and SAMPLE write state instead).
    pub fn result(&self) -> Option<ValueId> {
        self.uses().into_iter().find(|(_, how)| *how != Use::Read).map(|(value, _)| value)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.operation.name())?;
        if let Some(weight) = self.operation.weight() {
            write!(formatter, " {weight}")?;
        } else if let Some(layer) = self.layer {
            write!(formatter, " of layer {layer}")?;
        }
        Ok(())
    }
}

impl Graph {
    /// Adds a value.
    pub fn value(&mut self, name: &'static str, elements: u32) -> ValueId {
        self.push_value(Value { name, elements, form: Form::Vector })
    }

    /// Adds a value of any form.
    pub fn push_value(&mut self, value: Value) -> ValueId {
        self.values.push(value);
        ValueId(self.values.len() as u32 - 1)
    }

    /// Appends an operation.
    pub fn push(&mut self, layer: Option<u32>, operation: Operation) {
        self.nodes.push(Node { operation, layer });
    }

    /// Checks definitions, lengths, cache order and the final SAMPLE; the result can be planned.
    pub fn verify(self, config: &ModelConfig) -> Result<VerifiedGraph, GraphError> {
        let mut defined = vec![false; self.values.len()];
        let mut cached = vec![false; config.layers as usize];
        for (index, node) in self.nodes.iter().enumerate() {
            self.check_uses(index, node, &mut defined)?;
            self.check_lengths(index, node, config)?;
            self.check_cache(index, node, &mut cached)?;
            self.check_place(index, node)?;
        }
        let ends = |node: &Node| matches!(node.operation, Operation::Sample { .. });
        let sample_count = self.nodes.iter().filter(|node| ends(node)).count();
        if sample_count != 1 || !self.nodes.last().is_some_and(ends) {
            return Err(GraphError::End);
        }
        Ok(VerifiedGraph(self))
    }

    fn check_uses(&self, index: usize, node: &Node, defined: &mut [bool]) -> Result<(), GraphError> {
        let operation = node.operation.name();
        for (id, how) in node.operation.uses() {
            let Some(value) = self.values.get(id.0 as usize) else {
                return Err(GraphError::UnknownValue { node: index, operation, value: id.0 });
            };
            let flag = &mut defined[id.0 as usize];
            match (how, *flag) {
                (Use::Define, true) => {
                    return Err(GraphError::Redefined { node: index, operation, value: value.name });
                }
                (Use::Read | Use::Update, false) => {
                    return Err(GraphError::Undefined { node: index, operation, value: value.name });
                }
                _ => *flag = true,
            }
        }
        Ok(())
    }

    fn check_lengths(&self, index: usize, node: &Node, config: &ModelConfig) -> Result<(), GraphError> {
        let expect = |id: ValueId, expected: u32| {
            let value = &self.values[id.0 as usize];
            if value.elements == expected {
                return Ok(());
            }
            let (operation, found) = (node.operation.name(), value.elements);
            Err(GraphError::Length { node: index, operation, value: value.name, expected, found })
        };
        let elements = |id: ValueId| self.values[id.0 as usize].elements;
        match node.operation {
            Operation::Embed { table, output } => expect(output, config.shape(table.class).1),
            Operation::RmsNorm { input, weight, output } => {
                expect(input, config.shape(weight.class).1).and(expect(output, elements(input)))
            }
            Operation::QkNorm { vector, heads, .. } | Operation::Rope { vector, heads, .. } => {
                expect(vector, heads * config.head_size)
            }
            Operation::Quantise { input, activations, output } => {
                expect(output, activations.row_words(elements(input)))
            }
            Operation::Matmul { weight, input, activations, output } => {
                let (rows, columns) = config.shape(weight.class);
                expect(input, activations.row_words(columns)).and(expect(output, rows))
            }
            Operation::KvWrite { key, value, .. } => {
                expect(key, config.kv_elements()).and(expect(value, config.kv_elements()))
            }
            Operation::Attention { query, output, .. } => {
                expect(query, config.query_elements()).and(expect(output, config.query_elements()))
            }
            Operation::BiasAdd { vector, weight } => expect(vector, config.shape(weight.class).1),
            Operation::Scale { .. } | Operation::SoftCap { .. } => Ok(()),
            Operation::SwiGlu { gate, up, output } | Operation::GeGlu { gate, up, output } => {
                expect(up, elements(gate)).and(expect(output, elements(gate)))
            }
            Operation::ResidualAdd { hidden, addend } => expect(addend, elements(hidden)),
            Operation::Sample { logits } => expect(logits, config.vocabulary),
        }
    }

    /// What the kernels take for granted: a window has a position, and SCALE works on the rows that EMBED made.
    fn check_place(&self, index: usize, node: &Node) -> Result<(), GraphError> {
        match node.operation {
            Operation::Attention { window: Some(0), .. } => Err(GraphError::Window { node: index }),
            Operation::Scale { .. } if self.nodes[..index].iter().any(|node| node.layer.is_some()) => {
                Err(GraphError::LateScale { node: index })
            }
            _ => Ok(()),
        }
    }

    fn check_cache(&self, index: usize, node: &Node, cached: &mut [bool]) -> Result<(), GraphError> {
        match node.operation {
            Operation::KvWrite { layer, .. } if (layer as usize) < cached.len() => {
                cached[layer as usize] = true
            }
            Operation::KvWrite { layer, .. } | Operation::Attention { layer, .. }
                if !cached.get(layer as usize).copied().unwrap_or(false) =>
            {
                return Err(GraphError::CacheOrder { node: index, operation: node.operation.name(), layer });
            }
            _ => {}
        }
        Ok(())
    }
}

impl VerifiedGraph {
    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.0
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::architecture::Architecture;
    use crate::rope::{Rope, RopeScaling};
    use crate::weights::WeightClass;

    pub(crate) fn config() -> ModelConfig {
        ModelConfig {
            architecture: Architecture::Llama,
            layers: 1,
            width: 8,
            heads: 2,
            kv_heads: 1,
            head_size: 4,
            feed_forward: 16,
            vocabulary: 32,
            context: 64,
            rope: Rope { base: 10_000.0, dimensions: 4, scaling: RopeScaling::None, attention_factor: 1.0 },
            local_rope: None,
            rope_layout: RopeLayout::Interleaved,
            window: None,
            attention_scale: 0.5,
            embedding_scale: None,
            logit_cap: None,
            rms_epsilon: 1e-5,
        }
    }

    fn ending(graph: &mut Graph) {
        let logits = graph.value("logits", 32);
        let hidden = graph.value("hidden", 8);
        let embedding = WeightId::new(WeightClass::Embedding, 0);
        graph.push(None, Operation::Embed { table: embedding, output: hidden });
        graph.push(
            None,
            Operation::Matmul {
                weight: embedding,
                input: hidden,
                activations: Activations::F32,
                output: logits,
            },
        );
        graph.push(None, Operation::Sample { logits });
    }

    #[test]
    fn a_complete_line_passes() {
        let mut graph = Graph::default();
        ending(&mut graph);
        let nodes = graph.nodes.clone();
        assert_eq!(graph.verify(&config()).unwrap().graph().nodes, nodes);
    }

    #[test]
    fn operations_name_their_weight_and_what_they_write() {
        let [one, two, three] = [1, 2, 3].map(ValueId);
        let weight = WeightId::new(WeightClass::Embedding, 0);
        let window = None;
        let activations = Activations::A8;
        for (operation, has_weight, result) in [
            (Operation::Embed { table: weight, output: three }, true, Some(three)),
            (Operation::Matmul { weight, input: one, activations, output: two }, true, Some(two)),
            (Operation::BiasAdd { vector: two, weight }, true, Some(two)),
            (Operation::Attention { query: one, output: two, layer: 0, window }, false, Some(two)),
            (Operation::SwiGlu { gate: one, up: two, output: three }, false, Some(three)),
            (Operation::ResidualAdd { hidden: two, addend: one }, false, Some(two)),
            (Operation::KvWrite { key: one, value: two, layer: 0 }, false, None),
            (Operation::Sample { logits: one }, false, None),
        ] {
            assert_eq!(operation.weight(), has_weight.then_some(weight), "{operation:?}");
            assert_eq!(operation.result(), result, "{operation:?}");
        }
        let node = |operation, layer| Node { operation, layer }.to_string();
        let embed = Operation::Embed { table: weight, output: one };
        assert_eq!(node(embed, Some(1)), "embed token_embd.weight");
        assert_eq!(node(Operation::Scale { vector: one, factor: 2.0 }, None), "scale");
        assert_eq!(
            node(Operation::KvWrite { key: one, value: two, layer: 3 }, Some(3)),
            "kv_write of layer 3"
        );
    }

    #[test]
    fn windows_without_a_position_and_late_scales_are_refused() {
        let mut graph = Graph::default();
        let [key, query, output] =
            [("key", 4), ("query", 8), ("attended", 8)].map(|(name, elements)| graph.value(name, elements));
        let weight = |class| WeightId::new(class, 0);
        let hidden = graph.value("embedded", 8);
        graph.push(None, Operation::Embed { table: weight(WeightClass::Embedding), output: hidden });
        for (class, output) in [(WeightClass::Key, key), (WeightClass::Query, query)] {
            let activations = Activations::F32;
            graph.push(
                Some(0),
                Operation::Matmul { weight: weight(class), input: hidden, activations, output },
            );
        }
        graph.push(Some(0), Operation::KvWrite { key, value: key, layer: 0 });
        let mut late = graph.clone();
        late.push(None, Operation::Scale { vector: hidden, factor: 2.0 });
        ending(&mut late);
        assert_eq!(late.verify(&config()).expect_err("late"), GraphError::LateScale { node: 4 });
        for (window, is_refused) in [(Some(0), true), (Some(1), false), (None, false)] {
            let mut graph = graph.clone();
            graph.push(Some(0), Operation::Attention { query, output, layer: 0, window });
            ending(&mut graph);
            let error = graph.verify(&config()).err();
            assert_eq!(error, is_refused.then_some(GraphError::Window { node: 4 }), "{window:?}");
        }
    }

    #[test]
    fn reading_before_definition_is_refused() {
        let mut graph = Graph::default();
        let gate = graph.value("gate", 16);
        let output = graph.value("gated", 16);
        graph.push(None, Operation::SwiGlu { gate, up: gate, output });
        ending(&mut graph);
        let error = graph.verify(&config()).expect_err("gate is undefined");
        assert_eq!(error, GraphError::Undefined { node: 0, operation: "swiglu", value: "gate" });
    }

    #[test]
    fn wrong_length_second_definition_cache_order_and_end_are_refused() {
        let embedding = WeightId::new(WeightClass::Embedding, 0);
        let mut graph = Graph::default();
        let short = graph.value("hidden", 4);
        graph.push(None, Operation::Embed { table: embedding, output: short });
        ending(&mut graph);
        assert!(matches!(graph.verify(&config()), Err(GraphError::Length { expected: 8, found: 4, .. })));

        let mut graph = Graph::default();
        ending(&mut graph);
        let again = graph.nodes[0];
        graph.nodes.insert(1, again);
        assert!(matches!(graph.verify(&config()), Err(GraphError::Redefined { .. })));

        let mut graph = Graph::default();
        ending(&mut graph);
        let output = graph.value("attended", 8);
        let hidden = ValueId(1);
        graph.nodes.insert(
            1,
            Node {
                operation: Operation::Attention { query: hidden, output, layer: 0, window: None },
                layer: Some(0),
            },
        );
        assert!(matches!(graph.verify(&config()), Err(GraphError::CacheOrder { layer: 0, .. })));

        let mut graph = Graph::default();
        ending(&mut graph);
        graph.nodes.pop();
        assert_eq!(graph.verify(&config()).expect_err("no SAMPLE"), GraphError::End);

        let mut graph = Graph::default();
        ending(&mut graph);
        let sample = graph.nodes[2];
        graph.nodes.push(sample);
        assert_eq!(graph.verify(&config()).expect_err("two SAMPLE"), GraphError::End);

        // The model has one layer, 0.
        let mut graph = Graph::default();
        ending(&mut graph);
        let row = graph.value("row", 4);
        let weight = WeightId::new(WeightClass::Key, 0);
        let key = Operation::Matmul { weight, input: ValueId(1), activations: Activations::F32, output: row };
        let write = Operation::KvWrite { key: row, value: row, layer: 1 };
        let nodes = [key, write].map(|operation| Node { operation, layer: Some(0) });
        graph.nodes.splice(1..1, nodes);
        let error = graph.verify(&config()).expect_err("a layer too many");
        assert_eq!(error, GraphError::CacheOrder { node: 2, operation: "kv_write", layer: 1 });

        let mut graph = Graph::default();
        graph.push(None, Operation::Sample { logits: ValueId(7) });
        assert!(matches!(graph.verify(&config()), Err(GraphError::UnknownValue { value: 7, .. })));
    }
}
