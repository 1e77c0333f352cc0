//! Tests the list of threads, and the lines that say what stands out.

#![cfg(feature = "tui")]

use std::sync::Arc;
use std::thread;

use crossbeam_channel::{Receiver, bounded, never};
use perfprop::estimate::EstimatorKind;
use perfprop::events::{Event, EventKind, Unit};
use perfprop::host::{DiskBytes, MachineResources};
use perfprop::monitor::Monitor;
use perfprop::profile::{Tree, TreeOptions};
use perfprop::recording;
use perfprop::run::{End, Header, MeasuredTarget};
use perfprop::sampling::SamplerMessage;
use perfprop::session::OutputLine;
use perfprop::sources::{Reading, Round};
use perfprop::stacks::{
    FirstLevel, Gathered, ProfileSpan, Rate, RegionsToCome, SampledEvent, SamplingSetup, StackBatch, StackFrame,
    StackFrameId, StackId, StackNode, StackQuality, StackSample, Task, TaskId, UnwindMethod,
};
use perfprop::threads::{EndedProcesses, ProcessDetails, ThreadLooks, ThreadReading, ThreadSnapshot};
use perfprop::tui::{
    self, Feed, GlyphSet, Mode, Picture, ReplayedEnding, Scene, Screen, ScreenOptions, Terminal, TerminalScript,
};
use perfprop::units::{CpuNs, WallNs};
use ratatui::crossterm::event::{MouseButton, MouseEventKind};

use crate::builders::{self, SECOND, event, measured, software_event};
use crate::folders::Folder;
use crate::goldens::assert_golden;

const SECONDS: u64 = 12;

fn header() -> Header {
    let clock = Event { unit: Unit::Nanoseconds, ..software_event("task-clock") };
    let mut header = Header {
        perfprop: "0.1.0".into(),
        target: MeasuredTarget::Command { argv: vec!["./server".into()], pid: 4121 },
        ..builders::header([clock, event("instructions"), event("LLC-load-misses")].map(measured))
    };
    header.machine.cpus = 4;
    header
}

/// A server whose four workers share a lock, with a thread that writes a log and one with a name to be wary of.
fn snapshot(second: u64) -> ThreadSnapshot {
    let thread = |tid: i32, name: &str, cpu: f64, looks: &[(char, &str, u32)]| ThreadReading {
        pid: 4121,
        tid,
        name: name.into(),
        began: 100,
        cpu_ns: CpuNs((cpu * second as f64 * 1e9) as u64),
        faults: (cpu * 1000.0) as u64 * second,
        switches: Some(tid as u64 % 10 * 100 * second),
        delay_ns: Some(CpuNs(second * 10_000_000)),
        children_ns: CpuNs(0),
        resident: if tid == 4121 { 312 << 20 } else { 0 },
        process: (tid == 4121).then(|| {
            let command = "/opt/server --listen [::]:80 \u{1b}[2J".into();
            Arc::new(ProcessDetails { user: "www".into(), command })
        }),
        looks: looks
            .iter()
            .map(|&(state, within, times)| ThreadLooks { state, within: within.into(), times: times * second as u32 })
            .collect(),
        ..ThreadReading::default()
    };
    let lock = "futex_do_wait";
    let threads = vec![
        thread(4121, "server", 0.001, &[('S', "ep_poll", 20)]),
        thread(4122, "worker", 0.24, &[('R', "", 5), ('S', lock, 15)]),
        thread(4123, "worker", 0.26, &[('R', "", 6), ('S', lock, 14)]),
        thread(4124, "worker", 0.22, &[('R', "", 5), ('S', lock, 15)]),
        thread(4125, "worker", 0.25, &[('R', "", 5), ('S', lock, 15)]),
        thread(4126, "log\u{1b}[2J", 0.03, &[('R', "", 1), ('D', "folio_wait_bit_common", 11), ('S', "", 8)]),
    ];
    ThreadSnapshot { at_ns: WallNs(second * SECOND), started: Some(9000), threads, ..ThreadSnapshot::default() }
}

