//! Gathers what rules look at: counts over a time, and threads.

use std::borrow::Cow;

use super::{LookBack, SampledFacts, SampledSpace};
use crate::events::Event;
use crate::monitor::{FirstMinute, Monitor, Row, ThreadUses};
use crate::rates::{Error, Uncertain};
use crate::run::MeasuredTarget;
use crate::sources::Scope;
use crate::units::WallNs;

/// Threads tell nothing of a shorter time.
pub(super) const LEAST_TIME: WallNs = WallNs(500_000_000);

/// A sentence, what it rests on, and how sure that is.
pub(super) struct Said {
    pub(super) text: String,
    pub(super) why: String,
    pub(super) sure: String,
}

/// What a rule says; `None` where it doesn't hold.
pub(super) type RuleResult = Option<Said>;

/// What rules look at.
pub(super) struct Evidence<'a> {
    pub(super) monitor: &'a Monitor,
    pub(super) sampled: SampledFacts<'a>,
    /// What the threads did; `None` where they aren't read, or not for long enough.
    pub(super) threads: Option<ThreadUses<'a>>,
    /// The CPUs that the target was on: those of threads, or more where counters tell of processes that no check finds.
    /// 0 where threads aren't known.
    pub(super) running: f64,
    /// How many CPUs the machine has.
    pub(super) cpus: f64,
    pub(super) span: LookBack,
}

/// How often an event happened in a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Happened<'a> {
    pub(super) event: &'a Event,
    pub(super) count: Uncertain,
    /// CPU time that passed, in seconds; `None` where it isn't known.
    pub(super) cpu_seconds: Option<f64>,
    /// The time in which it passed.
    pub(super) seconds: f64,
}

/// CPU time as the kernel splits it, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SplitCpuTime {
    pub(super) user: f64,
    pub(super) kernel: f64,
    /// The time in which it passed.
    pub(super) seconds: f64,
}

impl Happened<'_> {
    /// The user's name of the event, ready for a screen.
    pub(super) fn name(&self) -> Cow<'_, str> {
        crate::names::shown(&self.event.name)
    }

    /// The lower end of the count's interval; `None` where it isn't known.
    pub(super) fn least(&self) -> Option<f64> {
        self.count.bounds().map(|(least, _)| least)
    }

    /// The least that the count is for each of another, by the ends of both intervals.
    pub(super) fn least_per(&self, other: &Self) -> Option<f64> {
        let (_, most) = other.count.bounds()?;
        (most > 0.0).then_some(self.least()? / most)
    }
}

impl<'a> Evidence<'a> {
    pub(super) fn new(monitor: &'a Monitor, span: LookBack, sampled: SampledFacts<'a>) -> Self {
        let time = match span {
            LookBack::Last(time) => time,
            LookBack::Run => WallNs(u64::MAX),
        };
        let threads = monitor.thread_uses(time).filter(|uses| uses.seconds >= LEAST_TIME.as_secs());
        let running = threads.as_ref().map_or(0.0, |uses| monitor.more_counted_cpus(uses).unwrap_or(uses.cpus));
        Self { monitor, sampled, threads, running, cpus: monitor.header().machine.cpus.max(1) as f64, span }
    }

