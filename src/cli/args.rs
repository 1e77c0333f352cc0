//! The command line's shape: verbs, options, their help.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as Group, CommandFactory, Parser, Subcommand, ValueEnum};

/// Measures many more events than a CPU has counters, live, and says how far each number can be
/// trusted.
#[derive(Debug, Parser)]
#[command(name = "perfprop", version, max_term_width = 100, disable_help_subcommand = true)]
pub(super) struct Args {
    #[command(subcommand)]
    pub(super) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Watch events live: means, variances, error bars, multiplexing, corrections
    Top(Top),
    /// Run a command and print what it counted, with error bars
    Stat(Stat),
    /// Write a recording (JSON lines) of a run
    Record(Record),
    /// Open a recording in the same screens, or print a screen of it
    Replay(Replay),
    /// List events, and whether they can be counted on this machine
    List(List),
    /// Relations between events: learn how they vary together
    #[command(subcommand)]
    Relations(Relations),
    /// Estimate rounds of counts that another program feeds in as JSON lines
    #[command(hide = true)]
    Estimate(Estimate),
    /// Print a completion script for a shell
    #[command(hide = true)]
    Completions(Completions),
    /// Print the manual page, or that of a verb
    #[command(hide = true)]
    Man(Man),
}

/// What to count.
#[derive(Debug, Group)]
#[command(next_help_heading = "Events")]
pub(super) struct Events {
    /// Events as in perf: names, `name:u`, `{a,b}`, tracepoints, raw codes, presets; repeatable
    #[arg(short, long = "event", value_name = "EVENTS")]
    pub(super) events: Vec<String>,
    /// The vendor's event tables: perf's folder pmu-events, or one CPU's folder of JSON files
    #[arg(long, value_name = "DIR")]
    pub(super) event_tables: Option<PathBuf>,
    #[command(flatten)]
    pub(super) corrections: Corrections,
}

