//! Tests the profile by keys and the mouse: golden screens of its forms, of source and of searches.

#![cfg(feature = "tui")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use perfprop::profile::{self, Amount, Frame, SampleMeasure, Tree};
use perfprop::stacks::{self, Losses};
use perfprop::tui::{self, Depth, GlyphSet, Picture, Screen, ScreenOptions, Theme};
use perfprop::units::WallNs;
use ratatui::crossterm::event::{MouseButton, MouseEventKind};

use crate::builders::SECOND;
use crate::programs::{add_stack, shared, solver};
use crate::scripted::{
    SIZES, Session, golden, monitor, options, replayed, rounds, with_frequencies, with_loop, with_profile,
};

#[test]
fn hidden_rows_of_a_profile_are_marked() {
    with_profile((80, 16), options(), shared(solver()), |session| {
        session.rounds(&rounds(20));
        session.script.keys("4tteEg");
        let is_row = |line: &&str| line.contains('%') && !line.contains("CI") && !line.contains("cpu ");
        let rows = |session: &Session| session.script.screen().lines().filter(is_row).count();
        let marked = |session: &Session, arrows: &str| {
            let screen = session.script.screen();
            let mark = format!("of 21, {arrows} more");
            let last = screen.lines().find(|line| line.contains(&mark)).unwrap_or_else(|| panic!("{screen}"));
            let rows = last.split(" of 21,").next().unwrap().rsplit(' ').next().unwrap();
            rows.parse::<usize>().unwrap()
        };
        // Beside the tree alone, below the icicle, in the panel at the right, and without a frame.
        session.script.keys("mm");
        assert_eq!(marked(session, "↓"), rows(session));
        session.script.keys("mG");
        marked(session, "↑");
        session.script.keys("m");
        assert!(!session.script.screen().contains("of 21"), "an icicle alone hides no rows of a table");
        session.script.keys("mmg");
        session.script.resize(39, 9);
        assert_eq!(marked(session, "↓"), rows(session));
        session.script.resize(20, 3);
        assert_eq!(marked(session, "↓"), 2);
        session.script.resize(200, 60);
        assert!(!session.script.screen().contains("of 21"));
        session.signals.send(15.into()).unwrap();
    });
}

#[test]
fn profiles_at_all_sizes() {
    for (width, height) in SIZES {
        with_profile((width, height), options(), shared(solver()), move |session| {
            session.rounds(&rounds(40));
            let size = format!("{width}x{height}");
            golden(&format!("events-with-profile-{size}"), &session.script.screen());
            for (keys, name) in [
                ("4", "profile"),
                ("ja", "profile-short-names"),
                ("s", "profile-by-total"),
                ("stt", "profile-tree"),
                ("e", "profile-all-frames"),
                ("t", "profile-modules"),
                ("tjt", "profile-callers"),
                ("tgCjjl<Enter>/leaf<Enter>n", "profile-zoom-search"),
                ("<Esc><Esc>em", "profile-icicle"),
                ("mE]", "profile-faults"),
                ("m?", "profile-help"),
            ] {
                session.script.keys(keys);
                golden(&format!("{name}-{size}"), &session.script.screen());
            }
            session.signals.send(15.into()).unwrap();
        });
    }
}

#[test]
fn arrows_go_in_an_icicle_that_is_alone_whatever_is_listed() {
    with_profile((80, 24), options(), shared(solver()), |session| {
        let copied = |session: &Session| {
            session.script.keys("y");
            let screen = session.script.screen();
            screen
                .split("copied: ")
                .nth(1)
                .unwrap_or_else(|| panic!("{screen}"))
                .lines()
                .next()
                .unwrap()
                .trim()
                .to_owned()
        };
        session.rounds(&rounds(20));
        // Functions, and modules.
        for keys in ["4m", "mttm"] {
            session.script.keys(keys);
            session.script.keys("gj");
            let first = copied(session);
            session.script.keys("l");
            let beside = copied(session);
            assert_ne!(first, beside);
            // What is sampled since then moves nothing.
            session.rounds(&rounds(40)[20..]);
            assert_eq!(copied(session), beside);
            session.script.keys("h");
            assert_eq!(copied(session), first);
            session.script.keys("+");
            assert!(session.script.screen().contains("an icicle has nothing to fold"), "{}", session.script.screen());
            // What is selected is what Enter zooms into.
            session.script.keys("l<Enter>");
            assert_eq!(copied(session), beside);
            session.script.keys("<Esc>m");
        }
        session.signals.send(15.into()).unwrap();
    });
}

