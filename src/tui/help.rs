//! Explains the glyphs and numbers of the screens, and counts the lines of the help.

use super::keys::Bound;
use super::model::{ProfileState, ScreenModel};
use super::screen::Screen;
use super::symbols::{ERROR, MISSING, OK, UP, WAITING, WARN};
use super::theme::Role;

/// What the glyphs and numbers mean.
pub(super) const LEGEND: [(&str, &str); 14] = [
    ("±", "the true count is within so many percent of the number in 95 of 100 cases: what multiplexing left unseen"),
    ("±MEAN", "the same of the mean time of a call, as calls differ from one another"),
    ("exact", "the event was counted all the time"),
    ("OFF", "how far off the truth it is, where that is counted beside"),
    ("VAR σ CV", "how much the program varies from interval to interval; not how far off a number is"),
    ("RUN%", "the part of the time that the event was on a counter"),
    ("95% CI", "the true share is between these percentages in 95 of 100 cases"),
    ("CORR BY", "how far relations moved the number, and which of them most"),
    (UP, "in trends and charts, a peak that is cut off, more than three times as high as the rest"),
    (WARN, "counted for a part of the time, or otherwise in doubt: see Log; a relation that is trusted under 90%"),
    (OK, "all is well: running, or a relation that agrees with the counts"),
    (ERROR, "what is counted contradicts a relation"),
    (WAITING, "waiting for counts, or these are too uncertain to judge a relation"),
    (MISSING, "no number, which is not 0"),
];

/// What the colours of a profile's frames mean.
const FRAMES: [(&str, Role, &str); 6] = [
    ("program", Role::FlameUser, "the program's own code"),
    ("library", Role::FlameLibrary, "code of a library that it loaded"),
    ("kernel", Role::FlameKernel, "the kernel, for the program"),
    ("JIT", Role::FlameJit, "code that was compiled while the program ran"),
    ("unknown", Role::FlameUnknown, "a thread or process, code of no known file, and frames narrower than a cell"),
    ("match", Role::FlameMatch, "what the search found"),
];

/// The same where two profiles are compared.
const CHANGED: [(&str, Role, &str); 4] = [
    ("more", Role::FlameKernel, "B has more of it, with all below, by this part of all of A"),
    ("less", Role::FlameUser, "B has less of it"),
    ("same", Role::FlameUnknown, "both have as much, or so little that it doesn't show"),
    ("match", Role::FlameMatch, "what the search found"),
];

/// The legend of frames, on the screen that has them.
pub(super) fn frames(model: &ScreenModel) -> &'static [(&'static str, Role, &'static str)] {
    let compares = model.profile.as_ref().is_some_and(ProfileState::has_difference);
    match model.screen {
        Screen::Profile if compares => &CHANGED,
        Screen::Profile => &FRAMES,
        _ => &[],
    }
}

/// The keys that help tells of: those that do something on the screen as it is.
pub(super) fn keys(model: &ScreenModel) -> impl Iterator<Item = Bound<'_>> {
    model.options.keymap.on(model.screen).filter(|bound| model.has_place_for(bound.binding.action))
}
