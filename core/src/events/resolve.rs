//! Resolves parsed names to events with their encodings on a machine.
//!
//! A name `a:b` is read in this order: the tracepoint `a:b` if tracefs has it; perf's symbol or
//! an event of sysfs `a` with the modifiers `b`; a preset with modifiers; libpfm.

use std::sync::{Arc, OnceLock};

use super::error::EventErrorCause;
use super::found::{Meant, absent, libpfm_event, on_core, on_pmu, other_head, raw, with_common_terms};
use super::machine::{Machine, TracefsError};
use super::merge::{Merge, merged};
use super::modifiers::{Letters, Space};
use super::pmu::{self, Pmu, PmuType};
use super::presets::{self, CpuFamily, Meaning};
use super::symbols;
use super::syntax::{self, Head, Item, ProbePlace, Spec, Term};
use super::table_event::TableEvent;
use super::tables::Tables;
use super::{Encoding, Event, EventKind, Modifiers, Source, emulate, probe, tracepoints};

/// The first `perf_event_attr.type` that the kernel gives out to PMUs of drivers (`PERF_TYPE_MAX`).
const FIRST_OF_SYSFS: u32 = 6;

/// Why the model counts nothing of the kernel.
const NO_KERNEL: &str = "not supported by the model: it runs no kernel";

/// Reads the names that people write after `-e`, on one machine.
#[derive(Clone, Debug)]
pub struct Resolver {
    machine: Machine,
    family: OnceLock<Option<&'static CpuFamily>>,
    tables: Arc<Tables>,
    pmus: OnceLock<Vec<Pmu>>,
    space: Option<Space>,
    merge: Merge,
}

/// What a name means, and the letters that were left of it.
struct MeantWithModifiers<'a> {
    found: Vec<Meant>,
    letters: &'a str,
}

/// An event on its way into a group.
pub(super) struct ResolvedMember {
    pub(super) event: Event,
    /// The letters that it has itself.
    pub(super) own: Letters,
    /// The PMU of one unit among several, or of one kind of core: the kernel takes no group over two of them.
    pub(super) apart: Option<String>,
}

/// A name with further modifiers, behind those that it ends with.
pub fn with_letters(name: &str, letters: &str) -> String {
    let last = name.rsplit_once([':', '/']).map(|(_, last)| last);
    let takes_letters = last.is_some_and(|last| Letters::parse(last).is_ok());
    let colon = if takes_letters || letters.is_empty() { "" } else { ":" };
    format!("{name}{colon}{letters}")
}

/// A name that says where the event is counted: with this letter in place of its own `u`, `k` and `h`.
pub fn with_space(name: &str, space: Space) -> String {
    let own = name.rsplit_once([':', '/']).filter(|(_, last)| Letters::parse(last).is_ok());
    let last = own.map_or("", |(_, last)| last);
    let kept: String = last.chars().filter(|letter| !matches!(letter, 'u' | 'k' | 'h')).collect();
    let base = &name[..name.len() - last.len()];
    let base = if kept.is_empty() { base.strip_suffix(':').unwrap_or(base) } else { base };
    with_letters(base, &format!("{kept}{}", space.letter()))
}

impl Resolver {
    /// A resolver for the events of `machine`.
    pub fn new(machine: Machine) -> Self {
        Self {
            machine,
            family: OnceLock::new(),
            tables: Arc::default(),
            pmus: OnceLock::new(),
            space: None,
            merge: Merge::Units,
        }
    }

    /// The same resolver, which adds the counts of like units up or finds an event for each.
    pub fn merging(self, merge: Merge) -> Self {
        Self { merge, ..self }
    }

    /// The same resolver, which finds every event as it is counted there only. Time passes everywhere.
    pub fn only_in(self, space: Space) -> Self {
        Self { space: Some(space), ..self }
    }

