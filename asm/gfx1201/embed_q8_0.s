// EMBED of Q8_0 on the dispatch path.
//
//! parameters Embed
//! workgroup 256 1 1
//! vgprs 48
//! sgprs 98
//! lds 0

.include "include/protocol.inc"
.include "include/machine.inc"
.include "include/quant.inc"
.include "body/embed.inc"

	DISPATCH_BEGIN
	EMBED_Q8_0_BODY
	DISPATCH_END
