//! Prints what stands out in a measurement, and what its reader should know of it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::wrapped;
use crate::diagnosis::{Diagnosis, DiagnosisRule, EvidenceScreen, nothing};
use crate::monitor::{Monitor, Severity};
use crate::names::shown;

/// Columns of the margin.
const MARGIN: usize = 11;

/// Where the screens are that show more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvidenceScreens {
    /// `perfprop top` shows them, with a profile.
    Top,
    /// `perfprop replay` does, of a recording that has a profile.
    Replay,
    /// The same of one without.
    ReplayWithoutProfile,
}

impl EvidenceScreens {
    fn words(self, screen: EvidenceScreen) -> String {
        let key = || format!("key {} ({})", screen.key(), screen.name());
        match (self, screen) {
            (Self::ReplayWithoutProfile, EvidenceScreen::Profile) => {
                "perfprop record -g says in which functions".into()
            }
            (Self::Top, _) => format!("{} of perfprop top", key()),
            (Self::Replay | Self::ReplayWithoutProfile, _) => format!("{} of perfprop replay", key()),
        }
    }
}

/// A paragraph for each, with its reason, below a title. They are of this monitor.
pub fn diagnoses(all: &[Diagnosis], monitor: &Monitor, screens: EvidenceScreens) -> String {
    let mut text = String::from("\n What stands out:\n\n");
    if all.is_empty() {
        text.push_str(&format!("   {}\n", nothing(monitor)));
    }
    for one in all {
        let word = if one.rule.is_fault() { "warning" } else { "note" };
        let why = format!("why: {} ({})", one.why, one.rule.name());
        let sure = format!("how sure: {}", one.sure);
        let more = format!("more: {}", screens.words(one.rule.screen()));
        for (margin, sentence) in [(word, &one.text), ("", &why), ("", &sure), ("", &more)] {
            let lines = wrapped(sentence, MARGIN);
            text.push_str(&format!("   {margin:<width$}{lines}\n", width = MARGIN - 3));
        }
    }
    text
}

/// A line of JSON:
/// `{"stands_out": [{"rule": ..., "fault": ..., "text": ..., "why": ..., "sure": ..., "screen": ..., "key": ...}]}`.
pub fn json_diagnoses(all: &[Diagnosis]) -> String {
    let one = |one: &Diagnosis| {
        json!({
            "rule": one.rule.name(),
            "fault": one.rule.is_fault(),
            "text": one.text,
            "why": one.why,
            "sure": one.sure,
            "screen": one.rule.screen().name(),
            "key": one.rule.screen().key(),
        })
    };
    let all: Vec<Value> = all.iter().map(one).collect();
    format!("{}\n", json!({"stands_out": all}))
}

/// What was printed of warnings and of what stands out, so that each is printed once.
#[derive(Clone, Debug, Default)]
pub struct PrintedNews {
    findings: usize,
    rules: BTreeSet<DiagnosisRule>,
}

impl PrintedNews {
    /// A line for each warning, and for all that stands out, that wasn't printed before.
    pub fn since(&mut self, monitor: &Monitor, standing_out: &[Diagnosis]) -> String {
        let new = monitor.findings().get(self.findings..).unwrap_or_default();
        self.findings = monitor.findings().len();
        let warnings = new.iter().map(|noted| &noted.finding).filter(|finding| finding.severity() == Severity::Warning);
        let warning = |finding: &crate::monitor::Finding| {
            format!("warning: {} {}\n", finding.code(), shown(&finding.words(monitor).to_string()))
        };
        let mut text: String = warnings.map(warning).collect();
        for one in standing_out.iter().filter(|one| self.rules.insert(one.rule)) {
            let word = if one.rule.is_fault() { "warning" } else { "note" };
            text.push_str(&format!("{word}: {} ({})\n", one.text, one.rule.name()));
        }
        text
    }
}
