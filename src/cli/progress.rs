//! Shows how far long work has come, and how long it still takes, in a line of the terminal that is written over.

use std::env;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::time::{Duration, Instant};

use super::stream::{in_locale, is_quiet};
use crate::sources::Round;
use crate::tui::{cut, terminal_columns};

/// Work that takes less than this shows nothing.
const LEAST: Duration = Duration::from_millis(500);
/// The line is written anew after so long.
const PAUSE: Duration = Duration::from_millis(100);
/// Columns of a terminal that doesn't say how many it has.
const COLUMNS: usize = 80;

/// Where a line of progress goes, and by which clock.
pub(super) struct ProgressLine {
    /// Time since the work began.
    clock: Box<dyn FnMut() -> Duration>,
    /// `None` where nobody looks.
    out: Option<Box<dyn Write>>,
    /// The columns of the terminal, if it says how many it has.
    columns: fn() -> Option<usize>,
    drawn_at: Option<Duration>,
}

impl ProgressLine {
    /// A line on standard error, if that is a terminal that can write over a line.
    pub(super) fn new() -> Self {
        let is_wanted =
            io::stderr().is_terminal() && !is_quiet() && env::var_os("TERM").is_none_or(|term| term != "dumb");
        let start = Instant::now();
        let out = is_wanted.then(|| Box::new(io::stderr()) as Box<dyn Write>);
        Self::on(Box::new(move || start.elapsed()), out, terminal_columns)
    }

    fn on(clock: Box<dyn FnMut() -> Duration>, out: Option<Box<dyn Write>>, columns: fn() -> Option<usize>) -> Self {
        Self { clock, out, columns, drawn_at: None }
    }

    /// Says that so much of the work is done: `reading x.jsonl: 43%, 12 s left`.
    pub(super) fn part(&mut self, what: &str, done: u64, of: u64) {
        let share = if of == 0 { 1.0 } else { done as f64 / of as f64 };
        self.show(|elapsed| format!("{what}: {:.0}%{}", 100.0 * share.min(1.0), left(elapsed, done, of)));
    }

    /// Says how many of so many there are: `run 3 of 20, 12 s left`.
    pub(super) fn number(&mut self, what: &str, done: u64, of: u64) {
        self.show(|elapsed| format!("{what} {done} of {of}{}", left(elapsed, done, of)));
    }

    /// Says which of so many is being done: `sort: run 3 of 20, 12 s left`. Those before it say how long the rest
    /// takes.
    #[cfg(feature = "history")]
    pub(super) fn current(&mut self, what: &str, done: u64, of: u64) {
        self.show(|elapsed| format!("{what} {} of {of}{}", done + 1, left(elapsed, done, of)));
    }

    /// Says what is being done, where nobody knows how long that takes.
    pub(super) fn say(&mut self, text: &str) {
        self.show(|_| text.to_owned());
    }

    /// Says at once what is being done.
    pub(super) fn step(&mut self, text: &str) {
        self.drawn_at = None;
        self.draw(Duration::ZERO, text);
    }

    fn show(&mut self, text: impl FnOnce(Duration) -> String) {
        if self.out.is_none() {
            return;
        }
        let now = (self.clock)();
        if now >= self.drawn_at.map_or(LEAST, |drawn_at| drawn_at + PAUSE) {
            self.draw(now, &text(now));
        }
    }

    fn draw(&mut self, now: Duration, text: &str) {
        let Some(out) = &mut self.out else { return };
        self.drawn_at = Some(now);
        // A line that wraps couldn't be written over; the cursor stands behind it.
        let columns = (self.columns)().unwrap_or(COLUMNS).saturating_sub(1);
        // Nothing can report that standard error is closed.
        let _ = write!(out, "\r\x1b[K{}", in_locale(&cut(text, columns))).and_then(|()| out.flush());
    }

