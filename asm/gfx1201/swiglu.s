// SWIGLU on the dispatch path.
//
//! parameters SwiGlu
//! workgroup 256 1 1
//! vgprs 17
//! sgprs 98
//! lds 0

.include "include/protocol.inc"
.include "include/machine.inc"
.include "include/math.inc"
.include "include/block.inc"
.include "body/quantise.inc"
.include "body/vector.inc"

	DISPATCH_BEGIN
	SWIGLU_BODY
	DISPATCH_END
