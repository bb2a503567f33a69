//! Arbitrary bytes as a program: loading ends in a value or an error, and what was loaded is consistent.
#![no_main]

use libfuzzer_sys::fuzz_target;
use zrt_loader::{Argument, ArgumentValue, Geometry, IMAGE_BYTES_MAX, LaunchAddresses, Program, ValueKind};
use zrt_mem::GpuVa;

fn value(argument: &Argument) -> ArgumentValue {
    match argument.kind {
        ValueKind::GlobalBuffer => ArgumentValue::Buffer(GpuVa(0x1000)),
        _ => ArgumentValue::Bytes(vec![7; argument.bytes as usize]),
    }
}

fuzz_target!(|bytes: &[u8]| {
    let program = match Program::parse(bytes) {
        Ok(program) => program,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let image = program.image().placed_at(0x1_0000_0000);
    assert!(image.len() as u64 <= IMAGE_BYTES_MAX);
    for kernel in program.kernels() {
        assert!(kernel.entry_offset < image.len() as u64);
        assert!(kernel.user_data(&LaunchAddresses::default()).len() <= 16);
        let explicit = kernel.explicit_arguments().unwrap_or_default();
        let values: Vec<ArgumentValue> =
            explicit.into_iter().filter(|argument| argument.is_given()).map(value).collect();
        let group = kernel.required_workgroup.unwrap_or([1; 3]);
        let _ = kernel.pack(&values, Geometry::new([1; 3], group));
        let _ = kernel.resource_words(1000);
        let _ = program.lines().lookup(kernel.entry_offset);
    }
});
