// EMBED of quantised weights on the dispatch path: a kernel for each format.
// The word FORMAT stands for its name.
//
//! parameters Embed
//! workgroup 256 1 1
//! formats q8_0=48 q4_0=44 q4_k=48 q6_k=49 q4_1=56 q5_0=56 q5_1=56 q2_k=56 q3_k=56 q5_k=56 iq4_nl=56 iq4_xs=56
//! formats mxfp4=56 iq_codes=56 int8=56 fp8=56
//! sgprs 98
//! lds 0

.include "include/protocol.inc"
.include "include/machine.inc"
.include "include/quant.inc"
.include "include/formats.inc"
.include "body/embed.inc"
.include "body/embed_format.inc"

	DISPATCH_BEGIN
	EMBED_FORMAT_BODY
	DISPATCH_END
