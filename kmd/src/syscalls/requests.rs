//! Which requests may reach the real driver, and what memory each lets the driver access.
//!
//! Contract: the kernel follows every address in a request's structure. So [`check`] passes a request only if the
//! memory at each address was lent, for as many bytes as the structure's own counts say. Requests missing from the
//! table are refused. The table follows `kfd_ioctl.h` and what `kfd_chardev.c` (Linux 6.8) copies from and to the
//! process. Addresses that the GPU accesses through its own page table are not included: that table holds only
//! buffer objects, as long as page faults are not replayed. gfx12 cannot; gfx90a and gfx942 can, and the driver would
//! then map any page of the process. So XNACK is never switched on here; at first it is on only where the machine's
//! owner has set `amdgpu.noretry=0` (`kfd_process_xnack_mode`).

use super::UserPointer;
use crate::bindings::kfd::*;
use crate::errno::Errno;
use core::cell::Cell;
use core::ffi::c_void;
use core::mem::offset_of;

/// One request.
struct Request {
    number: u32,
    /// The arrays that the driver follows.
    arrays: &'static [Array],
}

/// An array of the process that a structure refers to.
struct Array {
    /// Offset of the 64-bit address.
    address_at: usize,
    /// Offset of the 32-bit count.
    count_at: usize,
    /// Bits of one counted element.
    bits: u64,
}

/// Bits 29..16 of a request's number: bytes of its structure (`asm-generic/ioctl.h`).
const SIZE_SHIFT: u32 = 16;
const SIZE_MASK: u32 = (1 << 14) - 1;

const REQUESTS: &[Request] = &[
    plain(REQUEST_GET_VERSION),
    plain(REQUEST_CREATE_QUEUE),
    plain(REQUEST_DESTROY_QUEUE),
    plain(REQUEST_GET_CLOCK_COUNTERS),
    plain(REQUEST_UPDATE_QUEUE),
    plain(REQUEST_CREATE_EVENT),
    plain(REQUEST_DESTROY_EVENT),
    plain(REQUEST_SET_EVENT),
    plain(REQUEST_RESET_EVENT),
    plain(REQUEST_SET_TRAP_HANDLER),
    plain(REQUEST_ACQUIRE_VM),
    // Except for USERPTR, see `check`.
    plain(REQUEST_ALLOC_MEMORY_OF_GPU),
    plain(REQUEST_FREE_MEMORY_OF_GPU),
    // Except to switch it on.
    plain(REQUEST_SET_XNACK_MODE),
    plain(REQUEST_AVAILABLE_MEMORY),
    // Its address is kept for a debugger, which reads the memory itself.
    plain(REQUEST_RUNTIME_ENABLE),
    Request {
        number: REQUEST_WAIT_EVENTS,
        arrays: &[Array {
            address_at: offset_of!(kfd_ioctl_wait_events_args, events_ptr),
            count_at: offset_of!(kfd_ioctl_wait_events_args, num_events),
            bits: 8 * size_of::<kfd_event_data_plain>() as u64,
        }],
    },
    Request {
        number: REQUEST_GET_PROCESS_APERTURES_NEW,
        arrays: &[Array {
            address_at: offset_of!(
                kfd_ioctl_get_process_apertures_new_args,
                kfd_process_device_apertures_ptr
            ),
            count_at: offset_of!(kfd_ioctl_get_process_apertures_new_args, num_of_nodes),
            bits: 8 * size_of::<kfd_process_device_apertures>() as u64,
        }],
    },
    Request {
        number: REQUEST_MAP_MEMORY_TO_GPU,
        arrays: &[Array {
            address_at: offset_of!(kfd_ioctl_map_memory_to_gpu_args, device_ids_array_ptr),
            count_at: offset_of!(kfd_ioctl_map_memory_to_gpu_args, n_devices),
            bits: 32,
        }],
    },
    Request {
        number: REQUEST_UNMAP_MEMORY_FROM_GPU,
        arrays: &[Array {
            address_at: offset_of!(kfd_ioctl_unmap_memory_from_gpu_args, device_ids_array_ptr),
            count_at: offset_of!(kfd_ioctl_unmap_memory_from_gpu_args, n_devices),
            bits: 32,
        }],
    },
    Request {
        number: REQUEST_SET_CU_MASK,
        arrays: &[Array {
            address_at: offset_of!(kfd_ioctl_set_cu_mask_args, cu_mask_ptr),
            count_at: offset_of!(kfd_ioctl_set_cu_mask_args, num_cu_mask),
            bits: 1,
        }],
    },
    #[cfg(test)]
    plain(REQUEST_OF_THE_TESTS),
];

