//! `/dev/kfd` requests: from bytes to typed values and back.
//!
//! Contract: dispatch on the number alone, as the kernel does: any magic, any size. The caller's bytes are copied
//! in up to the kernel's own size, the rest is zero, and the caller's size is copied back, even after an error
//! (hardware reference §2.1). Only WAIT_EVENTS and DESTROY_QUEUE block.

use crate::command_processor::faults::FaultKind;
use crate::kernel::VirtualGpu;
use crate::kernel::arguments::{Arguments, load_u32, load_u64, store_u32, store_u64};
use crate::kernel::board::{self, GPU_ID};
use crate::kernel::events::{EventData, WaitFor, WaitOutcome};
use crate::kernel::objects::AllocRequest;
use crate::kernel::process::MapRequest;
use crate::kernel::queues::{CreateRequest, UpdateRequest};
use crate::kernel::requests::{
    self, acquire_vm, alloc, apertures, available_memory, clock_counters, create_queue, cu_mask,
    destroy_queue, event, free, map, memory_policy, request_number, request_size, runtime_enable,
    scratch_backing, tile_config, trap_handler, update_queue, version, wait_events, xnack_mode,
};
use std::time::Duration;
use zrt_kmd::{Errno, UserPointer};

/// Most devices of one MAP or UNMAP.
const DEVICES_MAX: usize = 1024;
/// Frequency of the system clock, which counts nanoseconds.
const NANOSECONDS_PER_SECOND: u64 = 1_000_000_000;
/// Dwords of a CU mask.
const CU_MASK_DWORDS_MAX: usize = 1 << 16;

/// One request on `/dev/kfd`.
pub(crate) fn kfd(gpu: &VirtualGpu, request: u32, pointer: UserPointer<'_>) -> Result<i32, Errno> {
    let number = request_number(request);
    let is_known = number <= gpu.kernel.last_request();
    let shape = requests::kfd_shape(number).filter(|_| is_known).ok_or(Errno::ENOTTY)?;
    let caller_size = request_size(request);
    let mut arguments = Arguments::zeroed(shape.size.max(caller_size), pointer);
    if shape.copies_in {
        arguments.copy_in(caller_size)?;
    }
    gpu.hardware().follow_process();
    let outcome = dispatch(gpu, number, &mut arguments);
    if shape.copies_out {
        arguments.copy_out(caller_size)?;
    }
    outcome.map(|()| 0)
}

