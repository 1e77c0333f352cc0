//! Writes text to a stream of the process or to a file.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::stat::{SFlag, fstat};
use nix::unistd::{dup2_stdout, getpgrp, tcgetpgrp};

use super::Error;
use super::input::is_dash;
use super::pager::{Pager, Paging};
use crate::files::{self, PartialFile};
use crate::text;
use crate::tui::{self, GlyphSet};

/// Where the text of a verb goes.
pub(super) struct Stream {
    name: PathBuf,
    out: Box<dyn Write>,
    is_terminal: bool,
    reader: Reader,
}

/// Who reads a stream that is a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    /// Somebody; once nobody does, there is nothing left to do.
    Needed,
    /// Somebody; once nobody does, what is measured goes on.
    Wanted,
    /// Nobody any more, as behind `head`.
    Gone,
}

impl Stream {
    /// Standard output.
    pub(super) fn stdout() -> Self {
        Self { is_terminal: io::stdout().is_terminal(), ..Self::to("standard output", io::stdout()) }
    }

    /// Standard output, or a pager that shows what is written where people look.
    pub(super) fn paged(paging: Paging) -> Self {
        match Pager::start(paging) {
            Some(pager) => Self::to("the pager", pager),
            None => Self::stdout(),
        }
    }

    /// Standard error.
    pub(super) fn stderr() -> Self {
        Self { is_terminal: io::stderr().is_terminal(), ..Self::to("standard error", io::stderr()) }
    }

    /// Nowhere.
    pub(super) fn nowhere() -> Self {
        Self::to("", io::sink())
    }

    /// A file, made anew or written behind what is in it; `-` is standard output.
    pub(super) fn file(path: &Path, append: bool) -> Result<Self, Error> {
        if is_dash(path) {
            return Ok(Self::stdout());
        }
        let failed = |source| Error::Write { path: path.into(), source };
        let file = match append {
            true => files::append(path),
            // Whoever watches it sees the text as it comes.
            false => PartialFile::create(path).and_then(|part| part.file().and_then(|file| part.put().map(|_| file))),
        };
        Ok(Self::to(path, file.map_err(failed)?))
    }

    /// Writes a text that programs read to a file, which has its name once all is written; `-` and `None` are standard
    /// output.
    pub(super) fn write_whole(path: Option<&Path>, text: &str) -> Result<(), Error> {
        let Some(path) = path.filter(|path| path.as_os_str() != "-") else { return Self::stdout().print_data(text) };
        let written = PartialFile::create(path).and_then(|mut part| {
            part.write_all(text.as_bytes())?;
            part.put()
        });
        written.map(drop).map_err(|source| Error::Write { path: path.into(), source })
    }

    fn to(name: impl Into<PathBuf>, out: impl Write + 'static) -> Self {
        Self { name: name.into(), out: Box::new(out), is_terminal: false, reader: Reader::Needed }
    }

    /// The same for a verb that measures: that the reader of a pipe leaves is no reason to end the command.
    pub(super) fn of_measurement(self) -> Self {
        Self { reader: Reader::Wanted, ..self }
    }

    /// Whether its reader left while something was measured.
    pub(super) fn is_unread(&self) -> bool {
        self.reader == Reader::Gone
    }

    /// The columns that lines have room in; any where it is no terminal.
    pub(super) fn columns(&self) -> Option<usize> {
        if self.is_terminal { tui::terminal_columns() } else { None }
    }

    /// Writes all of the text at once; on a terminal, lines that are too long for it go on below.
    pub(super) fn print_folded(&mut self, text: &str) -> Result<(), Error> {
        self.print(&text::folded(text, self.columns()))
    }

    /// Writes all of the text at once, with the glyphs of the locale.
    pub(super) fn print(&mut self, text: &str) -> Result<(), Error> {
        self.print_data(&in_locale(text))
    }

    /// Writes all of the text at once, as it is: programs read it.
    pub(super) fn print_data(&mut self, text: &str) -> Result<(), Error> {
        if self.is_unread() {
            return Ok(());
        }
        let written = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        if self.reader == Reader::Wanted && is_closed_pipe(&written) {
            self.reader = Reader::Gone;
            return Ok(());
        }
        written.map_err(|source| Error::Write { path: self.name.clone(), source })
    }
}

/// Whether writing failed because nobody reads any more.
fn is_closed_pipe(written: &io::Result<()>) -> bool {
    written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// A text without glyphs that the locale lacks.
pub(super) fn in_locale(text: &str) -> Cow<'_, str> {
    of_locale().text(text)
}

