//! Explains the glyphs and numbers of the screens, and counts the lines of the help.

use super::keys::Keymap;
use super::screen::Screen;
use super::symbols::{ERROR, MISSING, OK, WAITING, WARN};

/// What the glyphs and numbers mean.
pub(super) const LEGEND: [(&str, &str); 12] = [
    ("±", "how far off the number may be 95 of 100 times, in percent of it: what multiplexing left unseen"),
    ("exact", "the event was counted all the time"),
    ("OFF", "how far off the truth it is, where that is counted beside"),
    ("VAR σ CV", "how the program varies from interval to interval; no error"),
    ("RUN%", "the part of the time that the event was on a counter"),
    ("95% CI", "between which percentages a share of samples lies 95 of 100 times"),
    ("CORR BY", "what relations changed, and which of them most"),
    (WARN, "a number that is less than it seems"),
    (OK, "all is well: running, or a relation that agrees"),
    (ERROR, "what is counted contradicts a relation"),
    (WAITING, "waiting for the first counts"),
    (MISSING, "no number, which is not 0"),
];

/// How many lines the help of a screen has.
pub(super) fn lines(keymap: &Keymap, screen: Screen) -> usize {
    // Three heads, two blank lines.
    keymap.on(screen).count() + LEGEND.len() + 5
}
