//! Gathers batches from a channel into a profile tree that grows while others look at it.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crossbeam_channel::Receiver;

use super::{Naming, SamplingSetup, StackBatch, StackQuality, StackTree};
use crate::profile::{Tree, TreeOptions};

/// A thread that puts samples into a tree, so that no screen has to.
#[derive(Debug)]
pub struct Gathering {
    shared: Arc<Mutex<Gathered>>,
    sampled: SamplingSetup,
    thread: Option<JoinHandle<()>>,
}

/// What was gathered so far.
#[derive(Debug)]
pub struct Gathered {
    stacks: StackTree,
    quality: StackQuality,
}

impl Gathered {
    /// The tree: above all of a task its name, repeats folded, functions without lines.
    pub fn tree(&self) -> &Tree {
        self.stacks.tree()
    }

    /// How good what was gathered is.
    pub fn quality(&self) -> &StackQuality {
        &self.quality
    }
}

impl Gathering {
    /// Starts to gather; ends with the channel.
    ///
    /// # Errors
    /// Returns the operating system's error if no thread can be started.
    pub fn start(batches: Receiver<StackBatch>, sampled: SamplingSetup, options: TreeOptions) -> io::Result<Self> {
        let stacks = StackTree::new(&sampled, options, Naming::default(), |_| true);
        let quality = StackQuality::of(sampled.call_graph);
        let shared = Arc::new(Mutex::new(Gathered { stacks, quality }));
        let into = Arc::clone(&shared);
        let gather = move || {
            for batch in batches {
                let mut gathered = lock(&into);
                gathered.quality.take(&batch);
                if gathered.stacks.take(&batch).is_err() {
                    gathered.quality.losses.malformed += 1;
                }
                gathered.stacks.settle();
            }
        };
        let thread = thread::Builder::new().name("profile".into()).spawn(gather)?;
        Ok(Self { shared, sampled, thread: Some(thread) })
    }

    /// What is gathered; nothing is added while it is looked at, and the kernel's samples wait.
    pub fn look(&self) -> MutexGuard<'_, Gathered> {
        lock(&self.shared)
    }

    /// What is sampled, and how.
    pub fn sampled(&self) -> &SamplingSetup {
        &self.sampled
    }

    /// Whether samples may still come.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Waits until the channel has ended and all of it is gathered.
    pub fn finish(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A thread that panicked left whole samples behind.
fn lock(shared: &Mutex<Gathered>) -> MutexGuard<'_, Gathered> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
