//! Encodes batches of samples as lines of columns, and decodes them.

use serde::{Deserialize, Serialize};

use crate::stacks::{
    CopySwitch, Losses, RunShare, StackBatch, StackFrame, StackFrameId, StackId, StackNode, StackSample, Task,
    TaskCosts, TaskId, UnnamedFile,
};
use crate::units::WallNs;

/// A batch in columns. A column whose entries are all the same is that entry alone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StacksLine {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    frames: Vec<StackFrame>,
    /// The calling stack and the called frame of each, by their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stacks: Vec<StackNode>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tasks: Vec<Task>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    renamed: Vec<(StackFrameId, StackFrame)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unnamed: Vec<UnnamedFile>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    copies: Vec<CopySwitch>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    shares: Vec<RunShare>,
    /// The time of the first sample.
    #[serde(default)]
    at_ns: WallNs,
    /// How long after the sample before.
    #[serde(default)]
    after_ns: Vec<i64>,
    #[serde(default)]
    task: Column<TaskId>,
    #[serde(default)]
    cpu: Column<u32>,
    #[serde(default)]
    event: Column<u32>,
    #[serde(default)]
    weight: Column<u64>,
    #[serde(default)]
    stack: Vec<Option<StackId>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    costs: Vec<TaskCosts>,
    #[serde(default)]
    losses: Losses,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Column<T> {
    Each(Vec<T>),
    All(T),
}

impl<T> Default for Column<T> {
    fn default() -> Self {
        Self::Each(Vec::new())
    }
}

impl<T: Copy + PartialEq> FromIterator<T> for Column<T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        let entries: Vec<_> = entries.into_iter().collect();
        match entries[..] {
            [first, ..] if entries.iter().all(|entry| *entry == first) => Self::All(first),
            _ => Self::Each(entries),
        }
    }
}

impl<T: Copy> Column<T> {
    /// Whether it can be the column of so many samples.
    fn fits(&self, samples: usize) -> bool {
        match self {
            Self::All(_) => true,
            Self::Each(entries) => entries.len() == samples,
        }
    }

    fn get(&self, index: usize) -> T {
        match self {
            Self::All(entry) => *entry,
            Self::Each(entries) => entries[index],
        }
    }
}

impl From<&StackBatch> for StacksLine {
    fn from(batch: &StackBatch) -> Self {
        let samples = || batch.samples.iter();
        let first = batch.samples.first().map_or(WallNs(0), |sample| sample.at);
        let before = std::iter::once(first).chain(samples().map(|sample| sample.at));
        let after = samples().zip(before).map(|(sample, before)| sample.at.0.wrapping_sub(before.0).cast_signed());
        Self {
            frames: batch.frames.clone(),
            stacks: batch.stacks.clone(),
            tasks: batch.tasks.clone(),
            renamed: batch.renamed.clone(),
            unnamed: batch.unnamed.clone(),
            notes: batch.notes.clone(),
            copies: batch.copies.clone(),
            shares: batch.shares.clone(),
            at_ns: first,
            after_ns: after.collect(),
            task: samples().map(|sample| sample.task).collect(),
            cpu: samples().map(|sample| sample.cpu).collect(),
            event: samples().map(|sample| sample.event).collect(),
            weight: samples().map(|sample| sample.weight).collect(),
            stack: samples().map(|sample| sample.stack).collect(),
            costs: batch.costs.clone(),
            losses: batch.losses,
        }
    }
}

impl TryFrom<StacksLine> for StackBatch {
    type Error = String;

    fn try_from(line: StacksLine) -> Result<Self, String> {
        let count = line.after_ns.len();
        let fit = line.task.fits(count) && line.cpu.fits(count) && line.event.fits(count) && line.weight.fits(count);
        if !fit || line.stack.len() != count {
            return Err(format!("the columns of {count} samples are not all of that length"));
        }
        let mut at = line.at_ns;
        let samples = line.after_ns.iter().enumerate().map(|(i, &after)| {
            at = WallNs(at.0.wrapping_add_signed(after));
            StackSample {
                at,
                task: line.task.get(i),
                cpu: line.cpu.get(i),
                event: line.event.get(i),
                weight: line.weight.get(i),
                stack: line.stack[i],
            }
        });
        let samples = samples.collect();
        let StacksLine { frames, stacks, tasks, renamed, unnamed, notes, copies, shares, costs, losses, .. } = line;
        Ok(Self { frames, stacks, tasks, renamed, unnamed, notes, copies, shares, samples, costs, losses })
    }
}