/// A message as people read it: glyphs of the locale, and what the operating system says without the number of it.
pub(super) fn message(text: &str) -> String {
    let mut words = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once(" (os error ") {
        let end = behind.find(|c: char| !c.is_ascii_digit()).filter(|&end| end > 0 && behind[end..].starts_with(')'));
        words.push_str(before);
        rest = if let Some(end) = end {
            &behind[end + 1..]
        } else {
            words.push_str(" (os error ");
            behind
        };
    }
    in_locale(&(words + rest)).into_owned()
}

/// The glyphs that the locale has.
pub(super) fn of_locale() -> GlyphSet {
    static GLYPHS: LazyLock<GlyphSet> = LazyLock::new(|| {
        let [lc_all, lc_ctype, lang] = ["LC_ALL", "LC_CTYPE", "LANG"].map(|name| std::env::var(name).ok());
        GlyphSet::of_locale(lc_all.as_deref(), lc_ctype.as_deref(), lang.as_deref())
    });
    *GLYPHS
}

/// Whether messages that are no errors are wanted.
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// Whether only errors are said.
pub(super) fn is_quiet() -> bool {
    IS_QUIET.load(Ordering::Relaxed)
}

/// From now on only errors are said.
pub(super) fn hush() {
    IS_QUIET.store(true, Ordering::Relaxed);
}

/// A text below another one, with a blank line between them; nothing of an empty text.
pub(super) fn after_blank(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("\n{text}") }
}

/// Says something that isn't a result, such as which events were chosen.
pub(super) fn say(text: &str) {
    if is_quiet() {
        return;
    }
    let (first, rest) = text.split_at(text.find('\n').unwrap_or(text.len()));
    let first = match Stream::stderr().columns() {
        Some(columns) => text::wrapped_message(first, PREFIX.len(), columns),
        None => first.to_owned(),
    };
    // Nothing can report that standard error is closed.
    let _ = writeln!(io::stderr(), "{PREFIX}{}", message(&format!("{first}{rest}")));
}

/// What messages begin with.
const PREFIX: &str = "perfprop: ";

/// Whether people look at standard output and can press keys while this file is read: where it is standard input, keys
/// come from the terminal all the same.
pub(super) fn has_keys(file: &Path) -> bool {
    let is_piped = || is_dash(file) && File::open("/dev/tty").is_ok();
    has_terminal() || (io::stdout().is_terminal() && is_piped())
}

/// Whether people look at standard output and can press keys.
pub(super) fn has_terminal() -> bool {
    io::stdout().is_terminal() && io::stdin().is_terminal()
}

/// The same where standard input may be a command's: where that is a file or a pipe, keys come from the terminal.
pub(super) fn has_terminal_beside_input() -> bool {
    has_terminal() || (io::stdout().is_terminal() && is_data(io::stdin()) && File::open("/dev/tty").is_ok())
}

/// Makes the terminal standard output where that is a file, and returns the file: `top -- sort words > sorted` has
/// screens, and what the command prints goes to the file. `None` where there is no terminal, where a pipe may lead back
/// to it, and where nobody is at the keys: in the background, and where standard input is `/dev/null`.
pub(super) fn terminal_beside_output() -> Option<File> {
    let output = io::stdout();
    let kind = fstat(&output).map_or(SFlag::empty(), |stat| SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT);
    if output.is_terminal() || ![SFlag::S_IFREG, SFlag::S_IFCHR].contains(&kind) || !io::stderr().is_terminal() {
        return None;
    }
    if !io::stdin().is_terminal() && !is_data(io::stdin()) {
        return None;
    }
    let terminal = File::options().read(true).write(true).open("/dev/tty").ok()?;
    // Drawing would stop a job in the background.
    if tcgetpgrp(&terminal) != Ok(getpgrp()) {
        return None;
    }
    let file = File::from(output.as_fd().try_clone_to_owned().ok()?);
    dup2_stdout(&terminal).ok()?;
    Some(file)
}

/// Whether something to read comes from there: a file or a pipe, not `/dev/null`.
fn is_data(input: impl AsFd) -> bool {
    let kind = fstat(input).map_or(SFlag::empty(), |stat| SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT);
    [SFlag::S_IFREG, SFlag::S_IFIFO, SFlag::S_IFSOCK].contains(&kind)
}
