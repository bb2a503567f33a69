//! `cargo xtask uapi`: the kernel's structures as Rust, from its own headers.
//!
//! Contract: reads `linux/kfd_ioctl.h` and `drm/amdgpu_drm.h` in the folder named by `ZRT_UAPI` (or `--headers`),
//! writes `kmd/src/bindings/{kfd,amdgpu}.rs`, which are committed; `--check` writes nothing and fails on any
//! difference. Needs libclang. The generator is behind the feature `uapi`, so that nothing else pays for compiling
//! it; without the feature this command builds and runs itself again with it. The suite checks for drift in a test,
//! which is compiled with all others.

use std::path::{Path, PathBuf};

/// Arguments of `cargo xtask uapi`.
#[derive(clap::Args, Debug)]
pub struct UapiArguments {
    /// Compare with the committed files instead of writing them.
    #[arg(long)]
    pub check: bool,
    /// Folder with `linux/kfd_ioctl.h` and `drm/amdgpu_drm.h`.
    #[arg(long, env = "ZRT_UAPI")]
    pub headers: Option<PathBuf>,
}

/// Why the structures could not be generated or checked.
#[derive(Debug, thiserror::Error)]
#[allow(dead_code)] // Each build constructs the variants of its feature set only.
pub enum UapiError {
    /// Neither the flag nor the variable was given.
    #[error("no kernel headers: set ZRT_UAPI to a folder with linux/kfd_ioctl.h and drm/amdgpu_drm.h")]
    HeadersUnknown,
    /// A header is not where it should be.
    #[error("{} does not exist: ZRT_UAPI must name the folder above linux/ and drm/", .0.display())]
    HeaderMissing(PathBuf),
    /// The generator failed.
    #[error("bindgen failed on {header}: {reason}; it needs libclang (LIBCLANG_PATH names its folder)")]
    Generator {
        /// The header's path below the folder.
        header: &'static str,
        /// The error of bindgen.
        reason: String,
    },
    /// A committed file could not be read or written.
    #[error("cannot access {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The committed file differs from what the headers produce.
    #[error(
        "{} differs from the headers, first at line {line}: run `cargo xtask uapi` and look at the difference",
        path.display()
    )]
    Drift {
        /// The committed file.
        path: PathBuf,
        /// The first line that differs, from 1.
        line: usize,
    },
    /// The run with the feature switched on failed; it has reported why.
    #[error("`cargo run --package xtask --features uapi` failed")]
    Rerun,
}

/// Runs the command.
pub fn run(arguments: &UapiArguments) -> Result<(), UapiError> {
    let headers = arguments.headers.as_deref().ok_or(UapiError::HeadersUnknown)?;
    for header in ["linux/kfd_ioctl.h", "drm/amdgpu_drm.h"] {
        let path = headers.join(header);
        if !path.is_file() {
            return Err(UapiError::HeaderMissing(path));
        }
    }
    #[cfg(feature = "uapi")]
    {
        generate_all(headers, &repository(), arguments.check)
    }
    #[cfg(not(feature = "uapi"))]
    {
        run_again(headers, arguments.check)
    }
}

/// Builds this program with the generator, and runs it.
#[cfg(not(feature = "uapi"))]
fn run_again(headers: &Path, check: bool) -> Result<(), UapiError> {
    let mut command = crate::process::cargo();
    command.args([
        "run",
        "--locked",
        "--quiet",
        "-p",
        "xtask",
        "--features",
        "uapi",
        "--",
        "uapi",
        "--headers",
    ]);
    command.arg(headers).args(check.then_some("--check"));
    match command.current_dir(repository()).status() {
        Ok(status) if status.success() => Ok(()),
        _ => Err(UapiError::Rerun),
    }
}

/// Writes or checks all files below `root`.
#[cfg(any(test, feature = "uapi"))]
fn generate_all(headers: &Path, root: &Path, check: bool) -> Result<(), UapiError> {
    for output in generator::OUTPUTS {
        let text = output.generate(headers)?;
        if check {
            compare(&root.join(output.path), &text)?;
        } else {
            write(&root.join(output.path), &text)?;
            println!("wrote {}", output.path);
        }
    }
    Ok(())
}

#[cfg(any(test, feature = "uapi"))]
fn write(path: &Path, text: &str) -> Result<(), UapiError> {
    std::fs::write(path, text).map_err(|source| UapiError::File { path: path.into(), source })
}

