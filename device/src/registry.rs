//! What lies where in device memory, for reports: buffers and kernels by address.
//!
//! Contract: entries come with buffers and kernels and go with them. Lookups happen after a fault only. A lock and
//! allocations; never on the path of a token.

use crate::findings::Place;
use std::sync::{Mutex, MutexGuard, PoisonError};
use zrt_isa::zrt;
use zrt_mem::{ByteLen, GpuVa};

/// How far behind the end of a buffer an address is still told as "past" it.
const PAST_BYTES_MAX: u64 = 1 << 20;

/// The names of everything in device memory.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    entries: Mutex<Vec<Entry>>,
}

/// Identifies an entry, so that it can be taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryId(GpuVa);

#[derive(Debug)]
struct Entry {
    start: GpuVa,
    len: ByteLen,
    what: What,
}

#[derive(Debug)]
enum What {
    Buffer { label: String },
    Kernel { name: String, lines: LineTable },
}

/// The container's line table, owned.
#[derive(Debug, Default)]
struct LineTable {
    files: Vec<String>,
    /// Code offset, file, line; ascending.
    lines: Vec<(u64, usize, u32)>,
}

impl LineTable {
    fn of(container: &zrt::Kernel<'_>) -> LineTable {
        LineTable {
            files: container.files.iter().map(|file| String::from(*file)).collect(),
            lines: container
                .lines
                .iter()
                .map(|line| (u64::from(line.code_offset), line.file as usize, line.line))
                .collect(),
        }
    }

    fn at(&self, offset: u64) -> Option<(&str, u32)> {
        let after = self.lines.partition_point(|(start, _, _)| *start <= offset);
        let (_, file, line) = self.lines.get(after.checked_sub(1)?)?;
        Some((self.files.get(*file)?, *line))
    }
}

