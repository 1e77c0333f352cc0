//! Names the parts of a program, counts what each costs, and shares that with `perfprop`.
//!
//! ```
//! use perfprop_regions::{Region, record, snapshot};
//!
//! static MODEL: Region = Region::new("model");
//! static PRIOR: Region = Region::new("prior");
//!
//! record(true);
//! for _ in 0..10 {
//!     let _model = MODEL.enter();
//!     let _prior = PRIOR.enter();
//! }
//! for row in snapshot().map(|snapshot| snapshot.rows()).unwrap_or_default() {
//!     println!("{}: {} calls, {} ns", row.name, row.times.calls, row.times.forward_ns);
//! }
//! ```
//!
//! A region is a [name](Region) and the thread that enters it. Regions nest, and close in any order. Times contain those of
//! regions within; the tree of [paths](Snapshot::paths) has each region's own. What markers cost is measured once and
//! taken off ([`Marker`]).
//!
//! `PERFPROP_REGION_EVENTS` names events that are counted in each region ([`EVENTS`]); a row has their [sums](EventSums), from
//! which their [totals](EventTotal) follow.
//!
//! Nothing is recorded until somebody wants it: the program ([`record`]), its user (`PERFPROP_REGION_CSV=file`, or
//! `PERFPROP_REGION_JSON=file`, `-` for standard output), or `perfprop top`, `stat` and `record`, which read the same memory
//! while the program runs. Until then a region costs a load and a branch.

mod c;
mod callback;
mod clock;
mod event_totals;
mod events;
mod histogram;
mod instrument;
pub mod layout;
mod markers;
mod memory;
mod output;
mod progress;
mod region;
mod report;
mod run;
mod snapshot;
mod table;
mod thread;
mod told;
#[cfg(feature = "tracing")]
mod tracing;

pub use callback::{on_report, report};
pub use event_totals::{CountedPart, EventSums, EventTotal};
pub use events::{EVENTS, EVENTS_FILE, MOST as MOST_EVENTS, event_names, is_event};
pub use instrument::Instrumented;
pub use memory::{FOLDER, MEMFD, folder_of};
pub use output::{CSV, JSON, csv, json};
pub use region::{AlreadyOpen, Counter, Guard, Region, Reverse, counter, phase, record, region, try_region};
pub use report::{Certainty, PathRow, Row, Spread, Times, WARM_UP, outlasted_words};
pub use snapshot::{
    Activity, EventCounts, EventMarker, FILE_SIZE, LostCalls, MarkOf, Marker, NodeCounts, Snapshot, SnapshotError,
    Source, ThreadActivity, ThreadRegions,
};

#[cfg(feature = "tracing")]
pub use tracing::RegionLayer;

/// Makes each call of a function a region of the function's name, with the path of its module. Calls within calls count, and
/// their time is the outermost one's. An `async` function is measured while it is polled.
///
/// ```
/// use perfprop_regions::profile;
///
/// #[profile]
/// fn fibonacci(n: u64) -> u64 {
///     if n < 2 { n } else { fibonacci(n - 1) + fibonacci(n - 2) }
/// }
///
/// /// Another name than the function's.
/// #[profile("load")]
/// async fn read(path: &str) -> std::io::Result<String> {
///     std::fs::read_to_string(path)
/// }
/// # assert_eq!(fibonacci(10), 55);
/// # drop(read(""));
/// ```
///
/// A program that has this crate through another one says where: `#[profile(crate = perfprop::region)]`. A `const` function
/// can't be a region.
#[cfg(feature = "macros")]
pub use perfprop_regions_macros::profile;

/// Opens a region whose name is known when the program is written, which is registered once: the guard is that of
/// [`Region::enter`].
///
/// ```
/// let _open = perfprop_regions::region!("likelihood");
/// ```
#[macro_export]
macro_rules! region {
    ($name:expr $(,)?) => {{
        static REGION: $crate::Region = $crate::Region::new($name);
        REGION.enter()
    }};
}

/// What the regions of this process counted so far; `None` before the first region.
pub fn snapshot() -> Option<Snapshot> {
    table::present().and_then(|table| thread::apart(|| table.snapshot()).flatten())
}
