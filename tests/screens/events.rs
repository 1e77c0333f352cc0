//! Tests the screens of events by keys and the mouse: golden screens of scripted rounds.

#![cfg(feature = "tui")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use perfprop::estimate::EstimatorKind;
use perfprop::monitor::Monitor;
use perfprop::plan::EventIndex;
use perfprop::recording;
use perfprop::run::{MeasuredEvent, MetricFormula};
use perfprop::sampling::SamplerMessage;
use perfprop::sources::{Reading, Round};
use perfprop::tui::{self, Config, Outcome, Picture, Scene, Screen, ScreenOptions};
use perfprop::units::WallNs;
use ratatui::crossterm::event::{MouseButton, MouseEventKind};

use crate::builders::{self, SECOND};
use crate::folders::Folder;
use crate::scripted::{
    EVENTS, SIZES, Session, fresh, golden, header, monitor, options, output, replayed, rounds, with_loop,
};

#[test]
fn screens_at_all_sizes() {
    for (width, height) in SIZES {
        with_loop((width, height), options(), move |session| {
            session.rounds(&rounds(640));
            output().into_iter().for_each(|line| session.output.send(line).unwrap());
            for (key, name) in [
                ("1", "events"),
                ("jjj2", "detail"),
                ("3", "relations"),
                ("4", "no-profile"),
                ("5", "groups"),
                ("6", "log"),
                ("o", "output"),
                ("?", "help"),
            ] {
                session.script.keys(key);
                let screen = session.script.screen();
                golden(&format!("{name}-{width}x{height}"), &screen);
            }
            session.signals.send(15.into()).unwrap();
        });
    }
}

#[test]
fn both_numbers_side_by_side() {
    with_loop((120, 40), options(), |session| {
        session.rounds(&rounds(640));
        session.script.keys("jjjjcc2");
        golden("both-120x40", &session.script.screen());
        session.signals.send(15.into()).unwrap();
    });
}

#[test]
fn in_mid_interval_all_numbers_are_up_to_the_last_ones_end() {
    let shown = |tenths: u64| {
        let options = ScreenOptions {
            measures: perfprop::monitor::MeasureChoice::Every(perfprop::monitor::Measure::Total),
            ..ScreenOptions::default()
        };
        let wanted = Picture { size: (120, 40), event: Some(3), ..Picture::default() };
        let text = tui::picture(monitor(tenths), &wanted, &options);
        text.lines().filter(|line| line.contains("MISSES") || line.contains("cycles")).collect::<Vec<_>>().join("\n")
    };
    let (whole, later) = (monitor(30), monitor(37));
    for (one, other) in whole.rows().zip(later.rows()) {
        assert_eq!((one.raw, one.scaled, one.estimate), (other.raw, other.scaled, other.estimate));
    }
    assert_eq!(shown(30), shown(37));
}

#[test]
fn tiny_screens_and_back() {
    with_loop((80, 24), options(), |session| {
        session.rounds(&rounds(120));
        for (width, height) in [(79, 19), (60, 11), (40, 6), (39, 5), (20, 3), (18, 2), (80, 24)] {
            session.script.resize(width, height);
            golden(&format!("tiny-{width}x{height}"), &session.script.screen());
        }
        session.signals.send(1.into()).unwrap();
    });
}

#[test]
fn before_the_first_interval_there_are_no_numbers() {
    with_loop((80, 24), options(), |session| {
        session.rounds(&rounds(4));
        golden("first-reading", &session.script.screen());
        session.signals.send(15.into()).unwrap();
    });
}

