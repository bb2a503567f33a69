//! The example runs to its end.

#[path = "../examples/packets.rs"]
mod packets;

#[test]
fn packets_are_recorded_and_clean() {
    packets::main().unwrap();
}