    /// The event as the resolver is to find it.
    pub(super) fn confined(&self, mut event: Event) -> Event {
        if let Some(space) = self.space.filter(|_| event.kind != EventKind::Tool) {
            space.apply(&mut event.modifiers);
            if event.kind == EventKind::Modelled && space == Space::Kernel {
                event.encoding = Encoding::absent(NO_KERNEL);
            }
            event.name = with_space(&event.name, space);
        }
        event
    }

    /// Adds the events of a vendor's tables to the resolver.
    pub fn with_tables(self, tables: Arc<Tables>) -> Self {
        Self { tables, ..self }
    }

    /// The machine's PMUs, read once: a list asks for them thousands of times.
    pub fn pmus(&self) -> &[Pmu] {
        self.pmus.get_or_init(|| pmu::all(&self.machine))
    }

    /// The PMU that counts an event of the cores or of a PMU in sysfs.
    pub fn pmu_of(&self, event: &Event) -> Option<&Pmu> {
        let counting = event.pmu_type();
        let has_type = |pmu: &&Pmu| PmuType(pmu.pmu_type) == counting;
        let is_of_cores = |pmu: &&Pmu| counting == PmuType::CORES && pmu.is_core();
        self.pmus().iter().find(has_type).or_else(|| self.pmus().iter().find(is_of_cores))
    }

    /// The PMUs of the cores; several on a hybrid machine.
    fn cores(&self) -> Vec<&Pmu> {
        self.pmus().iter().filter(|pmu| pmu.is_core()).collect()
    }

    /// The vendor's tables that it knows; empty ones by default.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The machine whose events it knows.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The events that one name stands for, several where several units count it; none where it isn't
    /// known. Nothing is suggested, which takes longer than a whole list.
    pub fn called(&self, name: &str) -> Vec<Event> {
        let items = syntax::parse(name).unwrap_or_default();
        let [Item::Single(spec)] = items.as_slice() else { return Vec::new() };
        self.spec(spec).unwrap_or_default().into_iter().map(|member| self.confined(member.event)).collect()
    }

    /// What one event means, a [`ResolvedMember`] for each event that it stands for.
    pub(super) fn spec(&self, spec: &Spec<'_>) -> Result<Vec<ResolvedMember>, EventErrorCause> {
        let terms = spec.terms.as_deref();
        let named = match spec.head {
            Head::Name(name) => self.name(name, terms)?,
            Head::Probe { path, ref place, returns } => {
                let found = with_common_terms(self.probe(path, place, returns)?, terms.unwrap_or_default())?;
                MeantWithModifiers { found: vec![found], letters: "" }
            }
            ref head => MeantWithModifiers { found: vec![other_head(head, terms)?], letters: "" },
        };
        let named = if self.machine.is_emulated() { only_modelled(named) } else { named };
        let written = if spec.modifiers.is_empty() { named.letters } else { spec.modifiers };
        let letters = Letters::parse(written).map_err(EventErrorCause::Letters)?;
        let several = named.found.len() > 1;
        let member = |found: Meant| self.member(found, spec.text, written, letters, several);
        named.found.into_iter().map(member).collect()
    }

    fn member(
        &self,
        found: Meant,
        text: &str,
        written: &str,
        letters: Letters,
        several: bool,
    ) -> Result<ResolvedMember, EventErrorCause> {
        let mut modifiers = found.modifiers;
        letters.apply_to_event(&mut modifiers).map_err(EventErrorCause::Letters)?;
        let mut encoding = found.encoding;
        if found.pmu.is_none() && encoding.pmu_type >= FIRST_OF_SYSFS {
            encoding.cpus = self.cpumask_of(encoding.pmu_type);
        }
        if found.kind == EventKind::Modelled && modifiers.exclude_user {
            encoding = Encoding::absent(NO_KERNEL);
        }
        // perf writes modifiers right behind a slash.
        let colon = if written.is_empty() || found.canonical.ends_with('/') { "" } else { ":" };
        let name = match found.name {
            Some(name) => name,
            None if several => format!("{}{colon}{written}", found.canonical),
            None => text.to_owned(),
        };
        let apart = encoding.core.clone().or(found.pmu.filter(|_| several && encoding.units.is_empty()));
        let event = Event { name, canonical: found.canonical, kind: found.kind, encoding, modifiers, unit: found.unit };
        Ok(ResolvedMember { event, own: letters, apart })
    }

