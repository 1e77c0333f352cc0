//! Tests the regions of programs in the profile, with samples and without.

#![cfg(feature = "tui")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use perfprop::events::Unit;
use perfprop::profile::{self, Tree, TreeOptions};
use perfprop::recording;
use perfprop::regions::{RegionBatch, RegionProgram, RegionProgramId, RegionState};
use perfprop::stacks::{
    Gathered, Naming, Rate, RegionsToCome, SampledEvent, SamplingSetup, StackBatch, StackFrame, StackFrameId, StackId,
    StackNode, StackSample, StackTree, Task, TaskId, UnwindMethod,
};
use perfprop::tui::{self, Picture, Screen, ScreenOptions};
use perfprop::units::WallNs;
use ratatui::crossterm::event::{MouseButton, MouseEventKind};

use crate::folders::Folder;
use crate::programs::{region_events, regions, shared};
use crate::scripted::{SIZES, golden, monitor, options, rounds, with_profile};

/// The tree of these regions, with samples in them or none.
fn with_regions(sampled: &SamplingSetup, batch: &StackBatch) -> Tree {
    let mut tree = StackTree::new(sampled, profile::TreeOptions::default(), Naming::default(), |_| true);
    regions().iter().for_each(|regions| tree.take_regions(regions).unwrap());
    tree.take(batch).unwrap();
    tree.into_timeline().0
}

#[test]
fn regions_fill_the_profile_where_nothing_is_sampled() {
    for (width, height) in SIZES {
        let nothing = SamplingSetup { events: vec![], call_graph: UnwindMethod::Fp };
        let tree = with_regions(&nothing, &StackBatch::default());
        with_profile((width, height), options(), shared(tree), move |session| {
            session.rounds(&rounds(40));
            for (keys, name) in [
                ("4jjj", "regions"),
                ("t", "regions-flat"),
                ("t", "regions-callers"),
                ("t]", "regions-faults"),
                ("]", "regions-instructions"),
                ("t", "regions-instructions-flat"),
                ("r", "regions-narrowed"),
                ("jr", "regions-again"),
            ] {
                session.script.keys(keys);
                golden(&format!("{name}-{width}x{height}"), &session.script.screen());
            }
            session.signals.send(15.into()).unwrap();
        });
    }
}

#[test]
fn a_region_without_events_says_what_counts_them() {
    let mut without = regions();
    without.iter_mut().for_each(|batch| {
        batch.states.clear();
        batch.counts.iter_mut().for_each(|counts| counts.events.clear());
    });
    let nothing = SamplingSetup { events: vec![], call_graph: UnwindMethod::Fp };
    let mut tree = StackTree::new(&nothing, profile::TreeOptions::default(), Naming::default(), |_| true);
    without.iter().for_each(|regions| tree.take_regions(regions).unwrap());
    with_profile((80, 24), options(), shared(tree.into_timeline().0), move |session| {
        session.rounds(&rounds(40));
        // The process above the regions is none.
        session.script.keys("4jr");
        assert!(session.script.screen().contains("select one first"), "{}", session.script.screen());
        session.script.keys("jjr");
        golden("regions-no-events-80x24", &session.script.screen());
        // Lists have nothing to move in, and the first key back is the profile's.
        session.script.keys("j");
        assert!(session.script.screen().contains("1 shows all events"), "{}", session.script.screen());
        // Help has the keys that do something here, and no others.
        session.script.keys("?");
        let help = session.script.screen();
        assert!(help.contains("back from a region's events") && !help.contains("sort by the next column"), "{help}");
        session.script.keys("<Esc><Esc>");
        assert!(session.script.screen().contains("[4 Profile]"));
        // The wheel finds no list either, and a click on the tab is as good as its key.
        session.script.keys("r");
        let narrowed = session.script.screen();
        session.script.mouse(MouseEventKind::ScrollDown, 10, 10);
        assert_eq!(session.script.screen(), narrowed);
        session.script.mouse(MouseEventKind::Down(MouseButton::Left), 4, 1);
        assert!(session.script.screen().contains("Events ─ order as given"), "{}", session.script.screen());
        session.script.keys("4r1?");
        let help = session.script.screen();
        assert!(!help.contains("back from a region's events") && help.contains("filter by words"), "{help}");
        session.script.keys("<Esc>");
        assert!(session.script.screen().contains("Events ─ order as given"), "{}", session.script.screen());
        session.signals.send(15.into()).unwrap();
    });
}