fn dispatch(gpu: &VirtualGpu, number: u32, arguments: &mut Arguments<'_>) -> Result<(), Errno> {
    if gpu.hardware().is_lost() && !requests::outlives_reset(number) {
        return Err(Errno::EIO);
    }
    match number {
        requests::GET_VERSION => {
            arguments.set_u32(version::MAJOR_AT, requests::KFD_VERSION_MAJOR);
            arguments.set_u32(version::MINOR_AT, gpu.kernel.kfd_minor());
            Ok(())
        }
        requests::GET_PROCESS_APERTURES_NEW => get_apertures(arguments),
        requests::ACQUIRE_VM => {
            let render = gpu.render_file(arguments.u32(acquire_vm::DRM_FD_AT));
            gpu.process().acquire_vm(render, arguments.u32(acquire_vm::GPU_ID_AT))
        }
        requests::ALLOC_MEMORY => alloc_memory(gpu, arguments),
        requests::FREE_MEMORY => gpu.process().free(arguments.u64(free::HANDLE_AT)),
        requests::MAP_MEMORY | requests::UNMAP_MEMORY => map_memory(gpu, number, arguments),
        requests::CREATE_QUEUE => create(gpu, arguments),
        requests::UPDATE_QUEUE => gpu.process().update_queue(&UpdateRequest {
            queue_id: arguments.u32(update_queue::QUEUE_ID_AT),
            ring_base: arguments.u64(update_queue::RING_BASE_AT),
            ring_bytes: arguments.u32(update_queue::RING_SIZE_AT),
            percentage: arguments.u32(update_queue::PERCENTAGE_AT),
            priority: arguments.u32(update_queue::PRIORITY_AT),
        }),
        requests::DESTROY_QUEUE => {
            gpu.process().destroy_queue(gpu.processor(), arguments.u32(destroy_queue::QUEUE_ID_AT))
        }
        requests::SET_CU_MASK => set_cu_mask(gpu, arguments),
        requests::CREATE_EVENT => create_event(gpu, arguments),
        requests::DESTROY_EVENT => gpu.events().destroy(arguments.u32(event::ONLY_ID_AT)),
        requests::SET_EVENT => gpu.events().set(arguments.u32(event::ONLY_ID_AT)),
        requests::RESET_EVENT => gpu.events().reset(arguments.u32(event::ONLY_ID_AT)),
        requests::WAIT_EVENTS => wait(gpu, arguments),
        requests::SET_MEMORY_POLICY => {
            let policies = [memory_policy::DEFAULT_POLICY_AT, memory_policy::ALTERNATE_POLICY_AT];
            if policies.iter().any(|at| arguments.u32(*at) > memory_policy::POLICY_LAST) {
                return Err(Errno::EINVAL);
            }
            gpu.process().check_device(arguments.u32(memory_policy::GPU_ID_AT))
        }
        requests::GET_CLOCK_COUNTERS => {
            get_clock_counters(gpu, arguments);
            Ok(())
        }
        requests::SET_XNACK_MODE => {
            let mode = gpu.process().set_xnack(arguments.u32(xnack_mode::ENABLED_AT) as i32)?;
            arguments.set_u32(xnack_mode::ENABLED_AT, mode as u32);
            Ok(())
        }
        requests::RUNTIME_ENABLE => {
            let enable = arguments.u32(runtime_enable::MODE_MASK_AT) & runtime_enable::MODE_ENABLE != 0;
            arguments.set_u32(runtime_enable::CAPABILITIES_AT, 0);
            gpu.process().enable_runtime(enable)
        }
        // Accepted without effect: waves never reach a trap handler here.
        requests::SET_TRAP_HANDLER => gpu.process().check_device(arguments.u32(trap_handler::GPU_ID_AT)),
        // Accepted without effect: since gfx9 scratch has an aperture of its own.
        requests::SET_SCRATCH_BACKING => {
            gpu.process().check_device(arguments.u32(scratch_backing::GPU_ID_AT))
        }
        requests::GET_TILE_CONFIG => get_tile_config(arguments),
        requests::AVAILABLE_MEMORY => {
            let available = gpu.process().available_vram_bytes(arguments.u32(available_memory::GPU_ID_AT))?;
            arguments.set_u64(available_memory::AVAILABLE_AT, available);
            Ok(())
        }
        // The old debugger requests are refused by the kernel itself.
        requests::DEBUG_REGISTER..=requests::DEBUG_WAVE_CONTROL => Err(Errno::EPERM),
        _ => {
            let text = format!("request={number:#04x} : the kernel has it, this device does not");
            gpu.hardware().record(FaultKind::UnmodelledRequest, None, None, text);
            Err(Errno::EINVAL)
        }
    }
}

