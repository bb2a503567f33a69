// QUANTISE for A16 on the dispatch path.
//
//! parameters Quantise
//! workgroup 256 1 1
//! vgprs 17
//! sgprs 98
//! lds 0

.include "include/protocol.inc"
.include "include/machine.inc"
.include "include/math.inc"
.include "include/block.inc"
.include "body/quantise.inc"

	DISPATCH_BEGIN
	QUANTISE_BODY 2
	DISPATCH_END
