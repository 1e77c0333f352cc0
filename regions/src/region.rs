//! Names parts of a program, and closes them when they go out of scope.

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::layout::COUNTERS;
use crate::table::{Table, generation, table};
use crate::thread::{self, Call, Entered, Entry, Refusal};
use crate::told::tell_once;

/// A part of a program that is entered again and again, by a name that is known when the program is written.
///
/// ```
/// use perfprop_regions::Region;
/// static LIKELIHOOD: Region = Region::new("likelihood");
/// let _open = LIKELIHOOD.enter();
/// ```
#[derive(Debug)]
pub struct Region {
    pub(crate) name: &'static str,
    /// The name's number, and above it one more than the generation of the table that gave it; 0 for none.
    number: AtomicU64,
}

/// A region of this name is open on this thread: it goes on, and nothing else was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlreadyOpen {
    name: String,
}

impl AlreadyOpen {
    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for AlreadyOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "region '{}' is already open on this thread", self.name.escape_debug())
    }
}

impl std::error::Error for AlreadyOpen {}

/// An open region, which is closed when this goes out of scope, also by a panic.
///
/// It stays on its thread. A future that holds one over an await is therefore not `Send`, and an executor of several threads
/// doesn't take it; [`Region::instrument`] is for that:
///
/// ```compile_fail,E0277
/// use perfprop_regions::region;
/// fn spawn(_: impl Future + Send) {}
/// spawn(async {
///     let _open = region("held");
///     std::future::ready(()).await;
/// });
/// ```
///
/// An executor of one thread takes it: other tasks then run within the region, and find its name taken. That is said on
/// standard error. Clippy finds it before, where `clippy.toml` has
/// `await-holding-invalid-types = ["perfprop_regions::Guard"]`.
#[derive(Debug)]
#[must_use = "the region is closed where this goes out of scope: bind it to a name such as _open"]
pub struct Guard {
    /// `None` where nothing is recorded, or one of the name was open.
    entered: Option<Entered>,
    /// It is closed on the thread that opened it.
    _thread: PhantomData<*const ()>,
}

impl Guard {
    fn new(entered: Option<Entered>) -> Self {
        Self { entered, _thread: PhantomData }
    }

    /// Adds to a counter of the program in this region.
    pub fn count(&self, counter: Counter, by: u64) {
        if let (Some(entered), Some(place)) = (self.entered, counter.0) {
            thread::add(entered, place, by);
        }
    }
}

impl Drop for Guard {
    #[inline]
    fn drop(&mut self) {
        if let Some(entered) = self.entered {
            thread::leave(entered);
        }
    }
}

impl Region {
    /// A region of this name.
    pub const fn new(name: &'static str) -> Self {
        Self { name, number: AtomicU64::new(0) }
    }

    #[inline]
    pub(crate) fn number(&self, table: &Table) -> u32 {
        let (known, generation) = (self.number.load(Ordering::Relaxed), u64::from(generation()) + 1);
        if known >> 32 == generation {
            return known as u32;
        }
        // In a signal handler that can't have it, the call is lost in any case.
        let Some(number) = thread::apart(|| table.name(self.name)) else { return 0 };
        self.number.store(generation << 32 | u64::from(number), Ordering::Relaxed);
        number
    }

    /// Opens the region. Where one of its name is open on this thread, that is said on standard error the first time, and
    /// the guard does nothing.
    #[inline]
    pub fn enter(&self) -> Guard {
        self.open(Call::Plain)
    }

    /// Opens the region for a part of a program that records operations, which are run backwards later
    /// ([`Region::reverse`]): the forward pass of automatic differentiation.
    pub fn enter_recorded(&self) -> Guard {
        self.open(Call::Recorded)
    }

    #[inline]
    fn open(&self, call: Call<'_>) -> Guard {
        let entered = thread::enter(|table| self.number(table), call);
        if entered == Err(Refusal::AlreadyOpen) {
            complain(self.name);
        }
        Guard::new(entered.ok())
    }

    /// Opens the region.
    ///
    /// # Errors
    /// Returns [`AlreadyOpen`] where one of its name is open on this thread.
    pub fn try_enter(&self) -> Result<Guard, AlreadyOpen> {
        given(thread::enter(|table| self.number(table), Call::Plain), self.name)
    }

