//! Defines the command line: verbs, options, their help.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{ArgAction, ArgGroup, Args as Group, CommandFactory, Parser, Subcommand, ValueEnum};

use crate::estimate;
use crate::measure::SampleRate;
use crate::rates::Confidence;
use crate::stacks::UnwindMethod;

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
    /// Find out what can be counted here and what forbids it, and whether relation files are right
    Check(Check),
    /// Relations between events, and metrics over them
    Relations(Relations),
    /// Turn sampled stacks of other tools into each other's formats, and into flame graphs
    Export(Export),
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
    /// Metrics such as IPC, by name, pattern or group, with the events that they need; repeatable
    #[arg(short = 'M', long = "metrics", value_name = "METRICS")]
    pub(super) metrics: Vec<String>,
    /// Don't put the events of a metric into a group: more fit on the counters, each seen for less of the time
    #[arg(long, requires = "metrics")]
    pub(super) metric_no_group: bool,
    /// Count every event in user space only, as if each had `:u`
    #[arg(long, conflicts_with = "all_kernel")]
    pub(super) all_user: bool,
    /// Count every event in the kernel only, as if each had `:k`
    #[arg(long)]
    pub(super) all_kernel: bool,
    /// Show an event of several like units (`uncore_imc_0`, `uncore_imc_1`) in a row for each, not as their sum
    #[arg(long)]
    pub(super) no_merge: bool,
    /// The vendor's event tables: perf's folder pmu-events, or one CPU's folder of JSON files
    #[arg(long, value_name = "DIR")]
    pub(super) event_tables: Option<PathBuf>,
    #[command(flatten)]
    pub(super) counting: Counting,
    #[command(flatten)]
    pub(super) turns: Turns,
    #[command(flatten)]
    pub(super) corrections: Corrections,
}

/// Who counts.
#[derive(Debug, Group)]
pub(super) struct Counting {
    /// Who counts: the kernel, or a model of a machine in valgrind, which needs no hardware counters
    #[arg(long, value_name = "NAME", default_value = "perf")]
    pub(super) source: SourceName,
    /// The caches of the model, size, associativity and line size each: `i1=32k,8,64,d1=32k,8,64,ll=8m,16,64`
    #[arg(long, value_name = "CACHES")]
    pub(super) model: Option<String>,
    /// Count only so many events at once, in turns, and the truth beside: what multiplexing costs
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) counters: Option<u16>,
}

/// How groups take turns, where there are more than counters.
#[derive(Debug, Group)]
pub(super) struct Turns {
    /// Who gives groups their turns on the counters
    #[arg(long, value_name = "WHO", default_value = "auto")]
    pub(super) schedule: ScheduleName,
    /// Let the kernel give a turn every so many milliseconds, as root; set back afterwards, even if killed
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) mux: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ScheduleName {
    /// perfprop if that costs no more than 1 % of a CPU, else the kernel
    Auto,
    /// The kernel, by its timer
    Kernel,
    /// perfprop, every 2 ms
    User,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SourceName {
    /// The counters of this machine, by perf_event_open
    Perf,
    /// valgrind's model of caches and branch prediction
    Emulate,
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
    /// How numbers are estimated; as recorded, else `gp`
    #[arg(long, value_name = "NAME")]
    pub(super) estimator: Option<estimate::EstimatorKind>,
    /// What earlier runs of the program taught `gp`, as `relations learn --program` writes it. Recordings don't keep
    /// it: give it to `replay` again
    #[arg(long, value_name = "MODEL")]
    pub(super) learnt: Option<PathBuf>,
    /// How often an interval is to hold the truth
    #[arg(long, value_name = "PART", default_value = "0.95")]
    pub(super) confidence: Confidence,
}

impl ValueEnum for estimate::EstimatorKind {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).help(self.summary()))
    }
}

