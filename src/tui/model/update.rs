//! A message in, the model changed and what the loop is to do out.

use std::cmp::Ordering;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEventKind};

use super::{
    Column, Command, CompareColumn, Filter, Kept, Line, Message, Model, Motion, Notice, Over, Pane, Profile, Screen,
    Tail, WINDOWS,
};
use crate::plan::EventIndex;
use crate::rates::{Error, Uncertain};
use crate::tui::Mode;
use crate::tui::keys::{Action, Key};
use crate::tui::picture::Format;
use crate::tui::symbols::MISSING;
use crate::tui::tape::parse_time;
use crate::tui::text::{plus_minus, short_clock};
use crate::tui::theme::Theme;
use crate::tui::view::{Target, page, profile_rows, target_at};
use crate::units::WallNs;
use crate::words::shown;

/// A filter longer than this is no filter.
const MAX_FILTER: usize = 200;

/// Takes a message.
pub(in crate::tui) fn update(model: &mut Model, message: Message) -> Option<Command> {
    let changes = match message {
        Message::Round(round, lost) => model.take_round(round, lost),
        Message::Ended(end) => {
            model.kept.end = Some(end);
            model.follow();
            model.go_along();
            model.compare();
            true
        }
        Message::Output(line) => model.take_output(line),
        Message::Own(part) => {
            // Shown with the next interval: a number that changes by itself would be drawn for
            // nothing.
            model.own = Some(part);
            false
        }
        Message::Resized(width, height) => {
            model.size = (width, height);
            true
        }
        Message::Saved(Ok(path)) => {
            let path = path.display().to_string();
            model.notice = Some(Notice::Done(format!("saved to {}", shown(&path))));
            true
        }
        Message::Saved(Err(error)) => {
            model.notice = Some(Notice::Failed(format!("not saved: {}", shown(&error))));
            true
        }
        Message::Failed(error) => {
            model.notice = Some(Notice::Failed(shown(&error).into_owned()));
            true
        }
        Message::CommandRuns(pid) => {
            model.over = Over::AskQuit { pid };
            true
        }
        Message::Rewound(monitor) => {
            model.monitor = *monitor;
            model.kept = Kept::default();
            model.profile_is_old = true;
            model.go_along();
            model.arrange();
            true
        }
        Message::Theme(theme, complaints) => {
            model.theme = *theme;
            model.notice = Some(match complaints.first() {
                None => Notice::Done(format!("theme {} read again", shown(model.theme.name()))),
                Some(complaint) => Notice::Failed(shown(complaint).into_owned()),
            });
            true
        }
        Message::Sampled => {
            model.profile_is_old = true;
            model.motion == Motion::Moving && crate::tui::view::shows_profile(model)
        }
        Message::Mouse(kind, column, row) => model.mouse(kind, column, row),
        Message::Key(key) if key.kind == KeyEventKind::Release => return None,
        Message::Key(key) => {
            model.revision += 1;
            model.notice = None;
            return model.key(key);
        }
    };
    model.revision += u64::from(changes);
    None
}

/// What is counted and written.
impl Model {
    fn take_round(&mut self, round: crate::sources::Round, lost: u64) -> bool {
        let before = self.lag().0 / 1_000_000_000;
        self.kept.push(round, lost);
        match self.motion {
            Motion::Moving => self.follow(),
            // The banner shows whole seconds.
            Motion::Frozen => self.lag().0 / 1_000_000_000 != before,
        }
    }

    /// Brings the view up to date; says whether anything that is shown changed.
    fn follow(&mut self) -> bool {
        if self.motion == Motion::Frozen {
            return false;
        }
        let before = self.monitor.intervals();
        self.catch_up();
        let closed = self.monitor.intervals() != before;
        self.profile_is_old |= closed || self.kept.end.is_some();
        if closed {
            self.go_along();
            self.arrange();
        }
        // Until the first interval is complete, the time to it is counted down.
        closed || before == 0
    }

