//! Prints the words that a shell completes: events, metrics, themes, processes.

use std::fmt::Write;

use clap::{Args, ValueEnum};

use super::stream::Stream;
use super::{Error, appearance};
use crate::host::HostFiles;
use crate::measure::{metrics, resolver};
use crate::names::shown;

/// The arguments of the hidden verb that completion scripts ask.
#[derive(Debug, Args)]
pub(super) struct WordsArgs {
    /// Which words
    kind: WordKind,
}

/// What words are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WordKind {
    Metrics,
    Themes,
    /// Ids of processes, each with a tabulator and its name
    Processes,
}

/// Prints a word a line.
pub(super) fn run(args: &WordsArgs) -> Result<u8, Error> {
    let words = match args.kind {
        WordKind::Metrics => metrics_by_name()?,
        WordKind::Themes => ["auto".to_owned()].into_iter().chain(appearance::theme_names()).collect(),
        WordKind::Processes => processes(&HostFiles::here()),
    };
    let text = words.iter().fold(String::new(), |mut text, word| {
        let _ = writeln!(text, "{word}");
        text
    });
    Stream::stdout().print(&text)?;
    Ok(0)
}

fn metrics_by_name() -> Result<Vec<String>, Error> {
    let resolver = resolver(None)?;
    let catalog = metrics::catalog(&[], resolver.tables(), &mut |_| ())?;
    Ok(catalog.metrics().iter().map(|metric| shown(&metric.name).into_owned()).collect())
}

/// `4711<TAB>sqlite3` for each process that isn't the kernel's own.
fn processes(host: &HostFiles) -> Vec<String> {
    let entries = std::fs::read_dir(host.path("proc")).into_iter().flatten();
    let mut ids: Vec<u32> = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    ids.sort_unstable();
    let line = |id: u32| {
        let command = host.text(&format!("proc/{id}/cmdline")).filter(|command| !command.is_empty())?;
        let name = host.text(&format!("proc/{id}/comm")).unwrap_or(command);
        Some(format!("{id}\t{}", shown(name.trim())))
    };
    ids.into_iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::fs;

    use super::*;

    #[test]
    fn processes_are_listed_with_names_that_are_safe_to_show() {
        let root = std::env::temp_dir().join(format!("perfprop-words-{}", std::process::id()));
        for (path, text) in [
            ("12/cmdline", "a\0"),
            ("12/comm", "evil\u{1b}[2J\n"),
            ("2/cmdline", ""),
            ("2/comm", "kthreadd\n"),
            ("9/cmdline", "b\0c\0"),
            ("9/comm", "b\n"),
            ("self/comm", "x\n"),
        ] {
            let path = root.join("proc").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let words = processes(&HostFiles::under(&root));
        fs::remove_dir_all(root).unwrap();
        assert!(words[0] == "9\tb" && words[1].starts_with("12\tevil") && words.len() == 2, "{words:?}");
        assert!(!words[1].contains('\u{1b}'));
    }
}
