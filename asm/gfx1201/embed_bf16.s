// EMBED of BF16 on the dispatch path.
//
//! parameters Embed
//! workgroup 256 1 1
//! vgprs 56
//! sgprs 98
//! lds 0

.include "include/protocol.inc"
.include "include/machine.inc"
.include "include/quant.inc"
.include "body/embed.inc"

	DISPATCH_BEGIN
	EMBED_BF16_BODY
	DISPATCH_END
