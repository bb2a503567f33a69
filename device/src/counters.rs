//! Evidence: what the device has done, as its [`Witness`](crate::Witness) counts it, or as the host submitted it.

/// Totals since the device was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Doorbell stores that the device saw: one per submission if each is waited for, fewer if it polls and several
    /// came between two polls. Without a witness: stores made.
    pub doorbells: u64,
    /// Packets executed, in rings and indirect buffers. Without a witness: packets submitted.
    pub packets: u64,
    /// Dispatches launched. Without a witness: dispatches submitted.
    pub dispatches: u64,
    /// Indirect buffers executed. Without a witness: submitted.
    pub submissions: u64,
    /// Instructions that waves executed; only a witness knows them.
    pub wave_instructions: Option<u64>,
}
