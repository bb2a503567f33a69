// MATMUL of quantised weights with activations as A16 on the dispatch path: a kernel for each format.
// The word FORMAT stands for its name.
//
//! parameters Matmul
//! workgroup 256 1 1
//! formats q8_0=184 q4_0=184 q4_k=192 q6_k=192 q4_1=192 q5_0=189 q5_1=192 q2_k=192 q3_k=192 q5_k=192 iq4_nl=189
//! formats iq4_xs=190 mxfp4=189 iq_codes=192 int8=186
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
	MATMUL_INTEGER_FORMAT_BODY 2
	DISPATCH_END