/// What corrects the numbers. Of a recording, what was recorded with it is the default.
#[derive(Debug, Group)]
pub(super) struct Corrections {
    /// A file of relations between events, in place of recorded ones; repeatable
    #[arg(long, value_name = "FILE")]
    pub(super) relations: Vec<PathBuf>,
    /// Go on without the relations of a file that are wrong
    #[arg(long)]
    pub(super) relations_lenient: bool,
    /// How numbers are estimated; as recorded, else `linear` where there are relations and `scale` where not
    #[arg(long, value_name = "NAME")]
    pub(super) estimator: Option<EstimatorName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum EstimatorName {
    /// Count x enabled / running, as perf does
    Scale,
    /// Means corrected towards what relations predict of them
    Linear,
}

/// Whom to count.
#[derive(Debug, Group)]
#[command(next_help_heading = "Target")]
pub(super) struct Target {
    /// Processes that run already, all their threads
    #[arg(short, long, value_name = "PID", value_delimiter = ',', group = "aim", value_parser = clap::value_parser!(i32).range(1..))]
    pub(super) pid: Vec<i32>,
    /// Single threads that run already
    #[arg(short, long, value_name = "TID", value_delimiter = ',', group = "aim", value_parser = clap::value_parser!(i32).range(1..))]
    pub(super) tid: Vec<i32>,
    /// Everything that runs on the machine
    #[arg(short, long, group = "aim")]
    pub(super) all_cpus: bool,
    /// Everything that runs in a control group
    #[arg(short = 'G', long, value_name = "CGROUP", group = "aim")]
    pub(super) cgroup: Option<String>,
    /// Only what runs on these CPUs, as in 0-2,5; alone, everything on them
    #[arg(short = 'C', long, value_name = "CPUS")]
    pub(super) cpu: Option<String>,
    /// Don't count threads and processes that start later
    #[arg(short = 'i', long)]
    pub(super) no_inherit: bool,
    /// Begin to count this many milliseconds after the start
    #[arg(short = 'D', long, value_name = "MS", value_parser = milliseconds())]
    pub(super) delay: Option<u64>,
    /// End after this many milliseconds
    #[arg(long, value_name = "MS", value_parser = milliseconds())]
    pub(super) timeout: Option<u64>,
    /// The command to run, after `--`; with another target, how long to count
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
}

/// How the screens look.
#[derive(Debug, Group)]
#[command(next_help_heading = "Screen")]
pub(super) struct Look {
    /// The screen to begin with
    #[arg(long, value_name = "NAME")]
    pub(super) screen: Option<ScreenName>,
    /// A theme's name, or a file
    #[arg(long, value_name = "THEME", env = "PERFPROP_THEME")]
    pub(super) theme: Option<String>,
    /// Draw with ASCII characters only
    #[arg(long)]
    pub(super) ascii: bool,
    /// When to use colour
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(super) color: When,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum When {
    Auto,
    Always,
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ScreenName {
    Events,
    Detail,
    Relations,
    Log,
    Help,
}

#[derive(Debug, Group)]
pub(super) struct Top {
    #[command(flatten)]
    pub(super) events: Events,
    #[command(flatten)]
    pub(super) target: Target,
    /// Milliseconds between the numbers on screen
    #[arg(short = 'I', long, value_name = "MS", default_value_t = 1000, value_parser = milliseconds())]
    pub(super) interval: u64,
    /// Print text every interval instead of drawing screens
    #[arg(long)]
    pub(super) batch: bool,
    /// End after this many intervals of text
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) iterations: Option<u64>,
    #[command(flatten)]
    pub(super) look: Look,
    /// What becomes of the command when the screens are left while it runs
    #[arg(long, value_name = "WHAT", default_value = "ask")]
    pub(super) on_quit: OnQuit,
    /// Leave the screens when the command ends
    #[arg(long)]
    pub(super) exit_with_child: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OnQuit {
    Ask,
    Kill,
    Detach,
}

#[derive(Debug, Group)]
pub(super) struct Stat {
    #[command(flatten)]
    pub(super) events: Events,
    #[command(flatten)]
    pub(super) target: Target,
    /// Print counts every so many milliseconds
    #[arg(short = 'I', long, value_name = "MS", value_parser = milliseconds())]
    pub(super) interval: Option<u64>,
    /// End after so many intervals
    #[arg(long, value_name = "N", requires = "interval", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) interval_count: Option<u64>,
    /// Run the command this many times and print means
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) repeat: u32,
    /// A count for each CPU
    #[arg(short = 'A', long, conflicts_with = "per_thread")]
    pub(super) no_aggr: bool,
    /// A count for each thread; needs -p or -t
    #[arg(long)]
    pub(super) per_thread: bool,
    /// Print JSON lines
    #[arg(short, long)]
    pub(super) json: bool,
    /// Print fields with this between them: those of perf in its order, and ours behind them
    #[arg(short = 'x', long, value_name = "SEP", conflicts_with = "json")]
    pub(super) field_separator: Option<String>,
    /// Write to a file instead of standard error; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Write behind what is in the file
    #[arg(long, requires = "output")]
    pub(super) append: bool,
}

#[derive(Debug, Group)]
pub(super) struct Record {
    #[command(flatten)]
    pub(super) events: Events,
    #[command(flatten)]
    pub(super) target: Target,
    /// Milliseconds between rounds
    #[arg(short = 'I', long, value_name = "MS", default_value_t = 100, value_parser = milliseconds())]
    pub(super) interval: u64,
    /// Where the recording goes; `-` is standard output
    #[arg(short, long, value_name = "FILE", default_value = "perfprop.jsonl")]
    pub(super) output: PathBuf,
}

#[derive(Debug, Group)]
pub(super) struct Replay {
    /// The recording; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    /// How fast to play; 0 is at once
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    pub(super) speed: f64,
    /// Begin at this second of the recording; with `--dump`, the second to show
    #[arg(long, value_name = "SECONDS")]
    pub(super) at: Option<f64>,
    /// Milliseconds between the numbers; as recorded by default
    #[arg(short = 'I', long, value_name = "MS", value_parser = milliseconds())]
    pub(super) interval: Option<u64>,
    #[command(flatten)]
    pub(super) corrections: Corrections,
    /// Print one screen and end
    #[arg(long, value_name = "FORMAT")]
    pub(super) dump: Option<DumpFormat>,
    /// The size of the printed screen
    #[arg(long, value_name = "COLUMNSxROWS", default_value = "80x24", value_parser = size)]
    pub(super) size: (u16, u16),
    #[command(flatten)]
    pub(super) look: Look,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum DumpFormat {
    Txt,
    Ansi,
    Svg,
}

#[derive(Debug, Group)]
pub(super) struct List {
    /// Words or patterns with `*` and `?`; all events without any
    #[arg(value_name = "PATTERN")]
    pub(super) patterns: Vec<String>,
    /// Print JSON lines
    #[arg(short, long)]
    pub(super) json: bool,
    /// Print names only, one a line
    #[arg(long, conflicts_with = "json")]
    pub(super) names: bool,
    /// The vendor's event tables: perf's folder pmu-events, or one CPU's folder of JSON files
    #[arg(long, value_name = "DIR")]
    pub(super) event_tables: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Relations {
    /// Learn from complete counts of programs (CSV, gzipped or not) how events vary together
    Learn(Learn),
}

#[derive(Debug, Group)]
pub(super) struct Learn {
    /// The file to write; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(super) prior: PathBuf,
    /// Tables of counts: a header of event names, a row for each millisecond
    #[arg(required = true, value_name = "TRACE")]
    pub(super) traces: Vec<PathBuf>,
}

#[derive(Debug, Group)]
pub(super) struct Estimate {
    /// Learn from the run alone, without what is known of programs at large
    #[arg(long)]
    pub(super) no_prior: bool,
}

#[derive(Debug, Group)]
pub(super) struct Completions {
    /// The shell
    pub(super) shell: clap_complete::Shell,
}

#[derive(Debug, Group)]
pub(super) struct Man {
    /// The verb whose page to print
    pub(super) verb: Option<String>,
}

/// The command line as clap describes it, for manual pages and completions.
pub fn command() -> clap::Command {
    Args::command()
}

fn milliseconds() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=3_600_000)
}

fn size(text: &str) -> Result<(u16, u16), String> {
    let parsed =
        text.split_once(['x', 'X']).and_then(|(columns, rows)| Some((columns.parse().ok()?, rows.parse().ok()?)));
    match parsed {
        Some((columns @ 1..=1000, rows @ 1..=1000)) => Ok((columns, rows)),
        _ => Err("give columns x rows, each from 1 to 1000, as in 120x40".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clap_finds_no_fault_with_the_definitions() {
        command().debug_assert();
    }

    #[test]
    fn sizes() {
        assert_eq!(size("120x40"), Ok((120, 40)));
        assert!(["", "x", "80", "0x4", "80x24x3", "99999x1"].iter().all(|text| size(text).is_err()));
    }
}
