//! Writes JSON for the Firefox Profiler: a track for each thread of a recording.
//!
//! A tree knows no times. What only a tree has is a track for each event, in which samples follow one another at even
//! distances.

mod frames;

use std::collections::HashMap;
use std::io::Write;
use std::time::{Duration, SystemTime};

use fxprof_processed_profile::{
    CpuDelta, Profile, ReferenceTimestamp, SamplingInterval, StackHandle, ThreadHandle, Timestamp, WeightType,
};

use self::frames::{FrameTable, ThreadFrames};
use super::error::WriteError;
use super::options::{WriteOptions, WrittenNumber};
use super::timed::{ThreadTrack, TimedRun, summed};
use crate::profile::{EventId, Tree};
use crate::stacks::{OFF_CPU, TimedSample};
use crate::units::WallNs;

/// The most samples that an event may have more than were taken. A weight fits into 31 bits there; a larger one becomes several
/// samples.
const MOST_SAMPLES: u64 = 4_000_000;

/// The time between samples where it isn't known, in ns.
const INTERVAL: u64 = 1_000_000;

pub(super) fn write(tree: &Tree, options: &WriteOptions, out: &mut dyn Write) -> Result<(), WriteError> {
    let run = options.run.as_ref();
    let tracks = run.map(TimedRun::tracks).unwrap_or_default();
    let interval = run.zip(options.event(tree)).and_then(|(run, event)| run.interval_ns(tree, event));
    let interval = SamplingInterval::from_nanos(interval.unwrap_or(INTERVAL));
    let mut profile = Profile::new(&options.title, started(run), interval);
    profile.set_symbolicated(true);
    let frames = FrameTable::new(tree, &mut profile);
    let mut writer = ProfileWriter { tree, options, profile, frames };
    if let Some(run) = run {
        writer.tracks(run, &tracks)?;
    }
    writer.sums(&summed(tree, &tracks), tracks.is_empty())?;
    serde_json::to_writer(out, &writer.profile).map_err(|error| WriteError::Io(error.into()))
}

/// When a run began; the same tree makes the same file, whenever it is written.
fn started(run: Option<&TimedRun>) -> ReferenceTimestamp {
    let since = run.and_then(|run| Duration::try_from_secs_f64(run.header.started).ok());
    since.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since)).unwrap_or(SystemTime::UNIX_EPOCH).into()
}

fn timestamp(time: WallNs) -> Timestamp {
    Timestamp::from_nanos_since_reference(time.0)
}

struct ProfileWriter<'a> {
    tree: &'a Tree,
    options: &'a WriteOptions,
    profile: Profile,
    frames: FrameTable<'a>,
}

impl ProfileWriter<'_> {
    /// Writes each thread as a track: of further events as one beside it.
    fn tracks(&mut self, run: &TimedRun, tracks: &[ThreadTrack<'_>]) -> Result<(), WriteError> {
        let default = self.options.event(self.tree);
        let of_default = tracks.iter().rev().filter(|track| Some(track.event) == default);
        let busiest = of_default.max_by_key(|track| track.weight()).or(tracks.first());
        let busiest = busiest.map(|track| (track.event, track.pid, track.tid));
        let begins: Vec<_> = tracks.iter().map(|track| begin(self.tree, run, track)).collect();
        // A wait may have begun before the time that was read.
        let first = begins.iter().copied().min().unwrap_or(run.range.from).min(run.range.from);
        let mut processes = HashMap::new();
        for (track, begins) in tracks.iter().zip(begins) {
            let ThreadTrack { event, pid, tid, .. } = *track;
            let process = *processes
                .entry(pid)
                .or_insert_with(|| self.profile.add_process(track.process, pid.cast_unsigned(), timestamp(first)));
            let is_default = Some(event) == default;
            let is_main = is_default && pid == tid;
            let thread = self.profile.add_thread(process, tid.cast_unsigned(), timestamp(begins), is_main);
            let name = match is_default {
                true => track.name.to_owned(),
                false => format!("{} ({})", track.name, self.tree.event_of(event).name),
            };
            self.begin(thread, event, &name);
            if busiest == Some((event, pid, tid)) {
                self.profile.add_initial_selected_thread(thread);
            }
            self.samples(thread, run, track)?;
        }
        Ok(())
    }

    /// Writes events as tracks of which only sums are known.
    fn sums(&mut self, events: &[EventId], is_all: bool) -> Result<(), WriteError> {
        let zero = timestamp(WallNs(0));
        if events.is_empty() {
            return Ok(());
        }
        let process = self.profile.add_process(&self.options.title, 1, zero);
        for &event in events {
            let number = event.index() as u32 + 1;
            let thread = self.profile.add_thread(process, number, zero, is_all && event.index() == 0);
            let name = self.tree.event_of(event).name.clone();
            self.begin(thread, event, &name);
            if is_all && self.options.event(self.tree) == Some(event) {
                self.profile.add_initial_visible_thread(thread);
                self.profile.add_initial_selected_thread(thread);
            }
            let mut frames = ThreadFrames::of_sums(thread, &self.frames);
            let mut written = WrittenSamples::new(thread);
            for node in self.tree.walk() {
                let own = self.options.unit.of(&node, event);
                if own == 0 {
                    continue;
                }
                let stack = frames.stack(&mut self.profile, node.id());
                written.check(own, || self.tree.event_of(event).name.clone())?;
                let time = WallNs(written.number.saturating_mul(INTERVAL));
                written.add(&mut self.profile, time, stack, own, CpuDelta::ZERO);
            }
        }
        Ok(())
    }

    fn begin(&mut self, thread: ThreadHandle, event: EventId, name: &str) {
        self.profile.set_thread_name(thread, name);
        let is_bytes = self.options.unit.name(self.tree, event) == "bytes";
        self.profile
            .set_thread_samples_weight_type(thread, if is_bytes { WeightType::Bytes } else { WeightType::Samples });
    }

    fn samples(&mut self, thread: ThreadHandle, run: &TimedRun, track: &ThreadTrack<'_>) -> Result<(), WriteError> {
        let span = SampleSpan::of(self.tree, run, track.event);
        let mut frames = ThreadFrames::of_thread(thread, &self.frames);
        let mut written = WrittenSamples::new(thread);
        let mut before: Option<WallNs> = None;
        for (place, sample) in track.samples.iter().enumerate() {
            let stack = frames.stack(&mut self.profile, sample.node);
            let own = match self.options.unit {
                WrittenNumber::Weights => sample.weight,
                WrittenNumber::Samples => 1,
            };
            written.check(own, || self.tree.event_of(track.event).name.clone())?;
            let time = span.begin(sample);
            let busy = before.map_or(WallNs(u64::MAX), |before| time - before).0.min(span.cpu_ns(sample));
            written.add(&mut self.profile, time, stack, own, CpuDelta::from_nanos(busy));
            before = Some(time);
            // A sample is shown until the next one.
            let next = track.samples.get(place + 1).map(|next| span.begin(next));
            if let Some(end) = span.end_before(sample, next) {
                self.profile.add_sample(thread, timestamp(end), None, CpuDelta::ZERO, 0);
                before = Some(end);
            }
        }
        Ok(())
    }
}