/// Whether functions without lines have instructions.
const HAS_DISASSEMBLER: bool = cfg!(feature = "disassembly");

#[test]
fn sources_at_all_sizes() {
    for (width, height) in SIZES {
        with_profile((width, height), options(), shared(solver()), move |session| {
            session.rounds(&rounds(40));
            let size = format!("{width}x{height}");
            for (keys, name) in [
                ("4v", "source"),
                ("n", "source-next"),
                ("<Esc>j<Enter>", "source-missing"),
                ("<Esc>tGv?", "source-help"),
                ("<Esc><Esc>E]v", if HAS_DISASSEMBLER { "source-instructions" } else { "source-no-instructions" }),
            ] {
                session.script.keys(keys);
                golden(&format!("{name}-{size}"), &session.script.screen());
            }
            session.signals.send(15.into()).unwrap();
        });
    }
}

#[test]
fn a_source_has_shares_of_one_look_and_waits_while_the_view_is_frozen() {
    let profile = shared(solver());
    let tree = profile.clone().unwrap();
    with_profile((120, 40), options(), profile, move |session| {
        session.rounds(&rounds(40));
        session.script.keys("4");
        assert!(session.script.screen().contains("18270 samples"), "{}", session.script.screen());
        add_stack(&mut tree.lock().unwrap(), &["solve", "main@solve"], "L1_MISSES", 1_730);
        session.script.keys("v");
        assert!(session.script.screen().contains("of all, 1050 of 20000 samples"), "{}", session.script.screen());
        session.script.keys("<Esc>z");
        assert!(!session.script.screen().contains("v source"), "{}", session.script.screen());
        session.script.keys("v");
        let screen = session.script.screen();
        assert!(screen.contains("the view is frozen; z goes on, then v shows the source"), "{screen}");
        session.signals.send(15.into()).unwrap();
    });
}

/// Lists calls.
fn to_tree(session: &Session) {
    for _ in 0..4 {
        if !session.script.screen().contains("CALL TREE (") {
            session.script.keys("t");
        }
    }
    assert!(session.script.screen().contains("CALL TREE ("), "{}", session.script.screen());
}

#[test]
fn enter_shows_the_source_of_a_function_and_zooms_into_calls_first() {
    with_profile((80, 24), options(), shared(solver()), move |session| {
        session.rounds(&rounds(40));
        let shows = |session: &Session, words: &str| {
            let screen = session.script.screen();
            assert!(screen.contains(words), "{words}: {screen}");
        };
        session.script.keys("4<Enter>");
        shows(session, "Source ─");
        session.script.keys("<Esc>");
        shows(session, "Profile ─");
        to_tree(session);
        session.script.keys("jj<Enter>");
        shows(session, "zoom: ");
        session.script.keys("<Enter>");
        shows(session, "Source ─");
        session.script.keys("<Esc>");
        shows(session, "zoom: ");
        session.signals.send(15.into()).unwrap();
    });
}

/// The line of the table with the cursor, and where on the screen it is.
fn cursor(screen: &str) -> (usize, String) {
    let (row, line) = screen.lines().enumerate().skip(2).find(|(_, line)| line.contains('▶')).unwrap();
    (row, line.split('▶').nth(1).unwrap().trim_matches(['−', '+', ' ']).split("  ").next().unwrap().to_owned())
}

