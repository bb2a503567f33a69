//! What a launch writes into memory: argument segments, parameter blocks and dispatch packets, byte by byte, and
//! what is refused instead.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

#[path = "data/elf_file.rs"]
#[allow(dead_code)]
mod elf_file;

use elf_file::ElfFile;
use zrt_loader::print::{Printed, buffer};
use zrt_loader::{
    Argument, ArgumentError, ArgumentValue, Arguments, DynamicLds, Geometry, Hidden, Kernel, Program,
    RawOptions, ServiceAddresses, UserSgpr, ValueKind,
};
use zrt_mem::GpuVa;

/// One group of one work-item.
const ONE: Geometry = Geometry::new([1; 3], [1; 3]);

/// A kernel `k` without LDS whose arguments have this layout.
fn kernel(arguments: Arguments) -> Kernel {
    let options = RawOptions { name: "k".into(), ..RawOptions::default() };
    let mut kernel = Program::raw(&[0; 4], &options).unwrap().kernel("k").unwrap().clone();
    kernel.arguments = arguments;
    kernel
}

fn argument(offset: u32, bytes: u32, kind: ValueKind) -> Argument {
    let (name, type_name, address_space) = (None, None, None);
    Argument { name, type_name, offset, bytes, kind, address_space, pointee_alignment: 1 }
}

fn described(bytes: u32, list: Vec<Argument>) -> Kernel {
    kernel(Arguments::Described { bytes, alignment: 8, list })
}

fn natural(bytes: u32) -> Kernel {
    kernel(Arguments::Natural { bytes })
}

/// An LDS pointer to what has this alignment.
fn lds_pointer(offset: u32, alignment: u32) -> Argument {
    Argument { pointee_alignment: alignment, ..argument(offset, 4, ValueKind::DynamicSharedPointer) }
}

#[test]
fn a_dimension_counts_if_it_has_more_than_one_group_or_work_item() {
    for (groups, group, expected) in [
        ([1, 1, 1], [1, 1, 1], 1),
        ([9, 1, 1], [64, 1, 1], 1),
        ([1, 2, 1], [1, 1, 1], 2),
        ([1, 1, 1], [1, 2, 1], 2),
        ([3, 2, 1], [4, 2, 1], 2),
        ([1, 1, 2], [1, 1, 1], 3),
        ([1, 1, 1], [1, 1, 2], 3),
        ([1, 2, 1], [1, 1, 2], 3),
        ([2, 2, 2], [2, 2, 2], 3),
    ] {
        assert_eq!(Geometry::new(groups, group).dimensions(), expected, "{groups:?} of {group:?}");
    }
}

#[test]
fn a_group_has_64_kib_of_lds_at_most() {
    let kernel = Kernel { lds_bytes: 256, ..natural(0) };
    let with = |bytes| kernel.check_geometry(&Geometry { dynamic_lds: DynamicLds::of(bytes), ..ONE });
    assert_eq!(with(65_280), Ok(()));
    let text = "the LDS of 65281 bytes is not at most 65536 bytes together with the kernel's own 256";
    assert_eq!(with(65_281).unwrap_err().to_string(), text);
}

