//! Measures many more events than a CPU has counters, live, and says how far each number can be trusted.
//!
//! [`measure`] runs a measurement from options as data to a monitor and an outcome:
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use perfprop::measure::{MeasureOptions, Measurement};
//! use perfprop::number::plus_minus;
//! use perfprop::session::{ChildIo, Launch};
//!
//! let options = MeasureOptions { events: vec!["task-clock,page-faults".into()], ..MeasureOptions::default() };
//! let command = Launch::command(vec!["ls".into(), "/usr".into()], ChildIo::Inherit);
//! let mut note = |text: &str| eprintln!("{text}");
//! let measurement = Measurement::new(&options, command, &mut note)?;
//! let (monitor, outcome) = measurement.run(Duration::from_millis(100), &mut note)?;
//! for row in monitor.rows() {
//!     let event = &row.event.event;
//!     match row.best() {
//!         Some(count) => println!("{} {:.0} {}", event.name, count.value, plus_minus(count, &event.unit)),
//!         None => println!("{} was not counted", event.name),
//!     }
//! }
//! println!("{:?} after {} ns", outcome.end.exit, outcome.end.at_ns.0);
//! # Ok::<(), perfprop::measure::Error>(())
//! ```
//!
//! A program names its own parts with [`region`](mod@region).
//!
//! The modules stand in the order of the data; each imports only those above it.
//!
//! What everything uses:
//! - [`units`], [`defaults`], [`codes`], [`random`], [`names`], [`files`] and [`host`]: types of times; what serialized
//!   text leaves out; codes of errors; numbers that are drawn the same in every run; names from outside made safe to
//!   show; files that others control; what `/proc` and `/sys` say of the machine
//! - [`expr`]: expressions, their values and derivatives
//!
//! From names to counts:
//! - [`events`]: what the kernel is asked to count for a name
//! - [`plan`]: the groups of the events, and their rotation
//! - [`threads`]: what the target's threads do
//! - [`sources`] and [`sampling`]: rounds of readings, from the kernel, a model or a script; the thread that reads them
//! - [`rates`]: rates, scaled counts and their errors
//! - [`number`]: numbers as text
//!
//! Call stacks:
//! - [`profile`] and [`callgrind`]: trees of call paths
//! - [`regions`]: what the named regions of measured programs counted
//! - [`stacks`]: sampled call stacks
//!
//! From counts to estimates:
//! - [`run`]: what was measured, where, and how it ended
//! - [`metrics`] and [`relations`]: formulas over events
//! - [`estimate`]: counts with intervals
//! - [`steps`]: where the level of a series changed
//! - [`monitor`]: all that a screen, a text or a file shows
//! - [`diagnosis`]: what stands out in that
//! - [`compare`]: which differences between runs are more than chance
//! - [`cost`]: how times and counts grow with sizes
//! - [`machine`]: what can be counted here, and what forbids it
//! - [`session`] and [`measure`]: running a measurement
//! - [`validate`]: whether intervals hold the truth on this machine
//! - [`bench`](mod@bench): commands with many sizes, beside one another
//! - [`history`]: what benchmarks took of one version of a program, and of another
//!
//! To files and people:
//! - [`recording`] and [`stack_formats`]: files of rounds and of call stacks
//! - [`charts`]: pictures of points and lines
//! - [`text`], [`site`], [`tui`] and [`cli`]: texts, pages of a history, screens, the program

// From `units` to `bench`.
#[doc(inline)]
pub use perfprop_core::*;

// Blank lines keep this order.
#[cfg(feature = "history")]
pub mod history;

// To files and people.
pub mod recording;

#[cfg(feature = "export")]
pub mod stack_formats;

#[cfg(feature = "bench")]
pub mod charts;

pub mod text;

#[cfg(feature = "history")]
pub mod site;

#[cfg(feature = "tui")]
pub mod tui;

#[cfg(feature = "cli")]
pub mod cli;

/// Names the parts of a program of one's own, and counts what each costs: the crate `perfprop-regions`, which a program
/// can also depend on alone.
///
/// ```
/// let _guard = perfprop::region!("likelihood");
/// {
///     // The name may be known only when the program runs.
///     let _guard = perfprop::region::region("prior");
/// }
/// ```
pub use perfprop_regions as region;
pub use perfprop_regions::region;

// Tests below `tests/` share these, which therefore name the crate.
#[cfg(test)]
extern crate self as perfprop;

#[cfg(test)]
#[path = "../tests/support/builders.rs"]
mod builders;
#[cfg(test)]
#[path = "../tests/support/goldens.rs"]
mod goldens;
