//! What a step is.

/// A stretch of a series that has one level.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The position of the first value.
    pub left: usize,
    /// The position after the last value. What lies between it and the next step is missing.
    pub right: usize,
    /// The level: the weighted median of the values.
    pub value: f64,
    /// The least of the values.
    pub minimum: f64,
    /// How far a value is from the level in the mean, where a weight of 1 is that of the median point.
    pub error: f64,
}
