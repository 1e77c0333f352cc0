//! Tests that only what perfprop lacks is explained: these read the whole command line, which imports the code that
//! they test.

use super::*;
use crate::cli::command;

#[test]
fn only_options_that_there_are_not_are_explained() {
    for verb in ["bench", "stat", "record", "top"] {
        let program = command();
        let arguments = program.find_subcommand(verb).into_iter().flat_map(|verb| verb.get_arguments());
        for argument in arguments {
            let long = argument.get_long().map(|name| format!("--{name}"));
            let short = argument.get_short().map(|name| format!("-{name}"));
            let mut names = long.into_iter().chain(short);
            assert!(names.all(|name| instead(verb, &name).is_none()), "{verb} {argument:?}");
        }
    }
}

#[test]
fn a_verb_has_its_own_hints() {
    assert_ne!(instead("stat", "-T"), instead("record", "-T"));
    assert_eq!(instead("replay", "-T"), None);
    assert!(instead("stat", "--td-level=1").is_some() && instead("stat", "--nosuch").is_none());
}

#[test]
fn hints_are_about_what_the_option_does() {
    // perf's ring buffer that keeps the newest samples, and hyperfine's command after each run.
    assert!(instead("record", "--overwrite").is_some_and(|hint| hint.contains("newest samples")));
    for option in ["-C", "--conclude"] {
        assert!(instead("bench", option).is_some_and(|hint| hint.contains("--prepare") && hint.contains("--cleanup")));
    }
}

#[test]
fn commands_that_are_one_word_each_are_written_apart() {
    let told = |lines: &[&str]| bench_of_lines(&lines.iter().map(|&line| line.to_owned()).collect::<Vec<_>>());
    assert!(told(&["sort a", " sort -u 'b c' "]).ends_with("perfprop bench -- sort a --vs sort -u 'b c'"));
    assert!(told(&["sort a | wc"]).ends_with("-- sh -c 'sort a | wc'"));
    assert!(told(&["a\u{1b}[2J b"]).ends_with(r"-- a\x1b[2J b"));
}

#[test]
fn only_verbs_that_there_are_not_are_explained() {
    let program = command();
    let mut verbs = program.get_subcommands().map(clap::Command::get_name);
    assert_eq!(verbs.find(|verb| instead_of_verb(verb).is_some()), None);
}
