// A tile of bf16: see tile.inc.
	.macro MULTIPLY
	v_wmma_f32_16x16x16_bf16 v[16:23], v[8:11], v[12:15], v[16:23]
	.endm
	.include "tile.inc"
