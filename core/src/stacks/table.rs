//! Collects the frames, stacks and tasks that batches define.

use rustc_hash::FxHashMap;

use super::{StackBatch, StackFrame, StackFrameId, StackId, StackNode, Task, TaskId, Undefined};

/// The definitions of all batches so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StackTable {
    frames: Vec<StackFrame>,
    stacks: Vec<StackNode>,
    tasks: Vec<Task>,
    /// The last task of the first thread of each process.
    first_threads: FxHashMap<i32, TaskId>,
}

impl StackTable {
    /// Takes over what a batch defines, and checks all that it names.
    ///
    /// # Errors
    /// Fails if a stack or a sample names what is not defined; then nothing is taken over.
    pub fn define(&mut self, batch: &StackBatch) -> Result<(), Undefined> {
        let frames = self.frames.len() + batch.frames.len();
        let stacks = self.stacks.len() + batch.stacks.len();
        let tasks = self.tasks.len() + batch.tasks.len();
        for (node, id) in batch.stacks.iter().zip(self.stacks.len()..) {
            Undefined::check("frame", node.frame.0, frames)?;
            // Callers come first, so no stack can be its own caller.
            node.caller.map_or(Ok(()), |caller| Undefined::check("stack", caller.0, id))?;
        }
        for sample in &batch.samples {
            Undefined::check("task", sample.task.0, tasks)?;
            sample.stack.map_or(Ok(()), |stack| Undefined::check("stack", stack.0, stacks))?;
        }
        for costs in &batch.costs {
            Undefined::check("task", costs.task.0, tasks)?;
            let called = costs.calls.iter().flat_map(|&(caller, callee, ..)| [caller, callee]);
            let mut known = costs.own.iter().map(|(function, _)| *function).chain(called);
            known.try_for_each(|frame| Undefined::check("frame", frame.0, frames))?;
        }
        for (frame, _) in &batch.renamed {
            Undefined::check("frame", frame.0, frames)?;
        }
        self.frames.extend_from_slice(&batch.frames);
        for (number, frame) in &batch.renamed {
            self.frames[number.0 as usize].clone_from(frame);
        }
        self.stacks.extend_from_slice(&batch.stacks);
        for (task, number) in batch.tasks.iter().zip(self.tasks.len()..) {
            if task.pid == task.tid {
                self.first_threads.insert(task.pid, TaskId(number as u32));
            }
        }
        self.tasks.extend_from_slice(&batch.tasks);
        Ok(())
    }

    /// A frame by its number.
    pub fn frame(&self, id: StackFrameId) -> Option<&StackFrame> {
        self.frames.get(id.0 as usize)
    }

    /// A task by its number.
    pub fn task(&self, id: TaskId) -> Option<&Task> {
        self.tasks.get(id.0 as usize)
    }

    /// The first thread of a process, under its last name; `None` where it wasn't sampled.
    pub fn first_thread(&self, pid: i32) -> Option<&Task> {
        self.task(*self.first_threads.get(&pid)?)
    }

    /// All tasks, in the order of their numbers.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// A stack by its number: its innermost frame, and the stack that called that.
    pub fn stack(&self, id: StackId) -> Option<StackNode> {
        self.stacks.get(id.0 as usize).copied()
    }

    /// All frames, in the order of their numbers.
    pub fn frames(&self) -> &[StackFrame] {
        &self.frames
    }

    /// All stacks, in the order of their numbers: callers before those that they call.
    pub fn stacks(&self) -> &[StackNode] {
        &self.stacks
    }

    /// The frames of a stack, the innermost first.
    pub fn innermost_first(&self, stack: Option<StackId>) -> impl Iterator<Item = StackFrameId> + '_ {
        let mut next = stack;
        std::iter::from_fn(move || {
            let node = self.stack(next?)?;
            next = node.caller;
            Some(node.frame)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::super::StackSample;
    use super::*;
    use crate::units::WallNs;

    fn frame(name: &str) -> StackFrame {
        StackFrame { name: name.into(), ..StackFrame::default() }
    }

    fn sample(task: u32, stack: u32) -> StackSample {
        StackSample { at: WallNs(0), task: TaskId(task), cpu: 0, event: 0, weight: 1, stack: Some(StackId(stack)) }
    }

    fn node(caller: Option<u32>, frame: u32) -> StackNode {
        StackNode { caller: caller.map(StackId), frame: StackFrameId(frame) }
    }

    #[test]
    fn stacks_grow_over_batches_and_share_their_beginnings() {
        let mut table = StackTable::default();
        let task = Task { pid: 1, tid: 1, comm: "a".into() };
        let first = StackBatch {
            frames: vec![frame("main"), frame("f")],
            stacks: vec![node(None, 0), node(Some(0), 1)],
            tasks: vec![task],
            samples: vec![sample(0, 1)],
            ..StackBatch::default()
        };
        table.define(&first).unwrap();
        let second = StackBatch { frames: vec![frame("g")], stacks: vec![node(Some(1), 2)], ..StackBatch::default() };
        table.define(&second).unwrap();
        let names = |stack| -> Vec<_> {
            table.innermost_first(Some(StackId(stack))).map(|id| table.frame(id).unwrap().name.clone()).collect()
        };
        assert_eq!(names(2), ["g", "f", "main"]);
        assert_eq!(names(1), ["f", "main"]);
        assert_eq!(table.innermost_first(None).count(), 0);
    }

    #[test]
    fn what_is_not_defined_is_an_error_and_changes_nothing() {
        let mut table = StackTable::default();
        let own_caller = StackBatch { frames: vec![frame("f")], stacks: vec![node(Some(0), 0)], ..Default::default() };
        assert_eq!(table.define(&own_caller), Err(Undefined { kind: "stack", id: 0 }));
        let no_frame = StackBatch { stacks: vec![node(None, 7)], ..Default::default() };
        assert_eq!(table.define(&no_frame).unwrap_err().to_string(), "frame 7 is not defined");
        let no_task = StackBatch { samples: vec![sample(0, 0)], ..Default::default() };
        assert_eq!(table.define(&no_task), Err(Undefined { kind: "task", id: 0 }));
        assert_eq!(table, StackTable::default());
    }

    proptest! {
        #[test]
        fn every_walk_ends(nodes in prop::collection::vec((prop::option::of(0u32..20), 0u32..3), 0..20)) {
            let mut table = StackTable::default();
            let frames = vec![frame("a"), frame("b"), frame("c")];
            let stacks = nodes.iter().map(|&(caller, frame)| node(caller, frame)).collect();
            if table.define(&StackBatch { frames, stacks, ..Default::default() }).is_ok() {
                for id in 0..nodes.len() as u32 {
                    prop_assert!(table.innermost_first(Some(StackId(id))).count() <= nodes.len());
                }
            }
        }
    }
}
