//! Labels samples of a profile with what isn't part of their stacks: process, thread and regions.

use std::collections::{BTreeMap, BTreeSet};

use super::super::timed::TimedRun;
use super::message::Label;
use super::texts::Texts;
use crate::names::in_path;
use crate::profile::{Amount, EventId, FrameId, FrameKind, NodeId, Tree};
use crate::stacks::TaskId;

/// What was sampled of each task, by paths.
pub(super) struct TaskAmounts<'a> {
    run: &'a TimedRun,
    processes: BTreeMap<i32, &'a str>,
    /// The events that have samples.
    pub(super) events: BTreeSet<EventId>,
    /// For each event of the tree, by its number.
    amounts: BTreeMap<(NodeId, TaskId), Vec<Amount>>,
}

impl<'a> TaskAmounts<'a> {
    pub(super) fn of(run: &'a TimedRun, tree: &Tree) -> Self {
        let all = tree.event_ids().count();
        let mut amounts: BTreeMap<_, Vec<Amount>> = BTreeMap::new();
        for sample in &run.timeline.samples {
            let of_path = amounts.entry((sample.node, sample.task)).or_insert_with(|| vec![Amount::ZERO; all]);
            let amount = &mut of_path[sample.event.index()];
            *amount = amount.plus(Amount { samples: 1, weight: sample.weight });
        }
        let events = run.timeline.samples.iter().map(|sample| sample.event).collect();
        Self { run, processes: run.processes(), events, amounts }
    }

    /// The tasks that were sampled on a path.
    pub(super) fn at(&self, node: NodeId) -> impl Iterator<Item = (TaskId, &[Amount])> {
        let tasks = self.amounts.range((node, TaskId(0))..=(node, TaskId(u32::MAX)));
        tasks.map(|((_, task), amounts)| (*task, amounts.as_slice()))
    }

    /// `process`, if its name is known, `pid`, `thread` and `tid`; no number where it isn't known, which is 0 or below.
    pub(super) fn labels(&self, task: TaskId, texts: &mut Texts) -> Vec<Label> {
        let Some(task) = self.run.task(task) else { return Vec::new() };
        let process = self.processes.get(&task.pid).map(|name| text("process", name, texts));
        let pid = known_number("pid", task.pid, texts);
        let thread = text("thread", &task.comm, texts);
        let tid = known_number("tid", task.tid, texts);
        process.into_iter().chain(pid).chain([thread]).chain(tid).collect()
    }
}

/// `region`: the regions that were open on a path, the outermost first, with slashes between them; `None` without any.
pub(super) fn region_label(tree: &Tree, path: &[FrameId], texts: &mut Texts) -> Option<Label> {
    let regions = path.iter().map(|&frame| tree.frame_of(frame)).filter(|frame| frame.kind == FrameKind::Region);
    let names: Vec<_> = regions.map(|frame| in_path(frame.name).into_owned()).collect();
    (!names.is_empty()).then(|| text("region", &names.join("/"), texts))
}

fn text(key: &str, value: &str, texts: &mut Texts) -> Label {
    Label { key: texts.id(key), str: texts.id(value), ..Label::default() }
}

fn known_number(key: &str, value: i32, texts: &mut Texts) -> Option<Label> {
    (value > 0).then(|| Label { key: texts.id(key), num: value.into(), ..Label::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Frame;

    #[test]
    fn regions_of_a_path_are_one_label() {
        let (mut tree, mut texts) = (Tree::default(), Texts::new());
        let region = |name| Frame { kind: FrameKind::Region, ..Frame::function(name) };
        let path = [Frame::function("p"), region("load"), region("parse"), Frame::function("f")];
        let path: Vec<_> = path.iter().map(|frame| tree.frame(frame)).collect();
        assert_eq!(region_label(&tree, &path[..1], &mut texts), None);
        let label = region_label(&tree, &path, &mut texts).map(|label| (label.key, label.str, label.num));
        let [key, value] = ["region", "load/parse"].map(|text| texts.id(text));
        assert_eq!(label, Some((key, value, 0)));
        // A slash in a name is none between two of them.
        let path = [region("a/b"), region("c")].map(|frame| tree.frame(&frame));
        let label = region_label(&tree, &path, &mut texts).map(|label| label.str);
        assert_eq!(label, Some(texts.id("a\\/b/c")));
    }
}