/// Where the first sample of a track stands.
fn begin(tree: &Tree, run: &TimedRun, track: &ThreadTrack<'_>) -> WallNs {
    let span = SampleSpan::of(tree, run, track.event);
    track.samples.iter().map(|sample| span.begin(sample)).min().unwrap_or(run.range.from)
}

/// How much of the time a sample of an event stands for.
#[derive(Clone, Copy)]
enum SampleSpan {
    /// Its weight, before it, on a CPU.
    Cpu,
    /// Its weight, before it, on no CPU.
    OffCpu,
    /// The time between samples in ns, while the event happens; `None` where it may happen at any time.
    Interval(Option<u64>),
}

impl SampleSpan {
    fn of(tree: &Tree, run: &TimedRun, event: EventId) -> Self {
        let profile = tree.event_of(event);
        match profile.unit() {
            _ if profile.name == OFF_CPU => Self::OffCpu,
            "nanoseconds" => Self::Cpu,
            _ => Self::Interval(run.interval_ns(tree, event)),
        }
    }

    /// Where a sample stands: a wait where it began.
    fn begin(self, sample: &TimedSample) -> WallNs {
        match self {
            Self::OffCpu => sample.at - WallNs(sample.weight),
            Self::Cpu | Self::Interval(_) => sample.at,
        }
    }

    /// Where what a sample stands for ends, if nothing is known from there to the next one.
    fn end_before(self, sample: &TimedSample, next: Option<WallNs>) -> Option<WallNs> {
        let (length, most) = match self {
            Self::OffCpu => (sample.weight, sample.weight),
            Self::Cpu => (sample.weight, sample.weight.saturating_mul(2)),
            Self::Interval(interval) => interval.map(|interval| (interval, interval.saturating_mul(2)))?,
        };
        let begin = self.begin(sample);
        next.is_none_or(|next| next - begin > WallNs(most)).then(|| begin + WallNs(length))
    }

    /// The time on a CPU that led up to a sample, as far as that is known.
    fn cpu_ns(self, sample: &TimedSample) -> u64 {
        match self {
            Self::Cpu => sample.weight,
            Self::OffCpu => 0,
            Self::Interval(interval) => interval.unwrap_or(INTERVAL),
        }
    }
}

/// The samples of a thread that are written.
struct WrittenSamples {
    thread: ThreadHandle,
    /// How many there are, with the parts of large ones.
    number: u64,
    /// How many of them are parts of those before.
    parts: u64,
}

impl WrittenSamples {
    fn new(thread: ThreadHandle) -> Self {
        Self { thread, number: 0, parts: 0 }
    }

    /// Counts what is to be written.
    fn check(&mut self, weight: u64, event: impl Fn() -> String) -> Result<(), WriteError> {
        let parts = weight.div_ceil(i32::MAX as u64);
        (self.number, self.parts) = (self.number + parts, self.parts + parts.saturating_sub(1));
        if self.parts > MOST_SAMPLES { Err(WriteError::TooLarge(event())) } else { Ok(()) }
    }

    /// Writes a sample in as many parts as its weight needs.
    fn add(
        &self,
        profile: &mut Profile,
        time: WallNs,
        stack: Option<StackHandle>,
        mut weight: u64,
        mut busy: CpuDelta,
    ) {
        loop {
            let part = i32::try_from(weight).unwrap_or(i32::MAX);
            profile.add_sample(self.thread, timestamp(time), stack, busy, part);
            weight -= u64::from(part.unsigned_abs());
            busy = CpuDelta::ZERO;
            if weight == 0 {
                return;
            }
        }
    }
}
