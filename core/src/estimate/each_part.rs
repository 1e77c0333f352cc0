//! Estimates each part of a target (a CPU, a thread) by itself.
//!
//! What a program does on one CPU says nothing of what another does there, so events of different parts neither correct
//! one another nor stand in one relation.

use super::{Cause, Contribution, Estimate, Estimator, Moved, RelationState, Standing, Weakness, WholeRun};
use crate::plan::RowIndex;
use crate::rates::{Confidence, Delta, ScopeIndex, Tally, Uncertain, number_of_scopes};
use crate::units::WallNs;

/// An estimator for each part of the target.
pub struct EachPart {
    parts: Vec<PartEstimator>,
    estimates: Vec<Estimate>,
    standings: Vec<Standing>,
}

/// The estimator of one part, and which rows its events are.
struct PartEstimator {
    rows: Vec<RowIndex>,
    estimator: Box<dyn Estimator>,
}

impl EachPart {
    /// Of rows that are about these parts of the target; `build` makes the estimator of some rows. Where there is one
    /// part, that estimator is the answer.
    pub fn build(
        scopes: &[ScopeIndex],
        mut build: impl FnMut(&[RowIndex]) -> Box<dyn Estimator>,
    ) -> Box<dyn Estimator> {
        let mut rows: Vec<Vec<RowIndex>> = vec![Vec::new(); number_of_scopes(scopes)];
        scopes.iter().enumerate().for_each(|(row, &scope)| rows[scope].push(row));
        if rows.len() < 2 {
            return build(&(0..scopes.len()).collect::<Vec<_>>());
        }
        let parts: Vec<_> = rows.into_iter().map(|rows| PartEstimator { estimator: build(&rows), rows }).collect();
        let mut all = Self { parts, estimates: vec![Estimate::default(); scopes.len()], standings: Vec::new() };
        all.stand();
        Box::new(all)
    }

    /// How each relation fares in all parts.
    fn stand(&mut self) {
        let relations = self.parts.first().map_or(0, |part| part.estimator.relations().len());
        self.standings =
            (0..relations).map(|index| joined(self.parts.iter().map(|part| part.standing(index)))).collect();
    }
}

impl PartEstimator {
    /// How a relation fares in this part, with the rows of all.
    fn standing(&self, index: usize) -> Standing {
        let standing = self.estimator.relations()[index].clone();
        let moved = standing.moved.map(|moved| Moved { event: self.rows[moved.event], ..moved });
        let state = match standing.state {
            RelationState::SameEvent { event } => RelationState::SameEvent { event: self.rows[event] },
            state => state,
        };
        Standing { moved, state, ..standing }
    }

    /// An estimate with the rows of all.
    fn estimate(&self, estimate: &Estimate) -> Estimate {
        let of_all = |part: &Contribution| match part.by {
            Cause::Event(event) => Contribution { by: Cause::Event(self.rows[event]), ..*part },
            Cause::Relation(_) | Cause::Weighting => *part,
        };
        Estimate { parts: estimate.parts.iter().map(of_all).collect(), ..estimate.clone() }
    }
}

/// How a relation fares in parts together. It is violated where it is so in half of the parts in which it can be
/// judged, or more. Its residual is that of the part in which it is farthest off; corrections are counted in all.
fn joined(parts: impl Iterator<Item = Standing>) -> Standing {
    let all: Vec<_> = parts.collect();
    let count = |state: &RelationState| all.iter().filter(|part| part.state == *state).count();
    let (agree, violate) = (count(&RelationState::Agrees), count(&RelationState::Violated));
    let state = match (agree, violate) {
        (0, 0) => all.iter().find(|part| part.state == RelationState::Waiting).or(all.first()).map(|part| &part.state),
        _ if violate >= agree => Some(&RelationState::Violated),
        _ => Some(&RelationState::Agrees),
    };
    let state = state.cloned().unwrap_or_default();
    let is_off_by = |part: &&Standing| part.z.map_or(-1.0, f64::abs);
    let moved_by = |moved: &Moved| moved.relative.map_or(-1.0, f64::abs);
    let farthest = all
        .iter()
        .filter(|part| part.state == state)
        .max_by(|a, b| is_off_by(a).total_cmp(&is_off_by(b)))
        .cloned()
        .unwrap_or_default();
    let moved = all.iter().filter_map(|part| part.moved).max_by(|a, b| moved_by(a).total_cmp(&moved_by(b)));
    Standing { uses: all.iter().map(|part| part.uses).sum(), moved, ..farthest }
}

