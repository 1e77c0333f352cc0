//! The folder of results: reads all of it, and adds to it so that writers at one time lose nothing.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::commit::CommitResults;
use super::profiles::{StoredProfile, stored_profiles};
use super::suite::{BenchmarkList, MachineFacts};
use crate::files::{self, FileLock, PartialFile};
use crate::history::parallel::on_all_cpus;
use crate::names::{quoted, shown, shown_path};

/// The file of benchmarks.
const BENCHMARKS: &str = "benchmarks.json";
/// The file of a machine.
const MACHINE: &str = "machine.json";
/// The file that writers lock.
const LOCK: &str = ".lock";

/// What is wrong with a file of results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultsProblem {
    /// It can't be read or written.
    System(String),
    /// It isn't JSON, or not that of results.
    Syntax {
        /// The line, from 1.
        line: usize,
        /// Whether it ends too early.
        is_cut: bool,
        /// What the parser says.
        error: String,
    },
    /// It has another version of its format, or none.
    Version {
        /// The version that it has.
        found: Option<u64>,
        /// The version that is read.
        expected: u32,
    },
    /// It isn't the folder of a machine, but one of results.
    Folder,
    /// It is of another commit, whose hash begins with the same digits as this one.
    Commit(String),
    /// A benchmark's entry isn't as it should be.
    Row {
        /// The benchmark.
        benchmark: String,
        /// What is wrong.
        error: String,
    },
}

impl fmt::Display for ResultsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => f.write_str(&shown(error)),
            Self::Syntax { line, is_cut: true, error } => {
                write!(
                    f,
                    "line {line}: {}; a file that was cut short has to be measured again: remove it",
                    shown(error)
                )
            }
            Self::Syntax { line, is_cut: false, error } => write!(f, "line {line}: {}", shown(error)),
            Self::Folder => f.write_str("it is a folder of results itself: name it with --results"),
            Self::Version { found: None, expected } => {
                write!(f, "it has no version; perfprop reads version {expected} of asv's files")
            }
            Self::Version { found: Some(found), expected } => {
                write!(
                    f,
                    "it has version {found}; perfprop reads version {expected}: 'asv update' makes that of older ones"
                )
            }
            Self::Commit(hash) => write!(
                f,
                "it is of commit {}, whose hash begins with the same digits; keep this one's in another folder (--results)",
                shown(hash)
            ),
            Self::Row { benchmark, error } => write!(f, "benchmark {}: {}", quoted(benchmark), shown(error)),
        }
    }
}

impl std::error::Error for ResultsProblem {}

/// A file or folder of results that can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultsError {
    /// The file or folder.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: ResultsProblem,
}

impl fmt::Display for ResultsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}': {}", shown_path(&self.path), self.problem)
    }
}

impl std::error::Error for ResultsError {}

pub(super) fn system(path: &Path) -> impl Fn(io::Error) -> ResultsError {
    move |error| ResultsError { path: path.to_owned(), problem: ResultsProblem::System(error.to_string()) }
}

/// A folder of results.
#[derive(Clone, Debug)]
pub struct ResultStore {
    root: PathBuf,
}

/// All that a folder holds.
#[derive(Clone, Debug, Default)]
pub struct StoredResults {
    /// The benchmarks.
    pub benchmarks: BenchmarkList,
    /// The machines, by name.
    pub machines: Vec<MachineResults>,
    /// The files, and the benchmarks in files, that can't be read.
    pub unreadable: Vec<ResultsError>,
}

/// What was measured on a machine.
#[derive(Clone, Debug, Default)]
pub struct MachineResults {
    /// The machine.
    pub machine: MachineFacts,
    /// The results of commits, in the order of the files' names.
    pub commits: Vec<CommitResults>,
    /// The profiles of commits.
    pub profiles: Vec<StoredProfile>,
}

impl StoredResults {
    fn leave_out(&mut self, path: &Path, problems: Vec<ResultsProblem>) {
        let of = |problem| ResultsError { path: path.to_owned(), problem };
        self.unreadable.extend(problems.into_iter().map(of));
    }
}

