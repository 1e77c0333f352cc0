//! Measures how long threads are on no CPU, from a sample as each leaves its CPU to the record of its return.
//!
//! ```text
//! on a CPU ── sample (stack) ──┐ switch out   wake-up   switch in ┌── on a CPU
//!                              └─ blocked, in ns ┴─ waits for a CPU ┘
//!                                a sample of `off-cpu` with this weight, each
//! ```
//!
//! The kernel takes the sample before it writes the record of the switch, which says whether the thread could have gone
//! on. Wake-ups are those of the whole machine, as anybody may wake a thread. Where they can't be had, how long a
//! thread had to wait for a CPU after one is part of its wait.

use nix::unistd::Pid;
use rustc_hash::FxHashMap;

use super::raw_batch::{RawSample, StackFaults};
use crate::sources::process;
use crate::stacks::live::rings::SwitchDirection;

/// How a thread left its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stacks::live) enum LeftCpu {
    /// It had to wait for something.
    Blocked(Waker),
    /// It could have gone on, or can by now.
    Ready,
}

/// Who ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stacks::live) enum Waker {
    /// Nobody yet, or it isn't known.
    Unknown,
    /// An interrupt: a timer, a disk or the network.
    Interrupt,
    /// A thread of this name, by its number among [`RawBatch::wakers`](super::raw_batch::RawBatch::wakers).
    Thread(u32),
}

/// A thread that is on no CPU.
struct AwayThread {
    /// Since when the time isn't told yet, on the kernel's clock.
    since: u64,
    /// The sample as it left; its weight isn't set.
    sample: RawSample,
    left: LeftCpu,
}

/// The threads that are on no CPU, by their ids.
pub(super) struct OffCpu {
    /// The place of `off-cpu` among the sampled events.
    pub(super) event: u32,
    away: FxHashMap<i32, AwayThread>,
    told_at: u64,
    /// Whether records were lost since then.
    has_lost: bool,
    /// Whether records were ever lost.
    has_ever_lost: bool,
}

/// How often the time of threads that stay away is told, in ns.
const TOLD_EVERY: u64 = 500_000_000;

/// A thread is still sampled on its way off its CPU, so long after the record of that, in ns.
const LEAVING: u64 = 1_000_000;

impl OffCpu {
    pub(super) fn new(event: u32) -> Self {
        Self { event, away: FxHashMap::default(), told_at: 0, has_lost: false, has_ever_lost: false }
    }

    /// A thread leaves its CPU with this stack. The idle task of a CPU has the number 0 and waits for nothing.
    pub(super) fn leaves(&mut self, tid: i32, time: u64, sample: RawSample) {
        if tid != 0 {
            self.away.insert(tid, AwayThread { since: time, sample, left: LeftCpu::Blocked(Waker::Unknown) });
        }
    }

    /// A thread was switched out or in; gives the time that it was away, if that has ended.
    pub(super) fn switched(
        &mut self,
        tid: i32,
        time: u64,
        origin: u64,
        direction: SwitchDirection,
    ) -> Option<RawSample> {
        match direction {
            SwitchDirection::Out { is_ready } => {
                let away = self.away.get_mut(&tid)?;
                // Until then it was on its CPU, where its stack was copied.
                away.since = away.since.max(time);
                // One that was woken in the moment between is ready already.
                if is_ready {
                    away.left = LeftCpu::Ready;
                }
                None
            }
            SwitchDirection::In => {
                let away = self.away.remove(&tid)?;
                Some(away.until(time, origin))
            }
        }
    }

    /// Whether a thread waits, so that somebody may wake it up.
    pub(super) fn is_blocked(&self, tid: i32) -> bool {
        self.away.get(&tid).is_some_and(|away| away.left != LeftCpu::Ready)
    }

    /// A thread is woken; gives the time that it waited, if it did.
    pub(super) fn woken(&mut self, tid: i32, time: u64, origin: u64, waker: Waker) -> Option<RawSample> {
        let away = self.away.get_mut(&tid).filter(|away| away.left != LeftCpu::Ready)?;
        let waited = RawSample { left: Some(LeftCpu::Blocked(waker)), ..away.until(time, origin) };
        (away.since, away.left, away.sample.faults) = (time.max(away.since), LeftCpu::Ready, StackFaults::NONE);
        Some(waited)
    }

