//! The mistakes in Rust: where, what is there, what is put in its place, and the tests that must fail. Those in
//! assembly are in the tables beside this one.
//!
//! A row names the narrowest tests that are known to notice it. One that no test can notice says why.

/// One row.
pub struct Mutant {
    /// Its name: crate or part first.
    pub name: &'static str,
    /// The file, from the repository's root. Assembly is assembled anew.
    pub file: &'static str,
    /// Text that is there exactly once.
    pub find: &'static str,
    /// What takes its place.
    pub replace: &'static str,
    /// Arguments of `cargo test`.
    pub test: &'static [&'static str],
    /// The required outcome.
    pub expected: Expected,
}

/// The required outcome of a mutant.
pub enum Expected {
    /// A test fails.
    Killed,
    /// No test can fail, for this reason.
    Equivalent(&'static str),
}

use Expected::{Equivalent, Killed};

const RING: &[&str] = &["-p", "zrt-ring", "--lib"];
const RING_ANY: &[&str] = &["-p", "zrt-ring", "--test", "any_value"];
const RING_SUITE: &[&str] = &["-p", "zrt-ring", "--test", "ring"];
const QUEUE_MODEL: &[&str] = &["-p", "zrt-ring", "--test", "queue_model"];
const CONTROL_MODEL: &[&str] = &["-p", "zrt-ring", "--test", "control_model"];
const FENCE_ORDER: &[&str] = &["-p", "zrt-ring", "--test", "fence_order"];
const MEM: &[&str] = &["-p", "zrt-mem", "--lib", "--tests"];
const PM4: &[&str] = &["-p", "zrt-pm4", "--lib", "--tests"];
const KMD: &[&str] = &["-p", "zrt-kmd", "--lib", "--tests"];
const KMD_LIB: &[&str] = &["-p", "zrt-kmd", "--lib", "syscalls"];
const LOADER: &[&str] = &["-p", "zrt-loader", "--lib", "--tests"];
const SAFETENSORS: &[&str] = &["-p", "zrt-engine", "--test", "safetensors"];
const ENGINE: &[&str] = &["-p", "zrt-engine", "--lib"];
const PLAN: &[&str] = &["-p", "zrt-engine", "--test", "plan"];
const TOKENIZER: &[&str] = &["-p", "zrt-engine", "--test", "tokenizer"];
const ARCHITECTURES: &[&str] = &["-p", "zrt-tests", "--test", "architectures_unchecked", "bits"];
const JUDGE: &[&str] = &["-p", "zrt-tests", "--test", "judge"];

/// What x86-64 does by itself.
const ON_X86: &str =
    "on x86-64 an ordinary load or store has this order already, and test memory is not write-combined";

/// The rows, by crate.
pub const MUTANTS: &[Mutant] = &[
    // ---------------------------------------------------------------------------------------------- command ring
    Mutant {
        name: "ring-start-at-a-full-ring",
        file: "ring/src/command_ring.rs",
        find: "read > write || write - read > mask as u64",
        replace: "read > write || write - read >= mask as u64",
        test: RING,
        expected: Killed,
    },
    Mutant {
        name: "ring-room-for-one-more",
        file: "ring/src/command_ring.rs",
        find: "self.mask - (self.write - self.read) as usize",
        replace: "self.mask + 1 - (self.write - self.read) as usize",
        test: RING,
        expected: Killed,
    },
    Mutant {
        name: "ring-no-first-acquire",
        file: "ring/src/command_ring.rs",
        find: "let first = !graph.fetched.load(Ordering::Relaxed);",
        replace: "let first = false;",
        test: RING_SUITE,
        expected: Killed,
    },
    Mutant {
        name: "ring-first-flag-never-cleared",
        file: "ring/src/command_ring.rs",
        find: "graph.fetched.store(true, Ordering::Relaxed);",
        replace: "",
        test: RING_SUITE,
        expected: Killed,
    },
    Mutant {
        name: "ring-header-relaxed",
        file: "ring/src/publish.rs",
        find: "self.ring.store_u32_release(slot * 4, value);",
        replace: "self.ring.store_u32(slot * 4, value);",
        test: QUEUE_MODEL,
        expected: Killed,
    },
    Mutant {
        name: "ring-no-doorbell-fence",
        file: "ring/src/publish.rs",
        find: "        self.doorbell.fence_stores();\n",
        replace: "",
        test: QUEUE_MODEL,
        expected: Killed,
    },
    Mutant {
        name: "ring-marker-after-header",
        file: "ring/src/publish.rs",
        find: "    stores.store_header(write as usize & mask, *header);\n",
        replace: "    stores.store_dword(end as usize & mask, 0xffff_1000);\n    \
                  stores.store_header(write as usize & mask, *header);\n    \
                  stores.store_dword(end as usize & mask, NOT_A_PACKET);\n",
        test: QUEUE_MODEL,
        expected: Killed,
    },
    Mutant {
        name: "ring-doorbell-before-pointer",
        file: "ring/src/publish.rs",
        find: "    stores.store_write_pointer(end);\n    stores.store_doorbell(end);\n",
        replace: "    stores.store_doorbell(end);\n    stores.store_write_pointer(end);\n",
        test: QUEUE_MODEL,
        expected: Killed,
    },
    Mutant {
        name: "ring-fence-acquire-dropped",
        file: "ring/src/queue_memory.rs",
        find: "SharedView::load_u64_acquire(self, offset)",
        replace: "SharedView::load_u64(self, offset)",
        test: RING_SUITE,
        expected: Equivalent(ON_X86),
    },
    Mutant {
        name: "ring-proof-keeps-too-few",
        file: "ring/src/read_proof.rs",
        find: "(ring_dwords / (POSITIONS - 2)) as u64",
        replace: "(ring_dwords / (POSITIONS - 1)) as u64",
        test: RING,
        expected: Killed,
    },
    Mutant {
        name: "ring-proof-believes-the-next-fence",
        file: "ring/src/read_proof.rs",
        find: ".filter(|one| one.value <= value);",
        replace: ".filter(|one| one.value <= value.saturating_add(1));",
        test: RING,
        expected: Killed,
    },
    Mutant {
        name: "ring-watchdog-limit",
        file: "ring/src/watchdog.rs",
        find: "quiet_ns < self.quiet_limit_ns",
        replace: "quiet_ns <= self.quiet_limit_ns",
        test: RING,
        expected: Killed,
    },
    Mutant {
        name: "ring-watchdog-fence-not-movement",
        file: "ring/src/watchdog.rs",
        find: "                    || before.last.fence_value != now.fence_value\n",
        replace: "",
        test: RING,
        expected: Killed,
    },
    Mutant {
        name: "ring-recorder-of-any-length",
        file: "ring/src/graph.rs",
        find: "if capacity.0 > GRAPH_DWORDS_MAX {",
        replace: "if false {",
        test: RING_ANY,
        expected: Killed,
    },
    Mutant {
        name: "ring-starts-at-any-pointer",
        file: "ring/src/command_ring.rs",
        find: " || write > START_POINTER_MAX",
        replace: "",
        test: RING_ANY,
        expected: Killed,
    },
    Mutant {
        name: "ring-reports-wrap",
        file: "ring/src/command_ring.rs",
        find: "(position as usize).wrapping_add(index)",
        replace: "(position as usize + index)",
        test: RING_ANY,
        expected: Killed,
    },
    // ---------------------------------------------------------------------------------------------- token rings
    Mutant {
        name: "ring-starts-with-any-entry",
        file: "ring/src/token_ring/mod.rs",
        find: "if first > FIRST_ENTRY_MAX {",
        replace: "if false {",
        test: RING_ANY,
        expected: Killed,
    },
    Mutant {
        name: "ring-consumed-fence",
        file: "ring/src/token_ring/consumer.rs",
        find: "        self.consumed.fence_stores();\n        self.consumed.store(0,",
        replace: "        self.consumed.store(0,",
        test: FENCE_ORDER,
        expected: Killed,
    },
    Mutant {
        name: "ring-input-refresh-no-fence",
        file: "ring/src/token_ring/producer.rs",
        find: "        self.consumed.fence_loads();\n",
        replace: "",
        test: FENCE_ORDER,
        expected: Killed,
    },
    Mutant {
        name: "ring-grant-serial-before-pages",
        file: "ring/src/token_ring/control.rs",
        find: "        self.store(at.granted_pages, pages);\n        if last_serial != serial.get() {\n            \
               self.store(at.granted_serial, serial.get());\n        }\n",
        replace: "        if last_serial != serial.get() {\n            \
                  self.store(at.granted_serial, serial.get());\n        }\n        \
                  self.store(at.granted_pages, pages);\n",
        test: CONTROL_MODEL,
        expected: Killed,
    },
    Mutant {
        name: "ring-renew-no-preempt",
        file: "ring/src/token_ring/control.rs",
        find: "[at.cancel_serial, at.preempt_serial, at.hold_serial] {",
        replace: "[at.cancel_serial, at.hold_serial] {",
        test: FENCE_ORDER,
        expected: Killed,
    },
    // ---------------------------------------------------------------------------------------------- memory
    Mutant {
        name: "mem-lanes-limit",
        file: "mem/src/shared/lanes.rs",
        find: "let limit = u32::try_from(self.len - base - width).unwrap_or(u32::MAX);",
        replace: "let limit = u32::try_from(self.len - base).unwrap_or(u32::MAX);",
        test: MEM,
        expected: Killed,
    },
    Mutant {
        name: "mem-lanes-align",
        file: "mem/src/shared/lanes.rs",
        find: " | (*delta % alignment as u32 != 0)",
        replace: "",
        test: MEM,
        expected: Killed,
    },
    Mutant {
        name: "mem-words-check-off",
        file: "mem/src/shared/lanes.rs",
        find: "count <= (self.len - offset) / 4,",
        replace: "count <= (self.len - offset) / 4 + 1,",
        test: MEM,
        expected: Killed,
    },
    Mutant {
        name: "mem-sfence-dropped",
        file: "mem/src/shared/mod.rs",
        find: "        core::arch::x86_64::_mm_sfence();",
        replace: "",
        test: MEM,
        expected: Equivalent("only memory behind a BAR is write-combined, and no test has any"),
    },
    Mutant {
        name: "mem-share-not-counted",
        file: "mem/src/pages.rs",
        find: "        self.shares += 1;\n        self.attach",
        replace: "        self.attach",
        test: MEM,
        expected: Killed,
    },
    Mutant {
        name: "mem-audit-broken",
        file: "mem/src/pages.rs",
        find: "let agrees = *references == chained && *references == listed[page];",
        replace: "let agrees = *references == chained;",
        test: MEM,
        expected: Killed,
    },
    Mutant {
        name: "mem-heir-is-the-oldest",
        file: "mem/src/pages.rs",
        find: "            _ => core::mem::replace(&mut self.holdings[first as usize].next_of_page, index),",
        replace: "            _ if self.holdings[first as usize].next_of_page == NONE => {\n                \
                  core::mem::replace(&mut self.holdings[first as usize].next_of_page, index)\n            }\n            \
                  _ => {\n                let second = self.holdings[first as usize].next_of_page;\n                \
                  core::mem::replace(&mut self.holdings[second as usize].next_of_page, index)\n            }",
        test: MEM,
        expected: Killed,
    },
    // ---------------------------------------------------------------------------------------------- packets
    Mutant {
        name: "pm4-fence-no-gl2-write-back",
        file: "pm4/src/packet/release_mem.rs",
        find: "flags: ReleaseFlags::GL2_WB,",
        replace: "flags: ReleaseFlags::empty(),",
        test: PM4,
        expected: Killed,
    },
    Mutant {
        name: "pm4-no-interrupt",
        file: "pm4/src/packet/release_mem.rs",
        find: "            interrupt: InterruptSelect::AfterWriteConfirm,\n            data: DataSelect::Low32,",
        replace: "            interrupt: InterruptSelect::None,\n            data: DataSelect::Low32,",
        test: PM4,
        expected: Killed,
    },
    Mutant {
        name: "pm4-barrier-no-flush",
        file: "pm4/src/writer.rs",
        find: "words[..flush.len()].copy_from_slice(&flush);\n        words[flush.len()..]",
        replace: "words[flush.len()..]",
        test: PM4,
        expected: Killed,
    },
    Mutant {
        name: "pm4-poll-interval",
        file: "pm4/src/packet/acquire_mem.rs",
        find: "poll_interval: 10,",
        replace: "poll_interval: 0,",
        test: PM4,
        expected: Killed,
    },
    // ---------------------------------------------------------------------------------------------- kernel driver
    Mutant {
        name: "kmd-map-overlap",
        file: "kmd/src/syscalls/memory.rs",
        find: "*at < start + rounded && start < at + bytes",
        replace: "*at <= start && start < at + bytes",
        test: KMD,
        expected: Killed,
    },
    Mutant {
        name: "kmd-hdp-flush-noop",
        file: "kmd/src/vm.rs",
        find: "            zrt_mem::hdp::flush(remap.view(), behind_bar);\n",
        replace: "            let _ = (remap, behind_bar);\n",
        test: KMD,
        expected: Killed,
    },
    Mutant {
        name: "kmd-memfile-bound",
        file: "kmd/src/syscalls/memory.rs",
        find: "let rounded = pages(len)? as u64;",
        replace: "let rounded = len as u64;",
        test: KMD,
        expected: Equivalent(
            "length and offset of the file are whole pages, so a length fits where its pages do",
        ),
    },
    Mutant {
        name: "kmd-lending-of-anything",
        file: "kmd/src/syscalls/process_memory.rs",
        find: "if !lending.allows(self.address, self.len) {",
        replace: "if false {",
        test: KMD_LIB,
        expected: Killed,
    },
    Mutant {
        name: "kmd-lending-begins-inside",
        file: "kmd/src/syscalls/private_memory.rs",
        find: "match lending.allows(address, len) {",
        replace: "match lending.allows(address, PAGE_BYTES) {",
        test: KMD_LIB,
        expected: Killed,
    },
    Mutant {
        name: "kmd-lending-outlives-the-mapping",
        file: "kmd/src/syscalls/memory.rs",
        find: "            lending.withdraw(self.address as u64, self.len);\n",
        replace: "",
        test: KMD_LIB,
        expected: Killed,
    },
    Mutant {
        name: "kmd-request-count-of-another-field",
        file: "kmd/src/syscalls/requests.rs",
        find: "offset_of!(kfd_ioctl_map_memory_to_gpu_args, n_devices)",
        replace: "offset_of!(kfd_ioctl_map_memory_to_gpu_args, n_success)",
        test: KMD_LIB,
        expected: Killed,
    },
    Mutant {
        name: "kmd-request-element-of-another-size",
        file: "kmd/src/syscalls/requests.rs",
        find: "bits: 8 * size_of::<kfd_process_device_apertures>() as u64,",
        replace: "bits: 8 * size_of::<kfd_event_data_plain>() as u64,",
        test: KMD_LIB,
        expected: Killed,
    },
    Mutant {
        name: "kmd-request-last-byte-not-counted",
        file: "kmd/src/syscalls/requests.rs",
        find: "(u64::from(count) * array.bits).div_ceil(8);",
        replace: "(u64::from(count) * array.bits).saturating_sub(1) / 8;",
        test: KMD_LIB,
        expected: Killed,
    },
    Mutant {
        name: "kmd-request-address-of-another-field",
        file: "kmd/src/syscalls/requests.rs",
        find: "offset_of!(kfd_ioctl_map_memory_to_gpu_args, device_ids_array_ptr)",
        replace: "offset_of!(kfd_ioctl_map_memory_to_gpu_args, handle)",
        test: KMD_LIB,
        expected: Killed,
    },
    Mutant {
        name: "kmd-request-array-not-followed",
        file: "kmd/src/syscalls/requests.rs",
        find: "    for array in known.arrays {",
        replace: "    for array in known.arrays.iter().filter(|_| request != REQUEST_UNMAP_MEMORY_FROM_GPU) {",
        test: KMD_LIB,
        expected: Killed,
    },
    Mutant {
        name: "kmd-request-structure-cut-short",
        file: "kmd/src/syscalls/requests.rs",
        find: "const SIZE_MASK: u32 = (1 << 14) - 1;",
        replace: "const SIZE_MASK: u32 = (1 << 6) - 1;",
        test: KMD_LIB,
        expected: Killed,
    },
    Mutant {
        name: "kmd-request-known-by-its-command",
        file: "kmd/src/syscalls/requests.rs",
        find: "find(|known| known.number == request).ok_or(Errno::EPERM)?;",
        replace: "find(|known| (known.number ^ request) & 0xffff == 0).ok_or(Errno::EPERM)?;",
        test: KMD_LIB,
        expected: Killed,
    },
    Mutant {
        name: "kmd-request-userptr-alone",
        file: "kmd/src/syscalls/requests.rs",
        find: "& KFD_IOC_ALLOC_MEM_FLAGS_USERPTR != 0 {",
        replace: "== KFD_IOC_ALLOC_MEM_FLAGS_USERPTR {",
        test: KMD_LIB,
        expected: Killed,
    },
    // ---------------------------------------------------------------------------------------------- loader
    Mutant {
        name: "loader-entry-align",
        file: "loader/src/elf/mod.rs",
        find: "if !entry_offset.is_multiple_of(CODE_ALIGNMENT_BYTES as u64) {",
        replace: "if entry_offset == 1 {",
        test: LOADER,
        expected: Killed,
    },
    Mutant {
        name: "loader-overlap",
        file: "loader/src/elf/layout.rs",
        find: "if part.offset < image.bytes.len() as u64 {",
        replace: "if false {",
        test: LOADER,
        expected: Killed,
    },
    Mutant {
        name: "loader-metadata-limit",
        file: "loader/src/elf/metadata.rs",
        find: "if bytes.len() > METADATA_BYTES_MAX {",
        replace: "if bytes.len() > usize::MAX {",
        test: LOADER,
        expected: Killed,
    },
    Mutant {
        name: "loader-rows-limit",
        file: "loader/src/elf/lines.rs",
        find: "ROWS_MAX.min(file.bytes.len() / FILE_BYTES_PER_ROW + ROWS_FREE)",
        replace: "file.bytes.len()",
        test: LOADER,
        expected: Killed,
    },
    Mutant {
        name: "loader-abi-version",
        file: "loader/src/elf/file.rs",
        find: "= 2..=4;",
        replace: "= 0..=9;",
        test: LOADER,
        expected: Killed,
    },
    Mutant {
        name: "loader-flags-xnack",
        file: "loader/src/elf/file.rs",
        find: "if flags != MACHINE_GFX1201 && !is_generic {",
        replace: "if flags & FLAGS_MACHINE != MACHINE_GFX1201 && !is_generic {",
        test: LOADER,
        expected: Killed,
    },
    // ---------------------------------------------------------------------------------------------- assembly
    Mutant {
        name: "engine-e4m3-another-bias",
        file: "engine/src/oracle/blocks/e4m3.rs",
        find: "2f32.powi(exponent - 7)",
        replace: "2f32.powi(exponent - 8)",
        test: &["-p", "zrt-engine", "--lib", "e4m3"],
        expected: Killed,
    },
    Mutant {
        name: "engine-safetensors-rows-of-queries-as-stored",
        file: "engine/src/safetensors/tensors.rs",
        find: "    head * head_size + element % 2 * (head_size / 2) + element / 2\n",
        replace: "    head * head_size + element\n",
        test: SAFETENSORS,
        expected: Killed,
    },
    Mutant {
        name: "engine-safetensors-scale-of-another-row",
        file: "engine/src/safetensors/tensors.rs",
        find: "row / scales.rows * scales.per_row * width",
        replace: "row / (scales.rows + 1) * scales.per_row * width",
        test: SAFETENSORS,
        expected: Killed,
    },
    Mutant {
        name: "engine-plan-no-room-for-tiles",
        file: "engine/src/plan.rs",
        find: "Form::Quantised => quantised_rows_held(rows),",
        replace: "Form::Quantised => rows,",
        test: ENGINE,
        expected: Killed,
    },
    Mutant {
        name: "engine-product-that-is-read-again-is-not-stored",
        file: "engine/src/plan.rs",
        find: "hidden != output && !later.iter().any(is_read)",
        replace: "hidden != output",
        test: ENGINE,
        expected: Killed,
    },
    Mutant {
        name: "engine-integers-where-the-kernel-still-reads",
        file: "engine/src/plan.rs",
        find: concat!(
            "for (index, instruction) in instructions.iter().enumerate() {\n",
            "        for (id, _) in instruction.nodes().flat_map(|node| node.operation.uses()) {",
        ),
        replace: concat!(
            "for (index, node) in instructions.iter().flat_map(Instruction::nodes).enumerate() {\n",
            "        for (id, _) in node.operation.uses() {",
        ),
        test: PLAN,
        expected: Killed,
    },
    Mutant {
        name: "engine-head-of-no-whole-blocks-becomes-integers",
        file: "engine/src/plan.rs",
        find: "config.head_size.is_multiple_of(CHUNK_COLUMNS)",
        replace: "true",
        test: ENGINE,
        expected: Killed,
    },
    Mutant {
        name: "engine-special-tokens-are-split",
        file: "engine/src/tokenizer/vocabulary.rs",
        find: "parse_special || self.kind(id)",
        replace: "self.kind(id)",
        test: TOKENIZER,
        expected: Killed,
    },
    Mutant {
        name: "engine-scales-and-minima-swapped",
        file: "engine/src/layout/repack.rs",
        find: "0..4 => [scales[chunk] & 63, scales[chunk + 4] & 63],",
        replace: "0..4 => [scales[chunk + 4] & 63, scales[chunk] & 63],",
        test: ENGINE,
        expected: Killed,
    },
    Mutant {
        name: "engine-kept-one-position-too-many",
        file: "engine/src/session/roster/kept.rs",
        find: "{ known - 1 }",
        replace: "{ known }",
        test: ENGINE,
        expected: Killed,
    },
    Mutant {
        name: "engine-window-off-by-one",
        file: "engine/src/executor/lowering.rs",
        find: "window: window.unwrap_or(u32::MAX),",
        replace: "window: window.map_or(u32::MAX, |window| window + 1),",
        test: ARCHITECTURES,
        expected: Killed,
    },
    // ---------------------------------------------------------------------------------------------- checking mode
    Mutant {
        name: "checker-lds-stores-are-loads",
        file: "vgpu/src/check/wave.rs",
        find: "LdsKind::Store => AccessKind::LdsStore,",
        replace: "LdsKind::Store => AccessKind::LdsLoad,",
        test: JUDGE,
        expected: Killed,
    },
    Mutant {
        name: "checker-no-advice",
        file: "vgpu/src/check/wave.rs",
        find: "if is_prefetch && wave.mode & SCALAR_PREFETCH_EN == 0 {",
        replace: "if is_prefetch && wave.mode & SCALAR_PREFETCH_EN == 0 && false {",
        test: JUDGE,
        expected: Killed,
    },
];
