//! Sums a tree by function, and builds the tree of a function's callers.

use std::cmp::Reverse;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::calls::FrameIndex;
use super::place::line;
use super::shape::{NodeAmounts, PathTree, Shape, TreeNode};
use crate::profile::Amount;
use crate::tui::model::step::ListStep;

/// All calls of a function together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tui) struct FunctionRow {
    pub(in crate::tui) frame: FrameIndex,
    pub(in crate::tui) own: Amount,
    /// Amount with what the function called; a sample counts once, however often the function is on its path.
    pub(in crate::tui) total: Amount,
}

/// By what functions and modules are sorted, the most first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tui) enum FunctionOrder {
    /// By what was sampled in themselves.
    #[default]
    Own,
    /// With what they called.
    Total,
}

impl FunctionOrder {
    pub(super) fn next(self) -> Self {
        match self {
            Self::Own => Self::Total,
            Self::Total => Self::Own,
        }
    }

    /// Sorts rows that are sorted by their own.
    pub(super) fn sort(self, rows: &mut [FunctionRow]) {
        if self == Self::Total {
            rows.sort_by_key(|row| Reverse(row.total.weight));
        }
    }
}

/// Rows of sums, of which one is selected.
#[derive(Debug, Default)]
pub(in crate::tui) struct SumList {
    pub(in crate::tui) rows: Vec<FunctionRow>,
    /// The frame of the selected row; the first row's until the reader chose one.
    pub(in crate::tui) selected: FrameIndex,
    /// On which line of the list it stands.
    pub(in crate::tui) line: usize,
    /// Whether the reader chose it.
    pub(super) is_chosen: bool,
}

impl SumList {
    /// Takes over other numbers; what was selected stays so if it is still there.
    pub(super) fn take(&mut self, rows: Vec<FunctionRow>) {
        self.rows = rows;
        if !self.is_chosen || !self.rows.iter().any(|row| row.frame == self.selected) {
            self.selected = self.rows.first().map_or(0, |row| row.frame);
            self.is_chosen = false;
            self.line = 0;
        }
    }

    /// The place of the selected row.
    pub(in crate::tui) fn row(&self) -> usize {
        self.rows.iter().position(|row| row.frame == self.selected).unwrap_or(0)
    }

    /// The selected row.
    pub(in crate::tui) fn at(&self) -> FunctionRow {
        self.rows.get(self.row()).copied().unwrap_or_default()
    }

    pub(super) fn choose(&mut self, frame: FrameIndex) {
        let first = self.row().saturating_sub(self.line);
        self.selected = frame;
        self.is_chosen = true;
        self.line = self.row().saturating_sub(first);
    }

    pub(super) fn step(&mut self, step: ListStep, height: usize) {
        let first = self.row().saturating_sub(self.line);
        let row = step.from(self.row(), self.rows.len());
        self.selected = self.rows.get(row).map_or(0, |function| function.frame);
        self.is_chosen = true;
        self.line = line(row, first, self.rows.len(), height);
    }
}

/// The functions below a node, those with most of their own first; `before` is how they stood. Who woke a thread is no
/// function: its time is that of what was waited for. Nor is a process or a thread.
pub(super) fn functions(
    shape: &Shape,
    root: TreeNode,
    before: &[FunctionRow],
    is_waker: impl Fn(FrameIndex) -> bool,
    is_process: impl Fn(FrameIndex) -> bool,
) -> Vec<FunctionRow> {
    // The root of all is no function.
    let all = sums(shape, root, before, |frame| frame, is_waker);
    all.into_iter().filter(|function| function.frame != 0 && !is_process(function.frame)).collect()
}

/// The sums of modules, which frames have by number, in the same order. What stands in none, such as the frame of a
/// process, has number 0, and what was sampled in itself only.
pub(super) fn modules(
    shape: &Shape,
    root: TreeNode,
    before: &[FunctionRow],
    module: impl Fn(FrameIndex) -> FrameIndex,
) -> Vec<FunctionRow> {
    let mut all = sums(shape, root, before, module, |_| false);
    all.iter_mut().filter(|row| row.frame == 0).for_each(|row| row.total = row.own);
    all.retain(|row| row.total != Amount::ZERO);
    all
}