#[test]
fn a_live_profile_moves_nothing_under_the_readers_eyes() {
    let tree = shared(solver());
    let grows = tree.clone().unwrap();
    with_profile((80, 24), options(), tree, move |session| {
        let all = rounds(60);
        session.rounds(&all[..20]);
        session.script.keys("4");
        to_tree(session);
        session.script.keys("/leaf_fp<Enter>n<Enter><Esc>");
        let (row, name) = cursor(&session.script.screen());
        assert_eq!(name, "leaf_fp");
        let zoomed = session.script.screen().contains("zoom: leaf_fp");
        assert!(zoomed, "{}", session.script.screen());
        session.script.keys("<Esc>");
        let before = cursor(&session.script.screen());
        // New siblings before and after, and others that grow, but by less than chance.
        for (path, samples) in [
            (&["solve", "main@solve", "mid_b@solve", "aaa@solve"][..], 5_000),
            (&["solve", "main@solve", "aab@solve"], 40_000),
            (&["aaa"], 9),
        ] {
            add_stack(&mut grows.lock().unwrap(), path, "L1_MISSES", samples);
        }
        session.rounds(&all[20..40]);
        let screen = session.script.screen();
        assert!(screen.contains("63.3k samples"), "{screen}");
        assert_eq!(cursor(&screen), before, "{screen}");
        assert_eq!(before.1, name);
        // Frozen, the profile stays.
        session.script.keys("z");
        add_stack(&mut grows.lock().unwrap(), &["solve"], "L1_MISSES", 100_000);
        session.rounds(&all[40..]);
        assert!(session.script.screen().contains("63.3k samples"));
        session.script.keys("z");
        assert!(session.script.screen().contains("163k samples"), "{}", session.script.screen());
        assert_eq!(cursor(&session.script.screen()).1, name);
        let _ = row;
        session.signals.send(15.into()).unwrap();
    });
}

#[test]
fn searches_tell_their_share_and_go_round() {
    with_profile((120, 40), options(), shared(solver()), |session| {
        session.rounds(&rounds(20));
        // 900 + 120 + 200 of 18,270 samples.
        session.script.keys("4tte/leaf_f.$<Enter>");
        let screen = session.script.screen();
        assert!(screen.contains("/leaf_f.$ 6.7% of all"), "{screen}");
        // Enter is at the first match already.
        let mut found = vec![cursor(&screen)];
        for _ in 0..2 {
            session.script.keys("n");
            found.push(cursor(&session.script.screen()));
        }
        assert_eq!(found[0], found[2]);
        assert!(found[0] != found[1] && found.iter().all(|(_, name)| name == "leaf_fp"), "{found:?}");
        session.script.keys("N");
        assert_eq!(cursor(&session.script.screen()), found[1]);
        session.script.keys("<Esc>/vector<double, std::alloc<Enter>");
        assert!(session.script.screen().contains("0.2% of all"), "{}", session.script.screen());
        session.script.keys("<Esc>/nowhere<Enter>n");
        let screen = session.script.screen();
        assert!(screen.contains("/nowhere matches nothing") && screen.contains("no name here matches"), "{screen}");
        session.script.keys("<Esc>/leaf_f.$<Enter><Esc>#");
        assert!(session.script.screen().contains("/^leaf_fp$ 6.7% of all"), "{}", session.script.screen());
        session.script.keys("y");
        let screen = session.script.screen();
        assert!(screen.contains("copied: solve;"), "{screen}");
        session.signals.send(15.into()).unwrap();
    });
}

#[test]
fn the_mouse_selects_and_zooms_frames() {
    let left = MouseEventKind::Down(MouseButton::Left);
    with_profile((80, 24), options(), shared(solver()), move |session| {
        session.rounds(&rounds(20));
        session.script.keys("4tteg");
        // The third level of the icicle: header, tabs, border, two rows.
        session.script.mouse(left, 10, 5);
        assert_eq!(cursor(&session.script.screen()).1, "main");
        session.script.mouse(left, 10, 5);
        assert!(session.script.screen().contains("zoom: main"), "{}", session.script.screen());
        session.script.keys("<Esc>");
        let screen = session.script.screen();
        let row = screen
            .lines()
            .position(|line| line.contains("+ grow"))
            .or_else(|| screen.lines().skip(9).position(|line| line.contains("mid_b")).map(|row| row + 9))
            .unwrap();
        session.script.mouse(left, 20, u16::try_from(row).unwrap());
        assert_eq!(cursor(&session.script.screen()).0, row);
        session.signals.send(15.into()).unwrap();
    });
}

