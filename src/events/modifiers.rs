//! Modifier letters in, the exclude bits and scheduling of an event out, as perf 6.12 does it.
//!
//! An event without modifiers leaves out only what guests do (`exclude_guest`), which is perf's
//! default. As in perf, letters other than `u` and `p` take that default back: `cycles:k` counts
//! the kernel of host and guests.

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

/// Why a list of modifier letters means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LettersError {
    /// A letter that is no modifier.
    Unknown(char),
    /// A letter other than `p` written twice.
    Twice(char),
    /// More than three `p`, in the event and its group together.
    TooPrecise,
    /// `W` on an event that isn't in braces.
    WeakWithoutBraces,
    /// `R`, a latency instead of a count.
    RetireLatency,
}

impl Letters {
    /// Reads modifier letters in any order; `""` is none.
    ///
    /// # Errors
    /// The first letter that is unknown or repeated.
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
        self.exclude(modifiers, false);
        self.schedule(modifiers, true)
    }

    /// Adds the letters behind the braces to a member that has its own letters already.
    ///
    /// `guest_chosen` says that the member itself had `G` or `H`; only a `leader` can be pinned
    /// or exclusive.
    ///
    /// # Errors
    /// More than three `p` in all, and `R`, which asks for no count.
    pub fn apply_to_member(
        &self,
        modifiers: &mut Modifiers,
        guest_chosen: bool,
        leader: bool,
    ) -> Result<(), LettersError> {
        self.exclude(modifiers, guest_chosen);
        self.schedule(modifiers, leader)
    }

    /// Whether `G` or `H` is among the letters.
    pub fn chooses_guest(&self) -> bool {
        self.guest || self.host
    }

    fn exclude(&self, to: &mut Modifiers, guest_chosen: bool) {
        if self.precise > 0 {
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

    fn schedule(&self, to: &mut Modifiers, leader: bool) -> Result<(), LettersError> {
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
        to.pinned |= self.pinned && leader;
        to.exclusive |= self.exclusive && leader;
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
