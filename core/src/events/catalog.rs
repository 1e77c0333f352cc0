//! Lists every event that a machine can name, for `perfprop list`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, mpsc};
use std::thread;

use serde::Serialize;

use super::machine::Machine;
use super::pmu::Pmu;
use super::resolve::Resolver;
use super::symbols::{self, Symbol, SymbolRow};
use super::table_event::TableEvent;
use super::{Event, EventKind, emulate, presets, tracepoints};
use crate::names;
use crate::names::glob;

/// An event that can be written after `-e`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CatalogEntry {
    /// The name to write; libpfm's events may need one of the `umasks` behind it.
    pub name: String,
    /// Other names of the same event.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Which part of the machine counts it.
    pub kind: EventKind,
    /// The table that the entry comes from.
    pub source: Source,
    /// The PMU that has it, where one is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pmu: Option<String>,
    /// What it counts; empty where nobody says.
    pub description: String,
    /// What can follow the name of a libpfm event, behind a colon.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub umasks: Vec<EventPart>,
}

/// A part of an event that can be counted alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EventPart {
    /// The name behind the event's colon.
    pub name: String,
    /// What the part counts, in words.
    pub description: String,
}

/// The table that an entry comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// perfprop's own table of presets.
    Preset,
    /// perf's built-in names.
    Perf,
    /// A PMU's folder in sysfs.
    Sysfs,
    /// libpfm's tables.
    Libpfm,
    /// The vendor's tables, from a folder.
    Tables,
    /// Tracepoints in tracefs.
    Tracefs,
    /// The emulated PMU.
    Model,
}

impl CatalogEntry {
    fn new(name: impl Into<String>, kind: EventKind, source: Source) -> Self {
        Self {
            name: name.into(),
            aliases: Vec::new(),
            kind,
            source,
            pmu: None,
            description: String::new(),
            umasks: Vec::new(),
        }
    }

    /// Every way to write the event: name, aliases, and the name with each of its umasks.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let narrow = self.umasks.iter().map(|part| format!("{}:{}", self.name, part.name));
        let aliases = self.aliases.iter().cloned();
        std::iter::once(self.name.clone()).chain(aliases).chain(narrow)
    }

    /// A text for `-e` that means this event, with the first umask where there are some.
    fn example(&self) -> String {
        match (self.source, &self.pmu, self.umasks.first()) {
            (Source::Libpfm, Some(pmu), Some(part)) => format!("{pmu}::{}:{}", self.name, part.name),
            (Source::Libpfm, Some(pmu), None) => format!("{pmu}::{}", self.name),
            _ => self.name.clone(),
        }
    }
}

/// Every event of the resolver's machine: presets, software, hardware and cache events, PMUs of
/// sysfs, the vendor's tables where it knows some, tracepoints, libpfm's tables. The two slow parts,
/// tracefs and libpfm, are read by threads meanwhile.
pub fn catalog(resolver: &Resolver) -> Box<dyn Iterator<Item = CatalogEntry> + '_> {
    if resolver.machine().is_emulated() { Box::new(model_entries()) } else { Box::new(real_entries(resolver)) }
}

/// What the emulated PMU counts: its costs, and the names that mean sums of them.
fn model_entries() -> impl Iterator<Item = CatalogEntry> {
    let entry = |name: &str| CatalogEntry::new(name, EventKind::Modelled, Source::Model);
    let costs = emulate::costs().iter();
    let costs = costs.map(move |cost| CatalogEntry { description: cost.description.clone(), ..entry(&cost.name) });
    let sums = emulate::rows().iter().filter(|row| row.is_counted());
    costs.chain(sums.map(move |row| CatalogEntry {
        aliases: row.names[1..].to_vec(),
        description: row.formula(),
        ..entry(&row.names[0])
    }))
}

fn real_entries(resolver: &Resolver) -> impl Iterator<Item = CatalogEntry> + use<'_> {
    let machine = resolver.machine().clone();
    let libpfm = meanwhile(move || libpfm_entries(&machine));
    let machine = resolver.machine().clone();
    let traced = meanwhile(move || tracepoints::names(&machine).collect::<Vec<_>>());
    preset_entries(resolver)
        .chain(symbols::ROWS.iter().map(CatalogEntry::from))
        .chain(symbols::caches().map(cache_entry))
        .chain(resolver.pmus().iter().cloned().flat_map(sysfs_entries))
        .chain(resolver.tables().events().iter().map(table_entry))
        .chain(traced.map(|name| CatalogEntry::new(name, EventKind::Tracepoint, Source::Tracefs)))
        // The slowest comes last.
        .chain(libpfm)
}

