//! Encodes terms such as `event=0x3c` by a PMU's folder in sysfs.
//!
//! A PMU has a `type`, a `format/` folder that says which bits a term sets
//! (`config:0-7,32-35`), and an `events/` folder of names that stand for terms, each with an
//! optional `.scale` and `.unit`.

use std::path::PathBuf;

use super::error::EventErrorCause;
use super::machine::{self, Machine};
use super::syntax::{self, Term, TermValue};
use super::{Encoding, Unit, symbols};
use crate::host::{self, parse_cpus};
use crate::names::glob;

/// A PMU that sysfs describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pmu {
    /// The name of its folder.
    pub name: String,
    /// The number that `perf_event_attr.type` takes.
    pub pmu_type: u32,
    /// Whether it counts what a core does, so that privilege levels and guests can be distinguished.
    core: bool,
    folder: PathBuf,
}

/// The type of the PMU that counts an event. Events share a group, and the time on its counters, only on one PMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PmuType(pub u32);

impl PmuType {
    /// The PMU of the cores where there is one: it counts generic events, those of caches, raw codes and its own in
    /// sysfs, each by another type.
    pub const CORES: Self = Self(symbols::RAW);
}

/// What a PMU makes of a list of terms.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Encoded {
    pub(super) encoding: Encoding,
    pub(super) unit: Unit,
    /// The value of a `name=` term.
    pub(super) name: Option<String>,
}

/// Terms that are about sampling or about perf's output. They don't change what is counted.
const NOT_COUNTING: &[&str] = &[
    "period",
    "freq",
    "branch_type",
    "time",
    "call-graph",
    "stack-size",
    "max-stack",
    "nr",
    "inherit",
    "no-inherit",
    "overwrite",
    "no-overwrite",
    "percore",
    "aux-output",
    "aux-action",
    "aux-sample-size",
    "metric-id",
];

/// Every PMU of the machine, sorted by name.
pub(super) fn all(machine: &Machine) -> Vec<Pmu> {
    machine::names(machine.devices()).iter().filter_map(|name| find(machine, name)).collect()
}

/// The PMU of this very name.
pub(super) fn find(machine: &Machine, name: &str) -> Option<Pmu> {
    if !machine::is_file_name(name) {
        return None;
    }
    let folder = machine.devices().join(name);
    let pmu_type = host::text(&folder.join("type")).ok()?.parse().ok()?;
    // The kernel gives core PMUs of hybrid and Arm machines a file `cpus`.
    let core = name == "cpu" || folder.join("cpus").exists();
    Some(Pmu { name: name.to_owned(), pmu_type, core, folder })
}

/// Those of `all` that perf takes `written` for: the one of that name, else all whose name begins
/// with it, with `uncore_` or without. `written` may be a pattern, or parts of names with commas between
/// (`hisi_sccl,ddrc` in the vendor's tables).
pub(super) fn matching(all: &[Pmu], written: &str) -> Vec<Pmu> {
    if let Some(pmu) = all.iter().find(|pmu| pmu.name == written) {
        return vec![pmu.clone()];
    }
    let pattern = format!("{}*", written.replace(',', "*"));
    let means = |pmu: &&Pmu| {
        let short = pmu.name.strip_prefix("uncore_").unwrap_or(&pmu.name);
        glob::matches(&pattern, &pmu.name) || glob::matches(&pattern, short)
    };
    all.iter().filter(means).cloned().collect()
}

impl Pmu {
    /// Whether it counts what a core does.
    pub fn is_core(&self) -> bool {
        self.core
    }

    /// Whether it counts what happens on CPUs, whatever runs there: the kernel gives it a `cpumask`.
    pub fn counts_whole_cpus(&self) -> bool {
        self.folder.join("cpumask").exists()
    }

    /// The CPUs that it is opened on, each for all that it counts for: its `cpumask`. Empty is any CPU.
    pub fn cpumask(&self) -> Vec<u32> {
        let list = self.says("cpumask").filter(|_| !self.core);
        list.and_then(|list| parse_cpus(&list)).unwrap_or_default()
    }

    /// What a file of its folder says: `cpus`, `perf_event_mux_interval_ms`.
    pub fn says(&self, file: &str) -> Option<String> {
        host::text(&self.folder.join(file)).ok()
    }