    /// A thread was sampled on a CPU: if it is away, and records were lost, that of its return was, and nobody knows
    /// how long it was. Where none was lost, that is still to come.
    pub(super) fn runs(&mut self, tid: i32, time: u64) {
        if self.has_ever_lost && self.away.get(&tid).is_some_and(|away| time > away.since.saturating_add(LEAVING)) {
            self.away.remove(&tid);
        }
    }

    /// Records were lost, maybe those of the ends of threads.
    pub(super) fn lost(&mut self) {
        (self.has_lost, self.has_ever_lost) = (true, true);
    }

    /// A thread has ended.
    pub(super) fn ended(&mut self, tid: i32) {
        self.away.remove(&tid);
    }

    /// The time up to now of threads that are still away, now and then.
    pub(super) fn so_far(&mut self, now: u64, origin: u64) -> Vec<RawSample> {
        if now.saturating_sub(self.told_at) < TOLD_EVERY {
            return Vec::new();
        }
        self.all_so_far(now, origin)
    }

    /// The same at once.
    pub(super) fn all_so_far(&mut self, now: u64, origin: u64) -> Vec<RawSample> {
        self.told_at = now;
        if std::mem::take(&mut self.has_lost) {
            self.away.retain(|&tid, _| process::thread_runs(Pid::from_raw(tid)));
        }
        let away = self.away.values_mut().filter(|away| away.since < now);
        let mut samples: Vec<_> = away
            .map(|away| {
                let sample = away.until(now, origin);
                // One stack, though its time comes in parts.
                (away.since, away.sample.faults) = (now, StackFaults::NONE);
                sample
            })
            .collect();
        // By their times alone they are in no order.
        samples.sort_unstable_by_key(|sample| sample.task);
        samples
    }
}

