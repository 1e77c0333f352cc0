//! Reads the list of an `-e` option into groups of events, with everything that is wrong with it.

use std::cell::OnceCell;

use super::error::{EventError, EventErrorCause, EventOption, Problem};
use super::modifiers::{GroupRole, Letters};
use super::resolve::{ResolvedMember, with_letters};
use super::syntax::{self, Item, Spec};
use super::{Event, Group, GroupBinding, Resolver, catalog};

/// The most events that one list can stand for, patterns included.
const MOST_EVENTS: usize = 1 << 16;

/// How many wrong names get suggestions; each is compared with every name of the machine.
const MOST_SUGGESTIONS: usize = 20;

impl Resolver {
    /// Reads the text of one `-e` option: `a,b:u,{c,d}:k`.
    ///
    /// The groups are in the order written, single events as groups of one ([`GroupBinding::Free`]).
    /// A pattern gives one group for each event that it matches, in order of name.
    ///
    /// # Errors
    /// Returns a syntax error, or every event that is wrong.
    pub fn parse(&self, text: &str) -> Result<Vec<Group>, EventError> {
        let items = syntax::parse(text).map_err(|error| EventError {
            option: EventOption::Event,
            problems: vec![Problem {
                position: text[..floor(text, error.at)].matches(',').count() + 1,
                text: text.to_owned(),
                cause: EventErrorCause::Syntax { at: error.at, expected: error.expected },
            }],
        })?;
        let mut list = EventList {
            resolver: self,
            groups: Vec::new(),
            problems: Vec::new(),
            position: 0,
            events: 0,
            names: OnceCell::new(),
        };
        for item in &items {
            list.add(item);
        }
        for event in list.groups.iter_mut().flat_map(|group| &mut group.events) {
            *event = self.confined(event.clone());
        }
        if list.problems.is_empty() {
            Ok(list.groups)
        } else {
            Err(EventError { option: EventOption::Event, problems: list.problems })
        }
    }
}

/// The list that is being read.
struct EventList<'r> {
    resolver: &'r Resolver,
    groups: Vec<Group>,
    problems: Vec<Problem>,
    position: usize,
    events: usize,
    /// What the machine has, read when the first name is wrong.
    names: OnceCell<Vec<String>>,
}

impl EventList<'_> {
    fn add(&mut self, item: &Item<'_>) {
        match item {
            Item::Single(spec) => {
                let members = self.members(spec);
                let single = |member: ResolvedMember| Group {
                    name: None,
                    events: vec![member.event],
                    binding: GroupBinding::Free,
                };
                self.groups.extend(members.into_iter().map(single));
            }
            Item::Group { name, events, modifiers } => self.add_group(*name, events, modifiers),
        }
    }

    fn add_group(&mut self, name: Option<&str>, specs: &[Spec<'_>], modifiers: &str) {
        let first = self.position + 1;
        let mut members: Vec<ResolvedMember> = Vec::new();
        for spec in specs {
            members.extend(self.members(spec));
        }
        let applied = Letters::parse(modifiers).and_then(|letters| {
            for (index, member) in members.iter_mut().enumerate() {
                let role = if index == 0 { GroupRole::Leader } else { GroupRole::Member };
                letters.apply_to_member(&mut member.event.modifiers, &member.own, role)?;
            }
            Ok(letters)
        });
        match applied {
            Ok(letters) => {
                for member in &mut members {
                    member.event.name = with_group_letters(&member.event.name, modifiers);
                }
                let binding = if letters.is_weak() { GroupBinding::Weak } else { GroupBinding::Braces };
                self.groups.extend(by_pmu(members).into_iter().map(|events| Group {
                    name: name.map(String::from),
                    events,
                    binding,
                }));
            }
            Err(error) => self.problem(first, &format!("{{...}}:{modifiers}"), EventErrorCause::Letters(error)),
        }
    }

    fn members(&mut self, spec: &Spec<'_>) -> Vec<ResolvedMember> {
        self.position += 1;
        if self.events > MOST_EVENTS {
            return Vec::new();
        }
        match self.resolver.spec(spec) {
            Ok(members) => {
                self.events += members.len();
                if self.events > MOST_EVENTS {
                    self.problem(self.position, spec.text, EventErrorCause::TooMany { most: MOST_EVENTS });
                }
                members
            }
            Err(cause) => {
                self.problem(self.position, spec.text, cause);
                Vec::new()
            }
        }
    }

    fn problem(&mut self, position: usize, text: &str, mut cause: EventErrorCause) {
        if let EventErrorCause::Unknown { name, similar, pattern, list } = &mut cause
            && self.problems.len() < MOST_SUGGESTIONS
        {
            let names = self.names.get_or_init(|| catalog::names(self.resolver));
            *similar = catalog::nearest(name, names);
            if self.resolver.machine().is_emulated() {
                *list = "perfprop list --source emulate";
            }
            *pattern = catalog::pattern_for(similar.first().unwrap_or(name), names);
        }
        self.problems.push(Problem { position, text: text.to_owned(), cause });
    }
}

/// A group on a hybrid machine is one group for each kind of core, and one of several units shown apart is one for
/// each unit: the kernel takes no group over two hardware PMUs. Events that run anywhere stay in the first.
fn by_pmu(members: Vec<ResolvedMember>) -> Vec<Vec<Event>> {
    let mut pmus: Vec<String> = Vec::new();
    for pmu in members.iter().filter_map(|member| member.apart.as_ref()) {
        if !pmus.contains(pmu) {
            pmus.push(pmu.clone());
        }
    }
    let mut groups: Vec<Vec<Event>> = vec![Vec::new(); pmus.len().max(1)];
    for member in members {
        let index = member.apart.as_ref().and_then(|pmu| pmus.iter().position(|known| known == pmu));
        groups[index.unwrap_or(0)].push(member.event);
    }
    groups.retain(|events| !events.is_empty());
    groups
}

/// The name of a member, which says what its group's modifiers made of it: `W` is about the group.
fn with_group_letters(name: &str, letters: &str) -> String {
    let letters: String = letters.chars().filter(|&letter| letter != 'W').collect();
    with_letters(name, &letters)
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}