/// RNDGETENTCNT of `/dev/urandom` (random(4)), which stores an int: a real call that works on a machine without a
/// card.
#[cfg(test)]
pub(super) const REQUEST_OF_THE_TESTS: u32 = 0x8004_5200;

/// A request that refers to nothing outside its structure.
const fn plain(number: u32) -> Request {
    Request { number, arrays: &[] }
}

/// The address to pass to the kernel with `request`, for a structure that was lent whole, together with everything
/// that the kernel will follow from it. `EFAULT` if something was not lent, `EPERM` for an unknown request.
pub(super) fn check(request: u32, argument: UserPointer<'_>) -> Result<*mut c_void, Errno> {
    let size = (request >> SIZE_SHIFT & SIZE_MASK) as usize;
    let structure = argument.lent(size)?;
    let known = REQUESTS.iter().find(|known| known.number == request).ok_or(Errno::EPERM)?;
    for array in known.arrays {
        let count = u32::from_ne_bytes(field(structure, array.count_at)?);
        let address = u64::from_ne_bytes(field(structure, array.address_at)?);
        let bytes = (u64::from(count) * array.bits).div_ceil(8);
        argument.nested(address).lent(usize::try_from(bytes).map_err(|_| Errno::EFAULT)?)?;
    }
    if request == REQUEST_SET_XNACK_MODE {
        // 1 switches it on, 0 off, and -1 asks.
        let mode = field(structure, offset_of!(kfd_ioctl_set_xnack_mode_args, xnack_enabled))?;
        if i32::from_ne_bytes(mode) > 0 {
            return Err(Errno::EPERM);
        }
    }
    if request == REQUEST_ALLOC_MEMORY_OF_GPU {
        // Process memory that is lent to the GPU for longer than the call.
        let flags = field(structure, offset_of!(kfd_ioctl_alloc_memory_of_gpu_args, flags))?;
        if u32::from_ne_bytes(flags) & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR != 0 {
            return Err(Errno::EPERM);
        }
    }
    Ok(core::ptr::with_exposed_provenance_mut(argument.address() as usize))
}

/// True if the table has the request.
#[cfg(test)]
pub(crate) fn passes_on(request: u32) -> bool {
    REQUESTS.iter().any(|known| known.number == request)
}

fn field<const BYTES: usize>(structure: &[Cell<u8>], at: usize) -> Result<[u8; BYTES], Errno> {
    let field = structure.get(at..).and_then(|rest| rest.first_chunk::<BYTES>()).ok_or(Errno::EFAULT)?;
    Ok(field.each_ref().map(Cell::get))
}

#[cfg(test)]
mod tests {
    use super::super::{Fd, LinuxSyscalls, Nested, Syscalls, ioctl_bytes};
    use super::*;
    use zerocopy::IntoBytes;

