//! What lies where in device memory, for reports: buffers and kernels by address.
//!
//! Contract: entries come and go with buffers and kernels. Lookups happen only after a fault. It locks and allocates;
//! never on the path of a token.

use core::fmt;
use serde::Serialize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use zrt_isa::zrt;
use zrt_mem::{ByteLen, GpuVa};

/// How far from a buffer an address is still described relative to it: the largest distance that a 32-bit index of
/// 16-byte elements can make. An address further away has another cause than an index.
const NEAR_BYTES_MAX: u64 = 64 << 30;

/// What precedes the active lanes in a line of the log: a number that is not an address.
const LANES_KEY: &str = "exec=";

/// A place in code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Address of the instruction.
    pub pc: u64,
    /// Kernel or function, if this device loaded it.
    pub kernel: Option<String>,
    /// Offset in bytes from the first instruction of its function, as disassemblers count.
    pub offset: Option<u64>,
    /// Source file and line, if the kernel's line table has them.
    pub source: Option<(String, u32)>,
    /// The text of that line, if a caller that reads files has filled it in; nothing here does.
    pub source_text: Option<String>,
}

/// How reports name code and find its source lines.
#[derive(Clone, Copy, Debug)]
pub struct CodeLabel<'a> {
    /// Name.
    pub name: &'a str,
    /// Functions: offset of the first instruction in bytes, name; ascending. Offsets in reports count from the last
    /// function that begins at or before the place, as in disassemblers.
    pub functions: &'a [(u64, &'a str)],
    /// Source files.
    pub files: &'a [String],
    /// Code offset in bytes, index into the files, line; ascending. An index that names no file ends a range.
    pub lines: &'a [(u64, usize, u32)],
}

/// The names of everything in device memory.
#[derive(Debug, Default)]
pub struct Registry {
    entries: Mutex<Vec<Entry>>,
}

/// Identifies an entry, so that it can be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryId(GpuVa);

#[derive(Debug)]
struct Entry {
    start: GpuVa,
    len: ByteLen,
    what: What,
}

#[derive(Debug)]
enum What {
    Buffer {
        label: String,
    },
    /// What the device itself needs: no address near it was meant for it.
    Own {
        label: String,
    },
    Kernel {
        name: String,
        functions: Vec<(u64, String)>,
        lines: LineTable,
    },
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

impl Entry {
    fn label(&self) -> &str {
        match &self.what {
            What::Buffer { label } | What::Own { label } => label,
            What::Kernel { name, .. } => name,
        }
    }

    fn holds(&self, va: GpuVa) -> bool {
        self.start <= va && va.0 - self.start.0 < self.len.0
    }

    /// Bytes from its beginning down to an address, or from its end up to the address.
    fn distance(&self, va: GpuVa) -> u64 {
        let before = self.start.0.saturating_sub(va.0);
        before.max(va.0.saturating_sub(self.start.0.saturating_add(self.len.0)))
    }

    /// An address in it as a place in code.
    fn place(&self, va: GpuVa) -> Place {
        let What::Kernel { name, functions, lines } = &self.what else { return Place::unknown(va.0) };
        let offset = va.0 - self.start.0;
        let after = functions.partition_point(|(start, _)| *start <= offset);
        let function = after.checked_sub(1).and_then(|index| functions.get(index));
        let (start, name) = function.map_or((0, name), |(start, name)| (*start, name));
        let source = lines.at(offset).map(|(file, line)| (file.to_owned(), line));
        Place { kernel: Some(name.clone()), offset: Some(offset - start), source, ..Place::unknown(va.0) }
    }
}

impl Place {
    /// An address that is in none of our code.
    fn unknown(pc: u64) -> Place {
        Place { pc, kernel: None, offset: None, source: None, source_text: None }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.kernel, self.offset) {
            (Some(kernel), Some(offset)) => write!(formatter, "{kernel}+{offset:#x}")?,
            _ => write!(formatter, "{:#x}", self.pc)?,
        }
        match &self.source {
            Some((file, line)) => write!(formatter, " ({file}:{line})"),
            None => Ok(()),
        }
    }
}