impl ResultStore {
    /// The folder at this path, whether it is there or not.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Reads all files. Those of commits and machines that can't be read are listed, and so are benchmarks in files.
    ///
    /// # Errors
    /// The folder or its `benchmarks.json` can't be read.
    pub fn read(&self) -> Result<StoredResults, ResultsError> {
        let path = benchmarks_of(&self.root);
        let mut stored = StoredResults::default();
        if let Some((benchmarks, left_out)) = parse(&path, BenchmarkList::parse_rows)? {
            stored.benchmarks = benchmarks;
            stored.leave_out(&path, left_out);
        }
        for folder in entries(&self.root)?.into_iter().filter(|path| path.is_dir()) {
            if folder.join(BENCHMARKS).exists() {
                stored.leave_out(&folder, vec![ResultsProblem::Folder]);
                continue;
            }
            let machine = parse(&folder.join(MACHINE), MachineFacts::parse).unwrap_or_else(|error| {
                stored.unreadable.push(error);
                None
            });
            let profiles = stored_profiles(&folder, &mut stored.unreadable);
            let mut all = MachineResults { machine: machine.unwrap_or_default(), commits: Vec::new(), profiles };
            let paths = commit_files(&folder)?;
            let commits = on_all_cpus(&paths, |path| parse(path, CommitResults::parse_rows));
            for (path, commit) in paths.iter().zip(commits) {
                match commit {
                    Ok(Some((commit, left_out))) => {
                        all.commits.push(commit);
                        stored.leave_out(path, left_out);
                    }
                    Ok(None) => {}
                    Err(error) => stored.unreadable.push(error),
                }
            }
            if !all.commits.is_empty() {
                stored.machines.push(all);
            }
        }
        Ok(stored)
    }

    /// Adds what was measured of a commit, and returns the names of the benchmarks of which the file had numbers before. What it
    /// holds of other benchmarks stays.
    ///
    /// # Errors
    /// A file can't be read or written; one that can't be read, or is of another commit, is not written over.
    pub fn add(
        &self,
        machine: &MachineFacts,
        benchmarks: &BenchmarkList,
        results: CommitResults,
    ) -> Result<Vec<String>, ResultsError> {
        let folder = self.root.join(machine.name());
        fs::create_dir_all(&folder).map_err(system(&folder))?;
        let _lock = self.lock()?;
        let path = benchmarks_of(&self.root);
        let mut all = parse(&path, BenchmarkList::parse)?.unwrap_or_default();
        for (name, benchmark) in &benchmarks.0 {
            // What another program measured has no version, and leaves that of runs as it is.
            if benchmark.version.is_some() || !all.0.contains_key(name) {
                all.0.insert(name.clone(), benchmark.clone());
            }
        }
        let file = folder.join(results.file_name());
        let before = parse(&file, CommitResults::parse)?;
        if let Some(other) = before.as_ref().filter(|before| before.commit != results.commit) {
            return Err(ResultsError { path: file, problem: ResultsProblem::Commit(other.commit.clone()) });
        }
        write(&path, &all.to_text())?;
        write(&folder.join(MACHINE), &machine.to_text())?;
        let (results, replaced) = match before {
            None => (results, Vec::new()),
            Some(mut before) => {
                let has_number = |name: &&String| before.results.get(name).is_some_and(|one| one.result.is_some());
                let replaced = results.results.0.iter().map(|(name, _)| name).filter(has_number).cloned().collect();
                before.take(results);
                (before, replaced)
            }
        };
        write(&file, &results.to_text())?;
        Ok(replaced)
    }

    /// Copies the files that asv reads to another folder, which is made. Files of that name there are replaced. Folders that are
    /// no machine's stay.
    ///
    /// # Errors
    /// A file can't be read, and nothing was written; or one can't be written.
    pub fn copy_to(&self, root: &Path) -> Result<(), ResultsError> {
        let mut files = vec![PathBuf::from(BENCHMARKS)];
        for folder in machine_folders(&self.root)? {
            let commits = commit_files(&folder)?;
            let holds_results = |path: &PathBuf| matches!(parse(path, CommitResults::parse_rows), Ok(Some(_)));
            // Others, such as that of a repository, may be beside those of machines.
            if folder.join(MACHINE).exists() || commits.iter().any(holds_results) {
                let name = PathBuf::from(folder.file_name().unwrap_or_default());
                files.push(name.join(MACHINE));
                files.extend(commits.iter().map(|path| name.join(path.file_name().unwrap_or_default())));
            }
        }
        let read = |file: PathBuf| {
            let from = self.root.join(&file);
            files::text(&from, files::LONGEST).map(|text| (root.join(file), text)).map_err(system(&from))
        };
        let texts: Vec<(PathBuf, String)> = files.into_iter().map(read).collect::<Result<_, _>>()?;
        for (to, text) in texts {
            to.parent().map_or(Ok(()), fs::create_dir_all).map_err(system(&to))?;
            write(&to, &text)?;
        }
        Ok(())
    }

