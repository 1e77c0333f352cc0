//! The commands that are measured of each commit, and how each commit is built.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::results::{RESERVED, VERSION_KEY};
use crate::names::quoted;

/// The file in which a project names its benchmarks.
pub const CONFIGURATION: &str = "perfprop.toml";

/// A command that is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BenchCommand {
    /// The benchmark's name.
    pub name: String,
    /// The command and its arguments; not empty.
    pub argv: Vec<String>,
}

/// How commits are built and measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryPlan {
    /// What builds a commit, for a shell; nothing is built if `None`.
    pub build: Option<String>,
    /// The events that are counted.
    pub events: Vec<String>,
    /// The benchmarks.
    pub benches: Vec<BenchCommand>,
    /// What is kept of a build, beside the programs of the benchmarks: paths in the checkout.
    pub keep: Vec<PathBuf>,
    /// The longest that a run of a benchmark may take; as long as it wants if `None`.
    pub timeout: Option<Duration>,
}

/// What a text of a benchmark lacks.
#[derive(Debug)]
pub enum PlanError {
    /// It isn't `NAME=COMMAND`.
    NoName(String),
    /// It has the name of what isn't a benchmark in asv's file of them.
    Reserved,
    /// A quote of a command isn't closed.
    OpenQuote(String),
    /// A word of a command means something to a shell alone.
    Shell(String, String),
    /// A word of a command has a name in braces, which nothing replaces.
    Parameter(String, String),
    /// Neither options nor the file name a benchmark.
    Nothing,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoName(text) => {
                write!(
                    f,
                    "{} names no benchmark: expected NAME=COMMAND, as in sort='./sort 1000', with a NAME of letters, digits, _ and -",
                    quoted(text)
                )
            }
            Self::Reserved => f.write_str(RESERVED),
            Self::OpenQuote(text) => write!(f, "a quote isn't closed in {}", quoted(text)),
            Self::Shell(text, word) => write!(
                f,
                "{} isn't run by a shell, to which {} means something: write sh -c '...' if it is to be, or quote it with ' if the program is to get it",
                quoted(text),
                quoted(word)
            ),
            Self::Parameter(text, name) => write!(
                f,
                "nothing replaces {{{name}}} in {}: perfprop bench -P {name}=VALUES measures several sizes; here write a value, or \\{{{name}}} if the program is to get the braces",
                quoted(text)
            ),
            Self::Nothing => write!(
                f,
                "there is nothing to measure: name benchmarks with --bench NAME=COMMAND, or in {CONFIGURATION}: [history.bench] NAME = \"COMMAND\""
            ),
        }
    }
}

impl std::error::Error for PlanError {}

impl BenchCommand {
    /// Reads `NAME=COMMAND`.
    ///
    /// # Errors
    /// Returns what the text lacks.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        let (name, command) = text.split_once('=').ok_or_else(|| PlanError::NoName(text.to_owned()))?;
        Self::new(name.trim(), command)
    }

    /// A benchmark of this name and command.
    ///
    /// # Errors
    /// Returns what they lack.
    pub fn new(name: &str, command: &str) -> Result<Self, PlanError> {
        let words = words(command).ok_or_else(|| PlanError::OpenQuote(command.to_owned()))?;
        if let Some(word) = words.iter().find(|word| word.is_of_shell()) {
            return Err(PlanError::Shell(command.to_owned(), word.text.clone()));
        }
        if let Some(parameter) = words.iter().find_map(|word| parameter(&word.unquoted)) {
            return Err(PlanError::Parameter(command.to_owned(), parameter.to_owned()));
        }
        let argv: Vec<String> = words.into_iter().map(|word| word.text).collect();
        // The name becomes a part of files' names.
        let is_name = |c: char| c.is_alphanumeric() || "_-".contains(c);
        if argv.is_empty() || name.is_empty() || !name.chars().all(is_name) {
            return Err(PlanError::NoName(format!("{name}={command}")));
        }
        if name == VERSION_KEY {
            return Err(PlanError::Reserved);
        }
        Ok(Self { name: name.to_owned(), argv })
    }
}

/// Words by which a shell joins commands and files.
const OF_SHELL: [&str; 7] = ["|", "||", "&&", "&", ">", ">>", "<"];
/// What stands behind a `$` that a shell replaces, beside names and numbers: braces, brackets, and its own parameters.
const BEHIND_DOLLAR: &str = "_{(@*#?!-$";

/// A word of a command.
#[derive(Debug, Default)]
struct CommandWord {
    text: String,
    /// The same with a NUL in the place of each character that was quoted.
    unquoted: String,
    /// Whether a shell would put something else in the place of a part of it, also between double quotes: of `$NAME`, or of a command.
    is_replaced: bool,
}

impl CommandWord {
    fn push(&mut self, c: char) {
        self.text.push(c);
        self.unquoted.push(c);
    }

    fn push_quoted(&mut self, c: char) {
        self.text.push(c);
        self.unquoted.push('\0');
    }

    /// Whether it means something to a shell alone.
    fn is_of_shell(&self) -> bool {
        let joins = OF_SHELL.contains(&self.unquoted.as_str()) || self.unquoted.starts_with("2>");
        joins || self.unquoted.contains(';') || self.is_replaced || self.is_pattern()
    }

    /// Whether a shell takes it for a pattern of files.
    fn is_pattern(&self) -> bool {
        let is_set = |(_, behind): (&str, &str)| behind.contains(']');
        self.unquoted.contains(['*', '?']) || self.unquoted.split_once('[').is_some_and(is_set)
    }
}

