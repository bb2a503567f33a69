// KV_WRITE of Q8_0 on the dispatch path.
//
//! parameters KvWrite
//! workgroup 256 1 1
//! vgprs 12
//! sgprs 98
//! lds 0

.include "include/protocol.inc"
.include "include/machine.inc"
.include "include/math.inc"
.include "include/block.inc"
.include "body/kv_write.inc"

	DISPATCH_BEGIN
	KV_WRITE_BODY Q8_0
	DISPATCH_END