#[test]
fn lds_pointers_get_aligned_pieces_behind_the_kernels_own() {
    let list = vec![
        argument(0, 8, ValueKind::GlobalBuffer),
        lds_pointer(8, 16),
        argument(12, 4, ValueKind::ByValue),
        lds_pointer(16, 4),
        argument(20, 4, ValueKind::Hidden(Hidden::DynamicLdsBytes)),
    ];
    let kernel = Kernel { lds_bytes: 10, ..described(24, list) };
    let offsets: Vec<u32> = kernel.lds_pointers().iter().map(|pointer| pointer.offset).collect();
    assert_eq!(offsets, [8, 16]);
    // 10 bytes of its own, 5 bytes at 16, 8 bytes at 24.
    let lds = DynamicLds::new(&[5, 8]).unwrap();
    assert_eq!(kernel.dynamic_lds_bytes(&lds), Ok(22));
    let values = [ArgumentValue::Buffer(GpuVa(0x1122_3344_5566)), ArgumentValue::U32(7)];
    let segment = kernel.pack(&values, Geometry { dynamic_lds: lds, ..ONE }).unwrap();
    let expected = [0x3344_5566, 0x1122, 16, 7, 24, 22].map(u32::to_le_bytes).concat();
    assert_eq!(segment, expected);
    // Without sizes, both point to where the first would be.
    assert_eq!(kernel.dynamic_lds_bytes(&DynamicLds::NONE), Ok(6));
    let segment = kernel.pack(&values, ONE).unwrap();
    assert_eq!(segment[8..], [16, 7, 16, 6].map(u32::to_le_bytes).concat());
    let text = "kernel k has 2 LDS pointers (unnamed: LDS pointer, unnamed: LDS pointer), but 1 sizes of LDS were given: \
                one is needed for each pointer, and one at most where there is none";
    assert_eq!(kernel.dynamic_lds_bytes(&DynamicLds::of(1)).unwrap_err().to_string(), text);
    let most = DynamicLds::new(&[u32::MAX, u32::MAX]).unwrap();
    // From 16 to 2³² + 15, from 2³² + 16 to 2³³ + 15, less the kernel's own 10.
    let text = "the LDS of 8589934597 bytes is not at most 4294967295 bytes";
    assert_eq!(kernel.dynamic_lds_bytes(&most).unwrap_err().to_string(), text);
}

#[test]
fn a_kernel_without_lds_pointers_takes_one_size() {
    let kernel = Kernel { lds_bytes: 100, ..natural(0) };
    assert!(kernel.lds_pointers().is_empty());
    assert_eq!(kernel.dynamic_lds_bytes(&DynamicLds::NONE), Ok(0));
    assert_eq!(kernel.dynamic_lds_bytes(&DynamicLds::of(33)), Ok(33));
    assert_eq!(kernel.dynamic_lds_bytes(&DynamicLds::of(u32::MAX)), Ok(u32::MAX));
    let two = kernel.dynamic_lds_bytes(&DynamicLds::new(&[1, 1]).unwrap());
    assert!(matches!(two, Err(ArgumentError::LdsSizes { pointers: 0, given: 2, .. })), "{two:?}");
}

/// An eight-byte header, then values at multiples of their sizes, up to a multiple of eight bytes.
#[test]
fn a_parameter_block_is_filled_exactly() {
    let kernel = kernel(Arguments::ParameterBlock { version: 0x0102, opcode: 0x0304, bytes: 24 });
    let header = [2, 1, 4, 3, 24, 0, 0, 0];
    let number = ArgumentValue::U64(0x8877_6655_4433_2211);
    let eight = [0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88];
    let small = [ArgumentValue::U16(0xBBAA), number.clone()];
    let expected = [&header[..], &[0xAA, 0xBB, 0, 0, 0, 0, 0, 0], &eight].concat();
    assert_eq!(kernel.pack(&small, ONE), Ok(expected));
    let reserved = [number.clone(), ArgumentValue::U16(0xBBAA)];
    let expected = [&header[..], &eight, &[0xAA, 0xBB, 0, 0, 0, 0, 0, 0]].concat();
    assert_eq!(kernel.pack(&reserved, ONE), Ok(expected), "what is missing up to a multiple of 8 is zero");
    for (values, given) in [(0, 0), (1, 8), (3, 24)] {
        let expected = ArgumentError::Block { kernel: "k".into(), expected: 16, given };
        assert_eq!(kernel.pack(&vec![number.clone(); values], ONE), Err(expected));
    }
}