    fn take_output(&mut self, line: crate::session::OutputLine) -> bool {
        if self.output.lines.len() == super::MAX_OUTPUT {
            self.output.lines.pop_front();
            self.output.dropped += 1;
            if let Tail::At(last) = &mut self.log.output {
                *last = last.saturating_sub(1);
            }
        }
        self.output.lines.push_back(line);
        crate::tui::view::shows_output(self)
    }

    /// Puts events and relations in order, through their filters.
    pub(super) fn arrange(&mut self) {
        let mut lines = self.lines();
        self.sort_lines(&mut lines, |(line, _)| *line);
        lines.iter_mut().for_each(|(_, parts)| self.sort_lines(parts, |line| *line));
        let order: Vec<_> = lines.into_iter().flat_map(|(line, parts)| std::iter::once(line).chain(parts)).collect();
        if !order.contains(&self.events.cursor) {
            // Past the end is no event: where none matches, none is selected.
            self.events.select(order.first().copied().unwrap_or(Line::Event(EventIndex::MAX)));
        }
        self.events.order = order;
        let filter = &self.relations.filter;
        let line = |index| format!("{} {}", self.relation_id(index), self.relation_formula(index));
        let order: Vec<_> = (0..self.monitor.relations().len()).filter(|&index| filter.matches(&line(index))).collect();
        if !order.contains(&self.relations.selected) {
            self.relations.selected = order.first().copied().unwrap_or(0);
        }
        self.relations.order = order;
        self.compare();
    }

    /// Sums, or the parts of one.
    fn sort_lines<T>(&self, lines: &mut Vec<T>, line_of: impl Fn(&T) -> Line) {
        let Some(column) = self.events.sort.by else {
            if self.events.sort.inverted {
                lines.reverse();
            }
            return;
        };
        let ascending = self.events.sort.is_ascending();
        let mut keyed: Vec<_> = lines.drain(..).map(|line| (self.sort_key(column, line_of(&line)), line)).collect();
        keyed.sort_by(|(a, _), (b, _)| compare(a, b, ascending));
        lines.extend(keyed.into_iter().map(|(_, line)| line));
    }

    fn sort_key(&self, column: Column, line: Line) -> SortKey {
        let figures = self.line_figures(line);
        let shown = figures.shown(self.basis);
        let number = match column {
            Column::Event => return SortKey::Name(self.line_name(line)),
            Column::Mean => shown.map(|figure| figure.mean),
            Column::Error => shown.and_then(|figure| match figure.error {
                Error::Exact => Some(0.0),
                error => error.relative_to(figure.mean),
            }),
            Column::Variance => shown.and_then(|figure| figure.variance),
            Column::Run => figures.run,
            Column::Correction => figures.correction.part(),
        };
        SortKey::Number(number.filter(|number| !number.is_nan()))
    }
}

pub(super) enum SortKey {
    Name(String),
    Number(Option<f64>),
}

/// What has no number stands last, whatever the direction.
pub(super) fn compare(a: &SortKey, b: &SortKey, ascending: bool) -> Ordering {
    let directed = |order: Ordering| if ascending { order } else { order.reverse() };
    match (a, b) {
        (SortKey::Name(a), SortKey::Name(b)) => directed(a.cmp(b)),
        (SortKey::Number(Some(a)), SortKey::Number(Some(b))) => directed(a.total_cmp(b)),
        (SortKey::Number(Some(_)), SortKey::Number(None)) => Ordering::Less,
        (SortKey::Number(None), SortKey::Number(Some(_))) => Ordering::Greater,
        _ => Ordering::Equal,
    }
}

/// What keys do.
impl Model {
    fn key(&mut self, key: KeyEvent) -> Option<Command> {
        match self.over.clone() {
            Over::Nothing => self.screen_key(key),
            Over::Help(top) => self.help_key(key, top),
            Over::Filter { before } => {
                self.filter_key(key, before);
                None
            }
            Over::AskQuit { .. } => self.quit_key(key),
            Over::AskExport => self.export_key(key),
            Over::Jump { text } => self.jump_key(key, text),
        }
    }