    /// Takes the line away, so that other text has its place.
    pub(super) fn clear(&mut self) {
        if let (Some(out), Some(_)) = (&mut self.out, self.drawn_at.take()) {
            let _ = write!(out, "\r\x1b[K").and_then(|()| out.flush());
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.clear();
    }
}

/// `, 12 s left`, if the rest is as fast as what is done; nothing before anything is done.
fn left(elapsed: Duration, done: u64, of: u64) -> String {
    if done == 0 || done >= of {
        return String::new();
    }
    let seconds = (elapsed.as_secs_f64() * (of - done) as f64 / done as f64).ceil() as u64;
    match seconds {
        0..120 => format!(", {seconds} s left"),
        120..7200 => format!(", {} min left", seconds.div_ceil(60)),
        _ => format!(", {} h {} min left", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Reads a file, and shows how much of it was read.
pub(super) struct ProgressReader<R> {
    input: R,
    what: String,
    done: u64,
    /// Its length; 0 where that isn't known.
    of: u64,
    line: ProgressLine,
}

impl ProgressReader<File> {
    /// Reads a file of this name.
    pub(super) fn of_file(file: File, name: &str) -> Self {
        let of = file.metadata().map_or(0, |facts| if facts.is_file() { facts.len() } else { 0 });
        Self::new(file, name, of)
    }
}

impl<R: Read> ProgressReader<R> {
    /// Reads what has so many bytes, or nobody knows how many.
    pub(super) fn new(input: R, name: &str, of: u64) -> Self {
        Self { input, what: format!("reading {name}"), done: 0, of, line: ProgressLine::new() }
    }
}

impl<R: Read> Read for ProgressReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.done += read as u64;
        match (read, self.of) {
            (0, _) => self.line.clear(),
            (_, 0) => self.line.say(&format!("{}: {} MB", self.what, self.done / 1_000_000)),
            (_, of) => self.line.part(&self.what, self.done, of),
        }
        Ok(read)
    }
}

/// Says now and then, in whole lines, that a command still runs under a model: nobody knows how long it takes, and the
/// command may write to the same terminal.
pub(super) struct SlowRun {
    next: Duration,
    start: Instant,
    is_shown: bool,
}

impl SlowRun {
    pub(super) fn new(is_modelled: bool) -> Self {
        let is_shown = is_modelled && io::stderr().is_terminal() && !is_quiet();
        Self { next: Self::FIRST, start: Instant::now(), is_shown }
    }

    /// When it is first said; then each time after twice as long.
    const FIRST: Duration = Duration::from_secs(5);

    /// What is to be said now: nothing mostly. `instructions` were executed so far.
    pub(super) fn note(&mut self, instructions: f64) -> Option<String> {
        if self.is_shown { self.note_at(self.start.elapsed(), instructions) } else { None }
    }

    fn note_at(&mut self, elapsed: Duration, instructions: f64) -> Option<String> {
        if elapsed < self.next {
            return None;
        }
        self.next = elapsed * 2;
        let done = crate::number::si(instructions);
        Some(format!("the command has run under the model for {} s: {done} instructions", elapsed.as_secs()))
    }
}

/// The instructions that a model has executed: they are its time.
pub(super) fn instructions_of(round: &Round) -> f64 {
    let readings = round.readings.iter().flatten();
    readings.map(|reading| reading.enabled.0).max().unwrap_or(0) as f64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::cell::{Cell, RefCell};
    use std::rc::Rc;

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Rc<RefCell<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Written {
        fn take(&self) -> String {
            String::from_utf8(std::mem::take(&mut self.0.borrow_mut())).unwrap()
        }
    }

    /// A line, its clock in milliseconds, and what it writes.
    fn line() -> (ProgressLine, Rc<Cell<u64>>, Written) {
        let (now, written) = (Rc::new(Cell::new(0)), Written::default());
        let clock = Rc::clone(&now);
        let clock = move || Duration::from_millis(clock.get());
        (ProgressLine::on(Box::new(clock), Some(Box::new(written.clone())), || None), now, written)
    }

    #[test]
    fn work_that_takes_long_shows_how_long() {
        let (mut line, now, written) = line();
        for (at, done, shown) in [
            (0, 0, ""),
            // Short work shows nothing.
            (499, 10, ""),
            // A quarter took a second: three are left.
            (1000, 25, "\r\x1b[Kreading x: 25%, 3 s left"),
            // Not ten times a moment.
            (1099, 26, ""),
            (1100, 50, "\r\x1b[Kreading x: 50%, 2 s left"),
            (2000, 100, "\r\x1b[Kreading x: 100%"),
        ] {
            now.set(at);
            line.part("reading x", done, 100);
            assert_eq!(written.take(), shown, "at {at} ms");
        }
        drop(line);
        assert_eq!(written.take(), "\r\x1b[K");
    }

    #[test]
    fn what_is_being_done_is_counted_from_one() {
        let (mut line, now, written) = line();
        for (at, done, shown) in [(600, 0, "\r\x1b[Ksort: run 1 of 3"), (1000, 1, "\r\x1b[Ksort: run 2 of 3, 2 s left")]
        {
            now.set(at);
            line.current("sort: run", done, 3);
            assert_eq!(written.take(), shown);
        }
    }

    #[test]
    fn what_was_not_shown_is_not_taken_away() {
        let (mut line, _, written) = line();
        line.part("reading x", 1, 2);
        line.clear();
        drop(line);
        assert_eq!(written.take(), "");
    }

    #[test]
    fn a_clock_that_jumps_and_a_file_that_grows_do_no_harm() {
        let (mut line, now, written) = line();
        now.set(5000);
        line.part("reading x", 300, 200);
        assert_eq!(written.take(), "\r\x1b[Kreading x: 100%");
        now.set(100);
        line.part("reading x", 1, 0);
        assert_eq!(written.take(), "");
        now.set(9000);
        line.say(&"x".repeat(500));
        assert_eq!(written.take(), format!("\r\x1b[K{}…", "x".repeat(COLUMNS - 2)));
    }

    #[test]
    fn a_line_never_wraps() {
        let (mut line, now, written) = line();
        line.columns = || Some(10);
        now.set(5000);
        line.say("日本語の長い名前");
        assert_eq!(written.take(), "\r\x1b[K日本語の…");
    }

    #[test]
    fn times_that_are_left_by_hand() {
        let after = |seconds: u64, done, of| left(Duration::from_secs(seconds), done, of);
        assert_eq!([after(10, 1, 2), after(10, 1, 100)], [", 10 s left", ", 17 min left"]);
        assert_eq!(after(100, 1, 100), ", 2 h 45 min left");
        assert_eq!([after(10, 0, 100), after(10, 5, 5)], ["", ""]);
    }

    #[test]
    fn a_reader_reads_what_there_is() {
        let mut read = Vec::new();
        ProgressReader::new(&b"perfprop"[..], "x", 8).read_to_end(&mut read).unwrap();
        assert_eq!(read, b"perfprop");
    }

    #[test]
    fn a_slow_run_is_told_less_and_less_often() {
        let mut run = SlowRun { next: SlowRun::FIRST, start: Instant::now(), is_shown: true };
        let mut told = |second| run.note_at(Duration::from_secs(second), 2.5e9).is_some();
        let seconds: Vec<u64> = (0..100).filter(|&second| told(second)).collect();
        assert_eq!(seconds, [5, 10, 20, 40, 80]);
    }
}