impl Estimator for EachPart {
    fn round(&mut self, from: WallNs, to: WallNs, deltas: &[Option<Delta>]) {
        for part in &mut self.parts {
            let deltas: Vec<_> = part.rows.iter().map(|&row| deltas.get(row).copied().flatten()).collect();
            part.estimator.round(from, to, &deltas);
        }
    }

    fn end_interval(&mut self, tally: &Tally) {
        for part in &mut self.parts {
            part.estimator.end_interval(&tally.of_rows(&part.rows));
            for (&row, estimate) in part.rows.iter().zip(part.estimator.estimates()) {
                self.estimates[row] = part.estimate(estimate);
            }
        }
        self.stand();
    }

    fn estimates(&self) -> &[Estimate] {
        &self.estimates
    }

    fn relations(&self) -> &[Standing] {
        &self.standings
    }

    fn weaknesses(&self) -> Vec<Weakness> {
        self.parts.iter().flat_map(|part| part.estimator.weaknesses()).collect()
    }

    /// In parts in which nothing was multiplexed, intervals are exact as they are.
    fn whole_run(&self, confidence: Confidence) -> Option<WholeRun> {
        let runs: Vec<_> = self.parts.iter().map(|part| part.estimator.whole_run(confidence)).collect();
        let intervals = runs.iter().flatten().map(WholeRun::len).max()?;
        let mut all: Vec<Vec<Option<Uncertain>>> = vec![vec![None; self.estimates.len()]; intervals];
        for (part, run) in self.parts.iter().zip(runs) {
            let known =
                run.iter().flat_map(|run| (0..run.len()).filter_map(|place| Some((place, run.interval(place)?))));
            for (place, estimates) in known {
                part.rows.iter().zip(estimates).for_each(|(&row, estimate)| all[place][row] = *estimate);
            }
        }
        Some(WholeRun::new(all))
    }

