// MATMUL of F16 in mode f16 on the dispatch path: matrix instructions of 16-bit floats from 9 rows on.
//
//! parameters Matmul
//! workgroup 256 1 1
//! vgprs 192
//! sgprs 98
//! lds 28800

.include "include/protocol.inc"
.include "include/machine.inc"
.include "include/math.inc"
.include "body/matmul.inc"
.include "body/matmul_dense.inc"
.include "body/matmul_float_tiles.inc"

	DISPATCH_BEGIN
	MATMUL_W16_BODY F16
	DISPATCH_END
