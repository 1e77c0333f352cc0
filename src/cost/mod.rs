//! Fits cost models to measurements: how a time or a count grows with sizes, and how sure that is.

mod graph;
pub mod solve;
mod term;

pub use graph::{DependencyGraph, GraphError, GraphNode, SolvedNode};
pub use term::{LinearCombination, NotLinear, TermId, TermNode, Terms};