    fn screen_key(&mut self, key: KeyEvent) -> Option<Command> {
        match self.options.keymap.find(self.screen, key) {
            Some(action) => self.act(action),
            None => {
                self.notice = Some(Notice::Failed(format!("no key {} here, ? for help", Key::from(key).name())));
                None
            }
        }
    }

    fn help_key(&mut self, key: KeyEvent, top: usize) -> Option<Command> {
        let page = page(self.size);
        let last = crate::tui::view::help_lines(self).saturating_sub(page);
        self.over = match self.options.keymap.find(Screen::Log, key) {
            Some(Action::Up) => Over::Help(top.saturating_sub(1)),
            Some(Action::Down) => Over::Help((top + 1).min(last)),
            Some(Action::PageUp | Action::HalfUp) => Over::Help(top.saturating_sub(page)),
            Some(Action::PageDown | Action::HalfDown) => Over::Help((top + page).min(last)),
            Some(Action::First) => Over::Help(0),
            Some(Action::Last) => Over::Help(last),
            Some(action @ (Action::Go(_) | Action::Redraw | Action::Suspend | Action::Theme)) => {
                self.over = Over::Nothing;
                return self.act(action);
            }
            _ => Over::Nothing,
        };
        None
    }

    fn quit_key(&mut self, key: KeyEvent) -> Option<Command> {
        match key.code {
            KeyCode::Char('k') => Some(Command::Kill),
            KeyCode::Char('d') => Some(Command::Detach),
            KeyCode::Esc | KeyCode::Char('c') if key.modifiers.is_empty() => {
                self.over = Over::Nothing;
                None
            }
            _ => None,
        }
    }

    /// Any other key than those of the forms goes back.
    fn export_key(&mut self, key: KeyEvent) -> Option<Command> {
        self.over = Over::Nothing;
        match key.code {
            KeyCode::Char('t') => Some(Command::Export(Format::Text)),
            KeyCode::Char('a') => Some(Command::Export(Format::Ansi)),
            KeyCode::Char('s') => Some(Command::Export(Format::Svg)),
            _ => None,
        }
    }

