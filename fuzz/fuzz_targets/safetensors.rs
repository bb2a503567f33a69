//! Arbitrary bytes as a folder of safetensors: opening ends in a value or an error, and so does reading what opened.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use std::sync::Arc;
use zrt_engine::gguf::Bytes;
use zrt_engine::model::Model;
use zrt_engine::safetensors::{Folder, open};
use zrt_engine::tokenizer::Tokenizer;

fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(3, |byte| *byte == 0).map(|part| Bytes::from(part.to_vec()));
    let names = ["config.json", "tokenizer.json", "model.safetensors"];
    let files: BTreeMap<String, Bytes> =
        names.into_iter().map_while(|name| Some((name.to_owned(), parts.next()?))).collect();
    let gguf = match open(&Folder::Memory(files)) {
        Ok(gguf) => gguf,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    for tensor in gguf.tensors() {
        // A code or a scale may be no number.
        if let Ok(read) = gguf.read_tensor(tensor, 0..tensor.bytes) {
            assert_eq!(read.len() as u64, tensor.bytes);
            let middle = gguf.read_tensor(tensor, tensor.bytes / 3..tensor.bytes / 2);
            assert_eq!(middle.ok().as_deref(), read.get(read.len() / 3..read.len() / 2));
        }
    }
    if let Ok(tokenizer) = Tokenizer::from_gguf(&gguf) {
        let ids = tokenizer.encode("Once upon a time, <s> 3\u{301}\n\n  é天🦙");
        assert!(ids.iter().all(|id| (*id as usize) < tokenizer.token_count()));
        let _ = tokenizer.decode(&ids);
    }
    let _ = Model::load(Arc::new(gguf));
});
