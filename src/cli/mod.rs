//! Runs the program `perfprop`: parses its arguments, runs the verb, returns the exit code.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{ArgAction, CommandFactory, Parser, Subcommand};

mod appearance;
mod args;
#[cfg(feature = "bench")]
mod bench;
mod check;
mod compare;
mod completion_words;
mod demo;
mod error;
mod estimate;
mod export;
#[cfg(feature = "bench")]
mod fit;
mod generate;
#[cfg(feature = "history")]
mod history;
mod imported;
mod input;
mod learn;
mod list;
mod outcome;
mod pager;
mod perf_compat;
mod played;
#[cfg(feature = "bench")]
mod predict;
mod progress;
mod record;
mod relations;
mod replay;
mod report;
mod signals;
mod stacks;
mod stat;
mod stream;
#[cfg(any(feature = "bench", feature = "history"))]
mod text_input;
mod top;
mod with_model;

pub use error::Error;

#[cfg(feature = "bench")]
use bench::BenchArgs;
use check::{CheckArgs, MixArgs};
use completion_words::WordsArgs;
use demo::DemoArgs;
use estimate::EstimateArgs;
use export::ExportArgs;
#[cfg(feature = "bench")]
use fit::FitArgs;
use generate::{CompletionsArgs, ManArgs};
#[cfg(feature = "history")]
use history::HistoryArgs;
use list::ListArgs;
use pager::Paging;
#[cfg(feature = "bench")]
use predict::PredictArgs;
use record::RecordArgs;
use relations::RelationsArgs;
use replay::ReplayArgs;
use stat::StatArgs;
use top::TopArgs;

use crate::sources::command::wait_for_children;

/// Measures many more events than a CPU has counters, live, and says how far each number can be
/// trusted.
#[derive(Debug, Parser)]
#[command(
    name = "perfprop",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    disable_help_flag = true,
    disable_version_flag = true
)]
struct Args {
    #[command(subcommand)]
    verb: Verb,
    /// Use no pager (PERFPROP_PAGER, else PAGER, else less) where standard output is a terminal
    #[arg(long, global = true, help_heading = HELP)]
    no_pager: bool,
    /// Print help (`-h` prints a summary)
    #[arg(short, long, global = true, action = ArgAction::Help, help_heading = HELP)]
    help: Option<bool>,
    /// Print the version
    #[arg(short = 'V', long, action = ArgAction::Version, help_heading = HELP)]
    version: Option<bool>,
}

/// The heading of the options that every verb has; it stands last.
const HELP: &str = "Help";

