// KV_WRITE on the dispatch path.
//
//! parameters KvWrite
//! workgroup 256 1 1
//! vgprs 4
//! sgprs 49
//! lds 0

.include "include/params.inc"
.include "include/machine.inc"
.include "include/math.inc"
.include "body/vector.inc"

	DISPATCH_BEGIN
	KV_WRITE_BODY
	DISPATCH_END
