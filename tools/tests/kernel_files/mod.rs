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

    /// The path of a file.
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file of little-endian words; its path.
    pub fn words(&self, name: &str, words: &[u32]) -> String {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        std::fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }
}

/// The words of a file.
pub fn read_words(path: &str) -> Vec<u32> {
    let bytes = std::fs::read(path).unwrap();
    bytes.chunks_exact(4).map(|four| u32::from_le_bytes(four.try_into().unwrap())).collect()
}
