//! Replaces the files of a site, and touches no others.
//!
//! A manifest lists what perfprop wrote. Before anything is written it lists the files of the older site and of the new one,
//! so that an interrupted publish is taken up by the next.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::SiteError;
use crate::files::{self, FileLock, PartialFile};

/// The list of files.
pub(super) const MANIFEST: &str = "perfprop-site.json";
/// The version of that list.
const VERSION: u32 = 1;
/// The folders of a site.
const FOLDERS: [&str; 2] = ["data", "profiles"];

/// What stands in the list.
#[derive(Serialize, Deserialize)]
struct SiteManifest {
    generator: String,
    version: u32,
    files: BTreeSet<String>,
}

/// The folder of a site, locked.
#[derive(Debug)]
pub(super) struct SiteFolder {
    root: PathBuf,
    /// The files that perfprop wrote.
    before: BTreeSet<String>,
    _lock: FileLock,
}

fn system(path: &Path) -> impl Fn(io::Error) -> SiteError {
    move |error| SiteError::System(path.to_owned(), error)
}

impl SiteFolder {
    /// A folder that is new, empty or holds a site.
    pub(super) fn open(root: &Path) -> Result<Self, SiteError> {
        if fs::metadata(root).is_ok_and(|found| !found.is_dir()) {
            return Err(SiteError::NoFolder(root.to_owned()));
        }
        fs::create_dir_all(root).map_err(system(root))?;
        let lock = files::lock(root).map_err(system(root))?;
        let before = match fs::read_to_string(root.join(MANIFEST)) {
            Ok(text) => parse(&text).map_err(|error| SiteError::Manifest(root.join(MANIFEST), error))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if fs::read_dir(root).map_err(system(root))?.next().is_some() {
                    return Err(SiteError::NoSite(root.to_owned()));
                }
                BTreeSet::new()
            }
            Err(error) => return Err(system(&root.join(MANIFEST))(error)),
        };
        // No other perfprop makes the site now: one that was killed may have left some.
        ["", FOLDERS[0], FOLDERS[1]].into_iter().for_each(|folder| files::remove_partial(&root.join(folder)));
        Ok(Self { root: root.to_owned(), before, _lock: lock })
    }

    /// Prepares for files of these names.
    pub(super) fn begin(&self, names: &BTreeSet<String>) -> Result<(), SiteError> {
        self.check(names)?;
        self.put(MANIFEST, &manifest(&self.before | names))?;
        for folder in FOLDERS {
            if names.iter().any(|name| name.starts_with(&format!("{folder}/"))) {
                fs::create_dir_all(self.root.join(folder)).map_err(system(&self.root.join(folder)))?;
            }
        }
        Ok(())
    }

    /// Removes the files of before that aren't among those that were written now. Returns how many they were.
    pub(super) fn finish(self, written: BTreeSet<String>) -> Result<usize, SiteError> {
        let stale: Vec<&String> = self.before.difference(&written).collect();
        for name in &stale {
            let path = self.root.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(system(&path)(error)),
                _ => {}
            }
        }
        // Those that are empty now; others hold what somebody else put there.
        FOLDERS.iter().for_each(|folder| drop(fs::remove_dir(self.root.join(folder))));
        let removed = stale.len();
        self.put(MANIFEST, &manifest(written))?;
        Ok(removed)
    }

    /// Whether all that has the name of one of these files is perfprop's.
    fn check(&self, now: &BTreeSet<String>) -> Result<(), SiteError> {
        let found = |name: &str| fs::symlink_metadata(self.root.join(name));
        let foreign = |name: &str| SiteError::Foreign(self.root.join(name));
        for folder in FOLDERS {
            if found(folder).is_ok_and(|found| !found.is_dir()) {
                return Err(foreign(folder));
            }
        }
        for name in now {
            let is_own = |found: fs::Metadata| found.is_file() && self.before.contains(name);
            if found(name).is_ok_and(|found| !is_own(found)) {
                return Err(foreign(name));
            }
        }
        Ok(())
    }

    /// Writes a file, if it doesn't hold that already.
    pub(super) fn put(&self, name: &str, bytes: &[u8]) -> Result<(), SiteError> {
        let path = self.root.join(name);
        if fs::read(&path).is_ok_and(|now| now == bytes) {
            return Ok(());
        }
        let write = |mut file: PartialFile| {
            file.write_all(bytes)?;
            file.put().map(drop)
        };
        PartialFile::create_readable(&path).and_then(write).map_err(system(&path))
    }
}

fn manifest(files: BTreeSet<String>) -> Vec<u8> {
    let all = SiteManifest { generator: "perfprop history publish".into(), version: VERSION, files };
    (serde_json::to_string_pretty(&all).unwrap_or_default() + "\n").into_bytes()
}

