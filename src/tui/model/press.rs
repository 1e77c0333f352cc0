//! Handles keys, and returns what the loop has to do.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::step::{ListStep, move_in, neighbour, scrolled};
use super::{
    EventLine, HelpKeys, LoopCommand, Motion, Notice, OpenHelp, Over, Pane, ScreenModel, ScrolledList, WINDOWS,
};
use crate::monitor::{Measure, MeasureChoice};
use crate::names::shown;
use crate::tui::keys::{Action, KeyChord};
use crate::tui::options::Mode;
use crate::tui::picture::PictureFormat;
use crate::tui::screen::Screen;
use crate::tui::theme::Theme;

/// Why nothing can be done on the Profile screen.
pub(super) const WITHOUT_STACKS: &str = "no call stacks are sampled: -g samples them, and Enter while a run goes on";

impl ScreenModel {
    pub(super) fn key(&mut self, key: KeyEvent) -> Option<LoopCommand> {
        match (self.over.clone(), self.tour) {
            (Over::Nothing, Some(step)) => self.tour_key(key, step),
            (Over::Nothing, None) => self.screen_key(key),
            (Over::Help(help), _) => self.help_key(key, help),
            (Over::Filter { before }, _) => {
                self.filter_key(key, before);
                None
            }
            (Over::AskQuit { .. }, _) => self.quit_key(key),
            (Over::AskExport, _) => self.export_key(key),
            (Over::Jump { text }, _) => self.jump_key(key, text),
        }
    }

    /// Any key takes a message away; Esc does nothing more where that was an error.
    pub(super) fn key_after_notice(&mut self, key: KeyEvent) -> Option<LoopCommand> {
        let had_error = matches!(self.notice.take(), Some(Notice::Failed(_)));
        let is_back = || self.options.keymap.find(self.screen, key) == Some(Action::Back);
        if had_error && self.over == Over::Nothing && !self.is_in_range() && is_back() {
            return None;
        }
        self.key(key)
    }

    pub(super) fn screen_key(&mut self, key: KeyEvent) -> Option<LoopCommand> {
        match self.options.keymap.find(self.screen, key) {
            Some(action) => self.act(action),
            None => {
                self.refuse(format!("no key {} here, ? for help", KeyChord::from(key).name()));
                None
            }
        }
    }

    fn help_key(&mut self, key: KeyEvent, help: OpenHelp) -> Option<LoopCommand> {
        use Action::*;
        if help.keys == HelpKeys::Filter {
            self.help_filter_key(key, help);
            return None;
        }
        match self.options.keymap.find(Screen::Log, key) {
            Some(action @ (Up | Down | PageUp | PageDown | HalfUp | HalfDown | First | Last)) => {
                self.scroll_help(help, ListStep::of(action, self.page(ScrolledList::Help)));
            }
            Some(action @ (Redraw | Suspend)) => return self.act(action),
            Some(Filter) => self.over = Over::Help(OpenHelp { keys: HelpKeys::Filter, ..help }),
            Some(Back) if !help.filter.is_empty() => self.over = Over::Help(OpenHelp::default()),
            Some(Back | Help | Quit) => self.over = Over::Nothing,
            // They would do something to a screen that can't be seen.
            _ => {}
        }
        None
    }

    /// Scrolls the help, as far as its last line.
    pub(super) fn scroll_help(&mut self, help: OpenHelp, step: ListStep) {
        let last = self.lists.of(ScrolledList::Help).map_or(0, |help| help.all.saturating_sub(help.rows));
        self.over = Over::Help(OpenHelp { top: step.from(help.top, last + 1), ..help });
    }

    fn quit_key(&mut self, key: KeyEvent) -> Option<LoopCommand> {
        match (key.code, key.modifiers) {
            (KeyCode::Char('k'), KeyModifiers::NONE) => Some(LoopCommand::Kill),
            // Who presses Ctrl-C twice wants it to end.
            (KeyCode::Char('c'), KeyModifiers::CONTROL) => Some(LoopCommand::Kill),
            (KeyCode::Char('d'), KeyModifiers::NONE) => Some(LoopCommand::Detach),
            (KeyCode::Esc | KeyCode::Char('c'), KeyModifiers::NONE) => {
                self.over = Over::Nothing;
                None
            }
            _ => None,
        }
    }

