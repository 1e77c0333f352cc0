//! Makes batches of what functions cost and called, from the parts that a model's costs are written in.

use std::collections::HashMap;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use super::super::{
    Rate, SampledEvent, SamplingSetup, StackBatch, StackFrame, StackFrameId, Task, TaskCosts, TaskId, UnwindMethod,
    WaitingSamples,
};
use super::samples::PATIENCE;
use super::{CAPACITY, LiveStacks, Unsampled};
use crate::callgrind::{self, CallgrindFile, CallgrindFunction, FunctionId};
use crate::events::Event;
use crate::events::emulate::{COSTS, Formula, cost};
use crate::regions::clock;
use crate::sampling::LastRound;
use crate::sources::emulate::ProgramPart;
use crate::units::WallNs;

/// The time between batches: names and sums are written twice a second at most.
const PERIOD: Duration = Duration::from_millis(500);

impl LiveStacks {
    /// The call graphs of a model that counts these events, by what its source hands on.
    ///
    /// # Errors
    /// Returns the operating system's error if no thread can be started.
    pub fn of_model(events: &[Event], parts: Receiver<ProgramPart>) -> io::Result<Self> {
        let modelled: Vec<_> = events.iter().filter_map(|event| Some((event, Formula::of(event)?))).collect();
        let sampled = |(event, _): &(&Event, Formula)| SampledEvent {
            name: event.name.clone(),
            unit: event.unit.clone(),
            rate: Rate::Period(1),
        };
        let sampled =
            SamplingSetup { events: modelled.iter().map(sampled).collect(), call_graph: UnwindMethod::Modelled };
        let unsampled = events.iter().filter(|event| Formula::of(event).is_none());
        let absent =
            |event: &Event| Unsampled { name: event.name.clone(), source: io::Error::from(io::ErrorKind::Unsupported) };
        let unsampled = unsampled.map(absent).collect();
        let formulas = modelled.into_iter().map(|(_, formula)| formula).collect();
        let (sender, batches) = bounded(CAPACITY);
        let (begin, begun) = bounded::<(u64, LastRound)>(1);
        let work =
            move || begun.recv().map_or((), |(origin, _)| GraphSender::new(formulas, origin).run(&parts, &sender));
        thread::Builder::new().name("perfprop-calls".into()).spawn(work)?;
        Ok(Self { batches, sampled, begin, unsampled, waiting: WaitingSamples::default(), commands: None })
    }
}

/// What was sent so far, and what is to be sent next.
struct GraphSender {
    formulas: Vec<Formula>,
    frames: HashMap<CallgrindFunction, StackFrameId>,
    tasks: HashMap<Task, TaskId>,
    graphs: HashMap<TaskId, callgrind::CallGraph>,
    next: StackBatch,
    /// The time of the kernel's clock that batches count from.
    origin: u64,
}

impl GraphSender {
    fn new(formulas: Vec<Formula>, origin: u64) -> Self {
        let (frames, tasks, graphs) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self { formulas, frames, tasks, graphs, next: StackBatch::default(), origin }
    }

    /// Runs until the source ends.
    fn run(&mut self, parts: &Receiver<ProgramPart>, batches: &Sender<StackBatch>) {
        let mut due = Instant::now() + PERIOD;
        loop {
            match parts.recv_deadline(due) {
                Ok(part) => self.take(&part),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if Instant::now() >= due {
                due = Instant::now() + PERIOD;
                // Where there is no room it waits, and grows by what comes meanwhile.
                if !batches.is_full() && batches.send(self.batch()).is_err() {
                    return;
                }
            }
        }
        // Nobody waits for it any more if there is still no room.
        let _ = batches.send_timeout(self.batch(), PATIENCE);
    }

    fn take(&mut self, part: &ProgramPart) {
        let mut parts = CallgrindFile::new();
        let wrong = part.text.lines().filter(|line| parts.line(line).is_err()).count();
        self.next.losses.malformed += wrong as u64;
        parts.finish();
        self.next.losses.cut += u64::from(!parts.is_whole);
        let places: Vec<_> = parts.events.iter().map(|name| cost(name)).collect();
        let formulas = self.formulas.clone();
        let counted = |costs: &[u64]| -> Vec<u64> {
            let mut all = [0; COSTS];
            let known = places.iter().zip(costs).filter_map(|(place, cost)| Some(((*place)?, *cost)));
            known.for_each(|(place, cost)| all[place] = cost);
            formulas.iter().map(|formula| formula.count(&all)).collect()
        };
        let ids: Vec<_> = parts.functions.iter().map(|function| self.function(function)).collect();
        let task = self.task(Task { pid: part.pid, tid: part.pid, comm: parts.program.clone() });
        let events = self.formulas.len();
        let graph = self.graphs.entry(task).or_insert_with(|| callgrind::CallGraph::new(events));
        for (function, costs) in parts.graph.own() {
            graph.add_own(ids[function.0 as usize], &counted(costs));
        }
        for (caller, callee, calls) in parts.graph.calls() {
            let (caller, callee) = (ids[caller.0 as usize], ids[callee.0 as usize]);
            graph.add_calls(caller, callee, calls.count, &counted(&calls.costs));
        }
    }

    fn function(&mut self, function: &CallgrindFunction) -> FunctionId {
        let next = StackFrameId(self.frames.len() as u32);
        let id = *self.frames.entry(function.clone()).or_insert(next);
        if id == next {
            let (name, module) = (function.plain_name().to_owned(), function.module.clone());
            let file = Some(function.file.clone()).filter(|file| !file.is_empty());
            self.next.frames.push(StackFrame { name, module, file, ..StackFrame::default() });
        }
        FunctionId(id.0)
    }

    fn task(&mut self, task: Task) -> TaskId {
        let next = TaskId(self.tasks.len() as u32);
        let id = *self.tasks.entry(task.clone()).or_insert(next);
        if id == next {
            self.next.tasks.push(task);
        }
        id
    }

    /// What came since the last batch.
    fn batch(&mut self) -> StackBatch {
        let at = WallNs(clock().saturating_sub(self.origin));
        let mut costs: Vec<_> = self.graphs.drain().map(|(task, graph)| TaskCosts::new(task, at, &graph)).collect();
        costs.sort_by_key(|costs| costs.task);
        let next = StackBatch { losses: self.next.losses, ..StackBatch::default() };
        StackBatch { costs, ..std::mem::replace(&mut self.next, next) }
    }
}