#[test]
fn frozen_views_hold_still_and_nothing_is_lost() {
    let (monitor, outcome) = with_loop((80, 24), options(), |session| {
        let all = rounds(320);
        session.rounds(&all[..200]);
        assert!(session.script.screen().contains("z freeze"), "{}", session.script.screen());
        session.script.keys("z");
        let before = session.script.screen();
        session.rounds(&all[200..]);
        let frozen = session.script.screen();
        golden("frozen", &frozen);
        // All but the header and the keys.
        let body = |screen: &str| screen.lines().skip(1).take(22).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(body(&before), body(&frozen));
        assert!(frozen.contains("z go on"), "{frozen}");
        session.script.keys("z");
        assert!(session.script.screen().contains("n=32"));
        session.script.keys("z");
        session.signals.send(2.into()).unwrap();
    });
    assert_eq!(outcome, Outcome::Signal(2));
    assert_eq!((monitor.rounds().0, monitor.intervals()), (320, 32));
}

#[test]
fn filters_sort_and_units() {
    with_loop((80, 24), options(), |session| {
        session.rounds(&rounds(120));
        session.script.keys("/l?_mis*");
        golden("filter-typed", &session.script.screen());
        session.script.keys("<Enter>");
        assert!(session.script.screen().contains("3 of 8"));
        session.script.keys("<Esc>");
        assert!(session.script.screen().contains("8 of 8"));
        session.script.keys("ssIc");
        golden("sorted-raw", &session.script.screen());
        session.script.keys("c");
        golden("both-80x24", &session.script.screen());
        session.script.keys("ccuuuW");
        golden("totals-unknown-key", &session.script.screen());
        session.signals.send(15.into()).unwrap();
    });
}

#[test]
fn events_are_sorted_by_columns_on_the_screen() {
    for width in [60, 80, 120, 200] {
        with_loop((width, 24), options(), move |session| {
            session.rounds(&rounds(120));
            let is_sorted = |session: &Session| {
                let screen = session.script.screen();
                let heads = screen.lines().find(|line| line.contains(" MEAN")).unwrap_or_else(|| panic!("{screen}"));
                heads.contains(['↓', '↑'])
            };
            let mut sorts = Vec::new();
            for key in ["s", "s", "s", "s", "s", "s", "s", "s", "<", "<", "<", "<", "<"] {
                session.script.keys(key);
                sorts.push(is_sorted(session) || session.script.screen().contains("order as given"));
            }
            assert!(sorts.iter().all(|is_marked| *is_marked), "{width}: {sorts:?}");
            session.signals.send(15.into()).unwrap();
        });
    }
}

#[test]
fn quitting_asks_while_the_command_runs() {
    let (_, outcome) = with_loop((80, 24), options(), |session| {
        session.rounds(&rounds(20));
        session.script.keys("q");
        golden("quit", &session.script.screen());
        session.script.keys("c");
        assert!(!session.script.screen().contains("[k]ill"));
        let Session { script, samples, .. } = session;
        script.keys("^C");
        script.keys("k");
        let _ = samples.send(SamplerMessage::End);
    });
    assert_eq!(outcome, Outcome::Killed);
}

#[test]
fn quitting_asks_in_the_smallest_windows_too_and_not_after_the_end() {
    with_loop((80, 24), options(), |session| {
        session.rounds(&rounds(20));
        session.script.keys("q^D^K");
        assert!(session.script.screen().contains("[k]ill"), "a key with Control is another one");
        for (size, choices) in
            [((18, 2), "[k]ill [d]etach"), ((9, 3), "[d]etach"), ((12, 1), "k d c"), ((80, 2), "[c]ancel")]
        {
            session.script.resize(size.0, size.1);
            assert!(session.script.screen().contains(choices), "{}", session.script.screen());
        }
        session.script.resize(80, 24);
        session.samples.send(SamplerMessage::End).unwrap();
        let ended = session.script.screen();
        assert!(ended.contains("the command has ended; q quits") && !ended.contains("still runs"), "{ended}");
        session.signals.send(15.into()).unwrap();
    });
}

