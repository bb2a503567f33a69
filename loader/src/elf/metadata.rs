//! The NT_AMDGPU_METADATA note: the arguments of each kernel, as the compiler laid them out.
//!
//! Contract: pure; arguments that extend beyond the segment are refused here, so that packing need not check again.
//! Source: LLVM's "User Guide for AMDGPU Backend", code object metadata of versions 3 to 6.

use super::msgpack::Value;
use crate::error::LoadError;
use crate::image::vec_of;
use crate::kernarg::ARGUMENT_BYTES_MAX;
use crate::kernel::{AddressSpace, Argument, Hidden, ValueKind};
use crate::print::{self, PrintFormats};
use crate::program::KERNELS_MAX;

/// Owner of the note.
const NOTE_NAME: &[u8] = b"AMDGPU\0";
/// NT_AMDGPU_METADATA.
const NOTE_TYPE: u32 = 32;
/// Name size, descriptor size and type of a note: three dwords.
const NOTE_HEADER_BYTES: usize = 12;
/// Longest metadata that is read, in bytes.
const METADATA_BYTES_MAX: usize = 16 << 20;
/// Most arguments of one kernel.
const ARGUMENTS_MAX: usize = 4096;
/// Longest name that is kept, in bytes.
const NAME_BYTES_MAX: usize = 1024;

/// What the note says about one kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct KernelMetadata {
    /// Name of the descriptor's symbol.
    pub symbol: String,
    /// Length of the argument segment in bytes.
    pub segment_bytes: u32,
    /// Alignment of the argument segment in bytes.
    pub segment_alignment: u32,
    pub arguments: Vec<Argument>,
    pub required_workgroup: Option<[u32; 3]>,
    pub workgroup_items_max: Option<u32>,
    pub dynamic_stack: bool,
}

/// The metadata among the notes, if there is any.
pub(crate) fn find(mut notes: &[u8]) -> Option<&[u8]> {
    loop {
        let (header, rest) = notes.split_at_checked(NOTE_HEADER_BYTES)?;
        let dword = |at: usize| header.get(at..)?.first_chunk().map(|four| u32::from_le_bytes(*four));
        let (name_bytes, content_bytes, kind) = (dword(0)? as usize, dword(4)? as usize, dword(8)?);
        let name = rest.get(..name_bytes)?;
        let content_start = name_bytes.checked_next_multiple_of(4)?;
        let content = rest.get(content_start..content_start.checked_add(content_bytes)?)?;
        if kind == NOTE_TYPE && name == NOTE_NAME {
            return Some(content);
        }
        notes = rest.get(content_start.checked_add(content_bytes.checked_next_multiple_of(4)?)?..)?;
    }
}

/// Reads the metadata of all kernels, and the format strings.
pub(crate) fn parse(bytes: &[u8]) -> Result<(Vec<KernelMetadata>, PrintFormats), LoadError> {
    if bytes.len() > METADATA_BYTES_MAX {
        let (bytes, limit) = (bytes.len() as u64, METADATA_BYTES_MAX as u64);
        return Err(LoadError::TooLarge { what: "the metadata note", bytes, limit });
    }
    let root = Value::parse(bytes).ok_or_else(|| wrong("it is cut off or not MessagePack".into()))?;
    if !matches!(root, Value::Map(_)) {
        return Err(wrong("it is no map".into()));
    }
    let list = root.list("amdhsa.kernels");
    if list.len() > KERNELS_MAX {
        let (bytes, limit) = (list.len() as u64, KERNELS_MAX as u64);
        return Err(LoadError::TooLarge { what: "the list of kernels", bytes, limit });
    }
    Ok((list.map(kernel).collect::<Result<_, LoadError>>()?, print::parse_formats(&root)?))
}

fn wrong(what: String) -> LoadError {
    LoadError::Metadata { what }
}

