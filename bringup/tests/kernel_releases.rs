//! The device under the rules of every kernel release that the virtual driver follows: it opens, passes its self-test
//! and closes.
// Helpers of tests too fail by panicking.
#![allow(clippy::unwrap_used)]

use zrt_bringup::selftest::{self, Extent};
use zrt_bringup::{DeviceChoice, Inspect, KernelRelease, OpenOptions, VirtualOptions};

#[test]
fn the_whole_self_test_passes_under_every_kernel() {
    for kernel in KernelRelease::ALL {
        for small_bar in [false, true] {
            let virtual_device =
                VirtualOptions { kernel: Some(kernel), small_bar, ..VirtualOptions::default() };
            let options = OpenOptions { virtual_device, self_test: false, ..OpenOptions::default() };
            let mut device = zrt_bringup::open(DeviceChoice::Virtual, &options).unwrap();
            assert_eq!(device.virtual_kernel().as_deref(), Some(kernel.name()));
            assert_eq!(device.info().kfd_version, (1, kernel.kfd_minor()));
            for report in selftest::run(&mut device, Extent::Full) {
                assert!(report.outcome.failure().is_none(), "{kernel} {}: {:?}", report.case, report.outcome);
            }
            device.close().unwrap();
        }
    }
}
