//! Keeps the profile and the selected event of the other screens together.

use super::profile::FrameOrigin;
use super::{ChosenRegion, LoopCommand, Motion, ProfileState, ScreenModel, SourceState};
use crate::diagnosis::LockWaits;
use crate::monitor::Row;
use crate::number::clock;
use crate::profile::Tree;
use crate::recording::TimeRange;
use crate::stacks::{OFF_CPU, ProfileSpan, StackQuality};
use crate::tui::figures::ShownValues;
use crate::tui::keys::Action;
use crate::tui::layout::Room;
use crate::tui::layout::profile::{BesideTable, table_rows};
use crate::tui::options::Mode;
use crate::tui::playback::Sight;
use crate::tui::screen::Screen;
use crate::units::{CpuNs, WallNs};

/// Functions of the list beside the events: more than any screen has rows.
const HOT_FUNCTIONS: usize = 64;

impl ScreenModel {
    /// Takes over what was sampled up to the end of the last interval.
    pub(in crate::tui) fn take_profile(&mut self, tree: &Tree, quality: &StackQuality) {
        // Of whole recordings, as long as they are compared.
        if self.profile.as_ref().is_some_and(ProfileState::compares) {
            return;
        }
        let is_first = self.profile.is_none();
        let target = self.monitor.header().target.selection();
        self.profile.get_or_insert_default().take(tree, quality, &target);
        if is_first && self.events.is_chosen {
            self.share_event();
        }
        self.profile_of = Some(self.span_of_screen());
        self.sampled_since = quality.since.max(self.profile_since).unwrap_or(self.monitor.began());
        self.lock_waits = LockWaits::of(tree);
        self.show_opened_thread();
        self.find_hot_functions();
        // What stands out is told by functions and locks, too.
        if is_first || self.monitor.ended().is_some() {
            self.diagnosed_at = None;
            self.diagnose();
        }
    }

    fn find_hot_functions(&mut self) {
        let confidence = self.monitor.confidence();
        let profile = self.profile.as_ref();
        self.hot_functions = profile.map_or_else(Vec::new, |profile| profile.hottest(HOT_FUNCTIONS, confidence));
    }

    /// Shows the event that the user selected in the profile too, if it was sampled.
    pub(super) fn share_event(&mut self) {
        self.events.is_chosen = true;
        let events = &self.monitor.header().events;
        let (Some(profile), Some(event)) = (&mut self.profile, events.get(self.events.selected)) else { return };
        let name = &event.event.name;
        if let Some(place) = profile.calls.events.iter().position(|sampled| is_of(&sampled.name, name)) {
            profile.set_event(place);
            self.find_hot_functions();
        }
    }

    /// Selects the event that the profile shows everywhere else.
    pub(super) fn follow_profile(&mut self) {
        let Some(sampled) = self.profile.as_ref().and_then(ProfileState::event_name) else { return };
        let events = &self.monitor.header().events;
        let place = events.iter().position(|event| is_of(sampled, &event.event.name));
        if let Some(event) = place {
            self.select_line_of(event);
        }
    }

    /// Whether something on the screen is said by the profile: beside the events, their hottest functions.
    pub(in crate::tui) fn uses_profile(&self) -> bool {
        self.screen == Screen::Events || self.shows_profile()
    }

    /// Whether the profile on the screen, or what is told of it there, is to be looked at anew.
    pub(in crate::tui) fn wants_new_profile(&self) -> bool {
        // Enter on a thread opens its stacks.
        let is_wanted = self.screen == Screen::Threads && self.profile.is_none();
        let is_told = self.uses_profile() || is_wanted || matches!(self.screen, Screen::Log | Screen::Source);
        self.profile_is_old && self.motion == Motion::Moving && is_told
    }

    /// Whether more comes without a key: a run that isn't over, and a recording that is played or wound.
    pub(in crate::tui) fn goes_on(&self) -> bool {
        let is_fed = self.playback.as_ref().is_none_or(|playback| {
            let plays = playback.playing && !matches!(playback.sight, Sight::Range(_));
            plays || playback.way.is_some()
        });
        is_fed && self.rounds.end.is_none()
    }

    /// The time that the screens are about.
    fn span_of_screen(&self) -> TimeRange {
        TimeRange { from: self.monitor.began(), to: self.monitor.now() }
    }

