//! Runs commands with many sizes, and keeps what each run took as workloads for a fit.
//!
//! ```text
//! commands, words ── variants ┐
//!                             ├─ cells, in shuffled turns ── runs ── a file for each variant, whole after each run
//! sizes ───────────── points ─┘
//! ```

mod closures;
mod comparison;
mod conditions;
mod design;
mod hooks;
mod interruptible;
mod parameter;
mod precision;
mod process_start;
mod runner;
mod said;
mod store;
mod sweep;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

pub use closures::{ClosureBench, PairedChange, paired, timer_latency};
pub use comparison::{VariantComparison, comparisons, nanoseconds, quantities, unit};
pub use conditions::warnings;
pub use design::{Sizes, Variant, command_at, command_line, filled, order, points, shell_text, variants};
pub use hooks::{HookFailure, HookKind, Hooks};
pub use interruptible::{CommandEnd, output_until_signal, run_until_signal};
pub use parameter::{Parameter, ParameterValues, SizeValue};
pub use precision::{LEAST_RUNS, determined, error_of_median};
pub use process_start::{ProcessStart, StartRole};
pub use runner::{CPU_TIMES, Ran, RunOnce, Runner, SIGNAL_PATIENCE};
pub use store::{EXIT_CODE, NotResumed, NotResumedReason, PreviousSweep, SweepStore};
pub use sweep::{SweepProgress, Swept, sweep};

use crate::cost::samples::Determinizer;
use crate::measure;
use crate::names::{quoted, shown, shown_path};
use crate::number::time;
use crate::sources::Counter;

/// What is run.
#[derive(Clone, Debug)]
pub struct SweepOptions {
    /// The commands, which are compared with the first; a parameter's name in braces stands for its value.
    pub commands: Vec<Vec<String>>,
    /// The sizes and words.
    pub parameters: Vec<Parameter>,
    /// The events that are counted.
    pub events: Vec<String>,
    /// How often each command is measured with each set of sizes, at the most.
    pub repeats: usize,
    /// How often it is run before anything is kept.
    pub warmups: usize,
    /// Runs end once the time is known to this part of it.
    pub until: Option<f64>,
    /// What stands for the repetitions of a run.
    pub determinizer: Determinizer,
    /// What the order of runs is drawn by.
    pub seed: u64,
    /// Whether a run counts that ends with another exit code than 0, and the sweep goes on after one that took too long.
    pub ignores_failure: bool,
    /// The longest that a run may take; as long as it wants if `None`.
    pub timeout: Option<Duration>,
    /// What counts: this machine, or a model.
    pub counter: Counter,
    /// The CPU that commands are kept on.
    pub cpu: Option<u32>,
    /// What runs around runs.
    pub hooks: Hooks,
}

impl SweepOptions {
    /// The caches of the model, if one counts.
    fn caches(&self) -> Option<String> {
        match &self.counter {
            Counter::Kernel => None,
            Counter::Model(model) => Some(model.to_string()),
        }
    }

    /// Finds what is wrong with the options before anything is started.
    ///
    /// # Errors
    /// Says what is wrong, and what to do.
    pub fn check(&self) -> Result<(), String> {
        if self.commands.is_empty() || self.commands.iter().any(Vec::is_empty) {
            return Err("a command is missing: write one after -- and after each --vs".into());
        }
        if let (Some(_), Determinizer::Percentile(percent @ (0.0 | 100.0))) = (self.until, self.determinizer) {
            let end = if percent == 0.0 { "fastest" } else { "slowest" };
            return Err(format!(
                "--until would never be reached: no number of runs says how far off the {end} (p{percent}) is; choose the \
                 median, the mean, or another percentile"
            ));
        }
        for (place, parameter) in self.parameters.iter().enumerate() {
            let name = &parameter.name;
            if self.parameters[..place].iter().any(|other| other.name == *name) {
                return Err(format!("parameter {name} is given twice"));
            }
            let braced = format!("{{{name}}}");
            // What prepares a run may be all that depends on it.
            let prepares = [&self.hooks.setup, &self.hooks.prepare].into_iter().flatten();
            if prepares.into_iter().any(|text| text.contains(&braced)) {
                continue;
            }
            let without = self.commands.iter().find(|command| !command.iter().any(|word| word.contains(&braced)));
            if let Some(command) = without {
                let which =
                    if self.commands.len() == 1 { String::new() } else { format!(" {}", quoted(&command.join(" "))) };
                return Err(format!("the command{which} has no {braced}: write it where the value goes"));
            }
        }
        Ok(())
    }

    /// A name in braces that is a whole word of a command, and to which no parameter gives values: the command gets it as it is.
    pub fn name_without_values(&self) -> Option<&str> {
        let names = self.commands.iter().flatten().filter_map(|word| word.strip_prefix('{')?.strip_suffix('}'));
        let is_name = |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        names.filter(is_name).find(|name| self.parameters.iter().all(|parameter| parameter.name != *name))
    }
}

