// EMBED of Q5_0 on the dispatch path.
//
//! parameters Embed
//! workgroup 256 1 1
//! vgprs 56
//! sgprs 98
//! lds 0

.include "include/protocol.inc"
.include "include/machine.inc"
.include "include/quant.inc"
.include "include/formats.inc"
.include "body/embed.inc"
.include "body/embed_format.inc"

	DISPATCH_BEGIN
	EMBED_Q5_0_BODY
	DISPATCH_END
