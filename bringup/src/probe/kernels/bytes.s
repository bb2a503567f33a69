// Sixteen products of bytes and an addend, by dot products. Parameters: 0 in (48 bytes an element: four dwords of a, four of
// b, c, 0, 0, 0), 8 out (8 bytes: signed, unsigned). One wave a group.
	s_load_b128 s[4:7], s[0:1], 0x0
	s_lshl_b32 s8, ttmp9, 5
	v_and_b32_e32 v0, 0x3ff, v0
	s_wait_kmcnt 0x0
	s_wait_alu depctr_sa_sdst(0)
	v_add_nc_u32_e32 v0, s8, v0
	v_mul_u32_u24_e32 v1, 48, v0
	v_lshlrev_b32_e32 v0, 3, v0
	global_load_b128 v[4:7], v1, s[4:5]
	global_load_b128 v[8:11], v1, s[4:5] offset:16
	global_load_b32 v12, v1, s[4:5] offset:32
	s_wait_loadcnt 0x0
	v_dot4_i32_iu8 v14, v4, v8, v12 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v15, v4, v8, v12
	v_dot4_i32_iu8 v14, v5, v9, v14 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v15, v5, v9, v15
	v_dot4_i32_iu8 v14, v6, v10, v14 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v15, v6, v10, v15
	v_dot4_i32_iu8 v14, v7, v11, v14 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v15, v7, v11, v15
	global_store_b64 v0, v[14:15], s[6:7]
	s_endpgm
