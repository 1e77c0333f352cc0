//! Writes JSON for the Firefox Profiler: a track for each event.
//!
//! A tree knows no times, so that samples follow one another at even distances.

use std::io::Write;
use std::time::SystemTime;

use fxprof_processed_profile::{
    CategoryColor, CategoryPairHandle, CpuDelta, Frame as Place, FrameFlags, FrameHandle, FrameInfo, Profile,
    SamplingInterval, StackHandle, ThreadHandle, Timestamp, WeightType,
};

use super::error::WriteError;
use super::options::WriteOptions;
use crate::profile::{EventId, Frame, FrameKind, NodeId, Tree};

/// The most samples of a file. A weight fits into 31 bits there; a larger one becomes several samples.
const MOST_SAMPLES: u64 = 4_000_000;

pub(super) fn write(tree: &Tree, options: &WriteOptions, out: &mut dyn Write) -> Result<(), WriteError> {
    let interval = SamplingInterval::from_millis(1);
    // The same tree makes the same file, whenever it is written.
    let mut profile = Profile::new(&options.title, SystemTime::UNIX_EPOCH.into(), interval);
    profile.set_symbolicated(true);
    let categories = Categories {
        user: profile.add_category("User", CategoryColor::Yellow).into(),
        kernel: profile.add_category("Kernel", CategoryColor::Orange).into(),
        process: profile.add_category("Process", CategoryColor::Gray).into(),
    };
    let process = profile.add_process(&options.title, 1, Timestamp::from_nanos_since_reference(0));
    for event in tree.event_ids() {
        let thread = profile.add_thread(
            process,
            event.index() as u32 + 1,
            Timestamp::from_nanos_since_reference(0),
            event.index() == 0,
        );
        profile.set_thread_name(thread, &tree.event_of(event).name);
        let weights = if options.unit.name(tree, event) == "bytes" { WeightType::Bytes } else { WeightType::Samples };
        profile.set_thread_samples_weight_type(thread, weights);
        if options.event(tree) == Some(event) {
            profile.add_initial_visible_thread(thread);
            profile.add_initial_selected_thread(thread);
        }
        ThreadTrack { profile: &mut profile, thread, categories }.fill(tree, event, options)?;
    }
    serde_json::to_writer(out, &profile).map_err(|error| WriteError::Io(error.into()))
}

#[derive(Clone, Copy)]
struct Categories {
    user: CategoryPairHandle,
    kernel: CategoryPairHandle,
    process: CategoryPairHandle,
}

impl Categories {
    fn of(self, frame: &Frame<'_>) -> CategoryPairHandle {
        match frame.kind {
            FrameKind::Process => self.process,
            _ if frame.is_kernel() => self.kernel,
            _ => self.user,
        }
    }
}

struct ThreadTrack<'a> {
    profile: &'a mut Profile,
    thread: ThreadHandle,
    categories: Categories,
}

impl ThreadTrack<'_> {
    fn fill(&mut self, tree: &Tree, event: EventId, options: &WriteOptions) -> Result<(), WriteError> {
        let frames: Vec<FrameHandle> = tree.frames().map(|frame| self.frame(&frame)).collect();
        // Parents come before their children in the order of numbers.
        let mut stacks: Vec<Option<StackHandle>> = vec![None; tree.len()];
        let mut number = 0;
        for node in tree.walk() {
            let own = options.unit.of(&node, event);
            let frame = frames[node.frame_id().index()];
            let parent = node.parent().filter(|&parent| parent != NodeId::ROOT);
            let above = parent.and_then(|parent| stacks[parent.index()]);
            // The root is no frame, but for what was counted on itself.
            if node.depth() > 0 || own > 0 {
                stacks[node.id().index()] = Some(self.profile.intern_stack(self.thread, above, frame));
            }
            number += own.div_ceil(i32::MAX as u64);
            if number > MOST_SAMPLES {
                return Err(WriteError::TooLarge(tree.event_of(event).name.clone()));
            }
            self.sample(stacks[node.id().index()], own, number);
        }
        Ok(())
    }

    fn sample(&mut self, stack: Option<StackHandle>, mut weight: u64, number: u64) {
        while weight > 0 {
            let part = i32::try_from(weight).unwrap_or(i32::MAX);
            let time = Timestamp::from_nanos_since_reference(number.saturating_mul(1_000_000));
            self.profile.add_sample(self.thread, time, stack, CpuDelta::ZERO, part);
            weight -= u64::from(part.unsigned_abs());
        }
    }

    fn frame(&mut self, frame: &Frame<'_>) -> FrameHandle {
        let place = match (frame.file, frame.module) {
            ("", "") => String::new(),
            ("", module) => format!(" ({module})"),
            (file, _) => match frame.line {
                Some(line) => format!(" ({file}:{line})"),
                None => format!(" ({file})"),
            },
        };
        let label = self.profile.intern_string(&format!("{}{place}", frame.name));
        let category_pair = self.categories.of(frame);
        let info = FrameInfo { frame: Place::Label(label), category_pair, flags: FrameFlags::empty() };
        self.profile.intern_frame(self.thread, info)
    }
}
