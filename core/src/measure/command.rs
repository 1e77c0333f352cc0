//! Finds out whether a command can be executed, before anything is started.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use super::Error;
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

/// A program beside the one that isn't there, or in the same folder, with nearly its name.
fn similar_command(command: &OsString) -> Option<String> {
    let path = Path::new(command);
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let folders = match parent {
        Some(parent) => vec![parent.to_owned()],
        None => std::env::split_paths(&std::env::var_os("PATH")?).chain([PathBuf::from(".")]).collect(),
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
