//! What a step is, and how it differs from the one before it.

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

/// How a step differs from the one before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelChange {
    /// By how much the mean level changes, without outliers.
    pub by: f64,
    /// The interval of that, at the confidence asked for, if there is a step at all.
    pub interval: (f64, f64),
    /// The probability that a series of as many values without a step, but with noise of this spread and correlation, has as
    /// clear a one anywhere; docs/steps.md says for which noise it is more.
    pub chance: f64,
}
