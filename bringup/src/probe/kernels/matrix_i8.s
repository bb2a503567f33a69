// A tile of signed bytes: see tile.inc.
	.macro MULTIPLY
	v_wmma_i32_16x16x16_iu8 v[16:23], v[8:9], v[12:13], v[16:23] neg_lo:[1,1,0]
	.endm
	.include "tile.inc"
