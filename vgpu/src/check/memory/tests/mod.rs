//! Tests of the memory checker against its interface: a rig that plays the engine, scenarios, and models.

mod flags;
mod happens_before;
mod host_writes;
mod lines;
mod packets;
mod rig;
mod scenarios;
mod stale_values;
mod texts;
mod undefined_bytes;
mod values;