impl AwayThread {
    fn until(&self, time: u64, origin: u64) -> RawSample {
        let at = crate::units::WallNs(time.saturating_sub(origin));
        RawSample { at, weight: time.saturating_sub(self.since), left: Some(self.left), ..self.sample }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;
    use crate::stacks::TaskId;
    use crate::stacks::end::StackEnd;
    use crate::units::WallNs;

    const OUT: SwitchDirection = SwitchDirection::Out { is_ready: false };
    const PREEMPTED: SwitchDirection = SwitchDirection::Out { is_ready: true };

    fn sample(task: u32) -> RawSample {
        RawSample {
            at: WallNs(0),
            task: TaskId(task),
            cpu: 0,
            event: 3,
            weight: 0,
            path: None,
            end: StackEnd::Unknown,
            faults: StackFaults { asks_for_end: true, ..StackFaults::NONE },
            left: None,
        }
    }

    #[test]
    fn a_wait_by_hand() {
        let mut waits = OffCpu::new(3);
        waits.leaves(7, 1_000, sample(1));
        assert!(waits.switched(7, 1_010, 500, OUT).is_none());
        let back = waits.switched(7, 4_000, 500, SwitchDirection::In).unwrap();
        assert_eq!(
            (back.at, back.weight, back.event, back.left),
            (WallNs(3_500), 2_990, 3, Some(LeftCpu::Blocked(Waker::Unknown))),
            "it was on its CPU until it was switched out"
        );
        // It comes back once, and who never left doesn't.
        assert!(waits.switched(7, 5_000, 500, SwitchDirection::In).is_none());
        assert!(waits.switched(8, 5_000, 500, SwitchDirection::In).is_none());
    }

    #[test]
    fn a_thread_that_could_have_gone_on_waits_for_a_cpu() {
        let mut waits = OffCpu::new(0);
        waits.leaves(7, 10, sample(1));
        waits.switched(7, 11, 0, PREEMPTED);
        assert_eq!(waits.switched(7, 20, 0, SwitchDirection::In).unwrap().left, Some(LeftCpu::Ready));
    }

    #[test]
    fn what_is_woken_up_waits_for_a_cpu_from_then_on() {
        let mut waits = OffCpu::new(0);
        waits.leaves(7, 1_000, sample(1));
        waits.switched(7, 1_010, 0, OUT);
        let waited = waits.woken(7, 4_000, 0, Waker::Thread(2)).unwrap();
        assert_eq!((waited.weight, waited.left), (2_990, Some(LeftCpu::Blocked(Waker::Thread(2)))));
        // Once; and one that runs has nothing to be woken from.
        assert!(
            waits.woken(7, 4_100, 0, Waker::Interrupt).is_none()
                && waits.woken(8, 4_100, 0, Waker::Interrupt).is_none()
        );
        let ready = waits.switched(7, 4_500, 0, SwitchDirection::In).unwrap();
        assert_eq!((ready.weight, ready.left, ready.faults), (500, Some(LeftCpu::Ready), StackFaults::NONE));
        // Between the sample and the switch.
        waits.leaves(7, 5_000, sample(1));
        assert_eq!(waits.woken(7, 5_001, 0, Waker::Interrupt).unwrap().weight, 1);
        waits.switched(7, 5_002, 0, OUT);
        assert_eq!(waits.switched(7, 5_010, 0, SwitchDirection::In).unwrap().left, Some(LeftCpu::Ready));
    }

    #[test]
    fn an_idle_cpu_and_a_thread_that_has_ended_wait_for_nothing() {
        let mut waits = OffCpu::new(0);
        waits.leaves(0, 10, sample(0));
        waits.leaves(7, 10, sample(1));
        waits.ended(7);
        assert!(waits.all_so_far(1_000, 0).is_empty());
    }

    #[test]
    fn a_thread_whose_return_was_lost_waits_no_longer_once_it_is_seen_to_run() {
        let mut waits = OffCpu::new(0);
        // The thread that asks is there, whatever was lost.
        let me = i32::try_from(std::process::id()).unwrap();
        waits.leaves(me, 10, sample(1));
        waits.runs(me, 11 + LEAVING);
        assert!(waits.is_blocked(me), "the record of its return is on its way");
        waits.lost();
        waits.runs(me, 10 + LEAVING);
        assert!(waits.is_blocked(me), "it was on its way off its CPU");
        waits.runs(me, 11 + LEAVING);
        waits.runs(8, 11 + LEAVING);
        assert!(waits.all_so_far(TOLD_EVERY, 0).is_empty());
    }

    #[test]
    fn a_thread_whose_end_was_lost_waits_no_longer() {
        let mut waits = OffCpu::new(0);
        let me = i32::try_from(std::process::id()).unwrap();
        // No thread has so large a number.
        waits.leaves(me, 10, sample(1));
        waits.leaves(i32::MAX, 10, sample(1));
        assert_eq!(waits.all_so_far(20, 0).len(), 2);
        waits.lost();
        assert_eq!(waits.all_so_far(30, 0).len(), 1);
    }

    #[test]
    fn long_waits_are_told_in_parts() {
        let mut waits = OffCpu::new(0);
        waits.leaves(7, 0, sample(1));
        assert_eq!(waits.so_far(TOLD_EVERY, 0).len(), 1);
        assert!(waits.so_far(TOLD_EVERY + 1, 0).is_empty(), "not every time");
        let rest = waits.switched(7, TOLD_EVERY + 5, 0, SwitchDirection::In).unwrap();
        assert_eq!((rest.weight, rest.faults), (5, StackFaults::NONE));
    }

    proptest! {
        #[test]
        fn parts_add_up_to_the_wait(
            since in 0u64..1_000_000,
            parts in prop::collection::vec((0u64..1_000_000_000, any::<bool>()), 0..20),
            rest in 0u64..1_000_000,
        ) {
            let mut waits = OffCpu::new(0);
            waits.leaves(7, since, sample(1));
            let (mut now, mut told) = (since, 0);
            for (part, is_woken) in parts {
                now += part;
                if is_woken {
                    told += waits.woken(7, now, 0, Waker::Unknown).map_or(0, |sample| sample.weight);
                }
                told += waits.so_far(now, 0).iter().map(|sample| sample.weight).sum::<u64>();
            }
            now += rest;
            told += waits.switched(7, now, 0, SwitchDirection::In).unwrap().weight;
            prop_assert_eq!(told, now - since);
        }
    }
}
