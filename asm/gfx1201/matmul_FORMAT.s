// MATMUL of quantised weights on the dispatch path: a kernel for each format.
// The word FORMAT stands for its name.
//
//! parameters Matmul
//! workgroup 256 1 1
//! formats q8_0=192 q4_0=192 q4_k=192 q6_k=192 q4_1=192 q5_0=192 q5_1=192 q2_k=192 q3_k=192 q5_k=192 iq4_nl=192
//! formats iq4_xs=192 mxfp4=192 iq_codes=192 int8=192 fp8=192
//! sgprs 98
//! lds 28800

.include "include/protocol.inc"
.include "include/machine.inc"
.include "include/math.inc"
.include "body/matmul.inc"
.include "include/quant.inc"
.include "include/formats.inc"
.include "body/matmul_quant.inc"
.include "body/matmul_format.inc"

	DISPATCH_BEGIN
	MATMUL_FORMAT_BODY
	DISPATCH_END