/// Whether a shell replaces what begins with this character, outside of single quotes.
fn is_replaced(c: char, next: Option<char>) -> bool {
    let is_begun = |next: char| next.is_ascii_alphanumeric() || BEHIND_DOLLAR.contains(next);
    c == '`' || (c == '$' && next.is_some_and(is_begun))
}

/// The name of a parameter that stands in braces, as `bench -P` replaces it.
fn parameter(text: &str) -> Option<&str> {
    let is_name = |name: &&str| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    text.split('{').skip(1).filter_map(|behind| Some(behind.split_once('}')?.0)).find(is_name)
}

/// What a backslash takes its meaning from between double quotes; before anything else it stays.
const ESCAPED_IN_QUOTES: [char; 4] = ['$', '`', '"', '\\'];

/// Words as a shell takes them, with quotes and backslashes; nothing is replaced. `None` if a quote isn't closed.
fn words(text: &str) -> Option<Vec<CommandWord>> {
    let (mut all, mut word, mut quote) = (Vec::new(), None::<CommandWord>, None);
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        if quote != Some('\'') && is_replaced(c, characters.peek().copied()) {
            word.get_or_insert_default().is_replaced = true;
        }
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => {
                word.get_or_insert_default();
                quote = Some(c);
            }
            // A line goes on behind it.
            ('\\', None | Some('"')) if characters.next_if_eq(&'\n').is_some() => {}
            ('\\', None) => word.get_or_insert_default().push_quoted(characters.next().unwrap_or(c)),
            ('\\', Some('"')) => {
                let escaped = characters.next_if(|next| ESCAPED_IN_QUOTES.contains(next));
                word.get_or_insert_default().push_quoted(escaped.unwrap_or(c));
            }
            (c, Some(_)) => word.get_or_insert_default().push_quoted(c),
            (' ' | '\t' | '\n', None) => all.extend(word.take()),
            (c, None) => word.get_or_insert_default().push(c),
        }
    }
    all.extend(word);
    quote.is_none().then_some(all)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::process::{Command, Stdio};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn commands_have_names_and_words() {
        let bench = BenchCommand::parse(r#"sort = ./sort "a b" 'c"d' e\ f """#).unwrap();
        assert_eq!(
            (bench.name.as_str(), bench.argv),
            ("sort", ["./sort", "a b", "c\"d", "e f", ""].map(str::to_owned).into())
        );
        let refused = [
            ("./work 1; ls", "'1;'"),
            ("./work $HOME", "'$HOME'"),
            ("./work \"a $HOME\"", "'a $HOME'"),
            ("./work ${HOME}/x", "'${HOME}/x'"),
            ("./work `date`", "'`date`'"),
            ("./work $(date)", "'$(date)'"),
            ("./work *.txt", "'*.txt'"),
            ("./work a?", "'a?'"),
            ("./work [ab].txt", "'[ab].txt'"),
        ];
        for (command, word) in refused {
            let said = BenchCommand::new("b", command).unwrap_err().to_string();
            assert!(said.contains(&format!("to which {word} means something: write sh -c '...'")), "{said}");
        }
        for wrong in ["./sort", "=x", "sort=", "a/b=x", "a='x", "a=\"x\\", "a=b > c", "a=b | c", "a=b 2>&1"] {
            assert!(BenchCommand::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_backslash_between_double_quotes_stays_before_most_characters() {
        let argv = |text: &str| BenchCommand::parse(text).unwrap().argv;
        assert_eq!(argv(r#"x=show.sh "a\.b" "\d+" "\$\"\\""#), ["show.sh", "a\\.b", "\\d+", "$\"\\"]);
        assert_eq!(argv("x=a\\"), ["a\\"]);
        assert_eq!(argv("x=a\\\nb \"c\\\nd\""), ["ab", "cd"]);
    }

    #[test]
    fn what_is_quoted_means_nothing() {
        for (text, expected) in [(r#"x=grep "|" f"#, "|"), (r"x=grep \> f", ">"), ("x=awk '{print}'", "{print}")] {
            assert_eq!(BenchCommand::parse(text).unwrap().argv[1], expected, "{text}");
        }
        for text in [
            r"x=sort \{n}",
            "x=sort {n'}'",
            "x=find {}",
            "x=find {a,b}",
            "x=find {1}",
            "x=find {n",
            "x=sed s/a$//",
            "x=awk '{ print $1; }' '*'",
            r"x=find . -name \*.c -exec ls \;",
            r#"x=a "\$b" "c$" "*;?""#,
            "x=[ -f a",
        ] {
            assert!(BenchCommand::parse(text).is_ok(), "{text}");
        }
        for text in ["x=sort {n}", "x=sort --size={n_2}", "x={program} 1"] {
            let said = BenchCommand::parse(text).unwrap_err().to_string();
            assert!(said.contains("perfprop bench -P"), "{said}");
        }
    }

    fn texts(text: &str) -> Option<Vec<String>> {
        Some(words(text)?.into_iter().map(|word| word.text).collect())
    }

    /// The words that a shell makes of a text; `None` where it refuses it.
    fn words_of_shell(text: &str) -> Option<Vec<String>> {
        let script = format!("printf '%s\\0' -- {text}");
        let output = Command::new("sh").arg("-c").arg(script).stderr(Stdio::null()).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        output.status.success().then(|| said.split_terminator('\0').skip(1).map(str::to_owned).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn words_are_those_of_a_shell(text in r#"[a. '"\\]{0,12}"#) {
            prop_assert_eq!(texts(&text), words_of_shell(&text));
        }
    }

    proptest! {
        #[test]
        fn words_without_quotes_are_those_between_spaces(text in "[a-z ]*") {
            let expected: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
            prop_assert_eq!(texts(&text), Some(expected));
        }
    }
}
