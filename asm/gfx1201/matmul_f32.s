// MATMUL of F32 on the dispatch path.
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

	DISPATCH_BEGIN
	MATMUL_F32_BODY
	DISPATCH_END
