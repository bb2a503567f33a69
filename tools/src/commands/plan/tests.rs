//! Plans of the model inside the program, and the text of a made-up one.

use super::*;

#[test]
fn the_default_model_is_planned_in_whole() {
    let loaded = LoadedModel::open(None).unwrap();
    let options = SessionOptions { slots: 1, context: 64, ..SessionOptions::default() };
    let plan = describe(&loaded, &options, &CARDS_BYTES).unwrap();
    let allocation = |name: &str| plan.allocations.iter().find(|one| one.name == name).unwrap();
    // Keys and values: 8 layers × 64 positions × 2 heads × 64 elements × 4 bytes.
    assert_eq!(allocation("kv_pool").bytes, 2 * 8 * 64 * 2 * 64 * 4);
    assert_eq!(allocation("weights.ffn_down").regions.len(), 8);
    let total: u64 = plan.allocations.iter().map(|one| one.bytes).sum();
    assert_eq!(plan.heaps.iter().map(|heap| heap.bytes).sum::<u64>(), total);
    assert!(total > plan.weight_bytes);
    let allocated: u64 = plan.allocations.iter().filter(|one| one.heap != "host").map(|one| one.bytes).sum();
    assert_eq!(plan.vram_bytes, allocated);
    let cards: Vec<u64> = plan.fits.iter().map(|fit| fit.vram_bytes).collect();
    assert_eq!(cards, [34_359_738_368, 17_179_869_184]);
    let shown = text(&plan);
    assert!(shown.contains("kv_pool") && shown.contains("context 64"), "{shown}");
    assert!(shown.contains(" of 32.00 GiB: fits") && shown.contains(" of 16.00 GiB: fits"), "{shown}");
}

/// One byte less than a plan needs is too little for it, and enough for a little less.
#[test]
fn a_card_that_lacks_a_byte_holds_less() {
    let loaded = LoadedModel::open(None).unwrap();
    let options =
        SessionOptions { slots: 4, context: 512, kv_format: KvFormat::F16, ..SessionOptions::default() };
    let needed = options.memory(&loaded.model).unwrap().vram_len().0;
    let plan = describe(&loaded, &options, &[needed, needed - 1, 1 << 20, u64::MAX]).unwrap();
    let found: Vec<_> = plan.fits.iter().map(|fit| (fit.is_enough, fit.context_max, fit.slots_max)).collect();
    let [exact, less, nothing, all] = found[..] else { panic!("{found:?}") };
    assert_eq!((exact.0, exact.2), (true, Some(4)));
    assert!(exact.1 >= Some(512) && less.1 < Some(512), "{found:?}");
    assert_eq!((less.0, less.2), (false, Some(3)));
    assert_eq!(nothing, (false, None, None));
    assert_eq!(all, (true, Some(loaded.model.config.context), Some(64)));
}

fn placed_plan(options: &SessionOptions, less: u64) -> (LoadedModel, SessionOptions, Plan) {
    let loaded = LoadedModel::open(None).unwrap();
    let whole = options.vram_len(&loaded.model, Placement::default()).unwrap().0;
    let limit = whole - less;
    let options = SessionOptions { vram_max: Some(ByteLen(limit)), ..options.clone() };
    let plan = describe(&loaded, &options, &[limit]).unwrap();
    (loaded, options, plan)
}

/// The plan is what a session allocates, and the driver's own counts grow by as many pages.
#[test]
fn a_session_allocates_what_the_plan_says() {
    let options = SessionOptions { slots: 2, context: 64, groups: Some(2), ..SessionOptions::default() };
    for less in [0, 1_000_000, 2_000_000] {
        let (loaded, options, plan) = placed_plan(&options, less);
        let device =
            zrt_bringup::open(zrt_bringup::DeviceChoice::Virtual, &zrt_bringup::OpenOptions::default())
                .unwrap();
        let used = |device: &zrt_device::Device, memory: &str| -> u64 {
            let path = format!("/sys/class/drm/card0/device/mem_info_{memory}_used");
            String::from_utf8(device.syscalls().read_file(&path).unwrap()).unwrap().trim().parse().unwrap()
        };
        let before = ["vram", "gtt"].map(|memory| used(&device, memory));
        let mut session =
            zrt_engine::session::Session::prepare(device, &loaded.model, &options, &mut |_, _| {}).unwrap();
        let device = &session.resident().device;
        let allocated = device.allocations();
        let pages = |is_vram: fn(&str) -> bool| -> u64 {
            let of = plan.allocations.iter().filter(|one| is_vram(one.heap));
            of.map(|one| one.bytes.next_multiple_of(4096)).sum()
        };
        for entry in &plan.allocations {
            let found: Vec<u64> = allocated
                .iter()
                .filter(|(label, ..)| *label == entry.name)
                .map(|(_, _, len)| len.0)
                .collect();
            assert_eq!(found, [entry.bytes], "{} of {less}", entry.name);
        }
        let grown = ["vram", "gtt"].map(|memory| used(device, memory));
        let expected = [
            pages(|heap| !["host", "host_cached"].contains(&heap)),
            pages(|heap| heap.starts_with("host") && ["host", "host_cached"].contains(&heap)),
        ];
        // Besides: code, tape, indirect buffers, breadcrumbs.
        for (((memory, before), grown), expected) in
            ["vram", "gtt"].iter().zip(before).zip(grown).zip(expected)
        {
            let more = grown - before;
            assert!(
                (expected..expected + (1 << 20)).contains(&more),
                "{memory}: {more} for {expected}, {less}"
            );
        }
        let hosted = plan.heaps.iter().find(|one| one.heap == "host_cached").unwrap().bytes;
        assert_eq!(hosted > 0, less > 0);
        assert!(hosted == 0 || hosted >= less, "{hosted} for {less}");
        assert_eq!(plan.vram_bytes_whole, plan.vram_bytes + hosted);
        let placed = plan.fits[0].placed.as_ref().unwrap();
        assert_eq!((placed.vram_bytes, placed.host_weight_bytes), (plan.vram_bytes, hosted));
    }
}

