//! `.zrt` containers and raw machine code: one kernel, one segment.
//!
//! Contract: pure; `zrt-isa` defines the container's own rules.

use crate::error::LoadError;
use crate::image::{IMAGE_BYTES_MAX, Image, Segment, Symbol};
use crate::kernel::{Arguments, Kernel, UserSgpr};
use crate::lines::{LineRow, LineTable};
use crate::print::PrintFormats;
use crate::program::{Format, Program};
use zrt_isa::resources::{
    Rsrc1, Rsrc2, Rsrc3, USER_SGPRS_MAX, VGPRS_PER_WAVE_MAX, WORKGROUP_ITEMS_MAX, WaveSize,
    instruction_prefetch_field, lds_field, vgpr_field,
};
use zrt_isa::zrt;

/// Name of the segment.
const CODE_SEGMENT: &str = "code";

/// What a raw kernel's file does not contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawOptions {
    /// Name of the kernel.
    pub name: String,
    /// Lanes of a wave.
    pub wave_size: WaveSize,
    /// Vector registers, 1 to 256.
    pub vgprs: u32,
    /// User SGPRs, 2 to 16: `s[0:1]` is the address of the argument segment, the rest is 0.
    pub user_sgprs: u32,
    /// LDS of a group in bytes, up to 65,536.
    pub lds_bytes: u32,
    /// Scratch of a lane in bytes.
    pub scratch_bytes: u32,
}

impl Default for RawOptions {
    /// Wave32 with all its vector registers and the address of the arguments in `s[0:1]`.
    fn default() -> RawOptions {
        RawOptions {
            name: "raw".into(),
            wave_size: WaveSize::Wave32,
            vgprs: VGPRS_PER_WAVE_MAX,
            user_sgprs: 2,
            lds_bytes: 0,
            scratch_bytes: 0,
        }
    }
}

/// Reads a `.zrt`.
pub(crate) fn parse(bytes: &[u8]) -> Result<Program, LoadError> {
    let container = zrt::Kernel::parse(bytes)?;
    let kernel = Kernel {
        name: container.name.into(),
        entry_offset: container.entry.into(),
        code_bytes: container.code.len() as u64 - u64::from(container.entry),
        rsrc1: container.rsrc1,
        rsrc2: container.rsrc2,
        rsrc3: container.rsrc3,
        wave_size: container.wave_size,
        user_sgprs: container_sgprs(container.user_sgprs.into()),
        lds_bytes: container.lds_bytes,
        scratch_bytes: container.scratch_bytes,
        dynamic_stack: false,
        arguments: Arguments::ParameterBlock {
            version: container.parameter_version,
            opcode: container.parameter_opcode,
            bytes: container.parameter_bytes,
        },
        required_workgroup: Some(container.workgroup.map(u32::from)),
        workgroup_items_max: container.work_items(),
    };
    let files = container.files.iter().map(|file| String::from(*file)).collect();
    let row =
        |line: &zrt::Line| LineRow { offset: line.code_offset.into(), file: line.file, line: line.line };
    let lines = LineTable::new(files, container.lines.iter().map(row).collect());
    Ok(one_kernel(Format::Zrt, container.code, kernel, lines))
}

/// Makes a program with one kernel from raw code.
pub(crate) fn raw(code: &[u8], options: &RawOptions) -> Result<Program, LoadError> {
    let refuse = |what: String| Err(LoadError::Raw { what });
    if code.len() as u64 > IMAGE_BYTES_MAX {
        let bytes = code.len() as u64;
        return Err(LoadError::TooLarge { what: "the code", bytes, limit: IMAGE_BYTES_MAX });
    }
    if code.is_empty() || !code.len().is_multiple_of(4) {
        return refuse(format!("{} bytes are not one or more whole dwords", code.len()));
    }
    if options.user_sgprs < 2 || options.user_sgprs > USER_SGPRS_MAX {
        let count = options.user_sgprs;
        return refuse(format!(
            "{count} user SGPRs are not 2 to {USER_SGPRS_MAX} (s[0:1] holds the arguments)"
        ));
    }
    let resource = |source| LoadError::Resource { kernel: options.name.clone(), source };
    let vgpr_blocks_minus_one = vgpr_field(options.vgprs, options.wave_size).map_err(resource)?;
    let rsrc2 = Rsrc2 {
        scratch: options.scratch_bytes != 0,
        user_sgprs: options.user_sgprs,
        workgroup_id: [true; 3],
        work_item_components: 2,
        lds_blocks: lds_field(options.lds_bytes).map_err(resource)?,
        ..Rsrc2::default()
    };
    let rsrc3 = Rsrc3 {
        instruction_prefetch: instruction_prefetch_field(code.len() as u32), // At most IMAGE_BYTES_MAX.
        ..Rsrc3::default()
    };
    let kernel = Kernel {
        name: options.name.clone(),
        entry_offset: 0,
        code_bytes: code.len() as u64,
        rsrc1: Rsrc1 { vgpr_blocks_minus_one, ..Rsrc1::default() }.word().map_err(resource)?,
        rsrc2: rsrc2.word().map_err(resource)?,
        rsrc3: rsrc3.word().map_err(resource)?,
        wave_size: options.wave_size,
        user_sgprs: user_sgprs(options.user_sgprs),
        lds_bytes: options.lds_bytes,
        scratch_bytes: options.scratch_bytes,
        dynamic_stack: false,
        arguments: Arguments::Natural { bytes: 0 },
        required_workgroup: None,
        workgroup_items_max: WORKGROUP_ITEMS_MAX,
    };
    Ok(one_kernel(Format::Raw, code, kernel, LineTable::default()))
}

/// Like [`user_sgprs`], but the third register is the number of workgroups in X.
fn container_sgprs(count: u32) -> Vec<UserSgpr> {
    let mut sgprs = user_sgprs(count);
    if let Some(third) = sgprs.get_mut(1) {
        *third = UserSgpr::GroupCount;
    }
    sgprs
}

/// The address of the arguments if at least two registers are loaded, then zeros.
fn user_sgprs(count: u32) -> Vec<UserSgpr> {
    let (first, rest) = if count >= 2 { (Some(UserSgpr::Arguments), count - 2) } else { (None, count) };
    let unused = std::iter::repeat_n(UserSgpr::Unused, rest as usize);
    first.into_iter().chain(unused).collect()
}

fn one_kernel(format: Format, code: &[u8], kernel: Kernel, lines: LineTable) -> Program {
    let bytes = code.len() as u64;
    let segment = Segment { name: CODE_SEGMENT.into(), offset: 0, bytes, executable: true, writable: false };
    let offset = kernel.entry_offset;
    let symbol = Symbol { name: kernel.name.clone(), offset, bytes: kernel.code_bytes, is_code: true };
    Program {
        format,
        image: Image { bytes: code.into(), segments: vec![segment], base_relocations: Vec::new() },
        kernels: vec![kernel],
        symbols: vec![symbol],
        lines,
        print_formats: PrintFormats::default(),
    }
}