    /// The event of this name that is counted for all of the target.
    pub(super) fn row(&self, name: &str) -> Option<Row<'a>> {
        self.rows().find(|row| row.event.event.is_called(name))
    }

    /// What an event counted in the first minute, if the time that is looked at lies behind that.
    pub(super) fn first_minute(&self, name: &str) -> Option<&'a FirstMinute> {
        let LookBack::Last(time) = self.span else { return None };
        let minute = self.row(name)?.first_minute;
        let is_behind = minute.is_over() && self.monitor.shown_time() >= minute.length + time;
        is_behind.then_some(minute)
    }

    /// The first of these events that is counted for all of the target.
    pub(super) fn happened(&self, names: &[&str]) -> Option<Happened<'a>> {
        names.iter().find_map(|name| self.happened_in(&self.row(name)?))
    }

    /// The CPU time in user space and in the kernel: of a command that has ended, with its children, else by the events
    /// that count it. A model's is not the command's.
    pub(super) fn split_cpu_time(&self) -> Option<SplitCpuTime> {
        if self.monitor.header().modelled.is_some() {
            return None;
        }
        let ended = self.monitor.ended().filter(|_| self.span == LookBack::Run);
        if let Some((end, time)) = ended.and_then(|end| Some((end, end.cpu_time?))) {
            let (user, kernel) = (time.user_ns.as_secs(), time.system_ns.as_secs());
            return Some(SplitCpuTime { user, kernel, seconds: end.at_ns.as_secs() });
        }
        let (user, kernel) = (self.happened(&["user_time"])?, self.happened(&["system_time"])?);
        let seconds = |time: &Happened<'_>| time.count.value / 1e9;
        Some(SplitCpuTime { user: seconds(&user), kernel: seconds(&kernel), seconds: user.seconds })
    }

    /// The event of this name that is counted for all of the target, where another is: in the same of user space and
    /// kernel, on the same kind of core.
    pub(super) fn happened_beside(&self, event: &Event, name: &str) -> Option<Happened<'a>> {
        let is_beside = |row: &Row<'_>| row.event.event.is_called(name) && row.event.event.counts_beside(event);
        self.happened_in(&self.rows().find(is_beside)?)
    }

    fn happened_in(&self, row: &Row<'a>) -> Option<Happened<'a>> {
        let (count, cpu_seconds, seconds) = self.count(row)?;
        Some(Happened { event: &row.event.event, count, cpu_seconds: self.used(cpu_seconds, seconds), seconds })
    }

    /// The CPU time that the target used. That of a whole machine's counters passes on idle CPUs too, so what its
    /// threads used stands for it.
    fn used(&self, counted: f64, seconds: f64) -> Option<f64> {
        let used = match self.monitor.header().target {
            MeasuredTarget::Everyone { cpus: None } => self.threads.as_ref()?.cpus * seconds,
            MeasuredTarget::Everyone { cpus: Some(_) } => return None,
            _ => counted,
        };
        Some(used).filter(|used| *used > 0.0)
    }

    /// Whether the CPU time of counters passes while the target runs, and not on idle CPUs too.
    pub(super) fn counts_busy_time(&self) -> bool {
        !matches!(self.monitor.header().target, MeasuredTarget::Everyone { .. })
    }

    /// The events that are counted for all of the target.
    fn rows(&self) -> impl Iterator<Item = Row<'a>> {
        self.monitor.rows().filter(|row| row.event.scope == Scope::All)
    }

    /// The count, and the CPU time and the time that it is of.
    fn count(&self, row: &Row<'_>) -> Option<(Uncertain, f64, f64)> {
        let time = match self.span {
            LookBack::Run => {
                return Some((row.best()?, row.cpu_time.as_secs(), self.monitor.counted_for().as_secs()));
            }
            LookBack::Last(time) => time,
        };
        let since = WallNs(self.monitor.closed_at().0.saturating_sub(time.0));
        let points: Vec<_> = row.history.iter().filter(|point| point.at > since).collect();
        // An interval without a number leaves the sum unknown.
        let counts = points.iter().map(|point| point.best()).collect::<Option<Vec<_>>>()?;
        let count = Uncertain {
            value: counts.iter().map(|count| count.value).sum(),
            error: Error::of_sum(counts.iter().map(|count| count.error)),
        };
        let cpu_seconds = points.iter().map(|point| point.cpu_time.as_secs()).sum();
        let seconds = points.iter().map(|point| point.length.as_secs()).sum();
        (!counts.is_empty()).then_some((count, cpu_seconds, seconds))
    }

    /// `, 95% in f`: where most samples were taken, if that is most of them; `, 95% of the samples of 60 s in f` where
    /// these are of a longer time than is looked at; `, 95% of user-space samples in f` where others weren't taken.
    pub(super) fn mostly_in(&self) -> String {
        let Some(hot) = self.sampled.hot.filter(|hot| hot.share >= 0.5) else { return String::new() };
        let over = self.sampled.over;
        let of = match self.span {
            LookBack::Last(time) if over.0 > 2 * time.0 => format!(" of {:.0} s", over.as_secs()),
            LookBack::Last(_) | LookBack::Run => String::new(),
        };
        let samples = match hot.space {
            SampledSpace::All if of.is_empty() => "",
            SampledSpace::All => " of the samples",
            SampledSpace::User => " of user-space samples",
        };
        format!(", {:.0}%{samples}{of} in {}", 100.0 * hot.share, crate::names::shown(&hot.name))
    }
}
