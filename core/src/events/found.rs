//! Resolves the parts of a name to attributes of perf_event_open, as far as that needs no look at the
//! machine.

use super::error::EventErrorCause;
use super::machine::Machine;
use super::modifiers::LettersError;
use super::pmu::{self, Encoded, Pmu};
use super::presets::Preset;
use super::symbols::{self, Symbol};
use super::syntax::{self, Head, Term};
use super::{Encoding, EventKind, Modifiers, Unit};

/// What a name means, before its modifiers.
#[derive(Clone, Debug)]
pub(super) struct Meant {
    pub(super) canonical: String,
    pub(super) kind: EventKind,
    pub(super) encoding: Encoding,
    pub(super) unit: Unit,
    /// What it is called, where that isn't what was written: one event of several, or `name=`.
    pub(super) name: Option<String>,
    /// What holds without letters.
    pub(super) modifiers: Modifiers,
    /// The PMU outside the cores that counts it, by its name in sysfs.
    pub(super) pmu: Option<String>,
}

impl From<Symbol> for Meant {
    fn from(symbol: Symbol) -> Self {
        Self { unit: symbol.unit, ..Self::new(symbol.canonical, symbol.kind, symbol.encoding) }
    }
}

impl Meant {
    pub(super) fn new(canonical: String, kind: EventKind, encoding: Encoding) -> Self {
        let (unit, name, modifiers, pmu) = (Unit::Count, None, Modifiers::unmodified(), None);
        Self { canonical, kind, encoding, unit, name, modifiers, pmu }
    }

    /// The PMU that its canonical name begins with.
    pub(super) fn head(&self) -> &str {
        self.canonical.split('/').next().unwrap_or_default()
    }
}

/// Numbers, raw codes and breakpoints, which need no machine.
pub(super) fn other_head(head: &Head<'_>, terms: Option<&[Term<'_>]>) -> Result<Meant, EventErrorCause> {
    let found = match *head {
        Head::Numeric { pmu_type, config } => {
            let largest = u64::from(u32::MAX);
            let narrow = u32::try_from(pmu_type).map_err(|_| EventErrorCause::TooLarge {
                pmu: String::new(),
                term: "type".to_owned(),
                value: pmu_type,
                max: largest,
            })?;
            numeric(narrow, config)
        }
        Head::Raw(code) => Meant::new(format!("r{code:x}"), EventKind::Raw, Encoding::of(symbols::RAW, code)),
        Head::Memory { address, length, access } => breakpoint(address, length, access)?,
        Head::Name(_) | Head::Probe { .. } => return Err(EventErrorCause::NeedsValue { term: "event".to_owned() }),
    };
    with_common_terms(found, terms.unwrap_or_default())
}

/// `1:3`: what perf has a name for, or a bare encoding.
fn numeric(pmu_type: u32, config: u64) -> Meant {
    let row = symbols::ROWS.iter().find(|row| (row.pmu_type, row.config) == (pmu_type, config));
    let bare = || Meant::new(format!("{pmu_type}:{config:#x}"), kind_of(pmu_type), Encoding::of(pmu_type, config));
    row.map_or_else(bare, |row| Meant::from(Symbol::from(row)))
}

fn kind_of(pmu_type: u32) -> EventKind {
    match pmu_type {
        symbols::HARDWARE => EventKind::Hardware,
        symbols::SOFTWARE => EventKind::Software,
        symbols::TRACEPOINT => EventKind::Tracepoint,
        symbols::HW_CACHE => EventKind::Cache,
        symbols::RAW => EventKind::Raw,
        symbols::BREAKPOINT => EventKind::Breakpoint,
        _ => EventKind::Pmu,
    }
}

/// `HW_BREAKPOINT_R`, `_W`, `_X` of `linux/hw_breakpoint.h`.
const ACCESSES: [(char, u32); 3] = [('r', 1), ('w', 2), ('x', 4)];

/// perf's defaults: reads and writes; four bytes, or a word where code is executed.
fn breakpoint(address: u64, length: Option<u64>, access: &str) -> Result<Meant, EventErrorCause> {
    let written = if access.is_empty() { "rw" } else { access };
    let mut bp_type = 0;
    for letter in written.chars() {
        let bit = ACCESSES.iter().find(|(known, _)| *known == letter).map_or(0, |(_, bit)| *bit);
        if bp_type & bit != 0 {
            return Err(EventErrorCause::Letters(LettersError::Twice(letter)));
        }
        bp_type |= bit;
    }
    let executes = bp_type == 4;
    let length = length.unwrap_or(if executes { size_of::<usize>() as u64 } else { 4 });
    let encoding = Encoding { config1: address, config2: length, bp_type, ..Encoding::of(symbols::BREAKPOINT, 0) };
    Ok(Meant::new(format!("mem:{address:#x}/{length}:{written}"), EventKind::Breakpoint, encoding))
}

