//! Rewrites a command line so that the emulated PMU counts what this machine has no counters for.

use std::ffi::{OsStr, OsString};

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches};

use super::args::SourceName;
use crate::measure::{self, ModelledNames};
use crate::names::{for_shell, shown};

/// Options that choose what the model can't: whom to count but a command, where, in whose turns, and how to sample.
const LEFT_OUT: [&str; 20] = [
    "all_cpus",
    "all_kernel",
    "call_graph",
    "cgroup",
    "count",
    "cpu",
    "delay",
    "event_tables",
    "frequency",
    "mux",
    "no_aggr",
    "no_inherit",
    "no_merge",
    "off_cpu",
    "per_thread",
    "pid",
    "schedule",
    "source",
    "tid",
    "region_events",
];

/// A line that says how the same is counted by a model; `words` is the command line of this process. `None` where a
/// model counts already.
pub(super) fn modelled_instead(words: &[OsString]) -> Option<String> {
    let (command, lacking) = match again(words) {
        Again::Modelled => return None,
        Again::Other => ("perfprop stat --source emulate -- ./prog".into(), Vec::new()),
        Again::Command { line, lacking } => (line, lacking),
    };
    let what = match lacking.is_empty() {
        true => "to count this with a model, which needs no counters".to_owned(),
        false => format!("{} can't be modelled; what the model counts", lacking.join(", ")),
    };
    Some(shown(&format!("{what}:  {command}")).into_owned())
}

/// What becomes of a command line.
enum Again {
    /// It has the model already.
    Modelled,
    /// Its verb has no model, or measures no command of its own line.
    Other,
    /// The same with the model, and the events and metrics that it has nothing for.
    Command { line: String, lacking: Vec<String> },
}

fn again(words: &[OsString]) -> Again {
    with_source(words).unwrap_or(Again::Other)
}

/// The command line with the model; `None` for a verb that has none, or measures no command of its own line.
fn with_source(words: &[OsString]) -> Option<Again> {
    let mut program = super::command();
    program.build();
    let matches = program.clone().try_get_matches_from(words).ok()?;
    let (mut program, mut matches, mut verbs) = (&program, &matches, Vec::new());
    while let Some((verb, of_verb)) = matches.subcommand() {
        (program, matches) = (program.find_subcommand(verb)?, of_verb);
        verbs.push(verb);
    }
    let has = |id: &str| program.get_arguments().any(|arg| arg.get_id() == id);
    if !has("source") || !has("command") {
        return None;
    }
    if matches.get_one::<SourceName>("source") == Some(&SourceName::Emulate) {
        return Some(Again::Modelled);
    }
    let is_given = |arg: &&Arg| matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
    let given: Vec<&Arg> = program.get_arguments().filter(is_given).collect();
    let is_aimed = given.iter().any(|arg| ["pid", "tid", "all_cpus", "cgroup", "cpu"].contains(&arg.get_id().as_str()));
    let (command, options): (Vec<&Arg>, Vec<&Arg>) = given.into_iter().partition(|arg| arg.is_positional());
    let lacking = options.iter().flat_map(|arg| modelled(arg.get_id().as_str(), matches).lacking).collect();
    let mut options: Vec<_> = options.into_iter().filter_map(|arg| option(arg, matches)).collect();
    options.sort();
    let mut line = vec![format!("perfprop {} --source emulate", verbs.join(" "))];
    line.extend(options.into_iter().map(|(_, option)| option));
    let command = command.first().and_then(|arg| matches.get_raw(arg.get_id().as_str())).filter(|_| !is_aimed);
    let command = command.map_or_else(|| "./prog".into(), for_shells);
    Some(Again::Command { line: format!("{} -- {command}", line.join(" ")), lacking })
}

/// An option as it is written again, and its place on the command line.
fn option(arg: &Arg, matches: &ArgMatches) -> Option<(usize, String)> {
    let id = arg.get_id().as_str();
    let place = matches.index_of(id)?;
    if id == "call_graph" {
        // The model counts all calls: it has no way to choose for finding stacks.
        return (!matches.get_flag("frame_pointers")).then(|| (place, "-g".to_owned()));
    }
    let name = match (arg.get_short(), arg.get_long()) {
        (Some(short), _) => format!("-{short}"),
        (None, long) => format!("--{}", long?),
    };
    if LEFT_OUT.contains(&id) {
        return None;
    }
    let values: Vec<&OsStr> = matches.get_raw(id).into_iter().flatten().collect();
    let text = match id {
        "events" | "metrics" => {
            let names = modelled(id, matches).counted;
            (!names.is_empty()).then(|| format!("{name} {}", for_shell(&names.join(","))))?
        }
        _ => match arg.get_action() {
            ArgAction::Count => format!("-{}", name.trim_start_matches('-').repeat(usize::from(matches.get_count(id)))),
            ArgAction::SetTrue => name,
            _ => values.iter().map(|value| format!("{name} {}", for_shells([*value]))).collect::<Vec<_>>().join(" "),
        },
    };
    Some((place, text))
}