/// Number of entries that a thread sends at a time.
const HANDFUL: usize = 64;

/// What `read` gives, read by a thread from now on; by this one where there can be no other.
fn meanwhile<R>(read: impl Fn() -> R + Send + Sync + 'static) -> impl Iterator<Item = R::Item>
where
    R: IntoIterator,
    R::Item: Send + 'static,
{
    let read = Arc::new(read);
    let again = Arc::clone(&read);
    let (sender, handfuls) = mpsc::channel::<Vec<R::Item>>();
    let work = move || {
        let mut items = read().into_iter();
        while let handful = items.by_ref().take(HANDFUL).collect::<Vec<_>>()
            && !handful.is_empty()
            && sender.send(handful).is_ok()
        {}
    };
    let thread = thread::Builder::new().name("perfprop-catalog".to_owned()).spawn(work);
    let here = thread.is_err().then(|| again()).into_iter().flatten();
    handfuls.into_iter().flatten().chain(here)
}

fn table_entry(event: &TableEvent) -> CatalogEntry {
    let note = if event.deprecated { "[deprecated] " } else { "" };
    CatalogEntry {
        pmu: event.pmu.clone(),
        description: format!("{note}{}", event.description),
        ..CatalogEntry::new(&event.name, EventKind::Pmu, Source::Tables)
    }
}

fn preset_entries(resolver: &Resolver) -> impl Iterator<Item = CatalogEntry> + use<'_> {
    presets::all().iter().map(move |preset| {
        let event = resolver.built_in(&preset.name);
        let mut entry = CatalogEntry::new(&preset.name, EventKind::Hardware, Source::Preset);
        if let Some(event) = event {
            entry.kind = event.kind;
            entry.aliases.extend(event.encoding.absent.is_none().then_some(event.canonical));
        }
        CatalogEntry { description: preset.description.clone(), ..entry }
    })
}

impl From<&SymbolRow> for CatalogEntry {
    fn from(row: &SymbolRow) -> Self {
        let symbol = Symbol::from(row);
        Self {
            aliases: row.names[1..].iter().map(|name| (*name).to_owned()).collect(),
            description: row.description.to_owned(),
            ..Self::new(symbol.canonical, symbol.kind, Source::Perf)
        }
    }
}

fn cache_entry(symbol: Symbol) -> CatalogEntry {
    CatalogEntry::new(symbol.canonical, symbol.kind, Source::Perf)
}

fn sysfs_entries(pmu: Pmu) -> impl Iterator<Item = CatalogEntry> {
    let events = pmu.events().into_iter();
    events.map(move |event| CatalogEntry {
        description: pmu.event_terms(&event).unwrap_or_default(),
        pmu: Some(pmu.name.clone()),
        aliases: vec![event.clone()],
        ..CatalogEntry::new(format!("{}/{event}/", pmu.name), EventKind::Pmu, Source::Sysfs)
    })
}

#[cfg(feature = "pfm")]
fn libpfm_entries(machine: &Machine) -> impl Iterator<Item = CatalogEntry> + use<> {
    let pmus = if machine.has_libpfm() { super::pfm::pmus() } else { Vec::new() };
    pmus.into_iter().flat_map(|pmu| super::pfm::events(&pmu).map(move |event| libpfm_entry(&pmu.name, event)))
}

#[cfg(feature = "pfm")]
fn libpfm_entry(pmu: &str, event: super::pfm::PfmEvent) -> CatalogEntry {
    let part = |umask: super::pfm::Umask| EventPart { name: umask.name, description: umask.description };
    CatalogEntry {
        pmu: Some(pmu.to_owned()),
        description: event.description,
        umasks: event.umasks.into_iter().map(part).collect(),
        ..CatalogEntry::new(event.name, EventKind::Pmu, Source::Libpfm)
    }
}

#[cfg(not(feature = "pfm"))]
fn libpfm_entries(_: &Machine) -> impl Iterator<Item = CatalogEntry> + use<> {
    std::iter::empty()
}