#[test]
fn a_region_in_which_an_event_counted_nothing_stands_with_0() {
    let mut zero = regions();
    zero[1].counts[2].events[0] = region_events(52_000, (0, 0), (1, 1)).swap_remove(0);
    let mut tree = StackTree::new(&SamplingSetup::of_nothing(), TreeOptions::default(), Naming::default(), |_| true);
    zero.iter().for_each(|regions| tree.take_regions(regions).unwrap());
    with_profile((120, 40), options(), shared(tree.into_timeline().0), move |session| {
        session.rounds(&rounds(40));
        session.script.keys("4E]");
        let screen = session.script.screen();
        let row = screen.lines().find(|line| line.contains("prior") && line.contains("exact")).unwrap_or_default();
        let numbers: Vec<_> = row.split_whitespace().skip_while(|word| !word.contains('%')).collect();
        assert_eq!(numbers[..4], ["0.0%", "0", "0", "52k"], "{screen}");
        session.signals.send(15.into()).unwrap();
    });
}

#[test]
fn what_is_saved_has_regions_and_says_which_samples_it_lacks() {
    let folder = Folder::new();
    let options = ScreenOptions { save_in: folder.to_path_buf(), ..options() };
    let event = SampledEvent { name: "cpu-clock".into(), unit: Unit::Nanoseconds, rate: Rate::Frequency(99) };
    let sampled = SamplingSetup { events: vec![event], call_graph: UnwindMethod::Fp };
    let tree = with_regions(&sampled, &StackBatch::default());
    with_profile((200, 60), options, shared(tree), |session| {
        session.rounds(&rounds(40));
        session.script.keys("S");
        let screen = session.script.screen();
        assert!(screen.contains("perfprop.jsonl; samples until 00:12 were too many to keep"), "{screen}");
        session.signals.send(15.into()).unwrap();
    });
    let saved = recording::read(std::fs::read(folder.join("perfprop.jsonl")).unwrap().as_slice()).unwrap();
    assert_eq!(saved.regions_between(None, WallNs(u64::MAX)).distinct(), 5);
}

#[test]
fn regions_that_cannot_be_read_are_said_in_the_log() {
    let error = Some("it holds no\u{1b} regions".to_owned());
    let batch = RegionBatch {
        programs: vec![RegionProgram { pid: 7, name: None }],
        states: vec![(RegionProgramId(0), RegionState { error, ..RegionState::default() })],
        ..RegionBatch::default()
    };
    let mut gathered = Gathered::new(&SamplingSetup::of_nothing(), RegionsToCome::Expected, TreeOptions::default());
    gathered.take_regions(&batch);
    gathered.end_regions();
    let quality = gathered.quality().clone();
    let wanted = Picture { size: (120, 40), profile: Some((Tree::default(), quality)), ..Picture::default() };
    let text = |screen| tui::picture(monitor(20), &wanted, &ScreenOptions { screen, ..ScreenOptions::default() });
    let log = text(Screen::Log);
    assert_eq!(log.matches("Regions of process 7 can't be read: it holds no\\x1b regions").count(), 1, "{log}");
    assert!(text(Screen::Profile).contains("no region can be read; Log says why"));
}

#[test]
fn samples_stand_below_the_region_that_was_open() {
    let event = SampledEvent { name: "cycles".into(), unit: Unit::Count, rate: Rate::Frequency(99) };
    let sampled = SamplingSetup { events: vec![event], call_graph: UnwindMethod::Fp };
    let sample = |at, task| StackSample {
        at: WallNs(at),
        task: TaskId(task),
        cpu: 0,
        event: 0,
        weight: 1000,
        stack: Some(StackId(0)),
    };
    let task = |tid, comm: &str| Task { pid: 1, tid, comm: comm.into() };
    let batch = StackBatch {
        frames: vec![StackFrame { name: "dot".into(), module: "/bin/fit".into(), ..StackFrame::default() }],
        stacks: vec![StackNode { caller: None, frame: StackFrameId(0) }],
        tasks: vec![task(1, "worker"), task(2, "other")],
        samples: [(0, 0), (1, 0), (2, 0), (3, 0), (3, 0), (3, 1)].map(|(at, task)| sample(at, task)).to_vec(),
        ..StackBatch::default()
    };
    let tree = with_regions(&sampled, &batch);
    let cycles = tree.find_event("cycles").unwrap();
    let found = tree.nodes().filter(|node| node.samples(cycles) > 0);
    let mut found: Vec<_> = found.map(|node| (tree.names(node.id())[1..].join(";"), node.samples(cycles))).collect();
    found.sort();
    let wanted = [("fit;fit;dot", 1), ("fit;fit;model;likelihood;dot", 3), ("other;dot", 1), ("worker;dot", 1)];
    assert_eq!(found, wanted.map(|(path, samples)| (path.to_owned(), samples)));
    for (width, height) in [(80, 24), (120, 40)] {
        with_profile((width, height), options(), shared(tree.clone()), move |session| {
            session.rounds(&rounds(40));
            session.script.keys("4jjjj");
            golden(&format!("regions-sampled-{width}x{height}"), &session.script.screen());
            session.signals.send(15.into()).unwrap();
        });
    }
}
