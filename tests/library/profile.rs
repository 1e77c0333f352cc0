//! Tests what holds of every profile tree.

#![allow(clippy::unwrap_used, reason = "tests panic")]

use std::collections::BTreeMap;

use perfprop::profile::{
    Amount, Difference, EventId, Frame, FrameId, FrameKind, NodeId, ProfileEvent, RepeatFolding, SampleMeasure, Tree,
    TreeOptions,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// A stack of frames numbered from 0, with an amount of an event.
type Stack = (Vec<u8>, u64, u64);

fn stacks(letters: u8) -> impl Strategy<Value = Vec<Stack>> {
    vec((vec(0..letters, 0..24), 0..6_u64, 0..1000_u64), 0..40)
}

fn built(stacks: &[Stack], options: TreeOptions) -> (Tree, EventId) {
    let mut tree = Tree::new(options);
    let event = tree.event(&ProfileEvent::new("cycles", SampleMeasure::Weighted("count".into())));
    let place = tree.sampled();
    for (path, samples, weight) in stacks {
        let path: Vec<FrameId> = path.iter().map(|number| tree.frame(&Frame::function(&number.to_string()))).collect();
        tree.stack(place, path, event, Amount { samples: *samples, weight: *weight });
    }
    (tree, event)
}

fn keep() -> TreeOptions {
    TreeOptions { repeats: RepeatFolding::Keep, ..TreeOptions::default() }
}

fn total(stacks: &[Stack]) -> Amount {
    let add = |sum: Amount, (_, samples, weight): &Stack| sum.plus(Amount { samples: *samples, weight: *weight });
    stacks.iter().fold(Amount::ZERO, add)
}

/// Own amounts by path.
fn amounts(tree: &Tree, event: EventId) -> BTreeMap<String, Amount> {
    let all = tree.walk().map(|node| (tree.names(node.id()).join(";"), node.amount(event)));
    all.filter(|(_, amount)| *amount != Amount::ZERO).collect()
}

/// Removes the shortest square at the end after each frame: what a path is by the rule's own words.
fn canonical(stack: &[u8]) -> Vec<u8> {
    let mut path = Vec::new();
    for &frame in stack {
        path.push(frame);
        let n = path.len();
        if let Some(k) = (1..=n / 2).find(|k| path[n - k..] == path[n - 2 * k..n - k]) {
            path.truncate(n - k);
        }
    }
    path
}

proptest! {
    #[test]
    fn no_repeat_remains_in_a_path(stacks in stacks(4)) {
        let (tree, _) = built(&stacks, TreeOptions::default());
        for node in tree.walk() {
            let path = tree.path(node.id());
            for k in 1..=path.len() / 2 {
                prop_assert!(path.windows(2 * k).all(|window| window[..k] != window[k..]), "{:?}", tree.names(node.id()));
            }
        }
    }

    #[test]
    fn a_path_depends_on_its_stack_alone(stacks in stacks(3)) {
        let (tree, event) = built(&stacks, TreeOptions::default());
        let mut expected: BTreeMap<String, Amount> = BTreeMap::new();
        for (stack, samples, weight) in &stacks {
            let path: String = canonical(stack).iter().map(|number| format!(";{number}")).collect();
            let sum = expected.entry(format!("[root]{path}")).or_default();
            *sum = sum.plus(Amount { samples: *samples, weight: *weight });
        }
        expected.retain(|_, amount| *amount != Amount::ZERO);
        prop_assert_eq!(amounts(&tree, event), expected);
    }

    #[test]
    fn folding_later_is_folding_at_once(stacks in stacks(3)) {
        let (kept, _) = built(&stacks, keep());
        let (folded, event) = built(&stacks, TreeOptions::default());
        let later = kept.rebuilt(TreeOptions::default());
        prop_assert_eq!(amounts(&later, event), amounts(&folded, event));
        let calls = |tree: &Tree| tree.walk().map(|node| node.calls()).sum::<u64>();
        prop_assert_eq!(calls(&later), calls(&folded));
    }

    #[test]
    fn merging_adds(a in stacks(3), b in stacks(3)) {
        let both: Vec<Stack> = a.iter().chain(&b).cloned().collect();
        let (mut merged, event) = built(&a, TreeOptions::default());
        merged.merge(&built(&b, TreeOptions::default()).0);
        prop_assert_eq!(amounts(&merged, event), amounts(&built(&both, TreeOptions::default()).0, event));
        prop_assert_eq!(merged.inclusive(event)[0], total(&both));
    }

    #[test]
    fn a_difference_takes_one_from_the_other(a in stacks(3), b in stacks(3)) {
        let (before, event) = built(&a, TreeOptions::default());
        let (after, _) = built(&b, TreeOptions::default());
        let difference = Difference::new(&before, &after);
        prop_assert_eq!(amounts(&difference.before, event), amounts(&before, event));
        prop_assert_eq!(amounts(&difference.after, event), amounts(&after, event));
        let all = &difference.inclusive(event)[0];
        prop_assert_eq!(all.weight, i128::from(total(&b).weight) - i128::from(total(&a).weight));
        let own: i128 = difference.before.walk().map(|node| difference.change(node.id(), event).samples).sum();
        prop_assert_eq!(own, all.samples);
    }

    #[test]
    fn down_sampling_keeps_the_whole_part(stacks in stacks(4), period in 1..50_u64) {
        let (mut tree, event) = built(&stacks, TreeOptions::default());
        let before = total(&stacks);
        tree.down_sample(period);
        let after = tree.total(event);
        prop_assert_eq!(after.samples, before.samples / period);
        prop_assert!(after.weight <= before.weight);
        let left_out = before.samples % period;
        prop_assert!(left_out > 0 || before.samples == 0 || tree.walk().any(|node| node.samples(event) > 0));
        prop_assert!(tree.walk().all(|node| node.samples(event) > 0 || node.calls() == 0));
    }

    #[test]
    fn a_cap_keeps_totals(stacks in stacks(12), cap in 16..64_usize) {
        let options = TreeOptions { cap, ..TreeOptions::default() };
        let (tree, event) = built(&stacks, options);
        prop_assert!(tree.len() <= cap, "{} of {cap}", tree.len());
        prop_assert_eq!(tree.inclusive(event)[0], total(&stacks));
        let (whole, _) = built(&stacks, TreeOptions::default());
        let calls = |tree: &Tree| tree.walk().map(|node| node.calls()).sum::<u64>();
        prop_assert_eq!(calls(&tree), calls(&whole));
        for node in tree.walk() {
            prop_assert!(node.parent().is_none_or(|parent| parent < node.id()));
        }
    }

    #[test]
    fn a_path_ends_where_it_was_counted(stacks in stacks(4), folds in any::<bool>(), cap in 16..400_usize) {
        let repeats = if folds { RepeatFolding::Fold } else { RepeatFolding::Keep };
        let (mut tree, event) = built(&stacks, TreeOptions { repeats, cap, ..TreeOptions::default() });
        let mut counted: BTreeMap<NodeId, Amount> = BTreeMap::new();
        for (path, samples, weight) in &stacks {
            let path: Vec<_> = path.iter().map(|number| tree.frame(&Frame::function(&number.to_string()))).collect();
            let amount = counted.entry(tree.end_of(path)).or_insert(Amount::ZERO);
            *amount = amount.plus(Amount { samples: *samples, weight: *weight });
        }
        // Once subtrees were folded, a path may be there again of which an earlier part is in `(other)`.
        for (node, amount) in counted.iter().filter(|_| tree.folds() == 0) {
            prop_assert_eq!(tree.node(*node).amount(event), *amount);
        }
        prop_assert!(counted.keys().all(|node| node.index() < tree.len()));
    }

    #[test]
    fn threads_go_their_own_ways(
        blocks in 1..5_u32,
        ops in vec((0..3_usize, 0..4_u8, 0..5_u32), 0..200),
        cap in prop_oneof![Just(16_usize), Just(1_000_000)],
    ) {
        let mut tree = Tree::new(TreeOptions { cap, ..TreeOptions::default() });
        let event = tree.event(&ProfileEvent::new("ticks", SampleMeasure::Samples));
        let frames: Vec<_> = (0..blocks).map(|number| tree.frame(&Frame::function(&number.to_string()))).collect();
        let threads = [tree.thread(), tree.thread(), tree.thread()];
        let mut depths = [0_usize; 3];
        let (mut calls, mut samples) = (3, 0);
        for (thread, op, number) in ops {
            let (depth, thread) = (&mut depths[thread], threads[thread]);
            let frame = frames[number as usize % frames.len()];
            match op {
                0 => { tree.enter(thread, frame); *depth += 1; calls += 1; }
                1 => { tree.replace(thread, frame); calls += 1; }
                2 => { tree.exit(thread); *depth = depth.saturating_sub(1); }
                _ => { tree.sample(thread, event, 1); samples += 1; }
            }
            prop_assert!(tree.top(thread).index() < tree.len());
        }
        prop_assert_eq!(tree.walk().map(|node| node.calls()).sum::<u64>(), calls);
        prop_assert_eq!(tree.total(event).samples, samples);
        for (thread, depth) in threads.into_iter().zip(depths) {
            (0..depth).for_each(|_| tree.exit(thread));
            let before = tree.top(thread);
            tree.exit(thread);
            prop_assert_eq!(tree.top(thread), before);
        }
    }
}

/// Worked by hand: repeats go from the front, the shortest at each place.
#[test]
fn paths_are_folded_from_the_front() {
    for (stack, path) in [
        ("a", "a"),
        ("aaaa", "a"),
        ("abab", "ab"),
        ("ababa", "aba"),
        ("aabbaabb", "ab"),
        ("acecacecce", "ace"),
        ("abcadcecabcadcecce", "abcadce"),
        ("abcacbabcbac", "abcacbabcbac"),
    ] {
        let (tree, event) = built(&[(stack.bytes().collect(), 1, 1)], TreeOptions::default());
        let leaf = tree.walk().find(|node| node.samples(event) > 0).unwrap();
        let names = tree.names(leaf.id());
        let letters = names[1..].iter().map(|name| char::from(name.parse::<u8>().unwrap()));
        assert_eq!(letters.collect::<String>(), path, "{stack}");
    }
}

#[test]
fn the_smallest_subtrees_become_other() {
    let stacks: Vec<Stack> = (0..40).map(|leaf| (vec![100, leaf], u64::from(leaf), u64::from(leaf))).collect();
    let (mut tree, event) = built(&stacks, TreeOptions::default());
    tree.set_cap(16);
    let rows: Vec<_> = tree.walk().map(|node| (node.frame().name.to_owned(), node.samples(event))).collect();
    // Six nodes stay: the root, 100, and the four largest leaves; the others' sum is 0 + 1 + ... + 35.
    let row = |name: &str, samples| (name.to_owned(), samples);
    assert_eq!(
        rows,
        [
            row("[root]", 0),
            row("100", 0),
            row("36", 36),
            row("37", 37),
            row("38", 38),
            row("39", 39),
            row("(other)", 630)
        ]
    );
    let other = tree.walk().find(|node| node.frame().kind == FrameKind::Other).unwrap();
    assert_eq!(tree.names(other.id()), ["[root]", "100", "(other)"]);
}

#[test]
fn down_sampling_carries_on() {
    let stacks = [(vec![0], 10, 100), (vec![0, 1], 20, 200), (vec![0, 1, 2], 30, 300), (vec![3], 3, 30)];
    let (mut tree, event) = built(&stacks, keep());
    tree.down_sample(7);
    // 10 = 1 x 7 + 3; 23 = 3 x 7 + 2; 32 = 4 x 7 + 4; 7 = 1 x 7. What is carried keeps its share of the weight.
    let amount = |samples, weight| Amount { samples, weight };
    let rows: Vec<_> = tree.walk().map(|node| node.amount(event)).collect();
    assert_eq!(rows, [Amount::ZERO, amount(1, 70), amount(3, 210), amount(4, 280), amount(1, 70)]);
    tree.down_sample(100);
    assert!(tree.walk().all(|node| !node.is_counted()));
}

#[test]
fn a_period_of_nothing_leaves_everything() {
    let (mut tree, event) = built(&[(vec![0], 0, 0), (vec![1], 2, 2)], TreeOptions::default());
    tree.down_sample(0);
    assert_eq!((tree.len(), tree.walk().map(|node| node.calls()).sum()), (3, 0), "sampled stacks tell of no calls");
    assert_eq!(tree.total(event), Amount { samples: 2, weight: 2 });
}

#[test]
fn what_is_counted_on_a_path_leaves_the_place_of_stacks_where_it_stood() {
    let (mut tree, event) = built(&[], keep());
    let place = tree.sampled();
    let [worker, f, g] = ["worker", "f", "g"].map(|name| tree.frame(&Frame::function(name)));
    let amount = Amount { samples: 1, weight: 2 };
    tree.stand(place, [worker]);
    tree.tally(place, [f], 3, &[(event, amount)]);
    tree.stack(place, [g], event, amount);
    assert_eq!(tree.node(tree.end_of([worker, f])).calls(), 3);
    assert_eq!(tree.node(tree.end_of([worker, f])).amount(event), amount);
    assert_eq!(tree.node(tree.end_of([worker, g])).amount(event), amount);
}

#[test]
fn an_empty_tree_has_its_root() {
    let (mut tree, event) = built(&[], TreeOptions::default());
    tree.down_sample(3);
    tree.set_cap(0);
    assert!(tree.is_empty() && tree.walk().count() == 1 && tree.node(NodeId::ROOT).children().is_empty());
    assert_eq!(tree.inclusive(event), [Amount::ZERO]);
}

/// Deep recursion: repeats folded, repeats kept, and frames that are all different.
#[test]
fn a_stack_of_a_hundred_thousand_frames_overflows_nothing() {
    const DEPTH: u32 = 100_000;
    let alternating: Vec<u8> = (0..DEPTH).map(|index| (index % 3 == 1) as u8).collect();
    let (folded, event) = built(&[(alternating.clone(), 1, 1)], TreeOptions::default());
    assert!(folded.len() < 10);
    let (kept, _) = built(&[(alternating, 1, 1)], keep());
    assert_eq!((kept.len(), kept.total(event).samples), (DEPTH as usize + 1, 1));
    let mut different = Tree::default();
    let thread = different.thread();
    for index in 0..DEPTH {
        let frame = different.frame(&Frame::function(&index.to_string()));
        different.enter(thread, frame);
    }
    assert_eq!(different.node(different.top(thread)).depth(), DEPTH as usize);
    different.merge(&kept);
    different.set_cap(1000);
    different.down_sample(1);
    assert_eq!(different.total(event), kept.total(event));
}
