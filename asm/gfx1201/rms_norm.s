// RMS_NORM on the dispatch path.
//
//! parameters RmsNorm
//! workgroup 256 1 1
//! vgprs 35
//! sgprs 98
//! lds 32

.include "include/protocol.inc"
.include "include/machine.inc"
.include "include/math.inc"
.include "include/block.inc"
.include "body/quantise.inc"
.include "body/norm.inc"

	DISPATCH_BEGIN
	RMS_NORM_BODY
	DISPATCH_END
