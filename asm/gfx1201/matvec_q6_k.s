// MATVEC of Q6_K on the dispatch path.
//
//! parameters Matvec
//! workgroup 128 1 1
//! vgprs 96
//! sgprs 64
//! lds 0

.include "include/params.inc"
.include "include/machine.inc"
.include "include/math.inc"
.include "body/matvec.inc"
.include "include/quant.inc"
.include "body/matvec_quant.inc"

	DISPATCH_BEGIN
	MATVEC_Q6_K_BODY
	DISPATCH_END
