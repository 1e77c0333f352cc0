//! Tells which region was open on a thread at a time, from what the thread entered and left.

use rustc_hash::FxHashMap;

use super::batch::{RegionBatch, RegionMark, RegionPathId, RegionProgramId, ThreadMarks};
use crate::units::WallNs;

/// Where a thread was at a time, in regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegionAt {
    /// In no region.
    Outside,
    /// In this one, and in none within it.
    In(RegionPathId),
    /// Nobody knows: its enters and leaves came too fast to be kept, or are no longer kept.
    Unknown,
}

/// The regions that were open on each thread, as far as marks tell.
#[derive(Debug, Default)]
pub struct OpenRegions {
    /// The region around each path.
    parents: Vec<Option<RegionPathId>>,
    threads: FxHashMap<u32, ThreadHistory>,
    /// The time before which threads without a history may have had one.
    forgotten: WallNs,
    at: WallNs,
    missed: u64,
}

/// Where a thread was, from each time on.
#[derive(Debug, Default)]
struct ThreadHistory {
    steps: Vec<(WallNs, RegionAt)>,
    /// What is open now, the innermost last.
    open: Vec<RegionPathId>,
    /// The program of which it is a thread: another one has its number later.
    program: Option<RegionProgramId>,
}

impl OpenRegions {
    /// Takes what was entered and left. All that a batch names must be defined.
    pub fn take(&mut self, batch: &RegionBatch) {
        self.parents.extend(batch.paths.iter().map(|path| path.parent));
        for thread in &batch.marks {
            self.missed = self.missed.saturating_add(thread.missed);
            self.threads.entry(thread.tid).or_default().take(thread, &self.parents, batch.since);
        }
        self.at = batch.at;
    }

    /// The time up to which all is known that will ever be.
    pub fn known_until(&self) -> WallNs {
        self.at
    }

    /// Whether no program had a region so far.
    pub fn is_empty(&self) -> bool {
        self.parents.is_empty()
    }

    /// Enters and leaves that are gone.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Where a thread was.
    pub fn region_at(&self, tid: u32, at: WallNs) -> RegionAt {
        let steps = self.threads.get(&tid).map_or(&[][..], |history| &history.steps);
        let before = if at < self.forgotten { RegionAt::Unknown } else { RegionAt::Outside };
        steps[..steps.partition_point(|(from, _)| *from <= at)].last().map_or(before, |(_, region)| *region)
    }

    /// Forgets what was open before a time: from then on it is unknown.
    pub fn forget_before(&mut self, at: WallNs) {
        // From then on, one that has left all regions is as one that never was in any.
        let before = self.threads.len();
        self.threads.retain(|_, history| history.left().is_none_or(|left| left > at));
        if self.threads.len() < before {
            self.forgotten = self.forgotten.max(at);
        }
        for ThreadHistory { steps, .. } in self.threads.values_mut() {
            let first = steps.partition_point(|(from, _)| *from <= at).saturating_sub(1);
            // The first step stands for all that came before it.
            if first > 0 {
                steps.drain(..first - 1);
                steps[0] = (WallNs(0), RegionAt::Unknown);
            }
        }
    }
}

impl ThreadHistory {
    /// `since` is the time at which marks were read before: what was missed came after.
    fn take(&mut self, thread: &ThreadMarks, parents: &[Option<RegionPathId>], since: WallNs) {
        if self.program.replace(thread.program).is_some_and(|before| before != thread.program) {
            // It ended in the regions that were open.
            self.open.clear();
            self.step(since, RegionAt::Outside);
        }
        if thread.missed > 0 {
            self.open.clear();
            self.step(since, RegionAt::Unknown);
        }
        for (place, mark) in thread.marks.iter().enumerate() {
            if place == 0 && thread.missed > 0 {
                self.open = chain(*mark, parents);
            } else if mark.is_enter {
                self.open.push(mark.path);
            } else if let Some(place) = self.open.iter().rposition(|open| *open == mark.path) {
                self.open.remove(place);
            }
            self.step(mark.at, self.open.last().map_or(RegionAt::Outside, |&path| RegionAt::In(path)));
        }
    }

    /// When it left the last region that was open; `None` where one is.
    fn left(&self) -> Option<WallNs> {
        self.steps.last().filter(|(_, region)| *region == RegionAt::Outside).map(|(at, _)| *at)
    }

    fn step(&mut self, at: WallNs, region: RegionAt) {
        // Marks of one thread are in the order of time, whatever a damaged file says.
        let at = self.steps.last().map_or(at, |(last, _)| at.max(*last));
        self.steps.push((at, region));
    }
}

