// Walks a chain. Parameters: 0 nodes, 8 out (offset at the end, shader cycles, ticks, 0), 24 steps before the clock starts,
// 28 steps timed; neither is 0. One wave.
	s_load_b256 s[4:11], s[0:1], 0x0
	s_mov_b32 exec_lo, 1
	v_mov_b32_e32 v0, 0
	v_mov_b32_e32 v7, 0
	s_wait_kmcnt 0x0
.Lwarm:
	global_load_b32 v0, v0, s[4:5]
	s_wait_loadcnt 0x0
	s_sub_co_u32 s10, s10, 1
	s_cmp_lg_u32 s10, 0
	s_cbranch_scc1 .Lwarm
	s_sendmsg_rtn_b64 s[12:13], sendmsg(MSG_RTN_GET_REALTIME)
	s_wait_kmcnt 0x0
	s_getreg_b32 s16, hwreg(HW_REG_SHADER_CYCLES_LO)
.Lwalk:
	global_load_b32 v0, v0, s[4:5]
	s_wait_loadcnt 0x0
	s_sub_co_u32 s11, s11, 1
	s_cmp_lg_u32 s11, 0
	s_cbranch_scc1 .Lwalk
	s_getreg_b32 s17, hwreg(HW_REG_SHADER_CYCLES_LO)
	s_sendmsg_rtn_b64 s[14:15], sendmsg(MSG_RTN_GET_REALTIME)
	s_wait_kmcnt 0x0
	s_sub_co_u32 s18, s17, s16
	s_sub_co_u32 s20, s14, s12
	s_wait_alu depctr_sa_sdst(0)
	v_mov_b32_e32 v4, v0
	v_mov_b32_e32 v5, s18
	v_mov_b32_e32 v6, s20
	v_mov_b32_e32 v0, 0
	global_store_b128 v0, v[4:7], s[6:7]
	s_endpgm
