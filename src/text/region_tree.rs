//! Orders the rows of regions as the tree that their paths make, those that took most first.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::number::grouped;

/// A table has so many rows at most. A program that makes names as it goes has as many regions as it likes.
pub(super) const MOST_ROWS: usize = 500;

/// A region of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TreeRegion<'a, R> {
    /// Names of the regions, the outermost first.
    pub(super) path: Vec<&'a str>,
    /// A row for each phase; none where no call has ended.
    pub(super) rows: Vec<R>,
}

impl<R> TreeRegion<'_, R> {
    /// The lines of a table that it takes.
    fn lines(&self) -> usize {
        self.rows.len().max(1)
    }
}

/// What a table shows of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RegionTree<'a, R> {
    /// Each region before those within; of those side by side the one that took most comes first.
    pub(super) regions: Vec<TreeRegion<'a, R>>,
    /// Lines for which there was no room: those of the regions that took least.
    pub(super) left_out: usize,
}

impl<'a, R> RegionTree<'a, R> {
    /// The tree of these paths and all that are around them, with so many lines at most. `time_ns` is what a row took; a region
    /// took no less than those within it.
    pub(super) fn new(
        rows: impl IntoIterator<Item = (Vec<&'a str>, Option<R>)>,
        time_ns: impl Fn(&R) -> u64,
        most: usize,
    ) -> Self {
        let mut by_path: BTreeMap<Vec<&str>, Vec<R>> = BTreeMap::new();
        for (path, row) in rows {
            for depth in 1..path.len() {
                by_path.entry(path[..depth].to_vec()).or_default();
            }
            by_path.entry(path).or_default().extend(row);
        }
        let regions: Vec<_> = by_path.into_iter().map(|(path, rows)| TreeRegion { path, rows }).collect();
        let parents = parents(&regions);
        let times = times(&regions, &parents, time_ns);
        let order = largest_first(&parents, &times);
        let shown = shown(&order, &times, |place| regions[place].lines(), most);
        let mut regions: Vec<Option<_>> = regions.into_iter().map(Some).collect();
        let taken = order.into_iter().filter(|&place| shown[place]).filter_map(|place| regions[place].take()).collect();
        Self { regions: taken, left_out: regions.iter().flatten().map(TreeRegion::lines).sum() }
    }

    /// A line that says how many rows aren't here, and who prints them; empty where all are.
    pub(super) fn left_out_words(&self) -> String {
        match self.left_out {
            0 => String::new(),
            1 => format!("{:>13} more row took less: stat -j and stat -x, have all\n", 1),
            rows => format!("{:>13} more rows took less: stat -j and stat -x, have all\n", grouped(rows as u64)),
        }
    }
}

/// The place of the region around each. Regions are in the order of their paths, so that each stands behind the one around.
fn parents<R>(regions: &[TreeRegion<'_, R>]) -> Vec<Option<usize>> {
    let mut around: Vec<usize> = Vec::new();
    let parent_of = |(place, region): (usize, &TreeRegion<'_, R>)| {
        around.truncate(region.path.len() - 1);
        let parent = around.last().copied();
        around.push(place);
        parent
    };
    regions.iter().enumerate().map(parent_of).collect()
}

/// What each region took. Where no call has ended, or regions outlast the one around, that is what those within took.
fn times<R>(regions: &[TreeRegion<'_, R>], parents: &[Option<usize>], time_ns: impl Fn(&R) -> u64) -> Vec<u64> {
    let mut within = vec![0_u64; regions.len()];
    for (place, region) in regions.iter().enumerate().rev() {
        let own = region.rows.iter().map(&time_ns).fold(0, u64::saturating_add);
        within[place] = within[place].max(own);
        if let Some(parent) = parents[place] {
            within[parent] = within[parent].saturating_add(within[place]);
        }
    }
    within
}

/// All places, each before those within; of those side by side the one that took most comes first, then the order of names.
fn largest_first(parents: &[Option<usize>], times: &[u64]) -> Vec<usize> {
    let mut within: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    for (place, parent) in parents.iter().enumerate() {
        within.entry(*parent).or_default().push(place);
    }
    // The last is taken first.
    within.values_mut().for_each(|places| places.sort_by_key(|&place| (times[place], Reverse(place))));
    let (mut order, mut next) = (Vec::with_capacity(parents.len()), within.remove(&None).unwrap_or_default());
    while let Some(place) = next.pop() {
        order.push(place);
        next.extend(within.remove(&Some(place)).unwrap_or_default());
    }
    order
}

/// Which places are shown: those that took most, with so many lines at most. The one around took no less, and comes first.
fn shown(order: &[usize], times: &[u64], lines: impl Fn(usize) -> usize, most: usize) -> Vec<bool> {
    let mut by_time = order.to_vec();
    by_time.sort_by_key(|&place| Reverse(times[place]));
    let (mut shown, mut room) = (vec![false; order.len()], most);
    for place in by_time {
        let Some(rest) = room.checked_sub(lines(place)) else { break };
        (shown[place], room) = (true, rest);
    }
    shown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The paths of a tree of regions that took so long, and how many lines are left out.
    fn tree(rows: &[(&str, Option<u64>)], most: usize) -> (Vec<String>, usize) {
        let rows = rows.iter().map(|(path, row)| (path.split('/').collect(), *row));
        let tree = RegionTree::new(rows, |time| *time, most);
        (tree.regions.iter().map(|region| region.path.join("/")).collect(), tree.left_out)
    }

    #[test]
    fn regions_side_by_side_are_in_the_order_of_their_times_and_then_of_their_names() {
        let rows =
            [("a", Some(5)), ("a/y", Some(2)), ("a/x", Some(2)), ("a/z", Some(3)), ("b", Some(9)), ("a/z/w", Some(1))];
        assert_eq!(tree(&rows, 9).0, ["b", "a", "a/z", "a/z/w", "a/x", "a/y"]);
        // Both phases of 'p' count; of 'open' no call has ended, and what is within took long.
        let rows = [("p", Some(4)), ("p", Some(4)), ("q", Some(7)), ("open/within", Some(20)), ("never", None)];
        assert_eq!(tree(&rows, 9).0, ["open", "open/within", "p", "q", "never"]);
        assert_eq!(tree(&[], 9), (Vec::new(), 0));
    }

    #[test]
    fn rows_that_took_most_are_shown_with_those_around_and_the_others_are_counted() {
        let rows =
            [("a", Some(10)), ("a/x", Some(1)), ("b", Some(8)), ("b/y", Some(8)), ("b/z", Some(2)), ("c", Some(0))];
        assert_eq!(tree(&rows, 3), (["a", "b", "b/y"].map(str::to_owned).to_vec(), 3));
        assert_eq!(tree(&rows, 6).1, 0);
        let words =
            |most| RegionTree::new(rows.map(|(path, time)| (vec![path], time)), |time| *time, most).left_out_words();
        assert_eq!([words(6), words(5)], ["", "            1 more row took less: stat -j and stat -x, have all\n"]);
        assert_eq!(words(0), "            6 more rows took less: stat -j and stat -x, have all\n");
    }

    proptest! {
        #[test]
        fn each_region_that_is_shown_stands_behind_the_one_around(
            rows in prop::collection::vec((prop::collection::vec(0_usize..3, 1..5), prop::option::of(0_u64..9)), 0..40),
            most in 0_usize..30,
        ) {
            let names = ["a", "b", "c"];
            let rows: Vec<_> = rows.into_iter()
                .map(|(path, time)| (path.into_iter().map(|name| names[name]).collect::<Vec<_>>(), time)).collect();
            let of = |most| RegionTree::new(rows.clone(), |time| *time, most);
            let (all, part) = (of(usize::MAX), of(most));
            let lines = |tree: &RegionTree<'_, u64>| tree.regions.iter().map(TreeRegion::lines).sum::<usize>();
            prop_assert_eq!((all.left_out, lines(&part) + part.left_out), (0, lines(&all)));
            prop_assert!(lines(&part) <= most);
            for (place, region) in part.regions.iter().enumerate() {
                let around = &region.path[..region.path.len() - 1];
                prop_assert!(around.is_empty() || part.regions[..place].iter().any(|before| before.path == around));
            }
        }
    }
}
