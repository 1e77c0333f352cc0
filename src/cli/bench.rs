//! Implements `perfprop bench`: runs commands with many sizes, writes what each run took, and compares the commands.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use super::Error;
use super::args::{BesideTimeArgs, TimeUnit, duration, percentage, whole_number};
use super::error::{code_of, escaped};
use super::input::is_dash;
use super::perf_compat;
use super::progress::ProgressLine;
use super::signals::listen;
use super::stream::{Stream, say};
use crate::bench::{
    Hooks, LEAST_RUNS, Parameter, SweepOptions, SweepProgress, SweepStore, Swept, determined, sweep, variants, warnings,
};
use crate::cost::samples::Determinizer;
use crate::cost::{TIME, Workload, WorkloadFile};
use crate::files::PartialFile;
use crate::host::HostFiles;
use crate::measure::check_command;
use crate::names::{quoted, shown_path};
use crate::number::{percent, time};
use crate::sources::perf::CancelToken;
use crate::text;

/// The arguments of `perfprop bench`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perfprop bench -P N=1e3,1e4,1e5 -o sort.jsonl -- ./sort {N}         30 runs of each size
  perfprop fit sort.jsonl --model auto                                how the time grows
  perfprop bench -P N=log:10..1e6:12 -e page-faults -- ./sort {N}     count events, too
  perfprop bench -P N=1e4,1e5 -- ./before {N} --vs ./after {N}        which one is faster
  perfprop bench -P N=1e6 --until 1% -r 300 -- ./sort {N}             as many runs as it takes")]
// Help has no {n}: clap makes a new line of it.
pub(super) struct BenchArgs {
    /// The command; {N} stands for the value of N. Behind each --vs stands another one, which is compared with the first. Its standard input is empty (/dev/null) and its output is discarded: to read a file, use a shell, as in sh -c './sort < data{N}'
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// A size and its values, as in N=1e3,1e4, N=log:1..1e6:20 or N=lin:0..100:11; or words, as in algo=quick,merge, each of which makes a command to compare. {N} in the command is replaced by each
    #[arg(short = 'P', long = "parameter", value_name = "NAME=VALUES", value_parser = Parameter::parse, help_heading = SWEEP)]
    parameters: Vec<Parameter>,
    /// How often each command is measured with each size, at the most
    #[arg(short, long, visible_alias = "runs", value_name = "RUNS", default_value_t = 30, value_parser = whole_number::<u32>(1..=100_000), help_heading = SWEEP)]
    repeat: u32,
    /// How often each is run before anything is measured
    #[arg(long, short_alias = 'w', value_name = "RUNS", default_value_t = 1, value_parser = whole_number::<u32>(0..=100_000), help_heading = SWEEP)]
    warmup: u32,
    /// End the runs of a command at a size once the ± of its time is at most this percentage of it, as in 2%: after 20 runs at the earliest, after --repeat runs at the latest
    #[arg(long, value_name = "PERCENT", value_parser = part, help_heading = SWEEP)]
    until: Option<f64>,
    /// What the shuffled order of runs is drawn by
    #[arg(long, default_value_t = 1, help_heading = SWEEP)]
    seed: u64,
    #[command(flatten, next_help_heading = MEASURING)]
    counted: BesideTimeArgs,
    /// Count runs that end with another exit code than 0, too
    #[arg(long, short_alias = 'i', help_heading = MEASURING)]
    ignore_failure: bool,
    /// Seconds, or a time with a unit, as in 500ms or 2m: the longest that a run may take; one that takes longer is ended, and the sweep with it, or with --ignore-failure that run alone [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = duration(TimeUnit::Seconds, 1..=86_400_000), help_heading = SWEEP)]
    timeout: Option<Duration>,
    /// Run this in a shell before the first run with each set of sizes and words; once where several give the same text
    #[arg(long, value_name = "COMMAND", help_heading = AROUND)]
    setup: Option<String>,
    /// Run this in a shell before each run, warm-ups among them
    #[arg(long, value_name = "COMMAND", help_heading = AROUND)]
    prepare: Option<String>,
    /// Run this in a shell after all runs, for each set of sizes and words, also after a failure or an interrupt
    #[arg(long, value_name = "COMMAND", help_heading = AROUND)]
    cleanup: Option<String>,
    /// The file for the measurements (JSON lines), for perfprop fit; of several commands each has its own, NAME-COMMAND.jsonl
    #[arg(short, long, value_name = "FILE", help_heading = OUTPUT)]
    output: Option<PathBuf>,
    /// Go on with what the file holds: only the runs that are missing are made
    #[arg(long, requires = "output", help_heading = OUTPUT)]
    resume: bool,
    /// What is printed of repeated runs: mean, median, or a percentile (p0 is the fastest)
    #[arg(long, alias = "determinize", value_name = "mean|median|pN", default_value = "median", help_heading = OUTPUT)]
    statistic: Determinizer,
    /// Write hyperfine's JSON
    #[arg(long, visible_alias = "export-json", value_name = "FILE", help_heading = OUTPUT)]
    export_hyperfine: Option<PathBuf>,
    /// Write hyperfine's CSV: a line for each command, without its runs
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    export_csv: Option<PathBuf>,
    /// Write a table in Markdown
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    export_markdown: Option<PathBuf>,
}