    /// The time up to which the profile is, where that of the rest of the screen is another: looking at many samples
    /// takes long.
    pub(in crate::tui) fn old_profile(&self) -> Option<WallNs> {
        /// An interval or two of a run that goes on.
        const LATE: WallNs = WallNs(2_000_000_000);
        let (shown, now) = (self.profile_of.filter(|_| self.profile_is_old)?, self.span_of_screen());
        let late = LATE.max(WallNs(self.monitor.header().interval_ns.0.saturating_mul(2)));
        let is_other = shown.from != now.from || now.to.0.abs_diff(shown.to.0) > late.0;
        is_other.then_some(shown.to)
    }

    /// Whether the profile is on the screen.
    pub(in crate::tui) fn shows_profile(&self) -> bool {
        match self.screen {
            Screen::Profile => true,
            Screen::Events => self.region.is_some() || Room::on(self.screen_size()) == Room::Large,
            Screen::Detail
            | Screen::Relations
            | Screen::Groups
            | Screen::Log
            | Screen::Threads
            | Screen::Source
            | Screen::Compare => false,
        }
    }

    /// Whether an action is one of the screen: the list of all events isn't there while a region's are, and only from a
    /// region's is there a way back.
    pub(in crate::tui) fn has_place_for(&self, action: Action) -> bool {
        match (self.screen, action) {
            (Screen::Events, Action::Widen) => self.region.is_some(),
            (Screen::Events, action) => self.region.is_none() || !is_of_list(action),
            _ => true,
        }
    }

    /// Whether there is anything on the screen now that an action is about: there may be one event only, and not every
    /// row of a profile is a region.
    pub(in crate::tui) fn has_use_for(&self, action: Action) -> bool {
        let events = || self.profile.as_ref().map_or(0, |profile| profile.calls.events.len());
        let lists_functions = || self.profile.as_ref().is_some_and(ProfileState::is_in_functions);
        match (self.screen, action) {
            (_, Action::Pause | Action::StepForward) => self.timeline_rows() > 0,
            (_, Action::Range) => self.timeline_rows() > 0 && self.shown_range().is_none(),
            (Screen::Source, Action::Back) => true,
            (Screen::Source, Action::ScrollRight) => self.source.as_ref().is_some_and(SourceState::has_long_lines),
            (_, Action::Back) => self.is_in_range(),
            (Screen::Threads, Action::Open) => self.can_open_threads(),
            (Screen::Profile, Action::Restart) => self.can_restart_profile(),
            (Screen::Profile, Action::Narrow) => self.selected_region().is_some(),
            (Screen::Profile, Action::NextSampled) => events() > 1,
            (Screen::Profile, Action::Basis | Action::Measure) => self.profile_has_counts(),
            (Screen::Events | Screen::Detail, Action::Basis) => self.has_place_for(action) && self.has_scaled(),
            (Screen::Relations, Action::Graph) => !self.monitor.relations().is_empty(),
            // Of calls Enter zooms, of functions it shows the source.
            (Screen::Profile, Action::Zoom) => !lists_functions(),
            (Screen::Profile, Action::Source) => {
                lists_functions() && self.why_no_source().is_none() && self.may_have_source()
            }
            _ => self.has_place_for(action),
        }
    }

    /// Whether the selected function may have lines: the kernel's have none unless its file is known, and a wait has no
    /// code.
    fn may_have_source(&self) -> bool {
        let selected = self.profile.as_ref().map(|profile| profile.calls.label(profile.functions.selected));
        selected.is_none_or(|label| {
            let is_kernel = label.origin == FrameOrigin::Kernel;
            !(is_kernel && label.file.is_empty() || label.module == OFF_CPU)
        })
    }

    /// Whether some count was scaled or corrected: else raw numbers are no others.
    fn has_scaled(&self) -> bool {
        let is_scaled = |row: Row<'_>| row.correction().is_some() || row.absence.is_none() && !row.raw.run.is_exact();
        self.basis != ShownValues::default() || self.monitor.rows().any(is_scaled)
    }

    /// Whether the profile has counts of regions, which may be corrected and in other units; samples are neither.
    fn profile_has_counts(&self) -> bool {
        self.profile.as_ref().is_some_and(|profile| profile.calls.events.iter().any(|event| event.of_calls.is_some()))
    }

