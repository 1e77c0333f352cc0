//! Draws the profiles of commits as flame graphs.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use super::error::SiteError;
use super::{SiteCommit, SiteProfile};
use crate::compare::ProfileDifference;
use crate::files::file_stem;
use crate::history::results::ProfileOrigin;
use crate::history::{on_all_cpus, short};
use crate::monitor::MeasureChoice;
use crate::names::shown;
use crate::profile::Tree;
use crate::rates::Confidence;
use crate::stack_formats::{InputFormat, OutputFormat, ReadOptions, WriteOptions, difference_options, read, write};

/// The pictures of a site by their names, and what is wrong with profiles.
type Pictures = (Vec<(String, Vec<u8>)>, Vec<String>);

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

/// Draws all profiles. One that can't be read has a picture that says so.
pub(super) fn pictures(commits: &[SiteCommit<'_>]) -> Result<Pictures, SiteError> {
    let (mut all, mut faults) = (BTreeMap::new(), Vec::new());
    let profiles: Vec<&SiteProfile<'_>> = commits.iter().flat_map(|commit| &commit.profiles).collect();
    for (one, made) in profiles.iter().zip(on_all_cpus(&profiles, |one| picture(one))) {
        let (picture, fault) = made?;
        faults.extend(fault);
        all.insert(one.file.clone(), picture);
    }
    Ok((all.into_iter().collect(), faults))
}

/// The picture of a profile, as far as that can be read, and why not further.
fn picture(one: &SiteProfile<'_>) -> Result<(Vec<u8>, Option<String>), SiteError> {
    let path = &one.stored.path;
    let (tree, fault) = stacks(path)?;
    let mut options = WriteOptions { title: title(one), ..WriteOptions::default() };
    let mut shown = tree;
    if let Some(before) = one.before {
        // What is wrong with that one is said of its own picture.
        let (tree_before, _) = stacks(&before.path)?;
        let title = format!("{}, since {}", title(one), short(&before.of.commit));
        // One profile of each commit: nothing tells what differs by more than chance.
        let found = ProfileDifference::of(&[&tree_before], &[&shown], MeasureChoice::Usual, Confidence::DEFAULT);
        let Some(found) = found else {
            let why = format!("{}: nothing to compare with {}", name(path), name(&before.path));
            return Ok((Vec::new(), Some(why)));
        };
        options = difference_options(&found, title);
        options
            .difference
            .iter_mut()
            .for_each(|shown| shown.note = "one profile of each: no function is marked".into());
        shown = found.tree;
    }
    let mut out = Vec::new();
    let written = write(&shown, OutputFormat::Svg, &options, &mut out);
    let fault = fault.filter(|_| one.before.is_none());
    Ok((out, fault.or(written.err().map(|error| format!("{}: {error}", name(path))))))
}

/// The stacks of a file, as far as they can be read, and why not further.
fn stacks(path: &Path) -> Result<(Tree, Option<String>), SiteError> {
    let system = |error| SiteError::System(path.to_owned(), error);
    let options = ReadOptions { format: Some(InputFormat::Folded), ..ReadOptions::default() };
    let imported = read(BufReader::new(File::open(path).map_err(system)?), &options);
    Ok((imported.tree, imported.fault.map(|fault| format!("{}: {fault}", name(path)))))
}

fn name(path: &Path) -> String {
    shown(&path.to_string_lossy()).into_owned()
}

/// What stands above a picture.
fn title(one: &SiteProfile<'_>) -> String {
    let of = &one.stored.of;
    let event = if of.event.is_empty() { String::new() } else { format!(", {}", of.event) };
    format!("{} at {}{event}", of.benchmark, short(&of.commit))
}
