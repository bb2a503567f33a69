// Two groups hand a number back and forth, each adding one. Parameters: 0 out (16 bytes a group: the last number, shader cycles,
// ticks, 0), 8 the number, 24 turns of each group, 28 most polls of each group. One wave a group.
	s_load_b256 s[4:11], s[0:1], 0x0
	s_mov_b32 exec_lo, 1
	v_mov_b32_e32 v0, 0
	v_mov_b32_e32 v7, 0
	s_mov_b32 s14, ttmp9
	s_lshl_b32 s24, ttmp9, 4
	s_sendmsg_rtn_b64 s[12:13], sendmsg(MSG_RTN_GET_REALTIME)
	s_wait_kmcnt 0x0
	s_getreg_b32 s16, hwreg(HW_REG_SHADER_CYCLES_LO)
.Lpoll:
	s_sleep 1
	s_sub_co_u32 s11, s11, 1
	s_cmp_eq_u32 s11, 0
	s_cbranch_scc1 .Lend
	global_load_b32 v1, v0, s[6:7] scope:SCOPE_DEV
	s_wait_loadcnt 0x0
	v_readfirstlane_b32 s15, v1
	s_cmp_lg_u32 s15, s14
	s_cbranch_scc1 .Lpoll
	v_add_nc_u32_e32 v1, 1, v1
	global_store_b32 v0, v1, s[6:7] scope:SCOPE_DEV
	s_add_co_u32 s14, s14, 2
	s_sub_co_u32 s10, s10, 1
	s_cmp_lg_u32 s10, 0
	s_cbranch_scc1 .Lpoll
.Lend:
	s_getreg_b32 s17, hwreg(HW_REG_SHADER_CYCLES_LO)
	s_sendmsg_rtn_b64 s[18:19], sendmsg(MSG_RTN_GET_REALTIME)
	s_wait_kmcnt 0x0
	s_sub_co_u32 s20, s17, s16
	s_sub_co_u32 s22, s18, s12
	s_wait_alu depctr_sa_sdst(0)
	v_mov_b32_e32 v0, s24
	v_mov_b32_e32 v4, v1
	v_mov_b32_e32 v5, s20
	v_mov_b32_e32 v6, s22
	global_store_b128 v0, v[4:7], s[4:5]
	s_endpgm