/// By hand: the model's matrices are Q4_0, 18 bytes for 32 weights, and a step reads those of a layer once.
#[test]
fn a_token_costs_the_bytes_of_each_memory() {
    let options = SessionOptions { slots: 1, context: 64, ..SessionOptions::default() };
    let (loaded, _, plan) = placed_plan(&options, 1);
    let config = &loaded.model.config;
    let (width, forward) = (u64::from(config.width), u64::from(config.feed_forward));
    let (query, kv) =
        (u64::from(config.heads * config.head_size), u64::from(config.kv_heads * config.head_size));
    let elements = width * (2 * query + 2 * kv + 3 * forward);
    let placed = plan.fits[0].placed.as_ref().unwrap();
    assert_eq!((placed.host_layers, placed.has_host_output), (1, false));
    assert_eq!(placed.step_host_weight_bytes, elements / 32 * 18);
    let sum = placed.step_host_weight_bytes + placed.step_vram_weight_bytes;
    assert_eq!(sum, plan.step_weight_bytes);
    // 612 GB/s of memory and 50 GB/s of the bus: bytes by GB/s are nanoseconds.
    let host = placed.step_host_weight_bytes as f64;
    let expected = (placed.step_vram_weight_bytes as f64 / 612.0 + host / 50.0) / 1e6;
    let Range { low, typical, high } = placed.predicted_token_ms_floor;
    assert!((typical - expected).abs() < 1e-12 && low < typical && typical < high);
    let shown = text(&plan);
    for part in
        ["the last 1 of 8 layers", "PCIe 5.0 x16", "predicted", "does not fit", "host_weights.ffn_gate"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

/// A limit below what must be in VRAM is told with what would fit.
#[test]
fn a_limit_under_which_nothing_fits_is_told() {
    let loaded = LoadedModel::open(None).unwrap();
    let options = SessionOptions { slots: 4, context: 512, ..SessionOptions::default() };
    let least = options.vram_len(&loaded.model, Placement::all_in_host(&loaded.model)).unwrap().0;
    let plan = describe(&loaded, &options, &[least, least - 1]).unwrap();
    let [exact, less] = &plan.fits[..] else { panic!("two cards") };
    assert!(exact.placed.as_ref().is_some_and(|placed| placed.has_host_output && placed.host_layers == 8));
    assert!(exact.host_context_max >= Some(512) && exact.host_slots_max == Some(4));
    assert!(less.placed.is_none() && less.host_context_max < Some(512) && less.host_slots_max == Some(3));
    let shown = text(&plan);
    assert!(shown.contains("with every matrix in host memory: does not fit"), "{shown}");
    let refused = SessionOptions { vram_max: Some(ByteLen(least - 1)), ..options }.plan(&loaded.model);
    let says = refused.expect_err("too little").to_string();
    let longest = less.host_context_max.unwrap();
    assert!(says.contains(&format!("with 4 slots a context of {longest} fits")), "{says}");
}

fn placed(host_weight_bytes: u64, host: (u32, bool, bool), step_host_weight_bytes: u64) -> Placed {
    let (host_layers, has_host_embedding, has_host_output) = host;
    Placed {
        vram_bytes: 4 << 20,
        host_weight_bytes,
        host_layers,
        layers: 8,
        has_host_embedding,
        has_host_output,
        step_vram_weight_bytes: 1024,
        step_host_weight_bytes,
        predicted_token_ms_floor: Range { low: 1.25, typical: 1.5, high: 2.0 },
    }
}

fn fit_of(vram_bytes: u64, is_enough: bool, most: [Option<u32>; 4], placed: Option<Placed>) -> Fit {
    let [context_max, slots_max, host_context_max, host_slots_max] = most;
    Fit { vram_bytes, is_enough, context_max, slots_max, host_context_max, host_slots_max, placed }
}

/// Heaps with nothing in them are left out; each card has a line, and what it takes to make room has another.
#[test]
fn the_text_of_a_plan_says_what_fits_and_what_a_token_costs() {
    let region = || RegionEntry { name: String::new(), offset: 0, bytes: 1 };
    let allocation = |name: &str, heap, bytes, regions: Vec<RegionEntry>| AllocationEntry {
        name: name.to_owned(),
        heap,
        bytes,
        regions,
    };
    let instruction = || InstructionEntry { operation: String::new(), layer: None, barrier_before: false };
    let heap = |heap, bytes| HeapSize { heap, bytes };
    let plan = |slots| Plan {
        model_filename: "m.gguf".to_owned(),
        model_type: "qwen3 1 M".to_owned(),
        context: 64,
        slots,
        type_kv: "f16",
        activations: "a8",
        weight_bytes: 0,
        step_weight_bytes: 2048,
        vram_bytes: 5 << 20,
        vram_bytes_whole: 6 << 20,
        fits: vec![
            fit_of(8 << 20, true, [Some(96), Some(3), None, None], Some(placed(0, (0, false, false), 0))),
            fit_of(
                5 << 20,
                false,
                [None, None, Some(128), Some(9)],
                Some(placed(2 << 20, (3, true, true), 2048)),
            ),
            fit_of(4 << 20, false, [None; 4], Some(placed(1, (0, true, false), 2048))),
            fit_of(1 << 20, false, [None; 4], None),
        ],
        heaps: vec![heap("vram", 3 << 20), heap("host", 0), heap("host_cached", 1)],
        allocations: vec![
            allocation("kv_pool", "vram", 2 << 20, vec![region(), region()]),
            allocation("tape", "host", 3, Vec::new()),
        ],
        instructions: vec![instruction(), instruction()],
        barriers: 1,
    };
    let token = "  a token takes at least 1.50 ms (1.25 .. 2.00), predicted: 1.00 KiB from VRAM";
    let expected = format!(
        "m.gguf (qwen3 1 M), 2 slots of context 64, keys and values f16, activations a8

| allocation | heap | parts |     size |
| ---------- | ---- | ----: | -------: |
| kv_pool    | vram |     2 | 2.00 MiB |
| tape       | host |     0 |      3 B |

in all 3.00 MiB vram, 1 B host_cached

6.00 MiB of 8.00 MiB: fits; largest context with 2 slots: 96; most slots of context 64: 3
{token}
6.00 MiB of 5.00 MiB: does not fit; no context fits; no slot fits
  4.00 MiB with 2.00 MiB in host memory: the embedding, the last 3 of 8 layers, the output matrix; largest context \
         with 2 slots: 128; most slots of context 64: 9
{token} and 2.00 KiB over PCIe 5.0 x16
6.00 MiB of 4.00 MiB: does not fit; no context fits; no slot fits
  4.00 MiB with 1 B in host memory: the embedding; no context fits; no slot fits
{token} and 2.00 KiB over PCIe 5.0 x16
6.00 MiB of 1.00 MiB: does not fit; no context fits; no slot fits
  with every matrix in host memory: does not fit; no context fits; no slot fits
not counted: code and tape (below 1 MiB), and what driver and desktop take

one step: 2 dispatches, 1 barriers, 2.00 KiB of weights read
"
    );
    assert_eq!(text(&plan(2)), expected);
    assert!(text(&plan(1)).starts_with("m.gguf (qwen3 1 M), 1 slot of context 64, keys"));
}

#[test]
fn sizes_of_cards_have_a_unit() {
    assert_eq!((size("16GiB"), size("3K")), (Ok(16 << 30), Ok(3072)));
    assert_eq!(size("16"), Err("a size is a number with KiB, MiB or GiB".to_owned()));
}

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    arguments: Arguments,
}

/// Every option of the line is in the session; a limit is, unless nothing fits under it.
#[test]
fn a_session_is_planned_as_the_line_says() {
    let loaded = LoadedModel::open(None).unwrap();
    let options = |words: &str| {
        let words = ["plan"].into_iter().chain(words.split_whitespace());
        let line = <Line as clap::Parser>::try_parse_from(words).unwrap();
        session_options(&line.arguments, &loaded.model)
    };
    let found = options("--slots 3 --context 33 --kv f16 --activations a8").unwrap();
    assert_eq!((found.slots, found.context, found.waiting_max), (3, 33, 0));
    assert_eq!((found.kv_format, found.activations.name()), (KvFormat::F16, "a8"));
    assert_eq!(found.vram_max, None);
    assert_eq!(options("").unwrap().context, loaded.model.config.context);
    assert_eq!(options("--context 2 --vram 1GiB").unwrap().vram_max, Some(ByteLen(1 << 30)));
    assert_eq!(options("--context 2 --vram 1KiB").unwrap().vram_max, None);
    assert!(matches!(options("--context 1"), Err(ToolError::Option { option: "--context", .. })));
    let longer = loaded.model.config.context + 1;
    assert!(matches!(options(&format!("--context {longer}")), Err(ToolError::Context { .. })));
}
