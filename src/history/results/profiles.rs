//! Keeps profiles of commits: folded stacks in a folder beside a machine's results.
//!
//! ```text
//! MACHINE/profiles/HASH8-ENVIRONMENT/BENCHMARK.folded
//! ```
//!
//! The first line is a comment that says of what the stacks are, as JSON:
//! `# perfprop-profile {"commit":"…","environment":"…","benchmark":"sort","event":"cycles"}`. asv reads `.json` files alone.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::store::{ResultStore, ResultsError, ResultsProblem, entries, system, write};
use super::suite::MachineFacts;
use crate::files::file_stem;
use crate::history::git::short;

/// The folder of a machine's profiles.
const PROFILES: &str = "profiles";
/// How the names of profiles end.
const ENDING: &str = "folded";
/// How the first line begins.
const MARK: &str = "# perfprop-profile ";
/// The longest first line that is read, in bytes.
const LONGEST_LINE: u64 = 64 << 10;

/// What a profile is of.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProfileOrigin {
    /// The commit's whole hash.
    pub commit: String,
    /// The name of the environment: what was built how.
    pub environment: String,
    /// The benchmark, by its name in the results.
    pub benchmark: String,
    /// What the stacks are weighted by: `cycles`, `task-clock`. Empty if nobody says.
    #[serde(default)]
    pub event: String,
}

/// A profile that is kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoredProfile {
    /// What it is of.
    pub of: ProfileOrigin,
    /// Its file.
    pub path: PathBuf,
}

impl ProfileOrigin {
    /// The file of its stacks in the folder of a machine.
    fn path(&self) -> PathBuf {
        let commit = file_stem(&format!("{}-{}", short(&self.commit), self.environment));
        Path::new(PROFILES).join(commit).join(format!("{}.{ENDING}", file_stem(&self.benchmark)))
    }
}

impl ResultStore {
    /// Keeps a profile: stacks as lines `main;f;g 12`. One of the same commit, environment and benchmark is replaced.
    ///
    /// # Errors
    /// A folder or file can't be written; the file is of another commit.
    pub fn add_profile(
        &self,
        machine: &MachineFacts,
        of: &ProfileOrigin,
        folded: &str,
    ) -> Result<PathBuf, ResultsError> {
        let path = self.root().join(machine.name()).join(of.path());
        let folder = path.parent().unwrap_or(self.root());
        fs::create_dir_all(folder).map_err(system(folder))?;
        let _lock = self.lock()?;
        if let Some(other) = origin(&path).ok().filter(|other| other.commit != of.commit) {
            return Err(ResultsError { path, problem: ResultsProblem::Commit(other.commit) });
        }
        let origin = serde_json::to_string(of).unwrap_or_default();
        write(&path, &format!("{MARK}{origin}\n{folded}"))?;
        Ok(path)
    }
}

/// The profiles of a machine's folder, by commit, environment and benchmark. Files that say not of what they are go to
/// `unreadable`.
pub(super) fn stored_profiles(machine: &Path, unreadable: &mut Vec<ResultsError>) -> Vec<StoredProfile> {
    let folders = entries(&machine.join(PROFILES)).unwrap_or_default();
    let files = folders.iter().filter(|path| path.is_dir()).flat_map(|folder| entries(folder).unwrap_or_default());
    let mut all = Vec::new();
    for path in files.filter(|path| path.extension().is_some_and(|ending| ending == ENDING)) {
        match origin(&path) {
            Ok(of) => all.push(StoredProfile { of, path }),
            Err(problem) => unreadable.push(ResultsError { path, problem }),
        }
    }
    all.sort();
    all
}