/// Why a sweep can't go on. What was measured is kept.
#[derive(Debug)]
pub enum SweepError {
    /// The command can't be measured.
    Measure(measure::Error),
    /// The command failed.
    Failed {
        /// The command with its sizes.
        command: String,
        /// The sizes, in words.
        sizes: String,
        /// How it ended.
        exit: String,
    },
    /// A run took longer than it may, and was ended.
    TimedOut {
        /// The command with its sizes.
        command: String,
        /// The sizes, in words.
        sizes: String,
        /// The longest that a run may take.
        timeout: Duration,
    },
    /// An event wasn't counted.
    NotCounted(String),
    /// A command around runs failed.
    Hook(HookFailure),
    /// What an earlier sweep left isn't of this one.
    NotResumed(NotResumed),
    /// A file can't be written.
    Write(PathBuf, io::Error),
    /// The operating system can't do something as usual as starting a shell.
    System(io::Error),
}

impl SweepError {
    /// Whether a run ended the sweep, or what runs around it, so that it can go on from there.
    pub fn is_of_runs(&self) -> bool {
        matches!(self, Self::Failed { .. } | Self::TimedOut { .. } | Self::Hook(_))
    }
}

impl fmt::Display for SweepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Measure(error) => error.fmt(f),
            Self::Failed { command, sizes, exit } => {
                let at = if sizes.is_empty() { String::new() } else { format!(" at {sizes}") };
                write!(f, "the command {exit}{at}: mend it, or count such runs as well (--ignore-failure)")?;
                write!(f, "\n      {}", shown(command))
            }
            Self::TimedOut { command, sizes, timeout } => {
                let at = if sizes.is_empty() { String::new() } else { format!(" at {sizes}") };
                let limit = time(timeout.as_nanos() as f64);
                write!(f, "a run{at} took longer than {limit} and was ended: give it more with --timeout")?;
                write!(f, ", or go on without such runs (--ignore-failure)\n      {}", shown(command))
            }
            Self::NotCounted(event) => {
                write!(f, "{} could not be counted: leave it out, or see perfprop check", shown(event))
            }
            Self::Hook(failure) => failure.fmt(f),
            Self::NotResumed(error) => error.fmt(f),
            Self::Write(path, error) => write!(f, "cannot write {}: {error}", shown_path(path)),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SweepError {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    #[test]
    fn options_that_cannot_be_meant_are_refused() {
        let options = |commands: &[&str], parameters: &[&str], prepare: Option<&str>| {
            let words = |command: &&str| command.split_whitespace().map(str::to_owned).collect();
            SweepOptions {
                commands: commands.iter().map(words).collect(),
                parameters: parameters.iter().map(|text| Parameter::parse(text).unwrap()).collect(),
                events: Vec::new(),
                repeats: 3,
                warmups: 0,
                until: None,
                determinizer: Determinizer::Median,
                seed: 1,
                ignores_failure: false,
                timeout: None,
                counter: Counter::Kernel,
                cpu: None,
                hooks: Hooks { prepare: prepare.map(str::to_owned), ..Hooks::default() },
            }
        };
        let of = |commands: &[&str], parameters: &[&str], prepare: Option<&str>| {
            options(commands, parameters, prepare).check().err().unwrap_or_default()
        };
        let without = |command: &str, parameters: &[&str]| {
            options(&[command], parameters, None).name_without_values().map(str::to_owned)
        };
        assert_eq!(without("a {n} {m}", &["n=1"]).as_deref(), Some("m"));
        assert_eq!(without("a {n} x{m} {} {a-b}", &["n=1"]), None);
        assert_eq!(of(&["a {n}", "b {n}"], &["n=1"], None), "");
        assert_eq!(of(&["a"], &["n=1"], Some("gen {n}")), "");
        assert_eq!(of(&["a"], &["n=1"], None), "the command has no {n}: write it where the value goes");
        assert_eq!(of(&["a {n}", "b"], &["n=1"], None), "the command 'b' has no {n}: write it where the value goes");
        assert_eq!(of(&["a {n}"], &["n=1", "n=x"], None), "parameter n is given twice");
        assert_eq!(of(&["a", ""], &[], None), "a command is missing: write one after -- and after each --vs");
        let until = |percent: f64| {
            let determinizer = Determinizer::Percentile(percent);
            SweepOptions { until: Some(0.01), determinizer, ..options(&["a"], &[], None) }
                .check()
                .err()
                .unwrap_or_default()
        };
        assert!(until(0.0).contains("how far off the fastest (p0) is") && until(100.0).contains("the slowest (p100)"));
        assert_eq!(until(90.0), "");
    }
}
