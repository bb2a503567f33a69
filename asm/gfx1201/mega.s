// The megakernel: one dispatch that runs steps until PLAN says leave. The bodies are those of the dispatch path.
//
// A group's number is the count of groups that have begun before it, so the first numbers belong to resident groups,
// however many fit the chip. The host says how many take part, once it has seen them; a group that comes later leaves
// at once.
//
// A step: group 0 waits until every group has ended the step before, resets the counters and runs PLAN, which publishes
// the step's number last. Every group then walks the tape: of each task it takes its share of the units, waits for the
// tasks that the entry names, does them, and adds their number to the task's counter. A group without a unit of a task
// goes on at once. docs/megakernel.md says why this needs one barrier of the grid for each step and none elsewhere.
//
// s76..s79 are the constants that this file's own VALU instructions read.
//
//! parameters Mega
//! workgroup 256 1 1
//! vgprs 192
//! sgprs 106
//! lds 30720

.include "include/protocol.inc"
.include "include/machine.inc"
.include "include/math.inc"
.include "include/quant.inc"
.include "include/formats.inc"
.include "include/block.inc"
.include "body/plan.inc"
.include "body/plan_rings.inc"
.include "body/plan_rows.inc"
.include "body/boundary.inc"
.include "body/embed.inc"
.include "body/embed_format.inc"
.include "body/matmul.inc"
.include "body/matmul_dense.inc"
.include "body/matmul_float_tiles.inc"
.include "body/matmul_quant.inc"
.include "body/matmul_tiles.inc"
.include "body/matmul_tile_units.inc"
.include "body/matmul_tile_formats.inc"
.include "body/matmul_integer.inc"
.include "body/matmul_segments.inc"
.include "body/matmul_format.inc"
.include "body/quantise.inc"
.include "body/norm.inc"
.include "body/rope.inc"
.include "body/attention_formats.inc"
.include "body/kv_write.inc"
.include "body/attention_heads.inc"
.include "body/attention.inc"
.include "body/vector.inc"
.include "body/sample_logits.inc"
.include "body/sample.inc"
.include "body/sample_descent.inc"
.include "body/sample_extras.inc"

// As long as the kernel, besides those of machine.inc.
.set S_TAPE, 98                 // [2] address of the tape's entry at work
.set S_SPINS, 100               // polls that found nothing
.set S_EPOCH, 101               // number of the step
.set S_BLOCK, 102               // [2] address of the parameter block
.set S_COUNTERS, 104            // [2] address of the counters
// Before the tape.
.set S_STEP_TASKS, 12           // tasks of a step
// Of a task, until its first unit: the tape's entry.
.set S_TASK, 8                  // [16] all of it; its first dword is the body
.set S_TASK_NUMBER, S_TASK+TAPE_ENTRY_TASK/4
.set S_TASK_PARAMETERS, S_TASK+TAPE_ENTRY_PARAMETERS_VA/4
.set S_TASK_WAITS, S_TASK+TAPE_ENTRY_WAIT/4
.set S_PIECE_BYTES, S_TASK+TAPE_ENTRY_PIECE_BYTES/4
.set S_PLANE, S_TASK+TAPE_ENTRY_PLANE_VA/4
.set S_PIECES, S_TASK+TAPE_ENTRY_PIECES/4
.set S_TASK_FIRST_GROUP, S_TASK+TAPE_ENTRY_FIRST_GROUP/4
.set S_BREADCRUMB, 24           // [2] address of the breadcrumbs, then of this group's; wave 0
.set S_TARGETS, 24              // [12] wave 0, after the breadcrumb: of each wait the target, a gap, the counter's address
.set S_GROUP_WAVE, 5            // number of the wave, after FIRST_WAVE
// Of a task, from ROWS_MASK_LOAD on, where S_SNAPSHOT was.
.set S_UNITS_DONE, 95           // units that this group has gone through

// Weights that a workgroup asks for while it waits. A piece is the part of a weight row that all lanes of a wave work on at
// once; a unit has one piece for each wave and each weight row of its lanes. One load asks for the first 512 bytes of a
// piece at most. That is 16 KiB a unit, and GL2 has room for those of all groups (128 * 16 KiB of 8 MiB).
.set FETCH_PIECES, 8 * MATMUL_ROWS_PER_LANE
.set FETCH_PIECES_LOG2, 5
// The waves that ask: all but wave 0. It polls flags, and loads return in order, so its polls would wait for weights.
.set FETCH_WAVES, 7
// [20] four registers for each load of a wave: those of weights, which hold nothing between two bodies.
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