    /// Any other key than those of the forms goes back.
    fn export_key(&mut self, key: KeyEvent) -> Option<LoopCommand> {
        self.over = Over::Nothing;
        match key.code {
            KeyCode::Char('t') => Some(LoopCommand::Export(PictureFormat::Text)),
            KeyCode::Char('a') => Some(LoopCommand::Export(PictureFormat::Ansi)),
            KeyCode::Char('s') => Some(LoopCommand::Export(PictureFormat::Svg)),
            _ => None,
        }
    }

    /// Does what an action asks for, by its kind. All are named here, so that a new one has its place.
    fn act(&mut self, action: Action) -> Option<LoopCommand> {
        use Action::*;
        if self.region.is_some() && !self.has_place_for(action) {
            self.refuse("1 shows all events, r goes back to the region");
            return None;
        }
        if let Some(why) = self.why_useless(action) {
            self.refuse(why);
            return None;
        }
        match action {
            Quit | Save | Copy | Export | Mouse | Theme | Redraw | Suspend | Help => return self.use_program(action),
            Pause | StepBack | StepForward | Slower | Faster | Jump | Range | Mark | NextMark | NextChange
            | PreviousChange => return self.control_playback(action),
            Back => return self.back(),
            Go(screen) => self.go_to(screen),
            NextScreen => self.screen = neighbour(&self.screens().collect::<Vec<_>>(), self.screen, 1),
            PreviousScreen => self.screen = neighbour(&self.screens().collect::<Vec<_>>(), self.screen, -1),
            Open => return self.open(),
            Narrow => self.narrow(),
            Widen => self.widen(),
            Filter | Search => self.begin_filter(),
            Unfold | Fold | Toggle | UnfoldAll | FoldAll if self.screen == Screen::Events => self.unfold(action),
            Levels | Restart | Zoom | Source | Chains => return self.look_into(action),
            Longer | Shorter if self.screen == Screen::Profile => return self.show_span(action),
            NextSampledLine => self.next_sampled_line(true),
            PreviousSampledLine => self.next_sampled_line(false),
            ScrollLeft => self.scroll_source(false),
            ScrollRight => self.scroll_source(true),
            Listing | Emphasis | SortFunctions | ShortNames | NextHit | PreviousHit | FindSame | GoLeft | GoRight
            | Fold | Unfold | Toggle | FoldAll | UnfoldAll | NextSampled | PreviousSampled => {
                self.steer_profile(action)
            }
            NextColumn | PreviousColumn | Invert => self.sort(action),
            Freeze | Basis | Measure | Axis | Longer | Shorter | Output => self.change_view(action),
            Graph => self.graph = !self.graph,
            NextEvent => self.go(ListStep::By(1)),
            PreviousEvent => self.go(ListStep::By(-1)),
            Up | Down | PageUp | PageDown | HalfUp | HalfDown | First | Last => {
                self.go(ListStep::of(action, self.page(ScrolledList::Of(self.screen))));
            }
        }
        None
    }

    /// What is of the program and not of a screen.
    fn use_program(&mut self, action: Action) -> Option<LoopCommand> {
        match action {
            Action::Quit => return Some(LoopCommand::Quit),
            Action::Redraw => return Some(LoopCommand::Redraw),
            Action::Suspend => return Some(LoopCommand::Suspend),
            Action::Copy => return self.copied(),
            Action::Save => return self.save(),
            Action::Mouse => {
                self.mouse = !self.mouse;
                let words = if self.mouse { "the mouse is perfprop's" } else { "the mouse selects text" };
                self.tell(words);
                return Some(LoopCommand::Mouse(self.mouse));
            }
            Action::Export => self.over = Over::AskExport,
            Action::Help => self.over = Over::Help(OpenHelp::default()),
            Action::Theme => self.next_theme(),
            _ => {}
        }
        None
    }

    /// Has the recording saved, or says why it can't be.
    pub(in crate::tui) fn save(&mut self) -> Option<LoopCommand> {
        let is_on_the_way = self.playback.as_ref().is_some_and(|playback| playback.way.is_some());
        let refused = match self.options.mode {
            _ if is_on_the_way => "it is still going to another time: save it when it is there",
            Mode::Stacks { .. } => "nothing was measured here: perfprop export writes stacks",
            _ if self.shown_range().is_some() => "a range is shown: Esc shows the recording, which S saves",
            Mode::Live | Mode::Replay { .. } => return Some(LoopCommand::Save),
        };
        self.refuse(refused);
        // A signal asks for this, too, after which nothing else may change.
        self.revision += 1;
        None
    }

