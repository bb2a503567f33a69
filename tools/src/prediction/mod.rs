//! The ruler: how long a kernel or a step would take on an R9700, predicted from counts of the virtual device.
//!
//! Contract: arithmetic over counts and over the card's numbers ([`card`]), each of which has a source. Every result is
//! a range and is called predicted, never measured. Nothing here knows a kernel: what one costs is counted by running
//! it ([`samples`]), so the prediction follows a kernel that is changed. `docs/prediction.md` describes the model, its
//! limits and its misses.

pub mod card;
pub mod issue;
pub mod kernel;
pub mod launch;
pub mod peers;
pub mod report;
pub mod samples;
pub mod shapes;
pub mod step;
pub mod work;