    /// Why an action does nothing on the screen as it is; `None` where it does something, or says so itself.
    pub(super) fn why_useless(&self, action: Action) -> Option<&'static str> {
        if self.has_use_for(action) {
            return None;
        }
        match (self.screen, action) {
            (Screen::Profile, Action::Basis) => Some("samples aren't corrected: there are no raw numbers of them"),
            (Screen::Profile, Action::Measure) => Some("shares of samples have no other unit"),
            (Screen::Relations, Action::Graph) => Some("there are no relations to draw"),
            _ => None,
        }
    }

    fn selected_region(&self) -> Option<ChosenRegion> {
        self.profile.as_ref().filter(|profile| !profile.is_empty())?.chosen_region()
    }

    /// Narrows the Events screen to the region that is selected in the profile.
    pub(super) fn narrow(&mut self) {
        self.region = self.selected_region();
        match self.region {
            Some(_) => self.screen = Screen::Events,
            None => self.refuse("r shows the events of a region: select one first"),
        }
    }

    /// Goes back from the events of a region to the profile.
    pub(super) fn widen(&mut self) {
        match self.region.take() {
            Some(_) => self.screen = Screen::Profile,
            None => self.refuse("these are all events; r on a region in Profile shows its own"),
        }
    }

    /// The next first level of the profile's tree.
    pub(super) fn next_level(&mut self) -> Option<LoopCommand> {
        if self.motion == Motion::Frozen {
            self.refuse("the view is frozen; z goes on");
            return None;
        }
        if self.profile.as_ref().is_some_and(ProfileState::compares) {
            self.refuse("profiles are compared by names of threads");
            return None;
        }
        self.first_level = self.first_level.next();
        self.tell(format!("by {}", self.first_level));
        Some(LoopCommand::FirstLevel(self.first_level))
    }

    /// Has the samples of a longer or a shorter time in the profile.
    pub(super) fn show_span(&mut self, action: Action) -> Option<LoopCommand> {
        if let Some(refused) = self.why_no_span() {
            self.refuse(refused);
            return None;
        }
        let span = self.profile_span;
        self.profile_span = if action == Action::Longer { span.longer() } else { span.shorter() };
        let words = match self.profile_span {
            ProfileSpan::Run => match self.profile_since {
                None => "all samples of the run; { shows those of the last seconds".to_owned(),
                Some(since) => format!("all samples since {}", clock(since)),
            },
            ProfileSpan::Last(length) => {
                format!("samples of the last {:.0} s; }} shows a longer time", length.as_secs())
            }
        };
        self.tell(words);
        Some(LoopCommand::ProfileSpan(self.profile_span))
    }

    /// The part of the CPU time that the samples stand for, where it is small.
    pub(in crate::tui) fn little_sampled(&self) -> Option<f64> {
        let profile = self.profile.as_ref().filter(|profile| profile.waiting == 0 && !profile.compares())?;
        let since =
            self.profile_since.map_or(WallNs(0), |since| since.max(self.monitor.began()) - self.monitor.began());
        let of_run = self.monitor.shown_time() - since;
        let length = match self.profile_span {
            ProfileSpan::Run => of_run,
            ProfileSpan::Last(length) => length.min(of_run),
        };
        self.monitor.little_sampled(profile.event_name()?, CpuNs(profile.whole().weight), length)
    }

    /// Why the profile is that of the whole run.
    fn why_no_span(&self) -> Option<&'static str> {
        match &self.profile {
            None => Some("no call stacks are sampled"),
            Some(_) if self.motion == Motion::Frozen => Some("the view is frozen; z goes on"),
            Some(profile) if profile.compares() => Some("profiles of whole recordings are compared"),
            Some(_) if self.monitor.header().modelled.is_some() => {
                Some("the model's counts are those of the whole run")
            }
            Some(profile) if profile.call_measure().is_some() => {
                Some("the times of regions are those of the whole run")
            }
            Some(_) => None,
        }
    }

    /// Whether nothing is sampled of a run that goes on.
    pub(in crate::tui) fn can_begin_sampling(&self) -> bool {
        let is_live = matches!(self.options.mode, Mode::Live) && self.monitor.ended().is_none();
        is_live && self.profile.is_none() && self.monitor.header().modelled.is_none()
    }

    /// Whether more samples come, and the view follows them.
    fn can_restart_profile(&self) -> bool {
        let is_live = matches!(self.options.mode, Mode::Live) && self.monitor.ended().is_none();
        is_live && self.motion == Motion::Moving && !self.profile.as_ref().is_none_or(ProfileState::compares)
    }

    /// Begins the profile anew, with the samples to come.
    pub(super) fn restart_profile(&mut self) -> Option<LoopCommand> {
        if !self.can_restart_profile() {
            let words = "X begins the profile anew while the program runs and the view isn't frozen";
            self.refuse(words);
            return None;
        }
        self.profile_since = Some(self.monitor.now());
        Some(LoopCommand::RestartProfile)
    }

    /// How many rows the table of the Profile screen has.
    pub(super) fn profile_rows(&self) -> usize {
        let profile = self.profile.as_ref();
        let beside = profile.map_or(BesideTable::Nothing, ProfileState::beside_table);
        let emphasis = profile.map(|profile| profile.emphasis).unwrap_or_default();
        table_rows(self.screen_size(), self.timeline_rows(), emphasis, beside)
    }
}