fn get_apertures(arguments: &mut Arguments<'_>) -> Result<(), Errno> {
    let asked = arguments.u32(apertures::NODE_COUNT_AT);
    // With a count of 0 the kernel returns the number of entries; otherwise it fills as many as exist.
    arguments.set_u32(apertures::NODE_COUNT_AT, 1);
    if asked == 0 {
        return Ok(());
    }
    let mut entry = [0u8; apertures::ENTRY_BYTES];
    for (at, value) in [
        (apertures::LDS_BASE_AT, board::LDS_APERTURE_BASE),
        (apertures::LDS_LIMIT_AT, board::LDS_APERTURE_BASE + board::APERTURE_BYTES - 1),
        (apertures::SCRATCH_BASE_AT, board::SCRATCH_APERTURE_BASE),
        (apertures::SCRATCH_LIMIT_AT, board::SCRATCH_APERTURE_BASE + board::APERTURE_BYTES - 1),
        (apertures::GPUVM_BASE_AT, board::GPUVM_BASE),
        (apertures::GPUVM_LIMIT_AT, board::GPUVM_LIMIT),
    ] {
        store_u64(&mut entry, at, value);
    }
    store_u32(&mut entry, apertures::GPU_ID_AT, GPU_ID);
    arguments.pointer.nested(arguments.u64(apertures::ARRAY_AT)).write(&entry)
}

/// Tables of tiling modes, which are all zero since gfx9, and the one register that is still meaningful.
fn get_tile_config(arguments: &mut Arguments<'_>) -> Result<(), Errno> {
    // This request needs no VM.
    if arguments.u32(tile_config::GPU_ID_AT) != GPU_ID {
        return Err(Errno::EINVAL);
    }
    arguments.set_u32(tile_config::GB_ADDR_CONFIG_AT, board::GB_ADDR_CONFIG);
    arguments.set_u32(tile_config::BANK_COUNT_AT, 0);
    arguments.set_u32(tile_config::RANK_COUNT_AT, 0);
    for (table_at, count_at, count_max) in [
        (tile_config::TILES_AT, tile_config::TILE_COUNT_AT, tile_config::TILE_COUNT_MAX),
        (tile_config::MACRO_TILES_AT, tile_config::MACRO_TILE_COUNT_AT, tile_config::MACRO_TILE_COUNT_MAX),
    ] {
        let count = arguments.u32(count_at).min(count_max);
        let table = arguments.pointer.nested(arguments.u64(table_at));
        let written = table.write(&vec![0; count as usize * 4]);
        arguments.set_u32(count_at, if written.is_ok() { count } else { 0 });
        written?;
    }
    Ok(())
}

fn alloc_memory(gpu: &VirtualGpu, arguments: &mut Arguments<'_>) -> Result<(), Errno> {
    let request = AllocRequest {
        va: arguments.u64(alloc::VA_AT),
        size: arguments.u64(alloc::SIZE_AT),
        flags: arguments.u32(alloc::FLAGS_AT),
        user_address: arguments.u64(alloc::USER_ADDRESS_AT),
    };
    let (handle, offset) = gpu.process().alloc(arguments.u32(alloc::GPU_ID_AT), &request)?;
    arguments.set_u64(alloc::HANDLE_AT, handle);
    arguments.set_u64(alloc::MMAP_OFFSET_AT, offset);
    Ok(())
}

fn map_memory(gpu: &VirtualGpu, number: u32, arguments: &mut Arguments<'_>) -> Result<(), Errno> {
    let mut request = MapRequest {
        handle: arguments.u64(map::HANDLE_AT),
        device_count: arguments.u32(map::DEVICE_COUNT_AT),
        success_count: arguments.u32(map::SUCCESS_COUNT_AT),
    };
    if request.device_count == 0 || request.success_count > request.device_count {
        return Err(Errno::EINVAL);
    }
    let address = arguments.u64(map::DEVICES_AT);
    let devices = arguments.read_dwords(address, request.device_count as usize, DEVICES_MAX)?;
    let mut process = gpu.process();
    let outcome = match number {
        requests::MAP_MEMORY => process.map(&mut request, &devices),
        _ => process.unmap(&mut request, &devices),
    };
    arguments.set_u32(map::SUCCESS_COUNT_AT, request.success_count);
    outcome
}