    /// The names in `events/`, sorted.
    pub(super) fn events(&self) -> Vec<String> {
        let mut names = machine::names(&self.folder.join("events"));
        names.retain(|name| ![".scale", ".unit", ".per-pkg", ".snapshot"].iter().any(|end| name.ends_with(end)));
        names
    }

    /// Whether `events/` has this name.
    pub(super) fn has_event(&self, name: &str) -> bool {
        self.event_terms(name).is_some()
    }

    /// Whether it knows the term, as a format or as an event.
    pub(super) fn has_term(&self, name: &str) -> bool {
        let is_format = machine::is_file_name(name) && self.folder.join("format").join(name).exists();
        is_format || self.has_event(name)
    }

    /// The terms that an event of `events/` stands for, as text.
    pub(super) fn event_terms(&self, name: &str) -> Option<String> {
        if !machine::is_file_name(name) {
            return None;
        }
        host::text(&self.folder.join("events").join(name)).ok()
    }

    /// Which bits the term `name` sets, or `None` when `format/` hasn't got it.
    fn format(&self, name: &str) -> Result<Option<FormatBits>, EventErrorCause> {
        if !machine::is_file_name(name) {
            return Ok(None);
        }
        let file = self.folder.join("format").join(name);
        let Ok(text) = host::text(&file) else { return Ok(None) };
        FormatBits::parse(&text).map(Some).ok_or(EventErrorCause::BadSysfs { file, text })
    }

    fn unit(&self, event: &str) -> Unit {
        let read = |end: &str| host::text(&self.folder.join("events").join(format!("{event}{end}")));
        let scale = read(".scale").ok().and_then(|text| text.parse::<f64>().ok());
        match (scale.filter(|scale| scale.is_finite()), read(".unit").ok()) {
            (None, None) => Unit::Count,
            (scale, name) => Unit::Scaled { scale: scale.unwrap_or(1.0), name: name.unwrap_or_default() },
        }
    }

    /// What the terms between the slashes mean to this PMU.
    ///
    /// # Errors
    /// Returns the first term that this PMU lacks or whose value doesn't fit.
    pub(super) fn encode(&self, terms: &[Term<'_>]) -> Result<Encoded, EventErrorCause> {
        let mut to = Encoded { encoding: Encoding::of(self.pmu_type, 0), unit: Unit::Count, name: None };
        for term in terms {
            set_whole_config(term, &mut to)?;
        }
        for term in terms {
            self.add_term(term, terms, &mut to)?;
        }
        Ok(to)
    }

    fn add_term(&self, term: &Term<'_>, all: &[Term<'_>], to: &mut Encoded) -> Result<(), EventErrorCause> {
        if is_common(term.key) {
            return Ok(());
        }
        if let Some(format) = self.format(term.key)? {
            return self.set_bits(&format, term, to);
        }
        if term.value.is_none() {
            return self.add_event(term.key, all, to);
        }
        // A parameter of an event (`core=?`) need not be a format of its own.
        if self.is_parameter(term.key, all) { Ok(()) } else { Err(self.no_term(term.key)) }
    }

    /// `event=0x3c`: puts the value into the bits of the term's format.
    fn set_bits(&self, format: &FormatBits, term: &Term<'_>, to: &mut Encoded) -> Result<(), EventErrorCause> {
        let value = match term.value {
            Some(_) => number(term)?,
            None if format.max() == 1 => 1,
            None => return Err(EventErrorCause::NeedsValue { term: term.key.to_owned() }),
        };
        if value > format.max() {
            return Err(EventErrorCause::TooLarge {
                pmu: self.name.clone(),
                term: term.key.to_owned(),
                value,
                max: format.max(),
            });
        }
        *format.field.of(&mut to.encoding) |= deposit(value, format.mask);
        Ok(())
    }

