//! Generates completion scripts and manual pages from the command line's definition.

use clap::Args;
use clap_complete::Shell;

use super::stream::Stream;
use super::{Error, command};
use crate::names::quoted;
use crate::tui::{KeyHelp, key_table};

/// The arguments of `perfprop completions`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perfprop completions bash > ~/.local/share/bash-completion/completions/perfprop
  perfprop completions zsh > ~/.zfunc/_perfprop     with fpath+=~/.zfunc before compinit in ~/.zshrc
  perfprop completions fish > ~/.config/fish/completions/perfprop.fish")]
pub(super) struct CompletionsArgs {
    /// The shell
    pub(super) shell: clap_complete::Shell,
}

/// The arguments of `perfprop man`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perfprop man | man -l -          the page of perfprop
  perfprop man top | man -l -      the page of a command, with its keys
  perfprop man history run         the page of a command below another
  perfprop man stat > perfprop-stat.1")]
pub(super) struct ManArgs {
    /// The command whose page to print, also as in history-run
    #[arg(value_name = "COMMAND", num_args = 0..)]
    pub(super) verbs: Vec<String>,
}

/// `perfprop completions SHELL`.
pub(super) fn completions(args: &CompletionsArgs) -> Result<u8, Error> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command(), "perfprop", &mut text);
    Stream::stdout().print(&with_words(args.shell, &String::from_utf8_lossy(&text)))?;
    Ok(0)
}

/// The script with what the machine knows: names of events, metrics and themes, ids of processes, and a command behind
/// `--`. perfprop is asked for them when they are completed. Shells that it isn't known for get none.
fn with_words(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => format!("{script}\n{BASH}"),
        Shell::Zsh => {
            let script = ZSH_WORDS.iter().fold(script.to_owned(), |script, (name, function)| {
                script.replace(&format!(":{name}:_default"), &format!(":{name}:{function}"))
            });
            let with_command = |line: &str| match line.strip_prefix("'*::command -- ") {
                Some(_) => "'*::command:_normal' \\\n".to_owned(),
                None => format!("{line}\n"),
            };
            let script: String = script.lines().map(with_command).collect();
            // The last lines call the function or register it.
            let (definitions, last) = script.rsplit_once("\nif [ ").unwrap_or((&script, ""));
            format!("{definitions}\n{ZSH}\nif [ {last}")
        }
        Shell::Fish => {
            let program = command();
            let line = |verb: &str, (option, short, function): (&str, Option<char>, &str)| {
                let short = short.map_or_else(String::new, |short| format!("-s {short} "));
                format!(
                    "complete -c perfprop -n \"__fish_perfprop_using_subcommand {verb}\" \
                     {short}-l {option} -x -a '({function})'\n"
                )
            };
            let has = |verb: &clap::Command, option: &str| {
                verb.get_arguments().find(|arg| arg.get_long() == Some(option)).map(clap::Arg::get_short)
            };
            let mut lines = String::new();
            for verb in program.get_subcommands() {
                let named =
                    FISH_WORDS.into_iter().filter_map(|(name, function)| Some((name, has(verb, name)?, function)));
                lines.extend(named.map(|(name, short, function)| line(verb.get_name(), (name, short, function))));
            }
            format!("{script}\n{FISH}{lines}")
        }
        _ => script.to_owned(),
    }
}

/// What zsh calls the values of options, and the functions that complete them.
const ZSH_WORDS: [(&str, &str); 4] = [
    ("EVENTS", "_perfprop_events"),
    ("METRICS", "_perfprop_metrics"),
    ("THEME", "_perfprop_themes"),
    ("PID", "_perfprop_processes"),
];

/// Options, and the functions of fish that complete their values.
const FISH_WORDS: [(&str, &str); 4] = [
    ("event", "__perfprop_list event list --all --names"),
    ("metrics", "__perfprop_list metrics words metrics"),
    ("theme", "perfprop words themes 2>/dev/null"),
    ("pid", "__perfprop_list pid words processes"),
];

