//! Says how frames of a flame graph differ between two sides: a colour, and words.

use crate::profile::{Amount, Frame, NodeId, Tree};
use crate::stack_formats::options::FlameDifference;

/// Colours of more and of less, each; besides, one of no difference.
const STEPS: usize = 4;

/// A part of all from which on the colour is the strongest.
const STRONGEST: f64 = 0.10;

/// The numbers of both sides on all nodes, with all below.
#[derive(Debug)]
pub(super) struct FlameChanges<'a> {
    difference: &'a FlameDifference,
    a: Vec<Amount>,
    b: Vec<Amount>,
}

impl<'a> FlameChanges<'a> {
    pub(super) fn of(tree: &Tree, difference: &'a FlameDifference) -> Self {
        Self { difference, a: tree.inclusive(difference.a), b: tree.inclusive(difference.b) }
    }

    /// By what part of all of A a node has more in B.
    fn change(&self, node: NodeId) -> f64 {
        let weight = |side: &[Amount], node: NodeId| side.get(node.index()).map_or(0.0, |amount| amount.weight as f64);
        (weight(&self.b, node) - weight(&self.a, node)) / weight(&self.a, NodeId::ROOT).max(1.0)
    }

    /// The class of a node's rectangle: `m1` to `m4` of more, `l1` to `l4` of less, `n` of neither.
    pub(super) fn class(&self, node: NodeId, frame: &Frame<'_>) -> String {
        let mark = if self.is_marked(frame) { " sure" } else { "" };
        format!("{}{mark}", step(self.change(node)))
    }

    /// What the pointer reads: `+1.2% of all of A`.
    pub(super) fn words(&self, node: NodeId, frame: &Frame<'_>) -> String {
        let sure = if self.is_marked(frame) { ", the function itself differs by more than chance" } else { "" };
        format!(", {:+.2}% of all of A{sure}", 100.0 * self.change(node))
    }

    /// What is to be known of marks.
    pub(super) fn note(&self) -> &str {
        &self.difference.note
    }

    fn is_marked(&self, frame: &Frame<'_>) -> bool {
        let file = frame.module.rsplit('/').next().unwrap_or_default();
        let is_it = |(name, module): &(String, String)| name == frame.name && module == file;
        self.difference.marked.iter().any(is_it)
    }
}

/// The colours are by the logarithm: 0.1 %, 0.5 %, 2 % and 10 % of all.
fn step(change: f64) -> String {
    let size = change.abs() / STRONGEST;
    let step = if size >= 1.0 {
        STEPS
    } else if size >= 0.2 {
        3
    } else if size >= 0.05 {
        2
    } else {
        usize::from(size >= 0.01)
    };
    match (step, change > 0.0) {
        (0, _) => "n".into(),
        (step, true) => format!("m{step}"),
        (step, false) => format!("l{step}"),
    }
}

/// The rules of these classes, for light and dark pages: red is more, blue is less, as in other differential flame graphs.
pub(super) fn rules() -> String {
    const LIGHT: [(&str, [&str; STEPS]); 2] =
        [("m", ["#f7ddd8", "#f0b4a8", "#e58a78", "#d65f4a"]), ("l", ["#dae3f5", "#b0c6ec", "#86a8e0", "#5b88d1"])];
    const DARK: [(&str, [&str; STEPS]); 2] =
        [("m", ["#5c4440", "#7d4138", "#9c4334", "#b8402c"]), ("l", ["#404a60", "#35507f", "#2f5a9c", "#2b63b8"])];
    let of = |classes: [(&str, [&str; STEPS]); 2]| -> String {
        let rule = |(name, colors): (&str, [&str; STEPS])| -> String {
            colors.iter().zip(1..).map(|(color, step)| format!(".{name}{step}{{fill:{color}}}")).collect()
        };
        classes.map(rule).concat()
    };
    format!(
        ".sure{{stroke:currentColor;stroke-width:2}}{}@media (prefers-color-scheme:dark){{{}}}",
        of(LIGHT),
        of(DARK)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_by_the_part_of_all_that_changed() {
        for (change, class) in [(0.0, "n"), (0.0009, "n"), (0.0011, "m1"), (-0.0051, "l2"), (0.03, "m3"), (-0.4, "l4")]
        {
            assert_eq!(step(change), class, "{change}");
        }
        assert!(step(f64::NAN) == "n");
    }
}