impl Registry {
    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        // Every change is one call, so the list is valid after any panic.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add_buffer(&self, start: GpuVa, len: ByteLen, label: &str) -> EntryId {
        self.entries().push(Entry { start, len, what: What::Buffer { label: label.into() } });
        EntryId(start)
    }

    /// Makes the entry of the code's buffer a kernel.
    pub(crate) fn name_kernel(&self, id: EntryId, container: &zrt::Kernel<'_>) {
        if let Some(entry) = self.entries().iter_mut().find(|entry| entry.start == id.0) {
            entry.what = What::Kernel { name: container.name.into(), lines: LineTable::of(container) };
        }
    }

    /// The same for code that is no container's. `lines` are code offset, index into `files`, line; ascending.
    pub(crate) fn name_code(
        &self,
        id: EntryId,
        name: &str,
        files: Vec<String>,
        lines: Vec<(u64, usize, u32)>,
    ) {
        if let Some(entry) = self.entries().iter_mut().find(|entry| entry.start == id.0) {
            entry.what = What::Kernel { name: name.into(), lines: LineTable { files, lines } };
        }
    }

    pub(crate) fn remove(&self, id: EntryId) {
        self.entries().retain(|entry| entry.start != id.0);
    }

    /// What is at an address, in words; `None` where nothing of ours is near.
    pub(crate) fn describe(&self, va: GpuVa) -> Option<String> {
        let entries = self.entries();
        let below = entries.iter().filter(|entry| entry.start <= va).max_by_key(|entry| entry.start)?;
        let offset = va.0 - below.start.0;
        if offset >= below.len.0 {
            let past = offset - below.len.0;
            let label = match &below.what {
                What::Buffer { label } => label,
                What::Kernel { name, .. } => name,
            };
            return (past < PAST_BYTES_MAX).then(|| format!("{past} bytes past the end of {label}"));
        }
        Some(match &below.what {
            What::Buffer { label } => format!("{label}+{offset:#x}"),
            What::Kernel { name, lines } => match lines.at(offset) {
                Some((file, line)) => format!("kernel {name}+{offset:#x}, {file}:{line}"),
                None => format!("kernel {name}+{offset:#x}"),
            },
        })
    }

    /// The kernel and source line of an instruction.
    pub(crate) fn place(&self, va: GpuVa) -> Place {
        let entries = self.entries();
        let unknown = Place { pc: va.0, kernel: None, offset: None, source: None };
        let holder = entries.iter().find(|entry| entry.start <= va && va.0 - entry.start.0 < entry.len.0);
        let Some(Entry { start, what: What::Kernel { name, lines }, .. }) = holder else { return unknown };
        let offset = va.0 - start.0;
        let source = lines.at(offset).map(|(file, line)| (file.to_owned(), line));
        Place { pc: va.0, kernel: Some(name.clone()), offset: Some(offset), source }
    }

    /// Everything that was allocated: label, address, length.
    pub(crate) fn allocations(&self) -> Vec<(String, GpuVa, ByteLen)> {
        let label = |what: &What| match what {
            What::Buffer { label } => label.clone(),
            What::Kernel { name, .. } => name.clone(),
        };
        self.entries().iter().map(|entry| (label(&entry.what), entry.start, entry.len)).collect()
    }

    /// A line of the device's log with every address that we know followed by its meaning.
    pub(crate) fn annotate(&self, line: &str) -> String {
        let mut annotated = String::with_capacity(line.len());
        let mut rest = line;
        while let Some(start) = rest.find("0x") {
            let digits = &rest[start + 2..];
            let len = digits.find(|one: char| !one.is_ascii_hexdigit()).unwrap_or(digits.len());
            let end = start + 2 + len;
            annotated.push_str(&rest[..end]);
            let meaning =
                u64::from_str_radix(&digits[..len], 16).ok().and_then(|va| self.describe(GpuVa(va)));
            if let Some(meaning) = meaning {
                annotated.push_str(" (");
                annotated.push_str(&meaning);
                annotated.push(')');
            }
            rest = &rest[end..];
        }
        annotated.push_str(rest);
        annotated
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zrt_isa::resources::WaveSize;

    fn container() -> zrt::Kernel<'static> {
        zrt::Kernel {
            name: "matvec",
            code: &[0; 256],
            entry: 0,
            rsrc1: 0,
            rsrc2: 0,
            rsrc3: 0,
            wave_size: WaveSize::Wave32,
            user_sgprs: 2,
            vgprs: 8,
            sgprs: 8,
            workgroup: [32, 1, 1],
            lds_bytes: 0,
            scratch_bytes: 0,
            parameter_version: 1,
            parameter_opcode: 1,
            parameter_bytes: 8,
            files: vec!["body/matvec.inc"],
            lines: vec![
                zrt::Line { code_offset: 0, file: 0, line: 10 },
                zrt::Line { code_offset: 0x20, file: 0, line: 12 },
            ],
            constants: Vec::new(),
        }
    }

    #[test]
    fn addresses_get_their_names() {
        let registry = Registry::default();
        let weights = registry.add_buffer(GpuVa(0x10_0000), ByteLen(0x1000), "weights");
        let code = registry.add_buffer(GpuVa(0x20_0000), ByteLen(0x200), "code");
        registry.name_kernel(code, &container());
        assert_eq!(registry.describe(GpuVa(0xf_ffff)), None);
        assert_eq!(registry.describe(GpuVa(0x10_0010)).as_deref(), Some("weights+0x10"));
        assert_eq!(registry.describe(GpuVa(0x10_1004)).as_deref(), Some("4 bytes past the end of weights"));
        assert_eq!(
            registry.annotate("kind=wave pc=0x200024 va=0x100010 exec=0xff."),
            "kind=wave pc=0x200024 (kernel matvec+0x24, body/matvec.inc:12) va=0x100010 (weights+0x10) exec=0xff."
        );
        registry.remove(weights);
        assert_eq!(registry.describe(GpuVa(0x10_0010)), None);
        assert_eq!(
            registry.annotate("no numbers, 0x, 0xffffffffffffffffff"),
            "no numbers, 0x, 0xffffffffffffffffff"
        );
    }
}
