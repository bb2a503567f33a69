// SAMPLE on the dispatch path.
//
//! parameters Sample
//! workgroup 256 1 1
//! vgprs 66
//! sgprs 98
//! lds 30720

.include "include/protocol.inc"
.include "include/machine.inc"
.include "include/math.inc"
.include "body/sample_logits.inc"
.include "body/sample.inc"
.include "body/sample_descent.inc"
.include "body/sample_extras.inc"

	DISPATCH_BEGIN
	SAMPLE_BODY
	DISPATCH_END