    /// Shows a screen, or says why it isn't there.
    pub(super) fn go_to(&mut self, screen: Screen) {
        if screen == Screen::Compare && self.others.is_none() {
            self.refuse("Compare needs two recordings:  perfprop replay A B");
        } else if !self.screens().any(|other| other == screen) {
            self.refuse("a file of stacks has the screens Profile and Log");
        } else {
            self.region = None;
            self.screen = screen;
        }
    }

    /// Looks at the profile in another way, or at the source of its functions: the loop has a part in that.
    fn look_into(&mut self, action: Action) -> Option<LoopCommand> {
        match action {
            Action::Levels => self.next_level(),
            Action::Restart => self.restart_profile(),
            Action::Zoom if self.can_begin_sampling() => Some(LoopCommand::BeginSampling),
            Action::Zoom => self.zoom_or_source(),
            Action::Source => self.ask_for_source(),
            Action::Chains => {
                self.steer_profile(action);
                self.profile.as_ref().map(|profile| LoopCommand::InterpreterFrames(profile.interpreter_frames()))
            }
            _ => None,
        }
    }

    /// Sorts the list of the screen by a column beside the one that it is sorted by, or the other way round.
    fn sort(&mut self, action: Action) {
        let step = if action == Action::NextColumn { 1 } else { -1 };
        match (self.screen, action) {
            (Screen::Compare, Action::Invert) => {
                self.comparison.inverted = !self.comparison.inverted;
                self.compare();
            }
            (Screen::Compare, _) => self.sort_comparison(step),
            (Screen::Threads, Action::Invert) => self.thread_list.inverted = !self.thread_list.inverted,
            (Screen::Threads, _) => self.sort_threads(step),
            (_, Action::Invert) => {
                self.events.sort.inverted = !self.events.sort.inverted;
                self.arrange();
            }
            _ => self.sort_events(step),
        }
    }

    /// Changes how numbers are shown.
    fn change_view(&mut self, action: Action) {
        match action {
            Action::Freeze => self.freeze(),
            Action::Basis => {
                self.basis = self.basis.next();
                self.arrange();
            }
            Action::Measure => {
                self.measures = self.measures.next();
                if self.measures == MeasureChoice::Every(Measure::PerKiloInstruction)
                    && !self.monitor.knows_instructions()
                {
                    self.measures = self.measures.next();
                }
                self.arrange();
            }
            Action::Axis => self.axis = self.axis.other(),
            Action::Longer => self.show_time((self.window + 1).min(WINDOWS.len() - 1)),
            Action::Shorter => self.show_time(self.window.saturating_sub(1)),
            Action::Output => {
                self.log.pane = if self.log.pane == Pane::Findings { Pane::Output } else { Pane::Findings };
            }
            _ => {}
        }
    }

    /// Shows what a run counted that was over before a second interval: rates of so little time say less. The reader may have chosen
    /// another unit.
    pub(in crate::tui) fn show_totals_of_short_run(&mut self) {
        let is_short = self.monitor.ended().is_some() && self.monitor.intervals() <= 1;
        if is_short && self.measures == MeasureChoice::default() {
            self.measures = MeasureChoice::Every(Measure::Total);
            self.arrange();
        }
    }

    /// Has charts of another time. Small screens have theirs in Detail: elsewhere nothing would be seen of it.
    fn show_time(&mut self, window: usize) {
        if self.shown_range().is_some() {
            return self.refuse("charts show the range");
        }
        let (now, before) = (self.monitor.now(), self.window());
        self.window = window;
        if self.screen == Screen::Detail && before.min(self.window()) >= now {
            return self.tell(format!("the chart shows all of the {:.0} s so far", now.as_secs()));
        }
        if self.screen == Screen::Detail && before == self.window() {
            return self.tell(format!("no chart shows another time than {:.0} s", before.as_secs()));
        }
        if self.screen == Screen::Events {
            let seconds = self.window().as_secs();
            self.tell(format!("charts show {seconds:.0} s (Detail: 2)"));
        }
    }