// S_GROUP_WAVE; SCC = it is wave 0.
.macro FIRST_WAVE
	v_lshrrev_b32_e32 v1, WAVE_LANES_LOG2, v[V_ITEM]
	v_readfirstlane_b32 s[S_GROUP_WAVE], v1
	s_cmp_eq_u32 s[S_GROUP_WAVE], 0
.endm

// S_GROUP by arrival; S_GROUPS from the host, which waits for arrivals. Wave 0 takes the number and waits for the host;
// the other waves have both from LDS.
.macro ARRIVE
	.set S_START, 24                // [2] address of the host's word
	.set S_ARRIVED, 26              // [2] address of this group's word less ARRIVED_OFFSET
	s_load_b64 s[S_START:S_START+1], s[S_PARAMETERS:S_PARAMETERS+1], PARAM_MEGA_START_VA
	v_mov_b32_e32 v4, 0
	FIRST_WAVE
	s_wait_kmcnt 0x0
	s_cbranch_scc0 .Ltold\@
	s_mov_b32 exec_lo, 1
	v_mov_b32_e32 v1, 1
	global_atomic_add_u32 v2, v4, v1, s[S_COUNTERS:S_COUNTERS+1] offset:ARRIVALS_OFFSET th:TH_ATOMIC_RETURN scope:SCOPE_DEV
	s_wait_loadcnt 0x0
	v_readfirstlane_b32 s28, v2
	s_lshl_b32 s28, s28, 2
	s_mov_b32 s29, 0
	s_add_nc_u64 s[S_ARRIVED:S_ARRIVED+1], s[S_START:S_START+1], s[28:29]
	global_store_b32 v4, v1, s[S_ARRIVED:S_ARRIVED+1] offset:ARRIVED_OFFSET scope:SCOPE_SYS
.Llook_start\@:
	global_load_b32 v3, v4, s[S_START:S_START+1] offset:START_GROUPS_AND_1 scope:SCOPE_SYS
	s_wait_loadcnt 0x0
	v_readfirstlane_b32 s28, v3
	s_cmp_lg_u32 s28, 0
	s_cbranch_scc1 .Lstarted\@
	s_sleep 127                                             // the word is across PCIe
	s_branch .Llook_start\@
.Lstarted\@:
	ds_store_b64 v4, v[2:3]
	s_mov_b32 exec_lo, -1
.Ltold\@:
	GROUP_BARRIER
	ds_load_b64 v[2:3], v4
	s_wait_dscnt 0x0
	v_readfirstlane_b32 s[S_GROUP], v2
	v_readfirstlane_b32 s[S_GROUPS], v3
	s_sub_co_u32 s[S_GROUPS], s[S_GROUPS], 1
	GROUP_BARRIER
.endm

// Everything that any wave of the group has stored is complete.
.macro GROUP_RELEASE
	s_wait_storecnt 0x0
	GROUP_BARRIER
.endm

// Target of the wait in s[\wait], s[\wait+1] to s[\target]; the counter's address to s[\target+2:\target+3].
.macro WAIT_TARGET wait, target
	s_lshr_b32 s6, s[\wait], TAPE_WAIT_OFFSET_BITS
	ROWS_FACTOR 7, 6
	s_mul_i32 s[\target], s[\wait+1], s7
	s_bfe_u32 s[\target+2], s[\wait], TAPE_WAIT_OFFSET_BITS << 16
	s_mov_b32 s[\target+3], 0
	s_add_nc_u64 s[\target+2:\target+3], s[S_COUNTERS:S_COUNTERS+1], s[\target+2:\target+3]
.endm

.macro WAIT_FOR target
	s_cmp_eq_u32 s[\target], 0
	s_cbranch_scc1 .Lnothing\@
	POLL \target+2, \target
.Lnothing\@:
.endm