/// What the first line of a file says.
fn origin(path: &Path) -> Result<ProfileOrigin, ResultsProblem> {
    let failed = |error: std::io::Error| ResultsProblem::System(error.to_string());
    let mut line = String::new();
    let file = File::open(path).map_err(failed)?;
    BufReader::new(file.take(LONGEST_LINE)).read_line(&mut line).map_err(failed)?;
    let text = line.strip_prefix(MARK).unwrap_or_default();
    let syntax = |error: serde_json::Error| match text {
        "" => ResultsProblem::Syntax {
            line: 1,
            is_cut: false,
            error: format!("it doesn't begin with '{}'", MARK.trim_end()),
        },
        _ => ResultsProblem::Syntax { line: 1, is_cut: error.is_eof(), error: error.to_string() },
    };
    serde_json::from_str(text).map_err(syntax)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::super::{BenchmarkList, CommitResults, OrderedMap};
    use super::*;

    fn store(name: &str) -> (ResultStore, MachineFacts) {
        let root = std::env::temp_dir().join(format!("perfprop-profiles-{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&root));
        (ResultStore::new(&root), MachineFacts(OrderedMap(vec![("machine".into(), "m".into())])))
    }

    fn of(benchmark: &str) -> ProfileOrigin {
        ProfileOrigin {
            commit: "0123456789".into(),
            environment: "e".into(),
            benchmark: benchmark.into(),
            event: "cycles".into(),
        }
    }

    /// Results of the commit, without which a machine isn't listed.
    fn add_results(store: &ResultStore, machine: &MachineFacts) {
        let results =
            CommitResults { commit: "0123456789".into(), environment: "e".into(), ..CommitResults::default() };
        store.add(machine, &BenchmarkList::default(), results).unwrap();
    }

    #[test]
    fn profiles_are_kept_and_listed() {
        let (store, machine) = store("kept");
        add_results(&store, &machine);
        let hostile = "../../x\n</script>\u{1b}[2J";
        for benchmark in ["sort", hostile, "sort"] {
            store.add_profile(&machine, &of(benchmark), "main;f 3\n").unwrap();
        }
        let path = store.root().join("m/profiles/01234567-e/sort.folded");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# perfprop-profile {\"commit\":\"0123456789\"") && text.ends_with("\nmain;f 3\n"));
        let stored = store.read().unwrap();
        let profiles = &stored.machines[0].profiles;
        assert_eq!(profiles.iter().map(|one| one.of.clone()).collect::<Vec<_>>(), [of(hostile), of("sort")]);
        assert!(profiles.iter().all(|one| one.path.parent() == path.parent()), "{profiles:?}");
        assert!(stored.unreadable.is_empty());
        fs::remove_dir_all(store.root()).unwrap();
    }

    #[test]
    fn a_commit_whose_hash_begins_alike_keeps_its_profile() {
        let (store, machine) = store("alike");
        let path = store.add_profile(&machine, &of("sort"), "main 1\n").unwrap();
        let other = ProfileOrigin { commit: "0123456700".into(), ..of("sort") };
        let error = store.add_profile(&machine, &other, "main 2\n").unwrap_err().to_string();
        assert!(error.contains("it is of commit 0123456789"), "{error}");
        assert!(fs::read_to_string(path).unwrap().ends_with("\nmain 1\n"));
        fs::remove_dir_all(store.root()).unwrap();
    }

    #[test]
    fn what_is_no_profile_is_told() {
        let (store, machine) = store("wrong");
        add_results(&store, &machine);
        let path = store.add_profile(&machine, &of("sort"), "main 1\n").unwrap();
        fs::write(&path, "main 1\n").unwrap();
        let cut = store.add_profile(&machine, &of("cut"), "").unwrap();
        fs::write(&cut, format!("{MARK}{{\"commit\"")).unwrap();
        fs::write(path.with_file_name("notes.txt"), "").unwrap();
        let stored = store.read().unwrap();
        let errors: Vec<String> = stored.unreadable.iter().map(ToString::to_string).collect();
        assert!(stored.machines[0].profiles.is_empty() && errors.len() == 2, "{errors:?}");
        assert!(errors[1].contains("sort.folded': line 1: it doesn't begin with '# perfprop-profile'"), "{errors:?}");
        fs::remove_dir_all(store.root()).unwrap();
    }

    #[test]
    fn asv_gets_no_profiles() {
        let (store, machine) = store("asv");
        let (other, _) = self::store("asv-copy");
        add_results(&store, &machine);
        store.add_profile(&machine, &of("sort"), "main 1\n").unwrap();
        store.copy_to(other.root()).unwrap();
        let copied = other.read().unwrap();
        assert_eq!((copied.machines[0].commits.len(), copied.machines[0].profiles.len()), (1, 0));
        [store, other].iter().for_each(|store| fs::remove_dir_all(store.root()).unwrap());
    }
}
