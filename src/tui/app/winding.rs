//! Goes through a recording: plays it, winds it to a time or to a range, and reads ahead of what is shown.

use crossbeam_channel::never;

use super::super::model::{Message, RoundBuffer, update};
use super::super::options::Mode;
use super::super::playback::{Sight, TimeDirection, WayDone};
use super::App;
use crate::monitor::Monitor;
use crate::plan::RowIndex;
use crate::recording::{TimeRange, rounds_until};
use crate::sources::RecordedRound;
use crate::units::WallNs;

/// Readings that are taken between two looks at what the user does. They are counted, not timed: the same keys make the
/// same screens.
const READINGS_AT_ONCE: usize = 50_000;

fn rounds_at_once(rounds: &[RecordedRound]) -> usize {
    let readings = rounds.first().map_or(1, |first| first.round.readings.len().max(1));
    (READINGS_AT_ONCE / readings).max(1)
}

/// A way through a recording: its next round, the place behind its last one, and the time that was asked for.
pub(super) struct Winding {
    next: usize,
    to: usize,
    until: WallNs,
    way: Way,
}

/// Where a way through a recording begins.
enum Way {
    /// Where the screens stand: they go along.
    On,
    /// With a monitor that has seen nothing; the screens stay as they are until it is there.
    Anew { monitor: Box<Monitor>, rounds: RoundBuffer, range: Option<TimeRange> },
}