/// 21 misses of the last cache in 1,000 instructions.
fn rounds() -> impl Iterator<Item = Round> {
    (0..=10 * SECONDS).map(|tenth| {
        let time = CpuNs(tenth * SECOND / 10);
        let reading = |count| Some(Reading { count, enabled: time, running: time });
        let readings = vec![reading(time.0), reading(tenth * 100_000_000), reading(tenth * 2_100_000)];
        let threads = tenth.is_multiple_of(10).then(|| Arc::new(snapshot(tenth / 10)));
        Round { at: WallNs(time.0), readings, threads, ..Round::default() }
    })
}

struct TestFeed {
    samples: Receiver<SamplerMessage>,
    output: Receiver<OutputLine>,
    /// What was sampled, if call stacks are.
    profile: Option<Gathered>,
    span: ProfileSpan,
}

impl Feed for TestFeed {
    fn samples(&self) -> &Receiver<SamplerMessage> {
        &self.samples
    }

    fn output(&self) -> &Receiver<OutputLine> {
        &self.output
    }

    fn profile(&mut self, until: WallNs, see: &mut dyn FnMut(&Tree, &StackQuality)) {
        self.profile.iter_mut().for_each(|profile| {
            profile.show(self.span, until);
            see(profile.tree(), profile.quality());
        });
    }

    fn set_profile_span(&mut self, span: ProfileSpan) -> Result<(), String> {
        self.span = span;
        Ok(())
    }

    fn set_first_level(&mut self, level: FirstLevel) -> Result<(), String> {
        self.profile.iter_mut().for_each(|profile| profile.set_first_level(level));
        Ok(())
    }

    fn restart_profile(&mut self) {
        self.profile.iter_mut().for_each(Gathered::forget_samples);
    }

    fn end(&mut self, last: &Round, lost: u64) -> End {
        End { at_ns: last.at, lost_rounds: lost, totals: last.readings.clone(), ..End::default() }
    }
}

/// Runs the loop with these rounds and a test beside it.
fn with_loop(
    size: (u16, u16),
    options: &ScreenOptions,
    rounds: Vec<Round>,
    test: impl FnOnce(&mut TerminalScript) + Send + 'static,
) {
    with_loop_of(header(), size, options, rounds, test);
}

fn with_loop_of(
    header: Header,
    size: (u16, u16),
    options: &ScreenOptions,
    rounds: Vec<Round>,
    test: impl FnOnce(&mut TerminalScript) + Send + 'static,
) {
    with_profile_of(header, None, size, options, rounds, test);
}

fn with_profile_of(
    header: Header,
    profile: Option<Gathered>,
    size: (u16, u16),
    options: &ScreenOptions,
    rounds: Vec<Round>,
    test: impl FnOnce(&mut TerminalScript) + Send + 'static,
) {
    let (terminal, mut script) = Terminal::scripted(size.0, size.1).unwrap();
    let (samples, out) = bounded(0);
    let (signals, signals_out) = bounded(0);
    let user = thread::spawn(move || {
        for round in rounds {
            samples.send(SamplerMessage::Round { round, lost: 0 }).unwrap();
        }
        test(&mut script);
        signals.send(15.into()).unwrap();
    });
    let monitor: Monitor = builders::monitor(header, vec![], EstimatorKind::Scale);
    let mut feed = TestFeed { samples: out, output: never(), profile, span: ProfileSpan::default() };
    tui::run_on(terminal, monitor, &mut feed, &signals_out, options).unwrap();
    user.join().unwrap();
}

fn golden(name: &str, screen: &str) {
    assert_golden!("screens", name, screen);
}

#[test]
fn threads_and_what_stands_out_at_all_sizes() {
    for (width, height) in [(80, 24), (120, 40), (200, 60), (60, 11), (40, 6)] {
        let options = ScreenOptions { mode: Mode::Live, ..ScreenOptions::default() };
        with_loop((width, height), &options, rounds().collect(), move |script| {
            golden(&format!("stands-out-{width}x{height}"), &script.screen());
            script.keys("7");
            golden(&format!("threads-{width}x{height}"), &script.screen());
        });
    }
}

/// What ended until a second, with how many a second and their CPU time in ms.
fn ended_by(second: u64, (name, count, ms): (&str, u64, u64)) -> EndedProcesses {
    EndedProcesses { name: name.into(), count: count * second, cpu_ns: CpuNs(second * ms * 1_000_000) }
}

