// ARGMAX on the dispatch path.
//
//! parameters Argmax
//! workgroup 256 1 1
//! vgprs 26
//! sgprs 54
//! lds 64

.include "include/params.inc"
.include "include/machine.inc"
.include "include/math.inc"
.include "body/argmax.inc"

	DISPATCH_BEGIN
	ARGMAX_BODY
	DISPATCH_END
