// MATMUL of IQ_CODES with activations as A16 on the dispatch path.
//
//! parameters Matmul
//! workgroup 256 1 1
//! vgprs 188
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
	MATMUL_INTEGER_IQ_CODES_BODY 2
	DISPATCH_END
