// Transposing loads of one tile. Parameters: 0 in (512 bytes), 8 out: 16 bytes a lane of global_load_tr_b128, from 512 on 8
// bytes a lane of global_load_tr_b64. Lane l names byte 16 l, and byte 8 l.
	s_load_b128 s[4:7], s[0:1], 0x0
	v_and_b32_e32 v0, 0x3ff, v0
	v_lshlrev_b32_e32 v1, 4, v0
	v_lshlrev_b32_e32 v2, 3, v0
	s_wait_kmcnt 0x0
	global_load_tr_b128 v[4:7], v1, s[4:5]
	global_load_tr_b64 v[8:9], v2, s[4:5]
	s_wait_loadcnt 0x0
	global_store_b128 v1, v[4:7], s[6:7]
	global_store_b64 v2, v[8:9], s[6:7] offset:512
	s_endpgm
