//! Says how sure CPU time of user space and of the kernel is: the kernel knows their sum, and samples where a CPU is.

use std::collections::BTreeMap;

use super::Monitor;
use crate::estimate::Estimate;
use crate::plan::RowIndex;
use crate::rates::{Confidence, Error, Uncertain};
use crate::run::{End, MeasuredEvent, MeasuredTarget};
use crate::sources::Scope;
use crate::units::CpuNs;

/// How the kernel came to a CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rounding {
    /// /proc counts in ticks, at both ends of the time.
    Ticks,
    /// It was told to the nanosecond.
    None,
}

impl Monitor {
    /// The estimates of events that are read in steps, at the end of an interval, or of the run.
    pub(super) fn stepped(&self, end: Option<&End>) -> BTreeMap<RowIndex, Estimate> {
        let is_stepped = |event: &RowIndex| self.header.events[*event].event.step().is_some();
        let of = |event: RowIndex| {
            let estimate = self.estimator.estimates()[event].clone();
            let interval = self.split_interval(event, self.tally.interval_count(event));
            let total = self.split_total(event, estimate.total.or(self.tally.total(event)), end);
            (event, Estimate { interval, total, ..estimate })
        };
        (0..self.header.events.len()).filter(is_stepped).map(of).collect()
    }

    /// How sure a count of an interval is, beside what its counterpart counted.
    fn split_interval(&self, event: RowIndex, count: Option<Uncertain>) -> Option<Uncertain> {
        let other = self.counterpart(event).and_then(|other| self.tally.interval_count(other));
        self.split(event, count, other, Rounding::Ticks)
    }

    /// The same of a count of the run. At the end of a command the kernel tells the sum exactly, unless ticks were left
    /// out before.
    fn split_total(&self, event: RowIndex, count: Option<Uncertain>, end: Option<&End>) -> Option<Uncertain> {
        let other = self.counterpart(event).and_then(|other| self.tally.total(other));
        let is_command = matches!(self.header.target, MeasuredTarget::Command { .. });
        let told = end.filter(|_| is_command && self.header.delay_ns.0 == 0).and_then(|end| end.cpu_time);
        let known = count.map_or(0.0, |count| count.value) + other.map_or(0.0, |other| other.value);
        let is_told = told.is_some_and(|told| known <= told.all().0 as f64);
        self.split(event, count, other, if is_told { Rounding::None } else { Rounding::Ticks })
    }

    fn split(
        &self,
        event: RowIndex,
        count: Option<Uncertain>,
        other: Option<Uncertain>,
        rounding: Rounding,
    ) -> Option<Uncertain> {
        let Some(step) = self.header.events[event].event.step() else { return count };
        count.map(|count| sampled(count, other.map(|other| other.value), (step, rounding), self.confidence()))
    }

    /// The event that counts the rest of the CPU time of the same part of the target. What is idle is a part of a CPU's
    /// time, too.
    fn counterpart(&self, event: RowIndex) -> Option<RowIndex> {
        let of = &self.header.events[event];
        let name = if of.event.is_called("user_time") { "system_time" } else { "user_time" };
        let is_of_cpus =
            matches!((&self.header.target, &of.scope), (MeasuredTarget::Everyone { .. }, _) | (_, Scope::Cpu(_)));
        let is_it = |other: &MeasuredEvent| other.event.is_called(name) && other.scope == of.scope;
        self.header.events.iter().position(is_it).filter(|_| !is_of_cpus)
    }
}

/// Each tick samples whether the CPU is in user space or in the kernel: Wilson's interval of a share, where it is known
/// of how much; else that of a Poisson count, which is wider.
fn sampled(
    time: Uncertain,
    rest: Option<f64>,
    (tick, rounding): (CpuNs, Rounding),
    confidence: Confidence,
) -> Uncertain {
    let (tick, z) = (tick.0 as f64, confidence.normal());
    let (x, half_square) = (time.value / tick, z * z / 2.0);
    let (low, high) = match rest.map(|rest| x + rest / tick) {
        Some(0.0) => (0.0, 0.0),
        Some(n) => {
            let half = z * (x * (n - x) / n + half_square / 2.0).sqrt();
            let scaled = |bound: f64| bound / (1.0 + z * z / n);
            (scaled(x + half_square - half), scaled(x + half_square + half))
        }
        None => {
            let half = z * (x + half_square / 2.0).sqrt();
            (x + half_square - half, x + half_square + half)
        }
    };
    let rounded = if rounding == Rounding::Ticks { tick } else { 0.0 };
    let below = ((x - low) * tick + rounded).clamp(0.0, time.value);
    let above = ((high - x) * tick + rounded).max(0.0);
    Uncertain { error: Error::Within { below, above }, ..time }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;

    const TICK: CpuNs = CpuNs(10_000_000);

    fn bounds(ms: f64, rest: Option<f64>, rounding: Rounding) -> (f64, f64) {
        let time = Uncertain::exact(ms * 1e6);
        let split = sampled(time, rest.map(|ms| ms * 1e6), (TICK, rounding), Confidence::DEFAULT);
        let (low, high) = split.bounds().unwrap();
        (low / 1e6, high / 1e6)
    }

    #[test]
    fn a_share_by_hand() {
        // 20 of 100 ticks: Wilson's interval is 13.3 to 28.9 %.
        let (low, high) = bounds(200.0, Some(800.0), Rounding::None);
        assert!((low - 133.4).abs() < 0.1 && (high - 288.8).abs() < 0.1, "{low} {high}");
        let (low, high) = bounds(200.0, Some(800.0), Rounding::Ticks);
        assert!((low - 123.4).abs() < 0.1 && (high - 298.8).abs() < 0.1, "{low} {high}");
        // 25 ticks of nobody knows how many: 16.9 to 36.9.
        let (low, high) = bounds(250.0, None, Rounding::None);
        assert!((low - 169.4).abs() < 0.1 && (high - 369.0).abs() < 0.1, "{low} {high}");
    }

    #[test]
    fn nothing_and_all_have_an_interval_to_one_side() {
        // None of 4 ticks may be half of them; all of them, too.
        let (none, all) = (bounds(0.0, Some(40.0), Rounding::None), bounds(40.0, Some(0.0), Rounding::None));
        assert!(none.0.abs() < 1e-9 && (none.1 - 19.6).abs() < 0.1, "{none:?}");
        assert!((all.0 - 20.4).abs() < 0.1 && (all.1 - 40.0).abs() < 1e-6, "{all:?}");
        assert_eq!(bounds(0.0, Some(0.0), Rounding::None), (0.0, 0.0));
    }

    proptest! {
        #[test]
        fn the_time_lies_in_its_interval_and_more_ticks_know_it_better(user in 0.0..1e4_f64, kernel in 0.0..1e4_f64) {
            let (low, high) = bounds(user, Some(kernel), Rounding::Ticks);
            prop_assert!(0.0 <= low && low <= user && user <= high);
            let (open_low, open_high) = bounds(user, None, Rounding::Ticks);
            prop_assert!(open_low <= low + 1e-6 && high <= open_high + 1e-6);
            let four = bounds(4.0 * user, Some(4.0 * kernel), Rounding::None);
            let one = bounds(user, Some(kernel), Rounding::None);
            prop_assert!((four.1 - four.0) / 4.0 <= one.1 - one.0 + 1e-6);
        }
    }
}
