//! The inspection of the device: the checking mode, the profile, the debugger.
//!
//! Contract: with nothing enabled ([`Inspection`](crate::config::Inspection)) none of this affects a wave: the
//! interpreter is compiled twice, and memory has no watcher. With anything enabled, the device is deterministic and
//! runs on one thread. Waves compute the same values, except that under the checking mode a wave that reads a stale
//! copy receives the stale value.
//!
//! | rule | checked by |
//! |---|---|
//! | counters, hazards, undefined registers | `registers`, before every instruction; `trial` runs it on other bits |
//! | races (also of lanes), visibility, waits before release, regions, LDS, undefined memory | `memory`, fed by `watch`, at every access |
//! | faults of waves | `inspector`, from the scheduler |
//! | waits for groups that cannot become resident | `progress`, after every run of a group |
//! | livelocks: waves that repeat the same states forever | `circles`, after every turn of a wave |

pub(crate) mod circles;
pub mod debug;
pub mod finding;
pub(crate) mod inspector;
pub(crate) mod lds_access;
pub mod memory;
pub(crate) mod noted;
pub(crate) mod profile;
pub(crate) mod progress;
pub(crate) mod registers;
pub(crate) mod sectors;
#[cfg(test)]
pub(crate) mod switch;
pub(crate) mod trial;
pub(crate) mod undefined;
pub(crate) mod watch;
pub(crate) mod wave;

pub use finding::{Finding, Rule};
