// MATMUL of quantised weights with activations as A8 on the dispatch path: a kernel for each format.
// The word FORMAT stands for its name.
//
//! parameters Matmul
//! workgroup 256 1 1
//! formats q8_0=176 q4_0=176 q4_k=184 q6_k=184 q4_1=184 q5_0=181 q5_1=184 q2_k=184 q3_k=184 q5_k=184 iq4_nl=181
//! formats iq4_xs=182 mxfp4=181 iq_codes=184 int8=178
//! sgprs 98
//! lds 27136

.include "include/protocol.inc"
.include "include/machine.inc"
.include "include/math.inc"
.include "body/matmul.inc"
.include "include/quant.inc"
.include "include/formats.inc"
.include "body/matmul_quant.inc"
.include "body/matmul_tiles.inc"
.include "body/matmul_tile_units.inc"
.include "body/matmul_tile_formats.inc"
.include "body/matmul_integer.inc"
.include "body/matmul_segments.inc"
.include "body/matmul_format.inc"

	DISPATCH_BEGIN
	MATMUL_INTEGER_FORMAT_BODY 1
	DISPATCH_END
