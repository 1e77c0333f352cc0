//! Removes results and profiles from the folder of results.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::commit::CommitResults;
use super::ordered::OrderedMap;
use super::profiles::stored_profiles;
use super::store::{ResultStore, ResultsError, benchmarks_of, commit_files, machine_folders, parse, system, write};
use super::suite::BenchmarkList;

/// Whether what is found is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// It is only told.
    Told,
    /// It is.
    Done,
}

/// What is removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemovedResults {
    /// The benchmark and the commit of each result.
    pub results: Vec<(String, String)>,
    /// The benchmark and the commit of each profile.
    pub profiles: Vec<(String, String)>,
    /// The files that can't be read, and stay.
    pub unreadable: Vec<ResultsError>,
}

impl ResultStore {
    /// Removes results and profiles of which `is_removed` says so, by the benchmark and the commit. Files and benchmarks of which
    /// nothing is left go, too.
    ///
    /// # Errors
    /// The list of benchmarks can't be read; a file can't be written or removed.
    pub fn remove(
        &self,
        removal: Removal,
        is_removed: &dyn Fn(&str, &str) -> bool,
    ) -> Result<RemovedResults, ResultsError> {
        // Nothing is written for what is only told.
        let _lock = if removal == Removal::Done { Some(self.lock()?) } else { None };
        let list = benchmarks_of(self.root());
        let benchmarks = parse(&list, BenchmarkList::parse)?.unwrap_or_default();
        let (mut removed, mut left) = (RemovedResults::default(), BTreeSet::new());
        for folder in machine_folders(self.root())? {
            for path in commit_files(&folder)? {
                match parse(&path, CommitResults::parse) {
                    Ok(Some(results)) => {
                        let (gone, rest) = split(results, is_removed);
                        left.extend(rest.results.0.iter().map(|(name, _)| name.clone()));
                        if removal == Removal::Done && !gone.is_empty() {
                            put(&path, &rest)?;
                        }
                        removed.results.extend(gone);
                    }
                    Ok(None) => {}
                    Err(error) => removed.unreadable.push(error),
                }
            }
            removed.profiles.extend(remove_profiles(&folder, removal, is_removed)?);
        }
        if removal == Removal::Done && removed.unreadable.is_empty() {
            forget(&list, benchmarks, &removed, &left)?;
        }
        Ok(removed)
    }
}

/// What is removed of a commit's results, and the rest.
fn split(results: CommitResults, is_removed: &dyn Fn(&str, &str) -> bool) -> (Vec<(String, String)>, CommitResults) {
    let CommitResults { commit, results: OrderedMap(rows), .. } = results.clone();
    let (gone, rest): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(name, _)| is_removed(name, &commit));
    let gone = gone.into_iter().map(|(name, _)| (name, commit.clone())).collect();
    (gone, CommitResults { results: OrderedMap(rest), ..results })
}

/// Writes what is left of a commit; nothing if there is none.
fn put(path: &Path, rest: &CommitResults) -> Result<(), ResultsError> {
    if rest.results.0.is_empty() {
        return fs::remove_file(path).map_err(system(path));
    }
    write(path, &rest.to_text())
}

/// Removes profiles of a machine's folder, and their folders where they were all.
fn remove_profiles(
    machine: &Path,
    removal: Removal,
    is_removed: &dyn Fn(&str, &str) -> bool,
) -> Result<Vec<(String, String)>, ResultsError> {
    // What can't be read has no name by which it could be meant.
    let mut all = stored_profiles(machine, &mut Vec::new());
    all.retain(|one| is_removed(&one.of.benchmark, &one.of.commit));
    for one in all.iter().filter(|_| removal == Removal::Done) {
        fs::remove_file(&one.path).map_err(system(&one.path))?;
        // A folder that holds others stays.
        let _ = one.path.parent().map(fs::remove_dir);
    }
    Ok(all.into_iter().map(|one| (one.of.benchmark, one.of.commit)).collect())
}

