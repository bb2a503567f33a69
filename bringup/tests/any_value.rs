//! Whatever a caller passes to the device's constructors, the result is a value or a typed error with the value in it,
//! never a panic, a wrap, an endless wait or more memory than the named limit. Over the virtual device.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

use proptest::prelude::*;
use std::cell::RefCell;
use std::time::Duration;
use zrt_bringup::{DeviceChoice, OpenError, OpenOptions, VIRTUAL_THREADS_MAX, VirtualOptions};
use zrt_device::{CODE_BYTES_MAX, CodeLabel, Device, DeviceError, Heap, LaunchParameters};
use zrt_isa::resources::WaveSize;
use zrt_isa::zrt::Kernel;
use zrt_kmd::KmdError;
use zrt_mem::{ByteLen, GpuVa};

/// Numbers of all sizes: any, small, and beside powers of two.
fn number() -> impl Strategy<Value = u64> {
    let beside = (0u32..64, -2i64..3).prop_map(|(bit, by)| (1u64 << bit).wrapping_add_signed(by));
    prop_oneof![any::<u64>(), 0u64..70, beside]
}

fn short() -> impl Strategy<Value = u32> {
    number().prop_map(|number| number as u32)
}

fn heap() -> impl Strategy<Value = Heap> {
    prop::sample::select(vec![Heap::DeviceLocal, Heap::HostVisible, Heap::HostShared, Heap::Host])
}

fn wave() -> impl Strategy<Value = WaveSize> {
    prop::sample::select(vec![WaveSize::Wave32, WaveSize::Wave64])
}

fn cases(count: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(count) }
}

fn device(small_bar: bool) -> RefCell<Device> {
    let virtual_device = VirtualOptions { small_bar, threads: Some(1), ..VirtualOptions::default() };
    let options =
        OpenOptions { ring_bytes: ByteLen(4096), gtt_only: false, self_test: false, virtual_device };
    RefCell::new(zrt_bringup::open(DeviceChoice::Virtual, &options).unwrap())
}

fn virtual_options() -> impl Strategy<Value = VirtualOptions> {
    let threads =
        prop_oneof![0usize..4, Just(VIRTUAL_THREADS_MAX + 1), any::<usize>().prop_map(|any| any | 1 << 20)];
    let flags = any::<[bool; 4]>();
    let numbers = (any::<Option<u64>>(), any::<i8>(), any::<Option<u32>>(), prop::option::of(threads));
    (flags, numbers).prop_map(|([small_bar, check, trusts_compilers, profile], numbers)| {
        let (scheduler_seed, approximation_bias, vram_fill, threads) = numbers;
        VirtualOptions {
            small_bar,
            scheduler_seed,
            approximation_bias,
            threads,
            check,
            trusts_compilers,
            vram_fill,
            profile,
            ..VirtualOptions::default()
        }
    })
}

