// PLAN on the dispatch path.
//
//! parameters Plan
//! workgroup 256 1 1
//! vgprs 96
//! sgprs 104
//! lds 64

.include "include/protocol.inc"
.include "include/machine.inc"
.include "body/plan.inc"
.include "body/plan_rings.inc"
.include "body/plan_rows.inc"

	DISPATCH_BEGIN
	PLAN_BODY
	DISPATCH_END