/// What to do.
#[derive(Debug, Subcommand)]
enum Verb {
    /// Show a program or the machine live: events with their errors, functions, threads
    Top(TopArgs),
    /// Run a command and print its counts, with errors
    Stat(StatArgs),
    /// Measure a run and write a recording (JSON lines)
    Record(RecordArgs),
    /// Open recordings in the same screens, compare them, or print a screen
    Replay(ReplayArgs),
    /// See the screens with a recording that is part of perfprop: a tour of five steps
    Demo(DemoArgs),
    /// List events, and whether this machine can count them
    List(ListArgs),
    /// Show what this machine can count and what forbids the rest; check relation files
    Check(CheckArgs),
    /// Show, import and learn relations between events, and metrics
    Relations(RelationsArgs),
    /// Convert call stacks between the formats of other tools, and draw flame graphs
    Export(ExportArgs),
    #[cfg(feature = "bench")]
    /// Run commands with many sizes, write what each run took, and compare them
    Bench(BenchArgs),
    #[cfg(feature = "bench")]
    /// Fit cost models to measurements: how a time or a count grows with sizes, and how sure that is
    Fit(FitArgs),
    #[cfg(feature = "bench")]
    /// Predict by a fitted model, with intervals
    Predict(PredictArgs),
    #[cfg(feature = "history")]
    /// Measure commits, and find which of them changed a number
    History(HistoryArgs),
    /// Estimate rounds of counts that another program feeds in as JSON lines
    #[command(hide = true)]
    Estimate(EstimateArgs),
    /// Run the built-in command of `check --validate`
    #[command(hide = true)]
    Mix(MixArgs),
    /// Print the words that completion scripts ask for
    #[command(hide = true)]
    Words(WordsArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page of perfprop or of a command
    Man(ManArgs),
}

/// Runs the program with the process' own arguments.
pub fn main() -> ExitCode {
    wait_for_children();
    let words = asking_for_help(std::env::args_os().collect());
    let args = match Args::try_parse_from(&words) {
        Ok(args) => args,
        Err(error) => return error::usage(error, &words, &command()),
    };
    let paging = if args.no_pager { Paging::Never } else { Paging::WherePeopleLook };
    match run(&args.verb, paging) {
        Ok(code) => {
            signals::end_interrupted(code);
            ExitCode::from(code)
        }
        Err(error) => error.report(&words, &command(), || with_model::modelled_instead(&words)),
    }
}

/// `help stat` as `stat --help`, as many programs have it.
fn asking_for_help(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_some_and(|word| word == "help") {
        words.remove(1);
        let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
        words.insert(end, "--help".into());
    }
    words
}

fn run(verb: &Verb, paging: Paging) -> Result<u8, Error> {
    match verb {
        Verb::Top(args) => top::run(args),
        Verb::Stat(args) => stat::run(args),
        Verb::Record(args) => record::run(args),
        Verb::Replay(args) => replay::run(args),
        Verb::Demo(args) => demo::run(args),
        Verb::List(args) => list::run(args, paging),
        Verb::Check(args) => check::run(args),
        Verb::Relations(args) => relations::run(args),
        Verb::Export(args) => export::run(args),
        #[cfg(feature = "bench")]
        Verb::Bench(args) => bench::run(args),
        #[cfg(feature = "bench")]
        Verb::Fit(args) => fit::run(args),
        #[cfg(feature = "bench")]
        Verb::Predict(args) => predict::run(args),
        #[cfg(feature = "history")]
        Verb::History(args) => history::run(args),
        Verb::Estimate(args) => estimate::run(args),
        Verb::Mix(args) => Ok(check::run_mix(args)),
        Verb::Words(args) => completion_words::run(args),
        Verb::Completions(args) => generate::completions(args),
        Verb::Man(args) => generate::man(args),
    }
}

/// The command line as clap describes it, for manual pages and completions.
pub fn command() -> clap::Command {
    Args::command()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use clap::error::ErrorKind;

    use super::*;

    #[test]
    fn clap_finds_no_fault_with_the_definitions() {
        command().debug_assert();
    }

    /// What a page has in code blocks, a line each, and between backquotes.
    fn code(page: &str) -> Vec<String> {
        let part = |(place, part): (usize, &str)| match place % 2 {
            0 => part.split('`').skip(1).step_by(2).map(|span| span.replace('\n', " ")).collect(),
            _ => part.replace("\\\n", " ").lines().map(str::to_owned).collect::<Vec<_>>(),
        };
        page.split("```").enumerate().flat_map(part).collect()
    }

    /// The words of each command of perfprop in such a line, without what the shell does with its output.
    fn commands(line: &str) -> Vec<Vec<String>> {
        let line = line.replace("\\|", "|");
        let ends = |word: &str| word.starts_with(['>', '#', '|', ';', '&']);
        let of = |at: usize| {
            let mut words = vec![];
            let mut quote = None;
            for word in line[at..].split(' ').filter(|word| !word.is_empty()) {
                match quote {
                    None if ends(word) => break,
                    None => words.push(word.replace(['\'', '"'], "")),
                    Some(_) => {
                        let last: &mut String = words.last_mut()?;
                        last.extend([" ", word.trim_matches(['\'', '"'])]);
                    }
                }
                for mark in word.chars().filter(|mark| matches!(mark, '\'' | '"')) {
                    quote = match quote {
                        None => Some(mark),
                        Some(open) if open == mark => None,
                        open => open,
                    };
                }
                if quote.is_none() && word.ends_with(';') {
                    break;
                }
            }
            Some(words)
        };
        let verb = |at: &usize| line[at + "perfprop ".len()..].starts_with(|first: char| first.is_ascii_lowercase());
        let begins = |at: &usize| *at == 0 || line[..*at].ends_with("| ");
        line.match_indices("perfprop ").map(|(at, _)| at).filter(begins).filter(verb).filter_map(of).collect()
    }

    #[test]
    fn commands_end_where_the_shell_takes_over() {
        assert_eq!(
            commands("perf script \\| perfprop export --to svg > a.svg"),
            [["perfprop", "export", "--to", "svg"]]
        );
        assert_eq!(
            commands("perfprop stat -- sh -c 'a \"b\"  | c' # d"),
            [["perfprop", "stat", "--", "sh", "-c", "a b | c"]]
        );
        assert!(commands("perfprop = { version = \"0.1\" }").is_empty() && commands("the perfprop tool").is_empty());
    }

    #[test]
    #[cfg(all(feature = "bench", feature = "history"))]
    fn perfprop_takes_every_command_that_the_pages_name() {
        let lacks_rest = [ErrorKind::MissingRequiredArgument, ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand];
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
        let pages = ["README.md", "CHANGELOG.md", "regions/README.md"].map(|page| root.join(page));
        let mut taken = 0;
        for page in pages.into_iter().chain(docs) {
            let text = std::fs::read_to_string(&page).unwrap();
            for words in code(&text).iter().flat_map(|line| commands(line)) {
                // A word in capitals stands for what the reader has.
                let given = words.iter().map(|word| match word.as_str() {
                    "PID" => "1",
                    "SHELL" => "bash",
                    word => word,
                });
                match Args::try_parse_from(given) {
                    Ok(_) => taken += 1,
                    // A verb or an option alone.
                    Err(error) if lacks_rest.contains(&error.kind()) => {}
                    Err(error) => panic!("{}: {}: {error}", page.display(), words.join(" ")),
                }
            }
        }
        assert!(taken > 50, "{taken}");
    }
}
