//! The render node's device folder in sysfs: PCI identity, memory sizes, IP versions.
//!
//! Contract: only files that clients of this board are known to read (hardware reference §1.3).

use crate::kernel::board;
use crate::kernel::files::FileTree;
use crate::kernel::sizes::MemorySizes;

/// The device folder.
pub(crate) const DEVICE: &str = "/sys/class/drm/renderD128/device";

/// One hardware block of the IP discovery table.
struct IpBlock {
    /// Hardware id, and the name of the link to it.
    id: u32,
    name: &'static str,
    version: [u32; 3],
    bases: &'static [u32],
}

/// Hardware reference §1.3. It does not contain SDMA's bases: one made-up base gives the file the right form.
const IP_BLOCKS: [IpBlock; 3] = [
    IpBlock { id: 11, name: "GC", version: [12, 0, 1], bases: &[0x1260, 0xA000, 0x1C000, 0x0240_2C00] },
    IpBlock { id: 42, name: "SDMA0", version: [7, 0, 1], bases: &[0x1260] },
    IpBlock {
        id: 108,
        name: "NBIF",
        version: [6, 3, 1],
        bases: &[0x0, 0x14, 0xD20, 0x10400, 0x0241_B000, 0x0404_0000],
    },
];

/// Adds the device's files.
pub(crate) fn add(
    tree: &mut FileTree,
    sizes: MemorySizes,
    used_bytes: impl Fn() -> (u64, u64) + Clone + Send + Sync + 'static,
) {
    for alias in [
        "/sys/class/drm/card0/device".to_owned(),
        "/sys/dev/char/226:128/device".to_owned(),
        format!("/sys/bus/pci/devices/{}", board::PCI_ADDRESS),
    ] {
        tree.add_alias(alias, DEVICE);
    }
    add_identity(tree);
    add_nodes(tree);
    add_memory_sizes(tree, sizes, used_bytes);
    add_ip_discovery(tree);
    // Module parameters that affect the queues (hardware reference §3.2): "auto" disables user queues.
    tree.add("/sys/module/amdgpu/parameters/user_queue", "-1\n");
    tree.add("/sys/module/amdgpu/parameters/mes", "1\n");
}

fn add_identity(tree: &mut FileTree) {
    let mut add = |name: &str, text: String| tree.add(format!("{DEVICE}/{name}"), text);
    add("vendor", format!("0x{:04x}\n", board::VENDOR_ID));
    add("device", format!("0x{:04x}\n", board::DEVICE_ID));
    add("subsystem_vendor", format!("0x{:04x}\n", board::VENDOR_ID));
    add("subsystem_device", "0x0000\n".to_owned());
    add("revision", "0xc0\n".to_owned());
    // Display controller, VGA compatible.
    add("class", "0x030000\n".to_owned());
    add("numa_node", "-1\n".to_owned());
    add("current_link_speed", "32.0 GT/s PCIe\n".to_owned());
    add("current_link_width", "16\n".to_owned());
    for (name, version) in board::OTHER_FIRMWARE.into_iter().chain([("mec", board::MEC_FIRMWARE)]) {
        add(&format!("fw_version/{name}_fw_version"), format!("0x{version:08x}\n"));
    }
    // A display port with nothing connected, and an IOMMU domain in passthrough mode: chosen.
    add("drm/card0/card0-DP-1/status", "disconnected\n".to_owned());
    add("iommu_group/type", "identity\n".to_owned());
    add(
        "uevent",
        format!(
            "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID={:04X}:{:04X}\nPCI_SLOT_NAME={}\n",
            board::VENDOR_ID,
            board::DEVICE_ID,
            board::PCI_ADDRESS
        ),
    );
}

/// The folder of the device's DRM nodes: libdrm uses it to recognise a DRM device, and its names to find the render
/// node.
fn add_nodes(tree: &mut FileTree) {
    for (name, minor) in [("card0", 0), (board::RENDER_NAME, board::RENDER_MINOR)] {
        let node = format!("{DEVICE}/drm/{name}");
        tree.add(format!("{node}/dev"), format!("{}:{minor}\n", board::DRM_MAJOR));
        tree.add(
            format!("{node}/uevent"),
            format!("MAJOR={}\nMINOR={minor}\nDEVNAME=dri/{name}\nDEVTYPE=drm_minor\n", board::DRM_MAJOR),
        );
    }
}

