//! What callgrind writes in, costs by their place in the model out.

use crate::events::emulate::{COSTS, cost};

/// The costs of a part of a program, in the order of `relations/emulate.json`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs(pub [u64; COSTS]);

impl Costs {
    /// Adds others to these.
    pub(super) fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(cost, more)| *cost = cost.saturating_add(more));
    }

    /// What came since `earlier`.
    pub(super) fn since(mut self, earlier: &Self) -> Self {
        self.0.iter_mut().zip(earlier.0).for_each(|(cost, before)| *cost = cost.saturating_sub(before));
        self
    }

    /// The larger of each two.
    pub(super) fn max(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(cost, other)| *cost = (*cost).max(other));
        self
    }

    /// Reads `numbers` by the names of a line `events:`; zeros at the end are left out by callgrind.
    fn parse(names: &str, numbers: &str) -> Self {
        let mut costs = Self::default();
        for (name, number) in names.split_whitespace().zip(numbers.split_whitespace()) {
            if let (Some(place), Ok(number)) = (cost(name), number.parse()) {
                costs.0[place] = number;
            }
        }
        costs
    }
}

/// A running process' answer to `status internal`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Status {
    /// How many parts it has dumped so far.
    pub(super) part: u32,
    /// Basic blocks executed since it was started: fewer than before is another program.
    pub(super) blocks: u64,
    /// The costs of all its threads, ended ones too, since the last dump.
    pub(super) costs: Costs,
}

impl Status {
    /// Reads an answer; `None` if it isn't one.
    ///
    /// ```text
    /// executed-bbs: 20500488
    /// events: Ir Dr Dw I1mr ...
    /// part: 0
    /// events-1: 110673182 4121520 8200556 1082 ...     a thread
    /// events-1-0: 110553134 4095414 ...                a frame of its stack
    /// ```
    pub(super) fn parse(answer: &str) -> Option<Self> {
        let mut names = None;
        let mut status = Self::default();
        for (key, value) in answer.lines().filter_map(|line| line.split_once(": ")) {
            match (key, key.strip_prefix("events-")) {
                ("executed-bbs", _) => status.blocks = value.trim().parse().ok()?,
                ("part", _) => status.part = value.trim().parse().ok()?,
                ("events", _) => names = Some(value),
                (_, Some(thread)) if !thread.contains('-') => status.costs.add(&Costs::parse(names?, value)),
                _ => {}
            }
        }
        names.map(|_| status)
    }
}

/// The line `summary:` of an output file, whose head may be all that is written yet.
pub(super) fn summary(file: &str) -> Option<Costs> {
    let mut names = None;
    // A line without its end is still being written.
    for line in file.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        match line.split_once(": ") {
            Some(("events", value)) => names = Some(value),
            Some(("summary", value)) => return Some(Costs::parse(names?, value)),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_answer_is_the_sum_of_its_threads() {
        let answer = "instrumentation: on\nexecuted-bbs: 12\nevents: Ir Dr Bim\npart: 3\nthreads: 1 2\n\
                      events-1: 100 20 3\nframes-1: 1\nevents-1-0: 90 9 9\nevents-2: 11 1\n";
        let status = Status::parse(answer);
        let mut costs = Costs::default();
        (costs.0[0], costs.0[1], costs.0[12]) = (111, 21, 3);
        assert_eq!(status, Some(Status { part: 3, blocks: 12, costs }));
        assert_eq!(Status::parse("no threads\n"), None);
        assert_eq!(Status::parse(""), None);
    }

    #[test]
    fn a_summary_is_taken_once_its_line_is_whole() {
        let text = "version: 1\nevents: Ir Dr\nsummary: 7 5\n\nfn=(1)\n";
        let mut costs = Costs::default();
        (costs.0[0], costs.0[1]) = (7, 5);
        assert_eq!(summary(text), Some(costs));
        assert_eq!(summary("version: 1\nevents: Ir Dr\nsummary: 7 "), None);
        assert_eq!(summary("summary: 7 5\n"), None);
    }

    proptest! {
        #[test]
        fn nothing_that_is_read_panics(text in ".{0,200}") {
            let _ = (Status::parse(&text), summary(&text));
        }

        #[test]
        fn what_came_since_adds_up(a in prop::array::uniform13(0u64..1 << 60), b in prop::array::uniform13(0u64..1 << 60)) {
            let mut sum = Costs(a);
            sum.add(&Costs(b));
            prop_assert_eq!(sum.since(&Costs(a)), Costs(b));
            prop_assert_eq!(sum.max(&Costs(a)), sum);
        }
    }
}
