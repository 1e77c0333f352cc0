//! Parses modifier letters into an event's exclude bits and scheduling, as perf 6.12 does.
//!
//! An event without modifiers leaves out only what guests do (`exclude_guest`), which is perf's
//! default. As in perf, letters other than `u` and `p` take that default back: `cycles:k` counts
//! the kernel of host and guests. A member's own `G` or `H` is kept when the group adds `p`.

use super::Modifiers;

/// The letters of one list of modifiers, each at most once (`p` up to three times).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Letters {
    user: bool,
    kernel: bool,
    hypervisor: bool,
    guest: bool,
    host: bool,
    non_idle: bool,
    precise: u8,
    precise_max: bool,
    sample_read: bool,
    pinned: bool,
    exclusive: bool,
    weak: bool,
    bpf: bool,
    retire_latency: bool,
}

/// Where all events are counted, whatever their own letters say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// In user space.
    User,
    /// In the kernel.
    Kernel,
}

impl Space {
    /// The letter of an event that is counted there only.
    pub fn letter(self) -> char {
        match self {
            Self::User => 'u',
            Self::Kernel => 'k',
        }
    }

    /// Leaves out everything else.
    pub fn apply(self, to: &mut Modifiers) {
        to.exclude_user = self == Self::Kernel;
        to.exclude_kernel = self == Self::User;
        to.exclude_hv = true;
    }
}

/// Why a list of modifier letters means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LettersError {
    /// A letter that is no modifier.
    Unknown(char),
    /// A letter other than `p` written twice.
    Twice(char),
    /// There are more than three `p`, in the event and its group together.
    TooPrecise,
    /// `W` on an event that isn't in braces.
    WeakWithoutBraces,
    /// `R`, a latency instead of a count.
    RetireLatency,
}

/// What an event is in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupRole {
    /// The first, which alone can be pinned or exclusive.
    Leader,
    /// Any other.
    Member,
}

impl Letters {
    /// Reads modifier letters in any order; `""` is none.
    ///
    /// # Errors
    /// Returns the first letter that is unknown or repeated.
    pub fn parse(text: &str) -> Result<Self, LettersError> {
        let mut letters = Self::default();
        for letter in text.chars() {
            letters.add(letter)?;
        }
        Ok(letters)
    }

    fn add(&mut self, letter: char) -> Result<(), LettersError> {
        let flag = match letter {
            'p' if self.precise == 3 => return Err(LettersError::TooPrecise),
            'p' => {
                self.precise += 1;
                return Ok(());
            }
            'u' => &mut self.user,
            'k' => &mut self.kernel,
            'h' => &mut self.hypervisor,
            'G' => &mut self.guest,
            'H' => &mut self.host,
            'I' => &mut self.non_idle,
            'P' => &mut self.precise_max,
            'S' => &mut self.sample_read,
            'D' => &mut self.pinned,
            'e' => &mut self.exclusive,
            'W' => &mut self.weak,
            'b' => &mut self.bpf,
            'R' => &mut self.retire_latency,
            unknown => return Err(LettersError::Unknown(unknown)),
        };
        if std::mem::replace(flag, true) { Err(LettersError::Twice(letter)) } else { Ok(()) }
    }

    /// Whether the text was empty.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// `W`: count the group together if that can be, else singly.
    pub fn is_weak(&self) -> bool {
        self.weak
    }

    /// Gives `modifiers`, which are those of an event without letters, the letters of the event.
    ///
    /// # Errors
    /// `W`, which is for groups, and `R`, which asks for no count.
    pub fn apply_to_event(&self, modifiers: &mut Modifiers) -> Result<(), LettersError> {
        if self.weak {
            return Err(LettersError::WeakWithoutBraces);
        }
        if self.is_empty() {
            return Ok(());
        }
        *modifiers = Modifiers::default();
        self.exclude(modifiers, &Self::default());
        self.schedule(modifiers, GroupRole::Leader)
    }