/// A pattern of `perfprop list`, as `perf list` takes it: a glob for the whole name, or a word
/// that stands anywhere in it; or the name of a class (`hw`, `sw`, `cache`, `tracepoint`, `pmu`).
/// Cases of letters don't count.
#[derive(Clone, Debug)]
pub struct Pattern {
    word: String,
    glob: String,
}

impl Pattern {
    /// The pattern that `text` means. `""` matches everything.
    pub fn new(text: &str) -> Self {
        let word = text.to_lowercase();
        let glob = if glob::is_pattern(&word) { word.clone() } else { format!("*{word}*") };
        Self { word, glob }
    }

    /// Whether the pattern means the entry, by its name, an alias, a umask or its PMU.
    pub fn matches(&self, entry: &CatalogEntry) -> bool {
        let means = |name: &str| glob::matches(&self.glob, &name.to_lowercase());
        self.means_class(entry.kind)
            || entry.names().any(|name| means(&name))
            || entry.pmu.as_deref().is_some_and(means)
    }

    fn means_class(&self, kind: EventKind) -> bool {
        match self.word.as_str() {
            "hw" | "hardware" => kind == EventKind::Hardware,
            "sw" | "software" => kind == EventKind::Software,
            "cache" | "hwcache" => kind == EventKind::Cache,
            "tracepoint" => kind == EventKind::Tracepoint,
            "pmu" => kind == EventKind::Pmu,
            _ => false,
        }
    }
}

/// Whether an event can be counted here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    /// It can be counted.
    Yes,
    /// With `:u` only: the kernel may not be watched by this user.
    UserOnly,
    /// It can't be counted, for this reason.
    No(String),
}

/// What a [`Prober`] has to find out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Question<'a> {
    /// Whether this user may count what the kernel has for sure.
    Allowed,
    /// Whether this event can be counted; only opening it shows.
    Open(&'a Event),
}

/// Answers whether entries can be counted, by asking as few questions as tell the truth.
///
/// What the kernel says that it has (software events, tracepoints, events that sysfs lists for a PMU
/// outside of the cores) needs no more than the permission. The events of one core PMU share one
/// answer: the kernel takes any code of a PMU that it has. Each of perf's own hardware events is asked
/// for itself, because a CPU may lack any of them.
pub struct Prober<'a> {
    resolver: &'a Resolver,
    probe: &'a dyn Fn(Question<'_>) -> Availability,
    known: RefCell<HashMap<String, Availability>>,
}

impl<'a> Prober<'a> {
    /// A prober that asks `probe` whenever no earlier answer holds.
    pub fn new(resolver: &'a Resolver, probe: &'a dyn Fn(Question<'_>) -> Availability) -> Self {
        Self { resolver, probe, known: RefCell::default() }
    }

    /// What resolves the names.
    pub fn resolver(&self) -> &'a Resolver {
        self.resolver
    }

    /// Whether this entry can be counted.
    pub fn check(&self, entry: &CatalogEntry) -> Availability {
        if entry.kind.is_software() {
            return self.of_software(entry.kind, || self.resolver.built_in(&entry.name));
        }
        match (entry.source, &entry.pmu) {
            (Source::Sysfs | Source::Libpfm | Source::Tables, Some(pmu)) => {
                self.once(&format!("pmu {pmu}"), || self.check_pmu(entry, pmu))
            }
            (Source::Tables, None) => self.once("table", || self.open(entry)),
            _ => self.once(&format!("event {}", entry.name), || self.open(entry)),
        }
    }

    /// Whether an event that a name stands for can be counted.
    pub fn check_event(&self, event: &Event) -> Availability {
        match event.unavailable() {
            _ if event.kind.is_software() => self.of_software(event.kind, || Some(event.clone())),
            Some(why) => Availability::No(why),
            None => self.once(&format!("event {}", event.name), || (self.probe)(Question::Open(event))),
        }
    }

    /// Whether an event of the kernel itself can be counted. Who may not watch the kernel can count a part of some, and
    /// all of clocks.
    fn of_software(&self, kind: EventKind, event: impl FnOnce() -> Option<Event>) -> Availability {
        if kind == EventKind::Tool {
            return Availability::Yes;
        }
        match self.once("allowed", || (self.probe)(Question::Allowed)) {
            Availability::UserOnly => match event().filter(Event::happens_in_user_space) {
                Some(event) if event.is_clock() => Availability::Yes,
                Some(_) => Availability::UserOnly,
                None => Availability::No("not permitted".to_owned()),
            },
            allowed => allowed,
        }
    }