/// A machine of which all is counted all the time, with more processes than are read.
fn machine_rounds() -> impl Iterator<Item = Round> {
    (0..=SECONDS).map(|second| {
        // Two CPUs of 2.6 that are busy are of what is read.
        let all = Some(CpuNs(second * 2_600_000_000));
        let details = |name: &str| ProcessDetails {
            user: if name == "idle" { "root" } else { name }.into(),
            command: format!("/usr/bin/{name} --config /etc/{name}.conf \u{1b}[2J"),
        };
        let process = |place: i32, name: &str, cpu: f64| ThreadReading {
            pid: 100 + place,
            tid: 100 + place,
            name: name.into(),
            cpu_ns: CpuNs((cpu * second as f64 * 1e9) as u64),
            resident: 30 << 20,
            process: Some(Arc::new(details(name))),
            // A shell, of which all that has ended were children.
            children_ns: CpuNs(if name == "java" { second * 500_000_000 } else { 0 }),
            faults: 400 * second,
            ..ThreadReading::default()
        };
        let busy = [("postgres", 0.95), ("nginx", 0.5), ("java", 0.55)];
        let mut threads: Vec<_> = (0..).zip(busy).map(|(place, (name, cpu))| process(place, name, cpu)).collect();
        threads.extend((10..60).map(|place| process(place, "idle", 0.0)));
        let snapshot = ThreadSnapshot {
            at_ns: WallNs(second * SECOND),
            all_ns: all,
            left_out: 7,
            ended: [("cc1\u{1b}", 3, 400), ("as", 3, 60)].map(|ended| ended_by(second, ended)).into(),
            busy_ns: (0..4).zip([990, 500, 10, 0]).map(|(cpu, ms)| (cpu, CpuNs(second * ms * 1_000_000))).collect(),
            resources: Some(MachineResources {
                memory_used: 3 << 30,
                memory: 8 << 30,
                swap_used: 120 << 20,
                load: 2.31,
                disk: Some(DiskBytes { read: second * (12 << 20), written: second * 4096 }),
            }),
            threads,
            ..ThreadSnapshot::default()
        };
        let enabled = CpuNs(4 * second * SECOND);
        let reading = |count| Some(Reading { count, enabled, running: enabled });
        let readings = vec![reading(second * 1200), reading(second * 800)];
        Round { at: WallNs(second * SECOND), readings, threads: Some(Arc::new(snapshot)), ..Round::default() }
    })
}

#[test]
fn a_machine_shows_its_busiest_processes_below_its_events() {
    let mut header = Header {
        perfprop: "0.1.0".into(),
        target: MeasuredTarget::Everyone { cpus: None },
        ..builders::header(["page-faults", "context-switches"].map(|name| measured(software_event(name))))
    };
    header.machine.cpus = 4;
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        let options = ScreenOptions { mode: Mode::Live, ..ScreenOptions::default() };
        with_loop_of(header.clone(), (width, height), &options, machine_rounds().collect(), move |script| {
            let screen = script.screen();
            // 2.6 CPUs of the machine are busy, though what is read has 2.
            assert!(screen.contains("cpu 260%") && screen.contains("postgres"), "{screen}");
            golden(&format!("machine-{width}x{height}"), &screen);
            script.keys("7");
            let screen = script.screen();
            let resources = "CPUs █▄▁▁  busiest: 0 at 99%  memory 3.0G of 8.0G  swap 120M";
            assert!(screen.contains(resources), "{screen}");
            let disks = "load 2.31  disk 12MB/s read, 4.0KB/s written";
            assert_eq!(screen.contains(disks), width >= 120, "{screen}");
            assert!(screen.contains("7 not read, and processes that ended: 60.0%"), "{screen}");
            golden(&format!("machine-processes-{width}x{height}"), &screen);
            script.keys("/NGINX.conf<Enter>");
            assert!(script.screen().contains("no process matches the filter"), "{}", script.screen());
            script.keys("/");
            script.keys(&"<Backspace>".repeat(10));
            script.keys("nginx.conf<Enter>");
            let screen = script.screen();
            assert!(screen.contains("filter: nginx.conf") && (width < 120 || screen.contains("1 of 53")), "{screen}");
            assert!(screen.contains("nginx --config") && !screen.contains("postgres"), "{screen}");
            // What is left out is no other process.
            assert!(screen.contains("7 not read, and processes that ended: 60.0%"), "{screen}");
        });
    }
}

