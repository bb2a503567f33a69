// SOFT_CAP on the dispatch path.
//
//! parameters SoftCap
//! workgroup 256 1 1
//! vgprs 10
//! sgprs 98
//! lds 0

.include "include/protocol.inc"
.include "include/machine.inc"
.include "include/math.inc"
.include "body/vector.inc"

	DISPATCH_BEGIN
	SOFT_CAP_BODY
	DISPATCH_END