#[test]
fn what_cannot_be_done_is_said() {
    with_loop((80, 24), options(), |session| {
        session.rounds(&rounds(20));
        session.script.keys("4/");
        assert!(session.script.screen().contains("-g samples them"), "{}", session.script.screen());
        session.script.keys("/<Esc>1/nothing<Enter>y");
        assert!(session.script.screen().contains("nothing is selected here"), "{}", session.script.screen());
        session.script.keys("3/nothing<Enter>y");
        assert!(session.script.screen().contains("nothing is selected here"), "{}", session.script.screen());
        session.signals.send(15.into()).unwrap();
    });
}

#[test]
fn the_end_of_a_long_line_is_seen_while_it_is_typed() {
    with_loop((40, 24), options(), |session| {
        session.rounds(&rounds(20));
        session.script.keys(&format!("/{}end", "x".repeat(50)));
        assert!(session.script.screen().contains("xxend▏"), "{}", session.script.screen());
        session.script.keys("^Ul2");
        assert!(session.script.screen().contains(" /l2▏"), "{}", session.script.screen());
        session.signals.send(15.into()).unwrap();
    });
}

#[test]
fn the_screen_stays_after_the_end() {
    let (monitor, outcome) = with_loop((80, 24), options(), |session| {
        session.rounds(&rounds(35));
        session.samples.send(SamplerMessage::End).unwrap();
        golden("ended", &session.script.screen());
        // Held still it has ended all the same, and may do so while it is.
        session.script.keys("z");
        let frozen = session.script.screen();
        let header = frozen.lines().next().unwrap_or_default();
        assert!(header.contains("FROZEN +0 s") && header.contains("ENDED exit 0"), "{header}");
        session.script.keys("q");
    });
    assert_eq!(outcome, Outcome::Quit);
    assert!(monitor.ended().is_some());
}

#[test]
fn a_run_of_some_milliseconds_has_totals_and_says_how_short_it_was() {
    with_loop((120, 40), options(), |session| {
        session.rounds(&rounds(1));
        session.samples.send(SamplerMessage::End).unwrap();
        let screen = session.script.screen();
        let header = screen.lines().next().unwrap_or_default();
        assert!(header.contains("100 ms") && !header.contains("00:00"), "{header}");
        assert!(screen.contains("cycles  ") && !screen.contains("/cpu-s"), "{screen}");
        session.script.keys("7");
        let screen = session.script.screen();
        assert!(screen.contains("it ended after 100 ms, before its threads were read"), "{screen}");
        session.script.keys("q");
    });
}

#[test]
fn the_end_is_seen_while_the_view_is_frozen() {
    with_loop((80, 24), options(), |session| {
        session.rounds(&rounds(20));
        session.script.keys("z");
        session.rounds(&rounds(35)[20..]);
        session.samples.send(SamplerMessage::End).unwrap();
        let frozen = session.script.screen();
        let header = frozen.lines().next().unwrap_or_default();
        assert!(header.contains("FROZEN +1 s") && header.contains("ENDED exit 0"), "{header}");
        session.script.keys("q");
    });
}

#[test]
fn hidden_rows_are_marked_with_the_way_to_see_them() {
    with_loop((80, 13), options(), |session| {
        session.rounds(&rounds(20));
        let first = session.script.screen();
        assert!(first.contains(" of 8, ↓ more"), "{first}");
        let rows: usize = first.split(" of 8,").next().unwrap().rsplit(' ').next().unwrap().parse().unwrap();
        let events = |screen: &str| {
            EVENTS
                .iter()
                .filter(|event| screen.lines().skip(3).any(|line| line.split_whitespace().any(|word| word == event.0)))
                .count()
        };
        assert_eq!(events(&first), rows, "{first}");
        session.script.keys("G");
        let last = session.script.screen();
        assert!(last.contains(&format!("{rows} of 8, ↑ more")), "{last}");
        session.script.keys("/l?_*<Enter>");
        assert!(session.script.screen().contains("4 of 8"));
        session.script.keys("<Esc>g");
        session.script.resize(39, 5);
        let small = session.script.screen();
        assert!(small.contains("3 of 8, ↓ more"), "{small}");
        let values = |screen: &str| screen.lines().filter(|line| line.contains("exact") || line.contains('±')).count();
        assert_eq!(values(&small), 3, "{small}");
        session.script.keys("G");
        let small = session.script.screen();
        assert!(small.contains("3 of 8, ↑ more") && small.contains("▶page-faults"), "{small}");
        session.signals.send(2.into()).unwrap();
    });
}