    /// Waits until no other perfprop writes; none does until the lock is dropped.
    pub(super) fn lock(&self) -> Result<FileLock, ResultsError> {
        let path = self.root.join(LOCK);
        files::lock(&path).map_err(system(&path))
    }
}

/// What a file holds; `None` if there is none.
pub(super) fn parse<T>(
    path: &Path,
    parse: impl Fn(&str) -> Result<T, ResultsProblem>,
) -> Result<Option<T>, ResultsError> {
    let failed = |problem| ResultsError { path: path.to_owned(), problem };
    match files::text(path, files::LONGEST) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(system(path)(error)),
        Ok(text) => parse(&text).map(Some).map_err(failed),
    }
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), ResultsError> {
    let put = |mut file: PartialFile| {
        file.write_all(text.as_bytes())?;
        file.put().map(drop)
    };
    PartialFile::create(path).and_then(put).map_err(system(path))
}

/// What a folder holds, by name.
pub(super) fn entries(folder: &Path) -> Result<Vec<PathBuf>, ResultsError> {
    let entries = fs::read_dir(folder).map_err(system(folder))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    Ok(paths)
}

/// The file of benchmarks in a folder of results.
pub(super) fn benchmarks_of(root: &Path) -> PathBuf {
    root.join(BENCHMARKS)
}

/// The folders of machines; one that is a folder of results itself is none.
pub(super) fn machine_folders(root: &Path) -> Result<Vec<PathBuf>, ResultsError> {
    let mut folders = entries(root)?;
    folders.retain(|path| path.is_dir() && !benchmarks_of(path).exists());
    Ok(folders)
}

/// The files of commits in the folder of a machine.
pub(super) fn commit_files(machine: &Path) -> Result<Vec<PathBuf>, ResultsError> {
    let mut files = entries(machine)?;
    files.retain(|path| is_of_commit(path));
    Ok(files)
}