// Waves 1 to 7: loads of the heads of the pieces of unit S_UNIT, to bring them into GL2; nobody reads their values. Piece p
// is asked for by wave 1 + p mod 7. S_PIECE_BYTES is a multiple of 4 and at least 16. S_PIECES are the whole pieces of the
// plane at S_PLANE, 0 if the task has no weights, so no load goes beyond the plane. Before a body the wave waits for
// loadcnt. In a step of several bands nothing is asked for: work of that length hides what a first unit waits for.
.macro FETCH_WEIGHTS
	.set S_PIECE, 4                 // next piece to be asked for, of those of the unit
	.set S_UNIT_PIECES, 7           // whole pieces of the unit
	.set S_PIECE_VA, 24             // [2] address of the piece
	.set S_PIECE_STEP, 26           // [2] bytes to the wave's next piece
	s_cmp_eq_u32 s[S_PIECES], 0
	s_cbranch_scc1 .Lnothing\@
	s_cmp_gt_u32 s[S_ROW_FACTOR], 1
	s_cbranch_scc1 .Lnothing\@
	s_lshl_b32 s6, s[S_UNIT], FETCH_PIECES_LOG2
	s_sub_co_u32 s[S_UNIT_PIECES], s[S_PIECES], s6          // negative in a unit without a whole piece
	s_min_i32 s[S_UNIT_PIECES], s[S_UNIT_PIECES], FETCH_PIECES
	s_sub_co_u32 s[S_PIECE], s[S_GROUP_WAVE], 1
	s_add_co_u32 s6, s6, s[S_PIECE]
	s_mul_hi_u32 s[S_PIECE_VA+1], s6, s[S_PIECE_BYTES]
	s_mul_i32 s[S_PIECE_VA], s6, s[S_PIECE_BYTES]
	s_add_nc_u64 s[S_PIECE_VA:S_PIECE_VA+1], s[S_PLANE:S_PLANE+1], s[S_PIECE_VA:S_PIECE_VA+1]
	s_mul_hi_u32 s[S_PIECE_STEP+1], s[S_PIECE_BYTES], FETCH_WAVES
	s_mul_i32 s[S_PIECE_STEP], s[S_PIECE_BYTES], FETCH_WAVES
	v_and_b32_e32 v1, WAVE_LANES-1, v[V_ITEM]
	v_lshlrev_b32_e32 v1, 4, v1
	s_lshr_b32 s6, s[S_PIECE_BYTES], 4
	s_min_u32 s6, s6, WAVE_LANES
	s_sub_co_u32 s6, WAVE_LANES, s6
	s_lshr_b32 exec_lo, -1, s6                              // a lane for every 16 bytes of the piece
.irp n, 0, 1, 2, 3, 4
	s_cmp_ge_i32 s[S_PIECE], s[S_UNIT_PIECES]
	s_cbranch_scc1 .Lasked\@
	global_load_b128 v[V_FETCHED+4*\n:V_FETCHED+4*\n+3], v1, s[S_PIECE_VA:S_PIECE_VA+1]
	s_add_co_u32 s[S_PIECE], s[S_PIECE], FETCH_WAVES
	s_add_nc_u64 s[S_PIECE_VA:S_PIECE_VA+1], s[S_PIECE_VA:S_PIECE_VA+1], s[S_PIECE_STEP:S_PIECE_STEP+1]
.endr
.Lasked\@:
	s_mov_b32 exec_lo, -1
.Lnothing\@:
.endm

// The code is longer than s_branch reaches, so the ways to a body and back are computed. S_WAY is free between bodies.
.set S_WAY, 10                  // [2] address that is jumped to

// Jumps to a label of this file. All that the code before has under way for SGPRs is done.
.macro JUMP label
	s_getpc_b64 s[S_WAY:S_WAY+1]
.Lhere\@:
	s_add_co_u32 s[S_WAY], s[S_WAY], \label-.Lhere\@
	s_add_co_ci_u32 s[S_WAY+1], s[S_WAY+1], (\label-.Lhere\@)>>31
	s_wait_alu depctr_sa_sdst(0) & depctr_va_sdst(0) & depctr_va_vcc(0)
	s_setpc_b64 s[S_WAY:S_WAY+1]
.endm

// A place of the table: the way to the body of this name. A body without code is an error of the assembler.
.set BODY_WAY_BYTES_LOG2, 5
.macro BODY_WAY name
	.p2align BODY_WAY_BYTES_LOG2
.Lway\@:
	JUMP .L\name
.if .-.Lway\@ > 1 << BODY_WAY_BYTES_LOG2
	.error "a way to a body is longer than its place"
.endif
.endm

// The code of a body: the body, and back.
.macro BODY name:vararg
	\name
	JUMP .Lreturn
