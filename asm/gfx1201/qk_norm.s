// QK_NORM on the dispatch path.
//
//! parameters QkNorm
//! workgroup 256 1 1
//! vgprs 28
//! sgprs 98
//! lds 0

.include "include/protocol.inc"
.include "include/machine.inc"
.include "include/math.inc"
.include "body/norm.inc"

	DISPATCH_BEGIN
	QK_NORM_BODY
	DISPATCH_END