/// Whom to count.
#[derive(Debug, Group)]
#[command(next_help_heading = "Target")]
pub(super) struct Target {
    /// Processes that run already, all their threads
    #[arg(short, long, value_name = "PID", value_delimiter = ',', group = "aim", value_parser = id)]
    pub(super) pid: Vec<i32>,
    /// Single threads that run already
    #[arg(short, long, value_name = "TID", value_delimiter = ',', group = "aim", value_parser = id)]
    pub(super) tid: Vec<i32>,
    /// Everything that runs on the machine
    #[arg(short, long, conflicts_with = "aim")]
    pub(super) all_cpus: bool,
    /// Everything that runs in a control group, with -a or without
    #[arg(short = 'G', long, value_name = "CGROUP", conflicts_with = "aim")]
    pub(super) cgroup: Option<String>,
    /// Only what runs on these CPUs, as in 0-2,5; alone, everything on them
    #[arg(short = 'C', long, value_name = "CPUS")]
    pub(super) cpu: Option<String>,
    /// Don't count threads and processes that start later
    #[arg(short = 'i', long)]
    pub(super) no_inherit: bool,
    /// A count for each CPU
    #[arg(short = 'A', long, conflicts_with = "per_thread")]
    pub(super) no_aggr: bool,
    /// A count for each thread; needs -p or -t
    #[arg(long)]
    pub(super) per_thread: bool,
    /// Begin to count this many milliseconds after the start
    #[arg(short = 'D', long, value_name = "MS", allow_negative_numbers = true, value_parser = delay)]
    pub(super) delay: Option<u64>,
    /// End after this many milliseconds
    #[arg(long, value_name = "MS", value_parser = milliseconds())]
    pub(super) timeout: Option<u64>,
    /// The command to run, after `--`; with another target, how long to count
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
}

/// Whether and how call stacks are sampled.
#[derive(Debug, Group)]
#[command(next_help_heading = "Call stacks")]
pub(super) struct Stacks {
    /// Sample the events with their call stacks, along frame pointers unless --call-graph says how
    #[arg(short = 'g')]
    pub(super) frame_pointers: bool,
    /// Sample the events with their call stacks, found so: `fp` along frame pointers, `dwarf` or `dwarf,SIZE`
    /// from a copy of the stack (8192 bytes), `lbr` from Intel's record of calls
    #[arg(long, value_name = "HOW", value_parser = call_graph)]
    pub(super) call_graph: Option<UnwindMethod>,
    /// Samples a second of each event, or `max`; 4000 by default, and every one of a tracepoint
    #[arg(short = 'F', long = "freq", value_name = "HZ", conflicts_with = "count", value_parser = frequency)]
    pub(super) frequency: Option<SampleRate>,
    /// A sample every so many occurrences
    #[arg(short = 'c', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=i64::MAX as u64))]
    pub(super) count: Option<u64>,
}

impl Stacks {
    /// How often events are sampled, if that is said.
    pub(super) fn rate(&self) -> Option<SampleRate> {
        self.frequency.or(self.count.map(SampleRate::Period))
    }
}

/// How the screens look.
#[derive(Debug, Group)]
#[command(next_help_heading = "Screen")]
pub(super) struct Look {
    /// The screen to begin with
    #[arg(long, value_name = "NAME")]
    pub(super) screen: Option<ScreenName>,
    /// A theme's name, a file, or `auto` for light or dark by the terminal's background
    #[arg(long, value_name = "THEME", env = "PERFPROP_THEME")]
    pub(super) theme: Option<String>,
    /// The configuration; `perfprop check --default-config` prints one
    #[arg(long, value_name = "FILE", env = "PERFPROP_CONFIG")]
    pub(super) config: Option<PathBuf>,
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
    Profile,
    Groups,
    Log,
    Compare,
    Help,
}