fn create(gpu: &VirtualGpu, arguments: &mut Arguments<'_>) -> Result<(), Errno> {
    let request = CreateRequest {
        ring_base: arguments.u64(create_queue::RING_BASE_AT),
        ring_bytes: arguments.u32(create_queue::RING_SIZE_AT),
        write_pointer: arguments.u64(create_queue::WRITE_POINTER_AT),
        read_pointer: arguments.u64(create_queue::READ_POINTER_AT),
        queue_type: arguments.u32(create_queue::TYPE_AT),
        percentage: arguments.u32(create_queue::PERCENTAGE_AT),
        priority: arguments.u32(create_queue::PRIORITY_AT),
        eop_address: arguments.u64(create_queue::EOP_ADDRESS_AT),
        eop_bytes: arguments.u64(create_queue::EOP_SIZE_AT),
        cwsr_address: arguments.u64(create_queue::CWSR_ADDRESS_AT),
        cwsr_bytes: arguments.u32(create_queue::CWSR_SIZE_AT),
        ctl_stack_bytes: arguments.u32(create_queue::CTL_STACK_SIZE_AT),
    };
    let gpu_id = arguments.u32(create_queue::GPU_ID_AT);
    let (id, doorbell) = gpu.process().create_queue(gpu.processor(), gpu_id, &request)?;
    arguments.set_u32(create_queue::QUEUE_ID_AT, id);
    arguments.set_u64(create_queue::DOORBELL_OFFSET_AT, doorbell);
    Ok(())
}

fn set_cu_mask(gpu: &VirtualGpu, arguments: &Arguments<'_>) -> Result<(), Errno> {
    let bit_count = arguments.u32(cu_mask::BIT_COUNT_AT) as usize;
    if bit_count == 0 || bit_count % u32::BITS as usize != 0 {
        return Err(Errno::EINVAL);
    }
    let mask = arguments.read_dwords(
        arguments.u64(cu_mask::MASK_AT),
        bit_count / u32::BITS as usize,
        CU_MASK_DWORDS_MAX,
    )?;
    gpu.process().set_cu_mask(arguments.u32(cu_mask::QUEUE_ID_AT), &mask)
}

fn create_event(gpu: &VirtualGpu, arguments: &mut Arguments<'_>) -> Result<(), Errno> {
    let kind = arguments.u32(event::TYPE_AT);
    let page = arguments.u64(event::PAGE_OFFSET_AT);
    let has_slot = matches!(kind, event::TYPE_SIGNAL | event::TYPE_DEBUG);
    {
        let mut process = gpu.process();
        if page != 0 {
            process.set_event_page(page)?;
        } else if has_slot {
            process.ensure_event_page()?;
        }
    }
    // Whether or not there will be an event (`kfd_event_create`).
    arguments.set_u64(event::PAGE_OFFSET_AT, 0);
    let id = gpu.events().create(kind, arguments.u32(event::AUTO_RESET_AT) != 0)?;
    arguments.set_u32(event::EVENT_ID_AT, id);
    arguments.set_u32(event::TRIGGER_DATA_AT, id);
    if has_slot {
        let offset = requests::mmap_offset::TYPE_EVENTS << requests::mmap_offset::TYPE_SHIFT;
        arguments.set_u64(event::PAGE_OFFSET_AT, offset);
        arguments.set_u32(event::SLOT_INDEX_AT, id);
    }
    Ok(())
}

/// WAIT_EVENTS. The result word is "fail" if an error is returned (`kfd_wait_on_events`).
fn wait(gpu: &VirtualGpu, arguments: &mut Arguments<'_>) -> Result<(), Errno> {
    let waited = wait_for_entries(gpu, arguments);
    if waited.is_err() {
        arguments.set_u32(wait_events::RESULT_AT, wait_events::RESULT_FAIL);
    }
    waited
}