/// The same machine, of whose processes those with one thread were seen sleeping at so many checks a second.
fn checked_machine_rounds(checks: u32) -> impl Iterator<Item = Round> {
    machine_rounds().map(move |mut round| {
        let second = u32::try_from(round.at.0 / SECOND).unwrap();
        for snapshot in round.threads.iter_mut().map(Arc::make_mut) {
            for thread in snapshot.threads.iter_mut().filter(|thread| thread.name != "java") {
                thread.looks = vec![ThreadLooks { state: 'S', within: "ep_poll".into(), times: checks * second }];
            }
        }
        round
    })
}

#[test]
fn the_legend_says_of_how_many_checks_and_which_processes_have_none() {
    let header = Header { target: MeasuredTarget::Everyone { cpus: None }, ..header() };
    let options = ScreenOptions { mode: Mode::Live, screen: Screen::Threads, ..ScreenOptions::default() };
    // Few checks say nothing, but those of up to 15 s together do.
    for (checks, seconds, shares) in [
        (1, 8, "FUTEX%, DISK%, SLEEP%: —, under 10 checks"),
        (1, 12, "FUTEX%, DISK%, SLEEP%: share of 10 checks in 10.0 s, ±31 points  —: several threads"),
        (20, 12, "FUTEX%, DISK%, SLEEP%: share of 20 checks, ±22 points  —: several threads"),
    ] {
        let rounds = checked_machine_rounds(checks).take(1 + seconds);
        let rounds = rounds.map(|round| Round { readings: vec![None; 3], ..round }).collect();
        with_loop_of(header.clone(), (120, 24), &options, rounds, move |script| {
            let screen = script.screen();
            assert!(screen.contains(shares), "{screen}");
        });
    }
}

/// What a plain user is shown of a machine whose events only root may count.
fn restricted_header() -> Header {
    let clock = |name: &str| Event { unit: Unit::Nanoseconds, kind: EventKind::Tool, ..event(name) };
    let restriction = [
        "E01 uid 1000 may not count the machine (perf_event_paranoid=2, EACCES)",
        "processes are shown, from /proc; your own programs:  perfprop top -- COMMAND",
        "sudo sysctl kernel.perf_event_paranoid=0",
        "or: sudo setcap cap_perfmon+ep \"$(command -v perfprop)\"",
    ];
    let mut header = Header {
        perfprop: "0.1.0".into(),
        target: MeasuredTarget::Everyone { cpus: None },
        restriction: restriction.map(Into::into).into(),
        ..builders::header(["user_time", "system_time"].map(|name| measured(clock(name))))
    };
    header.machine.cpus = 4;
    header
}

/// The machine's CPU time in user space and in the kernel: 1.2 s and 0.8 s a second.
fn restricted_rounds() -> Vec<Round> {
    let of = |second: u64, ns: u64, enabled| Some(Reading { count: second * ns, enabled, running: enabled });
    let rounds = (0..).zip(machine_rounds());
    let with_times = |(second, round): (u64, Round)| {
        let enabled = CpuNs(4 * second * SECOND);
        Round { readings: vec![of(second, 1_200_000_000, enabled), of(second, 800_000_000, enabled)], ..round }
    };
    rounds.map(with_times).collect()
}

#[test]
fn what_may_not_be_counted_stands_above_what_is_shown_instead() {
    for (width, height) in [(80, 24), (120, 40), (80, 15), (60, 8)] {
        let options = ScreenOptions { mode: Mode::Live, screen: Screen::Threads, ..ScreenOptions::default() };
        with_loop_of(restricted_header(), (width, height), &options, restricted_rounds(), move |script| {
            golden(&format!("restricted-processes-{width}x{height}"), &script.screen());
            script.keys("1");
            golden(&format!("restricted-{width}x{height}"), &script.screen());
            script.keys("6");
            let screen = script.screen();
            // The Log has all that helps.
            assert!(screen.contains("E01 uid 1000") && screen.contains("setcap") || height < 16, "{screen}");
            script.keys("4");
            assert!(!script.screen().contains("E01"), "{}", script.screen());
        });
    }
}

