//! A machine in, every event that it can name out.

use super::machine::Machine;
use super::symbols::{self, Symbol};
use super::{glob, pmu, presets, tracepoints};

/// Every name that [`Resolver::parse`](super::Resolver::parse) takes without slashes, for
/// suggestions: some thousands.
pub(super) fn names(machine: &Machine) -> Vec<String> {
    let mut names: Vec<String> = presets::all().iter().map(|preset| preset.name.clone()).collect();
    names.extend(symbols::ROWS.iter().flat_map(|row| row.names).map(|name| (*name).to_owned()));
    names.extend(symbols::caches().map(|symbol: Symbol| symbol.canonical));
    names.extend(pmu::all(machine).iter().flat_map(pmu::Pmu::events));
    if let Ok(events) = machine.tracepoints() {
        names.extend(tracepoints::names(&events));
    }
    #[cfg(feature = "pfm")]
    if machine.has_libpfm() {
        names.extend(super::pfm::names());
    }
    names
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
