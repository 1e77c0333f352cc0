//! Answers what metrics ask of a machine: how many CPUs there are, whether it has an event.
//!
//! The names and their meaning are those of perf 6.12 (`util/expr.c`, `expr__get_literal`).

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::PathBuf;

use crate::events::{Event, Machine, Resolver};
use crate::expr::Fact;
use crate::host;

/// How much of the machine is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasuredScope {
    /// Some processes, threads or CPUs.
    Part,
    /// The whole system.
    Whole,
}

/// What is known of a machine before anything is counted.
pub struct Facts<'a> {
    resolver: &'a Resolver,
    scope: MeasuredScope,
    /// Metrics name the same events again and again, and looking one up may ask libpfm.
    events: RefCell<HashMap<String, Vec<Event>>>,
}

impl<'a> Facts<'a> {
    /// The facts of the machine whose events the resolver knows.
    pub fn new(resolver: &'a Resolver, scope: MeasuredScope) -> Self {
        Self { resolver, scope, events: RefCell::default() }
    }

    /// The fact as a number, not negative; `None` if the machine doesn't say it.
    pub fn know(&self, fact: &Fact) -> Option<f64> {
        match fact {
            Fact::Literal(name) => self.literal(name),
            Fact::HasEvent(name) => Some(if self.count(name) > 0 { 1.0 } else { 0.0 }),
            Fact::SourceCount(name) => Some(self.count(name) as f64),
            Fact::CpuIs(pattern) => Some(if self.machine().is_cpu(pattern) { 1.0 } else { 0.0 }),
        }
    }

    /// The events that a name in a formula stands for, several where several units count it; none where
    /// it isn't known here. The vendors write some of sysfs' names in capitals.
    pub fn events(&self, name: &str) -> Vec<Event> {
        if let Some(known) = self.events.borrow().get(name) {
            return known.clone();
        }
        let mut events = self.resolver.called(name);
        if events.is_empty() {
            events = self.resolver.called(&name.to_lowercase());
        }
        self.events.borrow_mut().insert(name.to_owned(), events.clone());
        events
    }

    /// How many units count the event.
    fn count(&self, name: &str) -> usize {
        let events = self.events(name);
        let known = events.iter().filter(|event| event.unavailable().is_none());
        known.map(|event| event.units().len().max(1)).sum()
    }

    fn machine(&self) -> &Machine {
        self.resolver.machine()
    }

    fn literal(&self, name: &str) -> Option<f64> {
        let flag = |is: bool| if is { 1.0 } else { 0.0 };
        match name {
            "num_cpus" => Some(self.cpus().len() as f64),
            "num_cpus_online" => Some(self.online().len() as f64),
            "num_cores" => self.distinct(&["physical_package_id", "die_id", "core_id"]),
            "num_dies" => self.distinct(&["physical_package_id", "die_id"]),
            "num_packages" => self.distinct(&["physical_package_id"]),
            "smt_on" => Some(flag(self.has_smt())),
            // What one of a core's threads does is the core's when the other one is counted too.
            "core_wide" => Some(flag(!self.has_smt() || self.scope == MeasuredScope::Whole)),
            "has_pmem" => Some(flag(self.machine().has_pmem())),
            "slots" => self.slots(),
            "system_tsc_freq" => self.tsc_frequency(),
            _ => None,
        }
    }

    fn cpus(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.machine().cpus()).into_iter().flatten().flatten();
        let is_cpu = |name: &str| {
            name.strip_prefix("cpu").is_some_and(|id| !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit()))
        };
        entries.filter(|entry| entry.file_name().to_str().is_some_and(is_cpu)).map(|entry| entry.path()).collect()
    }

    /// The folders of the CPUs that are online, which alone have a topology.
    fn online(&self) -> Vec<PathBuf> {
        self.cpus().into_iter().filter(|cpu| cpu.join("topology").is_dir()).collect()
    }

    /// How many different values the CPUs have in these files; dies are unknown to some kernels.
    fn distinct(&self, files: &[&str]) -> Option<f64> {
        let read = |cpu: &PathBuf, file: &&str| host::text(&cpu.join("topology").join(file)).unwrap_or_default();
        let ids = |cpu: PathBuf| files.iter().map(|file| read(&cpu, file)).collect::<Vec<_>>();
        let distinct: BTreeSet<_> = self.online().into_iter().map(ids).collect();
        (!distinct.is_empty()).then_some(distinct.len() as f64)
    }

    /// Whether cores run several threads.
    pub(super) fn has_smt(&self) -> bool {
        host::text(&self.machine().cpus().join("smt/active")).is_ok_and(|active| active == "1")
    }

    /// Arm's slots per cycle, which the PMU of the core reports.
    fn slots(&self) -> Option<f64> {
        let pmus = fs::read_dir(self.machine().devices()).ok()?.flatten();
        let slots = pmus.filter_map(|pmu| number(&host::text(&pmu.path().join("caps/slots")).ok()?)).next();
        slots.filter(|&slots| slots > 0.0)
    }

    /// The frequency of x86's time stamps: the kernel's, or that in the name of the CPU.
    fn tsc_frequency(&self) -> Option<f64> {
        let kernel = host::text(&self.machine().cpus().join("cpu0/tsc_freq_khz")).ok();
        let told = kernel.and_then(|text| Some(number(&text)? * 1e3));
        told.or_else(|| {
            let info = host::text(self.machine().cpuinfo()).ok()?;
            let (_, frequency) = host::field(&info, "model name")?.rsplit_once('@')?;
            Some(frequency.trim().strip_suffix("GHz")?.trim().parse::<f64>().ok()? * 1e9)
        })
    }
}

fn number(text: &str) -> Option<f64> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok().map(f64::from),
        None => text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0),
    }
}
