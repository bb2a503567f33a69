// MATVEC of BF16 on the dispatch path.
//
//! parameters Matvec
//! workgroup 128 1 1
//! vgprs 86
//! sgprs 64
//! lds 0

.include "include/params.inc"
.include "include/machine.inc"
.include "include/math.inc"
.include "body/matvec.inc"
.include "body/matvec_dense.inc"

	DISPATCH_BEGIN
	MATVEC_BF16_BODY
	DISPATCH_END