impl Registry {
    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        // Every change is one call, so the list is valid after any panic.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names a range.
    pub fn add_buffer(&self, start: GpuVa, len: ByteLen, label: &str) -> EntryId {
        self.entries().push(Entry { start, len, what: What::Buffer { label: label.into() } });
        EntryId(start)
    }

    /// Makes the entry one of the device's own.
    pub(crate) fn set_own(&self, id: EntryId) {
        if let Some(entry) = self.entries().iter_mut().find(|entry| entry.start == id.0)
            && let What::Buffer { label } = &mut entry.what
        {
            entry.what = What::Own { label: std::mem::take(label) };
        }
    }

    /// Makes the entry of the code's buffer a kernel.
    pub(crate) fn name_kernel(&self, id: EntryId, container: &zrt::Kernel<'_>) {
        if let Some(entry) = self.entries().iter_mut().find(|entry| entry.start == id.0) {
            let (name, lines) = (container.name.into(), LineTable::of(container));
            entry.what = What::Kernel { name, functions: Vec::new(), lines };
        }
    }

    /// The same for code that is not from a container.
    pub(crate) fn name_code(&self, id: EntryId, label: &CodeLabel<'_>) {
        if let Some(entry) = self.entries().iter_mut().find(|entry| entry.start == id.0) {
            let functions = label.functions.iter().map(|(start, name)| (*start, String::from(*name)));
            let lines = LineTable { files: label.files.into(), lines: label.lines.into() };
            entry.what = What::Kernel { name: label.name.into(), functions: functions.collect(), lines };
        }
    }

    pub(crate) fn remove(&self, id: EntryId) {
        self.entries().retain(|entry| entry.start != id.0);
    }

    /// What is at an address, or which buffer is the nearest to it on either side, in words; `None` if nothing of ours
    /// is near.
    pub fn describe(&self, va: GpuVa) -> Option<String> {
        let entries = self.entries();
        if let Some(entry) = entries.iter().find(|entry| entry.holds(va)) {
            let offset = va.0 - entry.start.0;
            return Some(match &entry.what {
                What::Buffer { label } | What::Own { label } => format!("{label}+{offset:#x}"),
                What::Kernel { .. } => format!("kernel {}", entry.place(va)),
            });
        }
        let buffers = entries.iter().filter(|entry| !matches!(entry.what, What::Own { .. }));
        let nearest = buffers.min_by_key(|entry| entry.distance(va))?;
        let distance = nearest.distance(va);
        let side = if va < nearest.start { "before the beginning of" } else { "past the end of" };
        (distance <= NEAR_BYTES_MAX).then(|| format!("{distance} bytes {side} {}", nearest.label()))
    }

    /// The kernel and source line of an instruction.
    pub fn place(&self, va: GpuVa) -> Place {
        let entries = self.entries();
        let holder = entries.iter().find(|entry| entry.holds(va));
        holder.map_or_else(|| Place::unknown(va.0), |entry| entry.place(va))
    }

    /// Everything that was allocated: label, address, length.
    pub(crate) fn allocations(&self) -> Vec<(String, GpuVa, ByteLen)> {
        self.entries().iter().map(|entry| (entry.label().to_owned(), entry.start, entry.len)).collect()
    }

