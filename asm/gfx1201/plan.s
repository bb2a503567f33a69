// PLAN on the dispatch path.
//
//! parameters Plan
//! workgroup 256 1 1
//! vgprs 96
//! sgprs 88
//! lds 64

.include "include/params.inc"
.include "include/machine.inc"
.include "body/plan.inc"

	// Not the wrapper of the other kernels: that reads the step's head, which PLAN makes. One unit, for workgroup 0.
	.amdgcn_target "amdgcn-amd-amdhsa--gfx1201"
	.text
	.p2align 8
	s_mov_b32 s[GROUP], ttmp9
	v_and_b32_e32 v0, 0x3ff, v0
	s_load_b64 s[STEP_VA:STEP_VA+1], s[0:1], HEADER_STEP_VA
	s_wait_kmcnt 0x0
	s_cmp_lg_u32 s[GROUP], 0
	s_cbranch_scc1 .Lleave
	PLAN_BODY
.Lleave:
	s_endpgm
	.fill 64, 4, 0xbf9f0000
