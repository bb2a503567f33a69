//! Tests of the memory checker against its interface: a rig that plays the engine, scenarios, and a model.

mod happens_before;
mod host_writes;
mod rig;
mod scenarios;
mod values;
