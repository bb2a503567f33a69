//! Clang's bundles: code objects for several targets in one file, as HIP's compiler writes them.
//!
//! Contract: pure and without a copy: the result is a part of the input. An entry takes at least as many bytes of
//! the file as it is long, so no count needs to be trusted. Source: clang's documentation of the offload bundler,
//! "Bundled Code Object Layout" and "Compression and Decompression".

use crate::error::LoadError;

/// The first bytes of a bundle.
const MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
/// The first bytes of a compressed bundle.
const MAGIC_COMPRESSED: &[u8] = b"CCOB";
/// Endings of the names of entries that run on gfx1201, the best first. Features follow a colon.
const PROCESSORS: [&str; 2] = ["-gfx1201", "-gfx12-generic"];
/// Most entries listed in a message, and most bytes of each name.
const NAMES_TOLD_MAX: usize = 8;
const NAME_TOLD_BYTES_MAX: usize = 64;

/// An entry's name and content.
type Entry<'a> = (&'a [u8], &'a [u8]);

/// The code object for gfx1201 in a bundle, or else the one for gfx12-generic. Bytes that are no bundle are
/// returned unchanged.
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

/// Whether a name belongs to a processor's code: `KIND-TRIPLE-PROCESSOR`, possibly with features.
fn is_of(name: &[u8], processor: &str) -> bool {
    let target = name.split(|byte| *byte == b':').next().unwrap_or_default();
    target.ends_with(processor.as_bytes()) && target.windows(6).any(|window| window == b"amdgcn")
}

/// The table at the beginning of a bundle.
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