#[test]
fn saving_never_overwrites() {
    let folder = Folder::new();
    let options = ScreenOptions { save_in: folder.to_path_buf(), ..options() };
    with_loop((80, 24), options, |session| {
        session.rounds(&rounds(25));
        session.script.keys("S");
        assert!(session.script.screen().contains("saved to"));
        session.script.keys("zS");
        let _ = session.script.screen();
        session.signals.send(15.into()).unwrap();
    });
    for name in ["perfprop.jsonl", "perfprop-1.jsonl"] {
        let text = std::fs::read(folder.join(name)).unwrap();
        let saved = recording::read(&text[..]).unwrap();
        assert_eq!((saved.rounds.len(), saved.header), (25, header()));
        assert_eq!(saved.rounds.iter().map(|recorded| recorded.round.clone()).collect::<Vec<_>>(), rounds(25));
    }
}

#[test]
fn exports_copies_and_other_keys() {
    let folder = Folder::new();
    let (config, complaints) = Config::parse("config.toml", "[keys]\nexport = \"W\"\nfreeze = [\"F3\"]\n");
    assert_eq!(complaints, []);
    let options = ScreenOptions { save_in: folder.to_path_buf(), keymap: config.keymap, ..options() };
    with_loop((80, 24), options, |session| {
        session.rounds(&rounds(35));
        session.script.keys("x");
        assert!(session.script.screen().contains("no key x here"));
        session.script.keys("W");
        golden("export", &session.script.screen());
        session.script.keys("t");
        assert!(session.script.screen().contains("saved to"));
        session.script.keys("Ws/miss<Enter>Wt");
        session.script.keys("y");
        assert!(session.script.screen().contains("copied: L1_MISSES"), "{}", session.script.screen());
        session.signals.send(15.into()).unwrap();
    });
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    assert!(read("perfprop-events.txt").contains("cycles"));
    assert!(read("perfprop-events.svg").starts_with("<svg"));
    let filtered = read("perfprop-events-1.txt");
    assert!(
        filtered.contains("filter: miss") && !filtered.contains("▏") && !filtered.contains("  cycles"),
        "{filtered}"
    );
}

#[test]
fn the_mouse_selects_opens_and_scrolls() {
    let left = MouseEventKind::Down(MouseButton::Left);
    with_loop((80, 24), options(), move |session| {
        session.rounds(&rounds(35));
        // The third event's row: header, tabs, what stands out, border, heads, two rows.
        session.script.mouse(left, 6, 7);
        let screen = session.script.screen();
        let row = screen.lines().nth(7).unwrap();
        assert!(row.contains('▶'), "{screen}");
        let name = row.split_whitespace().find(|word| word.len() > 2).unwrap().trim_start_matches('▶').to_owned();
        session.script.mouse(left, 6, 7);
        let screen = session.script.screen();
        assert!(screen.contains("[2 Detail]") && screen.contains(&name), "{screen}");
        // A click on a head sorts by it, and another one the other way.
        session.script.keys("1");
        let heads = |session: &Session| session.script.screen().lines().nth(4).unwrap().to_owned();
        let mean = heads(session).chars().position(|c| c == 'M').unwrap();
        session.script.mouse(left, u16::try_from(mean).unwrap(), 4);
        assert!(heads(session).contains("MEAN↓"), "{}", heads(session));
        session.script.mouse(left, u16::try_from(mean).unwrap(), 4);
        assert!(heads(session).contains("MEAN↑"), "{}", heads(session));
        session.script.keys("I<<");
        let relations = screen.lines().nth(1).unwrap().find("Relations").unwrap();
        session.script.mouse(left, u16::try_from(relations).unwrap(), 1);
        assert!(session.script.screen().contains("[3 Relations]"));
        session.script.keys("1");
        session.script.mouse(MouseEventKind::ScrollUp, 6, 6);
        assert!(session.script.screen().lines().nth(5).unwrap().contains('▶'));
        // Where nothing is, nothing happens.
        let before = session.script.screen();
        session.script.mouse(left, 79, 23);
        assert_eq!(session.script.screen(), before);
        session.signals.send(15.into()).unwrap();
    });
}

