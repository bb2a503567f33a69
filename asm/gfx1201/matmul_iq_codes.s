// MATMUL of IQ_CODES on the dispatch path.
//
//! parameters Matmul
//! workgroup 256 1 1
//! vgprs 192
//! sgprs 98
//! lds 16384

.include "include/protocol.inc"
.include "include/machine.inc"
.include "include/math.inc"
.include "body/matmul.inc"
.include "include/quant.inc"
.include "include/formats.inc"
.include "body/matmul_quant.inc"
.include "body/matmul_format.inc"

	DISPATCH_BEGIN
	MATMUL_IQ_CODES_BODY
	DISPATCH_END
