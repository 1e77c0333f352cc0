//! Opens the counters of a plan at every place of a target.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use nix::unistd::Pid;

use super::each_thread::{anew_while_others_start, each_thread};
use super::open::Opening;
use super::rotation::PmuRotations;
use super::target::{CountedTarget, CounterPlace, Start, TargetKind};
use super::{CounterRow, OpenError, OpenGroup, PlaceClock};
use crate::plan::{GroupIndex, Member, Plan};
use crate::sources::{Reading, Scope, Status, command};

/// For how long a process is attached to anew because a thread has a part of a group.
const TORN_PATIENCE: Duration = Duration::from_secs(2);

/// The open counters of a plan.
pub(super) struct Attached {
    pub(super) rows: Vec<CounterRow>,
    pub(super) groups: Vec<OpenGroup>,
    pub(super) clocks: Vec<PlaceClock>,
}

/// The opening of all counters of a plan.
pub(super) struct Attaching<'a> {
    plan: &'a Plan,
    target: &'a CountedTarget,
    rotations: &'a PmuRotations,
    /// The rows of each scope, one for each of the plan's members.
    rows: Vec<Vec<CounterRow>>,
    /// The place of each scope in that list.
    scopes: HashMap<Scope, usize>,
    groups: Vec<OpenGroup>,
    /// The scope that each group counts in, and the members whose rows are to be its own.
    members: Vec<(usize, Vec<Member>)>,
    clocks: Vec<PlaceClock>,
    began: Instant,
}

impl<'a> Attaching<'a> {
    /// Opens what can be opened in every place of the target.
    pub(super) fn all(
        plan: &'a Plan,
        target: &'a CountedTarget,
        rotations: &'a PmuRotations,
    ) -> Result<Attached, OpenError> {
        let (rows, scopes) = (Vec::new(), HashMap::new());
        let (groups, members, clocks) = (Vec::new(), Vec::new(), Vec::new());
        let began = Instant::now();
        let mut attaching = Self { plan, target, rotations, rows, scopes, groups, members, clocks, began };
        match attaching.target() {
            Ok(()) => Ok(attaching.in_order()),
            Err(stopped @ OpenError::Stopped(_)) => {
                if !attaching.groups.is_empty() {
                    // Closing takes as long as opening did; where nobody else can do it, leaving takes that long.
                    let _ = command::leave_closing_to_a_child();
                }
                Err(stopped)
            }
            Err(error) => {
                // A clock in each place, where there are any, and one counter for each unit of an event.
                let clocks = usize::from(!rotations.is_empty() || target.is_single_cpus_of_tasks());
                let in_each =
                    plan.members().map(|member| plan.event(member).units().len().max(1)).sum::<usize>() + clocks;
                Err(error.with_count(plan.width(), target.count_of_places(), in_each))
            }
        }
    }

    fn target(&mut self) -> Result<(), OpenError> {
        match &self.target.kind {
            TargetKind::Command(task) => self.task(*task),
            TargetKind::Threads(threads) => self.threads(threads),
            TargetKind::Processes(pids) => pids.iter().try_for_each(|&pid| self.process(pid)),
            TargetKind::Everyone | TargetKind::Cgroup(_) => self.places(self.target.places_of_all()?),
        }
    }

    /// Attaches to threads, unless all of them are gone.
    fn threads(&mut self, threads: &[Pid]) -> Result<(), OpenError> {
        let mut gone = None;
        for &thread in threads {
            match self.task(thread) {
                Err(OpenError::NoProcess(_)) => gone = gone.or(Some(OpenError::NoThread(thread))),
                other => other?,
            }
        }
        gone.filter(|_| self.groups.is_empty()).map_or(Ok(()), Err)
    }

    /// Attaches to all threads of a process.
    ///
    /// A thread that starts between the opening of a leader and of its siblings inherits a smaller group. The kernel
    /// then refuses to read the whole group (ECHILD) for as long as that thread lives, so attaching begins anew.
    fn process(&mut self, pid: Pid) -> Result<(), OpenError> {
        let before = [self.groups.len(), self.clocks.len(), self.rows.len()];
        anew_while_others_start(self.target.inherit, self.began, || self.threads_of(pid, before))?;
        let began = Instant::now();
        while began.elapsed() < TORN_PATIENCE && self.groups[before[0]..].iter_mut().any(OpenGroup::is_torn) {
            self.threads_of(pid, before)?;
        }
        Ok(())
    }