pub(super) fn with_common_terms(found: Meant, terms: &[Term<'_>]) -> Result<Meant, EventErrorCause> {
    let mut encoded = Encoded { encoding: found.encoding.clone(), unit: found.unit.clone(), name: None };
    pmu::add_common_terms(terms, &mut encoded)?;
    Ok(Meant { encoding: encoded.encoding, name: encoded.name, ..found })
}

pub(super) fn on_pmu(pmu: &Pmu, terms: &[Term<'_>], encoded: Encoded, hybrid: bool) -> Meant {
    let canonical = format!("{}/{}/", pmu.name, written(terms));
    let kind = match (pmu.name.as_str(), kind_of(encoded.encoding.pmu_type)) {
        ("kprobe" | "uprobe", _) => EventKind::Probe,
        (_, EventKind::Raw) => EventKind::Pmu,
        (_, kind) => kind,
    };
    let mut found = Meant::new(canonical, kind, encoded.encoding);
    let is_generic = matches!(kind, EventKind::Hardware | EventKind::Cache);
    if is_generic && hybrid {
        found.encoding.config |= u64::from(pmu.pmu_type) << 32;
    }
    if is_generic && !hybrid {
        // `cpu/instructions/` where sysfs hasn't got the event is perf's own `instructions`.
        found.canonical = written(terms);
    }
    // A PMU outside the cores can't tell privilege levels and guests apart, and the kernel
    // refuses to be asked (EINVAL).
    found.modifiers = if pmu.is_core() { Modifiers::unmodified() } else { Modifiers::default() };
    found.encoding.of_cores = pmu.is_core() && kind == EventKind::Pmu && pmu.pmu_type != symbols::RAW;
    found.encoding.core = (hybrid && pmu.is_core()).then(|| pmu.name.clone());
    found.encoding.cpus = pmu.cpumask();
    let outside = (!pmu.is_core()).then(|| pmu.name.clone());
    Meant { unit: encoded.unit, name: encoded.name, pmu: outside, ..found }
}

/// The terms that say what is counted, as text.
fn written(terms: &[Term<'_>]) -> String {
    let term = |term: &Term<'_>| match &term.value {
        None => term.key.to_owned(),
        Some(syntax::TermValue::Number(number)) => format!("{}={number:#x}", term.key),
        Some(syntax::TermValue::Text(text)) => format!("{}={text}", term.key),
    };
    let counting = terms.iter().filter(|term| term.key != "name");
    counting.map(term).collect::<Vec<_>>().join(",")
}

/// The kernel takes the type of a hybrid machine's core PMU in the upper half of the config.
pub(super) fn on_core(found: &Meant, core: &Pmu) -> Meant {
    let mut found = found.clone();
    found.encoding.config |= u64::from(core.pmu_type) << 32;
    found.canonical = format!("{}/{}/", core.name, found.canonical);
    found.encoding.core = Some(core.name.clone());
    found
}

/// A raw code of the core's PMU, called by libpfm's words where there are some.
pub(super) fn raw(code: u64, words: Option<String>) -> Meant {
    let canonical = words.unwrap_or_else(|| format!("r{code:x}"));
    Meant::new(canonical, EventKind::Pmu, Encoding::of(symbols::RAW, code))
}

pub(super) fn absent(preset: &Preset, why: &str) -> Meant {
    Meant::new(preset.name.clone(), EventKind::Hardware, Encoding::absent(why))
}

#[cfg(feature = "pfm")]
pub(super) fn libpfm_event(machine: &Machine, name: &str) -> Option<Meant> {
    if !machine.has_libpfm() {
        return None;
    }
    let event = super::pfm::encode(name).ok()?;
    let kind = match kind_of(event.encoding.pmu_type) {
        EventKind::Raw => EventKind::Pmu,
        kind => kind,
    };
    let found = Meant::new(event.canonical, kind, event.encoding);
    Some(Meant { modifiers: event.modifiers, ..found })
}

#[cfg(not(feature = "pfm"))]
pub(super) fn libpfm_event(_: &Machine, _: &str) -> Option<Meant> {
    None
}