#[derive(Debug, Group)]
pub(super) struct Top {
    #[command(flatten)]
    pub(super) events: Events,
    #[command(flatten)]
    pub(super) target: Target,
    #[command(flatten)]
    pub(super) stacks: Stacks,
    /// Milliseconds between the numbers on screen
    #[arg(short = 'I', long, value_name = "MS", value_parser = milliseconds())]
    pub(super) interval: Option<u64>,
    /// The same in seconds
    #[arg(short = 'd', value_name = "SECONDS", conflicts_with = "interval", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(super) seconds: Option<u64>,
    /// Print text every interval instead of drawing screens
    #[arg(long)]
    pub(super) batch: bool,
    /// End after this many intervals of text
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) iterations: Option<u64>,
    #[command(flatten)]
    pub(super) look: Look,
    /// What becomes of the command when the screens are left while it runs
    #[arg(long, value_name = "WHAT")]
    pub(super) on_quit: Option<OnQuit>,
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
    #[arg(short = 'I', long, alias = "interval-print", value_name = "MS", value_parser = milliseconds())]
    pub(super) interval: Option<u64>,
    /// End after so many intervals
    #[arg(long, value_name = "N", requires = "interval", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) interval_count: Option<u64>,
    /// Run the command this many times and print means
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = runs)]
    pub(super) repeat: u32,
    /// Count nothing, and show the time that the command takes
    #[arg(short = 'n', long, conflicts_with_all = ["events", "metrics", "detailed", "counters", "strict"])]
    pub(super) null: bool,
    /// Begin only if all events can be counted here; without it those that can't be are shown as `<not supported>`
    #[arg(long)]
    pub(super) strict: bool,
    /// Write what is in the caches of file systems to disk before each run (sync)
    #[arg(short = 'S', long)]
    pub(super) sync: bool,
    /// Print how far the scaled and corrected counts are from the truth; needs --counters
    #[arg(long, requires = "counters")]
    pub(super) truth: bool,
    /// Count cache events too, as perf does; twice and three times for more
    #[arg(short, long, action = ArgAction::Count)]
    pub(super) detailed: u8,
    /// Print large counts in groups of three digits, as texts have them anyway
    #[arg(short = 'B', long, conflicts_with_all = ["json", "field_separator"])]
    pub(super) big_num: bool,
    /// Print large counts without commas
    #[arg(long, conflicts_with_all = ["big_num", "json", "field_separator"])]
    pub(super) no_big_num: bool,
    /// Print neither counts nor messages: the exit code, and errors
    #[arg(short, long, conflicts_with_all = ["output", "verbose"])]
    pub(super) quiet: bool,
    /// Print each event's count, time enabled and time running too, in nanoseconds, before anything is scaled
    #[arg(short, long)]
    pub(super) verbose: bool,
    /// Print JSON lines
    #[arg(short, long, alias = "json-output")]
    pub(super) json: bool,
    /// Print fields with this between them: those of perf in its order, and ours behind them
    #[arg(short = 'x', long, value_name = "SEP", conflicts_with = "json", value_parser = separator)]
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
    #[command(flatten)]
    pub(super) stacks: Stacks,
    /// Print no messages but errors
    #[arg(short, long)]
    pub(super) quiet: bool,
    /// Milliseconds between rounds
    #[arg(short = 'I', long, value_name = "MS", default_value_t = 100, value_parser = milliseconds())]
    pub(super) interval: u64,
    /// Run the command this many times, and write a recording of each run: x-1.jsonl, x-2.jsonl and so on with `-o
    /// x.jsonl`. `replay --a` and `--b` compare such recordings
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) repeat: Option<u32>,
    /// Where the recording goes; `-` is standard output
    #[arg(short, long, value_name = "FILE", default_value = "perfprop.jsonl")]
    pub(super) output: PathBuf,
}

#[derive(Debug, Group)]
pub(super) struct Replay {
    /// The recording, or stacks of another tool; `-` is standard input. Two recordings are compared
    #[arg(value_name = "FILE", required_unless_present = "a")]
    pub(super) files: Vec<PathBuf>,
    /// Recordings of one side, to compare with those of --b: which events differ by more than runs do among
    /// themselves. 5 of each tell for up to 24 events; made best in turns: one of a, one of b, one of a
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "b", conflicts_with = "files")]
    pub(super) a: Vec<PathBuf>,
    /// Recordings of the other side
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "a")]
    pub(super) b: Vec<PathBuf>,
    /// What the file is written in; guessed from its beginning by default
    #[arg(long, value_name = "FORMAT")]
    pub(super) from: Option<StackFormat>,
    /// Fold repeats of another tool's stacks, as those of recordings are: recursion of any depth is a few frames
    #[arg(long)]
    pub(super) canonical: bool,
    /// How fast to play; 0 is at once. 1 by default, and 0 for several recordings
    #[arg(long, value_name = "X")]
    pub(super) speed: Option<f64>,
    /// Print text instead of drawing screens
    #[arg(long, conflicts_with = "dump")]
    pub(super) print: bool,
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
    /// Whose events: those of this machine, or of the model in valgrind
    #[arg(long, value_name = "NAME", default_value = "perf")]
    pub(super) source: SourceName,
    /// The vendor's event tables: perf's folder pmu-events, or one CPU's folder of JSON files
    #[arg(long, value_name = "DIR")]
    pub(super) event_tables: Option<PathBuf>,
}

#[derive(Debug, Group)]
#[command(group = ArgGroup::new("to").required(true))]
pub(super) struct Learn {
    /// Write a model of one program, from recordings of runs in which its events took turns, made anew each time.
    /// Short rounds teach most: `record -I 4`. It is for `--learnt`
    #[arg(long, value_name = "MODEL", group = "to")]
    pub(super) program: Option<PathBuf>,
    /// Write what holds of programs at large, from complete counts; `-` is standard output
    #[arg(long, value_name = "FILE", group = "to")]
    pub(super) prior: Option<PathBuf>,
    /// Recordings of the program; for `--prior`, tables of counts (CSV, gzipped or not): a header of event names, a row
    /// for each millisecond
    #[arg(required = true, value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
}