#[test]
fn no_word_of_detail_is_cut_off() {
    let options = ScreenOptions { screen: Screen::Detail, ..ScreenOptions::default() };
    for event in [0, 1, 3, 4] {
        for width in 60..150 {
            let wanted = Picture { size: (width, 24), event: Some(event), ..Picture::default() };
            let text = tui::picture(monitor(640), &wanted, &options);
            let line = text.lines().find(|line| line.contains(" enabled ")).unwrap();
            let last = line.trim_end_matches('│').split_whitespace().last().unwrap();
            let is_label = |label: &&str| label.starts_with(last);
            assert!(!["group", "counted", "scale"].iter().any(is_label), "{width}: {line}");
        }
    }
}

#[test]
fn a_round_at_the_end_does_not_change_what_a_cell_of_groups_is() {
    with_loop((120, 40), options(), |session| {
        session.rounds(&rounds(20));
        let mut last = rounds(21).pop().unwrap();
        last.at = WallNs(20 * SECOND / 10 + SECOND / 250);
        session.rounds(&[last]);
        session.script.keys("5");
        let screen = session.script.screen();
        assert!(screen.contains("a cell is 100 ms"), "{screen}");
        session.signals.send(15.into()).unwrap();
    });
}

/// Two metrics, one over its threshold, and one whose event isn't counted.
fn with_metrics() -> Monitor {
    let metric =
        |name: &str, formula: &str, threshold: Option<&str>, unit: &str, events: &[(&str, usize)]| MetricFormula {
            name: name.into(),
            formula: formula.into(),
            threshold: threshold.map(Into::into),
            factor: 1.0,
            unit: unit.into(),
            description: String::new(),
            events: events.iter().map(|(name, event)| ((*name).to_owned(), vec![EventIndex(*event)])).collect(),
        };
    let mut header = header();
    let (instructions, cycles) = (("instructions", 2), ("cycles", 1));
    header.metrics = vec![
        metric("IPC", "instructions / cycles", None, "insn per cycle", &[instructions, cycles]),
        metric(
            "L1_MPKI",
            "1000 * L1_MISSES / instructions",
            Some("L1_MPKI > 1"),
            "",
            &[("L1_MISSES", 3), instructions],
        ),
        metric("L3_MPKI", "1000 * L3_MISSES / instructions", None, "", &[("L3_MISSES", 6), instructions]),
    ];
    let mut monitor = builders::monitor(header, vec![], EstimatorKind::Linear);
    for round in rounds(350) {
        monitor.round(&round, 0);
    }
    monitor
}

#[test]
fn metrics_are_rows_of_their_own() {
    let mut scene = Scene::new(with_metrics(), None, &options());
    for (width, height) in SIZES.into_iter().chain([(60, 11), (39, 13)]) {
        let size = Picture { size: (width, height), ..Picture::default() };
        golden(&format!("metrics-{width}x{height}"), &scene.picture(Screen::Events, &size));
    }
}

/// Two CPUs with three events each: what is counted for each part of the target.
fn per_cpu() -> Monitor {
    let mut header = header();
    let events = std::mem::take(&mut header.events);
    for cpu in 0..2 {
        let part = |event: &MeasuredEvent| MeasuredEvent { scope: perfprop::sources::Scope::Cpu(cpu), ..event.clone() };
        header.events.extend([1, 3, 7].map(|event| part(&events[event])));
    }
    header.groups.clear();
    let mut monitor = builders::monitor(header, vec![], EstimatorKind::Linear);
    for round in rounds(350) {
        let of_cpu = |factor: u64| {
            [1, 3, 7]
                .map(|event| round.readings[event].map(|reading| Reading { count: reading.count / factor, ..reading }))
        };
        let readings = [of_cpu(1), of_cpu(3)].concat();
        monitor.round(&Round { at: round.at, readings, ..Round::default() }, 0);
    }
    monitor
}

