// Reads four lines, lets the host rewrite them, and reads them again, the weakest way first and each line in one way.
// Parameters: 0 lines (256 bytes each), 8 page, 24 patience in ticks of the reference clock. Page: 0 ready (stored here),
// 256 go (stored by the host), 512 what was read again: CU; CU after global_inv DEV; SYS; CU after global_inv SYS.
	s_load_b256 s[4:11], s[0:1], 0x0
	s_mov_b32 exec_lo, 1
	v_mov_b32_e32 v0, 0
	v_mov_b32_e32 v5, 1
	s_wait_kmcnt 0x0
	global_load_b32 v1, v0, s[4:5]
	global_load_b32 v2, v0, s[4:5] offset:256
	global_load_b32 v3, v0, s[4:5] offset:512
	global_load_b32 v4, v0, s[4:5] offset:768
	s_wait_loadcnt 0x0
	global_store_b32 v0, v5, s[6:7] scope:SCOPE_SYS
	s_sendmsg_rtn_b64 s[12:13], sendmsg(MSG_RTN_GET_REALTIME)
	s_wait_kmcnt 0x0
.Lpoll:
	s_sleep 1
	global_load_b32 v6, v0, s[6:7] offset:256 scope:SCOPE_SYS
	s_wait_loadcnt 0x0
	v_readfirstlane_b32 s14, v6
	s_cmp_lg_u32 s14, 0
	s_cbranch_scc1 .Lgo
	s_sendmsg_rtn_b64 s[16:17], sendmsg(MSG_RTN_GET_REALTIME)
	s_wait_kmcnt 0x0
	s_sub_co_u32 s16, s16, s12
	s_cmp_lt_u32 s16, s10
	s_cbranch_scc1 .Lpoll
	s_endpgm
.Lgo:
	global_load_b32 v1, v0, s[4:5]
	s_wait_loadcnt 0x0
	global_inv scope:SCOPE_DEV
	s_wait_loadcnt 0x0
	global_load_b32 v2, v0, s[4:5] offset:256
	s_wait_loadcnt 0x0
	global_load_b32 v3, v0, s[4:5] offset:512 scope:SCOPE_SYS
	s_wait_loadcnt 0x0
	global_inv scope:SCOPE_SYS
	s_wait_loadcnt 0x0
	global_load_b32 v4, v0, s[4:5] offset:768
	s_wait_loadcnt 0x0
	global_store_b128 v0, v[1:4], s[6:7] offset:512
	s_endpgm