#[derive(Debug, Group)]
pub(super) struct Estimate {
    /// Learn from the run alone, without what is known of programs at large
    #[arg(long)]
    pub(super) no_prior: bool,
}

#[derive(Debug, Group)]
pub(super) struct Check {
    /// Relation files to look through
    #[arg(value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    /// Events to try: how each is read, whether it opens, which groups they make, how long each runs
    #[arg(short, long = "event", value_name = "EVENTS")]
    pub(super) events: Vec<String>,
    /// The vendor's event tables: perf's folder pmu-events, or one CPU's folder of JSON files
    #[arg(long, value_name = "DIR")]
    pub(super) event_tables: Option<PathBuf>,
    /// Print one JSON object
    #[arg(short, long)]
    pub(super) json: bool,
    /// Explain an error or warning, as in E04; all codes without one
    #[arg(long, value_name = "CODE", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["files", "events"])]
    pub(super) explain: Option<String>,
    /// Print a configuration file that says what holds without one
    #[arg(long, conflicts_with_all = ["files", "events", "explain"])]
    pub(super) default_config: bool,
    /// Print the theme that a base16 scheme (a YAML file) makes
    #[arg(long, value_name = "SCHEME", conflicts_with_all = ["files", "events", "explain", "default_config"])]
    pub(super) import_theme: Option<PathBuf>,
    /// When to use colour
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(super) color: When,
}

#[derive(Debug, Group)]
pub(super) struct Relations {
    #[command(subcommand)]
    pub(super) verb: RelationVerb,
}

#[derive(Debug, Subcommand)]
pub(super) enum RelationVerb {
    /// Print what relation files say in one form, what it needs, and whether that is counted here
    Show(Show),
    /// Make a relation file of a vendor's metric tables
    Import(Import),
    /// Learn how events vary together: from recordings of one program, or from complete counts of many
    Learn(Learn),
}

#[derive(Debug, Group)]
pub(super) struct Show {
    /// Relation files; without any, the metrics that are there anyway
    #[arg(value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    /// Go on without the relations of a file that are wrong
    #[arg(long)]
    pub(super) relations_lenient: bool,
    /// The vendor's event tables: perf's folder pmu-events, or one CPU's folder of JSON files
    #[arg(long, value_name = "DIR")]
    pub(super) event_tables: Option<PathBuf>,
}

#[derive(Debug, Group)]
pub(super) struct Import {
    /// perf's folder pmu-events, one CPU's folder of JSON files, or a file of perf's or Intel's form
    #[arg(value_name = "DIR|FILE")]
    pub(super) from: PathBuf,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

#[derive(Debug, Group)]
pub(super) struct Export {
    /// The stacks; `-` is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    pub(super) file: PathBuf,
    /// What the file is written in; guessed from its beginning by default
    #[arg(long, value_name = "FORMAT")]
    pub(super) from: Option<StackFormat>,
    /// What to write
    #[arg(long, value_name = "FORMAT")]
    pub(super) to: ExportFormat,
    /// Where it goes; `-` is standard output
    #[arg(short, long, value_name = "OUT", default_value = "-")]
    pub(super) output: PathBuf,
    /// Write how many samples there were; by default, what they stand for (the period of `perf script`)
    #[arg(long)]
    pub(super) counts: bool,
    /// Of several events in `perf script`, weigh folded stacks by the period too; inferno doesn't see periods that perf pads
    #[arg(long, conflicts_with = "counts")]
    pub(super) padded_periods: bool,
    /// Fold repeats: a path whose last frames repeat those before goes back to the first turn, so that recursion of any depth is a few frames
    #[arg(long)]
    pub(super) canonical: bool,
    /// Keep one sample of N; weights stay what they are in all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) sample_period: Option<u64>,
    /// Tell lines within functions apart, where the file has them
    #[arg(long)]
    pub(super) lines: bool,
    /// Fold the smallest subtrees into `(other)` past so many nodes
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(16..))]
    pub(super) max_nodes: u32,
    /// Only these events, as `cycles` or `cycles:u`; repeatable. Folded stacks and flame graphs hold one: by default the first of `perf script`, the preferred one of pprof
    #[arg(long, value_name = "EVENT")]
    pub(super) event_filter: Vec<String>,
    /// Name processes with their numbers, of `perf script -F +pid`: `name-pid`
    #[arg(long, conflicts_with = "tid")]
    pub(super) pid: bool,
    /// Name processes with the numbers of process and thread: `name-pid/tid`
    #[arg(long)]
    pub(super) tid: bool,
    /// Leave out the names of processes
    #[arg(long, conflicts_with_all = ["pid", "tid"])]
    pub(super) no_process: bool,
    /// Mark the kernel's frames of folded stacks with `_[k]`
    #[arg(long)]
    pub(super) kernel: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum StackFormat {
    /// The text of `perf script`
    PerfScript,
    /// A stack a line: `main;f;g 12`
    Folded,
    /// pprof's protobuf, with gzip or without
    Pprof,
    /// What `perfprop record -g` writes
    Recording,
    /// What valgrind's callgrind writes, `callgrind.out.PID`
    Callgrind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ExportFormat {
    /// A stack a line, the process first, short names and weights as inferno-collapse-perf has them
    Folded,
    /// For `go tool pprof` and what builds on it, packed with gzip
    Pprof,
    /// JSON for the Firefox Profiler
    Firefox,
    /// JSON for speedscope
    Speedscope,
    /// A flame graph as a picture, with zoom and search in a browser
    Svg,
    /// A flame graph as a page, with zoom and search
    Html,
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

fn delay(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (1..=3_600_000).contains(number));
    number.ok_or_else(|| {
        "give milliseconds from 1 to 3600000; perf's ranges and -1 (not before told) aren't there".into()
    })
}

fn runs(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|&number| number > 0);
    number.ok_or_else(|| "give runs from 1; for ever:  while perfprop stat ...; do :; done".into())
}

