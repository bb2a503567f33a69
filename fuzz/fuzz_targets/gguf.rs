//! Arbitrary bytes as a model file: opening ends in a value or an error, and what opened can be read whole, as weights
//! and repacked for the device.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::Arc;
use zrt_engine::gguf::Gguf;
use zrt_engine::layout::WeightLayout;
use zrt_engine::model::Model;
use zrt_engine::oracle::dequantise::dequantise;
use zrt_engine::tokenizer::Tokenizer;

fuzz_target!(|bytes: &[u8]| {
    let shared: Arc<[u8]> = bytes.into();
    let gguf = match Gguf::from_bytes(shared) {
        Ok(gguf) => gguf,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    for tensor in gguf.tensors() {
        let read = gguf.read_tensor(tensor, 0..tensor.bytes).expect("tensors lie inside the file");
        assert_eq!(read.len() as u64, tensor.bytes);
        let weights = dequantise(tensor.kind, &read);
        let layout = WeightLayout::new(tensor.kind, tensor.rows(), tensor.columns());
        assert_eq!(weights.is_some(), layout.is_some());
        if let (Some(weights), Some(layout)) = (weights, layout) {
            assert_eq!(weights.len() as u64, tensor.element_count());
            assert_eq!(layout.pack(tensor.kind, tensor.columns(), &read).len() as u64, layout.len.0);
        }
    }
    if let Ok(tokenizer) = Tokenizer::from_gguf(&gguf) {
        let ids = tokenizer.encode("Once upon a time, <s> 3\u{301}\n\n  é天🦙");
        assert!(ids.iter().all(|id| (*id as usize) < tokenizer.token_count()));
        let _ = tokenizer.decode(&ids);
    }
    let _ = Model::load(Arc::new(gguf));
});
