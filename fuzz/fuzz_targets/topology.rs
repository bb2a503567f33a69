//! Arbitrary files as the driver's folder in sysfs: walking it ends in a topology or an error, and the nodes of a
//! topology can be used.
//!
//! The input is pairs of a path below the folder and what the file holds, each followed by a zero byte. A file that
//! occurs several times changes from one read to the next.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use zrt_kmd::topology::TOPOLOGY_ROOT;
use zrt_kmd::{
    Errno, Fd, Mapping, Protection, QueueBufferSizes, Reservation, Syscalls, Topology, UserPointer,
};

/// A file that holds this cannot be opened, as if a device cgroup hides a node.
const HIDDEN: &[u8] = b"EPERM";

/// Files by their paths: the contents still to be read, the next one last.
struct Files(Mutex<BTreeMap<String, Vec<Vec<u8>>>>);

impl Files {
    fn new(bytes: &[u8]) -> Files {
        let mut files: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
        let mut parts = bytes.split(|byte| *byte == 0);
        while let (Some(path), Some(content)) = (parts.next(), parts.next()) {
            let path = format!("{TOPOLOGY_ROOT}/{}", String::from_utf8_lossy(path));
            files.entry(path).or_default().insert(0, content.to_vec());
        }
        Files(Mutex::new(files))
    }
}

impl Syscalls for Files {
    fn open(&self, _: &str) -> Result<Fd, Errno> {
        Err(Errno::ENOENT)
    }
    fn close(&self, _: Fd) -> Result<(), Errno> {
        Err(Errno::EBADF)
    }
    fn ioctl(&self, _: Fd, _: u32, _: UserPointer<'_>) -> Result<i32, Errno> {
        Err(Errno::EBADF)
    }
    fn reserve(&self, _: usize, _: usize) -> Result<Reservation, Errno> {
        Err(Errno::ENOMEM)
    }
    fn map(
        &self,
        _: Fd,
        _: u64,
        _: usize,
        _: Protection,
        _: Option<(&Reservation, usize)>,
    ) -> Result<Mapping, Errno> {
        Err(Errno::EBADF)
    }
    fn read_file(&self, path: &str) -> Result<Vec<u8>, Errno> {
        let mut files = self.0.lock().expect("no look panics");
        let looks = files.get_mut(path).ok_or(Errno::ENOENT)?;
        let content = if looks.len() > 1 { looks.pop() } else { looks.last().cloned() };
        content.filter(|content| content != HIDDEN).ok_or(Errno::EPERM)
    }
    fn read_directory(&self, path: &str) -> Result<Vec<String>, Errno> {
        let files = self.0.lock().expect("no look panics");
        let below = files.keys().filter_map(|file| file.strip_prefix(path)?.strip_prefix('/'));
        let names: BTreeSet<&str> = below.filter_map(|rest| rest.split('/').next()).collect();
        if names.is_empty() { Err(Errno::ENOENT) } else { Ok(names.into_iter().map(str::to_owned).collect()) }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let topology = match Topology::read(&Files::new(bytes)) {
        Ok(topology) => topology,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert!(topology.gpus.windows(2).all(|pair| pair[0].node < pair[1].node), "each node once");
    for node in &topology.gpus {
        assert!(node.gpu_id != 0 && node.compute_units() >= 1);
        let _ = (node.vram_bytes(), node.has_large_bar(), QueueBufferSizes::of(node));
        assert!(node.render_node_path().starts_with("/dev/dri/renderD"));
    }
    match topology.first_supported() {
        Ok(node) => assert!(node.is_supported()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