/// What is open after the first mark that is known: the regions around, and what was entered.
fn chain(mark: RegionMark, parents: &[Option<RegionPathId>]) -> Vec<RegionPathId> {
    let parent = |path: RegionPathId| parents.get(path.0 as usize).copied().flatten();
    let innermost = if mark.is_enter { Some(mark.path) } else { parent(mark.path) };
    let mut open: Vec<_> = std::iter::successors(innermost, |&path| parent(path)).collect();
    open.reverse();
    open
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::batch::RegionPath;
    use super::*;

    fn paths(parents: &[Option<u32>]) -> Vec<RegionPath> {
        let path = |parent: &Option<u32>| RegionPath {
            program: RegionProgramId(0),
            parent: parent.map(RegionPathId),
            name: "r".into(),
            phase: String::new(),
        };
        parents.iter().map(path).collect()
    }

    fn batch(at: u64, missed: u64, marks: &[(u64, u32, bool)]) -> RegionBatch {
        let mark = |&(at, path, is_enter): &_| RegionMark { at: WallNs(at), path: RegionPathId(path), is_enter };
        let marks = marks.iter().map(mark).collect();
        let thread = ThreadMarks { program: RegionProgramId(0), tid: 1, missed, marks };
        let (at, since) = (WallNs(at), WallNs(at.saturating_sub(100)));
        RegionBatch { at, since, marks: vec![thread], ..RegionBatch::default() }
    }

    use RegionAt::{Outside, Unknown};

    const fn inside(path: u32) -> RegionAt {
        RegionAt::In(RegionPathId(path))
    }

    #[test]
    fn the_innermost_is_that_of_the_last_mark() {
        let mut open = OpenRegions::default();
        let first = batch(100, 0, &[(10, 0, true), (20, 1, true), (30, 1, false), (40, 0, false)]);
        open.take(&RegionBatch { paths: paths(&[None, Some(0)]), ..first });
        let at = |at| open.region_at(1, WallNs(at));
        assert_eq!([9, 10, 20, 29, 30, 40].map(at), [Outside, inside(0), inside(1), inside(1), inside(0), Outside]);
        assert_eq!((open.region_at(2, WallNs(20)), open.missed()), (Outside, 0));
    }

    #[test]
    fn regions_that_close_in_another_order_leave_the_others_open() {
        let mut open = OpenRegions::default();
        let first = batch(100, 0, &[(10, 0, true), (20, 1, true), (30, 0, false), (40, 1, false)]);
        open.take(&RegionBatch { paths: paths(&[None, Some(0)]), ..first });
        assert_eq!([25, 35, 45].map(|at| open.region_at(1, WallNs(at))), [inside(1), inside(1), Outside]);
    }

    #[test]
    fn what_was_missed_is_unknown_and_not_outside_of_regions() {
        let mut open = OpenRegions::default();
        open.take(&RegionBatch { paths: paths(&[None, Some(0), Some(1)]), ..batch(100, 0, &[(10, 0, true)]) });
        open.take(&batch(200, 5, &[(150, 2, false), (160, 1, false)]));
        let at = |at| open.region_at(1, WallNs(at));
        assert_eq!([99, 100, 149, 150, 160].map(at), [inside(0), Unknown, Unknown, inside(1), inside(0)]);
        open.take(&batch(300, 1, &[(250, 2, true)]));
        assert_eq!([249, 250].map(|at| open.region_at(1, WallNs(at))), [Unknown, inside(2)]);
        assert_eq!(open.missed(), 6);
    }

    #[test]
    fn what_is_forgotten_is_unknown() {
        let mut open = OpenRegions::default();
        let first = batch(100, 0, &[(10, 0, true), (20, 1, true), (30, 1, false)]);
        open.take(&RegionBatch { paths: paths(&[None, Some(0)]), ..first });
        open.forget_before(WallNs(9));
        assert_eq!([5, 15].map(|at| open.region_at(1, WallNs(at))), [Outside, inside(0)]);
        open.forget_before(WallNs(25));
        assert_eq!([5, 15, 25, 30].map(|at| open.region_at(1, WallNs(at))), [Unknown, Unknown, inside(1), inside(0)]);
    }

    #[test]
    fn threads_that_left_all_regions_are_forgotten_and_numbers_are_used_again() {
        let mut open = OpenRegions::default();
        let first = batch(100, 0, &[(10, 0, true), (20, 0, false)]);
        open.take(&RegionBatch { paths: paths(&[None, None]), ..first });
        open.forget_before(WallNs(20));
        assert!(open.threads.is_empty());
        assert_eq!([15, 20].map(|at| open.region_at(1, WallNs(at))), [Unknown, Outside]);
        open.take(&batch(200, 0, &[(110, 0, true)]));
        open.forget_before(WallNs(200));
        assert_eq!(open.threads.len(), 1, "it is in a region");
        // Its number is that of a thread of another program now.
        let mut other = batch(400, 0, &[(350, 1, true), (360, 1, false)]);
        other.marks[0].program = RegionProgramId(1);
        open.take(&other);
        assert_eq!(
            [299, 300, 350, 370].map(|at| open.region_at(1, WallNs(at))),
            [inside(0), Outside, inside(1), Outside]
        );
    }

    proptest! {
        #[test]
        fn what_is_forgotten_changes_nothing_later(
            marks in prop::collection::vec((0u64..100, 0u32..3, any::<bool>()), 0..30), before in 0u64..100,
        ) {
            let of = || {
                let mut open = OpenRegions::default();
                open.take(&RegionBatch { paths: paths(&[None, Some(0), None]), ..batch(100, 0, &marks) });
                open
            };
            let (all, mut rest) = (of(), of());
            rest.forget_before(WallNs(before));
            for at in before..101 {
                prop_assert_eq!(all.region_at(1, WallNs(at)), rest.region_at(1, WallNs(at)));
            }
        }
    }
}
