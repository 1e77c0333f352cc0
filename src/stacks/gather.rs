//! Gathers batches from channels into a profile tree that grows while others look at it.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crossbeam_channel::{Receiver, never, select};

use super::{Naming, SamplingSetup, StackBatch, StackQuality, StackTree, UnwindMethod};
use crate::profile::{Tree, TreeOptions};
use crate::regions::RegionBatch;
use crate::units::WallNs;

/// A thread that puts samples and regions into a tree, so that no screen has to.
#[derive(Debug)]
pub struct Gathering {
    shared: Arc<Mutex<Gathered>>,
    thread: Option<JoinHandle<()>>,
}

/// What was gathered so far.
#[derive(Debug)]
pub struct Gathered {
    stacks: StackTree,
    quality: StackQuality,
    /// Batches of which it isn't known yet which regions were open.
    waiting: VecDeque<StackBatch>,
}

impl Gathered {
    /// The tree: above all of a task its name, repeats folded, functions without lines. Below that, regions.
    pub fn tree(&self) -> &Tree {
        self.stacks.tree()
    }

    /// Whether anything was sampled or counted so far, or it is to be said why not.
    pub fn has_any(&self) -> bool {
        self.tree().event_ids().next().is_some() || !self.quality.unread.is_empty()
    }

    /// How good what was gathered is.
    pub fn quality(&self) -> &StackQuality {
        &self.quality
    }

    fn take(&mut self, batch: &StackBatch) {
        self.quality.take(batch);
        if self.stacks.take(batch).is_err() {
            self.quality.losses.malformed += 1;
        }
    }

    fn take_regions(&mut self, batch: &RegionBatch) {
        if self.stacks.take_regions(batch).is_err() {
            self.quality.losses.malformed += 1;
        }
        self.quality.take_regions(self.stacks.regions());
        self.place(self.stacks.knows_regions_until());
    }

    /// Places the samples of batches that end before a time.
    fn place(&mut self, until: WallNs) {
        let is_due = |batch: &StackBatch| batch.samples.last().is_none_or(|sample| sample.at <= until);
        while self.waiting.front().is_some_and(is_due) {
            if let Some(batch) = self.waiting.pop_front() {
                self.take(&batch);
            }
        }
        let oldest = self.waiting.front().and_then(|batch| batch.samples.first());
        self.stacks.forget_open_before(oldest.map_or(until, |sample| sample.at.min(until)));
    }
}

impl Gathering {
    /// Starts to gather what was sampled so, and regions; ends when both channels have. Samples wait until it is known
    /// which regions were open, as long as there is a channel of those.
    ///
    /// # Errors
    /// Returns the operating system's error if no thread can be started.
    pub fn start(
        stacks: Option<(Receiver<StackBatch>, SamplingSetup)>,
        regions: Option<Receiver<RegionBatch>>,
        options: TreeOptions,
    ) -> io::Result<Self> {
        let (mut batches, sampled) = stacks.map_or_else(|| (None, nothing_sampled()), |(b, s)| (Some(b), s));
        let mut regions = regions;
        let tree = StackTree::new(&sampled, options, Naming::default(), |_| true);
        let quality = StackQuality::of(sampled.call_graph);
        let shared = Arc::new(Mutex::new(Gathered { stacks: tree, quality, waiting: VecDeque::new() }));
        let into = Arc::clone(&shared);
        let gather = move || {
            while batches.is_some() || regions.is_some() {
                let (of_stacks, of_regions) =
                    (batches.clone().unwrap_or_else(never), regions.clone().unwrap_or_else(never));
                select! {
                    recv(of_stacks) -> batch => match batch {
                        Ok(batch) => {
                            let mut gathered = lock(&into);
                            gathered.waiting.push_back(batch);
                            if regions.is_none() {
                                gathered.place(WallNs(u64::MAX));
                            }
                            gathered.stacks.settle();
                        }
                        Err(_) => batches = None,
                    },
                    recv(of_regions) -> batch => match batch {
                        Ok(batch) => {
                            let mut gathered = lock(&into);
                            gathered.take_regions(&batch);
                            gathered.stacks.settle();
                        }
                        Err(_) => {
                            regions = None;
                            lock(&into).place(WallNs(u64::MAX));
                        }
                    },
                }
            }
        };
        let thread = thread::Builder::new().name("profile".into()).spawn(gather)?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// What is gathered; nothing is added while it is looked at, and the kernel's samples wait.
    pub fn look(&self) -> MutexGuard<'_, Gathered> {
        lock(&self.shared)
    }

    /// Whether samples may still come.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Waits until the channels have ended and all of it is gathered.
    pub fn finish(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Where regions alone make the tree.
pub(super) fn nothing_sampled() -> SamplingSetup {
    SamplingSetup { events: Vec::new(), call_graph: UnwindMethod::Fp }
}

/// A thread that panicked left whole samples behind.
fn lock(shared: &Mutex<Gathered>) -> MutexGuard<'_, Gathered> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