const SWEEP: &str = "What is run";
const MEASURING: &str = "What is measured";
const AROUND: &str = "Commands around runs ({N} is replaced; words are quoted for the shell)";
const OUTPUT: &str = "Output";

/// What stands between two commands.
const VERSUS: &str = "--vs";

/// A part in percent from 0.001% on.
fn part(text: &str) -> Result<f64, String> {
    percentage(text, 0.001, 100.0)
}

pub(super) fn run(args: &BenchArgs) -> Result<u8, Error> {
    let options = options(args)?;
    let store = store(args, &options)?;
    check_exports(args)?;
    if !args.resume {
        for path in store.iter().flat_map(SweepStore::existing) {
            let name = path.to_string_lossy();
            say(&format!(
                "{} has another sweep, which is kept as {} (--resume goes on with it)",
                quoted(&name),
                quoted(&format!("{name}.old"))
            ));
        }
    }
    let signals = listen(&CancelToken::default()).map_err(Error::System)?;
    let mut progress = ProgressLine::new();
    let mut show = |now: SweepProgress| progress.number("run", now.done as u64, now.of as u64);
    let swept = sweep(&options, store.as_ref(), args.resume, &signals, &mut show);
    progress.clear();
    let swept = swept?;
    print(args, &swept, store.as_ref())?;
    tell_timed_out(args, &swept);
    end(swept, store.is_some())
}

fn options(args: &BenchArgs) -> Result<SweepOptions, Error> {
    let words = args.command.iter().map(text_of).collect::<Result<Vec<String>, _>>()?;
    if let Some(instead) = commands_as_lines(&words) {
        return Err(Error::Usage(instead));
    }
    let commands: Vec<Vec<String>> = words.split(|word| word == VERSUS).map(<[String]>::to_vec).collect();
    let hooks = Hooks { setup: args.setup.clone(), prepare: args.prepare.clone(), cleanup: args.cleanup.clone() };
    let options = SweepOptions {
        commands,
        parameters: args.parameters.clone(),
        events: args.counted.events.clone(),
        repeats: args.repeat as usize,
        warmups: args.warmup as usize,
        until: args.until,
        determinizer: args.statistic,
        seed: args.seed,
        ignores_failure: args.ignore_failure,
        timeout: args.timeout,
        counter: args.counted.by.counter()?,
        cpu: args.counted.cpu_affinity,
        hooks,
    };
    options.check().map_err(Error::Usage)?;
    if let Some(name) = options.name_without_values() {
        tell(&format!("the command gets {{{name}}} as it is: no -P {name}=VALUES gives it values"));
    }
    if let Some(cpu) = args.counted.cpu_affinity {
        let online = HostFiles::here().online_cpus().unwrap_or_default();
        if !online.is_empty() && !online.contains(&cpu) {
            return Err(Error::Usage(format!("--cpu-affinity {cpu}: there is no such CPU, or it is offline")));
        }
    }
    // A program's name may depend on sizes: then its first run says whether it is there.
    for variant in variants(&options.commands, &options.parameters) {
        if !variant.command[0].contains('{') {
            check_command(&variant.command[0].clone().into()).map_err(Error::Measure)?;
        }
    }
    Ok(options)
}