fn kernel(value: Value<'_>) -> Result<KernelMetadata, LoadError> {
    let symbol = value.text(".symbol").ok_or_else(|| wrong("a kernel has no .symbol".into()))?;
    check_name(symbol)?;
    let missing = |field: &str| wrong(format!("{symbol} has no {field}"));
    let segment_bytes =
        value.number(".kernarg_segment_size").ok_or_else(|| missing(".kernarg_segment_size"))?;
    if u64::from(segment_bytes) > ARGUMENT_BYTES_MAX {
        let (bytes, limit) = (segment_bytes.into(), ARGUMENT_BYTES_MAX);
        return Err(LoadError::TooLarge { what: "the argument segment", bytes, limit });
    }
    let segment_alignment = value.number(".kernarg_segment_align").unwrap_or(8).max(4);
    if !segment_alignment.is_power_of_two() || segment_alignment > 4096 {
        return Err(wrong(format!("{symbol} aligns its arguments to {segment_alignment}")));
    }
    let list = value.list(".args");
    if list.len() > ARGUMENTS_MAX {
        return Err(wrong(format!("{symbol} has {} arguments, at most {ARGUMENTS_MAX}", list.len())));
    }
    let mut arguments = vec_of("a kernel's arguments", list.len())?;
    for entry in list {
        arguments.push(argument(symbol, segment_bytes, entry)?);
    }
    let mut sizes = value.list(".reqd_workgroup_size");
    let required_workgroup = match sizes.len() {
        3 => match [(); 3].map(|()| sizes.next().and_then(Value::to_u32)) {
            [Some(x), Some(y), Some(z)] => Some([x, y, z]),
            _ => return Err(wrong(format!("the .reqd_workgroup_size of {symbol} is not three numbers"))),
        },
        _ => None,
    };
    Ok(KernelMetadata {
        symbol: symbol.into(),
        segment_bytes,
        segment_alignment,
        arguments,
        required_workgroup,
        workgroup_items_max: value.number(".max_flat_workgroup_size"),
        dynamic_stack: value.get(".uses_dynamic_stack") == Some(Value::Bool(true)),
    })
}

fn check_name(name: &str) -> Result<(), LoadError> {
    match name.len() {
        0..=NAME_BYTES_MAX => Ok(()),
        bytes => Err(wrong(format!("a name has {bytes} bytes, at most {NAME_BYTES_MAX}"))),
    }
}

fn short(name: &str) -> Result<String, LoadError> {
    check_name(name)?;
    Ok(name.into())
}

fn argument(kernel: &str, segment_bytes: u32, value: Value<'_>) -> Result<Argument, LoadError> {
    let missing = |field: &str| wrong(format!("an argument of {kernel} has no {field}"));
    let offset = value.number(".offset").ok_or_else(|| missing(".offset"))?;
    let bytes = value.number(".size").ok_or_else(|| missing(".size"))?;
    let kind_name = value.text(".value_kind").ok_or_else(|| missing(".value_kind"))?;
    if u64::from(offset) + u64::from(bytes) > u64::from(segment_bytes) {
        return Err(wrong(format!(
            "an argument of {kernel} at {offset} with {bytes} bytes lies outside of its {segment_bytes} bytes"
        )));
    }
    let pointee_alignment = value.number(".pointee_align").unwrap_or(1).max(1);
    if !pointee_alignment.is_power_of_two() || pointee_alignment > 4096 {
        return Err(wrong(format!(
            "an argument of {kernel} points to memory aligned to {pointee_alignment}"
        )));
    }
    Ok(Argument {
        name: value.text(".name").map(short).transpose()?,
        type_name: value.text(".type_name").map(short).transpose()?,
        offset,
        bytes,
        kind: value_kind(kind_name)?,
        address_space: value.text(".address_space").and_then(address_space),
        pointee_alignment,
    })
}

