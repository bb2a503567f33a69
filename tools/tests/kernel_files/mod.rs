//! Files of kernels and buffers for tests of the `zrt` program. Only [`compile`] needs another tool, clang-22: it says
//! so if that is not installed, and fails if `ZRT_REQUIRE_LLVM` requires it.

#![allow(dead_code)] // Each test program uses a part.

#[path = "../../../loader/tests/data/double_object.rs"]
mod double_object;

pub mod checked;

use std::path::PathBuf;
use std::process::Command;

#[allow(unused_imports)]
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

    /// An existing folder.
    pub fn at(path: &str) -> Folder {
        Folder(path.into())
    }

    /// The path of a file.
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file; returns its path.
    pub fn write(&self, name: &str, bytes: &[u8]) -> String {
        std::fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    /// Writes a file of little-endian words; returns its path.
    pub fn words(&self, name: &str, words: &[u32]) -> String {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.write(name, &bytes)
    }

    /// Names of all files, in order.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// A source of OpenCL C as a code object in the folder; `None` if clang-22 is not installed.
pub fn compile(folder: &Folder, source: &str) -> Option<String> {
    compile_with(folder, source, &["-mcpu=gfx1201", "-O2"])
}

/// The same with flags.
pub fn compile_with(folder: &Folder, source: &str, flags: &[&str]) -> Option<String> {
    if !zrt_needs::programs(&["clang-22"]) {
        return None;
    }
    let (path, object) = (folder.write("kernel.cl", source.as_bytes()), folder.path("kernel.co"));
    let mut command = Command::new("clang-22");
    command.args(["--target=amdgcn-amd-amdhsa", "-nogpulib", "-w", "-x", "cl"]).args(flags);
    let output = command.args(["-cl-std=CL2.0", &path, "-o", &object]).output().expect("clang-22 starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(object)
}

/// A source of HIP as a code object in the folder, without AMD's headers and libraries; `None` if clang-22 is not
/// installed. Bundles would need one more program.
pub fn compile_hip(folder: &Folder, source: &str, flags: &[&str]) -> Option<String> {
    if !zrt_needs::programs(&["clang-22"]) {
        return None;
    }
    let (path, object) = (folder.write("kernel.hip", source.as_bytes()), folder.path("kernel.co"));
    let mut command = Command::new("clang-22");
    command.args(["-x", "hip", "--offload-arch=gfx1201", "--offload-device-only", "--no-gpu-bundle-output"]);
    command.args(["-nogpuinc", "-nogpulib", "-w"]).args(flags);
    let output = command.args([&path, "-o", &object]).output().expect("clang-22 starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(object)
}

/// The words of a file.
pub fn read_words(path: &str) -> Vec<u32> {
    let bytes = std::fs::read(path).unwrap();
    bytes.chunks_exact(4).map(|four| u32::from_le_bytes(four.try_into().unwrap())).collect()
}