.endm

	.amdgcn_target "amdgcn-amd-amdhsa--gfx1201"
	.text
	.p2align 8
	v_and_b32_e32 v[V_ITEM], 0x3ff, v[V_ITEM]
	s_mov_b64 s[S_BLOCK:S_BLOCK+1], s[S_PARAMETERS:S_PARAMETERS+1]
	s_load_b64 s[S_COUNTERS:S_COUNTERS+1], s[S_PARAMETERS:S_PARAMETERS+1], PARAM_MEGA_COUNTERS_VA
	s_mov_b32 s[S_SPINS], 0
	s_mov_b32 s[S_EPOCH], 0
	ARRIVE
	s_cmp_ge_u32 s[S_GROUP], s[S_GROUPS]
	s_cbranch_scc0 .Lstep
	s_endpgm

.Lstep:
	s_add_co_u32 s[S_EPOCH], s[S_EPOCH], 1
	s_load_b64 s[S_PARAMETERS:S_PARAMETERS+1], s[S_BLOCK:S_BLOCK+1], PARAM_MEGA_PLAN_VA
	s_load_b64 s[S_STEP_VA:S_STEP_VA+1], s[S_BLOCK:S_BLOCK+1], HEADER_STEP_VA
	s_load_b32 s[S_STEP_TASKS], s[S_BLOCK:S_BLOCK+1], PARAM_MEGA_TASKS
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
	s_mov_b32 s76, s[S_STEP_TASKS]
	CONSTANTS_READY
	v_mov_b32_e32 v1, v[V_ITEM]
	v_mov_b32_e32 v3, 0
.Lreset:
	v_cmpx_gt_u32_e32 s76, v1
	s_cbranch_execz .Lreset_done
	v_lshlrev_b32_e32 v2, 2, v1
	global_store_b32 v2, v3, s[S_COUNTERS:S_COUNTERS+1] offset:COUNTERS_OFFSET
	v_add_nc_u32_e32 v1, GROUP_ITEMS, v1
	s_branch .Lreset
.Lreset_done:
	s_mov_b32 exec_lo, -1
	GROUP_RELEASE
	PLAN_BODY

	// All groups wait for the step's number, or for the end.
.Lfollow:
	FIRST_WAVE
	s_cbranch_scc0 .Lpublished
	v_mov_b32_e32 v1, 0
.Llook_step:
	// These are two flags: each is loaded by itself, as PLAN stores it.
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
	s_load_b512 s[S_TASK:S_TASK+15], s[S_TAPE:S_TAPE+1], 0x0
	s_load_b64 s[S_BREADCRUMB:S_BREADCRUMB+1], s[S_BLOCK:S_BLOCK+1], PARAM_MEGA_BREADCRUMBS_VA
	s_wait_kmcnt 0x0
	s_cmp_eq_u32 s[S_TASK+TAPE_ENTRY_BODY/4], -1
	s_cbranch_scc1 .Lstep_end
	s_mov_b64 s[S_PARAMETERS:S_PARAMETERS+1], s[S_TASK_PARAMETERS:S_TASK_PARAMETERS+1]
	ROWS_HEADER
	ROWS_COUNT
	ROWS_FACTOR S_ROW_FACTOR, S_ROW_SET
	// Which unit is this group's first: groups are counted from the task's first one on. That was chosen for all groups
	// of the dispatch; fewer may take part.
.Lfirst:
	s_cmp_lt_u32 s[S_TASK_FIRST_GROUP], s[S_GROUPS]
	s_cbranch_scc1 .Lfound
	s_sub_co_u32 s[S_TASK_FIRST_GROUP], s[S_TASK_FIRST_GROUP], s[S_GROUPS]
	s_branch .Lfirst
.Lfound:
	s_sub_co_u32 s4, s[S_GROUP], s[S_TASK_FIRST_GROUP]
	s_cselect_b32 s5, s[S_GROUPS], 0
	s_add_co_u32 s4, s4, s5
	UNITS_BEGIN 4, .Lpass
	FIRST_WAVE
	s_cbranch_scc1 .Lstands
	FETCH_WEIGHTS
	s_branch .Lready

	// The breadcrumb: where this group is.
