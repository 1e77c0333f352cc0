//! Runs a command under valgrind's model, and reads rounds of what the model has counted.
//!
//! callgrind runs the program on a simulated machine with two levels of caches and a branch predictor.
//! Every 500,000 basic blocks, and when a process ends, forks or executes another program, it writes
//! what was counted since it last did; such a part is added up and deleted at once:
//!
//! ```text
//! process 7   ├─────────┬─────────┬──┤fork           ├────────┬──┤exit
//!                   7.1 ┘     7.2 ┘  └ 7.3           7.4      ┘  └ 7
//! process 8                          ├─┤exec  ├─────────┬────────┤exit
//!                                  8.1 ┘            8.1 ┘        └ 8
//! ```
//!
//! A process starts at nothing when it is forked, because the costs of its parent are written just
//! before; so no instruction counts twice, and none is lost when a process executes another program.
//! Time is counted in instructions: one is a nanosecond of `enabled`, all of it `running`.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};
use nix::unistd::Pid;

use super::perf::CounterRow;
use super::{CounterSource, Next, Reading, Round, Scope, Status};
use crate::events::emulate::Formula;
use crate::files::{self, ExpectedFile};
use crate::host::HostFiles;
use crate::names::shown_path;
use crate::plan::{EventIndex, Member, Plan, RowIndex};
use crate::units::{CpuNs, WallNs};

mod costs;
mod model;

pub use costs::Costs;
pub use model::{Cache, CacheModel};

/// How often parts are looked for, so that few of them lie on the disk and none is overwritten: a process
/// that executes another program numbers its parts anew, and valgrind takes longer than this to start it.
const BEAT: Duration = Duration::from_millis(50);

/// Basic blocks between parts: some 2.5 million instructions, which count as 2.5 ms, near the slices of real counters;
/// a thirtieth of a second of a program under the model.
const PART: u32 = 500_000;

/// How long valgrind may take to say what it models.
const START: Duration = Duration::from_secs(10);

/// The head of an output file with its summary; a command line is the longest part.
const HEAD: u64 = 4 << 20;

/// The longest part that is read whole, in bytes.
const LONGEST_PART: u64 = 1 << 30;

/// Functions before which the costs are written: what a child copies of its parent, and what a process
/// did before it became another, is then in a file.
const BOUNDARIES: [&str; 8] =
    ["_Fork", "fork", "__fork", "__libc_fork", "*vfork", "posix_spawn*", "execve*", "fexecve"];

const LOG: &str = "log.";
const OUTPUT: &str = "costs.";

/// valgrind, and a folder for what it writes.
#[derive(Debug)]
pub struct Emulator {
    valgrind: PathBuf,
    folder: Scratch,
    model: CacheModel,
    /// Whether processes that the command starts are counted too.
    inherit: bool,
    /// Who wants the parts themselves.
    parts: Option<Sender<ProgramPart>>,
}

/// A part of a program's costs as callgrind wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramPart {
    /// Id of the process.
    pub pid: i32,
    /// The text of the file; its end is missing where the process was killed as it was written.
    pub text: String,
}

/// A folder that goes when it is dropped, or once none of the command's processes uses it any more; and when perfprop
/// is killed.
#[derive(Debug)]
struct Scratch {
    path: PathBuf,
    /// A shell that waits for the end of its input, which only perfprop holds open.
    guardian: Option<Child>,
    /// Whether it is left to that shell.
    is_left: bool,
}

/// What is left when perfprop is killed, or when the command ends before what it started: a program that goes on under
/// the model, and writes. Its parts are deleted every second while any of its processes lives, which their logs tell,
/// and the folder at last. One that was just started has no log yet.
const GUARDIAN: &str = r#"read -r _
cd / || exit
sleep 1
while [ -d "$1" ]; do
  rm -f "$1"/costs.*
  alive=
  for log in "$1"/log.*; do kill -0 "${log##*.}" 2>/dev/null && alive=1; done
  [ "$alive" ] || break
  sleep 1
done
rm -rf "$1""#;

/// Where a shell finds what is the system's, whatever the user's `PATH` says.
const SYSTEM_PATH: &str = "/usr/bin:/bin";

