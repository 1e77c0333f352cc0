//! Explains why something can't be counted on a machine: facts, each with the command that mends it.
//!
//! ```no_run
//! # extern crate perfprop_core as perfprop;
//! use perfprop::machine::{FactStanding, Host, ThisKernel, facts};
//!
//! for fact in facts(&Host::here(), &ThisKernel) {
//!     if fact.standing != FactStanding::Ok {
//!         println!("{}: {} {:?}", fact.name, fact.found, fact.fix);
//!     }
//! }
//! ```
//!
//! [`Host`] reads files and [`Kernel`] answers questions, so tests make machines of both.

use serde::Serialize;
use serde_json::Value;

mod counters;
mod facts;
mod host;
mod layers;
mod run_ratio;

pub use counters::{Counters, measure};
pub use facts::facts;
pub use host::{Capability, Host, Limit, Process};
pub use layers::{Denial, EventVerdict, Kernel, ThisKernel, target_denial, verdict};
pub use run_ratio::{Waiting, ratios};

/// Something found on a machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MachineFact {
    /// Section of the report.
    pub section: ReportSection,
    /// Name of the fact, the same in every version.
    pub name: &'static str,
    /// What was found, for people.
    pub found: String,
    /// What was found, for programs: a number, a text, a list; null where nothing was.
    pub value: Value,
    /// How good or bad the fact is for counting.
    pub standing: FactStanding,
    /// Why it matters for counting.
    pub why: &'static str,
    /// The command that mends it, where something has to be mended and can be.
    pub fix: Option<String>,
}

/// Sections of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReportSection {
    /// The machine itself.
    Machine,
    /// What this user may do.
    Permissions,
    /// What can be counted, by trying.
    Counting,
    /// The counters of the CPUs.
    Hardware,
    /// Other limits.
    Limits,
}

impl ReportSection {
    /// Heading of the section.
    pub fn title(self) -> &'static str {
        match self {
            Self::Machine => "Machine",
            Self::Permissions => "Permissions",
            Self::Counting => "What can be counted (tried)",
            Self::Hardware => "Hardware counters",
            Self::Limits => "Limits",
        }
    }
}

/// Whether what was found is well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FactStanding {
    /// Nothing is wrong.
    Ok,
    /// It couldn't be found out.
    Unknown,
    /// Something can't be counted, or less well.
    Warn,
    /// Nothing can be counted.
    Fail,
}

impl FactStanding {
    /// The word for it in texts.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unknown => "?",
            Self::Warn => "warn",
            Self::Fail => "FAIL",
        }
    }
}

impl MachineFact {
    fn new(section: ReportSection, name: &'static str, why: &'static str) -> Self {
        let (found, value) = ("not known".to_owned(), Value::Null);
        Self { section, name, found, value, standing: FactStanding::Unknown, why, fix: None }
    }

    fn found(self, standing: FactStanding, value: impl Into<Value>, found: impl Into<String>) -> Self {
        Self { standing, value: value.into(), found: found.into(), ..self }
    }

    fn ok(self, value: impl Into<Value>, found: impl Into<String>) -> Self {
        self.found(FactStanding::Ok, value, found)
    }

    fn warn(self, value: impl Into<Value>, found: impl Into<String>) -> Self {
        self.found(FactStanding::Warn, value, found)
    }

    fn fix(self, command: impl Into<String>) -> Self {
        Self { fix: Some(command.into()), ..self }
    }
}