impl App<'_> {
    /// Plays the recording on from where the screens stand, or stops it.
    pub(super) fn play(&mut self) {
        // It plays on where the way leads.
        let (Some(playback), Some(timeline), None) = (&self.model.playback, self.feed.timeline(), &self.winding) else {
            return;
        };
        if self.model.rounds.end.is_some() || !playback.playing {
            timeline.stop();
            self.samples = never();
            return;
        }
        match timeline.play(self.model.rounds.now(), playback.pace()) {
            Ok(()) => self.samples = self.feed.samples().clone(),
            Err(error) => self.tell(Message::Failed(format!("the recording can't be played: {error}"))),
        }
    }

    /// Goes to the reading that ended the interval before, or to the one that ends the next; moves a range by one.
    pub(super) fn step(&mut self, direction: TimeDirection) {
        let (monitor, length) = (&self.model.monitor, self.model.options.mode.length());
        let interval = monitor.header().interval_ns;
        if let Some(range) = self.range_ahead() {
            return self.show_range(range.moved(interval, direction, length));
        }
        let Some(timeline) = self.feed.timeline() else { return };
        let rounds = timeline.rounds();
        let from = |time: WallNs| rounds.partition_point(|recorded| recorded.round.at < time);
        let at = |place: usize| rounds.get(place).map(|recorded| recorded.round.at);
        // Keys may be faster than a long way: they count from where it leads.
        let (now, closed, next) = match &self.winding {
            Some(Winding { until, .. }) => {
                let closed = monitor.end_by(*until).and_then(|end| at(from(end)));
                (*until, closed.unwrap_or_default(), monitor.end_by(*until + interval))
            }
            None => (monitor.now(), monitor.closed_at(), Some(monitor.next_end())),
        };
        let time = match direction {
            TimeDirection::On => next.and_then(|next| at(from(next))).unwrap_or(length),
            // The interval that ended last is the one to leave, or what came after it.
            TimeDirection::Back if now > closed => closed,
            TimeDirection::Back => {
                let before = from(closed).checked_sub(1);
                let ended = monitor.end_by(closed - interval).zip(before).map(|(end, before)| from(end).min(before));
                ended.and_then(at).unwrap_or_default()
            }
        };
        self.seek(time);
    }

    /// The range that is shown, or will be where the way leads.
    fn range_ahead(&self) -> Option<TimeRange> {
        match &self.winding {
            Some(Winding { way: Way::Anew { range, .. }, .. }) => *range,
            Some(Winding { way: Way::On, .. }) => None,
            None => self.model.shown_range(),
        }
    }

    /// Forwards by what lies between; backwards, and from a range, from the beginning: estimates depend on all that
    /// came before.
    pub(super) fn seek(&mut self, time: WallNs) {
        if let Some(playback) = &mut self.model.playback {
            // Without a pace it would be back at the end at once.
            playback.playing &= playback.speed > 0.0;
        }
        let sight = self.model.playback.as_ref().map(|playback| playback.sight).unwrap_or_default();
        let Some(timeline) = self.feed.timeline() else { return };
        timeline.set_profile_start(None);
        let place = |time: WallNs| rounds_until(timeline.rounds(), time);
        let is_shown = |time: WallNs| !matches!(sight, Sight::Range(_)) && time >= self.model.rounds.now();
        let to = place(time);
        let way = match is_shown(time) {
            true => Way::On,
            false => Way::Anew { monitor: Box::new(timeline.monitor()), rounds: RoundBuffer::default(), range: None },
        };
        let next = match (&way, self.model.rounds.last()) {
            (Way::On, Some(last)) => place(last.round.at),
            _ => 0,
        };
        self.begin_winding(Winding { next, to: to.max(next), until: time, way });
    }

    /// Shows what a range of the recording counted, and nothing else.
    pub(super) fn show_range(&mut self, range: TimeRange) {
        let Some(timeline) = self.feed.timeline() else { return };
        let rounds = timeline.rounds();
        let [next, to] = [range.from, range.to].map(|time| rounds_until(rounds, time));
        // Its ends are rounds.
        let base = rounds.get(..next).and_then(RecordedRound::last_of);
        let from = base.as_ref().map_or(WallNs(0), |recorded| recorded.round.at);
        let Some(last) = to.checked_sub(1).filter(|_| to > next).and_then(|place| rounds.get(place)) else {
            return self.tell(Message::Failed("nothing was read in this range".into()));
        };
        let range = TimeRange { from, to: last.round.at };
        let monitor = match &base {
            Some(base) => timeline.monitor_of_range().beginning_after(&base.round, base.lost),
            None => timeline.monitor(),
        };
        timeline.set_profile_start(base.as_ref().map(|recorded| recorded.round.at));
        let way = Way::Anew { monitor: Box::new(monitor), rounds: RoundBuffer::default(), range: Some(range) };
        self.begin_winding(Winding { next, to, until: range.to, way });
    }

    fn begin_winding(&mut self, winding: Winding) {
        if let Some(timeline) = self.feed.timeline() {
            timeline.stop();
        }
        self.samples = never();
        self.winding = Some(winding);
        self.wind();
    }

    /// Goes a part of the way, so that keys are heard in between.
    pub(super) fn wind(&mut self) {
        let (Some(mut winding), Some(timeline)) = (self.winding.take(), self.feed.timeline()) else { return };
        let rounds = timeline.rounds();
        let stop = winding.next.saturating_add(rounds_at_once(rounds)).min(winding.to);
        for next in rounds.get(winding.next..stop).unwrap_or_default() {
            match &mut winding.way {
                Way::On => {
                    let _ = update(&mut self.model, Message::Round(next.clone()));
                }
                Way::Anew { monitor, rounds, .. } => {
                    monitor.round(&next.round, next.lost);
                    rounds.push(next.clone());
                    let _ = rounds.take();
                }
            }
        }
        winding.next = stop;
        let is_there = winding.next >= winding.to;
        let to = rounds.get(winding.to.saturating_sub(1)).map_or(WallNs(0), |last| last.round.at);
        if let Some(playback) = &mut self.model.playback {
            let part = winding.next as f64 / winding.to.max(1) as f64;
            playback.way = (!is_there).then_some(WayDone { part, to });
        }
        self.model.revision += 1;
        if is_there {
            self.end_winding(winding);
        } else {
            self.winding = Some(winding);
        }
    }

    fn end_winding(&mut self, winding: Winding) {
        let Mode::Replay { length, .. } = self.model.options.mode else { return };
        let is_end = winding.until >= length;
        if let Way::Anew { mut monitor, rounds, range } = winding.way {
            if range.is_some() {
                match rounds.last().filter(|_| is_end) {
                    Some(last) => monitor.end(self.feed.end(&last.round, last.lost)),
                    None => {
                        let behind = self.feed.timeline().and_then(|timeline| timeline.rounds().get(winding.to..));
                        let next = behind.and_then(RecordedRound::first_threads);
                        next.into_iter().for_each(|threads| monitor.reach_to(threads));
                        monitor.close();
                    }
                }
            }
            let before = self.model.playback.as_ref().map(|playback| playback.sight);
            let sight = match (range, before) {
                (Some(range), _) => Sight::Range(range),
                (None, Some(begun @ Sight::RangeBegun(_))) => begun,
                (None, _) => Sight::UpToNow,
            };
            self.tell(Message::Wound(monitor, rounds, sight));
            if range.is_some() {
                return;
            }
        }
        if is_end && self.model.rounds.end.is_none() {
            self.take_end();
        }
        self.play();
    }

    /// Reads a part of what is told of the whole recording, for the time line.
    pub(super) fn read_ahead(&mut self) {
        if self.is_read_ahead {
            return;
        }
        let Some(timeline) = self.feed.timeline() else { return };
        let at_once = rounds_at_once(timeline.rounds());
        let notes = timeline.read_ahead(at_once).cloned();
        self.is_read_ahead = notes.is_some();
        if let Some(notes) = notes {
            self.tell(Message::ReadAhead(notes));
        }
        if let Some((direction, event)) = self.wanted_change.take_if(|_| self.is_read_ahead) {
            self.seek_change(direction, event);
        }
    }

    /// Goes to where the next change of level was told, once all are known: its levels on both sides are known there.
    pub(super) fn seek_change(&mut self, direction: TimeDirection, event: Option<RowIndex>) {
        if !self.is_read_ahead {
            self.wanted_change = Some((direction, event));
            return;
        }
        let now = self.model.rounds.now();
        let Some(timeline) = self.feed.timeline() else { return };
        let notes = timeline.read_ahead(0);
        let mut changes = notes
            .iter()
            .flat_map(|notes| &notes.changes)
            .filter(|change| event.is_none_or(|event| event == change.event))
            .copied();
        let change = match direction {
            TimeDirection::On => changes.find(|change| change.told_at > now),
            TimeDirection::Back => changes.rfind(|change| change.told_at < now),
        };
        match change {
            Some(change) => {
                self.seek(change.told_at);
                self.tell(Message::AtChange(change));
            }
            None => {
                let place = if direction == TimeDirection::On { "after" } else { "before" };
                self.play();
                self.tell(Message::Failed(format!("no level changes {place} this time")));
            }
        }
    }
}