/// The id of a process or thread.
fn id(text: &str) -> Result<i32, String> {
    let number = text.trim().parse().ok().filter(|&id| id > 0);
    number.ok_or_else(|| "it takes numbers as in 12,345; by name: $(pidof -s NAME)".into())
}

/// What stands between fields; `\t` is a tab, as for perf.
fn separator(text: &str) -> Result<String, String> {
    match text {
        "" => Err("there must be something between the fields".into()),
        "\\t" => Ok("\t".into()),
        text => Ok(text.into()),
    }
}

fn call_graph(text: &str) -> Result<UnwindMethod, String> {
    /// What perf copies, and the most that a record has room for.
    const DEFAULT: u32 = 8192;
    const MOST: u32 = 65528;
    match text.split_once(',') {
        None if text == "fp" => Ok(UnwindMethod::Fp),
        None if text == "lbr" => Ok(UnwindMethod::Lbr),
        None if text == "dwarf" => Ok(UnwindMethod::Dwarf(DEFAULT)),
        Some(("dwarf", size)) => match size.parse() {
            Ok(size @ 8..=MOST) => Ok(UnwindMethod::Dwarf(u32::next_multiple_of(size, 8))),
            _ => Err(format!("the copy of the stack has 8 to {MOST} bytes")),
        },
        _ => Err("give fp, dwarf, dwarf,SIZE or lbr".into()),
    }
}

fn frequency(text: &str) -> Result<SampleRate, String> {
    match text.parse() {
        _ if text == "max" => Ok(SampleRate::Max),
        Ok(hz @ 1..) => Ok(SampleRate::Hz(hz)),
        _ => Err("give samples a second from 1 up, or max".into()),
    }
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
    fn call_graphs_and_frequencies() {
        assert_eq!(call_graph("dwarf"), Ok(UnwindMethod::Dwarf(8192)));
        assert_eq!(call_graph("dwarf,65525"), Ok(UnwindMethod::Dwarf(65528)));
        assert_eq!((call_graph("fp"), call_graph("lbr")), (Ok(UnwindMethod::Fp), Ok(UnwindMethod::Lbr)));
        assert!(["", "dwarf,", "dwarf,7", "dwarf,65529", "fp,8", "x"].iter().all(|text| call_graph(text).is_err()));
        assert_eq!((frequency("99"), frequency("max")), (Ok(SampleRate::Hz(99)), Ok(SampleRate::Max)));
        assert!(["", "0", "-1", "4k"].iter().all(|text| frequency(text).is_err()));
    }

    #[test]
    fn sizes() {
        assert_eq!(size("120x40"), Ok((120, 40)));
        assert!(["", "x", "80", "0x4", "80x24x3", "99999x1"].iter().all(|text| size(text).is_err()));
    }
}
