//! The first waves, in the ring itself: from a kernel that only ends to one whose code lies in VRAM.

use super::bench::{Bench, Failure, POISON};
use super::kernels::{END, GROUP, LOAD, STORE, TestKernel};
use zrt_mem::Heap;

/// What the kernel `store` stores.
const STORED: u32 = 0x600d_f00d;
/// Workgroups of the case of ids.
const GROUPS: u32 = 7;
/// What the kernel `load` copies, and to where.
const LOADED: u32 = 0x10ad_ed01;
const LOADED_TO: usize = 64;

/// Dispatches `groups` workgroups of a kernel, with the page's address as user data.
fn dispatch(bench: &mut Bench<'_>, kernel: TestKernel, code: Heap, groups: u32) -> Result<(), Failure> {
    let kernel = kernel.load_into(bench.device, code)?;
    let out = bench.va(0);
    bench.submit(|writer| {
        writer.acquire_everything()?;
        writer.dispatch(kernel.state(), &[out.low(), out.high()], [groups, 1, 1])
    })
}

pub(super) fn end(bench: &mut Bench<'_>) -> Result<String, Failure> {
    dispatch(bench, END, Heap::Host, 1)?;
    Ok("one wave began and ended".into())
}

pub(super) fn store(bench: &mut Bench<'_>) -> Result<String, Failure> {
    dispatch(bench, STORE, Heap::Host, 1)?;
    bench.expect("the dword that lane 0 stores", 0, STORED)?;
    bench.expect("the dword after it", 4, POISON)?;
    Ok("one lane stored a constant".into())
}

pub(super) fn group(bench: &mut Bench<'_>) -> Result<String, Failure> {
    dispatch(bench, GROUP, Heap::Host, GROUPS)?;
    for index in 0..GROUPS {
        bench.expect(&format!("ttmp9 of workgroup {index}"), index as usize * 4, index)?;
    }
    bench.expect("the dword after the last workgroup", GROUPS as usize * 4, POISON)?;
    Ok(format!("{GROUPS} workgroups found their ids"))
}

pub(super) fn load(bench: &mut Bench<'_>) -> Result<String, Failure> {
    copy_a_dword(bench, Heap::Host)?;
    Ok("a dword went through a scalar load".into())
}

pub(super) fn code_in_vram(bench: &mut Bench<'_>) -> Result<String, Failure> {
    copy_a_dword(bench, Heap::DeviceLocal)?;
    Ok("the same code ran from device-local memory".into())
}

fn copy_a_dword(bench: &mut Bench<'_>, code: Heap) -> Result<(), Failure> {
    bench.set(0, LOADED);
    dispatch(bench, LOAD, code, 1)?;
    bench.expect("the dword that a scalar load read", LOADED_TO, LOADED)
}