#[test]
fn a_recording_that_is_saved_says_what_may_not_be_counted() {
    let folder = Folder::new();
    let options = ScreenOptions { mode: Mode::Live, save_in: folder.to_path_buf(), ..ScreenOptions::default() };
    with_loop_of(restricted_header(), (80, 24), &options, restricted_rounds(), |script| {
        script.keys("S");
        assert!(script.screen().contains("saved to"), "{}", script.screen());
    });
    let saved = recording::read(std::fs::read(folder.join("perfprop.jsonl")).unwrap().as_slice()).unwrap();
    let mut monitor: Monitor = builders::monitor(saved.header, vec![], EstimatorKind::Scale);
    monitor.take_rounds(saved.rounds.iter());
    let mut scene = Scene::new(monitor, None, &ScreenOptions::default());
    for screen in [Screen::Events, Screen::Threads, Screen::Log] {
        let picture = scene.picture(screen, &Picture { size: (80, 24), ..Picture::default() });
        assert!(picture.contains("E01 uid 1000") && picture.contains("sysctl"), "{picture}");
    }
}

#[test]
fn threads_are_sorted_and_one_without_stacks_says_how_to_get_them() {
    let options = ScreenOptions { mode: Mode::Live, screen: Screen::Threads, ..ScreenOptions::default() };
    with_loop((80, 24), &options, rounds().collect(), |script| {
        // By what they wait for on a disk: the one that writes is first.
        script.keys("sss");
        let first = |screen: &str| screen.lines().nth(4).unwrap_or_default().to_owned();
        assert!(first(&script.screen()).contains("log"), "{}", script.screen());
        script.keys("I");
        assert!(!first(&script.screen()).contains("log"), "{}", script.screen());
        script.keys("<Enter>");
        let screen = script.screen();
        assert!(screen.contains("no call stacks are sampled: start perfprop with -g"), "{screen}");
        script.keys("y");
        assert!(script.screen().contains("copied: "), "{}", script.screen());
    });
}

#[test]
fn columns_stay_whatever_is_filtered_and_however_threads_are_sorted() {
    for width in [80, 120, 200] {
        let options = ScreenOptions { mode: Mode::Live, screen: Screen::Threads, ..ScreenOptions::default() };
        with_loop((width, 24), &options, rounds().collect(), |script| {
            let heads = |screen: &str| {
                let heads = screen.lines().nth(3).unwrap_or_default().replace(['↓', '↑'], "");
                heads.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
            };
            let row =
                |screen: &str| screen.lines().find(|line| line.contains("log\\x1b")).map(|row| row.replace('▶', " "));
            let before = script.screen();
            for keys in ["s", "s", "/log<Enter>", "/<Backspace><Backspace><Backspace>none<Enter>", "<Esc>"] {
                script.keys(keys);
                let screen = script.screen();
                assert_eq!(heads(&screen), heads(&before), "{keys}");
                assert!(row(&screen).is_none_or(|now| Some(now) == row(&before)), "{keys} {screen}");
            }
        });
    }
}

#[test]
fn heads_have_a_blank_between_them_however_threads_are_sorted() {
    const WORDS: [&str; 17] = [
        "THREAD", "TID", "CPU%", "READY%", "FUTEX%", "DISK%", "SLEEP%", "MEMORY", "FAULT/s", "SWITCH/s", "ON", "CPU",
        "READY", "BLOCKED", "WAITS", "MOST", "IN",
    ];
    for width in [40, 60, 80, 81, 100, 120, 200] {
        let options = ScreenOptions { mode: Mode::Live, screen: Screen::Threads, ..ScreenOptions::default() };
        with_loop((width, 24), &options, rounds().collect(), |script| {
            for _ in 0..10 {
                script.keys("s");
                let screen = script.screen();
                let heads = screen.lines().nth(3).unwrap_or_default();
                let words =
                    heads.split_whitespace().map(|word| word.trim_end_matches(['↓', '↑'])).filter(|word| *word != "│");
                assert!(words.clone().all(|word| WORDS.contains(&word)), "{screen}");
            }
        });
    }
}