    /// `cpu/instructions/`, `cpu/r1a/`: an event of sysfs, a raw code, or one that perf knows.
    fn add_event(&self, name: &str, all: &[Term<'_>], to: &mut Encoded) -> Result<(), EventErrorCause> {
        if let Some(text) = self.event_terms(name) {
            to.unit = self.unit(name);
            return self.add_event_terms(name, &text, all, to);
        }
        if let Some(code) = syntax::raw_code(name) {
            to.encoding.config = code;
            return Ok(());
        }
        match symbols::find(name) {
            Some(symbol) if self.is_core() && symbol.encoding.pmu_type != symbols::SOFTWARE => {
                to.encoding = symbol.encoding;
                Ok(())
            }
            _ => Err(self.no_term(name)),
        }
    }

    fn add_event_terms(
        &self,
        name: &str,
        text: &str,
        all: &[Term<'_>],
        to: &mut Encoded,
    ) -> Result<(), EventErrorCause> {
        let bad = || EventErrorCause::BadSysfs { file: self.folder.join("events").join(name), text: text.to_owned() };
        let terms = syntax::parse_terms(text).map_err(|_| bad())?;
        for mut term in terms {
            if term.value == Some(TermValue::Text("?")) {
                let given = all.iter().find(|given| given.key == term.key);
                let missing = || EventErrorCause::NeedsParameter {
                    event: format!("{}/{name}/", self.name),
                    parameter: term.key.to_owned(),
                };
                term.value = Some(given.and_then(|given| given.value.clone()).ok_or_else(missing)?);
            }
            set_whole_config(&term, to)?;
            if !is_common(term.key) {
                // An event made of another event would let two files name each other for ever.
                let format = self.format(term.key)?.ok_or_else(bad)?;
                self.set_bits(&format, &term, to)?;
            }
        }
        Ok(())
    }

    fn is_parameter(&self, key: &str, all: &[Term<'_>]) -> bool {
        all.iter().filter(|term| term.value.is_none()).any(|event| {
            let text = self.event_terms(event.key).unwrap_or_default();
            let terms = syntax::parse_terms(&text).unwrap_or_default();
            terms.iter().any(|term| term.key == key && term.value == Some(TermValue::Text("?")))
        })
    }

    fn no_term(&self, term: &str) -> EventErrorCause {
        let mut known = machine::names(&self.folder.join("format"));
        known.extend(self.events());
        EventErrorCause::NoTerm { pmu: self.name.clone(), term: term.to_owned(), known }
    }
}

/// Whether any event takes the term, whatever its PMU.
fn is_common(key: &str) -> bool {
    matches!(key, "config" | "config1" | "config2" | "config3" | "name")
        || NOT_COUNTING.contains(&key)
        || key.starts_with('@')
}

/// Sets what `config=`, `config1=`, ... and `name=` say, and leaves any other term alone.
fn set_whole_config(term: &Term<'_>, to: &mut Encoded) -> Result<(), EventErrorCause> {
    if term.key == "name" {
        to.name = Some(match term.value {
            Some(TermValue::Text(text)) => text.to_owned(),
            Some(TermValue::Number(number)) => number.to_string(),
            None => return Err(EventErrorCause::NeedsValue { term: "name".to_owned() }),
        });
    } else if let Some(field) = Field::parse(term.key) {
        let value = if term.value.is_some() { number(term)? } else { 1 };
        *field.of(&mut to.encoding) = value;
    }
    Ok(())
}

/// Gives an event that no PMU's format describes (`cycles/name=c/`, `r1a/config1=2/`) its terms.
///
/// # Errors
/// Returns a term that isn't common to all events.
pub(super) fn add_common_terms(terms: &[Term<'_>], to: &mut Encoded) -> Result<(), EventErrorCause> {
    for term in terms {
        if let (Some(code), None) = (syntax::raw_code(term.key), &term.value) {
            to.encoding.config = code;
        } else if !is_common(term.key) {
            return Err(EventErrorCause::NoTerm {
                pmu: String::new(),
                term: term.key.to_owned(),
                known: ["config", "config1", "config2", "config3", "name"].map(String::from).to_vec(),
            });
        }
        set_whole_config(term, to)?;
    }
    Ok(())
}

fn number(term: &Term<'_>) -> Result<u64, EventErrorCause> {
    match term.value {
        Some(TermValue::Number(number)) => Ok(number),
        Some(TermValue::Text(text)) => {
            Err(EventErrorCause::NotANumber { term: term.key.to_owned(), text: text.to_owned() })
        }
        None => Err(EventErrorCause::NeedsValue { term: term.key.to_owned() }),
    }
}

/// One of the four words of an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Config,
    Config1,
    Config2,
    Config3,
}

impl Field {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "config" => Self::Config,
            "config1" => Self::Config1,
            "config2" => Self::Config2,
            "config3" => Self::Config3,
            _ => return None,
        })
    }

