//! What the engine may not make itself: time, ids and random text.

/// Source of generated values for automatic fields.
pub trait Fill {
    /// Unix time in milliseconds.
    fn now_millis(&mut self) -> u64;
    /// A random UUID, version 4, lower case.
    fn uuid(&mut self) -> String;
    /// 32 random characters from letters and digits (generated keys and secrets).
    fn token(&mut self) -> String;
}
