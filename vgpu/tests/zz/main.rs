#![allow(clippy::unwrap_used, dead_code)]
#[path = "../driver/client.rs"] mod client;
use client::*;
const TRIPLE: [u32; 15] = [0x3600_00FF, 0x0000_03FF, 0x8402_8575, 0x4A00_0002, 0x3002_0082, 0xEE05_0000, 2, 1, 0xBFC0_0000, 0xD60B_0002, 0x0205_0702, 0xEE06_8000, 0x0100_0000, 1, 0xBFB0_0000];
#[test] fn lat() {
    let client = Client::open();
    let c = client.buffer_with(4096, VRAM | PUBLIC | EXECUTABLE | WRITABLE, true);
    TRIPLE.iter().enumerate().for_each(|(i, w)| c.view().store_u32(i * 4, *w));
    let data = client.buffer(1 << 20); let sig = client.buffer(4096);
    for groups in [1u32, 64, 1024] {
    let mut s = vec![];
    for _ in 0..150 {
        s.extend([0xC002_7600, 0x20C, (c.va >> 8) as u32, (c.va >> 40) as u32, 0xC002_7600, 0x212, 0x600F_0000, 0x84, 0xC001_7600, 0x228, 0, 0xC002_7600, 0x240, data.va as u32, (data.va >> 32) as u32, 0xC003_7600, 0x207, 32, 1, 1, 0xC003_1500, groups, 1, 1, 0x8005, 0xC000_4600, 0x407, 0xC006_5800, 0, !0, 0xFF_FFFF, 0, 0, 0xA, 0x380]);
    }
    let ib = client.buffer(65536);
    s.iter().enumerate().for_each(|(i, w)| ib.view().store_u32(i * 4, *w));
    let mut q = Queue::new(&client, 4096);
    let mut best = u128::MAX; let mut total = 0;
    for r in 0..100u32 { let mut p = indirect(ib.va, s.len() as u32).to_vec(); let v = groups * 1000 + r + 1; p.extend(fence(sig.va, v));
        while q.written - q.rptr() > 900 {}
        let t = std::time::Instant::now(); q.submit(&p); while sig.view().load_u32_acquire(0) != v { std::hint::spin_loop(); } let e = t.elapsed().as_nanos(); best = best.min(e); total += e; }
    println!("groups {groups}: 150 dependent dispatches, best {} us, mean {} us", best / 1000, total / 100_000);
    q.destroy(&client).unwrap();
    }
    let mut q = Queue::new(&client, 4096);
    let mut best = u128::MAX; let mut total = 0;
    for r in 0..1000u32 { let v = 0x7000_0000 + r; while q.written - q.rptr() > 900 {} let t = std::time::Instant::now(); q.submit(&fence(sig.va, v)); while sig.view().load_u32_acquire(0) != v { std::hint::spin_loop(); } let e = t.elapsed().as_nanos(); best = best.min(e); total += e; }
    println!("fence round trip best {best} ns mean {} ns", total / 1000);
}
