// ATTENTION over a cache of F16 on the dispatch path.
//
//! parameters Attention
//! workgroup 256 1 1
//! vgprs 188
//! sgprs 98
//! lds 24832

.include "include/protocol.inc"
.include "include/machine.inc"
.include "include/math.inc"
.include "include/block.inc"
.include "body/quantise.inc"
.include "body/attention_formats.inc"
.include "body/attention_heads.inc"
.include "body/attention.inc"

	DISPATCH_BEGIN
	ATTENTION_BODY F16
	DISPATCH_END
