//! Draws the profiles of commits as flame graphs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use super::error::SiteError;
use super::{SiteCommit, SiteProfile};
use crate::compare::ProfileDifference;
use crate::files::file_stem;
use crate::history::results::{ProfileOrigin, StoredProfile};
use crate::history::{on_all_cpus, short};
use crate::monitor::MeasureChoice;
use crate::names::shown_path;
use crate::profile::Tree;
use crate::rates::Confidence;
use crate::stack_formats::{InputFormat, OutputFormat, ReadOptions, WriteOptions, difference_options, read, write};

/// The pictures that were drawn, and what is wrong with profiles.
#[derive(Debug, Default)]
pub(super) struct Pictures {
    /// The names of their files.
    pub(super) files: BTreeSet<String>,
    pub(super) faults: Vec<String>,
}

/// The file of a profile's picture.
pub(super) fn file(machine: &str, of: &ProfileOrigin) -> String {
    let name = format!("{}-{machine}-{}-{}", short(&of.commit), of.environment, of.benchmark);
    format!("profiles/{}.svg", file_stem(&name))
}

/// The file of the picture of what a profile differs in from one of an earlier commit.
pub(super) fn difference_file(machine: &str, of: &ProfileOrigin, before: &ProfileOrigin) -> String {
    let name =
        format!("{}-since-{}-{machine}-{}-{}", short(&of.commit), short(&before.commit), of.environment, of.benchmark);
    format!("profiles/{}.svg", file_stem(&name))
}