#[test]
fn events_and_profile_share_the_event() {
    with_profile((120, 40), options(), shared(solver()), |session| {
        session.rounds(&rounds(20));
        session.script.keys("1G4");
        assert!(session.script.screen().contains("page-faults (2 of 2)"), "{}", session.script.screen());
        session.script.keys("[");
        assert!(session.script.screen().contains("L1_MISSES (1 of 2)"));
        session.script.keys("1");
        assert!(cursor(&session.script.screen()).1.contains("L1_MISSES"), "{}", session.script.screen());
        session.signals.send(15.into()).unwrap();
    });
}

#[test]
fn profiles_in_ascii_and_mono() {
    let options = ScreenOptions {
        symbols: GlyphSet::Ascii,
        depth: Depth::Mono,
        theme: Theme::built_in("mono", Depth::Mono).unwrap(),
        ..options()
    };
    with_profile((80, 24), options, shared(solver()), |session| {
        session.rounds(&rounds(20));
        session.script.keys("4/leaf<Enter>n");
        let screen = session.script.screen();
        assert!(screen.is_ascii(), "{screen}");
        golden("ascii-profile", &screen);
        session.signals.send(15.into()).unwrap();
    });
}

#[test]
fn a_recursion_without_end_can_be_looked_at() {
    const DEEP: usize = 100_000;
    let mut tree = Tree::new(profile::TreeOptions { repeats: profile::RepeatFolding::Keep, ..Default::default() });
    let names: Vec<_> = (0..DEEP).map(|level| format!("f{}", level % 3)).collect();
    let frames: Vec<_> = names.iter().map(String::as_str).collect();
    add_stack(&mut tree, &frames, "L1_MISSES", 7);
    add_stack(&mut tree, &frames[..DEEP / 2], "L1_MISSES", 3);
    with_profile((80, 24), options(), shared(tree), |session| {
        session.rounds(&rounds(20));
        session.script.keys("4");
        let joined = session.script.screen();
        assert!(joined.contains("f0 > … >"), "{joined}");
        session.script.keys("tteEG");
        golden("profile-deep", &session.script.screen());
        session.script.resize(200, 60);
        let large = session.script.screen();
        assert!(large.contains("21 of 100001, ↑ more ─╯"), "{large}");
        session.script.resize(80, 24);
        session.script.keys("mkkk/f1<Enter>nm<Esc>mtt");
        golden("profile-deep-flat", &session.script.screen());
        session.script.keys("tCE<Esc>tg<Enter>");
        session.signals.send(15.into()).unwrap();
    });
}

#[test]
fn names_of_frames_steer_nothing() {
    let mut tree = Tree::default();
    let evil = "\x1b]0;title\x07evil\u{202e}\x1b[2J@\x1b[31m/lib\n.so";
    add_stack(&mut tree, &[evil, evil, "漢字の名前が長い関数@/x"], "e\x1b[2J", 5);
    for size in SIZES {
        for screen in [Screen::Profile, Screen::Events] {
            let losses = Losses { lost: 1, cut: 2, ..Losses::default() };
            let wanted = Picture {
                size,
                profile: Some((tree.clone(), stacks::StackQuality { losses, ..Default::default() })),
                ..Picture::default()
            };
            let text = tui::picture(monitor(20), &wanted, &ScreenOptions { screen, ..ScreenOptions::default() });
            assert!(text.chars().all(|c| c == '\n' || !c.is_control()) && !text.contains('\u{202e}'), "{text}");
        }
    }
}