#[test]
fn threads_that_were_read_at_another_time_say_when() {
    let mode = Mode::Replay { length: WallNs(SECONDS * SECOND), speed: 1.0, ending: ReplayedEnding::Finished };
    for (mode, last, words) in [
        (mode, SECONDS, "CPUs in 1.0 s ─"),
        (mode, 10, "CPUs in 1.0 s, read from 9.0 s to 10.0 s"),
        // A run is shown as it goes.
        (Mode::Live, 10, "CPUs in 1.0 s ─"),
    ] {
        let options = ScreenOptions { mode, screen: Screen::Threads, ..ScreenOptions::default() };
        let read = |round: Round| match round.at.0 <= last * SECOND {
            true => round,
            false => Round { threads: None, ..round },
        };
        with_loop((80, 24), &options, rounds().map(read).collect(), move |script| {
            let screen = script.screen();
            assert!(screen.contains(words), "{screen}");
        });
    }
}

#[test]
fn a_recording_without_stacks_says_how_to_record_them() {
    let mode = Mode::Replay { length: WallNs(SECONDS * SECOND), speed: 1.0, ending: ReplayedEnding::Finished };
    let options = ScreenOptions { mode, screen: Screen::Threads, ..ScreenOptions::default() };
    with_loop((80, 24), &options, rounds().collect(), |script| {
        script.keys("<Enter>");
        let screen = script.screen();
        assert!(screen.contains("this recording has no call stacks; perfprop record -g records them"), "{screen}");
    });
}

/// Samples of these tasks, a process, a thread and a name each, in a function of their own.
fn sampled(tasks: &[(i32, i32, &str)]) -> Gathered {
    let event = SampledEvent { name: "instructions".into(), unit: Unit::Count, rate: Rate::Frequency(99) };
    let setup = SamplingSetup { events: vec![event], call_graph: UnwindMethod::Fp };
    let numbers = 0..u32::try_from(tasks.len()).unwrap();
    let frame = |number: u32| StackFrame { name: format!("work_of_{number}"), ..StackFrame::default() };
    let sample = |number: u32| StackSample {
        at: WallNs(SECOND),
        task: TaskId(number),
        cpu: 0,
        event: 0,
        weight: 1000 * u64::from(number + 1),
        stack: Some(StackId(number)),
    };
    let batch = StackBatch {
        frames: numbers.clone().map(frame).collect(),
        stacks: numbers.clone().map(|number| StackNode { caller: None, frame: StackFrameId(number) }).collect(),
        tasks: tasks.iter().map(|&(pid, tid, comm)| Task { pid, tid, comm: comm.into() }).collect(),
        samples: numbers.map(sample).collect(),
        ..StackBatch::default()
    };
    let mut profile = Gathered::new(&setup, RegionsToCome::Over, TreeOptions::default());
    profile.take(batch);
    profile
}

#[test]
fn a_thread_is_opened_by_its_number_though_others_have_its_name() {
    let options = ScreenOptions { mode: Mode::Live, screen: Screen::Threads, ..ScreenOptions::default() };
    let profile = sampled(&[(4121, 4122, "worker"), (4121, 4123, "worker"), (4121, 4125, "worker")]);
    with_profile_of(header(), Some(profile), (120, 40), &options, rounds().collect(), |script| {
        // The busiest is 4123; the next one is 4125.
        script.keys("<Enter>");
        let screen = script.screen();
        assert!(screen.contains("by thread") && screen.contains("worker [4123]"), "{screen}");
        assert!(
            screen.contains("work_of_1") && !screen.contains("work_of_0") && !screen.contains("work_of_2"),
            "{screen}"
        );
        golden("thread-opened-120x40", &screen);
        script.keys("7j<Enter>");
        let screen = script.screen();
        assert!(screen.contains("work_of_2") && !screen.contains("work_of_1"), "{screen}");
        // Out of the thread it is the list again; in the profile all are there, each by its number.
        script.keys("<Esc>");
        assert!(script.screen().contains("[7 Threads]"), "{}", script.screen());
        script.keys("4");
        let screen = script.screen();
        assert!(
            ["worker [4122]", "worker [4123]", "worker [4125]"].iter().all(|name| screen.contains(name)),
            "{screen}"
        );
        // A frozen view stays with what it has.
        script.keys("7zj<Enter>");
        let screen = script.screen();
        assert!(screen.contains("work_of_0") && !screen.contains("work_of_2"), "{screen}");
    });
}

