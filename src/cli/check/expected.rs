//! Computes the scaling error to expect of multiplexed groups, for each schedule.
//!
//! It is that of [`expectation`](crate::plan::expectation) for a program of typical variability, at 95 %,
//! of the group that runs least.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use crate::number::{percent, plus_minus_part};
use crate::plan::Rotation;
use crate::plan::expectation::relative_error;
use crate::session::schedule::choose;
use crate::sources::perf::SLICE;

/// The intervals whose errors are shown.
const INTERVALS: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];

/// How many standard errors 95 % of normal errors lie within.
const NORMAL_95: f64 = 1.96;

/// What to expect of the groups of one PMU, who can't all be counted at once.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Expected {
    /// Errors of the kernel's rotation, at its interval if that is known, and at 1 ms.
    kernel: Option<Errors>,
    mux: Errors,
    /// Errors of perfprop's rotation.
    user: Errors,
    /// Time that perfprop needs for one switch, where that could be measured.
    switch: Option<Duration>,
    /// Whether perfprop rotates by default.
    by_default: bool,
}

/// The relative errors at 95 %, in each of [`INTERVALS`].
type Errors = [f64; INTERVALS.len()];

/// How the kernel rotates groups.
#[derive(Debug, Clone, Copy)]
pub(super) struct KernelRotation {
    /// The run ratio of the group that runs least.
    pub(super) ratio: f64,
    /// How many groups there are.
    pub(super) groups: usize,
    /// Length of a slice, where the kernel says it.
    pub(super) slice: Option<Duration>,
}

impl Expected {
    /// The error to expect of this rotation; `None` where a group never runs.
    pub(super) fn new(kernel: KernelRotation, rotations: &[Rotation], switch: Option<Duration>) -> Option<Self> {
        let groups = u32::try_from(kernel.groups).ok()?;
        let sets = rotations.iter().map(|rotation| rotation.sets.len()).max()?;
        let slices = u32::try_from(sets).ok()?;
        Some(Self {
            kernel: kernel.slice.and_then(|slice| errors(kernel.ratio, slice * groups)),
            mux: errors(kernel.ratio, Duration::from_millis(1) * groups)?,
            user: errors(1.0 / sets as f64, SLICE * slices)?,
            switch,
            by_default: choose(rotations.len(), || switch, || 1),
        })
    }

    pub(super) fn json(&self) -> Value {
        let errors = |errors: &Errors| json!({ "100ms": errors[0], "1s": errors[1] });
        json!({
            "confidence": 0.95,
            "kernel": self.kernel.as_ref().map(errors),
            "mux-1": errors(&self.mux),
            "user": errors(&self.user),
            "switch-ns": self.switch.map(|switch| u64::try_from(switch.as_nanos()).unwrap_or(u64::MAX)),
            "auto": if self.by_default { "user" } else { "kernel" },
        })
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::from(
            "  The 95% error to expect of the group that runs least, if the program varies\n  as most do (expected, not measured):    in 100 ms     in 1 s\n",
        );
        let mut row = |name: &str, errors: &Errors, note: &str| {
            let [short, long] = errors.map(plus_minus_part);
            let line = format!("    {name:<36}{short:>10} {long:>10}   {note}");
            let _ = writeln!(text, "{}", line.trim_end());
        };
        if let Some(kernel) = &self.kernel {
            row("--schedule kernel", kernel, "");
        }
        row("--mux 1", &self.mux, "as root");
        row("--schedule user", &self.user, "");
        let taken = if self.by_default { "user" } else { "kernel" };
        let cost = match self.switch {
            Some(switch) => format!(
                "a switch takes {:.0} us, {} of a CPU",
                switch.as_secs_f64() * 1e6,
                percent(switch.as_secs_f64() / SLICE.as_secs_f64())
            ),
            None => "what a switch costs can't be measured here".to_owned(),
        };
        let _ = writeln!(text, "  --schedule auto takes {taken}: {cost}.");
        text
    }
}

fn errors(ratio: f64, cycle: Duration) -> Option<Errors> {
    let [short, long] = INTERVALS.map(|interval| relative_error(ratio, cycle, interval));
    Some([short? * NORMAL_95, long? * NORMAL_95])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builders::rotation;

    fn kernel(ratio: f64) -> KernelRotation {
        KernelRotation { ratio, groups: 6, slice: Some(Duration::from_millis(4)) }
    }

    fn six() -> [Rotation; 1] {
        [rotation(&[[0], [1], [2], [3], [4], [5]])]
    }

    #[test]
    fn shorter_turns_are_expected_to_do_better() {
        let expected = Expected::new(kernel(1.0 / 6.0), &six(), Some(Duration::from_micros(10)));
        let Some(Expected { kernel: Some(kernel), mux, user, by_default: true, .. }) = expected else {
            panic!("{expected:?}")
        };
        assert!(mux[0] < user[0] && user[0] < kernel[0] && kernel[1] < kernel[0]);
        assert!((kernel[0] - 1.96 * 0.098).abs() < 0.01, "{kernel:?}");
    }

    #[test]
    fn what_never_runs_and_what_takes_no_turns_have_no_expectation() {
        assert_eq!(Expected::new(kernel(0.0), &six(), None), None);
        assert_eq!(Expected::new(kernel(0.5), &[], None), None);
    }

    #[test]
    fn the_text_says_what_is_taken_and_why() {
        let text = |switch| Expected::new(kernel(1.0 / 6.0), &six(), switch).map_or(String::new(), |e| e.text());
        assert!(text(None).contains("auto takes kernel: what a switch costs can't be measured"), "{}", text(None));
        let cheap = text(Some(Duration::from_micros(10)));
        assert!(cheap.contains("auto takes user: a switch takes 10 us, 0.5% of a CPU"), "{cheap}");
        assert!(cheap.lines().all(|line| line.chars().count() <= 80));
    }
}