impl Scratch {
    fn new() -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("perfprop-emulate-{}-{number}", process::id()));
        DirBuilder::new().mode(0o700).create(&path).map_err(|error| {
            let what =
                format!("cannot make the folder {} for the model, whose place TMPDIR sets: {error}", shown_path(&path));
            io::Error::new(error.kind(), what)
        })?;
        // A group of its own: the keys of the terminal are not for it. Without a shell nothing is guarded.
        let mut shell = Command::new("/bin/sh");
        shell.env("PATH", SYSTEM_PATH);
        shell.args(["-c", GUARDIAN, "perfprop-guardian"]).arg(&path).process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self { path, guardian: shell.spawn().ok(), is_left: false })
    }
}

impl Scratch {
    /// Whether a process runs under a model that writes there, also one that has no log yet: its command line has the
    /// folder.
    fn is_used(&self) -> bool {
        use std::os::unix::ffi::OsStrExt;
        let folder = [self.path.as_os_str().as_bytes(), b"/"].concat();
        let has_it = |text: Vec<u8>| text.windows(folder.len()).any(|part| part == folder);
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        processes.map(|process| fs::read(process.path().join("cmdline"))).any(|line| line.is_ok_and(has_it))
    }

    /// Leaves it to the guardian.
    fn leave(&mut self) {
        // The end of its input.
        if let Some(guardian) = &mut self.guardian {
            guardian.stdin = None;
            self.is_left = true;
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.is_left {
            return;
        }
        // What can't be deleted is in the folder of temporary files.
        let _ = fs::remove_dir_all(&self.path);
        if let Some(guardian) = &mut self.guardian {
            // Its input may still be open in a command that waits before exec.
            let _ = guardian.kill();
            let _ = guardian.wait();
        }
    }
}

impl Emulator {
    /// Makes everything ready for a command.
    ///
    /// # Errors
    /// Returns the operating system's error if no folder for temporary files can be made.
    pub fn new(valgrind: PathBuf, model: &CacheModel, inherit: bool) -> io::Result<Self> {
        Ok(Self {
            valgrind,
            folder: Scratch::new()?,
            model: model.clone().or_of(&HostFiles::here()),
            inherit,
            parts: None,
        })
    }

    /// Hands on all parts, for who wants more than sums; the channel ends with the source.
    pub fn parts(&mut self) -> Receiver<ProgramPart> {
        // Unbounded: parts are few, and what takes them is faster than what writes them.
        let (sender, parts) = unbounded();
        self.parts = Some(sender);
        parts
    }

    /// The command line that runs a command under the model. The environment stays as it is: callgrind
    /// counts differently where it is longer.
    pub fn command_line(&self, argv: &[OsString]) -> Vec<OsString> {
        let path = |name: &str| self.folder.path.join(name).into_os_string();
        let with_path = |option: &str, name: &str| {
            let mut text = OsString::from(option);
            text.push(path(name));
            text
        };
        let children = if self.inherit { "yes" } else { "no" };
        let mut line = vec![self.valgrind.clone().into_os_string()];
        // Options of the environment and of files would change the model behind our back.
        let fixed = "--command-line-only=yes -v -v --tool=callgrind --cache-sim=yes --branch-sim=yes";
        line.extend(fixed.split(' ').map(OsString::from));
        line.push(format!("--trace-children={children}").into());
        line.push(format!("--dump-every-bb={PART}").into());
        line.push(with_path("--log-file=", "log.%p"));
        line.push(with_path("--callgrind-out-file=", "costs.%p"));
        line.extend(BOUNDARIES.map(|function| format!("--dump-before={function}").into()));
        line.extend(self.model.options().map(OsString::from));
        line.extend(argv.iter().cloned());
        line
    }

    /// Where valgrind will say what it models for the command, which is process `pid`.
    pub fn model_log(&self, pid: Pid) -> ModelLog {
        ModelLog { log: self.folder.path.join(format!("{LOG}{pid}")), pid, asked: self.model.clone() }
    }

