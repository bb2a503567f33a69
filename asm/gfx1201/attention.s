// ATTENTION on the dispatch path.
//
//! parameters Attention
//! workgroup 128 1 1
//! vgprs 84
//! sgprs 56
//! lds 6144

.include "include/params.inc"
.include "include/machine.inc"
.include "include/math.inc"
.include "body/attention.inc"

	DISPATCH_BEGIN
	ATTENTION_BODY
	DISPATCH_END
