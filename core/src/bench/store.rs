//! Keeps a sweep in files, one for each command, each whole at every moment; finds what an earlier sweep left there.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::design::Variant;
use super::hooks::HookKind;
use crate::cost::{SweepRecord, WorkloadError, WorkloadFile, sizes_in_words};
use crate::files::{self, PartialFile};
use crate::names::{quoted, quoted_path};

/// The exit code of a run, where runs count that fail: what is measured under this name.
pub const EXIT_CODE: &str = "exit_code";

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
    /// It lacks numbers of runs: of which quantity, at which sizes.
    Uneven(String, String),
}

impl fmt::Display for NotResumed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} can't be resumed: ", quoted_path(&self.path))?;
        match &self.why {
            NotResumedReason::System(error) => error.fmt(f),
            NotResumedReason::Format(error) => error.fmt(f),
            NotResumedReason::NoSweep => f.write_str("it doesn't say how it was measured; give another file to -o"),
            NotResumedReason::Different(what, then, now) => {
                let (then, now) = difference(then, now);
                write!(f, "{what} was {then} and is {now} now; repeat what was given then, or leave out --resume")
            }
            NotResumedReason::Uneven(quantity, sizes) => {
                let at = if sizes.is_empty() { String::new() } else { format!(" at {sizes}") };
                let quantity = quoted(quantity);
                write!(f, "it doesn't have {quantity} of each run{at}; leave out --resume to measure anew")
            }
            NotResumedReason::OtherRuns => {
                f.write_str("its runs are in another order than this sweep's; leave out --resume to measure anew")
            }
        }
    }
}

/// Two texts in quotes, from shortly before where they differ.
fn difference(then: &str, now: &str) -> (String, String) {
    /// How many equal characters are shown before the difference.
    const BEFORE: usize = 12;
    let same = then.chars().zip(now.chars()).take_while(|(a, b)| a == b).count();
    let tail = |text: &str| match (text.is_empty(), same.saturating_sub(BEFORE)) {
        (true, _) => "not given".to_owned(),
        (false, 0) => quoted(text),
        (false, left_out) => quoted(&format!("...{}", text.chars().skip(left_out).collect::<String>())),
    };
    (tail(then), tail(now))
}