.Lstands:
	s_lshl_b32 s26, s[S_GROUP], BREADCRUMB_BYTES_LOG2
	s_mov_b32 s27, 0
	s_add_nc_u64 s[S_BREADCRUMB:S_BREADCRUMB+1], s[S_BREADCRUMB:S_BREADCRUMB+1], s[26:27]
	s_mov_b32 s76, s[S_EPOCH]
	s_mov_b32 s77, s[S_TASK_NUMBER]
	s_mov_b32 s78, s[S_SPINS]
	CONSTANTS_READY
	s_mov_b32 exec_lo, 1
	v_mov_b32_e32 v1, 0
	v_mov_b32_e32 v2, s76
	v_mov_b32_e32 v3, s77
	v_mov_b32_e32 v4, s78
	// The last task's signal may still be under way, and a store of system scope needs nothing outstanding.
	s_wait_storecnt 0x0
	global_store_b96 v1, v[2:4], s[S_BREADCRUMB:S_BREADCRUMB+1] scope:SCOPE_SYS
	s_mov_b32 exec_lo, -1
	WAIT_TARGET S_TASK_WAITS, S_TARGETS
	WAIT_TARGET S_TASK_WAITS+2, S_TARGETS+4
	WAIT_TARGET S_TASK_WAITS+4, S_TARGETS+8
	WAIT_FOR S_TARGETS
	WAIT_FOR S_TARGETS+4
	WAIT_FOR S_TARGETS+8
	global_inv scope:SCOPE_DEV
	s_wait_loadcnt 0x0
.Lready:
	GROUP_BARRIER
	ROWS_MASK_LOAD
	s_wait_loadcnt 0x0                                      // of FETCH_WEIGHTS too: a body writes these registers
	s_mov_b32 s[S_UNITS_DONE], 0
.Lunit:
	UNITS_ROW .Lnext
	s_load_b32 s8, s[S_TAPE:S_TAPE+1], TAPE_ENTRY_BODY
	s_getpc_b64 s[10:11]
.Lhere:
	s_wait_kmcnt 0x0
	s_lshl_b32 s8, s8, BODY_WAY_BYTES_LOG2
	s_add_co_u32 s8, s8, .Ltable-.Lhere
	s_mov_b32 s9, 0
	s_add_nc_u64 s[10:11], s[10:11], s[8:9]
	s_wait_alu depctr_sa_sdst(0) & depctr_va_sdst(0) & depctr_va_vcc(0)
	s_setpc_b64 s[10:11]
.Lreturn:
.Lnext:
	s_add_co_u32 s[S_UNITS_DONE], s[S_UNITS_DONE], 1
	UNITS_NEXT
	s_cbranch_scc0 .Ldone
	GROUP_BARRIER
	s_branch .Lunit

	// The units of this group are done and visible: their number goes to the task's counter, in units of the header.
.Ldone:
	GROUP_RELEASE
	FIRST_WAVE
	s_cbranch_scc0 .Lpass
	s_load_b32 s8, s[S_TAPE:S_TAPE+1], TAPE_ENTRY_SIGNAL
	s_load_b32 s10, s[S_PARAMETERS:S_PARAMETERS+1], HEADER_UNITS
	s_mov_b32 s9, 0
	s_wait_kmcnt 0x0
	UNITS_JOINED 10, 10
	s_lshl_b32 s76, s[S_UNITS_DONE], s10
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

	// This group has ended the step. A group without a unit has left no breadcrumb, so its polls are reported here.
.Lstep_end:
	GROUP_RELEASE
	FIRST_WAVE
	s_cbranch_scc0 .Lstep
	s_lshl_b32 s26, s[S_GROUP], BREADCRUMB_BYTES_LOG2
	s_mov_b32 s27, 0
	s_add_nc_u64 s[S_BREADCRUMB:S_BREADCRUMB+1], s[S_BREADCRUMB:S_BREADCRUMB+1], s[26:27]
	s_mov_b32 s76, s[S_SPINS]
	CONSTANTS_READY
	s_mov_b32 exec_lo, 1
	v_mov_b32_e32 v1, 0
	v_mov_b32_e32 v2, s76
	s_wait_storecnt 0x0
	global_store_b32 v1, v2, s[S_BREADCRUMB:S_BREADCRUMB+1] offset:BREADCRUMB_SPINS scope:SCOPE_SYS
	v_mov_b32_e32 v2, 1
	global_atomic_add_u32 v1, v2, s[S_COUNTERS:S_COUNTERS+1] scope:SCOPE_DEV
	s_mov_b32 exec_lo, -1
	s_branch .Lstep
.Lleave:
	s_endpgm

	// By the number in the tape.
	.p2align BODY_WAY_BYTES_LOG2
.Ltable:
	EACH_BODY BODY_WAY

.include "mega_bodies.inc"
	.fill 64, 4, 0xbf9f0000
