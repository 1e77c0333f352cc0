//! Tells how long the calls of a path took, where each was measured.

use super::frame::FrameId;
use super::tree::{ThreadId, Tree};
use crate::rates::{Confidence, Error};

/// What is known of calls whose times were all measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CallTimes {
    /// Calls that ended.
    pub calls: u64,
    /// Their mean time, in nanoseconds.
    pub mean_ns: f64,
    /// The sum of the squares of what each is off the mean, in nanoseconds squared.
    pub squares: f64,
    /// What measuring them took, which was taken off, in nanoseconds.
    pub markers_ns: f64,
    /// Calls a second that ended of late.
    pub per_second: f64,
}

impl CallTimes {
    /// What is known of these calls and others together (T. F. Chan, G. H. Golub and R. J. LeVeque, "Updating formulae
    /// and a pairwise algorithm for computing sample variances", 1979).
    pub fn add(&mut self, other: &Self) {
        self.per_second += other.per_second;
        self.markers_ns += other.markers_ns;
        let calls = self.calls.saturating_add(other.calls);
        if other.calls == 0 || calls == 0 {
            return;
        }
        let (apart, part) = (other.mean_ns - self.mean_ns, other.calls as f64 / calls as f64);
        self.squares += other.squares + apart * apart * self.calls as f64 * part;
        self.mean_ns += apart * part;
        self.calls = calls;
    }

    /// The mean; `None` where all was taken off, which doesn't say that it is 0.
    pub fn mean(&self) -> Option<f64> {
        (self.mean_ns > 0.0 || self.markers_ns == 0.0).then_some(self.mean_ns)
    }

    /// The error of the mean: z standard errors, s / √n. Unknown of fewer than two calls, and where more was taken off
    /// than is left: measuring a call doesn't always take the same.
    pub fn mean_error(&self, confidence: Confidence) -> Error {
        if self.calls < 2 || self.markers_ns > self.mean_ns * self.calls as f64 {
            return Error::Unknown;
        }
        let n = self.calls as f64;
        let half = confidence.normal() * (self.squares / (n - 1.0) / n).sqrt();
        Error::Within { below: half.min(self.mean_ns), above: half }
    }
}

impl Tree {
    /// Says what the times of calls on a path were, outermost frame first; what was said of it before is forgotten.
    pub fn set_call_times(&mut self, sampled: ThreadId, frames: impl IntoIterator<Item = FrameId>, times: CallTimes) {
        self.at(sampled, frames, |tree, node| {
            tree.times.insert(node, times);
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Frame, TreeOptions};
    use super::*;

    fn of(calls: &[f64]) -> CallTimes {
        let mut times = CallTimes::default();
        for &mean_ns in calls {
            times.add(&CallTimes { calls: 1, mean_ns, per_second: 1.0, ..CallTimes::default() });
        }
        times
    }

    #[test]
    fn three_calls_by_hand() {
        // Mean 4, squares 4 + 0 + 4 = 8, s² = 4, s / √3 = 1.1547, times 1.96.
        let times = of(&[2.0, 4.0, 6.0]);
        assert_eq!((times.calls, times.mean_ns, times.squares, times.per_second), (3, 4.0, 8.0, 3.0));
        let Error::Within { below, above } = times.mean_error(Confidence::DEFAULT) else { panic!("it has an error") };
        assert!((above - 2.2632).abs() < 1e-3 && below == above, "{below} {above}");
    }

    #[test]
    fn one_call_or_none_has_no_error() {
        assert_eq!(of(&[]).mean_error(Confidence::DEFAULT), Error::Unknown);
        assert_eq!(of(&[5.0]).mean_error(Confidence::DEFAULT), Error::Unknown);
    }

    #[test]
    fn a_mean_off_which_more_was_taken_than_is_left_has_no_error() {
        let off = |markers_ns| CallTimes { markers_ns, ..of(&[2.0, 4.0]) };
        assert!(matches!(off(6.0).mean_error(Confidence::DEFAULT), Error::Within { .. }));
        assert_eq!((off(6.5).mean(), off(6.5).mean_error(Confidence::DEFAULT)), (Some(3.0), Error::Unknown));
        let nothing_left = CallTimes { markers_ns: 5.0, ..of(&[0.0, 0.0]) };
        assert_eq!((nothing_left.mean(), of(&[0.0, 0.0]).mean()), (None, Some(0.0)));
    }

    #[test]
    fn times_move_with_their_node() {
        let mut tree = Tree::new(TreeOptions::default());
        let place = tree.sampled();
        let frame = tree.frame(&Frame::function("part"));
        tree.set_call_times(place, [frame], of(&[1.0, 3.0]));
        let mut both = tree.clone();
        both.merge(&tree);
        let found = both.nodes().filter_map(|node| node.call_times().copied()).collect::<Vec<_>>();
        assert_eq!(found, [of(&[1.0, 3.0, 1.0, 3.0])]);
    }

    proptest! {
        #[test]
        fn parts_add_up_to_the_whole(calls in prop::collection::vec(0.0..1e6_f64, 0..40), at in 0usize..40) {
            let (first, second) = calls.split_at(at.min(calls.len()));
            let mut parts = of(first);
            parts.add(&of(second));
            let whole = of(&calls);
            prop_assert_eq!(parts.calls, whole.calls);
            prop_assert!((parts.mean_ns - whole.mean_ns).abs() < 1e-3);
            prop_assert!((parts.squares - whole.squares).abs() <= 1e-6 * whole.squares.max(1.0));
        }
    }
}