    /// A line of the device's log with every address that we know followed by its meaning.
    pub fn annotate(&self, line: &str) -> String {
        let mut annotated = String::with_capacity(line.len());
        let mut rest = line;
        while let Some(start) = rest.find("0x") {
            let digits = &rest[start + 2..];
            let len = digits.find(|one: char| !one.is_ascii_hexdigit()).unwrap_or(digits.len());
            let end = start + 2 + len;
            annotated.push_str(&rest[..end]);
            let number = u64::from_str_radix(&digits[..len], 16).ok();
            let is_mask = rest[..start].ends_with(LANES_KEY);
            let meaning = number.filter(|_| !is_mask).and_then(|va| self.describe(GpuVa(va)));
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
        assert_eq!(registry.describe(GpuVa(0x10_0010)).as_deref(), Some("weights+0x10"));
        assert_eq!(
            registry.annotate("kind=wave pc=0x200024 va=0x100010 exec=0xff."),
            "kind=wave pc=0x200024 (kernel matvec+0x24 (body/matvec.inc:12)) va=0x100010 (weights+0x10) exec=0xff."
        );
        let label = |(label, start, len): (String, GpuVa, ByteLen)| (label, start.0, len.0);
        let allocations = || registry.allocations().into_iter().map(label).collect::<Vec<_>>();
        let kernel = ("matvec".to_owned(), 0x20_0000, 0x200);
        assert_eq!(allocations(), [("weights".to_owned(), 0x10_0000, 0x1000), kernel.clone()]);
        registry.remove(weights);
        assert_eq!(allocations(), [kernel], "the other stays");
        registry.remove(code);
        assert_eq!(registry.describe(GpuVa(0x10_0010)), None);
        assert_eq!(
            registry.annotate("no numbers, 0x, 0xffffffffffffffffff"),
            "no numbers, 0x, 0xffffffffffffffffff"
        );
    }

    #[test]
    fn the_nearest_buffer_is_named_on_either_side() {
        let registry = Registry::default();
        registry.add_buffer(GpuVa(0x10_0000), ByteLen(0x1000), "weights");
        let fence = registry.add_buffer(GpuVa(0x10_2000), ByteLen(0x10), "fence");
        registry.add_buffer(GpuVa(0x10_4000), ByteLen(0x20), "rows");
        registry.set_own(fence);
        let told = |va| registry.describe(GpuVa(va)).unwrap();
        assert_eq!(told(0xf_fffc), "4 bytes before the beginning of weights");
        registry.add_buffer(GpuVa(0x8000), ByteLen(0), "nothing");
        assert_eq!(told(0x8000), "0 bytes past the end of nothing", "it has no byte to be before");
        assert_eq!(told(0x10_1000), "0 bytes past the end of weights");
        assert_eq!(told(0x10_1004), "4 bytes past the end of weights");
        assert_eq!(told(0x10_2008), "fence+0x8");
        assert_eq!(told(0x10_2010), "4112 bytes past the end of weights", "nobody aims at a fence");
        assert_eq!(told(0x10_3ffc), "4 bytes before the beginning of rows");
        assert_eq!(told(0x10_4020), "0 bytes past the end of rows");
        assert_eq!(told(0x10_4020 + NEAR_BYTES_MAX), "68719476736 bytes past the end of rows");
        assert_eq!(registry.describe(GpuVa(0x10_4021 + NEAR_BYTES_MAX)), None);
        assert_eq!(registry.describe(GpuVa(u64::MAX)), None);
        assert_eq!(
            registry.describe(GpuVa(8)).as_deref(),
            Some("32760 bytes before the beginning of nothing")
        );
    }

    #[test]
    fn offsets_count_from_functions() {
        let registry = Registry::default();
        let code = registry.add_buffer(GpuVa(0x20_0000), ByteLen(0x2000), "code");
        let functions = [(0x1500, "copy"), (0x1600, "matmul")];
        let (files, lines) = ([String::from("k.c")], [(0x1600, 0, 7)]);
        registry.name_code(
            code,
            &CodeLabel { name: "matmul", functions: &functions, files: &files, lines: &lines },
        );
        let text = |va| registry.place(GpuVa(va)).to_string();
        assert_eq!(text(0x20_1658), "matmul+0x58 (k.c:7)");
        assert_eq!(text(0x20_15fc), "copy+0xfc");
        assert_eq!(text(0x20_0004), "matmul+0x4", "before every function: in the image");
        assert_eq!(text(0x20_2000), "0x202000");
    }
}
