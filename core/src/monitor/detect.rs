//! Finds what the reader of a measurement should know, and notes it: once, or in each interval that has it anew.

use std::collections::{BTreeMap, HashSet};

use super::uncounted::{told_time_without_counters, uncounted_time};
use super::{EventTrack, Finding, Monitor, Noted, Row, TakenOffBy, UncountedPart, at_least_so_much};
use crate::estimate::{Estimate, RelationState, Weakness};
use crate::events::EventKind;
use crate::plan::RowIndex;
use crate::rates::{Delta, Uncertain};
use crate::run::{End, MeasuredEvent, UncountedRows};
use crate::sources::{Round, Status};
use crate::units::{CpuNs, WallNs};

/// A run ratio below this leans on scaling: a quarter of the time was never seen.
pub const LOW_RUN_RATIO: f64 = 0.75;

/// A number that may be off by no more than this part of it is sure, however seldom its event was counted.
const SURE: f64 = 0.01;

/// A low run ratio is reported only after so many intervals.
pub(super) const SETTLED: u64 = 3;

/// What is said of lost rounds in so long a time is one finding.
const LOST_TOGETHER: WallNs = WallNs(60_000_000_000);

/// Whether a number leans on scaling: its event was counted for little of the time, and the number isn't sure all the
/// same, as one that relations correct may be.
pub fn leans_on_scaling(run: f64, number: Option<Uncertain>) -> bool {
    let is_sure = |number: Uncertain| number.error.half_width().is_some_and(|half| half <= SURE * number.value.abs());
    run < LOW_RUN_RATIO && !number.is_some_and(is_sure)
}

impl EventTrack {
    /// What is known of an event of which a part isn't counted, with so much of it counted in all.
    fn at_least(&self, total: Option<Uncertain>) -> Estimate {
        let last = self.history.back().map_or((Delta::default(), None), |point| (point.counted, point.raw));
        at_least_so_much(total, last.0, last.1)
    }
}

impl Monitor {
    pub(super) fn note(&mut self, finding: Finding) {
        self.findings.push(Noted { at: self.now, finding });
    }

    pub(super) fn note_openings(&mut self) {
        if self.header.modelled.is_some() {
            self.note(Finding::Modelled);
        }
        let is_gone = |event: &&MeasuredEvent| event.status == Status::Gone;
        let gone: HashSet<_> = self.header.events.iter().filter(is_gone).map(|event| &event.scope).collect();
        if !gone.is_empty() {
            self.note(Finding::Gone { threads: gone.len() });
        }
        for event in 0..self.header.events.len() {
            match self.header.events[event].status {
                Status::Counted | Status::UserOnly if self.header.events[event].event.core().is_some() => {
                    self.note(Finding::OneKindOfCore { event });
                }
                _ if self.header.events[event].is_elsewhere() => {}
                Status::Elsewhere => self.note(Finding::Elsewhere { event }),
                Status::Counted if self.lacks_units(event) => self.note(Finding::LacksUnits { event }),
                Status::Counted | Status::Gone => {}
                Status::UserOnly => self.note(Finding::UserOnly { event }),
                Status::NotSupported => self.note(Finding::NotSupported { event }),
                Status::Forbidden => self.note(Finding::Forbidden { event }),
                Status::InUse => self.note(Finding::InUse { event }),
            }
        }
        for relation in 0..self.standings().len() {
            if let RelationState::Inactive { missing } = self.standings()[relation].state.clone() {
                self.note(Finding::RelationInactive { relation, missing });
            }
        }
    }

    /// Once an interval, and those of a minute together: on a busy machine nearly every round may be late.
    pub(super) fn note_lost(&mut self) {
        let rounds = self.lost - std::mem::replace(&mut self.lost_noted, self.lost);
        if rounds == 0 {
            return;
        }
        let now = self.now;
        let mut recent = self.findings.iter_mut().rev().take_while(|noted| now - noted.at < LOST_TOGETHER);
        let before = recent.find_map(|noted| match &mut noted.finding {
            Finding::LostRounds { rounds } => Some(rounds),
            _ => None,
        });
        match before {
            Some(before) => *before = before.saturating_add(rounds),
            None => self.note(Finding::LostRounds { rounds }),
        }
    }

