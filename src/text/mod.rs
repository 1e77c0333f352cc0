//! A monitor in, plain text and JSON lines out: what people see without screens, and what other
//! programs read.

mod block;
mod json;
pub mod number;
mod summary;

pub use block::block;
pub use json::{interval as json_interval, totals as json_totals};
pub use summary::{Repeats, interval, interval_heading, summary};
