//! Generates completion scripts and manual pages from the command line's definition.

use clap::Args;
use clap_complete::Shell;

use super::stream::Stream;
use super::{Error, command};
use crate::tui::{KeyHelp, key_table};

/// The arguments of `perfprop completions`.
#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    pub(super) shell: clap_complete::Shell,
}

/// The arguments of `perfprop man`.
#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// The command whose page to print
    pub(super) verb: Option<String>,
}

/// `perfprop completions SHELL`.
pub(super) fn completions(args: &CompletionsArgs) -> Result<u8, Error> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command(), "perfprop", &mut text);
    Stream::stdout().print(&with_event_names(args.shell, &String::from_utf8_lossy(&text)))?;
    Ok(0)
}

/// The script with the names of events behind `-e`, asked for when they are completed: they depend on
/// the machine. Shells that it isn't known for get none.
fn with_event_names(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => format!("{script}\n{BASH}"),
        Shell::Zsh => {
            let script = script.replace(":EVENTS:_default", ":EVENTS:_perfprop_events");
            // The last lines call the function or register it.
            let (definitions, last) = script.rsplit_once("\nif [ ").unwrap_or((&script, ""));
            format!("{definitions}\n{ZSH}\nif [ {last}")
        }
        Shell::Fish => {
            let line = |verb: &str| {
                format!(
                    "complete -c perfprop -n \"__fish_perfprop_using_subcommand {verb}\" \
                     -s e -l event -r -f -a '(__perfprop_events)'\n"
                )
            };
            let program = command();
            let counts = |verb: &&clap::Command| verb.get_arguments().any(|arg| arg.get_long() == Some("event"));
            let verbs: String = program.get_subcommands().filter(counts).map(|verb| line(verb.get_name())).collect();
            format!("{script}\n{FISH}{verbs}")
        }
        _ => script.to_owned(),
    }
}

/// A list is split at commas and braces; readline replaces only what stands behind the last colon.
const BASH: &str = r#"_perfprop_events() {
    local line="${COMP_LINE:0:COMP_POINT}"
    local word="${line##*[[:space:]]}"
    local before="${line%"$word"}"
    before="${before%"${before##*[![:space:]]}"}"
    case "${before##*[[:space:]]} $word" in
        "-e "* | "--event "*) ;;
        *" --event="*) word="${word#--event=}" ;;
        *) return 1 ;;
    esac
    local last="${word##*[,\{]}"
    local kept="${word%"${word##*:}"}" name
    COMPREPLY=()
    while IFS= read -r name; do
        name="${word%"$last"}$name"
        COMPREPLY+=("${name#"$kept"}")
    done < <(compgen -W "$(perfprop list --names 2>/dev/null)" -- "$last")
    compopt -o nospace 2>/dev/null
    return 0
}

_perfprop_or_events() {
    _perfprop_events || _perfprop "$@"
}

complete -F _perfprop_or_events -o bashdefault -o default perfprop
"#;

const ZSH: &str = r#"_perfprop_events() {
    local -a names
    names=(${(f)"$(perfprop list --names 2>/dev/null)"})
    compset -P '*[,{]'
    compadd -S '' -a names
}
"#;

const FISH: &str = r#"function __perfprop_events
    set -l word (string replace -r '^--event=' '' -- (commandline -ct))
    set -l head (string replace -r '[^,{]*$' '' -- $word)
    for name in (perfprop list --names 2>/dev/null)
        echo $head$name
    end
end
"#;

/// `perfprop man [VERB]`.
pub(super) fn man(args: &ManArgs) -> Result<u8, Error> {
    let program = command();
    let page = match &args.verb {
        None => program,
        Some(verb) => {
            let verbs = || program.get_subcommands().map(clap::Command::get_name);
            let Some(found) = program.find_subcommand(verb) else {
                return Err(Error::Usage(format!(
                    "no verb '{verb}'; there are {}",
                    verbs().collect::<Vec<_>>().join(", ")
                )));
            };
            found.clone().name(format!("perfprop-{}", found.get_name()))
        }
    };
    let mut text = Vec::new();
    let rendered = clap_mangen::Man::new(page).render(&mut text);
    rendered.map_err(|source| Error::Write { path: "standard output".into(), source })?;
    let mut text = String::from_utf8_lossy(&text).into_owned();
    if args.verb.as_deref().is_none_or(|verb| WITH_SCREENS.contains(&verb)) {
        text.push_str(&keys());
    }
    Stream::stdout().print(&text)?;
    Ok(0)
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
    fn scripts_ask_for_the_names_of_events() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut command(), "perfprop", &mut text);
            let script = String::from_utf8_lossy(&text).into_owned();
            let with_names = with_event_names(shell, &script);
            assert!(with_names.contains("perfprop list --names") && with_names.len() > script.len(), "{shell}");
        }
    }
}