/// Whether a sampled event is this one: it has `:u` behind its name where only user space is sampled.
fn is_of(sampled: &str, event: &str) -> bool {
    sampled == event || sampled.strip_suffix(":u") == Some(event)
}

/// Whether an action is about the lines of a list of events.
fn is_of_list(action: Action) -> bool {
    use Action::*;
    matches!(
        action,
        Up | Down
            | PageUp
            | PageDown
            | HalfUp
            | HalfDown
            | First
            | Last
            | Open
            | Filter
            | Copy
            | NextColumn
            | PreviousColumn
            | Invert
            | Basis
            | Measure
            | Axis
            | Longer
            | Shorter
            | Toggle
            | Unfold
            | Fold
            | UnfoldAll
            | FoldAll
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builders;
    use crate::estimate::EstimatorKind;
    use crate::profile::{Amount, Frame, ProfileEvent, SampleMeasure};
    use crate::tui::options::{ReplayedEnding, ScreenOptions};
    use crate::tui::playback::WayDone;

    fn model(mode: Mode) -> ScreenModel {
        let monitor = builders::monitor(builders::header([]), vec![], EstimatorKind::Scale);
        ScreenModel::new(monitor, &ScreenOptions { mode, ..ScreenOptions::default() })
    }

    fn replay() -> Mode {
        Mode::Replay { length: WallNs(9_000_000_000), speed: 1.0, ending: ReplayedEnding::Finished }
    }

    #[test]
    fn a_replay_that_stands_needs_not_be_quick() {
        assert!(model(Mode::Live).goes_on());
        let mut model = model(replay());
        let mut with = |playing, sight, way| {
            let Some(playback) = model.playback.as_mut() else { unreachable!("a replay has a playback") };
            (playback.playing, playback.sight, playback.way) = (playing, sight, way);
            model.goes_on()
        };
        let range = Sight::Range(TimeRange { from: WallNs(1), to: WallNs(2) });
        assert!(with(true, Sight::UpToNow, None));
        // After a seek, and in a range.
        assert!(!with(false, Sight::UpToNow, None) && !with(true, range, None));
        assert!(with(false, range, Some(WayDone { part: 0.5, to: WallNs(3) })));
    }

    #[test]
    fn a_profile_of_another_time_is_told_to_be_so_until_it_is_new() {
        let mut model = model(replay());
        model.take_profile(&Tree::default(), &StackQuality::default());
        assert_eq!(model.old_profile(), None);
        model.profile_of = Some(TimeRange { from: WallNs(5), to: WallNs(7_000_000_000) });
        assert_eq!(model.old_profile(), Some(WallNs(7_000_000_000)));
        model.profile_is_old = false;
        assert_eq!(model.old_profile(), None);
    }

    #[test]
    fn keys_that_do_nothing_say_why_and_are_not_in_the_footer() {
        let mut model = model(Mode::Live);
        model.profile = Some(ProfileState::default());
        for (screen, action) in
            [(Screen::Profile, Action::Basis), (Screen::Profile, Action::Measure), (Screen::Relations, Action::Graph)]
        {
            model.screen = screen;
            assert!(!model.has_use_for(action) && model.why_useless(action).is_some(), "{action:?}");
        }
        model.screen = Screen::Events;
        assert_eq!(model.why_useless(Action::Basis), None);
        // Where nothing is scaled, raw numbers are no others.
        assert!(!model.has_use_for(Action::Basis));
    }

    #[test]
    fn source_is_offered_only_for_functions_that_may_have_lines() {
        let offered = |module, file| {
            let mut tree = Tree::default();
            let (place, event) = (tree.sampled(), tree.event(&ProfileEvent::new("clock", SampleMeasure::Samples)));
            let frame = tree.frame(&Frame { module, file, ..Frame::function("work") });
            tree.stack(place, [frame], event, Amount { samples: 9, weight: 9 });
            let mut model = model(Mode::Live);
            model.screen = Screen::Profile;
            model.take_profile(&tree, &StackQuality::default());
            model.has_use_for(Action::Source)
        };
        assert!(offered("prog", "") && offered("[kernel]", "kernel/sched/core.c"));
        assert!(!offered("[kernel]", "") && !offered(OFF_CPU, ""));
    }
}