    /// Attaches to the threads that a process has now. Of groups, clocks and scopes only so many are left as were there
    /// before it.
    fn threads_of(&mut self, pid: Pid, [groups, clocks, scopes]: [usize; 3]) -> Result<(), OpenError> {
        self.groups.truncate(groups);
        self.members.truncate(groups);
        self.clocks.truncate(clocks);
        self.rows.truncate(scopes);
        self.scopes.retain(|_, scope| *scope < scopes);
        let attached = each_thread(pid, self.target.inherit, |thread| match self.task(thread) {
            Ok(()) => Ok(true),
            Err(OpenError::NoProcess(_)) => Ok(false),
            Err(error) => Err(error),
        });
        if attached? == 0 { Err(OpenError::NoProcess(pid)) } else { Ok(()) }
    }

    /// Attaches to a thread. The rows of one that is gone say so.
    fn task(&mut self, task: Pid) -> Result<(), OpenError> {
        let places = self.target.places_of(task)?;
        let scopes: Vec<_> = places.iter().map(|place| place.scope.clone()).collect();
        let opened = self.places(places);
        if let Err(OpenError::NoProcess(_)) = opened {
            let is_its =
                |row: &&mut CounterRow| matches!(row.scope, Scope::Thread { .. }) && scopes.contains(&row.scope);
            let rows = self.rows.iter_mut().flatten().filter(is_its).filter(|row| !row.status.is_open());
            rows.for_each(|row| row.status = Status::Gone);
        }
        opened
    }

    fn places(&mut self, places: Vec<CounterPlace>) -> Result<(), OpenError> {
        places.iter().try_for_each(|place| self.place(place))
    }

    fn place(&mut self, place: &CounterPlace) -> Result<(), OpenError> {
        let scope = self.scope(&place.scope);
        let rows = &mut self.rows[scope];
        let CountedTarget { start, inherit, ref probes, .. } = *self.target;
        let mut opening = Opening { plan: self.plan, place, start, inherit, probes, rows };
        let clock = self.clocks.len();
        let is_timed = place.is_one_cpu_of_a_task();
        if is_timed || !self.rotations.is_empty() {
            self.clocks.push(PlaceClock::new(opening.clock()?, place));
        }
        for (group, planned) in self.plan.groups.iter().enumerate() {
            let group = GroupIndex(group);
            // A group whose slice comes later is not even enabled by exec.
            self.target.stop.asked().map_or(Ok(()), |signal| Err(OpenError::Stopped(signal)))?;
            opening.start = if self.rotations.is_on(group) { start } else { Start::Later };
            for open in opening.group(planned)? {
                let last = vec![Reading::default(); open.members.len()];
                let clock = (is_timed || self.rotations.has(group)).then_some(clock);
                let (leader, siblings) = (open.leader, open.siblings);
                let (task, cpu) = (place.task(), place.whole_cpu());
                let is_of_unit = open.members.iter().any(|&member| !self.plan.event(member).units().is_empty());
                let is_read = false;
                self.groups.push(OpenGroup {
                    group,
                    clock,
                    leader,
                    siblings,
                    members: Vec::new(),
                    is_of_unit,
                    task,
                    cpu,
                    last,
                    is_read,
                });
                self.members.push((scope, open.members));
            }
        }
        Ok(())
    }

    /// The place of a scope; its rows are made when it is seen first.
    fn scope(&mut self, scope: &Scope) -> usize {
        if let Some(&known) = self.scopes.get(scope) {
            return known;
        }
        // What listens to some CPUs only is tried where those are.
        let untried = |cpus: &[u32]| if cpus.is_empty() { Status::NotSupported } else { Status::Elsewhere };
        let row = |member: Member| {
            let event = self.plan.event(member);
            let units = event.units().iter().map(|unit| untried(&unit.encoding.cpus)).collect();
            let (scope, status) = (scope.clone(), untried(&event.encoding.cpus));
            CounterRow { member, scope, status, units, not_inherited: None }
        };
        let new = self.rows.len();
        self.rows.push(self.plan.members().map(row).collect());
        self.scopes.insert(scope.clone(), new);
        new
    }

