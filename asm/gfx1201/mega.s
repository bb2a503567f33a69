// The megakernel: one dispatch that runs steps until PLAN says leave. The bodies are those of the dispatch path.
//
// A step: group 0 waits until every group has ended the step before, resets the counters and runs PLAN, which publishes
// the step's number last. Every group then walks the tape: of each task it takes its share of the units, waits for the
// tasks that the entry names, does them, and adds their number to the task's counter. A group without a unit of a task
// passes on at once. docs/megakernel.md says why this needs one barrier of the grid for each step and none elsewhere.
//
// Scalars that live as long as the kernel, besides those of machine.inc: s[98:99] tape entry, s100 looks in vain, s101
// number of the step, s[102:103] parameter block, s[104:105] counters. s76..s79 are the constants that this file's own
// VALU instructions read.
//
//! parameters Mega
//! workgroup 256 1 1
//! vgprs 192
//! sgprs 106
//! lds 40960

.include "include/protocol.inc"
.include "include/machine.inc"
.include "include/math.inc"
.include "include/quant.inc"
.include "body/plan.inc"
.include "body/boundary.inc"
.include "body/embed.inc"
.include "body/matmul.inc"
.include "body/matmul_dense.inc"
.include "body/matmul_quant.inc"
.include "body/norm.inc"
.include "body/rope.inc"
.include "body/attention_formats.inc"
.include "body/kv_write.inc"
.include "body/attention.inc"
.include "body/vector.inc"
.include "body/sample_logits.inc"
.include "body/sample.inc"

.set S_TAPE, 98
.set S_SPINS, 100
.set S_EPOCH, 101
.set S_BLOCK, 102
.set S_COUNTERS, 104

// Weights that a workgroup asks for while it waits. A piece is what all lanes of a wave work on at once in one of their
// weight rows; a unit has one for each wave and row of its lanes. Of each piece the head is asked for, one load of 512
// bytes at most: 16 KiB a unit, of which all compute units together find room in GL2 (64 * 16 KiB of 8 MiB).
.set FETCH_PIECES, 8 * MATMUL_ROWS_PER_LANE
.set FETCH_PIECES_LOG2, 5
// The waves that ask: all but wave 0, which looks at flags, and whose looks must not stand behind loads from memory.
.set FETCH_WAVES, 7
// Four registers for each load of a wave: those of weights, which hold nothing between two bodies.
.set V_FETCHED, V_MATMUL_WEIGHTS
.if FETCH_PIECES != 1 << FETCH_PIECES_LOG2
	.error "a unit's first piece is found by a shift"
.endif

// Waits until the dword at s[\address:+1] is at least s[\target], modulo 2^32. Wave 0 only.
.macro POLL address, target
	v_mov_b32_e32 v1, 0
.Llook\@:
	global_load_b32 v2, v1, s[\address:\address+1] scope:SCOPE_DEV
	s_wait_loadcnt 0x0
	v_readfirstlane_b32 s4, v2
	s_sub_co_u32 s4, s4, s[\target]
	s_cmp_ge_i32 s4, 0
	s_cbranch_scc1 .Lreached\@
	s_add_co_u32 s[S_SPINS], s[S_SPINS], 1
	s_sleep 1
	s_branch .Llook\@
.Lreached\@:
.endm

// s5 = number of the wave; SCC = it is wave 0.
.macro FIRST_WAVE
	v_lshrrev_b32_e32 v1, 5, v0
	v_readfirstlane_b32 s5, v1
	s_cmp_eq_u32 s5, 0
.endm

// Everything that any wave of the group has stored is complete.
.macro GROUP_RELEASE
	s_wait_storecnt 0x0
	GROUP_BARRIER
.endm

// Target of the wait in s[\wait], s[\wait+1] to s[\target]; the counter's address to s[\target+2:\target+3].
.macro WAIT_TARGET wait, target
	s_lshr_b32 s6, s[\wait], 28
	ROWS_FACTOR 7, 6
	s_mul_i32 s[\target], s[\wait+1], s7
	s_bfe_u32 s[\target+2], s[\wait], 0x1c0000
	s_mov_b32 s[\target+3], 0
	s_add_nc_u64 s[\target+2:\target+3], s[S_COUNTERS:S_COUNTERS+1], s[\target+2:\target+3]
.endm

.macro WAIT_FOR target
	s_cmp_eq_u32 s[\target], 0
	s_cbranch_scc1 .Lnothing\@
	POLL \target+2, \target
.Lnothing\@:
.endm