/// Draws all profiles, and hands each picture on with the name of its file as soon as it is drawn: all together may be large.
/// A profile that has no stacks, or nothing to compare with, has no picture.
pub(super) fn draw(
    commits: &[SiteCommit<'_>],
    put: impl Fn(&str, &[u8]) -> Result<(), SiteError> + Sync,
) -> Result<Pictures, SiteError> {
    let profiles = commits.iter().flat_map(|commit| &commit.profiles).map(|one| (one.file.as_str(), one));
    let profiles: Vec<_> = profiles.collect::<BTreeMap<_, _>>().into_iter().collect();
    let drawn = on_all_cpus(&profiles, |&(file, one)| {
        let (picture, fault) = picture(one);
        picture.as_ref().map_or(Ok(()), |picture| put(file, picture))?;
        Ok((picture.is_some(), fault))
    });
    let mut all = Pictures::default();
    for ((file, _), drawn) in profiles.iter().zip(drawn) {
        let (is_drawn, fault) = drawn?;
        all.faults.extend(fault);
        all.files.extend(is_drawn.then(|| (*file).to_owned()));
    }
    Ok(all)
}

/// The picture of a profile, as far as that can be read, and why not further.
fn picture(one: &SiteProfile<'_>) -> (Option<Vec<u8>>, Option<String>) {
    let path = &one.stored.path;
    let (tree, fault) = stacks(path);
    let drawn = match one.before {
        // Reading it says so.
        None if is_empty(&tree) => return (None, fault),
        None => svg(path, &tree, &WriteOptions { title: title(one), ..WriteOptions::default() }),
        Some(before) => difference(one, &tree, before),
    };
    match drawn {
        // What is wrong with a profile is said of its own picture alone.
        Ok(picture) => (picture, fault.filter(|_| one.before.is_none())),
        Err(why) => (None, Some(why)),
    }
}

/// The picture of what a profile differs in from one of an earlier commit; `None` if one of them has no stacks.
fn difference(one: &SiteProfile<'_>, tree: &Tree, before: &StoredProfile) -> Result<Option<Vec<u8>>, String> {
    let (tree_before, _) = stacks(&before.path);
    // One profile of each commit: nothing tells what differs by more than chance.
    let found = ProfileDifference::of(&[&tree_before], &[tree], MeasureChoice::Usual, Confidence::DEFAULT);
    let Some(found) = found else { return Ok(None) };
    let mut options = difference_options(&found, format!("{}, since {}", title(one), short(&before.of.commit)));
    if let Some(shown) = &mut options.difference {
        shown.note = "one profile of each: no function is marked".into();
    }
    svg(&one.stored.path, &found.tree, &options)
}

fn svg(path: &Path, tree: &Tree, options: &WriteOptions) -> Result<Option<Vec<u8>>, String> {
    let mut out = Vec::new();
    let written = write(tree, OutputFormat::Svg, options, &mut out);
    written.map(|()| Some(out)).map_err(|error| format!("{}: {error}", shown_path(path)))
}

/// The stacks of a file, as far as they can be read, and why not further.
fn stacks(path: &Path) -> (Tree, Option<String>) {
    let why = |error: &dyn Display| Some(format!("{}: {error}", shown_path(path)));
    let options = ReadOptions { format: Some(InputFormat::Folded), ..ReadOptions::default() };
    match File::open(path).map(|file| read(BufReader::new(file), &options)) {
        Ok(imported) => (imported.tree, imported.fault.and_then(|fault| why(&fault))),
        Err(error) => (Tree::default(), why(&error)),
    }
}

fn is_empty(tree: &Tree) -> bool {
    tree.default_event().is_none_or(|event| tree.total(event).weight == 0)
}

/// What stands above a picture.
fn title(one: &SiteProfile<'_>) -> String {
    let of = &one.stored.of;
    let event = if of.event.is_empty() { String::new() } else { format!(", {}", of.event) };
    format!("{} at {}{event}", of.benchmark, short(&of.commit))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::fs;
    use std::path::PathBuf;

    use super::super::CommitState;
    use super::*;
    use crate::history::Commit;

    /// Profiles that hold these stacks; `None` is of a file that is gone.
    fn profiles(folder: &Path, stacks: &[Option<&str>]) -> Vec<StoredProfile> {
        fs::create_dir_all(folder).unwrap();
        let stored = |(number, stacks): (usize, &Option<&str>)| {
            let path: PathBuf = folder.join(format!("{number}.folded"));
            stacks.iter().for_each(|stacks| fs::write(&path, stacks).unwrap());
            StoredProfile { of: ProfileOrigin { commit: format!("{number}"), ..ProfileOrigin::default() }, path }
        };
        stacks.iter().enumerate().map(stored).collect()
    }

    #[test]
    fn what_has_no_stacks_has_no_picture() {
        let folder = std::env::temp_dir().join(format!("perfprop-flames-{}", std::process::id()));
        let stored = profiles(&folder, &[Some("main 1\n"), None, Some(""), Some("main 0\n"), Some("main 2\n")]);
        let one = |file: &str, place: usize, before: Option<usize>| SiteProfile {
            stored: &stored[place],
            machine: "m",
            file: file.into(),
            before: before.map(|place| &stored[place]),
        };
        let alone = ["good", "gone", "empty", "zero", "other"].into_iter().enumerate();
        let mut all: Vec<_> = alone.map(|(place, file)| one(file, place, None)).collect();
        all.extend([one("good-gone", 0, Some(1)), one("gone-good", 1, Some(0)), one("empty-good", 2, Some(0))]);
        all.extend([one("zero-good", 3, Some(0)), one("other-good", 4, Some(0))]);
        let commit = Commit { hash: "0".into(), date: 0, subject: String::new() };
        let commits = [SiteCommit { revision: 0, commit: &commit, state: CommitState::Known, profiles: all }];
        let is_picture = |picture: &[u8]| picture.starts_with(b"<svg") || picture.starts_with(b"<?xml");
        let put = |_: &str, picture: &[u8]| is_picture(picture).then_some(()).ok_or(SiteError::Empty);
        let Pictures { files, faults } = draw(&commits, put).unwrap();
        assert_eq!(files.iter().collect::<Vec<_>>(), ["good", "other", "other-good"]);
        let said = [
            "2.folded: no samples",
            "1.folded: No such file or directory (os error 2)",
            "3.folded: no samples: the number behind each stack is 0",
        ];
        assert!(faults.len() == 3 && faults.iter().zip(said).all(|(fault, said)| fault.ends_with(said)), "{faults:?}");
        fs::remove_dir_all(folder).unwrap();
    }
}
