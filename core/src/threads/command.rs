//! Names threads and processes in lists, with the command lines of processes.

use super::ThreadReading;
use crate::names::shown;

/// A thread's name and the rest of its command line, safe to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandWords {
    /// The name of the thread or the program.
    pub name: String,
    /// What stands behind it; empty, or with a blank at its beginning.
    pub rest: String,
}

impl CommandWords {
    /// The kernel cuts names to 15 bytes; the command line has the whole one, unless the program is called otherwise.
    pub fn of(thread: &ThreadReading) -> Self {
        if thread.is_defunct() {
            return Self { name: format!("{} <defunct>", shown(&thread.name)), rest: String::new() };
        }
        let command = thread.process.as_ref().map_or("", |process| &process.command);
        let program = command.split(' ').next().unwrap_or_default();
        let file = program.rsplit('/').next().unwrap_or_default().trim_start_matches('-');
        // Others add what the process is to the program's name: `tmux: server`.
        let role = thread.name.strip_prefix(file).filter(|role| !file.is_empty() && role.starts_with(':'));
        let (name, rest) = match role.is_some() || file.starts_with(&thread.name) {
            true => (file, command[program.len()..].to_owned()),
            false if command.is_empty() => (thread.name.as_str(), String::new()),
            false => (thread.name.as_str(), format!(" ({command})")),
        };
        // A script in the command line stays on one line.
        let rest = rest.replace(['\n', '\r', '\t'], " ");
        Self { name: shown(name).into_owned(), rest: shown(&rest).into_owned() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::ProcessDetails;
    use super::*;

    #[test]
    fn a_process_is_named_by_its_command_line_and_by_what_it_calls_itself() {
        let words = |name: &str, command: &str| {
            let process = Some(Arc::new(ProcessDetails { command: command.into(), ..ProcessDetails::default() }));
            let CommandWords { name, rest } =
                CommandWords::of(&ThreadReading { name: name.into(), process, ..ThreadReading::default() });
            name + &rest
        };
        assert_eq!(words("a-long-program-", "/usr/bin/a-long-program-name -v"), "a-long-program-name -v");
        assert_eq!(words("tmux: server", "tmux new-session -d"), "tmux new-session -d");
        assert_eq!(words("nginx", "nginx: worker process"), "nginx: worker process");
        assert_eq!(
            words("Web Content", "/usr/lib/firefox -contentproc"),
            "Web Content (/usr/lib/firefox -contentproc)"
        );
        assert_eq!(words("kthreadd", ""), "kthreadd");
        assert_eq!(words("sh", "sh -c \nif a\n\tb\u{1b}"), "sh -c  if a  b\\x1b");
    }
}
