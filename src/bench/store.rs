//! Keeps a sweep in files, one for each command, each whole at every moment; finds what an earlier sweep left there.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::design::Variant;
use crate::cost::{SweepRecord, WorkloadError, WorkloadFile};
use crate::files::PartialFile;
use crate::names::quoted;

/// The files of a sweep.
#[derive(Clone, Debug)]
pub struct SweepStore {
    /// A file for each command, in their order.
    pub paths: Vec<PathBuf>,
}

/// Why a sweep can't go on with what is in a file.
#[derive(Debug)]
pub struct NotResumed {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: NotResumedReason,
}

/// What keeps a sweep from going on.
#[derive(Debug)]
pub enum NotResumedReason {
    /// It can't be read.
    System(io::Error),
    /// It holds no workloads.
    Format(WorkloadError),
    /// It wasn't made by a sweep.
    NoSweep,
    /// Something was different when it was made: what, then and now.
    Different(&'static str, String, String),
    /// Its runs aren't those of the sweep that it says it is of.
    OtherRuns,
}

impl fmt::Display for NotResumed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} can't be resumed: ", quoted(&self.path.to_string_lossy()))?;
        match &self.why {
            NotResumedReason::System(error) => error.fmt(f),
            NotResumedReason::Format(error) => error.fmt(f),
            NotResumedReason::NoSweep => f.write_str("it doesn't say how it was measured; give another file to -o"),
            NotResumedReason::Different(what, then, now) => {
                let [then, now] = [then, now].map(|text| quoted(text));
                write!(f, "{what} was {then} and is {now} now; repeat what was given then, or leave out --resume")
            }
            NotResumedReason::OtherRuns => {
                f.write_str("its runs are in another order than this sweep's; leave out --resume to measure anew")
            }
        }
    }
}

impl SweepStore {
    /// The file itself for one command; for several `NAME-LABEL.jsonl` beside it.
    pub fn new(output: &Path, variants: &[Variant]) -> Self {
        if let [_] = variants {
            return Self { paths: vec![output.to_owned()] };
        }
        let stem = output.file_stem().unwrap_or_default().to_string_lossy();
        let ending = output.extension().map_or_else(String::new, |ending| format!(".{}", ending.to_string_lossy()));
        let mut paths: Vec<PathBuf> = Vec::new();
        for variant in variants {
            let label: String = variant.label.chars().map(in_file_name).collect();
            let named = |number: usize| {
                let number = if number < 2 { String::new() } else { format!("-{number}") };
                output.with_file_name(format!("{stem}-{label}{number}{ending}"))
            };
            paths.extend((1..).map(named).find(|path| !paths.contains(path)));
        }
        Self { paths }
    }

    /// Whether the files can be replaced while the sweep goes on: pipes and devices are written to once.
    pub fn is_replaceable(&self) -> bool {
        self.paths.iter().all(|path| fs::metadata(path).map_or(true, |found| found.is_file()))
    }

    /// Writes all files, each under its name once it is whole. Sizes without a run are left out.
    ///
    /// # Errors
    /// The file that can't be written, with the operating system's error.
    pub fn write(&self, files: &[WorkloadFile]) -> Result<(), (PathBuf, io::Error)> {
        for (path, file) in self.paths.iter().zip(files) {
            let write = |mut part: PartialFile| {
                part.write_all(without_empty(file).to_json_lines().as_bytes())?;
                part.put().map(|_| ())
            };
            PartialFile::create(path).and_then(write).map_err(|error| (path.clone(), error))?;
        }
        Ok(())
    }

    /// What the files hold; `None` of one that isn't there.
    ///
    /// # Errors
    /// The first file that can't be read.
    pub fn read(&self) -> Result<Vec<Option<WorkloadFile>>, NotResumed> {
        let one = |path: &PathBuf| {
            let failed = |why| NotResumed { path: path.clone(), why };
            match fs::read_to_string(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(failed(NotResumedReason::System(error))),
                Ok(text) if !text.trim_start().starts_with('{') => Err(failed(NotResumedReason::NoSweep)),
                Ok(text) => {
                    let file = WorkloadFile::parse(&text, "", "").map_err(NotResumedReason::Format);
                    file.map(Some).map_err(failed)
                }
            }
        };
        self.paths.iter().map(one).collect()
    }
}

