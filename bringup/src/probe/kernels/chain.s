// Makes a chain of nodes 128 bytes apart: node i holds the offset of node (1664525 i + 1013904223) and mask, which visits all
// of them. Parameters: 0 nodes, 24 mask. Eight waves a group, one node an item.
	s_load_b256 s[4:11], s[0:1], 0x0
	s_lshl_b32 s12, ttmp9, 8
	v_and_b32_e32 v0, 0x3ff, v0
	s_wait_kmcnt 0x0
	s_wait_alu depctr_sa_sdst(0)
	v_add_nc_u32_e32 v0, s12, v0
	v_mul_lo_u32 v1, 0x19660d, v0
	v_add_nc_u32_e32 v1, 0x3c6ef35f, v1
	v_and_b32_e32 v1, s10, v1
	v_lshlrev_b32_e32 v1, 7, v1
	v_lshlrev_b32_e32 v0, 7, v0
	global_store_b32 v0, v1, s[4:5]
	s_endpgm