    /// Adds the letters behind the braces to a member that has its own letters already.
    ///
    /// # Errors
    /// More than three `p` in all, and `R`, which asks for no count.
    pub fn apply_to_member(&self, modifiers: &mut Modifiers, own: &Self, role: GroupRole) -> Result<(), LettersError> {
        self.exclude(modifiers, own);
        self.schedule(modifiers, role)
    }

    /// Whether `G` or `H` is among the letters.
    fn chooses_guest(&self) -> bool {
        self.guest || self.host
    }

    /// What is excluded, for an event that may have letters of its own.
    fn exclude(&self, to: &mut Modifiers, own: &Self) {
        let guest_chosen = own.chooses_guest();
        if self.precise > 0 && !guest_chosen {
            to.exclude_guest = true;
        }
        if self.user || self.kernel || self.hypervisor {
            // The first of u, k, h excludes all three; each takes its own back.
            let fresh = !(to.exclude_user || to.exclude_kernel || to.exclude_hv);
            if self.user && !guest_chosen {
                to.exclude_guest = true;
            }
            to.exclude_user = (to.exclude_user || fresh) && !self.user;
            to.exclude_kernel = (to.exclude_kernel || fresh) && !self.kernel;
            to.exclude_hv = (to.exclude_hv || fresh) && !self.hypervisor;
        }
        if self.chooses_guest() {
            to.exclude_guest = (to.exclude_guest || !guest_chosen) && !self.guest;
            to.exclude_host = (to.exclude_host || !guest_chosen) && !self.host;
        }
    }

    fn schedule(&self, to: &mut Modifiers, role: GroupRole) -> Result<(), LettersError> {
        if self.retire_latency {
            return Err(LettersError::RetireLatency);
        }
        to.precise += self.precise;
        if to.precise > 3 {
            return Err(LettersError::TooPrecise);
        }
        to.precise_max |= self.precise_max;
        to.exclude_idle |= self.non_idle;
        to.sample_read |= self.sample_read;
        to.pinned |= self.pinned && role == GroupRole::Leader;
        to.exclusive |= self.exclusive && role == GroupRole::Leader;
        // `b` asks perf to share counters through BPF. The count is the same, so nothing is left
        // to do.
        Ok(())
    }
}

impl Modifiers {
    /// What perf asks for when an event has no modifiers: all but guests.
    pub fn unmodified() -> Self {
        Self { exclude_guest: true, ..Self::default() }
    }
}