    fn knows_whole_run(&self) -> bool {
        self.parts.iter().any(|part| part.estimator.knows_whole_run())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{EstimatorKind, RelationIndex};
    use super::*;
    use crate::builders;
    use crate::events::Event;
    use crate::units::CpuNs;

    const AGREES: RelationState = RelationState::Agrees;
    const VIOLATED: RelationState = RelationState::Violated;
    const WAITING: RelationState = RelationState::Waiting;

    fn standing(state: RelationState, z: Option<f64>, uses: u64) -> Standing {
        Standing { state, z, uses, ..Standing::default() }
    }

    #[test]
    fn a_relation_is_violated_where_half_of_the_parts_say_so() {
        let state =
            |states: &[RelationState]| joined(states.iter().map(|state| standing(state.clone(), None, 1))).state;
        assert_eq!(state(&[]), WAITING);
        assert_eq!(state(&[WAITING, AGREES]), AGREES);
        assert_eq!(state(&[VIOLATED, AGREES, AGREES, WAITING]), AGREES);
        assert_eq!(state(&[VIOLATED, AGREES, WAITING]), VIOLATED);
        let missing = RelationState::Inactive { missing: vec!["x".into()] };
        assert_eq!(state(&[missing.clone(), missing.clone()]), missing);
        assert_eq!(state(&[missing, WAITING]), WAITING);
    }

    #[test]
    fn its_residual_is_that_of_the_part_which_is_farthest_off() {
        let parts = [
            Standing {
                moved: Some(Moved { event: 1, relative: Some(0.1) }),
                relative: Some(0.2),
                ..standing(AGREES, Some(-1.5), 3)
            },
            Standing { moved: Some(Moved { event: 4, relative: Some(-0.3) }), ..standing(AGREES, Some(1.0), 4) },
            standing(VIOLATED, Some(9.0), 0),
        ];
        let all = joined(parts.into_iter());
        assert_eq!((all.z, all.relative, all.uses), (Some(-1.5), Some(0.2), 7));
        assert_eq!(all.moved, Some(Moved { event: 4, relative: Some(-0.3) }));
    }

    const ROUND: u64 = 2_000_000;

    /// Two events in turns on each of two CPUs, and how often the first one happens in a round on each; the second
    /// happens twice as often.
    fn deltas(place: u64, counts: [u64; 2]) -> Vec<Option<Delta>> {
        let delta = |count: u64, on: bool| {
            let running = CpuNs(if on { ROUND } else { 0 });
            Some(Delta { count: if on { count } else { 0 }, enabled: CpuNs(ROUND), running })
        };
        let of_cpu = |count: u64| [delta(count, place.is_multiple_of(2)), delta(2 * count, !place.is_multiple_of(2))];
        counts.into_iter().flat_map(of_cpu).collect()
    }

    /// Estimates of these rows of it after ten intervals, and how the relation fares.
    fn run(rows: &[RowIndex], kind: EstimatorKind) -> (Vec<Estimate>, Standing) {
        let relation = br#"[{ "relation": "b = 2 * a" }]"#;
        let relations = crate::relations::parse("r.json", relation).relations;
        let events: Vec<Event> = ["a", "b", "a", "b"].map(builders::event).into();
        let scopes: Vec<ScopeIndex> = rows.iter().map(|row| row / 2).collect();
        let first = scopes.iter().min().copied().unwrap_or_default();
        let scopes: Vec<ScopeIndex> = scopes.into_iter().map(|scope| scope - first).collect();
        let mut estimator = EachPart::build(&scopes, |part| {
            let events: Vec<_> = part.iter().map(|&row| events[rows[row]].clone()).collect();
            kind.build(&events, &relations)
        });
        let mut tally = Tally::of_scopes(scopes);
        for at in 0..500 {
            // The one is busier and busier, the other one does the same all the time but for a burst.
            let all = deltas(at, [100 + 3 * at, if at % 50 == 7 { 9000 } else { 400 }]);
            let deltas: Vec<_> = rows.iter().map(|&row| all[row]).collect();
            tally.round(&deltas);
            estimator.round(WallNs(at * ROUND), WallNs((at + 1) * ROUND), &deltas);
            if at % 50 == 49 {
                tally.end_interval();
                estimator.end_interval(&tally);
            }
        }
        let index: RelationIndex = 0;
        (estimator.estimates().to_vec(), estimator.relations()[index].clone())
    }

    #[test]
    fn a_part_is_estimated_as_it_is_alone() {
        for kind in EstimatorKind::ALL {
            let (both, standing) = run(&[0, 1, 2, 3], kind);
            let (first, one) = run(&[0, 1], kind);
            let (second, other) = run(&[2, 3], kind);
            assert_eq!(both[..2], first, "{kind:?}");
            assert_eq!(standing.uses, one.uses + other.uses, "{kind:?}");
            let numbers =
                |all: &[Estimate]| all.iter().map(|one| (one.interval, one.total, one.quality)).collect::<Vec<_>>();
            assert_eq!(numbers(&both[2..]), numbers(&second), "{kind:?}");
            let of_parts = both[2..].iter().flat_map(|estimate| &estimate.parts);
            let in_part = |by: Cause| matches!(by, Cause::Event(event) if event < 2);
            assert!(of_parts.clone().all(|part| !in_part(part.by)), "{kind:?}");
        }
    }
}
