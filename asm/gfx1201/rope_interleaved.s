// ROPE, interleaved pairs, on the dispatch path.
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
	ROPE_INTERLEAVED_BODY
	DISPATCH_END