/// Takes benchmarks off the list of which all results were removed.
fn forget(
    list: &Path,
    mut benchmarks: BenchmarkList,
    removed: &RemovedResults,
    left: &BTreeSet<String>,
) -> Result<(), ResultsError> {
    let before = benchmarks.0.len();
    for (name, _) in removed.results.iter().filter(|(name, _)| !left.contains(name)) {
        benchmarks.0.remove(name);
    }
    if benchmarks.0.len() == before { Ok(()) } else { write(list, &benchmarks.to_text()) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::super::{Benchmark, BenchmarkResult, MachineFacts, ProfileOrigin};
    use super::*;

    const COMMITS: [&str; 2] = ["aaaaaaaaaa", "bbbbbbbbbb"];

    /// Results of `a` and `b` of two commits, and a profile of `a`.
    fn store(name: &str) -> ResultStore {
        let root = std::env::temp_dir().join(format!("perfprop-remove-{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&root));
        let (store, machine) =
            (ResultStore::new(&root), MachineFacts(OrderedMap(vec![("machine".into(), "m".into())])));
        for commit in COMMITS {
            let results = OrderedMap(["a", "b"].map(|name| (name.to_owned(), BenchmarkResult::default())).into());
            let results =
                CommitResults { commit: commit.into(), environment: "e".into(), results, ..CommitResults::default() };
            let list =
                ["a", "b"].map(|name| (name.to_owned(), Benchmark { name: name.into(), ..Benchmark::default() }));
            store.add(&machine, &BenchmarkList(list.into()), results).unwrap();
        }
        let of = ProfileOrigin {
            commit: COMMITS[0].into(),
            environment: "e".into(),
            benchmark: "a".into(),
            event: String::new(),
        };
        store.add_profile(&machine, &of, "main 1\n").unwrap();
        store
    }

    /// The benchmarks of each commit, and those that are listed.
    fn held(store: &ResultStore) -> (Vec<String>, Vec<String>) {
        let stored = store.read().unwrap();
        let names = |one: &CommitResults| one.results.0.iter().map(|(name, _)| name.as_str()).collect::<String>();
        let commits = stored.machines.iter().flat_map(|machine| &machine.commits).map(names).collect();
        (commits, stored.benchmarks.0.into_keys().collect())
    }

    #[test]
    fn a_benchmark_goes_with_its_profiles_and_from_the_list() {
        let store = store("benchmark");
        let told = store.remove(Removal::Told, &|name, _| name == "a").unwrap();
        assert_eq!((told.results.len(), told.profiles.len(), held(&store).0), (2, 1, vec!["ab".into(), "ab".into()]));
        assert_eq!(store.remove(Removal::Done, &|name, _| name == "a").unwrap(), told);
        assert_eq!(held(&store), (vec!["b".into(), "b".into()], vec!["b".into()]));
        assert!(!store.root().join("m/profiles/aaaaaaaa-e").exists());
        assert_eq!(store.remove(Removal::Done, &|name, _| name == "a").unwrap(), RemovedResults::default());
        fs::remove_dir_all(store.root()).unwrap();
    }

    #[test]
    fn a_commit_goes_with_its_file_and_benchmarks_stay_listed() {
        let store = store("commit");
        store.remove(Removal::Done, &|_, commit| commit == COMMITS[1]).unwrap();
        assert_eq!(held(&store), (vec!["ab".into()], vec!["a".into(), "b".into()]));
        assert!(!store.root().join("m/bbbbbbbb-e.json").exists());
        fs::remove_dir_all(store.root()).unwrap();
    }

    #[test]
    fn a_file_that_can_not_be_read_stays() {
        let store = store("cut");
        let path = store.root().join("m/aaaaaaaa-e.json");
        fs::write(&path, "{").unwrap();
        let removed = store.remove(Removal::Done, &|_, _| true).unwrap();
        assert_eq!((removed.results.len(), removed.unreadable.len(), path.exists()), (2, 1, true));
        assert_eq!(store.read().unwrap().benchmarks.0.len(), 2, "it may hold results of them");
        fs::remove_dir_all(store.root()).unwrap();
    }
}
