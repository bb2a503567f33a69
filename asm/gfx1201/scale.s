// SCALE on the dispatch path.
//
//! parameters Scale
//! workgroup 256 1 1
//! vgprs 10
//! sgprs 98
//! lds 0

.include "include/protocol.inc"
.include "include/machine.inc"
.include "include/math.inc"
.include "body/vector.inc"

	DISPATCH_BEGIN
	SCALE_BODY
	DISPATCH_END
