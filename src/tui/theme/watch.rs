//! Watches a theme's file, and loads it again whenever it has changed.

use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use super::{Depth, Theme};
use crate::tui::complaint::Complaint;

/// A theme's file, and when it was written last.
#[derive(Debug)]
pub(in crate::tui) struct ThemeWatch {
    path: PathBuf,
    written: Option<SystemTime>,
}

impl ThemeWatch {
    pub(in crate::tui) fn new(path: PathBuf) -> Self {
        let written = written(&path);
        Self { path, written }
    }

    /// The theme, if its file was written since it was last asked for. An editor may take the file
    /// away for a moment: then nothing has changed yet.
    pub(in crate::tui) fn read_again(&mut self, depth: Depth) -> Option<(Theme, Vec<Complaint>)> {
        let now = written(&self.path).filter(|now| Some(*now) != self.written)?;
        self.written = Some(now);
        Theme::load(&self.path, depth).ok()
    }
}

fn written(path: &PathBuf) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::time::Duration;

    use ratatui::style::Color;

    use super::*;
    use crate::tui::Role;

    #[test]
    fn a_changed_file_is_read_once() {
        let path = std::env::temp_dir().join(format!("perfprop-watched-{}.toml", std::process::id()));
        fs::write(&path, "[state]\nwarn = \"red\"\n").unwrap();
        let mut watched = ThemeWatch::new(path.clone());
        assert!(watched.read_again(Depth::TrueColor).is_none());
        fs::write(&path, "[state]\nwarn = \"blue\"\n").unwrap();
        let later = SystemTime::now() + Duration::from_secs(5);
        fs::File::open(&path).unwrap().set_modified(later).unwrap();
        let (theme, complaints) = watched.read_again(Depth::TrueColor).unwrap();
        assert_eq!((theme.style(Role::Warn).fg, complaints.len()), (Some(Color::Blue), 0));
        assert!(watched.read_again(Depth::TrueColor).is_none());
        fs::remove_file(&path).unwrap();
        assert!(watched.read_again(Depth::TrueColor).is_none());
    }
}