/// A word of a command: files and tables name it as text.
fn text_of(word: &OsString) -> Result<String, Error> {
    word.clone().into_string().map_err(|word| {
        let word = escaped(&word);
        Error::Usage(format!(
            "{word} is not UTF-8, and bench writes commands to files as text\n      put the command into a script, and measure that:  -- ./script"
        ))
    })
}

/// What to type where each word is a whole command line, as hyperfine takes them; `None` where a program has such a name.
fn commands_as_lines(words: &[String]) -> Option<String> {
    let is_line = |word: &String| word.contains(char::is_whitespace) && !Path::new(word).exists();
    let lines: Vec<String> = words.iter().filter(|word| *word != VERSUS).cloned().collect();
    (!lines.is_empty() && lines.iter().all(is_line)).then(|| perf_compat::bench_of_lines(&lines))
}

/// The files of the sweep; none where it is to be printed.
fn store(args: &BenchArgs, options: &SweepOptions) -> Result<Option<SweepStore>, Error> {
    let Some(path) = &args.output else { return Ok(None) };
    let variants = variants(&options.commands, &options.parameters);
    if !is_dash(path) {
        return Ok(Some(SweepStore::new(path, &variants)));
    }
    if args.resume || variants.len() > 1 {
        let why = if args.resume { "nothing can be resumed from" } else { "several commands don't go to" };
        return Err(Error::Usage(format!("{why} standard output: give -o the name of a file")));
    }
    Ok(None)
}

/// Finds out whether the exports can be written, before anything is measured. What is there stays.
fn check_exports(args: &BenchArgs) -> Result<(), Error> {
    let exports = exports(args);
    if exports.iter().chain(&args.output.as_ref()).filter(|path| is_dash(path)).count() > 1 {
        return Err(Error::Usage("standard output has room for one file: give the others names".into()));
    }
    let files: Vec<_> = exports.into_iter().filter(|path| !is_dash(path)).collect();
    let is_taken =
        |(place, path): (usize, &&PathBuf)| files[..place].contains(path) || args.output.as_ref() == Some(path);
    if let Some((_, path)) = files.iter().enumerate().find(|&file| is_taken(file)) {
        return Err(Error::Usage(format!("{} is named twice: each file needs a name of its own", shown_path(path))));
    }
    for path in files {
        // Who reads a pipe would take it for closed.
        let is_special = fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir());
        if !is_special {
            PartialFile::create(path).map(drop).map_err(|source| Error::Write { path: path.clone(), source })?;
        }
    }
    Ok(())
}

/// The files for hyperfine's readers.
fn exports(args: &BenchArgs) -> Vec<&PathBuf> {
    [&args.export_hyperfine, &args.export_csv, &args.export_markdown].into_iter().flatten().collect()
}

/// The tables, or the file itself where that goes to standard output; then the exports. Beside a file on standard output, the
/// tables are for people.
fn print(args: &BenchArgs, swept: &Swept, store: Option<&SweepStore>) -> Result<(), Error> {
    let has_any = swept.files.iter().any(|file| !file.workloads.is_empty());
    if !has_any {
        return Ok(());
    }
    if args.output.as_deref().is_some_and(is_dash) {
        let text: String = swept.files.iter().map(WorkloadFile::to_json_lines).collect();
        Stream::stdout().print_data(&text)?;
    } else {
        let mut out = if exports(args).iter().any(|path| is_dash(path)) { Stream::stderr() } else { Stream::stdout() };
        out.print(&text::sweep(swept, args.statistic))?;
    }
    if let Some(path) = &args.export_hyperfine {
        Stream::write_whole(Some(path), &text::hyperfine_json(swept))?;
    }
    if let Some(path) = &args.export_csv {
        Stream::write_whole(Some(path), &text::hyperfine_csv(swept))?;
    }
    if let Some(path) = &args.export_markdown {
        Stream::write_whole(Some(path), &text::hyperfine_markdown(swept, args.statistic))?;
    }
    notes(args, swept, store);
    Ok(())
}