fn add_memory_sizes(
    tree: &mut FileTree,
    sizes: MemorySizes,
    used_bytes: impl Fn() -> (u64, u64) + Clone + Send + Sync + 'static,
) {
    tree.add(format!("{DEVICE}/mem_info_vram_total"), format!("{}\n", sizes.vram_bytes));
    tree.add(format!("{DEVICE}/mem_info_vis_vram_total"), format!("{}\n", sizes.visible_bytes()));
    tree.add(format!("{DEVICE}/mem_info_gtt_total"), format!("{}\n", sizes.gtt_bytes));
    let vram = used_bytes.clone();
    tree.add_made(format!("{DEVICE}/mem_info_vram_used"), move || format!("{}\n", vram().0));
    tree.add_made(format!("{DEVICE}/mem_info_gtt_used"), move || format!("{}\n", used_bytes().1));
    tree.add(format!("{DEVICE}/resource"), resource(sizes));
}

/// `start end flags` of each region: BAR 0 is the VRAM window, BAR 2 the doorbells, BAR 5 the registers.
fn resource(sizes: MemorySizes) -> String {
    let window = sizes.window_bytes();
    let memory_64_prefetchable = 0x0014_220C_u64;
    let regions = [
        (0x78_0000_0000, window, memory_64_prefetchable),
        (0, 0, 0),
        (0x80_0000_0000, 256 << 20, memory_64_prefetchable),
        (0, 0, 0),
        (0, 0, 0),
        (0x9000_0000, 512 << 10, 0x0004_0200),
    ];
    regions
        .into_iter()
        .map(|(start, len, flags): (u64, u64, u64)| {
            let end = if len == 0 { 0 } else { start + len - 1 };
            format!("0x{start:016x} 0x{end:016x} 0x{flags:016x}\n")
        })
        .collect()
}

