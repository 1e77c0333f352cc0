//! Finds out whether a command can be executed, before anything is started.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::Error;
use crate::files::{self, ExpectedFile};
use crate::names::nearest;
use crate::session::find_command;
use crate::sources::process;

/// Finds out before anything is started what exec would say.
///
/// # Errors
/// [`Error::Command`] when there is no such command or it can't be executed.
pub fn check_command(command: &OsString) -> Result<(), Error> {
    let kind = match find_command(command) {
        Some(path) if path.is_dir() => io::ErrorKind::IsADirectory,
        Some(path) if path.exists() && !process::is_executable(&path) => io::ErrorKind::PermissionDenied,
        Some(path) if path.exists() => return Ok(()),
        Some(_) | None => io::ErrorKind::NotFound,
    };
    let similar = if kind == io::ErrorKind::NotFound { similar_command(command) } else { None };
    Err(Error::Command { command: command.clone(), source: kind.into(), similar })
}

/// The longest first line of a script that the kernel reads.
const LONGEST_FIRST_LINE: u64 = 256;

/// The interpreter that the first line of a script names, where there is no such file.
pub(super) fn missing_interpreter(command: &OsString) -> Option<String> {
    let script = files::open(&find_command(command)?, &ExpectedFile::any(u64::MAX)).ok()?;
    let mut line = Vec::new();
    script.take(LONGEST_FIRST_LINE).read_to_end(&mut line).ok()?;
    let line = line.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let interpreter = String::from_utf8_lossy(line).split_whitespace().next()?.to_owned();
    (!Path::new(&interpreter).exists()).then_some(interpreter)
}

/// A program beside the one that isn't there, or in the same folder, with nearly its name.
fn similar_command(command: &OsString) -> Option<String> {
    let path = Path::new(command);
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let folders = match parent {
        Some(parent) => vec![parent.to_owned()],
        None => process::command_folders().into_iter().chain([PathBuf::from(".")]).collect(),
    };
    let entries = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let programs = entries.filter(|entry| process::is_executable(&entry.path()));
    let names: Vec<_> = programs.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let name = path.file_name()?.to_str()?;
    let nearest = *nearest(name, names.iter().map(String::as_str)).first()?;
    let full = parent.map_or_else(|| PathBuf::from(nearest), |parent| parent.join(nearest));
    let in_this_folder = parent.is_none() && find_command(&nearest.into()).is_none();
    Some(if in_this_folder { format!("./{nearest}") } else { full.display().to_string() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    #[test]
    fn a_script_names_the_interpreter_that_it_lacks() {
        let path = std::env::temp_dir().join(format!("perfprop-script-{}", std::process::id()));
        let missing = |text: &str| {
            std::fs::write(&path, text).unwrap();
            missing_interpreter(&path.clone().into())
        };
        assert_eq!(missing("#!/nonexistent/int -x\necho\n"), Some("/nonexistent/int".to_owned()));
        assert_eq!(missing("#! /nonexistent/int"), Some("/nonexistent/int".to_owned()));
        assert_eq!(["#!/bin/sh\n", "echo\n", "#!\n", ""].map(missing), [None, None, None, None]);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(missing_interpreter(&path.into()), None);
    }
}