/// A character of a label, or what stands for it in the name of a file.
fn in_file_name(c: char) -> char {
    match c {
        ' ' => '-',
        c if c.is_alphanumeric() || "-_=.".contains(c) => c,
        _ => '_',
    }
}

/// The file without sizes that have no run yet.
pub(super) fn without_empty(file: &WorkloadFile) -> WorkloadFile {
    let workloads = file.workloads.iter().filter(|workload| !workload.samples.is_empty()).cloned().collect();
    WorkloadFile { header: file.header.clone(), workloads }
}

/// Puts the runs of an earlier sweep into the files of this one. `order` says which place has its turn in each run:
/// places of a file begin at `first`.
pub(super) fn take_over(
    file: &mut WorkloadFile,
    before: WorkloadFile,
    first: usize,
    order: &[usize],
) -> Result<(), NotResumedReason> {
    let (Some(then), Some(now)) = (before.header.sweep, &mut file.header.sweep) else {
        return Err(NotResumedReason::NoSweep);
    };
    same(&then, now)?;
    let words = |words: &[String]| words.join(" ");
    if before.header.command != file.header.command {
        let [then, now] = [&before.header.command, &file.header.command].map(|command| words(command));
        return Err(NotResumedReason::Different("the command", then, now));
    }
    (now.started, now.process_start, now.conditions) = (then.started, then.process_start, then.conditions);
    for workload in before.workloads {
        let place = file.workloads.iter().position(|own| own.sizes == workload.sizes);
        let place = place.ok_or(NotResumedReason::OtherRuns)?;
        let is_turn = |run: &u32| order.get(*run as usize).is_none_or(|&turn| turn == first + place);
        let is_whole = workload.samples.values().all(|samples| samples.len() == workload.order.len());
        if !is_whole || !workload.order.iter().all(is_turn) {
            return Err(NotResumedReason::OtherRuns);
        }
        file.workloads[place] = workload;
    }
    Ok(())
}

/// Whether both sweeps are the same, but for how often commands are run.
fn same(then: &SweepRecord, now: &SweepRecord) -> Result<(), NotResumedReason> {
    let commands =
        |sweep: &SweepRecord| sweep.commands.iter().map(|words| words.join(" ")).collect::<Vec<_>>().join(" --vs ");
    let listed = |name: &String, values: String| format!("{name}={values}");
    let sizes = |sweep: &SweepRecord| {
        let values = |values: &Vec<f64>| values.iter().map(f64::to_string).collect::<Vec<_>>().join(",");
        sweep.values.iter().map(|(name, all)| listed(name, values(all))).collect::<Vec<_>>().join(" ")
    };
    let words = |sweep: &SweepRecord| {
        sweep.words.iter().map(|(name, all)| listed(name, all.join(","))).collect::<Vec<_>>().join(" ")
    };
    let hooks = |sweep: &SweepRecord| {
        sweep.hooks.iter().map(|(option, text)| format!("{option} {text}")).collect::<Vec<_>>().join(" ")
    };
    let cpu = |sweep: &SweepRecord| sweep.cpu.map_or_else(|| "any".to_owned(), |cpu| cpu.to_string());
    let of = |text: &dyn Fn(&SweepRecord) -> String| (text(then), text(now));
    let all = [
        ("the command", of(&commands)),
        ("the sizes", of(&sizes)),
        ("the words", of(&words)),
        ("the list of events", of(&|sweep| sweep.events.join(","))),
        ("the seed", of(&|sweep| sweep.seed.to_string())),
        ("the CPU", of(&cpu)),
        ("what runs around runs", of(&hooks)),
    ];
    let different = all.into_iter().find(|(_, (then, now))| then != now);
    different.map_or(Ok(()), |(what, (then, now))| Err(NotResumedReason::Different(what, then, now)))
}
