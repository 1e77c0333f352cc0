//! A command line in, the same under valgrind's model out; and while it runs, rounds of what the model
//! has counted.
//!
//! callgrind runs the program on a simulated machine with two levels of caches and a branch predictor.
//! It is asked for its costs over the channel that it keeps for debuggers ([`channel`]), which stops
//! the program for about a millisecond and writes nothing to disk; what a process has counted
//! when it ends, forks or executes another program, callgrind writes into a file, which is read and
//! deleted:
//!
//! ```text
//! process 7   ├───asked───asked──┤fork      ├──asked──┤exit     live = asked, settled = written
//!                            file 7.1 ┘          file 7 ┘
//! process 8                           ├──┤exec  ├───asked────┤exit
//!                                 file 8.1 ┘            file 8 ┘
//! ```
//!
//! A process starts at nothing when it is forked, because the costs of its parent are written just
//! before; so no instruction counts twice, and none is lost when a process executes another program.
//! Time is counted in instructions: one is a nanosecond of `enabled`, all of it `running`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::unistd::Pid;

use super::perf::Row;
use super::{CounterSource, Next, Reading, Round, Scope, Status};
use crate::events::emulate::Formula;
use crate::plan::Plan;
use crate::units::{CpuNs, WallNs};

mod channel;
mod costs;
mod model;

use channel::{Address, Answer, Channel};
pub use costs::Costs;
pub use model::{Cache, Model};

/// How often processes are asked: several times a second, whatever the time between rounds.
const BEAT: Duration = Duration::from_millis(50);

/// An answer may take this part of the time at most: a deep stack makes a long one.
const SHARE: u32 = 20;

/// A process that doesn't answer for so long waits in the kernel, or is gone.
const SILENCE: Duration = Duration::from_secs(1);

/// How long valgrind may take to say what it models.
const START: Duration = Duration::from_secs(10);

/// The head of an output file with its summary; a command line is the longest part.
const HEAD: u64 = 4 << 20;

/// Functions before which the costs are written: what a child copies of its parent, and what a process
/// did before it became another, is then in a file.
const BOUNDARIES: [&str; 5] = ["_Fork", "*fork", "posix_spawn*", "execve*", "fexecve"];

const LOG: &str = "log.";
const OUTPUT: &str = "costs.";
const CHANNEL: &str = "vgdb";
const SHARED: &str = "vgdb-shared-mem-vgdb-";

/// valgrind, and a folder for what it writes.
#[derive(Debug)]
pub struct Emulator {
    valgrind: PathBuf,
    folder: Scratch,
    model: Model,
    /// Whether processes that the command starts are counted too.
    inherit: bool,
}

/// A folder that goes when it is dropped.
#[derive(Debug)]
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("perfprop-emulate-{}-{number}", process::id()));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What can't be deleted is in the folder of temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Emulator {
    /// Makes everything ready for a command.
    ///
    /// # Errors
    /// The operating system's, when no folder for temporary files can be made.
    pub fn new(valgrind: PathBuf, model: &Model, inherit: bool) -> io::Result<Self> {
        Ok(Self { valgrind, folder: Scratch::new()?, model: model.clone(), inherit })
    }

    /// The command line that runs a command under the model. The environment stays as it is: callgrind
    /// counts differently where it is longer.
    pub fn command_line(&self, argv: &[OsString]) -> Vec<OsString> {
        let path = |name: &str| self.folder.0.join(name).into_os_string();
        let with_path = |option: &str, name: &str| {
            let mut text = OsString::from(option);
            text.push(path(name));
            text
        };
        let children = if self.inherit { "yes" } else { "no" };
        let mut line = vec![self.valgrind.clone().into_os_string()];
        // Options of the environment and of files would change the model behind our back.
        let fixed = "--command-line-only=yes -v -v --tool=callgrind --cache-sim=yes --branch-sim=yes --vgdb=yes";
        line.extend(fixed.split(' ').map(OsString::from));
        line.push(format!("--trace-children={children}").into());
        line.push(with_path("--vgdb-prefix=", CHANNEL));
        line.push(with_path("--log-file=", "log.%p"));
        line.push(with_path("--callgrind-out-file=", "costs.%p"));
        line.extend(BOUNDARIES.map(|function| format!("--dump-before={function}").into()));
        line.extend(self.model.options().map(OsString::from));
        line.extend(argv.iter().cloned());
        line
    }

    /// Where valgrind will say what it models for the command, which is process `pid`.
    pub fn told(&self, pid: Pid) -> Told {
        Told { log: self.folder.0.join(format!("{LOG}{pid}")), pid, asked: self.model.clone() }
    }

    /// The counters of the command, which is held or runs already as process `pid`.
    pub fn source(self, plan: &Plan, pid: Pid) -> Emulated {
        let row = |(event, formula): (usize, &Option<Formula>)| Row {
            event,
            scope: Scope::All,
            status: if formula.is_some() { Status::Counted } else { Status::NotSupported },
        };
        let formulas: Vec<_> = plan.events.iter().map(Formula::of).collect();
        Emulated {
            rows: formulas.iter().enumerate().map(row).collect(),
            formulas,
            root: pid,
            inherit: self.inherit,
            folder: self.folder,
            processes: BTreeMap::new(),
            ended: Costs::default(),
            before: Some(Costs::default()),
            started: Instant::now(),
        }
    }
}