fn add_ip_discovery(tree: &mut FileTree) {
    let die = format!("{DEVICE}/ip_discovery/die/0");
    tree.add(format!("{die}/num_ips"), format!("{}\n", IP_BLOCKS.len()));
    for block in IP_BLOCKS {
        let folder = format!("{die}/{}", block.id);
        tree.add_alias(format!("{die}/{}", block.name), folder.clone());
        let [major, minor, revision] = block.version;
        for (name, value) in [
            ("hw_id", block.id),
            ("num_instance", 0),
            ("major", major),
            ("minor", minor),
            ("revision", revision),
            ("num_base_addresses", block.bases.len() as u32),
        ] {
            tree.add(format!("{folder}/0/{name}"), format!("{value}\n"));
        }
        tree.add(format!("{folder}/0/harvest"), "0x0\n");
        let bases: String = block.bases.iter().map(|base| format!("0x{base:08X}\n")).collect();
        tree.add(format!("{folder}/0/base_addr"), bases);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn tree(config: &Config) -> FileTree {
        let mut tree = FileTree::default();
        add(&mut tree, MemorySizes::new(config), || (1, 2));
        tree
    }

    fn read(tree: &FileTree, path: &str) -> String {
        String::from_utf8(tree.read(path).unwrap()).unwrap()
    }

    /// Names and texts of the device folder; identity and firmware of hardware reference §1.2 and §1.3.
    const FILES: [(&str, &str); 26] = [
        ("vendor", "0x1002\n"),
        ("device", "0x7551\n"),
        ("subsystem_vendor", "0x1002\n"),
        ("subsystem_device", "0x0000\n"),
        ("revision", "0xc0\n"),
        ("class", "0x030000\n"),
        ("numa_node", "-1\n"),
        ("current_link_speed", "32.0 GT/s PCIe\n"),
        ("current_link_width", "16\n"),
        // 3010 of the captured board; the others as a board with another one has them.
        ("fw_version/mec_fw_version", "0x00000bc2\n"),
        ("fw_version/me_fw_version", "0x00000b18\n"),
        ("fw_version/pfp_fw_version", "0x00000b54\n"),
        ("fw_version/rlc_fw_version", "0x00be7da0\n"),
        ("fw_version/mes_fw_version", "0x00000081\n"),
        ("fw_version/mes_kiq_fw_version", "0x00000081\n"),
        ("drm/card0/card0-DP-1/status", "disconnected\n"),
        ("drm/card0/dev", "226:0\n"),
        ("drm/card0/uevent", "MAJOR=226\nMINOR=0\nDEVNAME=dri/card0\nDEVTYPE=drm_minor\n"),
        ("drm/renderD128/dev", "226:128\n"),
        ("drm/renderD128/uevent", "MAJOR=226\nMINOR=128\nDEVNAME=dri/renderD128\nDEVTYPE=drm_minor\n"),
        ("iommu_group/type", "identity\n"),
        ("uevent", "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:7551\nPCI_SLOT_NAME=0000:05:00.0\n"),
        ("mem_info_vram_total", "34208743424\n"),
        ("mem_info_gtt_total", "17179869184\n"),
        ("mem_info_vram_used", "1\n"),
        ("mem_info_gtt_used", "2\n"),
    ];

    #[test]
    fn the_device_folder_has_these_files_under_each_of_its_names() {
        let tree = tree(&Config::default());
        for folder in [
            "/sys/class/drm/renderD128/device",
            "/sys/class/drm/card0/device",
            "/sys/dev/char/226:128/device",
            "/sys/bus/pci/devices/0000:05:00.0",
        ] {
            for (name, text) in FILES {
                assert_eq!(read(&tree, &format!("{folder}/{name}")), text, "{folder}/{name}");
            }
        }
        let parameters = "/sys/module/amdgpu/parameters";
        let values = ["user_queue", "mes"].map(|name| read(&tree, &format!("{parameters}/{name}")));
        assert_eq!(values, ["-1\n", "1\n"]);
    }

    /// The window is a power of two that holds all VRAM, or 256 MiB; its end is its last byte.
    #[test]
    fn the_bar_decides_what_the_processor_sees() {
        let regions = |window: &str| {
            let empty = "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";
            let doorbells = "0x0000008000000000 0x000000800fffffff 0x000000000014220c\n";
            let registers = "0x0000000090000000 0x000000009007ffff 0x0000000000040200\n";
            format!("{window}{empty}{doorbells}{empty}{empty}{registers}")
        };
        let large = "0x0000007800000000 0x0000007fffffffff 0x000000000014220c\n";
        let small = "0x0000007800000000 0x000000780fffffff 0x000000000014220c\n";
        for (large_bar, visible, window) in [(true, "34208743424\n", large), (false, "268435456\n", small)] {
            let tree = tree(&Config { large_bar, ..Config::default() });
            assert_eq!(read(&tree, &format!("{DEVICE}/mem_info_vis_vram_total")), visible);
            assert_eq!(read(&tree, &format!("{DEVICE}/resource")), regions(window));
        }
    }

    /// Hardware reference §1.3: ids, versions and bases.
    #[test]
    fn blocks_are_found_by_number_and_by_name() {
        let tree = tree(&Config::default());
        let die = "/sys/class/drm/renderD128/device/ip_discovery/die/0";
        assert_eq!(read(&tree, &format!("{die}/num_ips")), "3\n");
        assert_eq!(tree.list(die).unwrap(), ["108", "11", "42", "GC", "NBIF", "SDMA0", "num_ips"]);
        let nbif = "0x00000000\n0x00000014\n0x00000D20\n0x00010400\n0x0241B000\n0x04040000\n";
        for (id, name, version, count, bases) in [
            ("11", "GC", ["12", "0", "1"], "4", "0x00001260\n0x0000A000\n0x0001C000\n0x02402C00\n"),
            ("42", "SDMA0", ["7", "0", "1"], "1", "0x00001260\n"),
            ("108", "NBIF", ["6", "3", "1"], "6", nbif),
        ] {
            for folder in [id, name] {
                let file = |name: &str| read(&tree, &format!("{die}/{folder}/0/{name}"));
                let [major, minor, revision] = ["major", "minor", "revision"].map(file);
                assert_eq!([major.trim(), minor.trim(), revision.trim()], version, "{folder}");
                assert_eq!(file("hw_id"), format!("{id}\n"));
                assert_eq!((file("num_instance").as_str(), file("harvest").as_str()), ("0\n", "0x0\n"));
                assert_eq!(file("num_base_addresses"), format!("{count}\n"));
                assert_eq!(file("base_addr"), bases, "{folder}");
            }
        }
    }
}
