// EMBED of F32 on the dispatch path.
//
//! parameters Embed
//! workgroup 256 1 1
//! vgprs 40
//! sgprs 98
//! lds 0

.include "include/protocol.inc"
.include "include/machine.inc"
.include "include/quant.inc"
.include "body/embed.inc"

	DISPATCH_BEGIN
	EMBED_F32_BODY
	DISPATCH_END
