//! Tests the tour through the screens.

#![cfg(feature = "tui")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use perfprop::tui::ScreenOptions;
use ratatui::crossterm::event::{MouseButton, MouseEventKind};

use crate::scripted::{options, rounds, with_loop};

#[test]
fn the_tour_goes_on_after_help_filters_and_exports_and_has_a_mouse() {
    with_loop((80, 30), ScreenOptions { tour: Some(0), ..options() }, |session| {
        session.rounds(&rounds(20));
        let is_at = |step: &str| assert!(session.script.screen().contains(step), "{}", session.script.screen());
        is_at("1 of 5");
        for keys in ["?", "<Esc>", "/l1<Enter>", "/<Backspace><Backspace><Enter>", "x<Esc>"] {
            session.script.keys(keys);
            is_at("1 of 5");
        }
        session.script.mouse(MouseEventKind::Down(MouseButton::Left), 16, 1);
        is_at("[2 Detail]");
        session.script.keys("<Enter>");
        is_at("2 of 5");
        session.script.keys("<Esc>");
        assert!(!session.script.screen().contains(" of 5 "), "{}", session.script.screen());
        session.signals.send(15.into()).unwrap();
    });
}