/// What is worth knowing beside the numbers.
fn notes(args: &BenchArgs, swept: &Swept, store: Option<&SweepStore>) {
    let SweepProgress { saved, resumed, .. } = swept.progress;
    let workloads = || swept.files.iter().flat_map(|file| &file.workloads);
    let kept: usize = workloads().map(|workload| workload.order.len()).sum();
    if resumed > 0 {
        tell(&format!("{resumed} runs were there already, {} were made now", kept.saturating_sub(resumed)));
    }
    if let Some(part) = args.until {
        tell(&format!("±{} was reached without {saved} of {} runs", percent(part), saved + kept));
        let wide = workloads().filter(|workload| is_wide(args, workload, part)).count();
        if wide > 0 {
            let few = (args.repeat as usize) < LEAST_RUNS;
            let least = if few { format!(" (--until needs {LEAST_RUNS} at least)") } else { String::new() };
            let (all, repeat) = (workloads().count(), args.repeat);
            tell(&format!("{wide} of {all} are less sure than that after {repeat} runs; allow more with -r{least}"));
        }
    }
    if let Some(store) = store.filter(|store| store.paths.len() > 1) {
        let names: Vec<_> = store.paths.iter().map(|path| shown_path(path)).collect();
        say(&format!("a file for each command: {}", names.join(", ")));
    }
    let Some(file) = swept.files.first() else { return };
    if file.header.sweep.as_ref().is_some_and(|sweep| sweep.model.is_some()) {
        tell("times are those of the emulation; counts are the model's");
    }
    let sweep = file.header.sweep.iter();
    let conditions = sweep.filter_map(|sweep| sweep.conditions.last());
    conditions.flat_map(|seen| warnings(seen, args.counted.cpu_affinity)).for_each(|warning| tell(&warning));
    let path = store.and_then(|store| store.paths.first()).map(|path| path.to_string_lossy());
    if let Some(start) = text::process_start(file, path.as_deref(), args.statistic).filter(|_| path.is_some()) {
        tell(&start);
    }
}

/// Says something in lines that aren't too wide; what stands below the first line is left as it is.
fn tell(text: &str) {
    let (first, rest) = text.split_at(text.find('\n').unwrap_or(text.len()));
    say(&(text::wrapped(first, "perfprop: ".len()) + rest));
}

/// Whether all runs of a command at a size leave the interval of its time wider than this part.
fn is_wide(args: &BenchArgs, workload: &Workload, part: f64) -> bool {
    let samples = workload.samples.get(TIME).map_or(&[][..], Vec::as_slice);
    let error = determined(args.statistic, samples).and_then(|found| found.error.relative_to(found.value));
    samples.len() >= args.repeat as usize && error.is_none_or(|error| error > part)
}

/// How many runs were ended and left out, of a sweep that went on without them.
fn tell_timed_out(args: &BenchArgs, swept: &Swept) {
    let count = swept.progress.timed_out;
    if let Some(timeout) = args.timeout.filter(|_| count > 0 && args.ignore_failure) {
        let limit = time(timeout.as_nanos() as f64);
        let (runs, they) = match count {
            1 => ("1 run".to_owned(), "it was ended, and is"),
            _ => (format!("{count} runs"), "they were ended, and are"),
        };
        tell(&format!("{runs} took longer than {limit} (--timeout): {they} in no number"));
    }
}

/// Says why the sweep ended, if not by itself.
fn end(swept: Swept, is_kept: bool) -> Result<u8, Error> {
    let has_any = swept.files.iter().any(|file| !file.workloads.is_empty());
    match (swept.error, swept.signal) {
        (Some(error), _) => {
            if has_any && is_kept && error.is_of_runs() {
                say("what was measured until then is kept; the same with --resume goes on");
            }
            Err(error.into())
        }
        (None, Some(signal)) => {
            say(match (has_any, is_kept) {
                (false, _) => "interrupted: nothing was measured",
                (true, false) => "interrupted: what was measured until then is above",
                (true, true) => "interrupted: what was measured until then is kept; the same with --resume goes on",
            });
            Ok(code_of(signal))
        }
        (None, None) => Ok(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_and_determinizers_are_read() {
        assert_eq!([part("2%"), part("0.5%")], [Ok(0.02), Ok(0.005)]);
        assert!(["0", "-1%", "200%", "x", "%"].iter().all(|text| part(text).is_err()));
        assert_eq!("p0".parse(), Ok(Determinizer::Percentile(0.0)));
        assert!(["p101", "50", "p", "Mean"].iter().all(|text| text.parse::<Determinizer>().is_err()));
    }
}
