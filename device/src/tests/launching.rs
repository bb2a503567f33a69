//! Recorders, graphs, counts of what was submitted.

use super::{END, PATIENCE, load, one_dispatch, open, resources};
use crate::{DeviceError, LaunchParameters};
use zrt_mem::{DwordLen, GpuVa};

/// Packets in a stream of type 3: bits 29:16 of a header are the dwords that follow it, less 1 (hardware reference
/// §4.1).
fn packets(words: &[u32]) -> u64 {
    let (mut at, mut count) = (0, 0);
    while at < words.len() {
        assert_eq!(words[at] >> 30, 3, "a header at {at}: {:#x}", words[at]);
        at += 2 + (words[at] >> 16 & 0x3fff) as usize;
        count += 1;
    }
    assert_eq!(at, words.len());
    count
}

#[test]
fn a_graph_is_what_was_recorded() {
    let mut device = open(true);
    let kernel = load(&mut device, "end", END);
    let mut recorder = device.recorder(3).unwrap();
    assert!(recorder.is_empty());
    assert_eq!(recorder.len(), DwordLen(10), "the start");
    recorder.dispatch(&kernel, GpuVa(0), [1, 1, 1]).unwrap();
    assert!(!recorder.is_empty());
    let after_one = recorder.len().0;
    // 29 for the registers of a kernel, 3 of user data behind 2, 5 for the launch (hardware reference §5.3).
    assert_eq!(after_one, 10 + 29 + 2 + 3 + 5);
    recorder.barrier().unwrap();
    assert_eq!(recorder.len().0 - after_one, 10, "a barrier");
    recorder.dispatch(&kernel, GpuVa(0), [1, 1, 1]).unwrap();
    let len = recorder.len().0 as usize;
    let graph = recorder.finish().unwrap();
    let buffer = graph.buffer().unwrap();
    assert_eq!(buffer.len.0, 4 * len as u64);
    let view = buffer.view().unwrap();
    let words: Vec<u32> = (0..len).map(|index| view.load_u32(4 * index)).collect();
    assert_eq!(graph.packets(), packets(&words));
    assert_eq!(crate::Graph::default().packets(), 0);
    assert!(crate::Graph::default().buffer().is_none());
}

/// 32 MiB of dispatches of 49 dwords, after a start of 10.
#[test]
fn a_recorder_has_room_for_what_a_graph_can_hold() {
    let mut device = open(true);
    assert!(device.recorder(171_195).is_ok());
    let Err(error) = device.recorder(171_196) else { panic!("too many") };
    assert_eq!(error.to_string(), "a recorder cannot have 171196 dispatches: a graph has at most 171195");
}

#[test]
fn a_graphs_name_has_each_kernel_once_and_not_too_many() {
    let mut device = open(true);
    let names: Vec<String> = (0..13).map(|index| format!("k{index}")).collect();
    let kernels: Vec<_> = names.iter().map(|name| load(&mut device, name, END)).collect();
    let mut name = |order: &[usize]| {
        let mut recorder = device.recorder(order.len()).unwrap();
        for index in order {
            recorder.dispatch(&kernels[*index], GpuVa(0), [1, 1, 1]).unwrap();
        }
        recorder.finish().unwrap().buffer().unwrap().label().to_owned()
    };
    assert_eq!(name(&[0]), "graph of k0");
    assert_eq!(name(&[1, 0, 1, 1, 0, 2]), "graph of k1, k0, k2");
    let twelve = "graph of k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, k10, k11";
    assert_eq!(name(&(0..12).collect::<Vec<_>>()), twelve);
    assert_eq!(name(&(0..13).collect::<Vec<_>>()), format!("{twelve} and others"));

    let [rsrc1, rsrc2, rsrc3] = resources(4);
    let wave_size = zrt_isa::resources::WaveSize::Wave32;
    let [one, other] = ["one", "other"].map(|name| {
        let parameters = LaunchParameters {
            name,
            entry: kernels[0].entry(),
            rsrc1,
            rsrc2,
            rsrc3,
            wave_size,
            workgroup: [32, 1, 1],
            scratch_bytes: 0,
        };
        device.prepare_launch(&parameters).unwrap()
    });
    let mut recorder = device.recorder(8).unwrap();
    for kernel in [&one, &other, &one, &other] {
        recorder.launch(kernel, &[0, 0], [1, 1, 1]).unwrap();
    }
    assert_eq!(recorder.finish().unwrap().buffer().unwrap().label(), "graph of one, other");
}

#[test]
fn a_full_recorder_takes_neither_dispatch_nor_barrier() {
    let mut device = open(true);
    let kernel = load(&mut device, "end", END);
    let mut recorder = device.recorder(1).unwrap();
    recorder.dispatch(&kernel, GpuVa(0), [1, 1, 1]).unwrap();
    let error = (0..5).find_map(|_| recorder.barrier().err()).unwrap();
    assert!(matches!(error, DeviceError::RecorderFull { capacity: 1 }), "{error}");
}

#[test]
fn what_was_submitted_is_counted() {
    let mut device = open(true);
    let (graph, _kernel) = one_dispatch(&mut device, "end", END, GpuVa(0));
    assert_eq!(device.progress(), 0);
    for count in 1..=3 {
        let ticket = device.submit(&graph).unwrap();
        device.wait(ticket, PATIENCE).unwrap();
        assert_eq!(device.progress(), count);
        let counters = device.counters().unwrap();
        assert_eq!((counters.submissions, counters.dispatches, counters.doorbells), (count, count, count));
        assert!(counters.packets > graph.packets() * count, "those of the ring come on top");
    }
}