    /// The rows in the order of readings, all anchors behind all events, and the groups with their rows.
    fn in_order(self) -> Attached {
        let Self { plan, rows, mut groups, members, clocks, .. } = self;
        for (group, (scope, members)) in groups.iter_mut().zip(members) {
            group.members = members.into_iter().map(|member| plan.row(member, scope, rows.len())).collect();
        }
        let (anchors, mut ordered): (Vec<_>, Vec<_>) = rows.into_iter().flatten().partition(CounterRow::is_anchor);
        ordered.extend(anchors);
        Attached { rows: ordered, groups, clocks }
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::print_stdout,
        reason = "a panic is how a test fails; one that is skipped says why"
    )]

    use super::*;

    use super::super::PerfSource;
    use crate::events::{Encoding, Event, Machine, PmuUnit, Resolver};
    use crate::plan::Cohesion;
    use crate::sources::{CounterSource, Next};

    #[test]
    fn nothing_more_is_opened_once_a_signal_has_come() {
        let events = Resolver::new(Machine::here()).called("task-clock");
        let plan = Plan::of_group(events, Cohesion::Chosen);
        let target = CountedTarget::alone(TargetKind::Threads(vec![nix::unistd::gettid()]));
        target.stop.ask(15);
        let opened = Attaching::all(&plan, &target, &PmuRotations::new(Vec::new(), 0.01));
        assert!(matches!(opened, Err(OpenError::Stopped(15))));
    }

    /// An event on made-up units of these types: 1 is that of software events, and one that no PMU has is refused.
    fn on_units(event: &Event, types: &[u32], cpus: &[u32]) -> Event {
        let mut event = event.clone();
        let config = event.encoding.config;
        let unit = |(number, &pmu_type): (usize, &u32)| {
            let encoding = Encoding { pmu_type, config, cpus: cpus.to_vec(), ..Encoding::default() };
            PmuUnit { pmu: format!("unit_{number}"), encoding }
        };
        event.encoding.units = types.iter().enumerate().map(unit).collect();
        event.encoding.cpus = cpus.to_vec();
        event
    }

    #[test]
    fn counts_of_units_add_up_and_one_that_is_refused_is_told() {
        const SWITCHES: u32 = 20;
        let [switches] = Resolver::new(Machine::here()).called("context-switches").try_into().unwrap();
        let (sum, part) = (on_units(&switches, &[1, 1], &[]), on_units(&switches, &[1, u32::MAX], &[]));
        let plan = Plan::of_group(vec![switches, sum, part], Cohesion::Chosen);
        let target = CountedTarget::alone(TargetKind::Threads(vec![nix::unistd::gettid()]));
        let mut source = PerfSource::open(&plan, &target).unwrap();
        if !source.rows()[0].status.is_open() {
            return println!("skipped: this user may not count context switches");
        }
        let units: Vec<_> = source.rows().iter().map(|row| row.units.clone()).collect();
        let (open, refused) = (Status::Counted, Status::NotSupported);
        assert_eq!(units, [vec![], vec![open.clone(), open.clone()], vec![open, refused]]);
        assert_eq!(source.rows().iter().map(CounterRow::is_whole).collect::<Vec<_>>(), [true, true, false]);
        source.enable();
        for _ in 0..SWITCHES {
            std::thread::sleep(std::time::Duration::from_micros(50));
        }
        let Next::Round(round) = source.read() else { panic!() };
        let [Some(one), Some(sum), Some(part)] = round.readings[..] else { panic!("{round:?}") };
        assert!(one.count >= SWITCHES.into());
        assert_eq!((part.count, part.enabled), (one.count, one.enabled), "read together");
        // The second unit is another group, read some time later.
        assert!(sum.count >= one.count + u64::from(SWITCHES) && sum.running <= sum.enabled);
        assert!(round.uncounted.is_empty());
    }

    #[test]
    fn a_pmu_is_opened_on_the_cpus_that_it_listens_to() {
        let [clock] = Resolver::new(Machine::here()).called("cpu-clock").try_into().unwrap();
        let (here, nowhere) = (on_units(&clock, &[1, 1], &[0]), on_units(&clock, &[1, 1], &[u32::MAX]));
        let both = Event { encoding: here.encoding.clone(), ..nowhere.clone() };
        let plan = Plan::of_group(vec![here, nowhere, both], Cohesion::Chosen);
        let source = match PerfSource::open(&plan, &CountedTarget::alone(TargetKind::Everyone)) {
            Ok(source) if source.rows()[0].status != Status::Forbidden => source,
            _ => return println!("skipped: this user may not count whole CPUs"),
        };
        let statuses: Vec<_> = source.rows().iter().map(|row| row.status.clone()).collect();
        assert_eq!(statuses, [Status::Counted, Status::Elsewhere, Status::Counted]);
        assert!(!source.rows()[1].is_whole());
        // Two units, on one CPU of however many.
        assert_eq!(source.groups.len(), 2);
    }
}