#[test]
fn the_title_names_the_thread_that_was_opened_and_esc_goes_level_by_level() {
    let options = ScreenOptions { mode: Mode::Live, screen: Screen::Threads, ..ScreenOptions::default() };
    let profile = sampled(&[(4121, 4123, "worker"), (4121, 4125, "worker")]);
    with_profile_of(header(), Some(profile), (80, 24), &options, rounds().collect(), |script| {
        script.keys("<Enter>");
        let title = |screen: &str| screen.lines().nth(2).unwrap_or_default().to_owned();
        assert!(title(&script.screen()).contains("zoom: worker [4123]"), "{}", script.screen());
        // Into a function of it, and out again.
        script.keys("j<Enter>");
        assert!(title(&script.screen()).contains("zoom: work_of_0"), "{}", script.screen());
        script.keys("<Esc>");
        assert!(title(&script.screen()).contains("zoom: worker [4123]"), "{}", script.screen());
        script.keys("<Esc>");
        assert!(script.screen().contains("[7 Threads]"), "{}", script.screen());
    });
}

#[test]
fn a_click_on_the_selected_thread_opens_it() {
    let options = ScreenOptions { mode: Mode::Live, screen: Screen::Threads, ..ScreenOptions::default() };
    let profile = sampled(&[(4121, 4123, "worker"), (4121, 4125, "worker")]);
    with_profile_of(header(), Some(profile), (120, 40), &options, rounds().collect(), |script| {
        // The second row below the heads.
        let click = |script: &mut TerminalScript| script.mouse(MouseEventKind::Down(MouseButton::Left), 10, 5);
        click(script);
        let is_selected = |line: &str| line.contains("▶ worker") && line.contains("4125");
        assert!(script.screen().lines().any(is_selected), "{}", script.screen());
        click(script);
        assert!(script.screen().contains("zoom: worker [4125]"), "{}", script.screen());
    });
}

#[test]
fn a_profile_begins_anew_while_the_run_goes_on_and_the_view_is_not_frozen() {
    let options = ScreenOptions { mode: Mode::Live, screen: Screen::Profile, ..ScreenOptions::default() };
    let profile = sampled(&[(4121, 4123, "worker"), (4121, 4125, "worker")]);
    with_profile_of(header(), Some(profile), (120, 40), &options, rounds().collect(), |script| {
        assert!(script.screen().contains("work_of_0") && !script.screen().contains("since"), "{}", script.screen());
        script.keys("zX");
        assert!(script.screen().contains("and the view isn't frozen"), "{}", script.screen());
        script.keys("zX");
        let screen = script.screen();
        assert!(screen.contains("no sample yet") && !screen.contains("work_of_0"), "{screen}");
    });
}

#[test]
fn a_profile_shows_the_last_seconds_or_the_run() {
    let options = ScreenOptions { mode: Mode::Live, screen: Screen::Profile, ..ScreenOptions::default() };
    let mut profile = sampled(&[(4121, 4123, "worker"), (4121, 4125, "worker")]);
    let late = StackSample {
        at: WallNs(11 * SECOND),
        task: TaskId(1),
        cpu: 0,
        event: 0,
        weight: 1000,
        stack: Some(StackId(1)),
    };
    profile.take(StackBatch { samples: vec![late], ..StackBatch::default() });
    with_profile_of(header(), Some(profile), (120, 40), &options, rounds().collect(), |script| {
        let of_run = script.screen();
        assert!(of_run.contains("work_of_0") && !of_run.contains("last "), "{of_run}");
        // Of a minute, a run of 12 s has all.
        script.keys("{");
        let screen = script.screen();
        assert!(screen.contains("work_of_0") && screen.contains("samples of the last 60 s"), "{screen}");
        script.keys("{{");
        let screen = script.screen();
        assert!(screen.contains("work_of_1") && !screen.contains("work_of_0"), "{screen}");
        assert!(screen.contains("─ last 10 s ─"), "{screen}");
        script.keys("z}");
        assert!(script.screen().contains("the view is frozen"), "{}", script.screen());
        script.keys("z}}");
        assert!(script.screen().contains("work_of_0"), "{}", script.screen());
        script.keys("{{");
        script.keys("X");
        let screen = script.screen();
        assert!(screen.contains("no sample yet") && !screen.contains("work_of_1"), "{screen}");
    });
}