fn is_of_commit(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".json") && name != MACHINE && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::thread;

    use super::super::ordered::OrderedMap;
    use super::super::{Benchmark, BenchmarkResult, ResultNumber};
    use super::*;

    fn store(name: &str) -> ResultStore {
        let root = std::env::temp_dir().join(format!("perfprop-results-{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&root));
        ResultStore::new(&root)
    }

    fn machine() -> MachineFacts {
        MachineFacts(OrderedMap(vec![("machine".into(), "m".into())]))
    }

    fn results(benchmark: &str) -> CommitResults {
        let result = BenchmarkResult { result: Some(vec![ResultNumber::Number(1.0)]), ..BenchmarkResult::default() };
        CommitResults {
            commit: "0123456789".into(),
            environment: "e".into(),
            results: OrderedMap(vec![(benchmark.into(), result)]),
            ..CommitResults::default()
        }
    }

    fn list(name: &str) -> BenchmarkList {
        BenchmarkList([(name.to_owned(), Benchmark { name: name.into(), ..Benchmark::default() })].into())
    }

    #[test]
    fn writers_at_one_time_lose_nothing() {
        let store = store("writers");
        thread::scope(|scope| {
            for number in 0..8 {
                let (store, name) = (&store, format!("b{number}"));
                scope.spawn(move || store.add(&machine(), &list(&name), results(&name)).unwrap());
            }
        });
        let stored = store.read().unwrap();
        assert_eq!(stored.machines[0].commits[0].results.0.len(), 8);
        assert_eq!((stored.benchmarks.0.len(), stored.unreadable.len()), (8, 0));
        fs::remove_dir_all(store.root()).unwrap();
    }

    #[test]
    fn a_file_that_is_cut_short_is_told_and_not_written_over() {
        let store = store("cut");
        store.add(&machine(), &list("b"), results("b")).unwrap();
        let path = store.root().join("m/01234567-e.json");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, &text[..text.len() / 2]).unwrap();
        let stored = store.read().unwrap();
        assert!(stored.machines.is_empty() && stored.unreadable[0].to_string().contains("cut short"));
        assert!(store.add(&machine(), &list("c"), results("c")).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap().len(), text.len() / 2);
        fs::remove_dir_all(store.root()).unwrap();
    }

    #[test]
    fn a_row_that_is_wrong_is_left_out_and_not_written_over() {
        let store = store("row");
        store.add(&machine(), &list("b"), results("b")).unwrap();
        store.add(&machine(), &list("c"), results("c")).unwrap();
        let path = store.root().join("m/01234567-e.json");
        let text = fs::read_to_string(&path).unwrap().replace(r#""c":[[1.0]"#, r#""c":["x""#);
        fs::write(&path, &text).unwrap();
        let stored = store.read().unwrap();
        let known: Vec<_> = stored.machines[0].commits[0].results.0.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((known, stored.unreadable.len()), (vec!["b"], 1));
        let said = stored.unreadable[0].to_string();
        assert!(said.contains("01234567-e.json': benchmark 'c': ") && !said.contains("remove"), "{said}");
        assert!(store.add(&machine(), &list("d"), results("d")).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        fs::remove_dir_all(store.root()).unwrap();
    }

    #[test]
    fn a_folder_above_that_of_results_is_told() {
        let store = store("above");
        let inner = ResultStore::new(&store.root().join("results"));
        inner.add(&machine(), &list("b"), results("b")).unwrap();
        let stored = store.read().unwrap();
        let said: Vec<_> = stored.unreadable.iter().map(ToString::to_string).collect();
        assert!(stored.machines.is_empty() && said.len() == 1, "{said:?}");
        assert!(said[0].ends_with("results': it is a folder of results itself: name it with --results"), "{said:?}");
        fs::remove_dir_all(store.root()).unwrap();
    }

    #[test]
    fn a_commit_whose_hash_begins_alike_is_not_written_over() {
        let store = store("alike");
        store.add(&machine(), &list("b"), results("b")).unwrap();
        let other = CommitResults { commit: "0123456700".into(), ..results("c") };
        let error = store.add(&machine(), &list("c"), other).unwrap_err().to_string();
        assert!(error.contains("01234567-e.json': it is of commit 0123456789"), "{error}");
        let stored = store.read().unwrap();
        assert_eq!((stored.benchmarks, stored.machines[0].commits.clone()), (list("b"), vec![results("b")]));
        fs::remove_dir_all(store.root()).unwrap();
    }

    #[test]
    fn what_has_no_version_leaves_that_of_others() {
        let store = store("versions");
        let mut of_version = list("b");
        of_version.0.values_mut().for_each(|benchmark| benchmark.version = Some("1".into()));
        store.add(&machine(), &of_version, results("b")).unwrap();
        store.add(&machine(), &list("b"), CommitResults { environment: "added".into(), ..results("b") }).unwrap();
        let stored = store.read().unwrap();
        assert_eq!((stored.benchmarks, stored.machines[0].commits.len()), (of_version, 2));
        fs::remove_dir_all(store.root()).unwrap();
    }

    #[test]
    fn a_copy_holds_the_same() {
        let (store, other) = (store("copied"), store("copy"));
        store.add(&machine(), &list("b"), results("b")).unwrap();
        store.copy_to(other.root()).unwrap();
        let (a, b) = (store.read().unwrap(), other.read().unwrap());
        assert_eq!((a.machines[0].commits.clone(), a.benchmarks), (b.machines[0].commits.clone(), b.benchmarks));
        [store, other].iter().for_each(|store| fs::remove_dir_all(store.root()).unwrap());
    }

    #[test]
    fn a_copy_leaves_folders_of_others_out_and_is_whole_or_none() {
        let (store, other) = (store("foreign"), store("foreign-copy"));
        store.add(&machine(), &list("b"), results("b")).unwrap();
        let put = |name: &str, bytes: &[u8]| {
            let path = store.root().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        };
        put(".git/HEAD", b"ref: refs/heads/main");
        put("editor/settings.json", b"{}");
        put("editor/state.json", b"\xff");
        store.copy_to(other.root()).unwrap();
        let names: Vec<PathBuf> =
            entries(other.root()).unwrap().iter().map(|path| path.file_name().unwrap().into()).collect();
        assert_eq!(names, ["benchmarks.json", "m"].map(PathBuf::from));
        // The last file can't be read.
        fs::remove_dir_all(other.root()).unwrap();
        put("m/ffffffff-e.json", b"\xff");
        assert!(store.copy_to(other.root()).unwrap_err().to_string().contains("ffffffff-e.json': "));
        assert!(!other.root().exists());
        fs::remove_dir_all(store.root()).unwrap();
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        assert!(store("none").read().unwrap_err().to_string().contains("No such file"));
    }
}
