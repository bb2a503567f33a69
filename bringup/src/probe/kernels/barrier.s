// Barriers of eight waves. Parameters: 0 out (shader cycles, ticks), 24 barriers, not 0. One group.
	s_load_b256 s[4:11], s[0:1], 0x0
	v_mov_b32_e32 v0, 0
	s_bfe_u32 s20, ttmp8, 0x50019
	s_wait_kmcnt 0x0
	s_sendmsg_rtn_b64 s[12:13], sendmsg(MSG_RTN_GET_REALTIME)
	s_wait_kmcnt 0x0
	s_getreg_b32 s16, hwreg(HW_REG_SHADER_CYCLES_LO)
.Lmeet:
	s_barrier_signal -1
	s_barrier_wait -1
	s_sub_co_u32 s10, s10, 1
	s_cmp_lg_u32 s10, 0
	s_cbranch_scc1 .Lmeet
	s_getreg_b32 s17, hwreg(HW_REG_SHADER_CYCLES_LO)
	s_sendmsg_rtn_b64 s[14:15], sendmsg(MSG_RTN_GET_REALTIME)
	s_wait_kmcnt 0x0
	s_cmp_lg_u32 s20, 0
	s_cbranch_scc1 .Lend
	s_sub_co_u32 s18, s17, s16
	s_sub_co_u32 s22, s14, s12
	s_mov_b32 exec_lo, 1
	s_wait_alu depctr_sa_sdst(0)
	v_mov_b32_e32 v1, s18
	v_mov_b32_e32 v2, s22
	global_store_b64 v0, v[1:2], s[4:5]
.Lend:
	s_endpgm