/// Where valgrind says what it models.
#[derive(Debug)]
pub struct Told {
    log: PathBuf,
    pid: Pid,
    asked: Model,
}

impl Told {
    /// Waits until valgrind has said it, and gives that; what it was asked for if it doesn't.
    pub fn model(self) -> Model {
        let begun = Instant::now();
        loop {
            let text = fs::read(&self.log).unwrap_or_default();
            if let Some(model) = Model::from_log(&String::from_utf8_lossy(&text)) {
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
    rows: Vec<Row>,
    formulas: Vec<Option<Formula>>,
    root: Pid,
    inherit: bool,
    folder: Scratch,
    processes: BTreeMap<i32, Process>,
    /// The costs of processes that have ended.
    ended: Costs,
    /// The costs when counting began; `None` before.
    before: Option<Costs>,
    started: Instant,
}

/// What is known of one process.
#[derive(Debug, Default)]
struct Process {
    /// The end of its FIFOs' names.
    suffix: Option<String>,
    /// What callgrind has written of it.
    settled: Costs,
    /// What it has answered last, since it last wrote.
    live: costs::Status,
    /// The most that it was known to have counted.
    known: Costs,
    channel: Option<Channel>,
    /// It isn't asked before.
    rests_until: Option<Instant>,
}

impl Process {
    /// Takes what has come of an answer, and asks again when it is time.
    fn converse(&mut self, folder: &Path) {
        match self.channel.as_mut().map_or(Answer::None, Channel::read) {
            Answer::Whole(text, took) => {
                self.rests_until = Instant::now().checked_add(took * SHARE);
                if let Some(status) = costs::Status::parse(&text) {
                    self.hear(status);
                }
            }
            Answer::Gone => self.channel = None,
            Answer::Pending => return,
            Answer::None => {}
        }
        if self.rests_until.is_some_and(|until| Instant::now() < until) {
            return;
        }
        if let (Some(suffix), None) = (&self.suffix, &self.channel) {
            let prefix = folder.join(CHANNEL);
            // Not yet there, or no more: tried again next time.
            self.channel = Channel::open(&Address { prefix: &prefix, suffix }).ok();
        }
        if self.channel.as_mut().is_some_and(|channel| channel.ask().is_err()) {
            self.channel = None;
        }
    }

    fn hear(&mut self, status: costs::Status) {
        if status.blocks < self.live.blocks {
            // Another program, and the one before it wrote nothing: what it last answered is all there is.
            self.settled.add(&self.live.costs);
        }
        self.live = status;
    }

    /// Takes a part that was written; `number` is that of the part, none for the last one.
    fn settle(&mut self, costs: &Costs, number: Option<u32>) {
        self.settled.add(costs);
        // What was answered before it was written is in it.
        if number.is_none_or(|number| self.live.part < number) {
            self.live = costs::Status::default();
            // And what is answered now may be from before, too.
            self.channel.iter_mut().for_each(Channel::forget_question);
        }
    }

    /// All that it has counted, which never gets less.
    fn costs(&mut self) -> Costs {
        let mut now = self.settled;
        now.add(&self.live.costs);
        self.known = self.known.max(&now);
        self.known
    }

    fn is_silent(&self) -> bool {
        self.channel.as_ref().is_none_or(|channel| channel.waiting().is_some_and(|time| time > SILENCE))
    }
}

impl Emulated {
    /// What became of each row.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Begins to count only when the source is [enabled](CounterSource::enable).
    pub fn wait_for_enable(&mut self) {
        self.before = None;
    }

    /// Asks every process, and reads and deletes what was written.
    fn collect(&mut self) {
        // Answers first: what was answered before a file was written is dropped with it.
        for process in self.processes.values_mut() {
            process.converse(&self.folder.0);
        }
        let Ok(entries) = fs::read_dir(&self.folder.0) else { return };
        let mut names: Vec<_> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        // The parts of a process in their order, `costs.7.2` before the last one, `costs.7`.
        names.sort_by_key(|name| part(name).map(|(pid, number)| (pid, number.unwrap_or(u32::MAX))));
        for name in names {
            if let Some((pid, number)) = part(&name) {
                self.take_part(pid, number, &name);
            } else if let Some(suffix) = name.strip_prefix(SHARED) {
                let pid = suffix.split('-').next().and_then(|pid| pid.parse().ok());
                if let Some(pid) = pid.filter(|&pid| self.counts(pid)) {
                    self.processes.entry(pid).or_default().suffix.get_or_insert_with(|| suffix.to_owned());
                }
            }
        }
        self.forget_the_killed();
    }

    fn counts(&self, pid: i32) -> bool {
        self.inherit || pid == self.root.as_raw()
    }

    fn take_part(&mut self, pid: i32, number: Option<u32>, name: &str) {
        let path = self.folder.0.join(name);
        let Some(costs) = head(&path).as_deref().and_then(costs::summary) else { return };
        let _ = fs::remove_file(path);
        if !self.counts(pid) {
            return;
        }
        self.processes.entry(pid).or_default().settle(&costs, number);
        if number.is_none() {
            self.forget(pid);
        }
    }

    /// Adds up what a process has counted that is no more.
    fn forget(&mut self, pid: i32) {
        if let Some(mut process) = self.processes.remove(&pid) {
            self.ended.add(&process.costs());
        }
        if pid != self.root.as_raw() {
            let _ = fs::remove_file(self.folder.0.join(format!("{LOG}{pid}")));
        }
    }

    /// A killed process writes nothing, and leaves its FIFOs behind.
    fn forget_the_killed(&mut self) {
        let is_gone =
            |pid: i32, process: &Process| process.is_silent() && !super::process::is_alive(Pid::from_raw(pid));
        let gone: Vec<_> =
            self.processes.iter().filter(|(pid, process)| is_gone(**pid, process)).map(|(&pid, _)| pid).collect();
        for pid in gone {
            // It may have written its last part since the folder was read.
            if self.folder.0.join(format!("{OUTPUT}{pid}")).exists() {
                continue;
            }
            let suffix = self.processes.get_mut(&pid).and_then(|process| process.suffix.take());
            for what in ["shared-mem-vgdb", "from-vgdb-to", "to-vgdb-from"] {
                let name = suffix.as_ref().map(|suffix| format!("{CHANNEL}-{what}-{suffix}"));
                name.into_iter().for_each(|name| drop(fs::remove_file(self.folder.0.join(name))));
            }
            self.forget(pid);
        }
    }

    fn total(&mut self) -> Costs {
        let mut total = self.ended;
        self.processes.values_mut().for_each(|process| total.add(&process.costs()));
        total
    }
}

impl CounterSource for Emulated {
    fn read(&mut self) -> Next {
        self.collect();
        let at = WallNs::from(self.started.elapsed());
        let total = self.total();
        let costs = self.before.as_ref().map_or_else(Costs::default, |before| total.since(before));
        // The first cost is instructions, the model's only measure of time.
        let time = CpuNs(costs.0[0]);
        let reading = |formula: &Formula| Reading { count: formula.count(&costs.0), enabled: time, running: time };
        let readings = self.formulas.iter().map(|formula| formula.as_ref().map(reading)).collect();
        Next::Round(Round { at, readings })
    }

    fn enable(&mut self) {
        self.collect();
        if self.before.is_none() {
            self.before = Some(self.total());
        }
    }

    fn start_clock(&mut self) {
        self.started = Instant::now();
    }

    fn beat(&self) -> Option<Duration> {
        Some(BEAT)
    }

    fn tick(&mut self) {
        self.collect();
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
fn head(path: &Path) -> Option<String> {
    let mut head = Vec::new();
    File::open(path).ok()?.take(HEAD).read_to_end(&mut head).ok()?;
    Some(String::from_utf8_lossy(&head).into_owned())
}

/// Where valgrind is; `None` where it isn't installed.
pub fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found =
        |folder: PathBuf| Some(folder.join(OsStr::new("valgrind"))).filter(|file| super::process::is_executable(file));
    std::env::split_paths(&path).find_map(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(instructions: u64) -> Costs {
        let mut costs = Costs::default();
        costs.0[0] = instructions;
        costs
    }

    fn status(part: u32, blocks: u64, instructions: u64) -> costs::Status {
        costs::Status { part, blocks, costs: costs(instructions) }
    }

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
    fn what_was_written_replaces_what_was_answered_before() {
        let mut process = Process::default();
        process.hear(status(0, 10, 100));
        assert_eq!(process.costs(), costs(100));
        // Part 1 holds those 100 and 20 more.
        process.settle(&costs(120), Some(1));
        assert_eq!(process.costs(), costs(120));
        process.hear(status(1, 15, 7));
        assert_eq!(process.costs(), costs(127));
        // Answered after part 2 was written, and read before it.
        process.hear(status(2, 20, 5));
        process.settle(&costs(30), Some(2));
        assert_eq!(process.costs(), costs(155));
        process.settle(&costs(6), None);
        assert_eq!(process.costs(), costs(156));
    }

    #[test]
    fn a_program_that_was_replaced_without_a_word_keeps_what_it_had_answered() {
        let mut process = Process::default();
        process.hear(status(0, 1000, 500));
        process.hear(status(0, 3, 40));
        assert_eq!(process.costs(), costs(540));
    }

    #[test]
    fn counts_never_go_back() {
        let mut process = Process::default();
        process.hear(status(0, 10, 100));
        assert_eq!(process.costs(), costs(100));
        process.hear(status(1, 12, 1));
        assert_eq!(process.costs(), costs(100));
        process.settle(&costs(110), Some(1));
        assert_eq!(process.costs(), costs(111));
    }
}
