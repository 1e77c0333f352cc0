//! Says why a site can't be written.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::folder::MANIFEST;
use crate::names::{shown, shown_path};

/// Why a site can't be written.
#[derive(Debug)]
pub enum SiteError {
    /// There is nothing to show.
    Empty,
    /// There is a file, and no folder.
    NoFolder(PathBuf),
    /// The folder holds files, but no site of perfprop's.
    NoSite(PathBuf),
    /// A file or folder that perfprop didn't make has a name that the site needs.
    Foreign(PathBuf),
    /// The list of a site's files isn't one.
    Manifest(PathBuf, String),
    /// A file can't be read or written.
    System(PathBuf, io::Error),
}

impl fmt::Display for SiteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str(
                "there is nothing to publish: no result is of a commit that leads to --tip; measure commits with perfprop history run",
            ),
            Self::NoFolder(path) => {
                write!(f, "'{}' is a file: a site is a folder of files, name a new one, or an empty one", shown_path(path))
            }
            Self::NoSite(path) => write!(
                f,
                "'{}' holds files, but no site of perfprop's (it has no {MANIFEST}): name a new folder, or an empty one",
                shown_path(path)
            ),
            Self::Foreign(path) => write!(
                f,
                "'{}' was not written by perfprop, and the site needs its name: move it away, or name another folder",
                shown_path(path)
            ),
            Self::Manifest(path, error) => write!(
                f,
                "'{}' doesn't list the files of a site ({}): remove the folder, or name another one",
                shown_path(path),
                shown(error)
            ),
            Self::System(path, error) => write!(f, "'{}': {error}", shown_path(path)),
        }
    }
}

impl std::error::Error for SiteError {}
