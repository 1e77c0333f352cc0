//! Implements `perfprop bench`: runs a command with many sizes, and writes what each run took.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;

use super::Error;
use super::signals::listen;
use super::stream::{Stream, say};
use crate::bench::{SizeValues, SweepError, SweepOptions, SweepProgress, Swept, sweep};
use crate::cost::samples::Determinizer;
use crate::cost::{TIME, Workload, WorkloadFile, sizes_in_words};
use crate::measure::check_command;
use crate::number::{si, time};
use crate::sources::perf::Stop;

/// The arguments of `perfprop bench`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perfprop bench -P n=1e3,1e4,1e5 -o sort.jsonl -- ./sort {n}           30 runs of each size
  perfprop bench -P n=log:10..1e6:12 -e page-faults -o a.jsonl -- ./a {n}
  perfprop fit sort.jsonl --model auto                                  how the time grows")]
pub(super) struct BenchArgs {
    /// A size and its values, as in n=1e3,1e4, n=log:1..1e6:20 or n=lin:0..100:11; {n} in the command is replaced by each
    #[arg(short = 'P', long = "parameter", value_name = "SIZE=VALUES", value_parser = SizeValues::parse)]
    sizes: Vec<SizeValues>,
    /// Events that are counted beside the time
    #[arg(short, long, value_name = "EVENTS")]
    events: Vec<String>,
    /// How often each size is measured
    #[arg(short, long, value_name = "RUNS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    repeat: u32,
    /// How often each size is run before anything is measured
    #[arg(long, value_name = "RUNS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    warmup: u32,
    /// What the shuffled order of runs is drawn by
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Count runs that end with another exit code than 0, too
    #[arg(long)]
    ignore_failure: bool,
    /// The file for the measurements (JSON lines), for perfprop fit
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The command; {n} stands for the value of size n
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) fn run(args: &BenchArgs) -> Result<u8, Error> {
    if let Some(twice) = args
        .sizes
        .iter()
        .enumerate()
        .find(|(place, size)| args.sizes[..*place].iter().any(|other| other.name == size.name))
    {
        return Err(Error::Usage(format!("size {} is given twice", twice.1.name)));
    }
    for size in &args.sizes {
        let name = format!("{{{}}}", size.name);
        if !args.command.iter().any(|word| word.contains(&name)) {
            return Err(Error::Usage(format!("the command has no {name}: write it where the size goes")));
        }
    }
    check_command(&args.command[0].clone().into()).map_err(Error::Measure)?;
    let name = Path::new(&args.command[0]).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let options = SweepOptions {
        name,
        command: args.command.clone(),
        sizes: args.sizes.clone(),
        events: args.events.clone(),
        repeats: args.repeat as usize,
        warmups: args.warmup as usize,
        seed: args.seed,
        ignores_failure: args.ignore_failure,
    };
    let signals = listen(&Stop::default()).map_err(Error::System)?;
    let mut progress = Progress { since: Instant::now(), is_shown: std::io::stderr().is_terminal() };
    let Swept { file, error, signal } = sweep(&options, &signals, &mut |now| progress.show(now));
    progress.clear();
    if let Some(path) = &args.output {
        Stream::file(path, false)?.print(&file.to_json_lines())?;
    }
    if !file.workloads.is_empty() {
        Stream::stdout().print(&table(&file))?;
    }
    match (error, signal) {
        (Some(SweepError::Measure(error)), _) => Err(Error::Measure(error)),
        (Some(error), _) => {
            say(&error.to_string());
            Ok(125)
        }
        (None, Some(signal)) => {
            say("interrupted: what was measured until then is above");
            Ok(128_u8.saturating_add(u8::try_from(signal).unwrap_or(0)))
        }
        (None, None) => Ok(0),
    }
}

/// A line of progress on a terminal.
struct Progress {
    since: Instant,
    is_shown: bool,
}

impl Progress {
    fn show(&mut self, now: SweepProgress) {
        if self.is_shown {
            let left = self.since.elapsed().as_nanos() as f64 / now.done as f64 * (now.of - now.done) as f64;
            say_over(&format!("run {} of {}, {} left", now.done, now.of, time(left)));
        }
    }

    fn clear(&mut self) {
        if self.is_shown {
            say_over("");
        }
    }
}

/// Writes over the last line of standard error.
#[expect(clippy::print_stderr, reason = "progress on a terminal")]
fn say_over(text: &str) {
    eprint!("\r\x1b[K{text}");
}

/// A line for each set of sizes: the median of each quantity, and how far it may be off.
fn table(file: &WorkloadFile) -> String {
    let names: Vec<&String> =
        file.workloads.first().map(|workload| workload.samples.keys().collect()).unwrap_or_default();
    let mut out = String::new();
    for name in &names {
        out += &format!("{:>20}", crate::names::shown(name).to_uppercase());
    }
    out += &format!("{:>6}   SIZES\n", "RUNS");
    for workload in &file.workloads {
        names.iter().for_each(|name| out += &format!("{:>20}", cell(workload, name)));
        let runs = workload.order.len();
        out += &format!("{runs:>6}   {}\n", sizes_in_words(&workload.sizes));
    }
    out
}

fn cell(workload: &Workload, name: &str) -> String {
    let samples = workload.samples.get(name).map_or(&[][..], Vec::as_slice);
    let Some(median) = Determinizer::Median.value(samples) else { return "—".to_owned() };
    let is_time = name == TIME || ["task-clock", "cpu-clock"].contains(&name);
    let text = if is_time { time(median) } else { si(median) };
    match Determinizer::Median.variance(samples).filter(|_| median > 0.0) {
        // Two standard errors are 95 %.
        Some(variance) => format!("{text} {}", crate::number::plus_minus_part(1.96 * variance.sqrt() / median)),
        None => text,
    }
}