    /// Filters while it is typed.
    fn filter_key(&mut self, key: KeyEvent, before: String) {
        let mut text = self.filter().map_or_else(String::new, str::to_owned);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => {
                self.over = Over::Nothing;
                return;
            }
            KeyCode::Esc => {
                self.over = Over::Nothing;
                text = before;
            }
            KeyCode::Char('c') if control => {
                self.over = Over::Nothing;
                text = before;
            }
            KeyCode::Char('u') if control => text.clear(),
            KeyCode::Char('w') if control => {
                let end = text.trim_end().rfind(' ').map_or(0, |space| space + 1);
                text.truncate(end);
            }
            KeyCode::Backspace => {
                text.pop();
            }
            KeyCode::Char(c) if !control && text.chars().count() < MAX_FILTER => text.push(c),
            _ => {}
        }
        self.set_filter(text);
    }

    fn set_filter(&mut self, text: String) {
        if let (Screen::Profile, Some(profile)) = (self.screen, &mut self.profile) {
            profile.set_search(text);
            return;
        }
        let filter = Filter::new(text);
        match self.screen {
            Screen::Events => self.events.filter = filter,
            Screen::Relations => self.relations.filter = filter,
            Screen::Log => {
                self.log.filter = filter;
                (self.log.findings, self.log.output) = (Tail::Follow, Tail::Follow);
            }
            Screen::Compare => self.comparison.filter = filter,
            Screen::Detail | Screen::Profile | Screen::Groups => {}
        }
        self.arrange();
    }

    fn act(&mut self, action: Action) -> Option<Command> {
        match action {
            Action::Quit => return Some(Command::Quit),
            Action::Save if matches!(self.options.mode, Mode::Stacks { .. }) => {
                self.notice = Some(Notice::Failed("nothing was measured here: perfprop export writes stacks".into()));
            }
            Action::Save => return Some(Command::Save),
            Action::Pause
            | Action::StepBack
            | Action::StepForward
            | Action::Slower
            | Action::Faster
            | Action::Jump
            | Action::Mark
            | Action::NextMark => return self.wind(action),
            Action::Graph => self.graph = !self.graph,
            Action::Copy => return self.copied(),
            Action::Export => self.over = Over::AskExport,
            Action::Mouse => {
                self.mouse = !self.mouse;
                let words = if self.mouse { "the mouse is perfprop's" } else { "the mouse selects text" };
                self.notice = Some(Notice::Done(words.into()));
                return Some(Command::Mouse(self.mouse));
            }
            Action::Redraw => return Some(Command::Redraw),
            Action::Suspend => return Some(Command::Suspend),
            Action::Help => self.over = Over::Help(0),
            Action::Back => self.back(),
            Action::Go(Screen::Compare) if self.beside.is_none() => {
                self.notice = Some(Notice::Failed("only replay of two recordings compares".into()));
            }
            Action::Go(screen) if !self.screens().any(|other| other == screen) => {
                self.notice = Some(Notice::Failed("a file of stacks has the screens Profile and Log".into()));
            }
            Action::Go(screen) => self.screen = screen,
            Action::NextScreen => self.screen = neighbour(&self.screens().collect::<Vec<_>>(), self.screen, 1),
            Action::PreviousScreen => {
                self.screen = neighbour(&self.screens().rev().collect::<Vec<_>>(), self.screen, 1)
            }
            Action::Open => self.open(),
            Action::Filter | Action::Search => self.begin_filter(),
            Action::Unfold | Action::Fold | Action::Toggle | Action::UnfoldAll | Action::FoldAll
                if self.screen == Screen::Events =>
            {
                self.unfold(action)
            }
            Action::Listing
            | Action::Emphasis
            | Action::Zoom
            | Action::NextHit
            | Action::PreviousHit
            | Action::FindSame
            | Action::GoLeft
            | Action::GoRight
            | Action::Fold
            | Action::Unfold
            | Action::Toggle
            | Action::FoldAll
            | Action::UnfoldAll
            | Action::NextSampled
            | Action::PreviousSampled => self.steer_profile(action),
            Action::Freeze => self.freeze(),
            Action::Basis => {
                self.basis = self.basis.next();
                self.arrange();
            }
            Action::Measure => {
                self.measure = self.measure.next();
                self.arrange();
            }
            Action::Longer => self.window = (self.window + 1).min(WINDOWS.len() - 1),
            Action::Shorter => self.window = self.window.saturating_sub(1),
            Action::Theme => self.next_theme(),
            Action::Output => {
                self.log.pane = if self.log.pane == Pane::Findings { Pane::Output } else { Pane::Findings };
            }
            Action::NextColumn if self.screen == Screen::Compare => self.sort_comparison(1),
            Action::PreviousColumn if self.screen == Screen::Compare => self.sort_comparison(CompareColumn::ALL.len()),
            Action::NextColumn => self.sort_by_neighbour(1),
            Action::PreviousColumn => self.sort_by_neighbour(Column::SORTABLE.len()),
            Action::Invert if self.screen == Screen::Compare => {
                self.comparison.inverted = !self.comparison.inverted;
                self.compare();
            }
            Action::Invert => {
                self.events.sort.inverted = !self.events.sort.inverted;
                self.arrange();
            }
            Action::NextEvent => self.go(Step::By(1)),
            Action::PreviousEvent => self.go(Step::By(-1)),
            _ => self.go(Step::of(action, page(self.size))),
        }
        None
    }

    /// The selected event in detail; of two recordings, that of the first.
    fn open(&mut self) {
        if let (Screen::Events, Line::Sum(_)) = (self.screen, self.events.cursor) {
            return self.unfold(Action::Toggle);
        }
        if self.screen == Screen::Compare {
            match self.comparison.selected().map(|one| one.a) {
                Some(Some(event)) => self.events.select(Line::Event(event)),
                _ => {
                    self.notice = Some(Notice::Failed("the first recording has no such event".into()));
                    return;
                }
            }
        }
        self.screen = Screen::Detail;
    }

    /// One level a press.
    fn back(&mut self) {
        let height = profile_rows(self);
        if let (Screen::Profile, Some(profile)) = (self.screen, &mut self.profile)
            && profile.back(height)
        {
            return;
        }
        if self.filter().is_some_and(|filter| !filter.is_empty()) {
            self.set_filter(String::new());
        } else if self.screen == Screen::Log && self.log.pane == Pane::Output {
            self.log.pane = Pane::Findings;
        } else {
            self.screen = self.screens().next().unwrap_or_default();
        }
    }

    fn begin_filter(&mut self) {
        if let Some(filter) = self.filter() {
            self.over = Over::Filter { before: filter.to_owned() };
        }
    }

    fn freeze(&mut self) {
        self.motion = match self.motion {
            Motion::Moving => Motion::Frozen,
            Motion::Frozen => Motion::Moving,
        };
        self.follow();
    }

    fn next_theme(&mut self) {
        let names: Vec<_> = Theme::names().collect();
        let place = names.iter().position(|name| *name == self.theme.name());
        let next = names[place.map_or(0, |place| (place + 1) % names.len())];
        if let Some(theme) = Theme::built_in(next, self.options.depth) {
            self.theme = theme;
            self.notice = Some(Notice::Done(format!("theme {next}")));
        }
    }

    fn sort_by_neighbour(&mut self, step: usize) {
        let all: Vec<_> = std::iter::once(None).chain(Column::SORTABLE.map(Some)).collect();
        self.events.sort.by = neighbour(&all, self.events.sort.by, step);
        self.events.sort.inverted = false;
        self.arrange();
    }

    /// Moves in the list of the screen.
    fn go(&mut self, step: Step) {
        match (self.screen, self.log.pane) {
            (Screen::Events | Screen::Detail, _) => {
                move_in(&self.events.order, &mut self.events.cursor, step);
                self.events.select(self.events.cursor);
                self.share_event();
            }
            (Screen::Profile, _) => {
                let height = profile_rows(self);
                if let Some(profile) = &mut self.profile {
                    profile.step(step, height);
                }
            }
            (Screen::Relations, _) => move_in(&self.relations.order, &mut self.relations.selected, step),
            (Screen::Compare, _) => move_in(&self.comparison.order, &mut self.comparison.selected, step),
            (Screen::Groups, _) => self.group = step.from(self.group, self.monitor.header().groups.len()),
            (Screen::Log, Pane::Findings) => {
                self.log.findings = scrolled(self.log.findings, self.entries().len(), step)
            }
            (Screen::Log, Pane::Output) => self.log.output = scrolled(self.log.output, self.output_lines().len(), step),
        }
    }
}