    /// The counters of the command, which waits before exec or runs already, as process `pid`.
    pub fn source(self, plan: &Plan, pid: Pid) -> Emulated {
        let row = |(event, formula): (usize, &Option<Formula>)| CounterRow {
            member: Member::Event(EventIndex(event)),
            scope: Scope::All,
            units: Vec::new(),
            not_inherited: None,
            status: if formula.is_some() { Status::Counted } else { Status::NotSupported },
        };
        let formulas: Vec<_> = plan.events.iter().map(Formula::of).collect();
        Emulated {
            rows: formulas.iter().enumerate().map(row).collect(),
            formulas,
            root: pid,
            inherit: self.inherit,
            folder: self.folder,
            parts: self.parts,
            total: Costs::default(),
            has_last_part: false,
            before: Some(Costs::default()),
            started: Instant::now(),
        }
    }
}

/// Where valgrind says what it models.
#[derive(Debug)]
pub struct ModelLog {
    log: PathBuf,
    pid: Pid,
    asked: CacheModel,
}

impl ModelLog {
    /// Waits until valgrind has said it, and gives that; what it was asked for if it doesn't.
    pub fn model(self) -> CacheModel {
        let begun = Instant::now();
        loop {
            if let Some(model) = head(&self.log, HEAD).and_then(|text| CacheModel::from_log(&text)) {
                return model;
            }
            if begun.elapsed() > START || !super::process::is_alive(self.pid) {
                return self.asked;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}

/// The running model of a command and all that it starts.
#[derive(Debug)]
pub struct Emulated {
    rows: Vec<CounterRow>,
    formulas: Vec<Option<Formula>>,
    root: Pid,
    inherit: bool,
    folder: Scratch,
    parts: Option<Sender<ProgramPart>>,
    /// Sum of all parts so far.
    total: Costs,
    /// Whether the command's last part is among them.
    has_last_part: bool,
    /// The costs when counting began; `None` before.
    before: Option<Costs>,
    started: Instant,
}

impl Emulated {
    /// Every row, with whether it is counted.
    pub fn rows(&self) -> &[CounterRow] {
        &self.rows
    }

    /// Begins to count only when the source is [enabled](CounterSource::enable).
    pub fn wait_for_enable(&mut self) {
        self.before = None;
    }

    /// Adds up and deletes what was written.
    fn collect(&mut self) {
        let Ok(entries) = fs::read_dir(&self.folder.path) else { return };
        for name in entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()) {
            if let Some((pid, number)) = part(&name) {
                self.take_part(pid, number, &name);
            }
        }
    }

    fn take_part(&mut self, pid: i32, number: Option<u32>, name: &str) {
        let path = self.folder.path.join(name);
        // Its summary stands at its beginning; what callgrind still writes behind it goes nowhere.
        let Some(text) = self.text_of(&path, pid) else { return };
        let Some(costs) = costs::summary(&text) else { return };
        let _ = fs::remove_file(path);
        let is_root = pid == self.root.as_raw();
        self.has_last_part |= is_root && number.is_none();
        if self.inherit || is_root {
            self.total.add(&costs);
            self.parts.as_ref().filter(|_| self.before.is_some()).map(|parts| parts.send(ProgramPart { pid, text }));
        }
        if number.is_none() && !is_root {
            let _ = fs::remove_file(self.folder.path.join(format!("{LOG}{pid}")));
        }
    }
}

impl Emulated {
    /// The rows that lack what a process did last, which has ended: valgrind could not write that, or was killed. What a
    /// command becomes by exec runs without a model where only it is to be counted.
    fn cut_rows(&self) -> Vec<RowIndex> {
        let is_cut = self.inherit && (!self.has_last_part || self.has_unread_part());
        let counted = self.formulas.iter().enumerate().filter(|(_, formula)| formula.is_some() && is_cut);
        counted.map(|(row, _)| row).collect()
    }

    /// Whether a process has ended and left a part without its sum. valgrind makes the file of the last one at once.
    fn has_unread_part(&self) -> bool {
        let entries = fs::read_dir(&self.folder.path).into_iter().flatten();
        let mut parts = entries.filter_map(|entry| part(&entry.ok()?.file_name().into_string().ok()?));
        parts.any(|(pid, _)| !super::process::is_alive(Pid::from_raw(pid)))
    }

    /// A part's file as far as it is needed: to its end for those who want all of it, once it is written.
    fn text_of(&self, path: &Path, pid: i32) -> Option<String> {
        if self.parts.is_none() {
            return head(path, HEAD);
        }
        // Asked first: what a process that has ended left is all that there will be.
        let is_alive = super::process::is_alive(Pid::from_raw(pid));
        head(path, LONGEST_PART).filter(|text| !is_alive || costs::is_whole(text))
    }
}

impl Drop for Emulated {
    /// Leaves the folder to what the command started and goes on; if the command itself does, it is about to be ended
    /// with all that. Deletes what killed processes left: valgrind makes FIFOs for debuggers in the folder of temporary
    /// files. They can't lie elsewhere, because a program may read the name of one that is mapped.
    fn drop(&mut self) {
        let names = |folder: &Path| {
            let entries = fs::read_dir(folder).into_iter().flatten();
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect::<Vec<_>>()
        };
        let pids = names(&self.folder.path).into_iter().filter_map(|name| name.strip_prefix(LOG)?.parse().ok());
        let (living, ended): (Vec<i32>, Vec<_>) = pids.partition(|&pid| super::process::is_alive(Pid::from_raw(pid)));
        let temporary = std::env::temp_dir();
        let is_left = |name: &&String| {
            let is_of = |pid: &i32| name.contains(&format!("-{pid}-by-"));
            name.starts_with("vgdb-pipe-") && ended.iter().any(is_of)
        };
        for name in names(&temporary).iter().filter(is_left) {
            let _ = fs::remove_file(temporary.join(name));
        }
        if !super::process::is_alive(self.root) && (!living.is_empty() || self.folder.is_used()) {
            self.folder.leave();
        }
    }
}

impl CounterSource for Emulated {
    fn read(&mut self) -> Next {
        self.collect();
        let at = WallNs::from(self.started.elapsed());
        let costs = self.before.as_ref().map_or_else(Costs::default, |before| self.total.since(before));
        // The first cost is instructions, the model's only measure of time.
        let time = CpuNs(costs.0[0]);
        let reading = |formula: &Formula| Reading { count: formula.count(&costs.0), enabled: time, running: time };
        let readings = self.formulas.iter().map(|formula| formula.as_ref().map(reading)).collect();
        Next::Round(Round { at, readings, ..Round::default() })
    }

    fn read_last(&mut self) -> Next {
        // Asked first: what has ended has written all that it will.
        let has_ended = !super::process::is_alive(self.root);
        match self.read() {
            Next::Round(round) if has_ended => Next::Round(Round { uncounted: self.cut_rows(), ..round }),
            next => next,
        }
    }

    fn enable(&mut self) {
        self.collect();
        if self.before.is_none() {
            self.before = Some(self.total);
        }
    }

    fn start_clock(&mut self, start: Instant) {
        self.started = start;
    }

    fn beat(&self) -> Option<Duration> {
        Some(BEAT)
    }

    fn tick(&mut self) {
        self.collect();
    }

    fn end(&mut self) {
        // Whoever adds up the parts ends when no more can come.
        self.parts = None;
    }
}

/// The process and the number of the part in an output file, `costs.7.2`; the last part has none.
fn part(name: &str) -> Option<(i32, Option<u32>)> {
    let rest = name.strip_prefix(OUTPUT)?;
    match rest.split_once('.') {
        Some((pid, number)) => Some((pid.parse().ok()?, Some(number.parse().ok()?))),
        None => Some((rest.parse().ok()?, None)),
    }
}

/// The beginning of a file, as far as it is written.
fn head(path: &Path, most: u64) -> Option<String> {
    let mut head = Vec::new();
    // A program may write into this folder, too, as its model does.
    files::open(path, &ExpectedFile::any(u64::MAX)).ok()?.take(most).read_to_end(&mut head).ok()?;
    Some(String::from_utf8_lossy(&head).into_owned())
}

/// Where valgrind is; `None` where it isn't installed.
pub fn find() -> Option<PathBuf> {
    let found =
        |folder: PathBuf| Some(folder.join(OsStr::new("valgrind"))).filter(|file| super::process::is_executable(file));
    // A relative folder is that of whoever wrote into the current one.
    super::process::command_folders().into_iter().filter(|folder| folder.is_absolute()).find_map(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::events::{Event, EventKind};

    #[test]
    fn parts_are_told_by_their_names() {
        assert_eq!(part("costs.7.2"), Some((7, Some(2))));
        assert_eq!(part("costs.7"), Some((7, None)));
        assert!(
            ["costs.", "costs.x", "log.7", "costs.7.x", "vgdb-shared-mem-vgdb-7-by-a-on-b"]
                .iter()
                .all(|name| part(name).is_none())
        );
    }

    #[test]
    fn parts_are_added_up_and_deleted_once_their_summary_is_whole() {
        let model = CacheModel::default();
        let emulator = Emulator::new("valgrind".into(), &model, true).unwrap();
        let folder = emulator.folder.path.clone();
        let mut source = emulator.source(&Plan::default(), Pid::from_raw(7));
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        write("costs.7.1", "events: Ir Dr\nsummary: 100 20\n\nfn=(1)\n");
        write("costs.8", "events: Ir Dr\nsummary: 5 1\n");
        write("log.8", "");
        write("costs.7.2", "events: Ir Dr\nsummary: 1");
        source.collect();
        assert_eq!(source.total.0[..2], [105, 21]);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        // The same name again is another program of the process.
        write("costs.7.1", "events: Ir Dr\nsummary: 1 1\n");
        write("costs.7.2", "events: Ir Dr\nsummary: 10 2\n");
        source.collect();
        assert_eq!(source.total.0[..2], [116, 24]);
        drop(source);
        assert!(!folder.exists());
    }

    #[test]
    fn a_command_that_ended_without_its_last_part_is_counted_in_part() {
        let event = Event { kind: EventKind::Modelled, ..crate::builders::event("INSTRUCTIONS") };
        let uncounted = |root: Pid, inherit, parts: &[&str], unread: &[&str]| {
            let emulator = Emulator::new("valgrind".into(), &CacheModel::default(), inherit).unwrap();
            let folder = emulator.folder.path.clone();
            let mut source = emulator.source(&Plan::default(), root);
            source.formulas = vec![Formula::of(&event), None];
            for part in parts {
                fs::write(folder.join(format!("costs.{root}{part}")), "events: Ir\nsummary: 3\n").unwrap();
            }
            unread.iter().for_each(|name| fs::write(folder.join(name), "events: Ir\n").unwrap());
            match source.read_last() {
                Next::Round(round) => round.uncounted,
                Next::Ended => unreachable!("a model has always a last round"),
            }
        };
        let ended = Pid::from_raw(i32::MAX);
        assert_eq!(uncounted(ended, true, &[".1", ".2"], &[]), [0]);
        assert!(uncounted(ended, true, &[".1", ".2", ""], &[]).is_empty());
        // What a child could not write lacks as well, unless it still runs.
        let (child, me) = (format!("costs.{}", i32::MAX - 1), format!("costs.{}", Pid::this()));
        assert_eq!(uncounted(ended, true, &[""], &[&child]), [0]);
        assert!(uncounted(ended, true, &[""], &[&me]).is_empty());
        // One that has become another program, which no model runs, and one that is yet to be ended.
        assert!(uncounted(ended, false, &[".1"], &[]).is_empty());
        assert!(uncounted(Pid::this(), true, &[".1"], &[]).is_empty());
    }

    #[test]
    fn the_folder_stays_while_what_the_command_started_uses_it() {
        let emulator = Emulator::new("valgrind".into(), &CacheModel::default(), true).unwrap();
        let folder = emulator.folder.path.clone();
        let mut child = Command::new("sh");
        child.args(["-c", "read -r _", "x"]).arg(folder.join("log.%p")).stdin(Stdio::piped());
        let mut child = child.spawn().unwrap();
        fs::write(folder.join(format!("log.{}", child.id())), "").unwrap();
        // The command has ended: no process has its number.
        drop(emulator.source(&Plan::default(), Pid::from_raw(i32::MAX)));
        thread::sleep(Duration::from_millis(1500));
        assert!(folder.exists());
        child.stdin = None;
        child.wait().unwrap();
        let begun = Instant::now();
        while folder.exists() {
            assert!(begun.elapsed() < Duration::from_secs(60));
            thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn without_inheritance_the_command_alone_counts() {
        let emulator = Emulator::new("valgrind".into(), &CacheModel::default(), false).unwrap();
        let folder = emulator.folder.path.clone();
        let line = emulator.command_line(&["prog".into(), "-x".into()]);
        assert!(line.contains(&"--trace-children=no".into()) && line.ends_with(&["prog".into(), "-x".into()]));
        let mut source = emulator.source(&Plan::default(), Pid::from_raw(7));
        for name in ["costs.7", "costs.8"] {
            fs::write(folder.join(name), "events: Ir\nsummary: 3\n").unwrap();
        }
        source.collect();
        assert_eq!(source.total.0[0], 3);
    }
}
