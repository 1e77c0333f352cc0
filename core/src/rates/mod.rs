//! Computes rates with their measurement error from rounds.
//!
//! [`Delta`] is what was counted between two readings, [`Moments`] the mean and the spread of a
//! rate over intervals, [`Scaling`] the scaled count of a multiplexed event with what it may be
//! wrong by, and [`Tally`] all of them for every event. Spread and error are different things: a
//! program that varies has a spread however exactly it is counted.

mod confidence;
mod delta;
mod distributions;
mod moments;
mod scaling;
mod tally;
mod uncertain;

pub use confidence::Confidence;
pub use delta::{Backwards, Delta};
#[cfg(feature = "bench")]
pub(crate) use distributions::normal_quantile;
pub(crate) use distributions::{two_sided_quantile, two_sided_tail};
pub use moments::{Moments, mean};
pub use scaling::Scaling;
pub use tally::{Raw, ScopeIndex, Tally, number_of_scopes};
pub use uncertain::{Error, Uncertain};