/// The files that a list names; none of them is outside of the site.
fn parse(text: &str) -> Result<BTreeSet<String>, String> {
    let all: SiteManifest = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if all.version != VERSION {
        return Err(format!("it has version {}, and perfprop reads {VERSION}", all.version));
    }
    match all.files.iter().find(|name| !is_of_site(name)) {
        Some(name) => Err(format!("a site has no file {}", crate::names::quoted(name))),
        None => Ok(all.files),
    }
}

/// Whether a file of this name can be one of a site: in one of its folders, or beside them.
fn is_of_site(name: &str) -> bool {
    let file = match name.split_once('/') {
        Some((folder, file)) if FOLDERS.contains(&folder) => file,
        Some(_) => return false,
        None => name,
    };
    let is_kept = |c: char| c.is_ascii_alphanumeric() || "_-.=".contains(c);
    !file.is_empty() && !file.starts_with('.') && file.chars().all(is_kept)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::os::unix::fs::symlink;

    use super::*;

    fn root(name: &str) -> PathBuf {
        let root = std::env::temp_dir().join(format!("perfprop-site-{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&root));
        root
    }

    fn publish(root: &Path, files: &[(&str, &str)]) -> Result<usize, SiteError> {
        let names: BTreeSet<String> = files.iter().map(|(name, _)| (*name).to_owned()).collect();
        let site = SiteFolder::open(root)?;
        site.begin(&names)?;
        files.iter().try_for_each(|(name, text)| site.put(name, text.as_bytes()))?;
        site.finish(names)
    }

    #[test]
    fn an_older_site_is_replaced_and_what_others_wrote_stays() {
        let root = root("replaced");
        assert_eq!(publish(&root, &[("index.html", "1"), ("data/a.js", "1"), ("profiles/p.svg", "")]).unwrap(), 0);
        fs::write(root.join("CNAME"), "mine").unwrap();
        fs::write(root.join("data/mine.js"), "mine").unwrap();
        assert_eq!(publish(&root, &[("index.html", "2"), ("data/b.js", "2")]).unwrap(), 2);
        let read = |name: &str| fs::read_to_string(root.join(name)).ok();
        assert_eq!((read("index.html"), read("data/a.js")), (Some("2".into()), None));
        assert_eq!((read("CNAME"), read("data/mine.js")), (Some("mine".into()), Some("mine".into())));
        assert!(!root.join("profiles").exists());
        let error = publish(&root, &[("data/mine.js", "3"), ("index.html", "3")]).unwrap_err().to_string();
        assert!(error.contains("mine.js' was not written by perfprop"), "{error}");
        assert_eq!((read("index.html"), read("data/mine.js")), (Some("2".into()), Some("mine".into())));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_folder_of_others_is_refused() {
        let root = root("refused");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("notes"), "mine").unwrap();
        assert!(publish(&root, &[("index.html", "")]).unwrap_err().to_string().contains("no site of perfprop's"));
        let lists = ["{", r#"{"generator": "", "version": 2, "files": []}"#];
        let paths = ["../x", "/etc/passwd", "a/b", "data/../../x", "data/.x", ".git", ""];
        let hostile = paths.map(|path| format!(r#"{{"generator": "", "version": 1, "files": ["{path}"]}}"#));
        for list in lists.into_iter().chain(hostile.iter().map(String::as_str)) {
            fs::write(root.join(MANIFEST), list).unwrap();
            let error = publish(&root, &[("index.html", "")]).unwrap_err().to_string();
            assert!(error.contains("doesn't list the files of a site"), "{list}: {error}");
        }
        assert_eq!(fs::read_dir(&root).unwrap().count(), 2, "nothing was written");
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn links_are_not_followed() {
        let (root, elsewhere) = (root("links"), root("elsewhere"));
        publish(&root, &[("index.html", "1")]).unwrap();
        fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, root.join("data")).unwrap();
        assert!(matches!(publish(&root, &[("data/a.js", "")]), Err(SiteError::Foreign(_))));
        fs::remove_file(root.join("data")).unwrap();
        fs::remove_file(root.join("index.html")).unwrap();
        symlink(elsewhere.join("x"), root.join("index.html")).unwrap();
        assert!(matches!(publish(&root, &[("index.html", "2")]), Err(SiteError::Foreign(_))));
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
        [root, elsewhere].iter().for_each(|folder| fs::remove_dir_all(folder).unwrap());
    }

    #[test]
    fn an_interrupted_publish_is_taken_up() {
        let root = root("interrupted");
        publish(&root, &[("index.html", "1"), ("data/a.js", "1")]).unwrap();
        // What the list says before files are written, and some that were.
        let names = ["index.html", "data/a.js", "data/b.js"].map(str::to_owned);
        fs::write(root.join(MANIFEST), manifest(names.into())).unwrap();
        fs::write(root.join("data/b.js"), "2").unwrap();
        assert_eq!(publish(&root, &[("index.html", "2"), ("data/b.js", "2")]).unwrap(), 1);
        assert_eq!(fs::read_dir(root.join("data")).unwrap().count(), 1);
        fs::remove_dir_all(root).unwrap();
    }
}