    /// The selected event in detail, a thread's call stacks, or the functions that differ between recordings.
    fn open(&mut self) -> Option<LoopCommand> {
        match (self.screen, self.events.cursor) {
            (Screen::Threads, _) => return self.open_thread(),
            (Screen::Compare, _) => self.open_functions(),
            (Screen::Events, EventLine::Sum(_)) => self.unfold(Action::Toggle),
            _ => self.screen = Screen::Detail,
        }
        None
    }

    fn freeze(&mut self) {
        self.motion = match self.motion {
            Motion::Moving => Motion::Frozen,
            Motion::Frozen => Motion::Moving,
        };
        self.follow();
    }

    /// Goes round the themes of the program, and behind them that of the user's file.
    fn next_theme(&mut self) {
        let names: Vec<_> = Theme::names().collect();
        let count = names.len() + usize::from(self.options.theme_file.is_some());
        let place = match self.shows_own_theme {
            true => Some(names.len()),
            false => names.iter().position(|name| *name == self.theme.name()),
        };
        let next = place.map_or(0, |place| (place + 1) % count);
        let built_in = names.get(next).and_then(|name| Theme::built_in(name, self.options.depth));
        self.shows_own_theme = built_in.is_none();
        self.theme = built_in.unwrap_or_else(|| self.options.theme.clone());
        self.tell(format!("theme {}", shown(self.theme.name())));
    }

    /// Moves in the list of the screen.
    pub(super) fn go(&mut self, step: ListStep) {
        match (self.screen, self.log.pane) {
            (Screen::Events | Screen::Detail, _) => {
                move_in(&self.events.order, &mut self.events.cursor, step);
                self.events.select(self.events.cursor);
                self.share_event();
            }
            (Screen::Profile, _) => {
                let height = self.profile_rows();
                if let Some(profile) = &mut self.profile {
                    profile.step(step, height);
                }
            }
            (Screen::Relations, _) => move_in(&self.relations.order, &mut self.relations.selected, step),
            (Screen::Compare, _) => move_in(&self.comparison.order, &mut self.comparison.selected, step),
            (Screen::Groups, _) => self.group = step.from(self.group, self.monitor.header().groups.len()),
            (Screen::Threads, _) => self.go_in_threads(step),
            (Screen::Source, _) => self.go_in_source(step),
            (Screen::Log, Pane::Findings) => {
                self.log.findings = scrolled(self.log.findings, self.entries().len(), step)
            }
            (Screen::Log, Pane::Output) => self.log.output = scrolled(self.log.output, self.output_lines().len(), step),
        }
    }

    pub(super) fn steer_profile(&mut self, action: Action) {
        let height = self.profile_rows();
        let is_for_all = matches!(action, Action::NextSampled | Action::PreviousSampled);
        let Some(profile) = self.profile.as_mut().filter(|profile| is_for_all || !profile.is_empty()) else {
            self.refuse(WITHOUT_STACKS);
            return;
        };
        if let Err(reason) = profile.act(action, height) {
            self.refuse(reason);
        }
        if is_for_all {
            self.follow_profile();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builders;
    use crate::estimate::EstimatorKind;
    use crate::tui::model::{Message, update};
    use crate::tui::options::ScreenOptions;
    use crate::tui::theme::Depth;

    #[test]
    fn the_users_own_theme_is_one_of_the_ring() {
        let own = |text: &str| Theme::parse("mine.toml", text, Depth::TrueColor).0;
        let options = ScreenOptions {
            theme: own(""),
            theme_file: Some("mine.toml".into()),
            depth: Depth::TrueColor,
            ..ScreenOptions::default()
        };
        let monitor = builders::monitor(builders::header([]), vec![], EstimatorKind::Scale);
        let mut model = ScreenModel::new(monitor, &options);
        let next = |model: &mut ScreenModel| {
            update(model, Message::Key(KeyEvent::from(KeyCode::Char('T'))));
            model.theme.name().to_owned()
        };
        for name in Theme::names() {
            assert_eq!(next(&mut model), name);
        }
        // One that was read again while another was shown is the new one.
        let changed = own("[state]\nwarn = \"blue\"\n");
        let last = model.theme.name().to_owned();
        update(&mut model, Message::Theme(Box::new(changed.clone()), Vec::new()));
        assert_eq!(model.theme.name(), last);
        assert_eq!((next(&mut model), model.theme.clone()), (changed.name().to_owned(), changed));
        assert_eq!(Some(next(&mut model).as_str()), Theme::names().next());
    }
}