#[test]
fn a_device_opens_with_any_options_or_names_the_one_that_it_cannot_have() {
    let ring = prop_oneof![number(), (12u32..24).prop_map(|bit| 1 << bit)];
    proptest!(cases(48), |(ring in ring, gtt_only in any::<bool>(), virtual_device in virtual_options())| {
        let options = OpenOptions { ring_bytes: ByteLen(ring), gtt_only, self_test: false, virtual_device };
        let too_many = virtual_device.threads.filter(|threads| *threads > VIRTUAL_THREADS_MAX);
        match zrt_bringup::open(DeviceChoice::Virtual, &options) {
            Ok(device) => {
                prop_assert!(too_many.is_none() && ring.is_power_of_two() && (4096..=1 << 31).contains(&ring));
                prop_assert_eq!(device.info().ring_bytes.0, ring);
                prop_assert!(device.close().is_ok());
            }
            Err(OpenError::Threads { threads, .. }) => prop_assert_eq!(Some(threads), too_many),
            Err(OpenError::Device(DeviceError::Kmd(KmdError::RingLength { len }))) => {
                prop_assert!(len.0 == ring && !(ring.is_power_of_two() && (4096..=1 << 31).contains(&ring)));
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    });
}

#[test]
fn buffers_have_any_length_that_there_is_and_ranges_lie_inside() {
    let devices = [device(false), device(true)];
    let strategy = (any::<bool>(), heap(), number(), number(), prop::collection::vec(any::<u8>(), 0..200));
    proptest!(cases(128), |((small_bar, heap, len, offset, bytes) in strategy)| {
        let mut device = devices[usize::from(small_bar)].borrow_mut();
        let buffer = match device.allocate(heap, ByteLen(len), "any") {
            Ok(buffer) => buffer,
            Err(DeviceError::Kmd(KmdError::Length { len: named })) => {
                prop_assert!(named.0 == len && (len == 0 || len >= 1 << 47));
                return Ok(());
            }
            Err(error) => {
                // More than the board has, or than the address space.
                prop_assert!(len > 1 << 30, "{error}");
                return Ok(());
            }
        };
        for offset in [offset, offset % len, len.saturating_sub(offset % 300)] {
            let is_inside = offset.checked_add(bytes.len() as u64).is_some_and(|end| end <= len);
            let written = device.upload(&buffer, ByteLen(offset), &bytes);
            let mut back = vec![0; bytes.len()];
            let read = device.download(&buffer, ByteLen(offset), &mut back);
            match (written, read) {
                (Ok(()), Ok(())) => prop_assert!(is_inside && back == bytes),
                (Err(DeviceError::Range { offset: named, .. }), Err(_)) => {
                    prop_assert!(!is_inside && named.0 == offset);
                }
                outcome => prop_assert!(false, "{outcome:?}"),
            }
        }
    });
}

#[test]
fn code_has_any_length_up_to_the_limit() {
    let device = device(false);
    proptest!(cases(64), |(len in number(), image in prop::collection::vec(any::<u8>(), 0..700))| {
        let label = CodeLabel { name: "any", functions: &[], files: &[], lines: &[] };
        let loaded = device.borrow_mut().load_code(&label, ByteLen(len), |_| image.as_slice().into());
        match loaded {
            Ok(code) => prop_assert!(code.len().0 == len && len <= CODE_BYTES_MAX.0),
            Err(DeviceError::CodeLength { len: named, most, .. }) => {
                prop_assert!(named.0 == len && len > most.0 && most == CODE_BYTES_MAX);
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    });
}

#[test]
fn launches_of_any_words_are_recorded_or_refused() {
    let device = device(false);
    let words = (short(), short(), short(), wave(), number(), short());
    let grid =
        (any::<[u32; 3]>(), prop::array::uniform3(short()), prop::collection::vec(any::<u32>(), 0..20));
    let likely = any::<bool>();
    proptest!(cases(256), |(words in words, grid in grid, likely in likely, capacity in number())| {
        let (rsrc1, rsrc2, rsrc3, wave_size, entry, scratch_bytes) = words;
        let (groups, workgroup, user_data) = grid;
        let mut device = device.borrow_mut();
        let mut parameters = LaunchParameters {
            name: "any", entry: GpuVa(entry), rsrc1, rsrc2, rsrc3, wave_size, workgroup, scratch_bytes,
        };
        if likely {
            // Registers that gfx12 has, so that the rest is tested.
            let workgroup = [workgroup[0] % 40, 1, 1];
            parameters = LaunchParameters {
                entry: GpuVa(entry << 16 >> 8), rsrc1: 0, rsrc2: rsrc2 & 0x3f, rsrc3: 0, workgroup, ..parameters
            };
        }
        let kernel = match device.prepare_launch(&parameters) {
            Ok(kernel) => kernel,
            Err(error) => {
                prop_assert!(!error.to_string().is_empty());
                return Ok(());
            }
        };
        let threads = parameters.workgroup.map(u64::from).iter().product::<u64>();
        prop_assert!((1..=1024).contains(&threads) && parameters.entry.0 % 256 == 0);
        let mut recorder = match device.recorder(capacity as usize) {
            Ok(recorder) => recorder,
            Err(DeviceError::RecorderCapacity { capacity: named, most }) => {
                prop_assert!(named == capacity as usize && named > most);
                return Ok(());
            }
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        prop_assert!(capacity < 200_000, "more than a graph has");
        let launched = recorder.launch(&kernel, &user_data, groups);
        let _ = recorder.barrier();
        prop_assert_eq!(recorder.finish().is_ok(), launched.is_ok());
    });
}

#[test]
fn kernels_put_together_by_hand_keep_the_rules_of_containers() {
    let device = device(false);
    let blob = zrt_asm::blob("copy").unwrap();
    let halves = prop::array::uniform5(any::<u16>());
    let wide = prop::array::uniform5(short());
    proptest!(cases(256), |(halves in halves, wide in wide, wave_size in wave(), which in 0usize..10)| {
        let sound = Kernel::parse(blob).unwrap();
        let mut kernel = sound.clone();
        match which {
            0 => kernel.entry = wide[0],
            1 => kernel.rsrc1 = wide[1],
            2 => kernel.rsrc2 = wide[2],
            3 => kernel.rsrc3 = wide[3],
            4 => (kernel.vgprs, kernel.sgprs) = (halves[0], halves[1]),
            5 => kernel.workgroup = [halves[2], halves[3], halves[4]],
            6 => (kernel.lds_bytes, kernel.scratch_bytes) = (wide[0], wide[1]),
            7 => kernel.user_sgprs = halves[0] as u8,
            8 => kernel.code = &kernel.code[..usize::from(halves[0]) % kernel.code.len()],
            _ => (kernel.wave_size, kernel.entry) = (wave_size, wide[4]),
        }
        let keeps_the_rules = kernel.write().is_ok();
        match device.borrow_mut().load_parsed_kernel(&kernel, Heap::DeviceLocal) {
            Ok(loaded) => {
                prop_assert!(keeps_the_rules);
                prop_assert!(loaded.entry().0 < loaded.code().va.0 + loaded.code_len().0);
            }
            Err(DeviceError::KernelNeeds { .. } | DeviceError::Emit(_)) => prop_assert!(keeps_the_rules),
            Err(error) => prop_assert!(!keeps_the_rules, "{error}"),
        }
    });
}

#[test]
fn a_wait_takes_any_deadline() {
    let device = device(false);
    let mut device = device.borrow_mut();
    let kernel = device.load_kernel(zrt_asm::blob("copy").unwrap()).unwrap();
    let parameters = device.allocate(Heap::HostVisible, ByteLen(4096), "parameters").unwrap();
    device.upload(&parameters, ByteLen(0), &[0; 4096]).unwrap();
    for deadline in [Duration::MAX, Duration::from_secs(u64::MAX), Duration::ZERO] {
        let mut recorder = device.recorder(1).unwrap();
        // No workgroup at all: nothing runs, and the fence is written.
        recorder.dispatch(&kernel, parameters.va, [0, 1, 1]).unwrap();
        let graph = recorder.finish().unwrap();
        let ticket = device.submit(&graph).unwrap();
        let waited = device.wait(ticket, deadline);
        assert!(waited.is_ok() || deadline.is_zero(), "{waited:?}");
        device.wait(ticket, Duration::from_secs(30)).unwrap();
    }
}

proptest! {
    #[test]
    fn a_choice_is_one_of_the_names(name in "[a-z]{0,8}|auto|cpu|virtual|kfd|userq") {
        match name.parse::<DeviceChoice>() {
            Ok(choice) => prop_assert_eq!(choice.name(), name),
            Err(error) => prop_assert!(error.to_string().contains(&name), "{error}"),
        }
    }
}