// Waves 1 to 7 (s5): the heads of the pieces of unit s2 on their way into GL2, by loads whose values nobody reads. Piece p
// is asked for by wave 1 + p mod 7. s19 bytes of a piece, a multiple of 4 and at least 16; s[20:21] the plane; s22 its whole
// pieces, 0 where the task has no weights: what is asked for ends before the plane does. Before a body the wave waits for
// loadcnt.
.macro FETCH_WEIGHTS
	s_cmp_eq_u32 s22, 0
	s_cbranch_scc1 .Lnothing\@
	s_lshl_b32 s6, s2, FETCH_PIECES_LOG2
	s_sub_co_u32 s7, s22, s6                                // negative in a unit without a whole piece
	s_min_i32 s7, s7, FETCH_PIECES
	s_sub_co_u32 s4, s5, 1
	s_add_co_u32 s6, s6, s4
	s_mul_hi_u32 s25, s6, s19
	s_mul_i32 s24, s6, s19
	s_add_nc_u64 s[24:25], s[20:21], s[24:25]
	s_mul_hi_u32 s27, s19, FETCH_WAVES
	s_mul_i32 s26, s19, FETCH_WAVES
	v_and_b32_e32 v1, 31, v0
	v_lshlrev_b32_e32 v1, 4, v1
	s_lshr_b32 s6, s19, 4
	s_min_u32 s6, s6, 32
	s_sub_co_u32 s6, 32, s6
	s_lshr_b32 exec_lo, -1, s6                              // a lane for every 16 bytes of the piece
.irp n, 0, 1, 2, 3, 4
	s_cmp_ge_i32 s4, s7
	s_cbranch_scc1 .Lasked\@
	global_load_b128 v[V_FETCHED+4*\n:V_FETCHED+4*\n+3], v1, s[24:25]
	s_add_co_u32 s4, s4, FETCH_WAVES
	s_add_nc_u64 s[24:25], s[24:25], s[26:27]
.endr
.Lasked\@:
	s_mov_b32 exec_lo, -1
.Lnothing\@:
.endm

// A place of the table: the way to the body of this name. A body without code is an error of the assembler.
.macro BODY_BRANCH name
	s_branch .L\name
.endm

// The code of a body: the body, and back.
.macro BODY name:vararg
	\name
	s_branch .Lreturn
.endm

	.amdgcn_target "amdgcn-amd-amdhsa--gfx1201"
	.text
	.p2align 8
	s_mov_b32 s[S_GROUPS], s2
	s_mov_b32 s[S_GROUP], ttmp9
	v_and_b32_e32 v0, 0x3ff, v0
	s_mov_b64 s[S_BLOCK:S_BLOCK+1], s[0:1]
	s_load_b64 s[S_COUNTERS:S_COUNTERS+1], s[0:1], PARAM_MEGA_COUNTERS_VA
	s_mov_b32 s[S_SPINS], 0
	s_mov_b32 s[S_EPOCH], 0

.Lstep:
	s_add_co_u32 s[S_EPOCH], s[S_EPOCH], 1
	s_load_b64 s[0:1], s[S_BLOCK:S_BLOCK+1], PARAM_MEGA_PLAN_VA
	s_load_b64 s[S_STEP_VA:S_STEP_VA+1], s[S_BLOCK:S_BLOCK+1], HEADER_STEP_VA
	s_load_b32 s12, s[S_BLOCK:S_BLOCK+1], PARAM_MEGA_TASKS
	s_wait_kmcnt 0x0
	s_cmp_lg_u32 s[S_GROUP], 0
	s_cbranch_scc1 .Lfollow

	// Group 0: all groups have ended the step before; their counters go back to 0.
	FIRST_WAVE
	s_cbranch_scc0 .Larrived
	s_sub_co_u32 s8, s[S_EPOCH], 1
	s_mul_i32 s8, s8, s[S_GROUPS]
	POLL S_COUNTERS, 8
	global_inv scope:SCOPE_DEV
	s_wait_loadcnt 0x0
.Larrived:
	GROUP_BARRIER
	s_mov_b32 s76, s12
	CONSTANTS_READY
	v_mov_b32_e32 v1, v0
	v_mov_b32_e32 v3, 0
.Lreset:
	v_cmpx_gt_u32_e32 s76, v1
	s_cbranch_execz .Lreset_done
	v_lshlrev_b32_e32 v2, 2, v1
	global_store_b32 v2, v3, s[S_COUNTERS:S_COUNTERS+1] offset:COUNTERS_OFFSET
	v_add_nc_u32_e32 v1, 0x100, v1
	s_branch .Lreset