#[test]
fn the_profile_begins_anew_at_a_higher_rate_where_threads_are_too_short_for_samples() {
    let of_time = |sampled_ms: u64| {
        let mut tree = Tree::default();
        add_stack(&mut tree, &["prog", "work"], "cpu-clock", sampled_ms * 1_000);
        shared(tree)
    };
    // The program used 2 s.
    with_frequencies(of_time(480), vec![3989, 997], |session| {
        session.rounds(&rounds(20));
        session.script.keys("4");
        let screen = session.script.screen();
        assert!(screen.contains("request") && !screen.contains("▏work"), "{screen}");
        assert!(screen.contains("cpu-clock ─ since 00:0"), "{screen}");
        session.signals.send(15.into()).unwrap();
    });
    with_frequencies(of_time(1_900), vec![997], |session| {
        session.rounds(&rounds(20));
        session.script.keys("4");
        let screen = session.script.screen();
        assert!(screen.contains("work") && !screen.contains("since 00:0"), "{screen}");
        session.signals.send(15.into()).unwrap();
    });
}

#[test]
fn what_is_missing_of_stacks_stays_in_a_narrow_title() {
    let mut tree = Tree::default();
    add_stack(&mut tree, &["prog", "_start", "main", "work"], "an-event-with-a-long-name", 700);
    add_stack(&mut tree, &["prog", "work"], "an-event-with-a-long-name", 300);
    let title = |width| {
        let quality = stacks::StackQuality::of(stacks::UnwindMethod::Fp);
        let wanted = Picture { size: (width, 24), profile: Some((tree.clone(), quality)), ..Picture::default() };
        let options = ScreenOptions { screen: Screen::Profile, ..ScreenOptions::default() };
        tui::picture(monitor(20), &wanted, &options).lines().nth(2).unwrap().to_owned()
    };
    assert!(title(110).contains("70.0% complete, 30.0% cut"), "{}", title(110));
    assert!(title(70).contains(" ─ 30.0% cut ─"), "{}", title(70));
}

#[test]
fn a_profile_of_little_of_the_cpu_time_says_so() {
    let shown = |event: &str, sampled_ms: u64| {
        let mut tree = Tree::default();
        add_stack(&mut tree, &["prog", "work"], event, sampled_ms * 1_000);
        let quality = stacks::StackQuality::of(stacks::UnwindMethod::Fp);
        let wanted = Picture { size: (120, 40), profile: Some((tree, quality)), ..Picture::default() };
        let options = ScreenOptions { screen: Screen::Profile, ..ScreenOptions::default() };
        tui::picture(monitor(20), &wanted, &options)
    };
    // The program used 2 s.
    assert!(shown("cpu-clock", 480).contains("of 24.0% of the CPU time"), "{}", shown("cpu-clock", 480));
    assert!(!shown("cpu-clock", 1_900).contains("of the CPU time"));
    // Which part of the time samples of other events stand for isn't known.
    assert!(!shown("cycles", 480).contains("of the CPU time"), "{}", shown("cycles", 480));
}

#[test]
fn the_words_about_a_selected_function_are_whole() {
    for width in (60..130).step_by(9) {
        with_profile((width, 24), options(), shared(solver()), move |session| {
            session.rounds(&rounds(2));
            session.script.keys("4ttegjjj");
            let screen = session.script.screen();
            let last = screen.lines().find(|line| line.contains("mid_a: ")).unwrap_or_else(|| panic!("{screen}"));
            let words = last.split(['─', '╰', '╯']).map(str::trim).find(|part| part.starts_with("mid_a: ")).unwrap();
            assert!(!words.contains('…') && words.contains(" samples"), "{width}: {last}");
            session.signals.send(15.into()).unwrap();
        });
    }
}

#[test]
fn the_log_counts_what_is_told_of_stacks() {
    let file = stacks::UnnamedFile { path: "/tmp/x".into(), why: "it is no regular file".into() };
    let quality = stacks::StackQuality { unnamed: vec![file], ..Default::default() };
    let wanted = Picture { size: (120, 40), profile: Some((solver(), quality)), ..Picture::default() };
    let text = tui::picture(monitor(20), &wanted, &ScreenOptions { screen: Screen::Log, ..ScreenOptions::default() });
    assert!(text.contains("no names from /tmp/x"), "{text}");
    let warnings = text.lines().skip(3).filter(|line| line.contains('▲')).count();
    assert!(text.lines().nth(1).unwrap().contains(&format!("Log {warnings}▲")), "{text}");
    let entries = text.lines().skip(3).filter(|line| line.contains(" 00:00:") || line.contains("/tmp/x")).count();
    assert!(text.lines().nth(2).unwrap().contains(&format!(" {entries} of {entries} ")), "{text}");
}

