// Where each wave is, while every group that fits is there. Parameters: 0 out (16 bytes a wave: HW_ID1, HW_ID2, groups
// that wave 0 saw arrive, 0), 8 counter, 24 patience in ticks of the reference clock, 28 groups. Eight waves a group.
	s_getreg_b32 s12, hwreg(HW_REG_HW_ID1)
	s_getreg_b32 s13, hwreg(HW_REG_HW_ID2)
	s_load_b256 s[4:11], s[0:1], 0x0
	s_bfe_u32 s20, ttmp8, 0x50019
	s_lshl_b32 s15, ttmp9, 3
	s_add_co_u32 s15, s15, s20
	s_lshl_b32 s15, s15, 4
	s_mov_b32 exec_lo, 1
	s_wait_alu depctr_sa_sdst(0)
	v_mov_b32_e32 v0, s15
	v_mov_b32_e32 v1, s12
	v_mov_b32_e32 v2, s13
	v_mov_b32_e32 v3, 0
	v_mov_b32_e32 v4, 0
	v_mov_b32_e32 v5, 0
	v_mov_b32_e32 v6, 1
	s_wait_kmcnt 0x0
	s_cmp_lg_u32 s20, 0
	s_cbranch_scc1 .Lmeet
	global_atomic_add_u32 v5, v6, s[6:7] scope:SCOPE_DEV
	s_sendmsg_rtn_b64 s[16:17], sendmsg(MSG_RTN_GET_REALTIME)
	s_wait_kmcnt 0x0
.Lpoll:
	s_sleep 1
	global_load_b32 v3, v5, s[6:7] scope:SCOPE_DEV
	s_wait_loadcnt 0x0
	v_readfirstlane_b32 s21, v3
	s_cmp_ge_u32 s21, s11
	s_cbranch_scc1 .Lmeet
	s_sendmsg_rtn_b64 s[18:19], sendmsg(MSG_RTN_GET_REALTIME)
	s_wait_kmcnt 0x0
	s_sub_co_u32 s18, s18, s16
	s_cmp_lt_u32 s18, s10
	s_cbranch_scc1 .Lpoll
.Lmeet:
	s_barrier_signal -1
	s_barrier_wait -1
	global_store_b128 v0, v[1:4], s[4:5]
	s_endpgm
