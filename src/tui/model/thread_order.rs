//! Keeps rows of threads in their places while the numbers that they are sorted by are nearly equal.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use super::order::{SortKey, compare};
use super::threads::ThreadColumn;

/// Two numbers are nearly equal where they differ by no more than this part of the larger, or by no more than [`near`] says.
/// What threads use in a second varies by some percent, and rows that swap places each second can't be read.
const NEAR: f64 = 0.1;

/// By how much numbers of a column may differ and be nearly equal, however small they are: half a percent of a CPU, or once in two
/// seconds. `None` where each difference counts, as names, numbers and memory hardly change.
fn near(column: ThreadColumn) -> Option<f64> {
    use ThreadColumn::{Cpu, Disk, Faults, Lock, Memory, Name, Ready, Sleep, Switches, Tid, User};
    match column {
        Cpu | Ready | Lock | Disk | Sleep => Some(0.005),
        Faults | Switches => Some(0.5),
        Name | Tid | User | Memory => None,
    }
}

/// The order in which threads stood on the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::tui) struct ThreadOrder {
    /// By which column, and whether the least stood first.
    by: (ThreadColumn, bool),
    /// The place of each thread, by its number.
    places: FxHashMap<i32, usize>,
}

impl ThreadOrder {
    /// The order of threads that stand so, from the first on.
    pub(super) fn of(by: (ThreadColumn, bool), threads: impl IntoIterator<Item = i32>) -> Self {
        Self { by, places: threads.into_iter().enumerate().map(|(place, tid)| (tid, place)).collect() }
    }

    /// Puts threads, with their keys and in order of these, back to where they stood, as far as they pass only others that are
    /// nearly equal.
    pub(super) fn settle<T>(&self, by: (ThreadColumn, bool), keyed: &mut [(SortKey, T)], tid: impl Fn(&T) -> i32) {
        let Some(near) = near(by.0).filter(|_| by == self.by) else { return };
        let place = |thread: &T| self.places.get(&tid(thread));
        for next in 1..keyed.len() {
            let passed = (1..=next).rev().take_while(|&at| {
                let ((above, _), (key, _)) = (&keyed[at - 1], &keyed[next]);
                let [upper, lower] = [at - 1, next].map(|at| place(&keyed[at].1));
                is_near(above, key, near) && lower.zip(upper).is_some_and(|(lower, upper)| lower < upper)
            });
            let passed = passed.count();
            keyed[next - passed..=next].rotate_right(1);
        }
    }
}

fn is_near(a: &SortKey, b: &SortKey, near: f64) -> bool {
    match (a, b) {
        (SortKey::Number(Some(a)), SortKey::Number(Some(b))) => (a - b).abs() <= near.max(NEAR * a.abs().max(b.abs())),
        _ => compare(a, b, true) == Ordering::Equal,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BY: (ThreadColumn, bool) = (ThreadColumn::Cpu, false);

    /// The order of threads 0, 1, … with these parts of a CPU, where they stood so before.
    fn settled(before: &ThreadOrder, by: (ThreadColumn, bool), cpu: &[f64]) -> Vec<i32> {
        let mut keyed: Vec<_> = (0..).zip(cpu).map(|(tid, cpu)| (SortKey::Number(Some(*cpu)), tid)).collect();
        keyed.sort_by(|(a, _), (b, _)| compare(a, b, by.1));
        before.settle(by, &mut keyed, |tid| *tid);
        keyed.into_iter().map(|(_, tid)| tid).collect()
    }

    #[test]
    fn threads_that_are_nearly_equal_stay_where_they_were() {
        let before = ThreadOrder::of(BY, [2, 0, 1, 3]);
        assert_eq!(settled(&before, BY, &[0.93, 0.95, 0.90, 0.10]), [2, 0, 1, 3]);
        // One that does much more goes up, and the others keep their order.
        assert_eq!(settled(&before, BY, &[0.5, 0.49, 0.51, 0.9]), [3, 2, 0, 1]);
        // Little is nearly nothing, but a hundredth of a CPU isn't.
        assert_eq!(settled(&before, BY, &[0.0, 0.004, 0.0, 0.01]), [3, 2, 0, 1]);
        // Another column, another direction, and a list that wasn't drawn have an order of their own.
        let others = [(ThreadColumn::Ready, false), (ThreadColumn::Cpu, true)];
        assert_eq!(others.map(|by| settled(&before, by, &[0.3, 0.31])), [vec![1, 0], vec![0, 1]]);
        assert_eq!(settled(&ThreadOrder::default(), BY, &[0.3, 0.31]), [1, 0]);
    }

    #[test]
    fn a_thread_that_is_new_stands_by_its_number() {
        let before = ThreadOrder::of(BY, [1, 0]);
        assert_eq!(settled(&before, BY, &[0.90, 0.89, 0.905]), [2, 1, 0]);
    }

    proptest! {
        #[test]
        fn no_thread_stands_above_one_that_does_much_more(cpu in prop::collection::vec(0.0_f64..2.0, 0..12), seed: u64) {
            let mut places: Vec<i32> = (0..cpu.len() as i32).collect();
            places.sort_by_key(|tid| (*tid as u64 + 1).wrapping_mul(seed | 1));
            let order = settled(&ThreadOrder::of(BY, places), BY, &cpu);
            for (above, &upper) in order.iter().enumerate() {
                for &lower in &order[above..] {
                    let [upper, lower] = [upper, lower].map(|tid| cpu[tid as usize]);
                    prop_assert!(lower - upper <= 0.005_f64.max(NEAR * lower) + 1e-12, "{upper} above {lower}");
                }
            }
        }
    }
}