#[test]
fn no_size_stops_a_profile() {
    let mut narrow = solver();
    for i in 0..3000 {
        add_stack(
            &mut narrow,
            &["solve", &format!("f{}@m{}", i % 700, i % 13), &format!("g{i}")],
            "L1_MISSES",
            i % 5 + 1,
        );
    }
    for tree in [Tree::default(), solver(), narrow] {
        for width in [0, 1, 2, 3, 5, 12, 20, 39, 40, 41, 60, 80, 120, 169, 170, 200, 250] {
            for height in [0, 1, 3, 4, 5, 6, 7, 9, 11, 12, 14, 20, 24, 44, 45, 60, 80] {
                let size = (width, height);
                let wanted = Picture {
                    size,
                    profile: Some((tree.clone(), stacks::StackQuality::default())),
                    ..Picture::default()
                };
                let text = tui::picture(
                    monitor(5),
                    &wanted,
                    &ScreenOptions { screen: Screen::Profile, ..ScreenOptions::default() },
                );
                assert_eq!(text.lines().count(), usize::from(if width == 0 { 0 } else { height }));
            }
        }
    }
}

#[test]
fn what_is_selected_of_a_profile_is_a_share_of_the_same_as_in_the_table() {
    let mut tree = Tree::default();
    let event = tree.event(&profile::ProfileEvent::new("page-faults", SampleMeasure::Weighted("count".into())));
    // One sample stands for nine faults, nine for one each.
    for (name, samples, weight) in [("often", 1, 9), ("seldom", 9, 9)] {
        let frame = tree.frame(&Frame::function(name));
        let place = tree.sampled();
        tree.stack(place, [frame], event, Amount { samples, weight });
        tree.end(place);
    }
    let screen = replayed(monitor(20), Screen::Profile, WallNs(2 * SECOND), Some(tree));
    assert!(
        screen.contains("50.0% of page-faults in 1 of 10 samples")
            || screen.contains("50.0% of page-faults in 9 of 10 samples"),
        "{screen}"
    );
    // Where each sample stands for as much, the samples say the same.
    let screen = replayed(monitor(20), Screen::Profile, WallNs(2 * SECOND), Some(solver()));
    assert!(screen.contains(" samples, ") && !screen.contains("% of L1_MISSES in"), "{screen}");
}

#[test]
fn a_list_of_modules_is_searched_by_their_names() {
    with_profile((80, 24), options(), shared(solver()), |session| {
        session.rounds(&rounds(40));
        session.script.keys("4ttt/libc<Enter>");
        let screen = session.script.screen();
        assert!(screen.contains("/libc 1.2% of all") && screen.contains("▶ libc.so.6"), "{screen}");
        session.script.keys("<Esc>/lib.*so<Enter>n");
        let screen = session.script.screen();
        assert!(screen.contains("▶ libm.so.6"), "{screen}");
        session.script.keys("<Esc>/leaf_chase<Enter>");
        let screen = session.script.screen();
        assert!(screen.contains("no name here matches"), "{screen}");
        session.signals.send(15.into()).unwrap();
    });
}

#[test]
fn sampling_that_was_refused_is_not_offered_again() {
    with_loop((80, 24), options(), |session| {
        session.rounds(&rounds(20));
        session.script.keys("4");
        assert!(session.script.screen().contains("Enter begins"));
        session.script.keys("<Enter>");
        let screen = session.script.screen();
        assert_eq!(screen.matches("nothing runs here that could be sampled").count(), 2, "{screen}");
        assert!(!screen.contains("Enter begins"), "{screen}");
        session.signals.send(15.into()).unwrap();
    });
}