#[test]
fn values_in_sequence_lie_at_multiples_of_their_sizes() {
    let values = [
        ArgumentValue::U8(0x11),
        ArgumentValue::U16(0x3322),
        ArgumentValue::Bytes(vec![0x44, 0x55, 0x66]),
        ArgumentValue::U32(0xAA99_8877),
        ArgumentValue::Bytes(Vec::new()),
        ArgumentValue::U8(0xBB),
        ArgumentValue::Buffer(GpuVa(0x0807_0605_0403_0201)),
        ArgumentValue::F32(1.5),
    ];
    let expected = [
        &[0x11, 0, 0x22, 0x33, 0x44, 0x55, 0x66, 0][..],
        &[0x77, 0x88, 0x99, 0xAA, 0xBB, 0, 0, 0],
        &[1, 2, 3, 4, 5, 6, 7, 8],
        &[0, 0, 0xC0, 0x3F],
    ]
    .concat();
    assert_eq!(natural(0).pack(&values, ONE), Ok(expected.clone()));
    assert_eq!(natural(28).pack(&values, ONE), Ok(expected.clone()));
    assert_eq!(natural(30).pack(&values, ONE), Ok([&expected[..], &[0, 0]].concat()), "at least as stated");
}

#[test]
fn a_segment_has_64_kib_at_most() {
    let too_large = |bytes| Err(ArgumentError::TooLarge { kernel: "k".into(), bytes, limit: 65_536 });
    let bytes = |count| ArgumentValue::Bytes(vec![7; count]);
    let length =
        |kernel: &Kernel, values: &[ArgumentValue]| kernel.pack(values, ONE).map(|segment| segment.len());
    let none = natural(0);
    assert_eq!(length(&none, &[bytes(65_536)]), Ok(65_536));
    assert_eq!(length(&none, &[bytes(65_537)]), too_large(65_537));
    assert_eq!(length(&none, &[bytes(65_528), ArgumentValue::U64(1)]), Ok(65_536));
    assert_eq!(length(&none, &[bytes(65_529), ArgumentValue::U64(1)]), too_large(65_544));
    assert_eq!(length(&none, &[ArgumentValue::U8(1), bytes(65_536)]), too_large(65_537));
    assert_eq!(length(&natural(65_536), &[]), Ok(65_536));
    assert_eq!(length(&natural(65_537), &[]), too_large(65_537));
    assert_eq!(length(&described(65_536, vec![]), &[]), Ok(65_536));
    assert_eq!(length(&described(65_537, vec![]), &[]), too_large(65_537));
}