    fn once(&self, question: &str, ask: impl FnOnce() -> Availability) -> Availability {
        if let Some(known) = self.known.borrow().get(question) {
            return known.clone();
        }
        let answer = ask();
        self.known.borrow_mut().insert(question.to_owned(), answer.clone());
        answer
    }

    fn check_pmu(&self, entry: &CatalogEntry, pmu: &str) -> Availability {
        let listed = self.resolver.pmus().iter().find(|listed| listed.name == pmu && !listed.is_core());
        match listed {
            Some(listed) if listed.counts_whole_cpus() => {
                Availability::No("counted for whole CPUs, and not for a program".to_owned())
            }
            Some(_) => self.once("allowed", || (self.probe)(Question::Allowed)),
            None => self.open(entry),
        }
    }

    fn open(&self, entry: &CatalogEntry) -> Availability {
        let event = match entry.source {
            Source::Preset | Source::Perf | Source::Model => self.resolver.built_in(&entry.name),
            // A table may describe more than the kernel has an encoding for.
            _ => self.resolver.first(&entry.example()).ok().flatten(),
        };
        let Some(event) = event else { return Availability::No("no encoding here".to_owned()) };
        if let Some(why) = event.unavailable() {
            return Availability::No(why);
        }
        let ask = || (self.probe)(Question::Open(&event));
        if event.kind == EventKind::Pmu && entry.source == Source::Preset { self.once("codes", ask) } else { ask() }
    }
}

/// The names nearest to a wrong one, the nearest first, four at most.
pub fn similar(resolver: &Resolver, wrong: &str) -> Vec<String> {
    nearest(wrong, &names(resolver))
}

/// Names of all events of the machine, for suggestions: some thousands.
pub(super) fn names(resolver: &Resolver) -> Vec<String> {
    catalog(resolver).flat_map(|entry| entry.names().collect::<Vec<_>>()).collect()
}

/// The nearest of `names`. An event that lacks only its umask is nearest to itself with one.
pub(super) fn nearest(wrong: &str, names: &[String]) -> Vec<String> {
    let start = format!("{wrong}:").to_lowercase();
    let narrow = names.iter().filter(|name| name.to_lowercase().starts_with(&start)).map(String::as_str);
    let near = names::nearest(wrong, names.iter().map(String::as_str)).into_iter();
    let mut nearest: Vec<String> = Vec::new();
    for name in narrow.chain(near.filter(|name| !name.eq_ignore_ascii_case(wrong))).take(names::MAX_SUGGESTIONS) {
        if !nearest.iter().any(|known| known == name) {
            nearest.push(name.to_owned());
        }
    }
    nearest
}

/// A pattern for `perfprop list` that finds `name` and its kin, if it finds anything: the longest
/// of its words without the plural's end, `*MISS*` for `L1_MISSES`.
pub(super) fn pattern_for(name: &str, names: &[String]) -> Option<String> {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    let word = words.max_by_key(|word| word.len()).filter(|word| word.len() >= 3)?;
    let stem = ["ES", "es", "S", "s"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
    let pattern = format!("*{stem}*").to_lowercase();
    let found = names.iter().any(|name| glob::matches(&pattern, &name.to_lowercase()));
    found.then(|| format!("*{stem}*"))
}

#[cfg(all(test, feature = "pfm"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail and say why")]
    use super::super::pfm;
    use super::*;

    #[test]
    fn every_event_that_libpfm_lists_can_be_written_on_this_cpu() {
        let resolver = Resolver::new(Machine::here());
        // Others are there as far as sysfs has them.
        let cores = pfm::pmus().into_iter().filter(|pmu| pmu.is_core);
        let events = cores.flat_map(|pmu| pfm::events(&pmu).map(move |event| (pmu.name.clone(), event)));
        for entry in events.map(|(pmu, event)| libpfm_entry(&pmu, event)) {
            let event = resolver.first(&entry.example()).unwrap();
            assert!(event.is_some_and(|event| event.kind == entry.kind), "{}", entry.example());
        }
    }
}
