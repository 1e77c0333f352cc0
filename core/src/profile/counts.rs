//! Tells what an event counted in the calls of a path, and how sure that is.

use super::frame::FrameId;
use super::tree::{ThreadId, Tree};
use super::weight::EventId;
use crate::rates::{Confidence, Error};

/// What an event counted in calls, in all of which or in a part of whose time it was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CallCounts {
    /// Calls that ended.
    pub calls: u64,
    /// Those in which it was counted for all or a part of the time.
    pub measured: u64,
    /// Counts in all of them, with what they called; estimated where a part of the time was counted.
    pub count: f64,
    /// Counts in them alone; `None` where that isn't known.
    pub own: Option<f64>,
    /// Counts that are not estimated: but for the markers, no end of an interval is less.
    pub counted: f64,
    /// By how much the count may be too large, as what measures calls adds to it.
    pub excess: f64,
    /// Variance of [`CallCounts::count`] as an estimate: 0 where all was counted, `None` where nobody can say.
    pub variance: Option<f64>,
    /// Degrees of freedom of that variance.
    pub degrees: u64,
    /// Counts a second of late; `None` where that isn't known.
    pub per_second: Option<f64>,
}

impl CallCounts {
    /// What was counted in these calls and others together. They are estimated apart, so variances add up; with the
    /// fewest degrees of freedom, no error is too small.
    pub fn add(&mut self, other: &Self) {
        let both = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b);
        let degrees = |counts: &Self| if counts.variance == Some(0.0) { u64::MAX } else { counts.degrees };
        *self = Self {
            calls: self.calls.saturating_add(other.calls),
            measured: self.measured.saturating_add(other.measured),
            count: self.count + other.count,
            own: both(self.own, other.own),
            counted: self.counted + other.counted,
            excess: self.excess + other.excess,
            variance: both(self.variance, other.variance),
            degrees: degrees(self).min(degrees(other)),
            per_second: both(self.per_second, other.per_second),
        };
    }

    /// Whether any call was counted; where none was, there is no number, which is not 0.
    pub fn is_counted(&self) -> bool {
        self.measured > 0
    }

    /// The mean of a call.
    pub fn mean(&self) -> f64 {
        self.count / self.calls.max(1) as f64
    }

    /// The error of the count, and with that, in percent, of the mean.
    pub fn error(&self, confidence: Confidence) -> Error {
        match self.variance {
            // Where all was taken off, it may have been too much as well as too little.
            Some(0.0) if self.excess > 0.0 && self.count <= 0.0 => Error::Within { below: 0.0, above: self.excess },
            Some(0.0) if self.excess > 0.0 => Error::Within { below: self.excess.min(self.count), above: 0.0 },
            Some(0.0) => Error::Exact,
            Some(variance) if self.degrees > 0 => {
                let half = confidence.student(self.degrees as f64) * variance.sqrt();
                let below = half.min((self.count - self.counted).max(0.0)) + self.excess;
                Error::Within { below: below.min(self.count.max(0.0)), above: half }
            }
            _ => Error::Unknown,
        }
    }
}

impl Tree {
    /// Says what an event counted in the calls of a path, outermost frame first; what was said of it before is
    /// forgotten.
    pub fn set_call_counts(
        &mut self,
        sampled: ThreadId,
        frames: impl IntoIterator<Item = FrameId>,
        event: EventId,
        counts: CallCounts,
    ) {
        self.at(sampled, frames, |tree, node| {
            tree.counts.insert((node, event), counts);
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Frame, ProfileEvent, SampleMeasure};
    use super::*;

    fn exact(calls: u64, count: f64) -> CallCounts {
        CallCounts {
            calls,
            measured: calls,
            count,
            own: Some(count),
            counted: count,
            excess: 0.0,
            variance: Some(0.0),
            degrees: 0,
            per_second: None,
        }
    }

    #[test]
    fn a_part_of_the_time_by_hand() {
        // Of 4 calls, s² E (E - R)/R = 25: t(3) = 3.182, times 5. Of 60 counts 50 were counted.
        let counts = CallCounts {
            calls: 4,
            measured: 4,
            count: 60.0,
            own: Some(40.0),
            counted: 50.0,
            excess: 0.0,
            variance: Some(25.0),
            degrees: 3,
            per_second: None,
        };
        let Error::Within { below, above } = counts.error(Confidence::DEFAULT) else { panic!("it has an error") };
        assert!((above - 15.91).abs() < 0.01 && below == 10.0, "{below} {above}");
        assert_eq!(counts.mean(), 15.0);
    }

    #[test]
    fn all_the_time_is_exact_and_one_call_is_not_known() {
        assert_eq!(exact(3, 90.0).error(Confidence::DEFAULT), Error::Exact);
        let one = CallCounts { variance: None, ..exact(1, 9.0) };
        assert_eq!(one.error(Confidence::DEFAULT), Error::Unknown);
        assert_eq!((CallCounts::default().mean(), one.mean()), (0.0, 9.0));
        let markers = CallCounts { excess: 4.0, ..exact(3, 90.0) };
        assert_eq!(markers.error(Confidence::DEFAULT), Error::Within { below: 4.0, above: 0.0 });
        let mut both = exact(3, 90.0);
        both.add(&one);
        assert_eq!((both.count, both.variance, both.own), (99.0, None, Some(99.0)));
    }

    #[test]
    fn counts_move_with_their_node_and_their_event() {
        let mut tree = Tree::default();
        let place = tree.sampled();
        let frame = tree.frame(&Frame::function("part"));
        let event = tree.event(&ProfileEvent::new("region-page-faults", SampleMeasure::Counted("count".into())));
        tree.set_call_counts(place, [frame], event, exact(2, 8.0));
        let mut other = Tree::default();
        other.event(&ProfileEvent::new("another", SampleMeasure::Samples));
        other.merge(&tree);
        other.merge(&tree);
        let event = other.find_event("region-page-faults");
        let found: Vec<_> = other.nodes().filter_map(|node| node.call_counts(event?).copied()).collect();
        assert_eq!(found.iter().map(|counts| (counts.calls, counts.count)).collect::<Vec<_>>(), [(4, 16.0)]);
        assert_eq!(found[0].error(Confidence::DEFAULT), Error::Exact);
    }

    proptest! {
        #[test]
        fn errors_of_parts_are_no_more_than_their_sum(
            parts in prop::collection::vec((0.0..1e6_f64, 0.1..1e6_f64), 1..10), degrees in 30u64..1000,
        ) {
            let of = |&(count, variance): &(f64, f64)| CallCounts {
                calls: degrees, measured: degrees, count, own: None, counted: 0.0, excess: 0.0, variance: Some(variance), degrees, per_second: None,
            };
            let above = |counts: &CallCounts| match counts.error(Confidence::DEFAULT) {
                Error::Within { above, .. } => above,
                _ => f64::NAN,
            };
            let mut all = of(&parts[0]);
            parts[1..].iter().for_each(|part| all.add(&of(part)));
            let sum: f64 = parts.iter().map(|part| above(&of(part))).sum();
            prop_assert!(above(&all) <= sum * (1.0 + 1e-9));
        }
    }
}