/// What keys do to the profile.
impl Model {
    fn steer_profile(&mut self, action: Action) {
        let height = profile_rows(self);
        let Some(profile) = self.profile.as_mut().filter(|profile| !profile.is_empty()) else {
            self.notice = Some(Notice::Failed("there is no profile yet".into()));
            return;
        };
        if let Err(reason) = profile.act(action, height) {
            self.notice = Some(Notice::Failed(reason.into()));
        }
        if matches!(action, Action::NextSampled | Action::PreviousSampled) {
            self.follow_profile();
        }
    }

    /// The names on the path to what is selected, as folded stacks have them.
    fn profile_path(&self) -> Option<String> {
        let profile = self.profile.as_ref().filter(|profile| !profile.is_empty())?;
        let names: Vec<_> = profile.path().into_iter().map(|frame| profile.calls.label(frame).name.as_str()).collect();
        Some(names.join(";"))
    }
}

/// What keys do to a replay.
impl Model {
    fn wind(&mut self, action: Action) -> Option<Command> {
        let (now, interval) = (self.kept.now(), self.monitor.header().interval_ns);
        let Some(tape) = &mut self.tape else {
            self.notice = Some(Notice::Failed("only a replay can be wound".into()));
            return None;
        };
        match action {
            Action::Pause => tape.playing = !tape.playing,
            Action::Slower => tape.slower(),
            Action::Faster => tape.faster(),
            Action::StepBack => {
                tape.playing = false;
                // The interval that ended last is the one to leave.
                let last = self.monitor.now().0.saturating_sub(1) / interval.0.max(1);
                return Some(Command::Seek(WallNs(last * interval.0)));
            }
            Action::StepForward => {
                tape.playing = false;
                let next = self.monitor.now().0 / interval.0.max(1) + 1;
                return Some(Command::Seek(WallNs(next.saturating_mul(interval.0))));
            }
            Action::Jump => {
                self.over = Over::Jump { text: String::new() };
                return None;
            }
            Action::Mark => {
                let words = if tape.mark(now) { "marked" } else { "no longer marked" };
                self.notice = Some(Notice::Done(format!("{} {words}", short_clock(now))));
                return None;
            }
            Action::NextMark => match tape.next_mark(now) {
                Some(mark) => return Some(Command::Seek(mark)),
                None => {
                    self.notice = Some(Notice::Failed("no time is marked yet: b marks one".into()));
                    return None;
                }
            },
            _ => return None,
        }
        Some(Command::Play)
    }