/// The sums of frames that `class` puts together. A row's frame is the class. What frames have that belong to their
/// callers, these have.
fn sums(
    shape: &Shape,
    root: TreeNode,
    before: &[FunctionRow],
    class: impl Fn(FrameIndex) -> FrameIndex,
    is_of_caller: impl Fn(FrameIndex) -> bool,
) -> Vec<FunctionRow> {
    let mut found: FxHashMap<FrameIndex, FunctionRow> = FxHashMap::default();
    for (node, is_outermost) in outermost(shape, root, &class) {
        let is_of_caller = node != root && is_of_caller(shape.frame(node));
        let frame = class(shape.frame(if is_of_caller { shape.parent(node) } else { node }));
        let function = found.entry(frame).or_insert(FunctionRow { frame, ..FunctionRow::default() });
        function.own = function.own.plus(shape.own(node));
        if is_outermost && !is_of_caller {
            function.total = function.total.plus(shape.total(node));
        }
    }
    let stood: FxHashMap<_, _> = before.iter().enumerate().map(|(place, function)| (function.frame, place)).collect();
    let mut all: Vec<_> = found.into_values().collect();
    // By what readers see. Only of those that are alike the first stays so.
    all.sort_unstable_by_key(|function| {
        let place = stood.get(&function.frame).copied().unwrap_or(usize::MAX);
        (Reverse((function.own.weight, function.total.weight)), place, function.frame)
    });
    all
}

/// The nodes from one downwards, each with whether none of its class stands above it.
fn outermost<'a>(
    shape: &'a Shape,
    root: TreeNode,
    class: &'a impl Fn(FrameIndex) -> FrameIndex,
) -> impl Iterator<Item = (TreeNode, bool)> + 'a {
    let mut path: Vec<TreeNode> = Vec::new();
    let mut on_path: FxHashMap<FrameIndex, u32> = FxHashMap::default();
    let above = shape.depth(root);
    shape.walk(root).map(move |node| {
        for left in path.drain(shape.depth(node) - above..) {
            on_path.entry(class(shape.frame(left))).and_modify(|count| *count -= 1);
        }
        path.push(node);
        let count = on_path.entry(class(shape.frame(node))).or_default();
        *count += 1;
        (node, *count == 1)
    })
}

/// A tree with its numbers.
pub(super) type CountedPaths = (Arc<PathTree>, NodeAmounts);

/// Who called a function, who called those, and so on: the function is the root. A sample in which it stands more
/// than once counts for its outermost call. The own numbers of a path are those of the function itself when it was
/// called so.
///
/// With it come, for each of its nodes, the nodes of the function that were called so, if `is_wanted`.
pub(super) fn callers(
    shape: &Shape,
    function: FrameIndex,
    is_wanted: impl Fn(TreeNode) -> bool,
) -> (CountedPaths, Vec<Vec<TreeNode>>) {
    let mut paths = PathTree { frames: vec![function], parents: vec![0] };
    let mut callees: Vec<(TreeNode, TreeNode)> = Vec::new();
    let mut edges: FxHashMap<(TreeNode, FrameIndex), TreeNode> = FxHashMap::default();
    let (mut own, mut total) = (vec![Amount::ZERO], vec![Amount::ZERO]);
    let mut outer: Option<(TreeNode, usize)> = None;
    for node in shape.walk(0) {
        // The walk has left the outermost call once it is as far up as that.
        outer = outer.filter(|&(call, _)| shape.depth(node) > shape.depth(call));
        if shape.frame(node) != function {
            continue;
        }
        let (_, end) = *outer.get_or_insert_with(|| {
            let mut at = 0;
            for caller in shape.ancestors(shape.parent(node)).take_while(|&caller| caller != 0) {
                let frame = shape.frame(caller);
                at = *edges.entry((at, frame)).or_insert_with(|| {
                    paths.frames.push(frame);
                    paths.parents.push(at);
                    own.push(Amount::ZERO);
                    total.push(Amount::ZERO);
                    paths.frames.len() as TreeNode - 1
                });
            }
            total[at as usize] = total[at as usize].plus(shape.total(node));
            (node, at as usize)
        });
        own[end] = own[end].plus(shape.own(node));
        if is_wanted(node) {
            callees.push((end as TreeNode, node));
        }
    }
    let (own, total) = (paths.add_up(&own), paths.add_up(&total));
    let callees = below(&paths, &callees);
    // Only what is shown was walked.
    let standing = vec![true; total.len()];
    ((Arc::new(paths), NodeAmounts { own: Arc::new(own), total, standing }), callees)
}

