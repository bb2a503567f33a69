//! The mistakes in assembly, as [`super::table`] has those in Rust.
//!
//! The blobs are made anew of each mistake; the tests are those of the kernels, or of whole sessions.

use super::table::Expected::Killed;
use super::table::Mutant;

const PLANNING: &[&str] = &["-p", "zrt-asm", "--test", "planning"];
const SAMPLING: &[&str] = &["-p", "zrt-asm", "--test", "sampling", "--", "extras::", "bounds::"];
const SAMPLING_CHECKED: &[&str] =
    &["-p", "zrt-tests", "--test", "sampling_unchecked", "checks_finds_nothing"];
const KV_WRITE: &[&str] = &["-p", "zrt-asm", "--test", "attention", "kv_write"];
const INTEGERS: &[&str] = &["-p", "zrt-asm", "--test", "integers"];
const MATMUL: &[&str] = &["-p", "zrt-asm", "--test", "matmul"];
const MEGAKERNEL: &[&str] = &["-p", "zrt-tests", "--test", "megakernel", "workgroups_are_clean"];

/// The rows, by body.
pub const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "asm-plan-no-trailer",
        file: "asm/gfx1201/body/plan_rings.inc",
        find: "\tv_not_b32_e32 v[V_EVENT_END+3], v[V_EVENT_TAG] ",
        replace: "\tv_mov_b32_e32 v[V_EVENT_END+3], v[V_EVENT_TAG] ",
        test: PLANNING,
        expected: Killed,
    },
    Mutant {
        name: "asm-plan-header-before-the-rest",
        file: "asm/gfx1201/body/plan_rings.inc",
        find: "\tglobal_wb scope:SCOPE_SYS\n\ts_wait_storecnt 0x0\n\tPLAN_HEADER V_FIRST, PENDING_NUMBER\n",
        replace: "\tPLAN_HEADER V_FIRST, PENDING_NUMBER\n",
        test: PLANNING,
        expected: Killed,
    },
    Mutant {
        name: "asm-plan-cancel-keeps-output",
        file: "asm/gfx1201/body/plan.inc",
        find: "\tv_mov_b32_e32 v[\\b+OUTPUT_OF_STEP], 0\n\tv_mov_b32_e32 v[\\b+PENDING], 0\n",
        replace: "\tv_mov_b32_e32 v[\\b+PENDING], 0\n",
        test: PLANNING,
        expected: Killed,
    },
    Mutant {
        name: "asm-plan-tag-zero",
        file: "asm/gfx1201/body/plan_rings.inc",
        find: "\ts_max_u32 s[S_INPUT_TAG], s[S_INPUT_TAG], 1\n",
        replace: "",
        test: PLANNING,
        expected: Killed,
    },
    Mutant {
        name: "asm-plan-held-slot-gets-rows",
        file: "asm/gfx1201/body/plan_rows.inc",
        find: "\tv_cmpx_ne_u32_e32 v[\\b+HOLD], v[\\b+SERIAL]\n",
        replace: "",
        test: PLANNING,
        expected: Killed,
    },
    Mutant {
        name: "asm-kv-write-wrong-page",
        file: "asm/gfx1201/body/kv_write.inc",
        find: "\ts_lshr_b32 s4, s[S_POSITION], PAGE_TOKENS_LOG2\n",
        replace: "\ts_lshr_b32 s4, s[S_POSITION], PAGE_TOKENS_LOG2+1\n",
        test: KV_WRITE,
        expected: Killed,
    },
    Mutant {
        name: "asm-kv-write-wrong-row-of-page",
        file: "asm/gfx1201/body/kv_write.inc",
        find: "\ts_and_b32 s[S_POSITION], s[S_POSITION], PAGE_TOKENS-1\n",
        replace: "\ts_and_b32 s[S_POSITION], s[S_POSITION], PAGE_TOKENS-2\n",
        test: KV_WRITE,
        expected: Killed,
    },
    Mutant {
        name: "asm-mega-signal-before-stores",
        file: "asm/gfx1201/mega.s",
        find: ".macro GROUP_RELEASE\n\ts_wait_storecnt 0x0\n",
        replace: ".macro GROUP_RELEASE\n",
        test: MEGAKERNEL,
        expected: Killed,
    },
    Mutant {
        name: "asm-mega-no-acquire",
        file: "asm/gfx1201/mega.s",
        find: "\tWAIT_FOR S_TARGETS+8\n\tglobal_inv scope:SCOPE_DEV\n\ts_wait_loadcnt 0x0\n",
        replace: "\tWAIT_FOR S_TARGETS+8\n",
        test: MEGAKERNEL,
        expected: Killed,
    },
    Mutant {
        name: "asm-formats-scales-of-halves-swapped",
        file: "asm/gfx1201/include/formats.inc",
        find: "\tv_subrev_nc_u32_e32 v[\\low], 32, v[\\t]\n\tv_subrev_nc_u32_e32 v[\\high], 32, v[\\t+1]\n",
        replace: "\tv_subrev_nc_u32_e32 v[\\low], 32, v[\\t+1]\n\tv_subrev_nc_u32_e32 v[\\high], 32, v[\\t]\n",
        test: INTEGERS,
        expected: Killed,
    },
    Mutant {
        name: "asm-formats-fifth-bits-of-the-next-quad",
        file: "asm/gfx1201/include/formats.inc",
        find: "v_lshrrev_b32_e32 v[\\u], \\j-4, v[\\high]",
        replace: "v_lshrrev_b32_e32 v[\\u], \\j-3, v[\\high]",
        test: INTEGERS,
        expected: Killed,
    },
    Mutant {
        name: "asm-formats-minima-of-tiles-added",
        file: "asm/gfx1201/body/matmul_format.inc",
        find: "\tv_mul_f32_e32 v18, -1.0, v18\n",
        replace: "",
        test: INTEGERS,
        expected: Killed,
    },
    Mutant {
        name: "asm-formats-blocks-beyond-the-row",
        file: "asm/gfx1201/body/matmul_format.inc",
        find: "\tv_min_u32_e32 v14, s[S_LAST_BLOCK], v14                 // blocks that the row lacks: the last one's\n",
        replace: "",
        test: INTEGERS,
        expected: Killed,
    },
    Mutant {
        name: "asm-formats-codes-without-the-upper-half",
        file: "asm/gfx1201/include/formats.inc",
        find: "v_and_b32_e32 v[\\to], 0x04040404, v[\\to]",
        replace: "v_and_b32_e32 v[\\to], 0, v[\\to]",
        test: INTEGERS,
        expected: Killed,
    },
    Mutant {
        name: "asm-plan-tops-of-other-events",
        file: "asm/gfx1201/body/plan_rings.inc",
        find: "\tv_cmpx_eq_u32_e32 EVENT_TOKEN, v22\n",
        replace: "",
        test: PLANNING,
        expected: Killed,
    },
    Mutant {
        name: "asm-plan-tops-of-the-entry-before",
        file: "asm/gfx1201/body/plan_rings.inc",
        find: "v_mul_u32_u24_e32 v[V_EVENT_OFFSET], TOP_TOKENS_BYTES/EVENT_LINE_BYTES,",
        replace: "v_mul_u32_u24_e32 v[V_EVENT_OFFSET], TOP_TOKENS_BYTES/EVENT_LINE_BYTES-1,",
        test: PLANNING,
        expected: Killed,
    },
    Mutant {
        name: "asm-plan-extras-are-not-admitted",
        file: "asm/gfx1201/body/plan_rings.inc",
        find: "v[V_COMMAND_SAMPLING+8], s[S_SLOTS",
        replace: "v[V_COMMAND_SAMPLING+7], s[S_SLOTS",
        test: PLANNING,
        expected: Killed,
    },
    Mutant {
        name: "asm-sample-presence-for-each",
        file: "asm/gfx1201/body/sample_extras.inc",
        find: "v_fma_f32 v5, v5, s[S_FREQUENCY], s[S_PRESENCE]",
        replace: "v_fma_f32 v5, v5, s[S_PRESENCE], s[S_FREQUENCY]",
        test: SAMPLING,
        expected: Killed,
    },
    Mutant {
        name: "asm-sample-bias-of-the-next",
        file: "asm/gfx1201/body/sample_extras.inc",
        find: "offset:EXTRAS_BIAS+4-BIAS_BYTES",
        replace: "offset:EXTRAS_BIAS+4",
        test: SAMPLING,
        expected: Killed,
    },
    Mutant {
        name: "asm-sample-no-wait-for-counts",
        file: "asm/gfx1201/body/sample_extras.inc",
        find: ".Lnamed\\@:\n\ts_mov_b32 exec_lo, -1\n\ts_wait_storecnt 0x0\n",
        replace: ".Lnamed\\@:\n\ts_mov_b32 exec_lo, -1\n",
        test: SAMPLING_CHECKED,
        expected: Killed,
    },
    Mutant {
        name: "asm-sample-penalty-of-the-other-sign",
        file: "asm/gfx1201/body/sample_extras.inc",
        find: "v_cndmask_b32_e32 v6, v19, v18, vcc_lo",
        replace: "v_cndmask_b32_e32 v6, v18, v19, vcc_lo",
        test: SAMPLING,
        expected: Killed,
    },
    Mutant {
        name: "asm-sample-centre-one-bit-short",
        file: "asm/gfx1201/body/sample_extras.inc",
        find: ".set CENTRE_BITS, 24",
        replace: ".set CENTRE_BITS, 23",
        test: SAMPLING,
        expected: Killed,
    },
    Mutant {
        name: "asm-sample-centre-of-all-tokens",
        file: "asm/gfx1201/body/sample_extras.inc",
        find: "\tv_cmpx_ge_u64_e32 s[S_VECTOR_LIMIT:S_VECTOR_LIMIT+1], v[V_KEY:V_KEY+1]\n\ts_cbranch_execz .Lnone\\@\n\tv_sub_f32",
        replace: "\tv_sub_f32",
        test: SAMPLING,
        expected: Killed,
    },
    Mutant {
        name: "asm-sample-typical-keeps-its-maximum",
        file: "asm/gfx1201/body/sample.inc",
        find: "\tSAMPLE_DROP \\scope\n\ts_branch .Llargest\\@\n",
        replace: "\tSAMPLE_DROP \\scope\n\ts_branch .Lnext\\@\n",
        test: SAMPLING,
        expected: Killed,
    },
    Mutant {
        name: "asm-sample-typical-without-a-magnitude",
        file: "asm/gfx1201/body/sample_extras.inc",
        find: "\tv_and_b32_e32 v24, 0x7fffffff, v24\n",
        replace: "",
        test: SAMPLING,
        expected: Killed,
    },
    Mutant {
        name: "asm-sample-min-p-keeps-the-failing",
        file: "asm/gfx1201/body/sample_extras.inc",
        find: "\ts_sub_co_u32 s[S_LIMIT], s[S_LIMIT], 1\n\ts_sub_co_ci_u32 s[S_LIMIT+1], s[S_LIMIT+1], 0\n",
        replace: "",
        test: SAMPLING,
        expected: Killed,
    },
    Mutant {
        name: "asm-sample-min-p-with-old-sums",
        file: "asm/gfx1201/body/sample_extras.inc",
        find: "\ts_sub_co_ci_u32 s[S_LIMIT+1], s[S_LIMIT+1], 0\n\ts_mov_b32 s[S_SUMS_KNOWN], 0\n",
        replace: "\ts_sub_co_ci_u32 s[S_LIMIT+1], s[S_LIMIT+1], 0\n",
        test: SAMPLING,
        expected: Killed,
    },
    Mutant {
        name: "asm-sample-tops-unordered",
        file: "asm/gfx1201/body/sample_extras.inc",
        find: "v_cmp_lt_u64_e32 vcc_lo, s[S_VECTOR_HIGH:S_VECTOR_HIGH+1], v[V_KEPT_KEY:V_KEPT_KEY+1]",
        replace: "v_cmp_gt_u64_e32 vcc_lo, s[S_VECTOR_HIGH:S_VECTOR_HIGH+1], v[V_KEPT_KEY:V_KEPT_KEY+1]",
        test: SAMPLING,
        expected: Killed,
    },
    Mutant {
        name: "asm-sample-choice-of-adjusted-logits",
        file: "asm/gfx1201/body/sample_extras.inc",
        find: "\tSAMPLE_ROW S_LOGITS, PARAM_SAMPLE_LOGITS_VA\n",
        replace: "",
        test: SAMPLING,
        expected: Killed,
    },
    Mutant {
        name: "asm-sample-record-with-penalties",
        file: "asm/gfx1201/body/sample_extras.inc",
        find: "\ts_mov_b32 s[S_PENALISED], 0\n\ts_mov_b32 s[S_DESCENT], SAMPLE_TOP_N\n",
        replace: "\ts_mov_b32 s[S_DESCENT], SAMPLE_TOP_N\n",
        test: SAMPLING,
        expected: Killed,
    },
    Mutant {
        name: "asm-sample-counts-of-ids-outside",
        file: "asm/gfx1201/body/sample_extras.inc",
        find: "\tv_cmpx_gt_u32_e32 s[S_VECTOR_VOCABULARY], v4\n\tv_lshlrev_b32_e32 v4, 2, v4\n\tglobal_atomic",
        replace: "\tv_lshlrev_b32_e32 v4, 2, v4\n\tglobal_atomic",
        test: SAMPLING,
        expected: Killed,
    },
    Mutant {
        name: "asm-sample-biases-of-ids-outside",
        file: "asm/gfx1201/body/sample_extras.inc",
        find: "\tv_cmpx_gt_u32_e32 s[S_VECTOR_VOCABULARY], v4\n\tv_lshlrev_b32_e32 v4, 2, v4\n\tv_add_nc_u32",
        replace: "\tv_lshlrev_b32_e32 v4, 2, v4\n\tv_add_nc_u32",
        test: SAMPLING,
        expected: Killed,
    },
    Mutant {
        name: "asm-sample-any-number-of-biases",
        file: "asm/gfx1201/body/sample_extras.inc",
        find: "s_min_u32 s[S_VECTOR_SCRATCH], s6, BIASES_MAX",
        replace: "s_mov_b32 s[S_VECTOR_SCRATCH], s6",
        test: SAMPLING,
        expected: Killed,
    },
    Mutant {
        name: "asm-sample-any-number-of-tops",
        file: "asm/gfx1201/body/sample_extras.inc",
        find: "\ts_min_u32 s4, s4, TOPS_MAX\n",
        replace: "",
        test: SAMPLING,
        expected: Killed,
    },
    Mutant {
        name: "asm-sample-more-tops-than-tokens",
        file: "asm/gfx1201/body/sample_extras.inc",
        find: "s_min_u32 s[S_TOP_K], s4, s[S_VOCABULARY]",
        replace: "s_mov_b32 s[S_TOP_K], s4",
        test: SAMPLING,
        expected: Killed,
    },
    Mutant {
        name: "asm-formats-second-half-of-bytes-again",
        file: "asm/gfx1201/include/formats.inc",
        find: "\tv_mov_b32_e32 v[\\to], v[\\packed+\\j-4]\n",
        replace: "\tv_mov_b32_e32 v[\\to], v[\\packed-8+\\j-4]\n",
        test: INTEGERS,
        expected: Killed,
    },
    Mutant {
        name: "asm-formats-scale-of-the-next-chunk",
        file: "asm/gfx1201/include/formats.inc",
        find: "\tCHUNK_LOAD b32, \\w+24, 1, 2, \\index, S_PLANE_1\n",
        replace: "\tCHUNK_LOAD b32, \\w+24, 1, 3, \\index, S_PLANE_1\n",
        test: INTEGERS,
        expected: Killed,
    },
    Mutant {
        name: "asm-formats-floats-of-the-low-half-twice",
        file: "asm/gfx1201/include/formats.inc",
        find: "v[\\packed+\\j-4] op_sel:[1,0]",
        replace: "v[\\packed+\\j-4]",
        test: MATMUL,
        expected: Killed,
    },
    Mutant {
        name: "asm-tiles-other-columns-of-x",
        file: "asm/gfx1201/body/matmul_tiles.inc",
        find: "v_lshl_add_u32 v[V_X_OFFSET], v15, 4, v[V_X_OFFSET]",
        replace: "v_lshl_add_u32 v[V_X_OFFSET], v15, 3, v[V_X_OFFSET]",
        test: INTEGERS,
        expected: Killed,
    },
    Mutant {
        name: "asm-tiles-store-rows-that-do-not-count",
        file: "asm/gfx1201/body/matmul_tiles.inc",
        find: "s_and_b32 s4, s[S_LIVE], 0xffff",
        replace: "s_mov_b32 s4, 0xffff",
        test: INTEGERS,
        expected: Killed,
    },
    Mutant {
        name: "asm-tiles-one-turn",
        file: "asm/gfx1201/body/matmul_tiles.inc",
        find: "\ts_add_co_u32 s[S_TURN], s[S_TURN], s[S_UNITS]\n\ts_branch .Lturn\\@\n",
        replace: "",
        test: INTEGERS,
        expected: Killed,
    },
    Mutant {
        name: "asm-tiles-no-wait-for-weights",
        file: "asm/gfx1201/body/matmul_tiles.inc",
        find: "\ts_wait_loadcnt 0x0\n\t\\format\\()_TILE_UNPACK\n",
        replace: "\t\\format\\()_TILE_UNPACK\n",
        test: INTEGERS,
        expected: Killed,
    },
    Mutant {
        name: "asm-tiles-next-block-before-products",
        file: "asm/gfx1201/body/matmul_tiles.inc",
        find: "\tTILE_PRODUCTS \\t, \\limbs, \\signed, \\halves\n\tv_dual_mov_b32 v[V_PAIR], v[V_PAIRS",
        replace: "\tTILE_X_LOAD \\t, \\limbs, \\scope\n\tTILE_PRODUCTS \\t, \\limbs, \\signed, \\halves\n\
                  \tv_dual_mov_b32 v[V_PAIR], v[V_PAIRS",
        test: INTEGERS,
        expected: Killed,
    },
    Mutant {
        name: "asm-tiles-fourth-tile-left-out",
        file: "asm/gfx1201/body/matmul_tiles.inc",
        find: "s_cselect_b32 s7, WAVE_TILES, s7\n",
        replace: "s_cselect_b32 s7, WAVE_TILES-1, s7\n",
        test: INTEGERS,
        expected: Killed,
    },
    Mutant {
        name: "asm-tiles-sums-of-another-part",
        file: "asm/gfx1201/body/matmul_tiles.inc",
        find: "\tv_add_nc_u32_e32 v14, s[S_PARTS_STRIDE], v14\n",
        replace: "",
        test: INTEGERS,
        expected: Killed,
    },
    Mutant {
        name: "asm-tiles-no-wait-for-sums-of-parts",
        file: "asm/gfx1201/body/matmul_tiles.inc",
        find: "\t.set PART_AT, PART_AT+1\n.endr\n.Lnone\\@:\n\ts_wait_dscnt 0x0\n",
        replace: "\t.set PART_AT, PART_AT+1\n.endr\n.Lnone\\@:\n",
        test: INTEGERS,
        expected: Killed,
    },
    Mutant {
        name: "asm-tiles-last-round-is-whole",
        file: "asm/gfx1201/body/matmul_tiles.inc",
        find: "s_min_u32 s4, s4, s[S_PARTS] ",
        replace: "s_mov_b32 s4, s[S_PARTS] ",
        test: INTEGERS,
        expected: Killed,
    },
    Mutant {
        name: "asm-tiles-sums-overwritten-while-read",
        file: "asm/gfx1201/body/matmul_tiles.inc",
        find: "\ts_min_u32 s4, s4, s[S_PARTS]                            // segments of the round\n\
               .Lpart\\@:\n\
               \ts_sub_co_u32 s4, s4, 1\n\
               \ts_cmp_eq_u32 s4, 0\n\
               \ts_cbranch_scc1 .Lend\\@\n\
               \tv_add_nc_u32_e32 v14, s[S_PARTS_STRIDE], v14\n\
               \tTILES_PART_ADD \\tiles\n\
               \ts_branch .Lpart\\@\n\
               .Lend\\@:\n\
               \ts_barrier_signal -1\n",
        replace: "\ts_min_u32 s4, s4, s[S_PARTS]\n\
                  \ts_barrier_signal -1\n\
                  .Lpart\\@:\n\
                  \ts_sub_co_u32 s4, s4, 1\n\
                  \ts_cmp_eq_u32 s4, 0\n\
                  \ts_cbranch_scc1 .Lread\\@\n\
                  \tv_add_nc_u32_e32 v14, s[S_PARTS_STRIDE], v14\n\
                  \tTILES_PART_ADD \\tiles\n\
                  \ts_branch .Lpart\\@\n\
                  .Lend\\@:\n\
                  \ts_barrier_signal -1\n\
                  .Lread\\@:\n",
        test: INTEGERS,
        expected: Killed,
    },
    Mutant {
        name: "asm-tiles-factors-of-the-first-segment",
        file: "asm/gfx1201/body/matmul_tiles.inc",
        find: "\ts_mov_b32 s4, s[S_PART]\n\tTILES_NEXT_SEGMENTS \\format\n",
        replace: "",
        test: INTEGERS,
        expected: Killed,
    },
    Mutant {
        name: "asm-tiles-segments-not-passed-over",
        file: "asm/gfx1201/body/matmul_tiles.inc",
        find: "\ts_sub_co_u32 s4, s[S_PARTS], 1\n\ts_lshl_b32 s4, s4, SEGMENT_BLOCKS_LOG2\n",
        replace: "\ts_mov_b32 s4, 0\n",
        test: INTEGERS,
        expected: Killed,
    },
    Mutant {
        name: "asm-mega-late-group-stays",
        file: "asm/gfx1201/mega.s",
        find: "\ts_cmp_ge_u32 s[S_GROUP], s[S_GROUPS]\n\ts_cbranch_scc0 .Lstep\n\ts_endpgm\n",
        replace: "",
        test: MEGAKERNEL,
        expected: Killed,
    },
    Mutant {
        name: "asm-mega-first-group-beyond-groups",
        file: "asm/gfx1201/mega.s",
        find: "\ts_cbranch_scc1 .Lfound\n",
        replace: "\ts_branch .Lfound\n",
        test: MEGAKERNEL,
        expected: Killed,
    },
    Mutant {
        name: "asm-mega-first-group-without-wrap",
        file: "asm/gfx1201/mega.s",
        find: "\ts_cselect_b32 s5, s[S_GROUPS], 0\n",
        replace: "\ts_mov_b32 s5, 0\n",
        test: MEGAKERNEL,
        expected: Killed,
    },
    Mutant {
        name: "asm-quantise-rows-of-a-tile-in-rows",
        file: "asm/gfx1201/body/quantise.inc",
        find: "s_and_b32 s5, s[S_ROW], -TILE_ROWS",
        replace: "s_mov_b32 s5, s[S_ROW]",
        test: INTEGERS,
        expected: Killed,
    },
];