/// What the model counts of the values of `-e` or `-M`; nothing of another option.
fn modelled(id: &str, matches: &ArgMatches) -> ModelledNames {
    let mut all = ModelledNames::default();
    if !["events", "metrics"].contains(&id) {
        return all;
    }
    for list in matches.get_raw(id).into_iter().flatten().map(OsStr::to_string_lossy) {
        let names = match id {
            "events" => measure::modelled_events(&list),
            _ => measure::modelled_metrics(&list).unwrap_or_default(),
        };
        all.counted.extend(names.counted);
        all.lacking.extend(names.lacking);
    }
    all
}

fn for_shells<'a>(words: impl IntoIterator<Item = &'a OsStr>) -> String {
    let words: Vec<_> = words.into_iter().map(|word| for_shell(&word.to_string_lossy())).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<String> {
        match again(&line.split(' ').map(OsString::from).collect::<Vec<_>>()) {
            Again::Command { line, .. } => Some(line),
            Again::Modelled | Again::Other => None,
        }
    }

    #[test]
    fn what_a_model_counts_already_is_not_proposed() {
        let line = |line: &str| modelled_instead(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(line("perfprop stat --source emulate -e Ir,cycles -- true"), None);
        assert!(
            line("perfprop stat -e branches -- true")
                .is_some_and(|line| line.starts_with("to count this with a model"))
        );
        assert!(line("perfprop list").is_some());
    }

    #[test]
    fn what_a_model_lacks_is_named() {
        let line = |line: &str| modelled_instead(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(
            line("perfprop stat -e cycles -- true").as_deref(),
            Some("cycles can't be modelled; what the model counts:  perfprop stat --source emulate -- true")
        );
        assert_eq!(
            line("perfprop stat -e cycles,branches -M IPC -- true").as_deref(),
            Some(
                "cycles, IPC can't be modelled; what the model counts:  perfprop stat --source emulate -e branches -- true"
            )
        );
    }

    #[test]
    fn the_users_own_command_line_comes_back_with_the_model() {
        let again = |line: &str| of(line).unwrap_or_default();
        assert_eq!(
            again("perfprop stat --strict -e cycles,{branches,instructions:u} -r 3 -o out.txt -- ./prog -e x"),
            "perfprop stat --source emulate --strict -e branches,instructions:u -r 3 -o out.txt -- ./prog -e x"
        );
        assert_eq!(
            again("perfprop record -F 99 --call-graph dwarf -o out.jsonl -e cycles -- ./prog"),
            "perfprop record --source emulate -g -o out.jsonl -- ./prog"
        );
        assert_eq!(again("perfprop record -ge cycles ./prog"), "perfprop record --source emulate -g -- ./prog");
        assert_eq!(
            again("perfprop stat -ddM IPC,L2_MPKI true"),
            "perfprop stat --source emulate -dd -M L2_MPKI -- true"
        );
        assert_eq!(again("perfprop top --theme x -- sh -c a"), "perfprop top --source emulate --theme x -- sh -c a");
    }

    #[test]
    fn what_runs_already_becomes_a_command() {
        assert_eq!(
            of("perfprop stat -e branches -a").as_deref(),
            Some("perfprop stat --source emulate -e branches -- ./prog")
        );
        assert_eq!(of("perfprop top -p 7 -I 100").as_deref(), Some("perfprop top --source emulate -I 100 -- ./prog"));
        // The command only says how long to count.
        assert_eq!(of("perfprop stat -a -- sleep 1").as_deref(), Some("perfprop stat --source emulate -- ./prog"));
    }

    #[test]
    fn a_verb_without_a_model_has_no_such_line() {
        assert_eq!(of("perfprop replay x.jsonl"), None);
        assert_eq!(of("perfprop history run HEAD~2.. -e cycles"), None);
        assert_eq!(of("perfprop stat --nonsense"), None);
    }

    #[test]
    fn words_are_quoted_and_shown() {
        let words = ["perfprop", "stat", "--", "a b", "x\u{1b}[2J"].map(OsString::from);
        let line = modelled_instead(&words).unwrap_or_default();
        assert!(line.contains("'a b'") && !line.contains('\u{1b}'), "{line}");
    }
}