/// An address may be given as a number; a number of eight bytes may be given as an address.
#[test]
fn numbers_and_addresses_are_told_apart() {
    let pack =
        |bytes, kind, value: ArgumentValue| described(8, vec![argument(0, bytes, kind)]).pack(&[value], ONE);
    let address = ArgumentValue::Buffer(GpuVa(0x10));
    let expected = vec![0x10, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(pack(8, ValueKind::ByValue, address.clone()), Ok(expected.clone()));
    assert_eq!(pack(8, ValueKind::GlobalBuffer, address.clone()), Ok(expected.clone()));
    assert_eq!(pack(8, ValueKind::GlobalBuffer, ArgumentValue::U64(0x10)), Ok(expected));
    for (bytes, kind, value, text) in [
        (4, ValueKind::ByValue, address, "(unnamed: 4 bytes) is a value, but a buffer was given"),
        (
            8,
            ValueKind::GlobalBuffer,
            ArgumentValue::Bytes(vec![0; 8]),
            "(unnamed: buffer) is the address of a buffer, but a value of bytes was given",
        ),
        (4, ValueKind::ByValue, ArgumentValue::U8(1), "(unnamed: 4 bytes) has 4 bytes, but 1 were given"),
    ] {
        let error = pack(bytes, kind, value).unwrap_err().to_string();
        assert_eq!(error, format!("argument 0 of kernel k {text}"));
    }
}

/// Arguments of the launch in fields that the file makes too small or too long.
#[test]
fn a_hidden_number_fits_its_field_or_is_refused() {
    let with = |bytes, groups: u32| {
        let field = argument(2, bytes, ValueKind::Hidden(Hidden::BlockCount(1)));
        described(20, vec![field]).pack(&[], Geometry::new([1, groups, 1], [1; 3]))
    };
    let segment = |field: &[u8]| {
        let mut bytes = [&[0; 2], field].concat();
        bytes.resize(20, 0);
        Ok(bytes)
    };
    assert_eq!(with(1, 255), segment(&[255]));
    assert_eq!(with(2, 65_535), segment(&[255, 255]));
    assert_eq!(with(8, 65_536), segment(&[0, 0, 1]));
    assert_eq!(with(16, 65_536), segment(&[0, 0, 1]));
    for (bytes, groups) in [(0, 1), (1, 256), (2, 65_536)] {
        let what = format!("unnamed: BlockCount(1) with the value {groups}");
        assert_eq!(with(bytes, groups), Err(ArgumentError::Hidden { kernel: "k".into(), what }));
    }
}

/// The implicit arguments of code object version 5 at their places in LLVM's "User Guide for AMDGPU Backend": name,
/// offset, size, and the value of this launch.
#[test]
fn implicit_arguments_are_those_of_the_documentation() {
    let table: &[(&str, u32, u32, u64)] = &[
        ("hidden_block_count_x", 0, 4, 7),
        ("hidden_block_count_y", 4, 4, 5),
        ("hidden_block_count_z", 8, 4, 3),
        ("hidden_group_size_x", 12, 2, 16),
        ("hidden_group_size_y", 14, 2, 8),
        ("hidden_group_size_z", 16, 2, 4),
        ("hidden_remainder_x", 18, 2, 0),
        ("hidden_remainder_y", 20, 2, 0),
        ("hidden_remainder_z", 22, 2, 0),
        ("hidden_global_offset_x", 40, 8, 0),
        ("hidden_global_offset_y", 48, 8, 0),
        ("hidden_global_offset_z", 56, 8, 0),
        ("hidden_grid_dims", 64, 2, 3),
        ("hidden_printf_buffer", 72, 8, 0x1111_2222_3333),
        ("hidden_hostcall_buffer", 80, 8, 0x4444_5555_6666),
        ("hidden_multigrid_sync_arg", 88, 8, 0),
        ("hidden_heap_v1", 96, 8, 0),
        ("hidden_default_queue", 104, 8, 0),
        ("hidden_completion_action", 112, 8, 0),
        ("hidden_dynamic_lds_size", 120, 4, 1024),
        ("hidden_private_base", 192, 4, 0x77),
        ("hidden_shared_base", 196, 4, 0x88),
        ("hidden_queue_ptr", 200, 8, 0),
        ("hidden_none", 208, 8, 0),
    ];
    let number = |number: u32| [&[0xCE][..], &number.to_be_bytes()].concat();
    let text = |text: &str| [&[0xD9, text.len() as u8][..], text.as_bytes()].concat();
    let mut arguments = [&[0xDC][..], &(table.len() as u16).to_be_bytes()].concat();
    let mut expected = vec![0; 256];
    for (name, offset, bytes, value) in table {
        let fields = [
            &[0x83][..],
            &text(".offset"),
            &number(*offset),
            &text(".size"),
            &number(*bytes),
            &text(".value_kind"),
            &text(name),
        ];
        arguments.extend(fields.concat());
        let bytes = *bytes as usize;
        expected[*offset as usize..][..bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
    }
    let kernel = [
        &[0x83][..],
        &text(".symbol"),
        &text("k.kd"),
        &text(".kernarg_segment_size"),
        &number(256),
        &text(".args"),
        &arguments,
    ];
    let root = [
        &[0x82][..],
        &text("amdhsa.kernels"),
        &[0x91],
        &kernel.concat(),
        &text("amdhsa.printf"),
        &[0x91],
        &text("1:1:4:%d\\n"),
    ];
    let mut file = ElfFile::with_kernel();
    file.metadata(&root.concat());
    let program = Program::parse(&file.bytes()).unwrap();
    let kernel = program.kernel("k").unwrap();
    let geometry = Geometry {
        dynamic_lds: DynamicLds::of(1024),
        aperture_high: [0x77, 0x88],
        services: ServiceAddresses {
            printf_buffer_va: 0x1111_2222_3333,
            hostcall_buffer_va: 0x4444_5555_6666,
        },
        ..Geometry::new([7, 5, 3], [16, 8, 4])
    };
    assert_eq!(kernel.pack(&[], geometry), Ok(expected));
    for hidden in [Hidden::PrintfBuffer, Hidden::HostcallBuffer, Hidden::GroupSize(2), Hidden::None] {
        assert!(kernel.asks_for(&hidden), "{hidden:?}");
    }
    let service = |name: &str| Hidden::Null(name.into());
    assert!(kernel.asks_for(&service("hidden_heap_v1")) && !kernel.asks_for(&service("hidden_heap_v2")));
    assert!(!kernel.asks_for(&Hidden::GroupSize(3)));
    assert!(!natural(0).asks_for(&Hidden::None), "nothing is described");

    // A message in the printf buffer names the format.
    let mut printed = Printed::default();
    let message = [8, 8, 1, -5i32 as u32].map(u32::to_le_bytes).concat();
    buffer::read(&message, program.print_formats(), &mut printed).unwrap();
    assert_eq!(printed.text(), b"-5\n");
}

/// The kernel dispatch packet of the HSA platform system architecture specification: type, dimensions, sizes of a
/// group and of the grid in work-items, private and group segment, code, arguments, and no signal.
#[test]
fn a_dispatch_packet_is_what_hsa_says() {
    let kernel = Kernel { lds_bytes: 0x100, scratch_bytes: 0x0A0B_0C0D, ..natural(0) };
    let geometry =
        Geometry { dynamic_lds: DynamicLds::of(0x33), ..Geometry::new([0x10, 0x203, 1], [0x40, 2, 1]) };
    let packet = kernel.dispatch_packet(&geometry, 0x1112_1314_1516_1718, 0x2122_2324_2526_2728);
    let expected = [
        &[2, 0, 2, 0, 0x40, 0, 2, 0, 1, 0, 0, 0][..],
        &[0, 4, 0, 0, 6, 4, 0, 0, 1, 0, 0, 0],
        &[0x0D, 0x0C, 0x0B, 0x0A, 0x33, 1, 0, 0],
        &[0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21],
        &[0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11],
        &[0; 16],
    ];
    assert_eq!(packet[..], expected.concat());
}

#[test]
fn only_a_register_asks_for_a_dispatch_packet() {
    let with = |user_sgprs: &[UserSgpr]| Kernel { user_sgprs: user_sgprs.into(), ..natural(0) };
    assert!(!with(&[]).needs_dispatch_packet());
    assert!(!with(&[UserSgpr::Arguments, UserSgpr::DispatchId]).needs_dispatch_packet());
    assert!(with(&[UserSgpr::Arguments, UserSgpr::DispatchPacket]).needs_dispatch_packet());
}

/// Either the descriptor or the metadata may say so.
#[test]
fn a_dynamic_stack_is_told_by_the_descriptor_or_the_metadata() {
    for (in_descriptor, in_metadata) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut file = ElfFile::with_kernel();
        let mut descriptor = elf_file::descriptor(-(elf_file::CODE_BYTES as i64));
        descriptor[57] |= u8::from(in_descriptor) << 3;
        file.sections[elf_file::RODATA].content = elf_file::Content::Own(descriptor.into());
        let mut metadata =
            b"\x81\xAEamdhsa.kernels\x91\x83\xA7.symbol\xA4k.kd\xB5.kernarg_segment_size\x00".to_vec();
        metadata.extend(b"\xB3.uses_dynamic_stack");
        metadata.push(0xC2 | u8::from(in_metadata));
        file.metadata(&metadata);
        let program = Program::parse(&file.bytes()).unwrap();
        assert_eq!(program.kernel("k").unwrap().dynamic_stack, in_descriptor || in_metadata);
    }
}