/// For each path, what stands at its end and at those of all longer ones.
fn below(paths: &PathTree, ends: &[(TreeNode, TreeNode)]) -> Vec<Vec<TreeNode>> {
    let mut all = vec![Vec::new(); paths.frames.len()];
    for &(end, node) in ends {
        let mut at = end;
        all[at as usize].push(node);
        while at != 0 {
            at = paths.parents[at as usize];
            all[at as usize].push(node);
        }
    }
    all.iter_mut().for_each(|nodes| nodes.sort_unstable());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(samples: u64) -> Amount {
        Amount { samples, weight: samples }
    }

    /// all ─ main(1) ─ f(2) ─ g(3) ─ f(2); main ─ g(3)
    fn shape() -> Shape {
        let paths = PathTree { frames: vec![0, 1, 2, 3, 2, 3], parents: vec![0, 0, 1, 2, 3, 1] };
        let own: Vec<_> = [0, 1, 2, 4, 8, 16].map(amount).to_vec();
        let total = paths.add_up(&own);
        let standing = paths.standing(&total, |_| false);
        Shape::new(Arc::new(paths), NodeAmounts { own: Arc::new(own), total, standing }, None)
    }

    #[test]
    fn a_sample_counts_once_for_a_function_however_often_it_stands_on_its_path() {
        let functions = functions(&shape(), 0, &[], |_| false, |_| false);
        let rows: Vec<_> = functions.iter().map(|f| (f.frame, f.own.samples, f.total.samples)).collect();
        assert_eq!(rows, [(3, 20, 28), (2, 10, 14), (1, 1, 31)]);
        let below_g = super::functions(&shape(), 3, &[], |_| false, |_| false);
        assert_eq!(below_g.iter().map(|f| (f.frame, f.own.samples)).collect::<Vec<_>>(), [(2, 8), (3, 4)]);
    }

    #[test]
    fn who_woke_a_thread_is_part_of_what_it_waited_for() {
        let rows = |root| {
            let functions = functions(&shape(), root, &[], |frame| frame == 3, |_| false);
            functions.iter().map(|f| (f.frame, f.own.samples, f.total.samples)).collect::<Vec<_>>()
        };
        // Of g, 4 are f's and 16 main's.
        assert_eq!(rows(0), [(1, 17, 31), (2, 14, 14)]);
        assert_eq!(rows(3), [(2, 8, 8), (3, 4, 12)], "what is zoomed into stays a row");
    }

    #[test]
    fn functions_are_in_the_order_of_what_is_shown_wherever_they_stood() {
        let row = |frame| FunctionRow { frame, ..FunctionRow::default() };
        let functions = functions(&shape(), 0, &[row(1), row(2), row(3)], |_| false, |_| false);
        assert_eq!(functions.iter().map(|f| (f.frame, f.own.samples)).collect::<Vec<_>>(), [(3, 20), (2, 10), (1, 1)]);
    }

    #[test]
    fn callers_add_up_to_the_function() {
        let ((paths, NodeAmounts { own, total, .. }), callees) = callers(&shape(), 3, |_| true);
        // Both calls of g, the one by main, and the one by f, which main called.
        assert_eq!(callees, [vec![3, 5], vec![5], vec![3], vec![3]]);
        assert_eq!((&paths.frames, &paths.parents), (&vec![3, 1, 2, 1], &vec![0, 0, 0, 2]));
        let samples = |numbers: &[Amount]| numbers.iter().map(|amount| amount.samples).collect::<Vec<_>>();
        assert_eq!((samples(&own), samples(&total)), (vec![20, 16, 4, 4], vec![28, 16, 12, 12]));
        let ((paths, NodeAmounts { own, total, .. }), callees) = callers(&shape(), 2, |_| false);
        assert_eq!((&paths.frames, samples(&own), samples(&total)), (&vec![2, 1], vec![10, 10], vec![14, 14]));
        assert!(callees.iter().all(Vec::is_empty));
    }
}