/// The repository's root: the parent of this package.
fn repository() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_path_buf()
}

#[cfg(any(test, feature = "uapi"))]
fn compare(path: &Path, text: &str) -> Result<(), UapiError> {
    let committed =
        std::fs::read_to_string(path).map_err(|source| UapiError::File { path: path.into(), source })?;
    if committed == text {
        return Ok(());
    }
    let same = committed.lines().zip(text.lines()).take_while(|(ours, theirs)| ours == theirs).count();
    Err(UapiError::Drift { path: path.into(), line: same + 1 })
}

#[cfg(any(test, feature = "uapi"))]
mod generator {
    use super::{Path, UapiError};
    use bindgen::callbacks::{DeriveInfo, ParseCallbacks, TypeKind};

    /// One header to one committed file.
    pub struct Output {
        /// Where it goes, below the repository.
        pub path: &'static str,
        header: &'static str,
        subject: &'static str,
        types: &'static [&'static str],
        constants: &'static [&'static str],
        opaque: &'static [&'static str],
        /// C text after the header.
        extra: &'static str,
        /// Requests whose number the header itself computes; they become constants `REQUEST_*`.
        requests: &'static [(&'static str, &'static str)],
    }

    pub const OUTPUTS: [Output; 2] = [
        Output {
            path: "kmd/src/bindings/kfd.rs",
            header: "linux/kfd_ioctl.h",
            subject: "Structures, constants and request numbers of `/dev/kfd`",
            types: &[
                "kfd_ioctl_(get_version|create_queue|destroy_queue|update_queue|set_cu_mask)_args",
                "kfd_ioctl_(get_available_memory|set_memory_policy|get_clock_counters)_args",
                "kfd_ioctl_(get_process_apertures_new|create_event|destroy_event|set_event|reset_event)_args",
                "kfd_ioctl_(wait_events|set_trap_handler|acquire_vm|alloc_memory_of_gpu)_args",
                "kfd_ioctl_(free_memory_of_gpu|map_memory_to_gpu|unmap_memory_from_gpu|export_dmabuf)_args",
                "kfd_ioctl_(get_queue_wave_state|smi_events|svm|set_xnack_mode|runtime_enable)_args",
                "kfd_ioctl_svm_attribute",
                "kfd_process_device_apertures",
                "kfd_event_data_plain",
                "kfd_hsa_(memory|hw)_exception_data",
                "kfd_hsa_signal_event_data",
                "kfd_memory_exception_failure",
                "kfd_context_save_area_header",
            ],
            constants: &[
                "KFD_IOCTL_(MAJOR|MINOR)_VERSION",
                "KFD_IOC_(QUEUE_TYPE|ALLOC_MEM_FLAGS|EVENT|WAIT_RESULT)_.*",
                "KFD_(MAX_QUEUE_PERCENTAGE|MAX_QUEUE_PRIORITY|SIGNAL_EVENT_LIMIT)",
                "KFD_(HW_EXCEPTION|MEM_ERR|RUNTIME_ENABLE_MODE)_.*",
                "KFD_MMIO_REMAP_.*",
                "KFD_SMI_EVENT_.*",
            ],
            // A flexible array: as plain bytes it needs no `unsafe`.
            opaque: &["kfd_ioctl_svm_args"],
            // A union becomes plain words for the same reason; the C compiler holds the two layouts together.
            extra: "struct kfd_event_data_plain {
    __u64 payload[4];
    __u64 kfd_event_data_ext;
    __u32 event_id;
    __u32 pad;
};
_Static_assert(sizeof(struct kfd_event_data_plain) == sizeof(struct kfd_event_data), \"size\");
_Static_assert(__builtin_offsetof(struct kfd_event_data_plain, kfd_event_data_ext)
    == __builtin_offsetof(struct kfd_event_data, kfd_event_data_ext), \"extension\");
_Static_assert(__builtin_offsetof(struct kfd_event_data_plain, event_id)
    == __builtin_offsetof(struct kfd_event_data, event_id), \"event\");
",
            requests: &[
                ("GET_VERSION", "AMDKFD_IOC_GET_VERSION"),
                ("CREATE_QUEUE", "AMDKFD_IOC_CREATE_QUEUE"),
                ("DESTROY_QUEUE", "AMDKFD_IOC_DESTROY_QUEUE"),
                ("SET_MEMORY_POLICY", "AMDKFD_IOC_SET_MEMORY_POLICY"),
                ("GET_CLOCK_COUNTERS", "AMDKFD_IOC_GET_CLOCK_COUNTERS"),
                ("UPDATE_QUEUE", "AMDKFD_IOC_UPDATE_QUEUE"),
                ("CREATE_EVENT", "AMDKFD_IOC_CREATE_EVENT"),
                ("DESTROY_EVENT", "AMDKFD_IOC_DESTROY_EVENT"),
                ("SET_EVENT", "AMDKFD_IOC_SET_EVENT"),
                ("RESET_EVENT", "AMDKFD_IOC_RESET_EVENT"),
                ("WAIT_EVENTS", "AMDKFD_IOC_WAIT_EVENTS"),
                ("SET_TRAP_HANDLER", "AMDKFD_IOC_SET_TRAP_HANDLER"),
                ("GET_PROCESS_APERTURES_NEW", "AMDKFD_IOC_GET_PROCESS_APERTURES_NEW"),
                ("ACQUIRE_VM", "AMDKFD_IOC_ACQUIRE_VM"),
                ("ALLOC_MEMORY_OF_GPU", "AMDKFD_IOC_ALLOC_MEMORY_OF_GPU"),
                ("FREE_MEMORY_OF_GPU", "AMDKFD_IOC_FREE_MEMORY_OF_GPU"),
                ("MAP_MEMORY_TO_GPU", "AMDKFD_IOC_MAP_MEMORY_TO_GPU"),
                ("UNMAP_MEMORY_FROM_GPU", "AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU"),
                ("SET_CU_MASK", "AMDKFD_IOC_SET_CU_MASK"),
                ("GET_QUEUE_WAVE_STATE", "AMDKFD_IOC_GET_QUEUE_WAVE_STATE"),
                ("SMI_EVENTS", "AMDKFD_IOC_SMI_EVENTS"),
                ("SVM", "AMDKFD_IOC_SVM"),
                ("SET_XNACK_MODE", "AMDKFD_IOC_SET_XNACK_MODE"),
                ("AVAILABLE_MEMORY", "AMDKFD_IOC_AVAILABLE_MEMORY"),
                ("EXPORT_DMABUF", "AMDKFD_IOC_EXPORT_DMABUF"),
                ("RUNTIME_ENABLE", "AMDKFD_IOC_RUNTIME_ENABLE"),
            ],
        },
        Output {
            path: "kmd/src/bindings/amdgpu.rs",
            header: "drm/amdgpu_drm.h",
            subject: "Structures, constants and request numbers of the amdgpu render node",
            types: &[
                "drm_amdgpu_userq_(in|out|mqd_compute_gfx11|signal|wait|fence_info)",
                "drm_amdgpu_gem_create_(in|out)",
                "drm_amdgpu_gem_mmap_(in|out)",
                "drm_amdgpu_gem_va",
                "drm_amdgpu_info_(gpuvm_fault|hw_ip|firmware)",
            ],
            constants: &[
                "AMDGPU_USERQ_.*",
                "AMDGPU_GEM_DOMAIN_.*",
                "AMDGPU_VA_OP_.*",
                "AMDGPU_VM_(PAGE_.*|MTYPE_.*|DELAY_UPDATE)",
                "AMDGPU_INFO_(DEV_INFO|HW_IP_INFO|FW_VERSION|GPUVM_FAULT|UQ_FW_AREAS)",
                "AMDGPU_HW_IP_(GFX|COMPUTE|DMA)",
            ],
            opaque: &[],
            extra: "",
            requests: &[
                ("USERQ", "DRM_IOCTL_AMDGPU_USERQ"),
                ("USERQ_SIGNAL", "DRM_IOCTL_AMDGPU_USERQ_SIGNAL"),
                ("USERQ_WAIT", "DRM_IOCTL_AMDGPU_USERQ_WAIT"),
                ("GEM_CREATE", "DRM_IOCTL_AMDGPU_GEM_CREATE"),
                ("GEM_MMAP", "DRM_IOCTL_AMDGPU_GEM_MMAP"),
                ("INFO", "DRM_IOCTL_AMDGPU_INFO"),
                ("GEM_VA", "DRM_IOCTL_AMDGPU_GEM_VA"),
            ],
        },
    ];

    impl Output {
        /// The file's text.
        pub fn generate(&self, headers: &Path) -> Result<String, UapiError> {
            let mut builder = bindgen::Builder::default()
                .header_contents("zrt_uapi.h", &self.wrapper())
                .clang_arg(format!("-I{}", headers.display()))
                .use_core()
                .layout_tests(false)
                .explicit_padding(true)
                .generate_comments(false)
                .default_enum_style(bindgen::EnumVariation::Consts)
                .prepend_enum_name(false)
                .derive_debug(true)
                .derive_default(true)
                .formatter(bindgen::Formatter::Prettyplease)
                .disable_header_comment()
                .parse_callbacks(Box::new(Derives));
            for pattern in self.types {
                builder = builder.allowlist_type(pattern);
            }
            for pattern in self.constants.iter().chain(&["REQUEST_.*"]) {
                builder = builder.allowlist_var(pattern);
            }
            for name in self.opaque {
                builder = builder.opaque_type(name);
            }
            let bindings = builder
                .generate()
                .map_err(|error| UapiError::Generator { header: self.header, reason: error.to_string() })?;
            Ok(format!(
                "//! {} (`{}`).\n//!\n//! Generated by `cargo xtask uapi`; do not edit.\n\n\
                 use zerocopy::{{FromBytes, Immutable, IntoBytes, KnownLayout}};\n\n{bindings}",
                self.subject, self.header
            ))
        }

        /// A header that includes the kernel's and lets it compute its request numbers.
        fn wrapper(&self) -> String {
            let mut text = format!("#include <{}>\n{}enum {{\n", self.header, self.extra);
            for (name, symbol) in self.requests {
                text.push_str(&format!("    REQUEST_{name} = {symbol},\n"));
            }
            text.push_str("};\n");
            text
        }
    }

    /// Structures go to and from bytes without `unsafe`: zerocopy proves that they have no padding.
    #[derive(Debug)]
    struct Derives;

    impl ParseCallbacks for Derives {
        fn add_derives(&self, info: &DeriveInfo<'_>) -> Vec<String> {
            let derives: &[&str] = match info.kind {
                TypeKind::Struct => {
                    &["PartialEq", "Eq", "FromBytes", "Immutable", "IntoBytes", "KnownLayout"]
                }
                _ => &[],
            };
            derives.iter().map(|name| name.to_string()).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zrt_needs::TemporaryFolder;

    #[test]
    fn the_committed_bindings_are_those_of_the_headers() {
        let Some(headers) = zrt_needs::headers() else { return };
        generate_all(&headers, &repository(), true).expect("no drift");
        // Elsewhere there are none.
        let folder = TemporaryFolder::new("no-bindings");
        let reason = generate_all(&headers, &folder, true).unwrap_err().to_string();
        let first = folder.join("kmd/src/bindings/kfd.rs");
        assert!(reason.starts_with(&format!("cannot access {}: ", first.display())), "{reason}");
    }

    #[test]
    fn the_first_line_that_differs_is_told_and_a_file_that_is_written_differs_nowhere() {
        let folder = TemporaryFolder::new("drift");
        let path = folder.join("kfd.rs");
        let missing = compare(&path, "one\n").unwrap_err().to_string();
        assert!(missing.starts_with(&format!("cannot access {}: ", path.display())), "{missing}");
        write(&path, "one\ntwo\nthree\n").unwrap();
        compare(&path, "one\ntwo\nthree\n").unwrap();
        for (text, line) in [
            ("two\ntwo\nthree\n", 1),
            ("one\ntwo\nfour\n", 3),
            ("one\ntwo\n", 3),
            ("one\ntwo\nthree\nfour\n", 4),
        ] {
            let told = format!(
                "{} differs from the headers, first at line {line}: run `cargo xtask uapi` and look at the \
                 difference",
                path.display()
            );
            assert_eq!(compare(&path, text).unwrap_err().to_string(), told);
        }
        let nowhere = folder.join("none/kfd.rs");
        let reason = write(&nowhere, "").unwrap_err().to_string();
        assert!(reason.starts_with(&format!("cannot access {}: ", nowhere.display())), "{reason}");
    }
}