    fn jump_key(&mut self, key: KeyEvent, mut text: String) -> Option<Command> {
        match key.code {
            KeyCode::Esc => self.over = Over::Nothing,
            KeyCode::Enter => {
                self.over = Over::Nothing;
                match parse_time(&text) {
                    Some(time) => return Some(Command::Seek(time)),
                    None => {
                        let words = format!("{} is no time: 83, 83.5 or 1:23", shown(&text));
                        self.notice = Some(Notice::Failed(words));
                    }
                }
            }
            KeyCode::Backspace => {
                text.pop();
                self.over = Over::Jump { text };
            }
            KeyCode::Char(c) if text.len() < 16 && !key.modifiers.contains(KeyModifiers::CONTROL) => {
                text.push(c);
                self.over = Over::Jump { text };
            }
            _ => {}
        }
        None
    }
}

/// What the mouse does, where it is ours.
impl Model {
    fn mouse(&mut self, kind: MouseEventKind, column: u16, row: u16) -> bool {
        match (&self.over, kind) {
            (Over::Nothing, MouseEventKind::ScrollUp) => self.go(Step::By(-3)),
            (Over::Nothing, MouseEventKind::ScrollDown) => self.go(Step::By(3)),
            (Over::Nothing, MouseEventKind::Down(MouseButton::Left)) => match target_at(self, column, row) {
                Some(target) => self.click(target),
                None => return false,
            },
            (Over::Help(_) | Over::AskExport, MouseEventKind::Down(_)) => self.over = Over::Nothing,
            _ => return false,
        }
        true
    }

    /// A click on what is selected already opens it.
    fn click(&mut self, target: Target) {
        match target {
            Target::Screen(screen) => self.screen = screen,
            Target::Compared(place) if self.comparison.selected == place => self.open(),
            Target::Compared(place) => self.comparison.selected = place,
            Target::Event(event) if self.events.cursor == Line::Event(event) => self.screen = Screen::Detail,
            Target::Event(event) => {
                self.events.select(Line::Event(event));
                self.share_event();
            }
            Target::Sum(place) if self.events.cursor == Line::Sum(place) => self.unfold(Action::Toggle),
            Target::Sum(place) => self.events.select(Line::Sum(place)),
            Target::Frame(node) => self.click_profile(|profile, height| profile.click(node, height)),
            Target::Function(frame) => self.click_profile(|profile, height| profile.click_function(frame, height)),
            Target::Group(group) => self.group = group,
            Target::Relation(relation) if self.relations.selected == relation => self.screen = Screen::Relations,
            Target::Relation(relation) => self.relations.selected = relation,
        }
    }

    /// In the overview a click opens the screen.
    fn click_profile(&mut self, click: impl FnOnce(&mut Profile, usize)) {
        let height = profile_rows(self);
        match &mut self.profile {
            Some(profile) if self.screen == Screen::Profile => click(profile, height),
            _ => self.screen = Screen::Profile,
        }
    }