fn value_kind(name: &str) -> Result<ValueKind, LoadError> {
    let axis = |prefix: &str| match name.strip_prefix(prefix)? {
        "x" => Some(0),
        "y" => Some(1),
        "z" => Some(2),
        _ => None,
    };
    if let Some(axis) = axis("hidden_block_count_") {
        return Ok(ValueKind::Hidden(Hidden::BlockCount(axis)));
    }
    if let Some(axis) = axis("hidden_group_size_") {
        return Ok(ValueKind::Hidden(Hidden::GroupSize(axis)));
    }
    if let Some(axis) = axis("hidden_remainder_") {
        return Ok(ValueKind::Hidden(Hidden::Remainder(axis)));
    }
    if let Some(axis) = axis("hidden_global_offset_") {
        return Ok(ValueKind::Hidden(Hidden::GlobalOffset(axis)));
    }
    Ok(match name {
        "by_value" => ValueKind::ByValue,
        "global_buffer" => ValueKind::GlobalBuffer,
        "dynamic_shared_pointer" => ValueKind::DynamicSharedPointer,
        "hidden_none" => ValueKind::Hidden(Hidden::None),
        "hidden_grid_dims" => ValueKind::Hidden(Hidden::GridDimensions),
        "hidden_dynamic_lds_size" => ValueKind::Hidden(Hidden::DynamicLdsBytes),
        "hidden_private_base" => ValueKind::Hidden(Hidden::PrivateBase),
        "hidden_shared_base" => ValueKind::Hidden(Hidden::SharedBase),
        "hidden_printf_buffer" => ValueKind::Hidden(Hidden::PrintfBuffer),
        "hidden_hostcall_buffer" => ValueKind::Hidden(Hidden::HostcallBuffer),
        hidden if hidden.starts_with("hidden_") => ValueKind::Hidden(Hidden::Null(short(hidden)?)),
        object => ValueKind::Object(short(object)?),
    })
}

