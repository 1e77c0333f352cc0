//! Runs the program `perfprop`: parses its arguments, runs the verb, returns the exit code.

use std::process::ExitCode;

use clap::Parser;

mod args;
mod check;
mod compare;
mod error;
mod estimate;
mod export;
mod generate;
mod habits;
mod imported;
mod learn;
mod list;
mod look;
mod options;
mod outcome;
mod record;
mod relations;
mod replay;
mod signals;
mod stacks;
mod stat;
mod stream;
mod target;
mod top;

pub use args::command;
pub use error::Error;

use args::{Args, Verb};

/// Runs the program with the process' own arguments.
pub fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    let args = match Args::try_parse_from(&words) {
        Ok(args) => args,
        Err(error) => return error::usage(&error, &words),
    };
    match run(&args.verb) {
        Ok(code) => ExitCode::from(code),
        Err(error) => error.report(),
    }
}

fn run(verb: &Verb) -> Result<u8, Error> {
    match verb {
        Verb::Top(args) => top::run(args),
        Verb::Stat(args) => stat::run(args),
        Verb::Record(args) => record::run(args),
        Verb::Replay(args) => replay::run(args),
        Verb::List(args) => list::run(args),
        Verb::Check(args) => check::run(args),
        Verb::Relations(args) => relations::run(args),
        Verb::Export(args) => export::run(args),
        Verb::Estimate(args) => estimate::run(args),
        Verb::Completions(args) => generate::completions(args),
        Verb::Man(args) => generate::man(args),
    }
}