    /// Opens the region, or counts one more call of it where it is open: for functions that call themselves. The time is
    /// that of the outermost call.
    pub fn enter_recursive(&self) -> Guard {
        Guard::new(thread::enter(|table| self.number(table), Call::Recursive).ok())
    }

    /// Counts one more call where it is open.
    pub(crate) fn count_again(&self) {
        if let Some(table) = table() {
            thread::count_again(self.number(table));
        }
    }

    /// Counts a run backwards of what was recorded in this region, until the value goes out of scope: the time is added to
    /// the region's reverse time.
    pub fn reverse(&self) -> Reverse<'_> {
        Reverse { region: self, start: thread::begin_reverse(), _thread: PhantomData }
    }
}

/// A run backwards through a region.
#[derive(Debug)]
#[must_use = "the run ends where this goes out of scope: bind it to a name such as _run"]
pub struct Reverse<'a> {
    region: &'a Region,
    start: Option<u64>,
    _thread: PhantomData<*const ()>,
}

impl Drop for Reverse<'_> {
    fn drop(&mut self) {
        if let Some(start) = self.start {
            thread::end_reverse(|table| self.region.number(table), start);
        }
    }
}

/// Opens a region by a name that is known only when the program runs; [`Region`] is faster. Where one of the name is open
/// on this thread, that is said on standard error the first time, and the guard does nothing.
pub fn region(name: &str) -> Guard {
    Guard::new(enter_or_complain(name, Call::Plain, Entry::Named))
}

/// Opens a region.
///
/// # Errors
/// Returns [`AlreadyOpen`] where one of its name is open on this thread.
pub fn try_region(name: &str) -> Result<Guard, AlreadyOpen> {
    given(thread::enter_named(name, Call::Plain, Entry::Named), name)
}

/// Enters a region, or says that one of its name is open.
pub(crate) fn enter_or_complain(name: &str, call: Call<'_>, entry: Entry) -> Option<Entered> {
    let entered = thread::enter_named(name, call, entry);
    if entered == Err(Refusal::AlreadyOpen) {
        complain(name);
    }
    entered.ok()
}

fn given(entered: Result<Entered, Refusal>, name: &str) -> Result<Guard, AlreadyOpen> {
    match entered {
        Err(Refusal::AlreadyOpen) => Err(AlreadyOpen { name: name.to_owned() }),
        entered => Ok(Guard::new(entered.ok())),
    }
}

/// Counts a call that was refused, as its name was open, and says it once in a process.
#[cold]
#[inline(never)]
pub(crate) fn complain(name: &str) {
    thread::lose_refused();
    static ONCE: AtomicBool = AtomicBool::new(false);
    let name = name.escape_debug();
    let rest = "it goes on, and this call isn't counted (told once)";
    tell_once(&ONCE, format_args!("region '{name}' is already open on this thread; {rest}"));
}

/// Enters a region, or counts one more call of it where it is open.
pub(crate) fn enter_recursive(name: &str, entry: Entry) -> Option<Entered> {
    thread::enter_named(name, Call::Recursive, entry).ok()
}

/// Something that a program counts itself in its regions, such as operations recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter(pub(crate) Option<usize>);

/// The counter of this name. A program has room for four; what more there are count nothing.
pub fn counter(name: &str) -> Counter {
    let Some(table) = table() else { return Counter(None) };
    let Some(number) = thread::apart(|| table.name(name)) else { return Counter(None) };
    let taken = |place: &usize| {
        let of_place = &table.memory.header().counter_names[*place];
        let now = of_place.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
        now.is_ok() || now == Err(number)
    };
    Counter((0..COUNTERS).find(taken))
}

/// Begins a phase of the program, such as a warm-up: regions that are entered from now on, on all threads, are told from
/// those before. An empty name ends it.
pub fn phase(name: &str) {
    if let Some(table) = table() {
        let number = if name.is_empty() { Some(0) } else { thread::apart(|| table.name(name)) };
        if let Some(number) = number {
            table.memory.header().phase.store(number, Ordering::Relaxed);
        }
    }
}

/// Begins or ends to record regions for the program itself; perfprop may record them all the same.
pub fn record(on: bool) {
    if let Some(table) = table() {
        table.record(on);
    }
}
