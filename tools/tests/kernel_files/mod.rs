//! Files of kernels and buffers for tests of the `zrt` program, without any other tool.

#[path = "../../../loader/tests/data/double_object.rs"]
mod double_object;

use std::path::PathBuf;

pub use double_object::DOUBLE_OBJECT;

/// A folder of its own for a test's files.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// Writes a file of little-endian words; its path.
    pub fn words(&self, name: &str, words: &[u32]) -> String {
        let path = self.0.join(name);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

/// The words of a file.
pub fn read_words(path: &str) -> Vec<u32> {
    let bytes = std::fs::read(path).unwrap();
    bytes.chunks_exact(4).map(|four| u32::from_le_bytes(four.try_into().unwrap())).collect()
}