    /// The CPUs that a PMU is opened on which was written as a number, or is known to libpfm.
    fn cpumask_of(&self, pmu_type: u32) -> Vec<u32> {
        let pmu = self.pmus().iter().find(|pmu| pmu.pmu_type == pmu_type);
        pmu.map(Pmu::cpumask).unwrap_or_default()
    }

    fn name<'a>(&self, name: &'a str, terms: Option<&[Term<'_>]>) -> Result<MeantWithModifiers<'a>, EventErrorCause> {
        match terms {
            Some(terms) => self.name_with_terms(name, terms),
            None => self.plain_name(name),
        }
    }

    /// The event of a name that is known to be a preset's or perf's own.
    pub(super) fn built_in(&self, name: &str) -> Option<Event> {
        let known = self.modelled(name).or_else(|| self.symbol(name)).or_else(|| self.preset(name));
        let found = known?.into_iter().next()?;
        Some(self.member(found, name, "", Letters::default(), false).ok()?.event)
    }

    /// The first event that a text stands for; what is wrong with it comes without suggestions,
    /// which take longer than a whole list.
    ///
    /// # Errors
    /// Returns what is wrong with the text.
    pub fn first(&self, text: &str) -> Result<Option<Event>, EventErrorCause> {
        let items =
            syntax::parse(text).map_err(|error| EventErrorCause::Syntax { at: error.at, expected: error.expected })?;
        let specs = items.iter().filter_map(|item| if let Item::Single(spec) = item { Some(spec) } else { None });
        for spec in specs {
            if let Some(member) = self.spec(spec)?.into_iter().next() {
                return Ok(Some(member.event));
            }
        }
        Ok(None)
    }

    fn plain_name<'a>(&self, name: &'a str) -> Result<MeantWithModifiers<'a>, EventErrorCause> {
        let tracepoint = self.tracepoint(name);
        if let Some(Ok(named)) = tracepoint {
            return Ok(named);
        }
        let (base, letters) = name.split_once(':').unwrap_or((name, ""));
        let known = self
            .modelled(base)
            .or_else(|| self.symbol(base))
            .map(Ok)
            .or_else(|| self.sysfs_event(base))
            .or_else(|| self.preset(base).map(Ok))
            .or_else(|| self.table_event(base));
        match (known, Letters::parse(letters)) {
            (Some(found), Ok(_)) => return Ok(MeantWithModifiers { found: found?, letters }),
            (Some(_), Err(error)) => return libpfm_name(&self.machine, name).ok_or(EventErrorCause::Letters(error)),
            (None, _) => {}
        }
        if let Some(named) = libpfm_name(&self.machine, name) {
            return Ok(named);
        }
        match tracepoint {
            Some(Err(error)) if Letters::parse(letters).is_err() => Err(EventErrorCause::Tracefs(error)),
            _ => Err(unknown(name)),
        }
    }

    /// `cycles/name=c/`, `cpu/event=0x3c/`, `sched:sched_switch/call-graph=fp/`.
    fn name_with_terms<'a>(
        &self,
        name: &'a str,
        terms: &[Term<'_>],
    ) -> Result<MeantWithModifiers<'a>, EventErrorCause> {
        let tracepoint = self.tracepoint(name).and_then(Result::ok);
        let known = || self.modelled(name).or_else(|| self.symbol(name)).or_else(|| self.preset(name));
        let found = match tracepoint {
            Some(named) => Some(named.found),
            None if self.pmus().iter().any(|pmu| pmu.name == name) => None,
            None => known(),
        };
        let found = match found {
            Some(found) => found.into_iter().map(|found| with_common_terms(found, terms)).collect(),
            None => self.on_pmus(name, terms),
        };
        Ok(MeantWithModifiers { found: found?, letters: "" })
    }

    fn on_pmus(&self, name: &str, terms: &[Term<'_>]) -> Result<Vec<Meant>, EventErrorCause> {
        let pmus = pmu::matching(self.pmus(), name);
        if !pmus.is_empty() {
            return self.on_each(&pmus, terms);
        }
        let with_event: Vec<Pmu> = self.pmus().iter().filter(|pmu| pmu.has_event(name)).cloned().collect();
        if with_event.is_empty() {
            if let Some(found) = libpfm_event(&self.machine, name) {
                return Ok(vec![with_common_terms(found, terms)?]);
            }
            let known = self.pmus().iter().map(|pmu| pmu.name.clone()).collect();
            return Err(EventErrorCause::NoPmu { pmu: name.to_owned(), known });
        }
        let event = Term { key: name, value: None };
        let terms: Vec<Term<'_>> = std::iter::once(event).chain(terms.iter().cloned()).collect();
        self.on_each(&with_event, &terms)
    }

    /// The terms on each PMU, those of like units in one. As in perf, of several PMUs those that don't have the
    /// terms are left out, as long as one has.
    fn on_each(&self, pmus: &[Pmu], terms: &[Term<'_>]) -> Result<Vec<Meant>, EventErrorCause> {
        let (mut found, mut refused) = (Vec::new(), None);
        for pmu in pmus {
            let terms = &self.expanded(pmu, terms);
            match pmu.encode(terms) {
                Ok(encoded) => found.push(on_pmu(pmu, terms, encoded, self.is_hybrid())),
                Err(cause) => refused = refused.or(Some(cause)),
            }
        }
        match refused {
            Some(cause) if found.is_empty() => Err(cause),
            _ => Ok(merged(found, self.merge)),
        }
    }

    fn probe(&self, path: Option<&str>, place: &ProbePlace<'_>, returns: bool) -> Result<Meant, EventErrorCause> {
        let encoding = match path {
            Some(path) => probe::user(&self.machine, path, place, returns)?,
            None => probe::kernel(&self.machine, place, returns)?,
        };
        let kind = if returns { "retprobe" } else { "probe" };
        let at = match place {
            ProbePlace::Address(address) => format!("{address:#x}"),
            ProbePlace::Function { name, offset: 0 } => (*name).to_owned(),
            ProbePlace::Function { name, offset } => format!("{name}+{offset:#x}"),
        };
        let canonical = match &encoding.probe {
            Some(probe) if path.is_some() => format!("u{kind}:{}:{at}", probe.path),
            _ => format!("k{kind}:{at}"),
        };
        Ok(Meant { modifiers: Modifiers::default(), ..Meant::new(canonical, EventKind::Probe, encoding) })
    }

    /// The terms, with those of the vendor's event in place of its name: `cpu/l1d.replacement/`.
    fn expanded<'t>(&'t self, pmu: &Pmu, terms: &[Term<'t>]) -> Vec<Term<'t>> {
        let own = |term: &Term<'_>| term.value.is_some() || pmu.has_term(term.key);
        let is_of = |event: &&TableEvent| {
            event.pmu.as_ref().is_none_or(|name| !pmu::matching(std::slice::from_ref(pmu), name).is_empty())
        };
        let in_tables = |name: &str| self.tables.all(name).find(is_of).or_else(|| self.tables.find(name));
        let of = |term: &Term<'t>| match in_tables(term.key) {
            Some(event) if !own(term) => event.written_terms(),
            _ => vec![term.clone()],
        };
        terms.iter().flat_map(of).collect()
    }

    /// A name out of the vendor's tables, on every PMU that counts it.
    fn table_event(&self, name: &str) -> Option<Result<Vec<Meant>, EventErrorCause>> {
        let (mut found, mut error) = (Vec::new(), None);
        for event in self.tables.all(name) {
            match self.in_table(event) {
                Ok(meant) => found.extend(meant),
                Err(cause) => error = error.or(Some(cause)),
            }
        }
        match error {
            _ if !found.is_empty() => Some(Ok(found)),
            error => error.map(Err),
        }
    }

    fn in_table(&self, event: &TableEvent) -> Result<Vec<Meant>, EventErrorCause> {
        let pmus = match &event.pmu {
            Some(pmu) => pmu::matching(self.pmus(), pmu),
            None => self.cores().into_iter().cloned().collect(),
        };
        if let (true, Some(pmu)) = (pmus.is_empty(), &event.pmu) {
            let known = self.pmus().iter().map(|pmu| pmu.name.clone()).collect();
            return Err(EventErrorCause::NoPmu { pmu: pmu.clone(), known });
        }
        let mut found = match event.on_x86() {
            Some(encoding) if pmus.is_empty() => vec![Meant::new(event.name.clone(), EventKind::Pmu, encoding)],
            _ => self.on_each(&pmus, &event.written_terms())?,
        };
        if found.is_empty() {
            return Err(EventErrorCause::NoPmu { pmu: "cpu".to_owned(), known: Vec::new() });
        }
        for one in &mut found {
            one.unit = event.unit().unwrap_or_else(|| one.unit.clone());
        }
        match found.as_mut_slice() {
            [one] => one.canonical.clone_from(&event.name),
            several => several.iter_mut().for_each(|one| one.canonical = format!("{}/{}/", one.head(), event.name)),
        }
        Ok(found)
    }

    fn is_hybrid(&self) -> bool {
        self.cores().len() > 1
    }

    /// The tracepoints that `name` begins with. `None` when the name isn't made like a
    /// tracepoint's, or tracefs is there and hasn't got it.
    fn tracepoint<'a>(&self, name: &'a str) -> Option<Result<MeantWithModifiers<'a>, TracefsError>> {
        let (system, rest) = name.split_once(':')?;
        let (event, letters) = rest.split_once(':').unwrap_or((rest, ""));
        let events = match self.machine.tracepoints() {
            Ok(events) => events,
            Err(error) => return Some(Err(error)),
        };
        let found: Vec<Meant> = tracepoints::find(&events, system, event)
            .into_iter()
            .map(|point| Meant::new(point.name, EventKind::Tracepoint, point.encoding))
            .collect();
        if found.is_empty() { None } else { Some(Ok(MeantWithModifiers { found, letters })) }
    }

    /// What the emulated PMU counts, or knows that it can't; nothing on a real machine.
    fn modelled(&self, name: &str) -> Option<Vec<Meant>> {
        if !self.machine.is_emulated() {
            return None;
        }
        let canonical = symbols::find(name).map_or_else(|| name.to_owned(), |symbol| symbol.canonical);
        let (canonical, encoding) = emulate::find(&canonical)?;
        // It sees what the program executes in user space, without being asked to.
        let modifiers = Modifiers::default();
        Some(vec![Meant { modifiers, ..Meant::new(canonical, EventKind::Modelled, encoding) }])
    }

    /// perf's symbols; on a hybrid machine a hardware event for each kind of core.
    fn symbol(&self, name: &str) -> Option<Vec<Meant>> {
        let found = Meant::from(symbols::find(name)?);
        if !matches!(found.kind, EventKind::Hardware | EventKind::Cache) {
            return Some(vec![found]);
        }
        match self.cores().as_slice() {
            [] | [_] => Some(vec![found]),
            cores => Some(cores.iter().map(|core| on_core(&found, core)).collect()),
        }
    }

    /// A name out of a PMU's `events/` folder, on every PMU that has it.
    fn sysfs_event(&self, name: &str) -> Option<Result<Vec<Meant>, EventErrorCause>> {
        let pmus: Vec<Pmu> = self.pmus().iter().filter(|pmu| pmu.has_event(name)).cloned().collect();
        if pmus.is_empty() {
            return None;
        }
        Some(self.on_each(&pmus, &[Term { key: name, value: None }]))
    }

    /// A preset: what the table has for this CPU, else an event that is known and absent.
    fn preset(&self, name: &str) -> Option<Vec<Meant>> {
        let preset = presets::find(name)?;
        // The kinds of core of a hybrid machine have different codes; perf's events know them.
        let family = self.family().filter(|_| !self.is_hybrid());
        let meaning = preset.on(&self.machine.cpu_id().unwrap_or_default(), family);
        Some(match meaning {
            Meaning::Code(code, words) => vec![raw(code, words)],
            Meaning::Perf(event) => {
                let missing = || vec![absent(preset, &format!("perf has no event {event}"))];
                self.symbol(event).unwrap_or_else(missing)
            }
            Meaning::Missing(why) => vec![absent(preset, &why)],
        })
    }

    /// What the table of presets calls this machine's CPUs; `None` where it doesn't know them.
    pub fn family_title(&self) -> Option<&'static str> {
        self.family().filter(|_| !self.is_hybrid()).map(CpuFamily::title)
    }

    /// Who describes an event of this resolver's; `None` for a raw code, a breakpoint, a probe.
    pub fn source_of(&self, event: &Event) -> Option<Source> {
        let base = event.name.split([':', '/']).next().unwrap_or_default();
        if presets::find(base).is_some() && symbols::find(base).is_none() {
            return Some(Source::Preset);
        }
        match event.kind {
            EventKind::Software | EventKind::Hardware | EventKind::Cache | EventKind::Tool => Some(Source::Perf),
            EventKind::Tracepoint => Some(Source::Tracefs),
            EventKind::Modelled => Some(Source::Model),
            EventKind::Pmu if event.canonical.contains("::") => Some(Source::Libpfm),
            EventKind::Pmu if self.tables.find(base).is_some() => Some(Source::Tables),
            EventKind::Pmu => Some(Source::Sysfs),
            EventKind::Raw | EventKind::Breakpoint | EventKind::Probe => None,
        }
    }

    /// The CPU's family in the table of presets; a CPU doesn't change.
    fn family(&self) -> Option<&'static CpuFamily> {
        *self.family.get_or_init(|| presets::family(&self.machine.cpu_id()?))
    }
}