    /// Notes the events of which a part isn't counted from now on.
    pub(super) fn note_uncounted(&mut self, round: &Round) {
        let mut events = Vec::new();
        let UncountedRows { lacks_unit, taken_off } = self.header.uncounted_rows(round);
        self.tracks.iter_mut().for_each(|track| track.lacks_unit = false);
        for event in lacks_unit {
            self.tracks[event].lacks_unit = true;
        }
        let (part, by) = match self.header.modelled {
            Some(_) => (UncountedPart::OfModel, TakenOffBy::Model),
            None => (UncountedPart::FromExecOn, TakenOffBy::Exec),
        };
        for event in taken_off {
            let Some(track) = self.tracks.get_mut(event).filter(|track| track.uncounted.is_none()) else { continue };
            let least = match part {
                UncountedPart::OfModel => track.at_least(self.tally.total(event)),
                _ => Estimate::default(),
            };
            track.uncounted = Some((part, least));
            events.push(event);
        }
        if !events.is_empty() {
            self.note(Finding::TakenOff { events, by });
        }
        self.note_offline(round);
    }

    /// Notes the events of which a CPU isn't counted from now on.
    fn note_offline(&mut self, round: &Round) {
        let mut new = BTreeMap::<WallNs, Vec<RowIndex>>::new();
        for &(event, from) in &round.offline {
            let Some(track) = self.tracks.get_mut(event).filter(|track| track.uncounted.is_none()) else { continue };
            track.uncounted = Some((UncountedPart::OfCpu, track.at_least(self.tally.total(event))));
            new.entry(from).or_default().push(event);
        }
        for (from, events) in new {
            self.note(Finding::TakenOff { events, by: TakenOffBy::OfflineCpu { from } });
        }
    }

    /// How much of the command's CPU time passed without counters, and all of it, where that isn't little and no
    /// finding says so.
    pub fn time_without_counters(&self) -> Option<(CpuNs, CpuNs)> {
        let is_found = self.tracks.iter().any(|track| track.uncounted.is_some()) || self.header.modelled.is_some();
        self.ended().filter(|_| !is_found).and_then(|end| told_time_without_counters(&self.header.events, end))
    }

    /// Notes that a part of the command's CPU time passed without its events. Nobody saw it while it happened.
    pub(super) fn note_uncounted_time(&mut self, end: &End) {
        let is_known = self.tracks.iter().any(|track| track.uncounted.is_some());
        let found = uncounted_time(&self.header.events, end).filter(|_| !is_known);
        let Some((uncounted, all)) = found else { return };
        for (event, track) in self.tracks.iter_mut().enumerate() {
            if self.header.events[event].event.kind != EventKind::Tool {
                track.uncounted = Some((UncountedPart::OfChild, track.at_least(self.tally.total(event))));
            }
        }
        self.note(Finding::UncountedTime { uncounted, all });
    }

    /// Notes the events of which a unit has had no counter for all that time.
    pub(super) fn note_lacking_units(&mut self) {
        let lacking = |(event, track): (RowIndex, &mut EventTrack)| {
            let is_new = track.lacks_unit && !track.lack_noted;
            track.lack_noted |= is_new;
            is_new.then_some(event)
        };
        let events: Vec<_> = self.tracks.iter_mut().enumerate().filter_map(lacking).collect();
        for event in events {
            self.note(Finding::LacksUnits { event });
        }
    }

    pub(super) fn note_relations(&mut self, before: &[RelationState]) {
        for relation in 0..before.len() {
            let now = &self.standings()[relation];
            let z = now.z.unwrap_or(f64::NAN);
            match (&before[relation], &now.state) {
                (RelationState::Violated, RelationState::Agrees) => {
                    self.note(Finding::RelationRecovered { relation, z })
                }
                (before, RelationState::Violated) if *before != RelationState::Violated => {
                    self.note(Finding::RelationViolated { relation, z });
                }
                _ => {}
            }
        }
    }

    /// Says once what makes estimates less than they seem.
    pub(super) fn note_weaknesses(&mut self) {
        for weakness in self.estimator.weaknesses() {
            let finding = match weakness {
                Weakness::Aliased { least, most } => Finding::RotationBeats { least, most },
                Weakness::Scaled => Finding::FellBack,
            };
            if !self.findings.iter().any(|noted| noted.finding.code() == finding.code()) {
                self.note(finding);
            }
        }
    }

    pub(super) fn note_low_ratios(&mut self) {
        if self.intervals < SETTLED {
            return;
        }
        let low = |row: Row<'_>| {
            let ratio = row.raw.run.run_ratio().filter(|&ratio| leans_on_scaling(ratio, row.best()))?;
            (!self.tracks[row.index].low_ratio_noted).then_some((row.index, ratio))
        };
        let ratios: Vec<_> = self.rows().filter_map(low).collect();
        ratios.iter().for_each(|&(event, _)| self.tracks[event].low_ratio_noted = true);
        if !ratios.is_empty() {
            self.note(Finding::LowRunRatio { ratios });
        }
    }
}
