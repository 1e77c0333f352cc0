//! Defines the argument of the format in which stacks are written.

use clap::ValueEnum;

use crate::stack_formats::InputFormat;

/// What a file of stacks is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StackFormat {
    /// The text of `perf script`
    PerfScript,
    /// One stack per line: `main;f;g 12`
    Folded,
    /// pprof's protobuf, gzipped or not
    Pprof,
    /// A recording of `perfprop record -g`
    Recording,
    /// A file of valgrind's callgrind or cachegrind, `callgrind.out.PID`
    Callgrind,
}

impl From<StackFormat> for InputFormat {
    fn from(format: StackFormat) -> Self {
        match format {
            StackFormat::PerfScript => Self::PerfScript,
            StackFormat::Folded => Self::Folded,
            StackFormat::Pprof => Self::Pprof,
            StackFormat::Recording => Self::Recording,
            StackFormat::Callgrind => Self::Callgrind,
        }
    }
}