fn wait_for_entries(gpu: &VirtualGpu, arguments: &mut Arguments<'_>) -> Result<(), Errno> {
    let count = arguments.u32(wait_events::EVENT_COUNT_AT) as usize;
    if count > gpu.kernel.wait_entries_max() {
        return Err(Errno::ENOMEM);
    }
    let table = arguments.pointer.nested(arguments.u64(wait_events::EVENTS_AT));
    let mut bytes = vec![0; count * wait_events::ENTRY_BYTES];
    table.read(&mut bytes)?;
    let entries: Vec<WaitFor> = bytes
        .chunks_exact(wait_events::ENTRY_BYTES)
        .map(|entry| WaitFor {
            event_id: load_u32(entry, wait_events::ENTRY_EVENT_ID_AT),
            last_age: load_u64(entry, wait_events::ENTRY_AGE_AT),
        })
        .collect();
    let timeout = match arguments.u32(wait_events::TIMEOUT_AT) {
        wait_events::TIMEOUT_FOREVER => None,
        milliseconds => Some(Duration::from_millis(u64::from(milliseconds))),
    };
    let all = arguments.u32(wait_events::WAIT_FOR_ALL_AT) != 0;
    match gpu.events().wait(&entries, all, timeout)? {
        WaitOutcome::Timeout => arguments.set_u32(wait_events::RESULT_AT, wait_events::RESULT_TIMEOUT),
        WaitOutcome::Destroyed => return Err(Errno::EIO),
        WaitOutcome::Complete(data) => {
            arguments.set_u32(wait_events::RESULT_AT, wait_events::RESULT_COMPLETE);
            for (index, data) in data.into_iter().enumerate() {
                let union = event_union(data);
                table.offset((index * wait_events::ENTRY_BYTES) as u64).write(&union)?;
            }
        }
    }
    Ok(())
}

/// The bytes that the kernel writes at the start of an entry: empty if it has no data.
fn event_union(data: EventData) -> Vec<u8> {
    match data {
        EventData::None => Vec::new(),
        EventData::Age(age) => age.to_le_bytes().to_vec(),
        EventData::Memory(exception) => {
            let mut bytes = vec![0; wait_events::MEMORY_BYTES];
            for (at, value) in [
                (wait_events::MEMORY_NOT_PRESENT_AT, u32::from(exception.not_present)),
                (wait_events::MEMORY_READ_ONLY_AT, u32::from(exception.read_only)),
                (wait_events::MEMORY_NO_EXECUTE_AT, u32::from(exception.no_execute)),
                (wait_events::MEMORY_GPU_ID_AT, exception.gpu_id),
            ] {
                store_u32(&mut bytes, at, value);
            }
            store_u64(&mut bytes, wait_events::MEMORY_VA_AT, exception.page_va);
            bytes
        }
        EventData::Hardware(exception) => {
            let mut bytes = vec![0; wait_events::HW_BYTES];
            for (at, value) in [
                (wait_events::HW_RESET_TYPE_AT, wait_events::HW_RESET_WHOLE_GPU),
                (wait_events::HW_RESET_CAUSE_AT, wait_events::HW_RESET_BY_HANG),
                (wait_events::HW_MEMORY_LOST_AT, u32::from(exception.memory_lost)),
                (wait_events::HW_GPU_ID_AT, exception.gpu_id),
            ] {
                store_u32(&mut bytes, at, value);
            }
            bytes
        }
    }
}

fn get_clock_counters(gpu: &VirtualGpu, arguments: &mut Arguments<'_>) {
    let hardware = gpu.hardware();
    // A node without this GPU has no GPU counter; the kernel does not refuse it.
    let is_gpu = arguments.u32(clock_counters::GPU_ID_AT) == GPU_ID;
    let nanoseconds = hardware.system_clock_ns();
    arguments.set_u64(clock_counters::GPU_AT, if is_gpu { hardware.gpu_clock() } else { 0 });
    arguments.set_u64(clock_counters::CPU_AT, nanoseconds);
    arguments.set_u64(clock_counters::SYSTEM_AT, nanoseconds);
    arguments.set_u64(clock_counters::FREQUENCY_AT, NANOSECONDS_PER_SECOND);
}
