//! Scripts of `zrt run`, from what was read ([`zrt_script`]) to what the device does.

mod expand;
mod held;

pub(in crate::commands) use expand::expand;
