//! Arbitrary bytes as a `.zrt` container: what is accepted is consistent and is written again as the same kernel.
#![no_main]

use libfuzzer_sys::fuzz_target;
use zrt_isa::zrt::Kernel;

fuzz_target!(|bytes: &[u8]| {
    let kernel = match Kernel::parse(bytes) {
        Ok(kernel) => kernel,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let code_bytes = kernel.code.len() as u32;
    assert!(kernel.entry < code_bytes && kernel.code_dwords().count() as u32 * 4 == code_bytes);
    assert!((1..=1024).contains(&kernel.work_items()));
    for line in &kernel.lines {
        let path = kernel.files[line.file as usize];
        assert_eq!(kernel.source_line(line.code_offset), Some((path, line.line)));
        assert!(!path.starts_with('/') && path.split('/').all(|step| step != ".."));
    }
    let _ = [0, code_bytes, u32::MAX].map(|offset| kernel.source_line(offset));
    let written = kernel.write().expect("what was accepted can be written");
    assert_eq!(Kernel::parse(&written).as_ref(), Ok(&kernel));
});
