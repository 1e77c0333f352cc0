//! Tests how lists scroll: by pages, under the mouse, and to their ends.

#![cfg(feature = "tui")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use ratatui::crossterm::event::{MouseButton, MouseEventKind};

use crate::scripted::{Session, options, output, rounds, with_loop};

/// The names of the events on the screen, and the one with the cursor.
fn events(session: &Session) -> (Vec<String>, String) {
    let screen = session.script.screen();
    let rows = screen.lines().skip(5).filter(|line| line.starts_with("│ "));
    let name = |line: &str| line.split_whitespace().find(|word| !["│", "▶"].contains(word)).unwrap().to_owned();
    let cursor = screen.lines().find(|line| line.starts_with("│ ▶")).map(name);
    (rows.map(name).collect(), cursor.unwrap_or_default())
}

#[test]
fn a_page_is_what_is_on_the_screen() {
    with_loop((80, 12), options(), |session| {
        session.rounds(&rounds(20));
        let (first, _) = events(session);
        session.script.keys("<PageDown>");
        let (second, cursor) = events(session);
        assert!(
            first.len() < 8 && second.contains(&cursor) && !first.contains(&cursor),
            "{first:?} {second:?} {cursor}"
        );
        // No row is left out between the two.
        session.script.keys("k");
        assert_eq!(events(session).1, *first.last().unwrap());
        session.signals.send(15.into()).unwrap();
    });
}

#[test]
fn a_click_leaves_the_row_under_the_mouse() {
    with_loop((80, 12), options(), |session| {
        session.rounds(&rounds(20));
        session.script.keys("G");
        let (rows, _) = events(session);
        let row = session.script.screen().lines().position(|line| line.contains(&rows[1])).unwrap() as u16;
        let click = MouseEventKind::Down(MouseButton::Left);
        session.script.mouse(click, 10, row);
        assert_eq!(events(session), (rows.clone(), rows[1].clone()));
        // The second one opens the same event.
        session.script.mouse(click, 10, row);
        let screen = session.script.screen();
        assert!(screen.contains("[2 Detail]") && screen.contains(&rows[1]), "{screen}");
        session.signals.send(15.into()).unwrap();
    });
}

#[test]
fn a_log_that_fits_stays_whole_and_its_first_page_is_full() {
    with_loop((80, 24), options(), |session| {
        session.rounds(&rounds(20));
        session.script.keys("6");
        let whole = session.script.screen();
        for key in ["g", "k", "<Home>", "<PageUp>"] {
            session.script.keys(key);
            assert_eq!(session.script.screen(), whole, "{key}");
        }
        for line in output() {
            session.output.send(line).unwrap();
        }
        session.script.keys("og");
        let first = session.script.screen();
        let steps = |screen: &str| screen.lines().filter(|line| line.contains("step ")).count();
        assert!(first.contains("step 1 ") && steps(&first) == 18, "{first}");
        session.script.keys("j");
        let next = session.script.screen();
        assert!(!next.contains("step 1 ") && next.contains("step 2 ") && steps(&next) == 18, "{next}");
        session.signals.send(15.into()).unwrap();
    });
}

#[test]
fn help_scrolls_to_its_end_and_no_further() {
    for size in [(80, 24), (120, 40), (39, 12)] {
        with_loop(size, options(), |session| {
            session.rounds(&rounds(20));
            session.script.keys("?");
            let first = session.script.screen();
            session.script.keys("G");
            let last = session.script.screen();
            session.script.keys("jj<PageDown>k");
            assert_ne!(session.script.screen(), last);
            session.script.mouse(MouseEventKind::ScrollDown, 10, 5);
            assert_eq!(session.script.screen(), last);
            session.script.mouse(MouseEventKind::ScrollUp, 10, 5);
            assert_ne!(session.script.screen(), last);
            session.script.keys("g");
            assert_eq!(session.script.screen(), first);
            session.signals.send(15.into()).unwrap();
        });
    }
}

#[test]
fn help_shows_what_its_filter_lets_through() {
    with_loop((80, 24), options(), |session| {
        session.rounds(&rounds(20));
        session.script.keys("?");
        let all = session.script.screen();
        session.script.keys("/sort");
        let typed = session.script.screen();
        assert!(typed.contains("/sort▏") && typed.contains("sort by the next column"), "{typed}");
        assert!(!typed.contains("page up") && !typed.contains("What is shown"), "{typed}");
        session.script.keys("<Enter>");
        let kept = session.script.screen();
        assert!(kept.contains("filter: sort") && !kept.contains("page up"), "{kept}");
        session.script.keys("<Esc>");
        assert_eq!(session.script.screen(), all);
        session.script.keys("/qqq");
        assert!(session.script.screen().contains("no key matches"), "{}", session.script.screen());
        session.script.keys("<Esc>");
        assert_eq!(session.script.screen(), all);
        session.signals.send(15.into()).unwrap();
    });
}

#[test]
fn keys_that_are_pressed_in_help_do_nothing_behind_it() {
    with_loop((80, 24), options(), |session| {
        session.rounds(&rounds(20));
        let screen = session.script.screen();
        for closing in ["<Esc>", "q", "?"] {
            session.script.keys("?3xT");
            assert!(session.script.screen().contains("Esc closes"), "{}", session.script.screen());
            session.script.keys(closing);
            assert_eq!(session.script.screen(), screen);
        }
        session.signals.send(15.into()).unwrap();
    });
}