#[test]
fn parts_fold_into_a_sum() {
    let size = Picture { size: (80, 24), ..Picture::default() };
    let mut scene = Scene::new(per_cpu(), None, &options());
    golden("parts-folded", &scene.picture(Screen::Events, &size));
    scene.keys("jE");
    golden("parts-unfolded", &scene.picture(Screen::Events, &size));
    scene.keys("ss");
    golden("parts-sorted", &scene.picture(Screen::Events, &size));
    scene.keys("C/CPU1<Enter>");
    golden("parts-filtered", &scene.picture(Screen::Events, &size));
    scene.keys("<Esc>");
    let large = Picture { size: (200, 60), ..Picture::default() };
    golden("parts-200x60", &scene.picture(Screen::Events, &large));
    let lines = Picture { size: (39, 6), ..Picture::default() };
    golden("parts-lines", &scene.picture(Screen::Events, &lines));
    golden("parts-detail-80x24", &scene.picture(Screen::Detail, &size));
    golden("parts-detail-200x60", &scene.picture(Screen::Detail, &large));
    // Rates per CPU second are those of both CPUs' time, totals their sums.
    let monitor = per_cpu();
    let parts = monitor.parts();
    assert_eq!(parts.iter().map(|parts| parts.events.clone()).collect::<Vec<_>>(), [[0, 3], [1, 4], [2, 5]]);
    let sum = monitor.sum(&parts[0].events).scaled.unwrap();
    assert_eq!(sum.value, monitor.row(0).scaled.unwrap().value + monitor.row(3).scaled.unwrap().value);
}

#[test]
fn numbers_per_instruction_are_left_out_where_no_instructions_are_counted() {
    let mut header = header();
    header.events = vec![header.events[3].clone()];
    header.groups.clear();
    let mut monitor = builders::monitor(header, vec![], EstimatorKind::Scale);
    for round in rounds(40) {
        monitor.round(&Round { at: round.at, readings: vec![round.readings[3]], ..Round::default() }, 0);
    }
    let size = Picture { size: (80, 24), ..Picture::default() };
    let mut scene = Scene::new(monitor, None, &options());
    for (suffix, is_there) in [("/cpu-s", true), ("/s ", true), ("/", false)] {
        scene.keys("u");
        let screen = scene.picture(Screen::Events, &size);
        let row = screen.lines().find(|line| line.contains('▶')).unwrap_or_default().to_owned();
        assert_eq!(row.contains(suffix), is_there, "{screen}");
    }
}

#[test]
fn a_group_of_one_event_has_one_word() {
    let screen = replayed(monitor(20), Screen::Groups, WallNs(2 * SECOND), None);
    let line = |event: &str| screen.lines().find(|line| line.contains(event)).unwrap_or_default().to_owned();
    assert!(line("cycles").contains(" alone ") && line("L2_HITS").contains(" packed "), "{screen}");
    assert!(!screen.lines().any(|line| line.contains("1 counters")), "{screen}");
}

#[test]
fn skipped_readings_are_told_once() {
    let mut monitor = fresh();
    for (place, round) in rounds(40).iter().enumerate() {
        // Two more are lost in each second.
        monitor.round(round, 2 * (place as u64 / 10));
    }
    let screen = replayed(monitor, Screen::Log, WallNs(4 * SECOND), None);
    let told: Vec<_> = screen.lines().filter(|line| line.contains("W01")).collect();
    assert!(told.len() == 1 && told[0].contains("6 readings skipped, totals are right"), "{screen}");
}