/// Replaces what the model doesn't count by the reason why it can't.
fn only_modelled(named: MeantWithModifiers<'_>) -> MeantWithModifiers<'_> {
    let modelled = |found: Meant| match found.kind {
        EventKind::Modelled => found,
        _ => Meant { encoding: emulate::not_modelled(&found.canonical), kind: EventKind::Modelled, ..found },
    };
    MeantWithModifiers { found: named.found.into_iter().map(modelled).collect(), ..named }
}

/// A name that nobody knows; [`parse`](Resolver::parse) adds the suggestions.
fn unknown(written: &str) -> EventErrorCause {
    // A word is compared without its modifiers, if that is what stands behind the last colon.
    let name = match written.rsplit_once(':') {
        Some((name, letters)) if Letters::parse(letters).is_ok() => name,
        _ => written,
    };
    EventErrorCause::Unknown { name: name.to_owned(), similar: Vec::new(), pattern: None, list: "perfprop list" }
}

/// A name of libpfm's, which may have libpfm's modifiers (`:u:k`) or, behind the last colon,
/// perf's (`:uk`).
fn libpfm_name<'a>(machine: &Machine, name: &'a str) -> Option<MeantWithModifiers<'a>> {
    if let Some(found) = libpfm_event(machine, name) {
        return Some(MeantWithModifiers { found: vec![found], letters: "" });
    }
    let (base, letters) = name.rsplit_once(':')?;
    Letters::parse(letters).ok()?;
    Some(MeantWithModifiers { found: vec![libpfm_event(machine, base)?], letters })
}