    fn of(self, encoding: &mut Encoding) -> &mut u64 {
        match self {
            Self::Config => &mut encoding.config,
            Self::Config1 => &mut encoding.config1,
            Self::Config2 => &mut encoding.config2,
            Self::Config3 => &mut encoding.config3,
        }
    }
}

/// Which bits a term sets: `config:0-7,32-35`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FormatBits {
    field: Field,
    mask: u64,
}

impl FormatBits {
    fn parse(text: &str) -> Option<Self> {
        let (field, ranges) = text.split_once(':')?;
        let mut mask = 0;
        for range in ranges.split(',') {
            let (low, high) = range.split_once('-').unwrap_or((range, range));
            let (low, high): (u32, u32) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
            if low > high || high > 63 {
                return None;
            }
            mask |= (u64::MAX >> (63 - (high - low))) << low;
        }
        Some(Self { field: Field::parse(field.trim())?, mask })
    }

    /// The largest value that fits.
    fn max(&self) -> u64 {
        u64::MAX.checked_shr(64 - self.mask.count_ones()).unwrap_or(0)
    }
}

/// Spreads the low bits of `value` over the bits of `mask`, from the lowest up.
fn deposit(mut value: u64, mask: u64) -> u64 {
    let mut spread = 0;
    for bit in (0..64).filter(|bit| mask >> bit & 1 == 1) {
        spread |= (value & 1) << bit;
        value >>= 1;
    }
    spread
}

/// Whether a file of sysfs has a text that [`FormatBits`] understands; for tests on real machines.
#[cfg(test)]
fn formats(folder: &std::path::Path) -> Vec<(String, Option<FormatBits>)> {
    let folder = folder.join("format");
    let read = |name: String| {
        let format = FormatBits::parse(&host::text(&folder.join(&name)).unwrap_or_default());
        (name, format)
    };
    machine::names(&folder).into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_split_format_takes_the_low_bits_first() {
        // AMD: the event's low byte in bits 0-7, its high nibble in bits 32-35.
        let format = FormatBits::parse("config:0-7,32-35");
        assert_eq!(format, Some(FormatBits { field: Field::Config, mask: 0xF_0000_00FF }));
        assert_eq!(format.map(|format| format.max()), Some(0xFFF));
        assert_eq!(deposit(0x28F, 0xF_0000_00FF), 0x2_0000_008F);
    }

    #[test]
    fn formats_at_the_edges() {
        assert_eq!(FormatBits::parse("config1:0-63").map(|f| f.max()), Some(u64::MAX));
        assert_eq!(FormatBits::parse("config:18").map(|f| f.mask), Some(1 << 18));
        assert_eq!(FormatBits::parse("config:63").map(|f| f.mask), Some(1 << 63));
        for bad in ["", "config", "config:", "config:7-0", "config:0-64", "config4:0", "config:a", "config:0-"] {
            assert_eq!(FormatBits::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn this_machine_has_formats_that_are_understood() {
        for pmu in all(&Machine::here()) {
            for (name, format) in formats(&pmu.folder) {
                assert!(format.is_some(), "{}/{name}", pmu.name);
            }
        }
    }

    proptest! {
        #[test]
        fn deposited_bits_come_back_in_order(value: u64, mask: u64) {
            let spread = deposit(value, mask);
            prop_assert_eq!(spread & !mask, 0);
            let kept = u64::MAX.checked_shr(64 - mask.count_ones()).unwrap_or(0) & value;
            let back = (0..64).filter(|bit| mask >> bit & 1 == 1).enumerate()
                .fold(0, |sum, (index, bit)| sum | (spread >> bit & 1) << index);
            prop_assert_eq!(back, kept);
        }

        #[test]
        fn any_format_text_is_read(text in ".{0,30}") {
            FormatBits::parse(&text);
        }
    }
}
