//! The texts of findings about in-order results, as a reader sees them.

use super::*;

#[test]
fn a_finding_is_one_line() {
    let mut walk = Walk::new(&launch(WaveSize::Wave32));
    walk.run(&[
        0xee054000, 0x00000002, 0x00000000, // global_load_b64 v[2:3], v0, s[0:1]
        0x7e080303, // v_mov_b32_e32 v4, v3
        0xee068000, 0x03000000, 0x00000000, // global_store_b32 v0, v6, s[0:1]
        0x7e0a0307, // v_mov_b32_e32 v5, v7
        0xee068000, 0x02800000, 0x00000000, // global_store_b32 v0, v5, s[0:1]
    ]);
    let texts: Vec<String> = walk.findings.iter().map(ToString::to_string).collect();
    let expected = [
        "counters: pc 0xc: v3 is read while its result may still be under way, from pc 0x0; needs \
         s_wait_loadcnt 0x0 before it",
        "uninitialised: pc 0x10: v6 (lane 0) is read, but nothing has written it; write it first",
        "uninitialised: pc 0x20: v5 (lane 0) is used, but was computed from v7, which nothing has written, from pc 0x1c; \
         write it first",
    ];
    assert_eq!(texts, expected);
    let names: Vec<&str> = walk.findings.iter().map(|finding| finding.defect.name()).collect();
    assert_eq!(names, ["read-outstanding", "unwritten", "undefined"]);
}
