// MATMUL of quantised weights with activations as A8 on the dispatch path: a kernel for each format.
// The word FORMAT stands for its name.
//
//! parameters Matmul
//! workgroup 256 1 1
//! formats q8_0=148 q4_0=148 q4_k=156 q6_k=180 q4_1=156 q5_0=152 q5_1=156 q2_k=172 q3_k=180 q5_k=156 iq4_nl=152
//! formats iq4_xs=154 mxfp4=153 iq_codes=180 int8=152
//! sgprs 98
//! lds 20480

.include "include/protocol.inc"
.include "include/machine.inc"
.include "include/math.inc"
.include "body/matmul.inc"
.include "include/quant.inc"
.include "include/formats.inc"
.include "body/matmul_quant.inc"
.include "body/matmul_tiles.inc"
.include "body/matmul_tile_formats.inc"
.include "body/matmul_integer.inc"
.include "body/matmul_format.inc"

	DISPATCH_BEGIN
	MATMUL_INTEGER_FORMAT_BODY 1
	DISPATCH_END
