//! Builds one tree of call paths from frames entered, replaced and exited, or from whole stacks.
//!
//! A node of the [`Tree`] is a call path: the frames from the root down to it. With
//! [`RepeatFolding::Fold`] paths are canonical: where the last k frames of a path equal the k before them,
//! these k are one round of a recursion, and the path goes back by them. So recursion of any depth takes
//! a few nodes, and two stacks that differ only in how often they recursed are one path.
//!
//! ```text
//!   enter A B A B C:   [root] ── A ── B ── C        A B + A: last 1 = 1 before? no; new child A
//!                                ╰──▶ A             A B A + B: last 2 = 2 before: back to B
//!                                                   (the edge from the second A to B is remembered)
//! ```
//!
//! Who runs code itself, as an interpreter does, says so as it happens:
//!
//! ```
//! # extern crate perfprop_core as perfprop;
//! use perfprop::profile::{Frame, ProfileEvent, SampleMeasure, Tree};
//!
//! let mut tree = Tree::default();
//! let main = tree.frame(&Frame { file: "main.src", ..Frame::function("main") });
//! let step = tree.frame(&Frame::function("step"));
//! let ticks = tree.event(&ProfileEvent::new("ticks", SampleMeasure::Samples));
//! let thread = tree.thread();
//! tree.enter(thread, main);
//! tree.enter(thread, step);
//! tree.sample(thread, ticks, 1);
//! tree.replace(thread, main); // a tail call
//! tree.exit(thread);
//! let paths: Vec<_> = tree.walk().map(|node| (tree.names(node.id()), node.calls(), node.samples(ticks))).collect();
//! assert_eq!(paths[3], (vec!["[root]", "main", "step", "main"], 1, 0));
//! ```
//!
//! Who samples stacks hands them over whole: [`Tree::stack`]. An event holds a number of samples and a
//! weight on every node where it was met; nodes hold what was counted there itself, and
//! [`Tree::inclusive`] adds up what was counted below.

mod cap;
mod combine;
mod counts;
mod entry;
mod frame;
mod node;
mod ratio;
mod reduce;
mod share;
mod times;
mod tree;
mod walk;
mod weight;

pub use combine::{AmountChange, Difference};
pub use counts::CallCounts;
pub use entry::is_runtime_entry;
pub use frame::{Frame, FrameId, FrameKind};
pub use node::{NodeId, NodeRef};
pub use ratio::sampled_ratio;
pub use share::share_error;
pub use times::CallTimes;
pub use tree::{Detail, RepeatFolding, ThreadId, Tree, TreeOptions};
pub use walk::Walk;
pub use weight::{Amount, EventId, ProfileEvent, SampleMeasure};
