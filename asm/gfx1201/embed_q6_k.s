// EMBED of Q6_K on the dispatch path.
//
//! parameters Embed
//! workgroup 256 1 1
//! vgprs 49
//! sgprs 98
//! lds 0

.include "include/protocol.inc"
.include "include/machine.inc"
.include "include/quant.inc"
.include "body/embed.inc"

	DISPATCH_BEGIN
	EMBED_Q6_K_BODY
	DISPATCH_END