    /// The seam's result for a request on a file that has no ioctls: `ENOTTY` comes from the kernel itself.
    fn outcome(request: u32, structure: &mut [u8], nested: &mut [Nested<'_>]) -> Errno {
        let system = LinuxSyscalls::new();
        let fd: Fd = system.open("/dev/null").unwrap();
        ioctl_bytes(&system, fd, request, structure, nested).unwrap_err()
    }

    #[test]
    #[cfg_attr(miri, ignore = "opens a file and makes ioctls")]
    fn only_what_was_lent_goes_out() {
        let mut plain = [0; 8];
        assert_eq!(outcome(REQUEST_GET_VERSION, &mut plain, &mut []), Errno::ENOTTY);
        assert_eq!(
            outcome(REQUEST_GET_VERSION, &mut plain[..7], &mut []),
            Errno::EFAULT,
            "a short structure"
        );
        // The table does not describe what the driver would do with these.
        for request in [REQUEST_SVM, REQUEST_GET_QUEUE_WAVE_STATE, REQUEST_SMI_EVENTS, 0x541b, 0x8004_6601] {
            assert_eq!(outcome(request, &mut [0; 64], &mut []), Errno::EPERM, "{request:#x}");
        }
    }

    /// Where faults are replayed, the driver maps what a kernel touches: any page of the process.
    #[test]
    #[cfg_attr(miri, ignore = "opens a file and makes ioctls")]
    fn replay_of_page_faults_is_asked_about_and_never_switched_on() {
        let asked = |mode: i32| outcome(REQUEST_SET_XNACK_MODE, &mut mode.to_ne_bytes(), &mut []);
        assert_eq!([-1, 0].map(asked), [Errno::ENOTTY; 2]);
        assert_eq!([1, 2, i32::MAX].map(asked), [Errno::EPERM; 3]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "opens a file and makes ioctls")]
    fn a_structure_is_lent_whole_and_its_number_is_known_whole() {
        // The longest of the table.
        assert_eq!(outcome(REQUEST_CREATE_QUEUE, &mut [0; 96], &mut []), Errno::ENOTTY);
        assert_eq!(outcome(REQUEST_CREATE_QUEUE, &mut [0; 95], &mut []), Errno::EFAULT);
        // The command of a known request, with another length or direction.
        for other in [REQUEST_CREATE_QUEUE + (8 << 16), REQUEST_CREATE_QUEUE ^ (1 << 31)] {
            assert_eq!(outcome(other, &mut [0; 128], &mut []), Errno::EPERM, "{other:#x}");
        }
    }

    /// Numbers of the structures as hardware reference §2.3 and `kfd_ioctl.h` have them.
    #[test]
    #[cfg_attr(miri, ignore = "opens a file and makes ioctls")]
    fn each_array_is_held_to_its_last_byte() {
        // Request, bytes of its structure, offsets of address and count, a count, and the bytes of that many
        // elements.
        let arrays = [
            (REQUEST_WAIT_EVENTS, 24, 0, 8, 3u32, 3 * 48),
            (REQUEST_GET_PROCESS_APERTURES_NEW, 16, 0, 8, 3, 3 * 56),
            (REQUEST_MAP_MEMORY_TO_GPU, 24, 8, 16, 3, 3 * 4),
            (REQUEST_UNMAP_MEMORY_FROM_GPU, 24, 8, 16, 3, 3 * 4),
            (REQUEST_SET_CU_MASK, 16, 8, 4, 96, 96 / 8),
        ];
        for (request, structure_bytes, address_at, count_at, count, array_bytes) in arrays {
            let sent = |lent: usize, others: u8| {
                // Exactly as many elements as the count says, whatever the other fields hold.
                let mut structure = vec![others; structure_bytes];
                structure[count_at..count_at + 4].copy_from_slice(&count.to_ne_bytes());
                let mut array = vec![0; lent];
                let nested = &mut [Nested { field_offset: address_at, bytes: &mut array }];
                outcome(request, &mut structure, nested)
            };
            for others in [0, 0xff] {
                assert_eq!(sent(array_bytes, others), Errno::ENOTTY, "{request:#x}, others {others}");
                assert_eq!(sent(array_bytes - 1, others), Errno::EFAULT, "{request:#x}, others {others}");
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "opens a file and makes ioctls")]
    fn memory_lent_for_longer_than_the_call_is_refused_whatever_else_is_asked() {
        for others in [0, KFD_IOC_ALLOC_MEM_FLAGS_GTT, KFD_IOC_ALLOC_MEM_FLAGS_VRAM, !0] {
            let flags = KFD_IOC_ALLOC_MEM_FLAGS_USERPTR | others;
            let mut memory = kfd_ioctl_alloc_memory_of_gpu_args { flags, ..Default::default() };
            let request = REQUEST_ALLOC_MEMORY_OF_GPU;
            assert_eq!(outcome(request, memory.as_mut_bytes(), &mut []), Errno::EPERM, "{flags:#x}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "opens a file and makes ioctls")]
    fn a_count_is_held_against_what_was_lent() {
        let wait = |num_events, lent: usize| {
            let mut structure = kfd_ioctl_wait_events_args { num_events, ..Default::default() };
            let mut events = vec![0; lent];
            let nested = &mut [Nested { field_offset: 0, bytes: &mut events }];
            outcome(REQUEST_WAIT_EVENTS, structure.as_mut_bytes(), nested)
        };
        assert_eq!([wait(3, 144), wait(2, 144), wait(0, 0)], [Errno::ENOTTY; 3]);
        assert_eq!([wait(4, 144), wait(1, 0), wait(u32::MAX, 144)], [Errno::EFAULT; 3]);
        let mask = |num_cu_mask, lent: usize| {
            let mut structure = kfd_ioctl_set_cu_mask_args { num_cu_mask, ..Default::default() };
            let mut words = vec![0; lent];
            let nested = &mut [Nested { field_offset: 8, bytes: &mut words }];
            outcome(REQUEST_SET_CU_MASK, structure.as_mut_bytes(), nested)
        };
        assert_eq!([mask(64, 8), mask(65, 8)], [Errno::ENOTTY, Errno::EFAULT]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "opens a file and makes ioctls")]
    fn an_address_that_somebody_made_up_does_not_go_out() {
        let bystander = [1u8; 4096];
        let mut devices = kfd_ioctl_map_memory_to_gpu_args {
            device_ids_array_ptr: bystander.as_ptr().expose_provenance() as u64,
            n_devices: 1,
            ..Default::default()
        };
        for request in [REQUEST_MAP_MEMORY_TO_GPU, REQUEST_UNMAP_MEMORY_FROM_GPU] {
            assert_eq!(outcome(request, devices.as_mut_bytes(), &mut []), Errno::EFAULT);
        }
        let mut apertures = kfd_ioctl_get_process_apertures_new_args {
            kfd_process_device_apertures_ptr: devices.device_ids_array_ptr,
            num_of_nodes: 1,
            ..Default::default()
        };
        let request = REQUEST_GET_PROCESS_APERTURES_NEW;
        assert_eq!(outcome(request, apertures.as_mut_bytes(), &mut []), Errno::EFAULT);
        apertures.num_of_nodes = 0;
        assert_eq!(outcome(request, apertures.as_mut_bytes(), &mut []), Errno::ENOTTY, "nothing is followed");
        let mut memory = kfd_ioctl_alloc_memory_of_gpu_args {
            mmap_offset: devices.device_ids_array_ptr,
            flags: KFD_IOC_ALLOC_MEM_FLAGS_USERPTR,
            ..Default::default()
        };
        let request = REQUEST_ALLOC_MEMORY_OF_GPU;
        assert_eq!(outcome(request, memory.as_mut_bytes(), &mut []), Errno::EPERM);
        memory.flags = KFD_IOC_ALLOC_MEM_FLAGS_GTT;
        assert_eq!(outcome(request, memory.as_mut_bytes(), &mut []), Errno::ENOTTY);
    }
}
