// BOUNDARY on the dispatch path.
//
//! parameters Boundary
//! workgroup 256 1 1
//! vgprs 28
//! sgprs 104
//! lds 0

.include "include/protocol.inc"
.include "include/machine.inc"
.include "body/boundary.inc"

	DISPATCH_BEGIN
	BOUNDARY_BODY
	DISPATCH_END