fn address_space(name: &str) -> Option<AddressSpace> {
    Some(match name {
        "private" => AddressSpace::Private,
        "global" => AddressSpace::Global,
        "constant" => AddressSpace::Constant,
        "local" => AddressSpace::Local,
        "generic" => AddressSpace::Generic,
        "region" => AddressSpace::Region,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message_pack::{list, map, number, text};

    #[test]
    fn the_note_is_found_behind_others() {
        let mut notes = Vec::new();
        let mut note = |name: &[u8], kind: u32, content: &[u8]| {
            for dword in [name.len() as u32, content.len() as u32, kind] {
                notes.extend_from_slice(&dword.to_le_bytes());
            }
            for part in [name, content] {
                notes.extend_from_slice(part);
                notes.resize(notes.len().next_multiple_of(4), 0);
            }
        };
        note(b"GNU\0", 3, &[1, 2, 3, 4, 5]);
        note(b"AMDGPU\0", 31, &[9]);
        note(b"AMDGPU\0", 32, &[7, 8, 9]);
        assert_eq!(find(&notes), Some(&[7, 8, 9][..]));
        assert_eq!(find(&notes[..notes.len() - 2]), None, "the content is cut off");
        assert_eq!(find(&[0xFF; 12]), None);
    }

    #[test]
    fn kinds_have_the_names_of_the_documentation() {
        let hidden = |name: &str| match value_kind(name) {
            Ok(ValueKind::Hidden(hidden)) => hidden,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(hidden("hidden_block_count_y"), Hidden::BlockCount(1));
        assert_eq!(hidden("hidden_group_size_z"), Hidden::GroupSize(2));
        assert_eq!(hidden("hidden_remainder_x"), Hidden::Remainder(0));
        assert_eq!(hidden("hidden_global_offset_x"), Hidden::GlobalOffset(0));
        assert_eq!(hidden("hidden_heap_v1"), Hidden::Null("hidden_heap_v1".into()));
        assert_eq!(value_kind("sampler"), Ok(ValueKind::Object("sampler".into())));
    }

    fn note(kernels: &[Vec<u8>]) -> Result<Vec<KernelMetadata>, LoadError> {
        parse(&map(&[("amdhsa.kernels", list(kernels))])).map(|(kernels, _)| kernels)
    }

    /// The one kernel `k.kd`, with a segment of this length and more entries.
    fn one(segment_bytes: u32, more: &[(&str, Vec<u8>)]) -> Result<KernelMetadata, LoadError> {
        let entries = [(".symbol", text("k.kd")), (".kernarg_segment_size", number(segment_bytes))];
        note(&[map(&[&entries[..], more].concat())]).map(|mut kernels| kernels.remove(0))
    }

    fn with_arguments(segment_bytes: u32, arguments: &[Vec<u8>]) -> Result<Vec<Argument>, LoadError> {
        one(segment_bytes, &[(".args", list(arguments))]).map(|kernel| kernel.arguments)
    }

    /// An argument of four bytes with more entries.
    fn argument_at(offset: u32, more: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let entries = [(".offset", number(offset)), (".size", number(4)), (".value_kind", text("by_value"))];
        map(&[&entries[..], more].concat())
    }

    fn says<T>(what: &str) -> Result<T, LoadError> {
        Err(LoadError::Metadata { what: what.into() })
    }

    #[test]
    #[cfg_attr(miri, ignore = "reads 16 MiB")]
    fn the_note_has_16_mib_at_most() {
        // An empty map, and the bytes after it.
        let mut bytes = vec![0; 16 << 20];
        bytes[0] = 0x80;
        assert!(parse(&bytes).is_ok());
        bytes.push(0);
        let what = "the metadata note";
        let expected = LoadError::TooLarge { what, bytes: (16 << 20) + 1, limit: 16 << 20 };
        assert_eq!(parse(&bytes), Err(expected));
    }

    #[test]
    #[cfg_attr(miri, ignore = "reads thousands of kernels")]
    fn a_note_has_4096_kernels_at_most() {
        let kernel = map(&[(".symbol", text("k.kd")), (".kernarg_segment_size", number(0))]);
        let mut kernels = vec![kernel; 4096];
        assert_eq!(note(&kernels).map(|kernels| kernels.len()), Ok(4096));
        kernels.push(kernels[0].clone());
        let what = "the list of kernels";
        assert_eq!(note(&kernels), Err(LoadError::TooLarge { what, bytes: 4097, limit: 4096 }));
    }

    #[test]
    fn argument_segments_have_limits() {
        assert_eq!(one(65_536, &[]).map(|kernel| kernel.segment_bytes), Ok(65_536));
        let what = "the argument segment";
        assert_eq!(one(65_537, &[]), Err(LoadError::TooLarge { what, bytes: 65_537, limit: 65_536 }));
        let aligned = |alignment| {
            one(8, &[(".kernarg_segment_align", number(alignment))]).map(|kernel| kernel.segment_alignment)
        };
        assert_eq!(one(8, &[]).map(|kernel| kernel.segment_alignment), Ok(8), "the default");
        for (stated, expected) in [(0, 4), (1, 4), (3, 4), (4, 4), (8, 8), (256, 256), (4096, 4096)] {
            assert_eq!(aligned(stated), Ok(expected));
        }
        for refused in [5, 6, 12, 4097, 8192, 1 << 31] {
            assert_eq!(aligned(refused), says(&format!("k.kd aligns its arguments to {refused}")));
        }
    }

    #[test]
    fn arguments_lie_inside_the_segment() {
        let arguments = with_arguments(8, &[argument_at(0, &[]), argument_at(4, &[])]).unwrap();
        assert_eq!(arguments.iter().map(|argument| argument.offset).collect::<Vec<_>>(), [0, 4]);
        for offset in [5, 8, u32::MAX] {
            let what = format!("an argument of k.kd at {offset} with 4 bytes lies outside of its 8 bytes");
            assert_eq!(with_arguments(8, &[argument_at(offset, &[])]), says(&what));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "reads thousands of arguments")]
    fn a_kernel_has_4096_arguments_at_most() {
        let mut arguments = vec![argument_at(0, &[]); 4096];
        assert_eq!(with_arguments(4, &arguments).map(|arguments| arguments.len()), Ok(4096));
        arguments.push(arguments[0].clone());
        assert_eq!(with_arguments(4, &arguments), says("k.kd has 4097 arguments, at most 4096"));
    }

    #[test]
    fn what_a_pointer_points_to_is_aligned_to_a_power_of_two() {
        let aligned = |alignment| {
            let argument = argument_at(0, &[(".pointee_align", number(alignment))]);
            with_arguments(4, &[argument]).map(|arguments| arguments[0].pointee_alignment)
        };
        assert_eq!(with_arguments(4, &[argument_at(0, &[])]).unwrap()[0].pointee_alignment, 1, "the default");
        for (stated, expected) in [(0, 1), (1, 1), (2, 2), (16, 16), (4096, 4096)] {
            assert_eq!(aligned(stated), Ok(expected));
        }
        for refused in [3, 24, 4097, 8192] {
            let what = format!("an argument of k.kd points to memory aligned to {refused}");
            assert_eq!(aligned(refused), says(&what));
        }
    }

    #[test]
    fn names_have_1024_bytes_at_most() {
        let long = "n".repeat(1025);
        for key in [".name", ".type_name"] {
            let named = |name: &str| with_arguments(4, &[argument_at(0, &[(key, text(name))])]);
            let argument = named(&long[1..]).unwrap().remove(0);
            assert_eq!(argument.name.or(argument.type_name).map(|name| name.len()), Some(1024), "{key}");
            assert_eq!(named(&long), says("a name has 1025 bytes, at most 1024"), "{key}");
        }
        let symbol =
            |symbol: &str| note(&[map(&[(".symbol", text(symbol)), (".kernarg_segment_size", number(0))])]);
        assert!(symbol(&long[1..]).is_ok());
        assert_eq!(symbol(&long), says("a name has 1025 bytes, at most 1024"));
    }

    #[test]
    fn address_spaces_have_the_names_of_the_documentation() {
        use AddressSpace::*;
        for (name, expected) in [
            ("private", Some(Private)),
            ("global", Some(Global)),
            ("constant", Some(Constant)),
            ("local", Some(Local)),
            ("generic", Some(Generic)),
            ("region", Some(Region)),
            ("Global", None),
            ("", None),
        ] {
            let arguments = with_arguments(4, &[argument_at(0, &[(".address_space", text(name))])]).unwrap();
            assert_eq!(arguments[0].address_space, expected, "{name:?}");
        }
        assert_eq!(with_arguments(4, &[argument_at(0, &[])]).unwrap()[0].address_space, None);
    }

    #[test]
    fn what_a_launch_must_keep_is_read() {
        let plain = one(0, &[]).unwrap();
        assert_eq!((plain.required_workgroup, plain.workgroup_items_max), (None, None));
        let sizes = |sizes: &[u32]| list(&sizes.iter().map(|size| number(*size)).collect::<Vec<_>>());
        let required =
            |value| one(0, &[(".reqd_workgroup_size", value)]).map(|kernel| kernel.required_workgroup);
        assert_eq!(required(sizes(&[64, 2, 1])), Ok(Some([64, 2, 1])));
        assert_eq!(required(sizes(&[])), Ok(None));
        assert_eq!(required(sizes(&[64, 2])), Ok(None));
        assert_eq!(required(sizes(&[64, 2, 1, 1])), Ok(None));
        let three_texts = says("the .reqd_workgroup_size of k.kd is not three numbers");
        assert_eq!(required(list(&[number(1), text("2"), number(3)])), three_texts);
        let most = one(0, &[(".max_flat_workgroup_size", number(256))]).unwrap();
        assert_eq!(most.workgroup_items_max, Some(256));
        for (value, expected) in [(vec![0xC3], true), (vec![0xC2], false), (number(1), false)] {
            let kernel = one(0, &[(".uses_dynamic_stack", value)]).unwrap();
            assert_eq!(kernel.dynamic_stack, expected);
        }
        assert!(!plain.dynamic_stack);
    }

    #[test]
    fn what_is_missing_is_named() {
        let kernel = |entries: &[(&str, Vec<u8>)]| note(&[map(entries)]);
        assert_eq!(kernel(&[(".kernarg_segment_size", number(0))]), says("a kernel has no .symbol"));
        assert_eq!(kernel(&[(".symbol", text("k.kd"))]), says("k.kd has no .kernarg_segment_size"));
        let all = [(".offset", number(0)), (".size", number(4)), (".value_kind", text("by_value"))];
        for (missing, (name, _)) in all.iter().enumerate() {
            let mut entries = all.to_vec();
            entries.remove(missing);
            assert_eq!(
                with_arguments(4, &[map(&entries)]),
                says(&format!("an argument of k.kd has no {name}"))
            );
        }
        assert_eq!(parse(&[0x90]), says("it is no map"));
        assert_eq!(parse(&[0x81, 0xA1]), says("it is cut off or not MessagePack"));
    }
}
