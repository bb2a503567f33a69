//! Bundles of clang: code objects for several targets in one file, as HIP's compiler writes them.
//!
//! Contract: pure and without a copy: what comes out is a part of the input. An entry costs as many bytes of the file as it
//! is long, so that no count is believed. Source: clang's documentation of the offload bundler, "Bundled Code Object
//! Layout" and "Compression and Decompression".

use crate::error::LoadError;

/// What a bundle begins with.
const MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
/// What a compressed one begins with.
const MAGIC_COMPRESSED: &[u8] = b"CCOB";
/// Ends of the names of entries that run on gfx1201, the best first. What follows a colon are features.
const PROCESSORS: [&str; 2] = ["-gfx1201", "-gfx12-generic"];
/// Entries that a message names, and how many bytes of each name.
const NAMES_TOLD_MAX: usize = 8;
const NAME_TOLD_BYTES_MAX: usize = 64;

/// An entry's name and content.
type Entry<'a> = (&'a [u8], &'a [u8]);

/// The code object for gfx1201 in a bundle, or the one for gfx12-generic where there is no other; bytes that are no bundle are
/// given back as they are.
pub fn code_object(bytes: &[u8]) -> Result<&[u8], LoadError> {
    if bytes.starts_with(MAGIC_COMPRESSED) {
        return Err(LoadError::CompressedBundle);
    }
    let Some(rest) = bytes.strip_prefix(MAGIC) else { return Ok(bytes) };
    let mut header = Reader { bytes, rest };
    let count = header.number()?;
    let mut found: [Option<&[u8]>; PROCESSORS.len()] = [None; PROCESSORS.len()];
    let mut names = Vec::new();
    for _ in 0..count {
        let (name, content) = header.entry()?;
        let is_it = |processor: &&str| is_of(name, processor) && !content.is_empty();
        match PROCESSORS.iter().position(is_it) {
            Some(best) => found[best] = found[best].or(Some(content)),
            None if names.len() < NAMES_TOLD_MAX => {
                let told = name.get(..NAME_TOLD_BYTES_MAX).unwrap_or(name);
                names.push(String::from_utf8_lossy(told).into_owned());
            }
            None => {}
        }
    }
    found.into_iter().flatten().next().ok_or_else(|| match names.is_empty() {
        true => LoadError::Bundle { found: "nothing".into() },
        false => LoadError::Bundle { found: names.join(", ") },
    })
}

/// Whether a name is that of a processor's code: `KIND-TRIPLE-PROCESSOR`, perhaps with features.
fn is_of(name: &[u8], processor: &str) -> bool {
    let target = name.split(|byte| *byte == b':').next().unwrap_or_default();
    target.ends_with(processor.as_bytes()) && target.windows(6).any(|window| window == b"amdgcn")
}

/// The table at a bundle's beginning.
struct Reader<'a> {
    bytes: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// The next eight bytes.
    fn number(&mut self) -> Result<u64, LoadError> {
        let (number, rest) = self.rest.split_first_chunk().ok_or_else(damaged)?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*number))
    }

    /// The next entry: offset and length of its content, length of its name, name.
    fn entry(&mut self) -> Result<Entry<'a>, LoadError> {
        let numbers = [self.number()?, self.number()?, self.number()?];
        let [Ok(offset), Ok(len), Ok(name_len)] = numbers.map(usize::try_from) else { return Err(damaged()) };
        let (name, rest) = self.rest.split_at_checked(name_len).ok_or_else(damaged)?;
        self.rest = rest;
        let content = self.bytes.get(offset..).and_then(|rest| rest.get(..len)).ok_or_else(damaged)?;
        Ok((name, content))
    }
}

fn damaged() -> LoadError {
    LoadError::Damaged { what: "the table of the bundle names bytes that are not there".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_the_processor() {
        for (name, processor, expected) in [
            ("hipv4-amdgcn-amd-amdhsa--gfx1201", "-gfx1201", true),
            ("hip-amdgcn-amd-amdhsa-unknown-gfx1201:cumode+", "-gfx1201", true),
            ("openmp-amdgcn-amd-amdhsa--gfx12-generic", "-gfx12-generic", true),
            ("hipv4-amdgcn-amd-amdhsa--gfx1200", "-gfx1201", false),
            ("hipv4-spirv64-amd-amdhsa--gfx1201", "-gfx1201", false),
            ("host-x86_64-unknown-linux-gnu-", "-gfx1201", false),
            ("", "-gfx1201", false),
        ] {
            assert_eq!(is_of(name.as_bytes(), processor), expected, "{name}");
        }
    }
}
