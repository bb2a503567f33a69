//! How long caches keep what a packet touches.

field_values! {
    /// How long the caches should keep a line (hardware reference §4.6; gfx10 and gfx11 had a cache policy here).
    TemporalHint {
        /// Regular.
        #[default]
        Regular = 0,
        /// Not used again soon.
        NonTemporal = 1,
        /// Used again soon.
        HighTemporal = 2,
        /// Last use.
        LastUse = 3,
    }
}