#[test]
fn a_thread_that_was_not_sampled_says_so() {
    let options = ScreenOptions { mode: Mode::Live, screen: Screen::Threads, ..ScreenOptions::default() };
    let profile = || Some(sampled(&[(4121, 4122, "worker")]));
    with_profile_of(header(), profile(), (120, 40), &options, rounds().collect(), |script| {
        script.keys("<Enter>");
        let screen = script.screen();
        assert!(screen.contains("no call stack of worker 4123 was sampled so far"), "{screen}");
        assert!(screen.contains("[7 Threads]"), "{screen}");
    });
    with_profile_of(header(), profile(), (120, 40), &options, rounds().collect(), |script| {
        assert!(script.screen().contains("Enter stacks"), "{}", script.screen());
        script.keys("z");
        assert!(!script.screen().contains("Enter stacks"), "{}", script.screen());
        script.keys("<Enter>");
        assert!(script.screen().contains("z goes on, then Enter shows its stacks"), "{}", script.screen());
    });
}

#[test]
fn a_process_of_a_machine_is_opened_with_all_its_threads() {
    let target = MeasuredTarget::Everyone { cpus: None };
    let header = Header { target, ..header() };
    let options = ScreenOptions { mode: Mode::Live, screen: Screen::Threads, ..ScreenOptions::default() };
    let profile = sampled(&[(100, 100, "postgres"), (100, 900, "checkpointer"), (101, 101, "nginx")]);
    let rounds = machine_rounds().map(|round| Round { readings: vec![None; 3], ..round }).collect();
    with_profile_of(header, Some(profile), (120, 40), &options, rounds, |script| {
        script.keys("<Enter>");
        let screen = script.screen();
        assert!(screen.contains("by process") && screen.contains("postgres [100]"), "{screen}");
        assert!(
            screen.contains("work_of_0") && screen.contains("work_of_1") && !screen.contains("work_of_2"),
            "{screen}"
        );
    });
}

#[test]
fn without_threads_the_screen_says_why() {
    let options = ScreenOptions { mode: Mode::Live, screen: Screen::Threads, ..ScreenOptions::default() };
    let rounds: Vec<_> = rounds().take(25).map(|round| Round { threads: None, ..round }).collect();
    with_loop((120, 30), &options, rounds, |script| {
        assert!(script.screen().contains("reading threads…"), "{}", script.screen());
    });
}

#[test]
fn a_run_that_ended_before_threads_were_read_twice_says_so() {
    let mut monitor: Monitor = builders::monitor(header(), vec![], EstimatorKind::Scale);
    for round in rounds().take(6) {
        monitor.round(&round, 0);
    }
    monitor.end(End { at_ns: WallNs(SECOND / 2), ..End::default() });
    let mut scene = Scene::new(monitor, None, &ScreenOptions::default());
    let screen = scene.picture(Screen::Threads, &Picture { size: (80, 24), ..Picture::default() });
    assert!(screen.contains("the run ended before its threads were read twice"), "{screen}");
}

#[test]
fn in_ascii_there_is_nothing_else() {
    let glyphs = GlyphSet::Ascii;
    let options = ScreenOptions { mode: Mode::Live, symbols: glyphs, ..ScreenOptions::default() };
    with_loop((120, 40), &options, rounds().collect(), |script| {
        for key in ["1", "7"] {
            script.keys(key);
            assert!(script.screen().is_ascii(), "{}", script.screen());
        }
    });
}
