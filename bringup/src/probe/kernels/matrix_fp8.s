// A tile of E4M3: see tile.inc.
	.macro MULTIPLY
	v_wmma_f32_16x16x16_fp8_fp8 v[16:23], v[8:9], v[12:13], v[16:23]
	.endm
	.include "tile.inc"