/// A list is split at commas and braces; readline replaces only what stands behind the last colon. Ids of processes
/// stand with their names, until one is left.
const BASH: &str = r#"_perfprop_words() {
    local line="${COMP_LINE:0:COMP_POINT}"
    local word="${line##*[[:space:]]}"
    local before="${line%"$word"}"
    before="${before%"${before##*[![:space:]]}"}"
    local option="${before##*[[:space:]]}"
    case "$word" in
        --*=*) option="${word%%=*}"; word="${word#*=}" ;;
    esac
    local words name
    case "$option" in
        -e | --event) words="$(perfprop list --all --names 2>/dev/null)" ;;
        -M | --metrics) words="$(perfprop words metrics 2>/dev/null)" ;;
        --theme) words="$(perfprop words themes 2>/dev/null)" ;;
        -p | --pid) words="$(perfprop words processes 2>/dev/null)" ;;
        *) return 1 ;;
    esac
    local last="${word##*[,\{]}"
    local kept="${word%"${word##*:}"}"
    COMPREPLY=()
    while IFS= read -r name; do
        [[ "$name" == "$last"* ]] || continue
        name="${word%"$last"}$name"
        COMPREPLY+=("${name#"$kept"}")
    done <<< "$words"
    if [[ ${#COMPREPLY[@]} == 1 ]]; then
        COMPREPLY[0]="${COMPREPLY[0]%%$'\t'*}"
    else
        COMPREPLY=("${COMPREPLY[@]/$'\t'/ }")
    fi
    compopt -o nospace 2>/dev/null
    return 0
}

_perfprop_command() {
    local place
    for ((place = 1; place < COMP_CWORD; place++)); do
        [[ "${COMP_WORDS[place]}" == "--" ]] && break
    done
    ((place < COMP_CWORD)) || return 1
    if declare -F _command_offset > /dev/null; then
        _command_offset $((place + 1))
    elif ((COMP_CWORD == place + 1)); then
        # Once, however many folders of PATH have it.
        mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}" | sort -u)
    else
        COMPREPLY=()
    fi
    return 0
}

_perfprop_or_words() {
    _perfprop_command || _perfprop_words || _perfprop "$@"
}

complete -F _perfprop_or_words -o bashdefault -o default perfprop
"#;

const ZSH: &str = r#"_perfprop_events() {
    local -a names
    names=(${(f)"$(perfprop list --all --names 2>/dev/null)"})
    compset -P '*[,{]'
    compadd -S '' -a names
}

_perfprop_metrics() {
    local -a names
    names=(${(f)"$(perfprop words metrics 2>/dev/null)"})
    compset -P '*,'
    compadd -S '' -a names
}

_perfprop_themes() {
    local -a names
    names=(${(f)"$(perfprop words themes 2>/dev/null)"})
    compadd -a names
    _files -g '*.toml'
}

_perfprop_processes() {
    local -a lines ids shown
    lines=(${(f)"$(perfprop words processes 2>/dev/null)"})
    ids=(${lines%%$'\t'*})
    shown=(${lines/$'\t'/  })
    compset -P '*,'
    compadd -S '' -l -d shown -a ids
}
"#;

const FISH: &str = r#"function __perfprop_list
    set -l word (string replace -r "^--$argv[1]=" '' -- (commandline -ct))
    set -l head (string replace -r '[^,{]*$' '' -- $word)
    for name in (perfprop $argv[2..] 2>/dev/null)
        echo $head$name
    end
end

function __perfprop_is_command
    contains -- -- (commandline -opc)
end

function __perfprop_command
    set -l words (commandline -opc) (commandline -ct)
    set -l place (contains -i -- -- $words)
    complete -C (string join ' ' -- (string escape -n -- $words[(math $place + 1)..]))
end

complete -c perfprop -n __perfprop_is_command -f -a '(__perfprop_command)'
"#;

/// `perfprop man [VERB]`.
pub(super) fn man(args: &ManArgs) -> Result<u8, Error> {
    let verbs: Vec<&str> = args.verbs.iter().flat_map(|verb| verb.split('-')).collect();
    let mut text = page(&verbs)?;
    if verbs.first().is_none_or(|verb| WITH_SCREENS.contains(verb)) {
        text.push_str(&keys());
    }
    Stream::stdout().print(&text)?;
    Ok(0)
}

/// The manual page of a command, below those that stand before it.
fn page(verbs: &[&str]) -> Result<String, Error> {
    let mut program = command();
    // Only then commands know how they are called in full.
    program.build();
    let mut found = &program;
    for verb in verbs {
        found = found.find_subcommand(verb).ok_or_else(|| {
            let known = found.get_subcommands().filter(|verb| !verb.is_hide_set()).map(clap::Command::get_name);
            let known: Vec<_> = known.filter(|verb| *verb != "help").collect();
            Error::Usage(match known.is_empty() {
                true => format!("{} has no command below it, and none {}", found.get_name(), quoted(verb)),
                false => format!("no verb {}; there are {}", quoted(verb), known.join(", ")),
            })
        })?;
    }
    let usage = found.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").lines().map(|line| roff(line.trim()));
    let names: Vec<_> = std::iter::once("perfprop").chain(verbs.iter().copied()).collect();
    let man = clap_mangen::Man::new(found.clone().name(names.join("-")));
    let mut text = Vec::new();
    let rendered = man.render(&mut text);
    rendered.map_err(|source| Error::Write { path: "standard output".into(), source })?;
    let usage = usage.collect::<Vec<_>>().join("\n.br\n");
    Ok(with_synopsis(&String::from_utf8_lossy(&text), &usage))
}

/// A page with another synopsis: clap's lists all options, without their values.
fn with_synopsis(page: &str, usage: &str) -> String {
    const HEAD: &str = ".SH SYNOPSIS\n";
    match page.split_once(HEAD).and_then(|(before, rest)| Some((before, rest.find(".SH ").map(|end| &rest[end..])?))) {
        Some((before, rest)) => format!("{before}{HEAD}{usage}\n{rest}"),
        None => page.to_owned(),
    }
}

/// The verbs that draw screens.
const WITH_SCREENS: [&str; 2] = ["top", "replay"];

/// The keys of the screens as a section of a manual page.
fn keys() -> String {
    let mut section = ".SH KEYS\n\\fB[keys]\\fR in the configuration names others.\n".to_owned();
    for KeyHelp { keys, words, screens } in key_table() {
        let place = if screens.is_empty() { String::new() } else { format!(" ({})", screens.join(", ")) };
        section.push_str(&format!(".TP\n\\fB{}\\fR\n{}\n", roff(&keys), roff(&format!("{words}{place}"))));
    }
    section
}

/// Text as a manual page holds it: nothing in it is a request or another character (groff_char(7)).
fn roff(text: &str) -> String {
    let mut out = String::from("\\&");
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\e"),
            '\'' => out.push_str("\\(aq"),
            '^' => out.push_str("\\(ha"),
            '-' => out.push_str("\\-"),
            '`' => out.push_str("\\(ga"),
            '~' => out.push_str("\\(ti"),
            '↑' => out.push_str("\\(ua"),
            '↓' => out.push_str("\\(da"),
            '←' => out.push_str("\\(<-"),
            '→' => out.push_str("\\(->"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_in_the_manual_page() {
        let section = keys();
        assert_eq!(section.matches(".TP\n").count(), key_table().len());
        assert_eq!(roff("' \\ .x -"), "\\&\\(aq \\e .x \\-");
        assert!(
            section.lines().all(|line| line.starts_with("\\&") || line.starts_with("\\fB") || line.starts_with("."))
        );
    }

    #[test]
    fn a_synopsis_is_the_line_of_usage() {
        let line = |verbs: &[&str]| {
            let page = page(verbs).unwrap_or_default();
            let rest = page.split_once(".SH SYNOPSIS\n").map(|(_, rest)| rest.to_owned()).unwrap_or_default();
            rest.lines().next().unwrap_or_default().replace("\\-", "-")
        };
        assert_eq!(line(&["stat"]), "\\&perfprop stat [OPTIONS] [-- COMMAND...]");
        assert_eq!(line(&["bench"]), "\\&perfprop bench [OPTIONS] -- <COMMAND>...");
        assert!(
            line(&["history", "run"]).starts_with("\\&perfprop history run [OPTIONS] "),
            "{}",
            line(&["history", "run"])
        );
        assert!(line(&[]).starts_with("\\&perfprop [OPTIONS] "), "{}", line(&[]));
        assert!(
            page(&["history", "run"])
                .is_ok_and(|page| page.contains("perfprop-history-run") && page.contains("bisect"))
        );
        assert!(
            matches!(page(&["nothing"]), Err(Error::Usage(text)) if text.contains("no verb 'nothing'; there are top,"))
        );
        assert!(matches!(page(&["stat", "x"]), Err(Error::Usage(text)) if text.starts_with("stat has no command")));
    }

    #[test]
    fn scripts_ask_for_words() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut command(), "perfprop", &mut text);
            let script = with_words(shell, &String::from_utf8_lossy(&text));
            for words in ["list --all --names", "words metrics", "words themes", "words processes"] {
                assert!(script.contains(words), "{shell}: {words}");
            }
        }
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut command(), "perfprop", &mut text);
            assert!(String::from_utf8_lossy(&text).contains("E04"), "{shell}");
        }
        let mut text = Vec::new();
        clap_complete::generate(Shell::Zsh, &mut command(), "perfprop", &mut text);
        let script = with_words(Shell::Zsh, &String::from_utf8_lossy(&text));
        for (_, function) in ZSH_WORDS {
            assert!(script.contains(&format!(":{function}'")), "{function}");
        }
        assert!(script.contains(":_normal'"));
    }
}