.Lreset_done:
	s_mov_b32 exec_lo, -1
	GROUP_RELEASE
	PLAN_BODY

	// Everybody waits for the step's number, or for the end.
.Lfollow:
	FIRST_WAVE
	s_cbranch_scc0 .Lpublished
	v_mov_b32_e32 v1, 0
.Llook_step:
	// Both are flags of their own: each is loaded by itself, as PLAN stores it.
	global_load_b32 v2, v1, s[S_STEP_VA:S_STEP_VA+1] scope:SCOPE_DEV
	global_load_b32 v3, v1, s[S_STEP_VA:S_STEP_VA+1] offset:STEP_FLAGS scope:SCOPE_DEV
	s_wait_loadcnt 0x0
	v_readfirstlane_b32 s4, v3
	s_bitcmp1_b32 s4, 0
	s_cbranch_scc1 .Lseen
	v_readfirstlane_b32 s4, v2
	s_sub_co_u32 s4, s4, s[S_EPOCH]
	s_cmp_ge_i32 s4, 0
	s_cbranch_scc1 .Lseen
	s_add_co_u32 s[S_SPINS], s[S_SPINS], 1
	s_sleep 4
	s_branch .Llook_step
.Lseen:
	global_inv scope:SCOPE_DEV
	s_wait_loadcnt 0x0
.Lpublished:
	GROUP_BARRIER
	v_mov_b32_e32 v1, 0
	global_load_b32 v2, v1, s[S_STEP_VA:S_STEP_VA+1] offset:STEP_FLAGS
	s_load_b64 s[S_TAPE:S_TAPE+1], s[S_BLOCK:S_BLOCK+1], PARAM_MEGA_TAPE_VA
	s_wait_loadcnt 0x0
	v_readfirstlane_b32 s4, v2
	s_wait_kmcnt 0x0
	s_bitcmp1_b32 s4, 0
	s_cbranch_scc1 .Lleave

.Ltask:
	s_load_b512 s[8:23], s[S_TAPE:S_TAPE+1], 0x0
	s_load_b64 s[24:25], s[S_BLOCK:S_BLOCK+1], PARAM_MEGA_BREADCRUMBS_VA
	s_wait_kmcnt 0x0
	s_cmp_eq_u32 s8, -1
	s_cbranch_scc1 .Lstep_end
	s_mov_b64 s[0:1], s[10:11]
	ROWS_HEADER
	ROWS_COUNT
	ROWS_FACTOR S_ROW_FACTOR, S_ROW_SET
	UNITS_BEGIN .Lpass
	FIRST_WAVE
	s_cbranch_scc1 .Lstands
	FETCH_WEIGHTS
	s_branch .Lready

	// Where this group stands.
.Lstands:
	s_lshl_b32 s26, s[S_GROUP], 6
	s_mov_b32 s27, 0
	s_add_nc_u64 s[24:25], s[24:25], s[26:27]
	s_mov_b32 s76, s[S_EPOCH]
	s_mov_b32 s77, s9
	s_mov_b32 s78, s[S_SPINS]
	CONSTANTS_READY
	s_mov_b32 exec_lo, 1
	v_mov_b32_e32 v1, 0
	v_mov_b32_e32 v2, s76
	v_mov_b32_e32 v3, s77
	v_mov_b32_e32 v4, s78
	// The last task's signal may be under way still: a store of system scope wants nothing outstanding.
	s_wait_storecnt 0x0
	global_store_b96 v1, v[2:4], s[24:25] scope:SCOPE_SYS
	s_mov_b32 exec_lo, -1
	WAIT_TARGET 13, 24
	WAIT_TARGET 15, 28
	WAIT_TARGET 17, 32
	WAIT_FOR 24
	WAIT_FOR 28
	WAIT_FOR 32
	global_inv scope:SCOPE_DEV
	s_wait_loadcnt 0x0
.Lready:
	GROUP_BARRIER
	ROWS_MASK_LOAD
	s_wait_loadcnt 0x0                                      // of FETCH_WEIGHTS too: a body writes these registers
	s_mov_b32 s95, 0
.Lunit:
	UNITS_ROW .Lnext
	s_load_b32 s8, s[S_TAPE:S_TAPE+1], TAPE_ENTRY_BODY
	s_getpc_b64 s[10:11]
.Lhere:
	s_wait_kmcnt 0x0
	s_lshl_b32 s8, s8, 2
	s_add_co_u32 s8, s8, .Ltable-.Lhere
	s_mov_b32 s9, 0
	s_add_nc_u64 s[10:11], s[10:11], s[8:9]
	s_wait_alu depctr_sa_sdst(0) & depctr_va_sdst(0) & depctr_va_vcc(0)
	s_setpc_b64 s[10:11]
