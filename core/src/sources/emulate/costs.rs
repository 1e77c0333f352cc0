//! Adds up the costs that callgrind writes, by their place in the model.

use crate::events::emulate::{COSTS, cost};

/// The costs of a part of a program, in the order of `relations/emulate.json`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs(pub [u64; COSTS]);

impl Costs {
    /// Adds the costs of `other`.
    pub(super) fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(cost, more)| *cost = cost.saturating_add(more));
    }

    /// What came since `earlier`.
    pub(super) fn since(mut self, earlier: &Self) -> Self {
        self.0.iter_mut().zip(earlier.0).for_each(|(cost, before)| *cost = cost.saturating_sub(before));
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

/// Whether an output file is written to its end, the line `totals:`.
pub(super) fn is_whole(file: &str) -> bool {
    file.ends_with('\n') && file.trim_end().rsplit('\n').next().is_some_and(|line| line.starts_with("totals: "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
            let _ = summary(&text);
        }

        #[test]
        fn what_came_since_adds_up(a in prop::array::uniform13(0u64..1 << 60), b in prop::array::uniform13(0u64..1 << 60)) {
            let mut sum = Costs(a);
            sum.add(&Costs(b));
            prop_assert_eq!(sum.since(&Costs(a)), Costs(b));
        }
    }
}
