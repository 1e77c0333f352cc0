//! Writes regressions as an Atom feed (RFC 4287).

use super::Site;
use super::entries::SiteSeries;
use super::index::{SiteIndex, SiteRise};
use crate::files::hash_of_name;
use crate::history::{ADDED, NANOSECONDS, SECONDS};
use crate::names::{markup, shown};
use crate::number::{change, rfc_3339, si, time};
use crate::steps::Regression;
use crate::text::left;

/// The newest regressions are in the feed, so many of them.
const MOST: usize = 200;

/// The feed. Its identifiers are made of what doesn't change from one publish to the next: the first commit of the history,
/// the benchmark with its machine, and the commit.
pub(super) fn atom(site: &Site<'_>, index: &SiteIndex<'_>) -> String {
    let title = markup(&site.options.title);
    let root = site.history.first().map_or("", |commit| &commit.hash);
    let updated = site.commits.last().map_or(0, |one| one.commit.date);
    let address = site.options.address.as_deref().map(|address| format!("{}/", address.trim_end_matches('/')));
    let to = |rest: &str| markup(&format!("{}{rest}", address.as_deref().unwrap_or_default()));
    let own = match &address {
        Some(_) => format!("  <link rel=\"self\" href=\"{}\"/>\n", to("regressions.xml")),
        None => String::new(),
    };
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">\n  \
         <title>{title}: regressions</title>\n  <id>{}</id>\n  <updated>{}</updated>\n  \
         <author><name>{title}</name></author>\n  <generator>perfprop</generator>\n  \
         <link rel=\"alternate\" type=\"text/html\" href=\"{}\"/>\n{own}",
        urn(&[root]),
        rfc_3339(updated),
        to("index.html#/regressions"),
    );
    for rise in index.rises.iter().take(MOST) {
        out += &entry(site, rise, root, &to);
    }
    out + "</feed>\n"
}

fn entry(site: &Site<'_>, one: &SiteRise<'_>, root: &str, to: &impl Fn(&str) -> String) -> String {
    let (Some(before), Some(at)) = (site.at(one.rise.before as u64), site.at(one.revision())) else {
        return String::new();
    };
    let number = |value: f64| told(value, &one.series.unit);
    let params = one.series.params.iter().map(|(name, value)| format!("{name}={}", value.as_deref().unwrap_or("-")));
    let params = params.collect::<Vec<_>>().join("\n");
    let line = &one.line().entry;
    let on = measured_on(one.series, &site.series);
    let which = match one.revision() - one.rise.before as u64 {
        1 => format!("commit {}: {}", at.short(), at.subject),
        between => format!("one of {between} commits, {}..{}, up to: {}", before.short(), at.short(), at.subject),
    };
    let Regression { value_before, value_after, best_after, .. } = one.rise;
    let (from, to_level) = (number(value_before), number(value_after));
    let left = left(value_before, value_after, best_after);
    let left = left.map_or_else(String::new, |left| format!(" ({left}, {})", number(best_after)));
    format!(
        "  <entry>\n    <title>{}</title>\n    <id>{}</id>\n    <updated>{}</updated>\n    \
         <link rel=\"alternate\" type=\"text/html\" href=\"{}\"/>\n    <content type=\"text\">{}</content>\n  </entry>\n",
        markup(&format!("{line} {} at {}", change(one.part()), at.short())),
        urn(&[root, &one.series.benchmark, line, &params, &at.hash]),
        rfc_3339(at.date),
        to(&format!("index.html#/commit/{}", at.hash)),
        markup(&format!("{line}{on} went from {from} to {to_level}, by {which}{left}")),
    )
}

/// The machine of a series, and what tells it from others of the same benchmark there: ` on m (build make)`.
fn measured_on(one: &SiteSeries, all: &[SiteSeries]) -> String {
    let machine = |of: &SiteSeries| of.params.get("machine").cloned().flatten().unwrap_or_default();
    let same = || all.iter().filter(|other| other.benchmark == one.benchmark && machine(other) == machine(one));
    let mut words: Vec<String> = Vec::new();
    for (name, value) in &one.differing {
        let word = match value.as_deref() {
            Some(ADDED) => ADDED.to_owned(),
            value => format!("{name} {}", value.unwrap_or("not set")),
        };
        if same().any(|other| other.differing.get(name) != Some(value)) && !words.contains(&word) {
            words.push(word);
        }
    }
    let on = if machine(one).is_empty() { String::new() } else { format!(" on {}", machine(one)) };
    if words.is_empty() { on } else { format!("{on} ({})", words.join(", ")) }
}

/// A number with its unit.
fn told(value: f64, unit: &str) -> String {
    match unit {
        SECONDS => time(value * 1e9),
        NANOSECONDS => time(value),
        "" => si(value),
        unit => format!("{} {}", si(value), shown(unit)),
    }
}

/// An identifier made of texts: a UUID of version 8 (RFC 9562), whose bits are hashes.
fn urn(parts: &[&str]) -> String {
    let hash = |salt: &str| hash_of_name(&format!("{salt}\0{}", parts.join("\0")));
    let (high, low) = (hash("regressions"), hash("perfprop"));
    format!(
        "urn:uuid:{:08x}-{:04x}-8{:03x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        0x8000 | ((low >> 48) & 0x3fff),
        low & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_uuids_of_their_own() {
        let id = urn(&["a", "b"]);
        assert!(id != urn(&["ab"]) && id != urn(&["a", "c"]) && id == urn(&["a", "b"]));
        let parts: Vec<&str> = id.trim_start_matches("urn:uuid:").split('-').collect();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        assert!(parts[2].starts_with('8') && parts[3].starts_with(['8', '9', 'a', 'b']), "{id}");
    }

    #[test]
    fn series_of_one_machine_are_told_apart() {
        let series = |machine: &str, build: &str| SiteSeries {
            stem: String::new(),
            benchmark: "b".into(),
            unit: String::new(),
            param_names: Vec::new(),
            params: [("machine".to_owned(), Some(machine.to_owned()))].into(),
            differing: [("build", build), ("machine", machine)]
                .map(|(name, value)| (name.into(), Some(value.into())))
                .into(),
            revisions: Vec::new(),
            lines: Vec::new(),
        };
        let all = [series("m", "make"), series("m", ADDED), series("n", "make")];
        let told: Vec<String> = all.iter().map(|one| measured_on(one, &all)).collect();
        assert_eq!(told, [" on m (build make)", " on m (added)", " on n"]);
    }

    #[test]
    fn numbers_have_their_units() {
        assert_eq!((told(0.0671, SECONDS), told(1500.0, NANOSECONDS)), ("67.1 ms".into(), "1.50 µs".into()));
        assert_eq!((told(1.2e6, "page-faults"), told(12.0, "")), ("1.20M page-faults".into(), "12".into()));
    }
}