    /// What is selected, in words: its name and its number.
    fn copied(&mut self) -> Option<Command> {
        let text = match self.screen {
            Screen::Events => self.event_in_words(self.events.cursor)?,
            Screen::Detail => self.event_in_words(Line::Event(self.events.selected))?,
            Screen::Relations => {
                let index = self.relations.selected;
                format!("{}: {}", self.relation_id(index), self.relation_formula(index))
            }
            Screen::Profile => self.profile_path()?,
            Screen::Groups => {
                let group = self.monitor.header().groups.get(self.group)?;
                let names: Vec<_> = group.members.iter().map(|&event| self.event_name(event)).collect();
                format!("{{{}}}", names.join(","))
            }
            Screen::Log => self.log_line()?,
            Screen::Compare => self.difference_in_words()?,
        };
        self.notice = Some(Notice::Done(format!("copied: {text}")));
        Some(Command::Copy(text))
    }

    fn event_in_words(&self, line: Line) -> Option<String> {
        self.monitor.header().events.get(self.events.selected)?;
        let name = self.line_name(line);
        let figure = self.line_figures(line).shown(self.basis);
        Some(figure.map_or_else(
            || name.clone(),
            |figure| {
                format!(
                    "{name} {}{} {}",
                    figure.mean,
                    self.measure.suffix(self.monitor.header()),
                    plus_minus(figure.error, figure.mean)
                )
            },
        ))
    }

    fn difference_in_words(&self) -> Option<String> {
        let one = self.comparison.selected()?;
        let number = |number: Option<Uncertain>| {
            number.map_or_else(|| MISSING.into(), |n| format!("{} {}", n.value, plus_minus(n.error, n.value)))
        };
        let (a, b) = (number(one.a_number), number(one.b_number));
        Some(format!("{} A {a} B {b} {}", shown(&one.name), one.difference.word()))
    }

    /// The line of the log at the bottom of the screen.
    fn log_line(&self) -> Option<String> {
        let at = |tail: Tail, count: usize| match tail {
            Tail::Follow => count.checked_sub(1),
            Tail::At(place) => Some(place.min(count.checked_sub(1)?)),
        };
        match self.log.pane {
            Pane::Findings => {
                let entries = self.entries();
                at(self.log.findings, entries.len()).map(|place| self.entry_text(entries[place]))
            }
            Pane::Output => {
                let lines = self.output_lines();
                at(self.log.output, lines.len()).map(|place| shown(&lines[place].text).into_owned())
            }
        }
    }
}

/// A way to move in a list.
#[derive(Clone, Copy, Debug)]
pub(in crate::tui) enum Step {
    By(isize),
    First,
    Last,
}

impl Step {
    fn of(action: Action, page: usize) -> Self {
        let page = isize::try_from(page).unwrap_or(10);
        match action {
            Action::Up => Self::By(-1),
            Action::Down => Self::By(1),
            Action::PageUp => Self::By(-page),
            Action::PageDown => Self::By(page),
            Action::HalfUp => Self::By(-(page / 2).max(1)),
            Action::HalfDown => Self::By((page / 2).max(1)),
            Action::First => Self::First,
            Action::Last => Self::Last,
            _ => Self::By(0),
        }
    }

    /// From `place` in a list of `count`, never past its ends.
    pub(super) fn from(self, place: usize, count: usize) -> usize {
        let last = count.saturating_sub(1);
        match self {
            Self::By(step) => place.saturating_add_signed(step).min(last),
            Self::First => 0,
            Self::Last => last,
        }
    }
}

fn move_in<T: Copy + PartialEq>(order: &[T], selected: &mut T, step: Step) {
    let place = order.iter().position(|index| index == selected).unwrap_or(0);
    if let Some(&index) = order.get(step.from(place, order.len())) {
        *selected = index;
    }
}

fn scrolled(tail: Tail, count: usize, step: Step) -> Tail {
    let last = count.saturating_sub(1);
    let place = match tail {
        Tail::Follow => last,
        Tail::At(place) => place.min(last),
    };
    match step.from(place, count) {
        place if place == last => Tail::Follow,
        place => Tail::At(place),
    }
}

pub(super) fn neighbour<T: Copy + PartialEq>(all: &[T], current: T, step: usize) -> T {
    let place = all.iter().position(|one| *one == current).unwrap_or(0);
    all[(place + step) % all.len()]
}