/// What becomes of what the files of a sweep held before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreviousSweep {
    /// It is another sweep's.
    Kept,
    /// It is this one's.
    Replaced,
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

    /// The files that are there already.
    pub fn existing(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter().map(PathBuf::as_path).filter(|path| path.is_file())
    }

    /// Finds out whether the files can be written, before anything is measured. What is there stays.
    ///
    /// # Errors
    /// The file that can't be written, with the operating system's error.
    pub fn check(&self) -> Result<(), (PathBuf, io::Error)> {
        let one = |path: &PathBuf| PartialFile::create(path).map(drop).map_err(|error| (path.clone(), error));
        self.paths.iter().try_for_each(one)
    }

    /// Writes all files, each under its name once it is whole. Sizes without a run are left out. What is there is another
    /// sweep's where it is to be kept, as `FILE.old`.
    ///
    /// # Errors
    /// The file that can't be written, with the operating system's error.
    pub fn write(&self, files: &[WorkloadFile], before: PreviousSweep) -> Result<(), (PathBuf, io::Error)> {
        for (path, file) in self.paths.iter().zip(files) {
            let write = |mut part: PartialFile| {
                part.write_all(without_empty(file).to_json_lines().as_bytes())?;
                match before {
                    PreviousSweep::Kept => part.put_keeping_old(),
                    PreviousSweep::Replaced => part.put(),
                }
                .map(drop)
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
            match files::text(path, files::LONGEST) {
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
    let workloads = file.workloads.iter().filter(|workload| !workload.order.is_empty()).cloned().collect();
    WorkloadFile { header: file.header.clone(), workloads }
}

/// Puts the runs of an earlier sweep into the files of this one, with exit codes where either counts runs that fail. `order` says
/// which place has its turn in each run: places of a file begin at `first`.
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
    (now.started, now.date) = (then.started, then.date);
    (now.process_start, now.conditions) = (then.process_start, then.conditions);
    let ignored = then.runs.is_some_and(|runs| runs.ignores_failure);
    if let Some(runs) = &mut now.runs {
        runs.ignores_failure |= ignored;
    }
    let ignores = now.runs.as_ref().is_some_and(|runs| runs.ignores_failure);
    for mut workload in before.workloads {
        let place = file.workloads.iter().position(|own| own.sizes == workload.sizes);
        let place = place.ok_or(NotResumedReason::OtherRuns)?;
        let is_turn = |run: &u32| order.get(*run as usize).is_none_or(|&turn| turn == first + place);
        if !workload.order.iter().all(is_turn) {
            return Err(NotResumedReason::OtherRuns);
        }
        if ignores {
            // Where failures ended the sweep all that was kept ended with 0.
            workload.samples.entry(EXIT_CODE.to_owned()).or_insert_with(|| vec![0.0; workload.order.len()]);
        }
        if let Some((quantity, _)) = workload.samples.iter().find(|(_, all)| all.len() != workload.order.len()) {
            return Err(NotResumedReason::Uneven(quantity.clone(), sizes_in_words(&workload.sizes)));
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
    let hook =
        |sweep: &SweepRecord, kind: HookKind| sweep.hooks.get(kind.option()).map_or_else(String::new, String::clone);
    let model = |sweep: &SweepRecord| sweep.model.clone().unwrap_or_else(|| "none".to_owned());
    let cpu = |sweep: &SweepRecord| sweep.cpu.map_or_else(|| "any".to_owned(), |cpu| cpu.to_string());
    let of = |text: &dyn Fn(&SweepRecord) -> String| (text(then), text(now));
    let all = [
        ("the command", of(&commands)),
        ("the list of sizes", of(&sizes)),
        ("the list of words", of(&words)),
        ("the list of events", of(&|sweep| sweep.events.join(","))),
        ("the seed", of(&|sweep| sweep.seed.to_string())),
        ("the CPU", of(&cpu)),
        ("the model", of(&model)),
        // What cleans up runs after all that is measured: it may differ.
        (HookKind::Setup.option(), of(&|sweep| hook(sweep, HookKind::Setup))),
        (HookKind::Prepare.option(), of(&|sweep| hook(sweep, HookKind::Prepare))),
    ];
    let different = all.into_iter().find(|(_, (then, now))| then != now);
    different.map_or(Ok(()), |(what, (then, now))| Err(NotResumedReason::Different(what, then, now)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::collections::BTreeMap;

    use super::super::design::variants;
    use super::super::parameter::Parameter;
    use super::*;
    use crate::cost::{SweepRuns, TIME, Workload, WorkloadHeader};

    fn paths(commands: &[&str], parameters: &[&str], output: &str) -> Vec<String> {
        let commands: Vec<_> = commands.iter().map(|word| vec![(*word).to_owned()]).collect();
        let parameters: Vec<_> = parameters.iter().map(|text| Parameter::parse(text).unwrap()).collect();
        let store = SweepStore::new(Path::new(output), &variants(&commands, &parameters));
        store.paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn each_command_has_its_file() {
        assert_eq!(paths(&["./a {n}"], &["n=1,2"], "x/s.jsonl"), ["x/s.jsonl"]);
        assert_eq!(
            paths(&["./s"], &["algo=quick,merge"], "x/s.jsonl"),
            ["x/s-algo=quick.jsonl", "x/s-algo=merge.jsonl"]
        );
        assert_eq!(paths(&["bin/a", "b"], &[], "s"), ["s-a", "s-b"]);
        let odd = paths(&["a"], &["k=../x,.._x,a b"], "s.jsonl");
        assert_eq!(
            odd,
            ["s-k=.._x.jsonl", "s-k=.._x-2.jsonl", "s-k=a-b.jsonl"],
            "no name leads elsewhere, and none is taken twice"
        );
    }

    /// A file of `a {n}` with n = 1 and 2 and these runs at each.
    fn file(runs: [&[u32]; 2], change: impl Fn(&mut SweepRecord)) -> WorkloadFile {
        let mut sweep = SweepRecord {
            seed: 1,
            commands: vec![vec!["a".into(), "{n}".into()]],
            values: BTreeMap::from([("n".to_owned(), vec![1.0, 2.0])]),
            ..SweepRecord::default()
        };
        change(&mut sweep);
        let workload = |(n, runs): (f64, &[u32])| Workload {
            sizes: BTreeMap::from([("n".to_owned(), n)]),
            samples: BTreeMap::from([(TIME.to_owned(), runs.iter().map(|run| f64::from(*run) * 10.0).collect())]),
            order: runs.to_vec(),
        };
        let header = WorkloadHeader {
            perfprop_workload: 1,
            command: sweep.commands[0].clone(),
            sweep: Some(sweep),
            ..WorkloadHeader::default()
        };
        WorkloadFile { header, workloads: [1.0, 2.0].into_iter().zip(runs).map(workload).collect() }
    }

    const ORDER: [usize; 6] = [2, 3, 3, 2, 2, 3];

    #[test]
    fn runs_are_taken_over_from_the_same_sweep() {
        let mut now = file([&[], &[]], |sweep| sweep.started = 9.0);
        let then = file([&[0, 4], &[1]], |sweep| sweep.started = 5.0);
        take_over(&mut now, then.clone(), 2, &ORDER).unwrap();
        assert_eq!(now, then, "also when it began");
        // Fewer repetitions than there were are no other sweep, nor is what cleans up.
        let then = file([&[0, 4], &[1]], |sweep| drop(sweep.hooks.insert("--cleanup".into(), "x".into())));
        take_over(&mut now, then, 2, &ORDER[..2]).unwrap();
    }

    #[test]
    fn another_sweep_is_refused() {
        type Change = fn(&mut SweepRecord);
        let changes: [(&str, Change); 8] = [
            ("the seed was '2' and is '1' now", |sweep| sweep.seed = 2),
            ("the command was 'b' and is 'a {n}' now", |sweep| sweep.commands = vec![vec!["b".into()]]),
            ("the list of sizes was 'n=3' and is 'n=1,2' now", |sweep| {
                drop(sweep.values.insert("n".into(), vec![3.0]))
            }),
            ("the list of words was 'k=x' and is not given now", |sweep| {
                drop(sweep.words.insert("k".into(), vec!["x".into()]))
            }),
            ("the list of events was 'faults' and is not given now", |sweep| sweep.events.push("faults".into())),
            ("the CPU was '3' and is 'any' now", |sweep| sweep.cpu = Some(3)),
            ("--setup was 'x' and is not given now", |sweep| drop(sweep.hooks.insert("--setup".into(), "x".into()))),
            ("--prepare was 'y' and is not given now", |sweep| {
                drop(sweep.hooks.insert("--prepare".into(), "y".into()))
            }),
        ];
        let refused = |before: WorkloadFile| {
            let why = take_over(&mut file([&[], &[]], |_| {}), before, 2, &ORDER).unwrap_err();
            NotResumed { path: "f".into(), why }.to_string()
        };
        for (words, change) in changes {
            let text = refused(file([&[0], &[1]], change));
            assert!(text.contains(words), "{text}");
        }
        let text = refused(WorkloadFile { header: WorkloadHeader::default(), ..file([&[0], &[1]], |_| {}) });
        assert!(text.contains("doesn't say how it was measured"), "{text}");
        // A run of the other size, a run that has no measurement, a size that there isn't.
        let mut cut = file([&[0, 3], &[1]], |_| {});
        cut.workloads[0].samples.get_mut(TIME).unwrap().pop();
        let mut odd = file([&[0], &[1]], |_| {});
        odd.workloads[0].sizes = BTreeMap::new();
        for before in [file([&[1], &[]], |_| {}), odd] {
            assert!(refused(before).contains("its runs are in another order"));
        }
        assert!(refused(cut).contains("it doesn't have 'time' of each run at n=1"));
    }

    #[test]
    fn earlier_runs_have_exit_codes_where_either_sweep_counts_failures() {
        let with = |ignores_failure: bool| {
            move |sweep: &mut SweepRecord| sweep.runs = Some(SweepRuns { ignores_failure, ..SweepRuns::default() })
        };
        let codes = |file: &WorkloadFile| file.workloads[0].samples.get(EXIT_CODE).cloned();
        let taken = |then: bool, now: bool| {
            let mut before = file([&[0, 4], &[1]], with(then));
            if then {
                before.workloads[0].samples.insert(EXIT_CODE.to_owned(), vec![0.0, 3.0]);
            }
            let mut now = file([&[], &[]], with(now));
            take_over(&mut now, before, 2, &ORDER).unwrap();
            (codes(&now), now.header.sweep.unwrap().runs.unwrap().ignores_failure)
        };
        assert_eq!(taken(false, true), (Some(vec![0.0, 0.0]), true));
        assert_eq!([taken(true, false), taken(true, true)], [(); 2].map(|()| (Some(vec![0.0, 3.0]), true)));
        assert_eq!(taken(false, false), (None, false));
    }

    #[test]
    fn a_difference_is_shown_where_it_is() {
        let long = "./sort --by=name --and-by=size --stable --threads=8 {n}";
        let (then, now) = difference(long, &long.replace("=8", "=16"));
        assert_eq!((then.as_str(), now.as_str()), ("'...e --threads=8 {n}'", "'...e --threads=16 {n}'"));
        assert_eq!(difference("1", ""), ("'1'".to_owned(), "not given".to_owned()));
        assert_eq!(difference("é", "éa"), ("'é'".to_owned(), "'éa'".to_owned()));
    }

    #[test]
    fn files_are_written_and_read() {
        let folder = std::env::temp_dir().join(format!("perfprop-store-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let store = SweepStore { paths: vec![folder.join("a.jsonl"), folder.join("b.jsonl")] };
        store.check().unwrap();
        assert!(store.read().unwrap().iter().all(Option::is_none) && store.is_replaceable());
        let begun = file([&[0], &[]], |_| {});
        store.write(std::slice::from_ref(&begun), PreviousSweep::Kept).unwrap();
        let read = store.read().unwrap();
        assert_eq!((read[0].clone(), read[1].is_none()), (Some(without_empty(&begun)), true));
        for (text, words) in [("n,time\n1,2\n", "doesn't say how"), ("{\"x\":1}\n", "line 1: no header")] {
            fs::write(&store.paths[1], text).unwrap();
            let error = store.read().unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        let error = SweepStore { paths: vec![folder.join("none/a.jsonl")] }.check().unwrap_err();
        assert_eq!(error.1.kind(), io::ErrorKind::NotFound);
        fs::remove_dir_all(folder).unwrap();
    }
}