.Lreturn:
.Lnext:
	s_add_co_u32 s95, s95, 1
	UNITS_NEXT
	s_cbranch_scc0 .Ldone
	GROUP_BARRIER
	s_branch .Lunit

	// The units of this group are done and visible: their number goes to the task's counter.
.Ldone:
	GROUP_RELEASE
	FIRST_WAVE
	s_cbranch_scc0 .Lpass
	s_load_b32 s8, s[S_TAPE:S_TAPE+1], TAPE_ENTRY_SIGNAL
	s_mov_b32 s9, 0
	s_mov_b32 s76, s95
	s_wait_kmcnt 0x0
	s_add_nc_u64 s[8:9], s[S_COUNTERS:S_COUNTERS+1], s[8:9]
	CONSTANTS_READY
	s_mov_b32 exec_lo, 1
	v_mov_b32_e32 v1, 0
	v_mov_b32_e32 v2, s76
	global_atomic_add_u32 v1, v2, s[8:9] scope:SCOPE_DEV
	s_mov_b32 exec_lo, -1
.Lpass:
	s_add_nc_u64 s[S_TAPE:S_TAPE+1], s[S_TAPE:S_TAPE+1], TAPE_ENTRY_BYTES
	s_branch .Ltask

	// This group has ended the step. A group that had no unit has left no breadcrumb: its looks are told here.
.Lstep_end:
	GROUP_RELEASE
	FIRST_WAVE
	s_cbranch_scc0 .Lstep
	s_lshl_b32 s26, s[S_GROUP], 6
	s_mov_b32 s27, 0
	s_add_nc_u64 s[24:25], s[24:25], s[26:27]
	s_mov_b32 s76, s[S_SPINS]
	CONSTANTS_READY
	s_mov_b32 exec_lo, 1
	v_mov_b32_e32 v1, 0
	v_mov_b32_e32 v2, s76
	s_wait_storecnt 0x0
	global_store_b32 v1, v2, s[24:25] offset:BREADCRUMB_SPINS scope:SCOPE_SYS
	v_mov_b32_e32 v2, 1
	global_atomic_add_u32 v1, v2, s[S_COUNTERS:S_COUNTERS+1] scope:SCOPE_DEV
	s_mov_b32 exec_lo, -1
	s_branch .Lstep
.Lleave:
	s_endpgm

	// By the number in the tape.
.Ltable:
	EACH_BODY BODY_BRANCH

.Lboundary:
	BODY BOUNDARY_BODY
.Lembed_f32:
	BODY EMBED_F32_BODY
.Lembed_f16:
	BODY EMBED_F16_BODY
.Lembed_bf16:
	BODY EMBED_BF16_BODY
.Lembed_q8_0:
	BODY EMBED_Q8_0_BODY
.Lembed_q4_0:
	BODY EMBED_Q4_0_BODY
.Lembed_q4_k:
	BODY EMBED_Q4_K_BODY
.Lembed_q6_k:
	BODY EMBED_Q6_K_BODY
.Lmatmul_f32:
	BODY MATMUL_F32_BODY
.Lmatmul_f16:
	BODY MATMUL_F16_BODY
.Lmatmul_bf16:
	BODY MATMUL_BF16_BODY
.Lmatmul_q8_0:
	BODY MATMUL_Q8_0_BODY
.Lmatmul_q4_0:
	BODY MATMUL_Q4_0_BODY
.Lmatmul_q4_k:
	BODY MATMUL_Q4_K_BODY
.Lmatmul_q6_k:
	BODY MATMUL_Q6_K_BODY
.Lrms_norm:
	BODY RMS_NORM_BODY
.Lqk_norm:
	BODY QK_NORM_BODY
.Lrope_interleaved:
	BODY ROPE_INTERLEAVED_BODY
.Lrope_halves:
	BODY ROPE_HALVES_BODY
.Lkv_write_f32:
	BODY KV_WRITE_BODY F32
.Lkv_write_f16:
	BODY KV_WRITE_BODY F16
.Lkv_write_q8_0:
	BODY KV_WRITE_BODY Q8_0
.Lattention_f32:
	BODY ATTENTION_BODY F32
.Lattention_f16:
	BODY ATTENTION_BODY F16
.Lattention_q8_0:
	BODY ATTENTION_BODY Q8_0
.Lswiglu:
	BODY SWIGLU_BODY
.Lresidual_add:
	BODY RESIDUAL_ADD_BODY
.Lsample:
	BODY SAMPLE_BODY
	.fill 64, 4, 0xbf9f0000