impl std::fmt::Display for LettersError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown(letter) => write!(
                f,
                "unknown modifier '{}'; modifiers are u k h (where), G H (guest, host), I (not idle), \
                 p P (precise), S (sample read), D (pinned), e (exclusive), W (weak group), b (BPF)",
                letter.escape_default()
            ),
            Self::Twice(letter) => write!(f, "modifier '{letter}' written twice"),
            Self::TooPrecise => write!(f, "more than three 'p' (event and group together)"),
            Self::WeakWithoutBraces => write!(f, "modifier 'W' is for groups: {{a,b}}:W"),
            Self::RetireLatency => write!(f, "modifier 'R' asks for a latency, not for a count"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail")]
    use super::*;
    use proptest::prelude::*;

    /// The exclude bits as `ukhHGI` in capitals where excluded, then p, D, e: the attributes that
    /// `perf stat -vv` prints.
    fn shown(m: &Modifiers) -> String {
        let excluded =
            [m.exclude_user, m.exclude_kernel, m.exclude_hv, m.exclude_host, m.exclude_guest, m.exclude_idle];
        let mut text: String = "ukhHGI".chars().zip(excluded).filter(|(_, on)| *on).map(|(c, _)| c).collect();
        text.push_str(&"p".repeat(usize::from(m.precise)));
        text.push_str(if m.pinned { "D" } else { "" });
        text.push_str(if m.exclusive { "e" } else { "" });
        text
    }

    fn event(letters: &str) -> Modifiers {
        let mut modifiers = Modifiers::unmodified();
        Letters::parse(letters).unwrap().apply_to_event(&mut modifiers).unwrap();
        modifiers
    }

    fn member(own: &str, group: &str, role: GroupRole) -> Result<String, LettersError> {
        let mut modifiers = event(own);
        Letters::parse(group)?.apply_to_member(&mut modifiers, &Letters::parse(own)?, role)?;
        Ok(shown(&modifiers))
    }

    #[test]
    fn an_event_excludes_what_perf_excludes() {
        for (letters, excluded) in [
            ("", "G"),
            ("u", "khG"),
            ("k", "uh"),
            ("h", "uk"),
            ("uk", "hG"),
            ("ukh", "G"),
            ("G", "H"),
            ("H", "G"),
            ("GH", ""),
            ("uG", "khH"),
            ("kH", "uhG"),
            ("I", "I"),
            ("kIG", "uhHI"),
            ("p", "Gp"),
            ("kppp", "uhGppp"),
            ("pG", "Hp"),
            ("D", "D"),
            ("uDp", "khGpD"),
            ("uep", "khGpe"),
            ("S", ""),
            ("P", ""),
            ("b", ""),
        ] {
            assert_eq!(shown(&event(letters)), excluded, ":{letters}");
        }
    }

    #[test]
    fn a_group_adds_to_what_its_members_have() {
        let (leader, other) = (GroupRole::Leader, GroupRole::Member);
        for (own, group, role, excluded) in [
            ("", "k", leader, "uhG"),
            ("k", "u", leader, "hG"),
            ("ukh", "k", leader, "uhG"),
            ("", "G", leader, "H"),
            ("G", "H", leader, ""),
            ("H", "G", leader, ""),
            ("G", "u", leader, "khH"),
            ("u", "p", leader, "khGp"),
            ("kp", "p", other, "uhGpp"),
            ("G", "p", leader, "Hp"),
            ("", "D", leader, "GD"),
            ("", "D", other, "G"),
            ("", "e", other, "G"),
            ("", "W", leader, "G"),
            ("", "", leader, "G"),
        ] {
            assert_eq!(member(own, group, role), Ok(excluded.to_owned()), "{{:{own}}}:{group}");
        }
    }

    #[test]
    fn letters_that_mean_nothing_are_named() {
        assert_eq!(Letters::parse("uz"), Err(LettersError::Unknown('z')));
        assert_eq!(Letters::parse("uku"), Err(LettersError::Twice('u')));
        assert_eq!(Letters::parse("pppp"), Err(LettersError::TooPrecise));
        assert_eq!(member("pp", "pp", GroupRole::Leader), Err(LettersError::TooPrecise));
        let mut modifiers = Modifiers::unmodified();
        let apply = |text, to: &mut Modifiers| Letters::parse(text).unwrap().apply_to_event(to);
        assert_eq!(apply("W", &mut modifiers), Err(LettersError::WeakWithoutBraces));
        assert_eq!(apply("R", &mut modifiers), Err(LettersError::RetireLatency));
    }

    proptest! {
        #[test]
        fn the_order_of_letters_means_nothing(letters in "[ukhGHIpPSDeb]{0,8}") {
            let reversed: String = letters.chars().rev().collect();
            match (Letters::parse(&letters), Letters::parse(&reversed)) {
                (Ok(one), Ok(other)) => prop_assert_eq!(one, other),
                (one, other) => prop_assert!(one.is_err() && other.is_err()),
            }
        }

        #[test]
        fn something_is_always_counted(letters in "[ukhGHIpDe]{0,6}", group in "[ukhGHIpDe]{0,6}") {
            let (Ok(own), Ok(all)) = (Letters::parse(&letters), Letters::parse(&group)) else { return Ok(()) };
            let mut modifiers = Modifiers::unmodified();
            own.apply_to_event(&mut modifiers).unwrap();
            if all.apply_to_member(&mut modifiers, &own, GroupRole::Leader).is_ok() {
                prop_assert!(!(modifiers.exclude_user && modifiers.exclude_kernel && modifiers.exclude_hv));
                prop_assert!(!(modifiers.exclude_host && modifiers.exclude_guest));
            }
        }
    }
}
