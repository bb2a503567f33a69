// ROPE, pairs across the halves, on the dispatch path.
//
//! parameters Rope
//! workgroup 256 1 1
//! vgprs 10
//! sgprs 98
//! lds 0

.include "include/protocol.inc"
.include "include/machine.inc"
.include "body/rope.inc"

	DISPATCH_BEGIN
	ROPE_HALVES_BODY
	DISPATCH_END
