//! Fits cost models to measurements: how a time or a count grows with sizes, and how sure that is.

mod breakpoints;
mod choose;
mod correlation;
mod emit;
mod equations;
mod fit;
mod fit_error;
mod fit_options;
mod fitted;
mod graph;
mod injected;
mod lack_of_fit;
mod measurements;
mod model;
mod relation;
pub mod samples;
pub mod solve;
mod term;
mod workload;

pub use breakpoints::unknown_breakpoints;
pub use choose::{Choice, candidates, choose};
pub use emit::{Emitted, EmittedFit, Language, emit, emit_all};
pub use fit::Fit;
pub use fit_error::FitError;
pub use fit_options::{FitOptions, UnrepeatedErrors};
pub use fitted::{Coefficient, FittedModel, Prediction, VarianceFunction};
pub use graph::{DependencyGraph, GraphError, GraphNode, SolvedNode};
pub use injected::{FoundCoefficients, InjectedCoefficients};
pub use lack_of_fit::LackOfFit;
pub use measurements::FittedPoint;
pub use model::{CostModel, ModelError, NAMED_MODELS, NamedModel, is_unknown_model};
pub use relation::{FittedRelation, NoRelation, emit_relations};
pub use term::{LinearCombination, NotLinear, TermId, TermNode, Terms};
pub use workload::{
    MachineConditions, SweepRecord, SweepRuns, TIME, TIME_UNITS, Workload, WorkloadError, WorkloadFile, WorkloadHeader,
    sizes_in_words,
};
