// MATMUL of quantised weights with activations as A16 on the dispatch path: a kernel for each format.
// The word FORMAT stands for its name.
//
//! parameters Matmul
//! workgroup 256 1 1
//! formats q8_0=172 q4_0=172 q4_k=180 q6_k=188 q4_1=180 q5_0=176 q5_1=180 q2_k=180 q3_k=188 q5_k=180 iq4_nl=176
//! formats iq4_xs=178 mxfp4=177 iq_codes=188 int8=176
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
	MATMUL_INTEGER_FORMAT_BODY 2
	DISPATCH_END
