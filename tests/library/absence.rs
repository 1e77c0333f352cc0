//! Tests that every text, file and screen says why an event has no number, or only a part of one.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use perfprop::estimate::EstimatorKind;
use perfprop::events::{Encoding, Event, EventKind, PmuUnit};
use perfprop::monitor::Monitor;
use perfprop::plan::GroupIndex;
use perfprop::rates::{Error, Uncertain};
use perfprop::recording::{self, Recorder};
use perfprop::run::{AddedEvent, Anchor, End, Header, MeasuredEvent, RepeatedEvent};
use perfprop::sources::{Reading, Round, Scope, Status};
use perfprop::text::{self, Repeats, Repetition, SummaryLayout};
use perfprop::units::{CpuNs, WallNs};
use serde_json::Value;

use crate::builders::{self, SECOND, event, measured, measured_group};

/// Name, status, kind of core.
const EVENTS: [(&str, Status, Option<&str>); 6] = [
    ("counts", Status::Counted, None),
    ("absent", Status::NotSupported, None),
    ("forbidden", Status::Forbidden, None),
    ("waits", Status::Counted, None),
    ("pauses", Status::Counted, None),
    ("cpu_core/cycles/", Status::Counted, Some("cpu_core")),
];

fn header() -> Header {
    let events = EVENTS.iter().map(|(name, status, core)| {
        let encoding = Encoding { core: core.map(str::to_owned), ..Encoding::default() };
        MeasuredEvent { status: status.clone(), ..measured(Event { encoding, ..event(name) }) }
    });
    Header {
        anchors: vec![
            Anchor::Again(RepeatedEvent { anchor_of: 0, group: GroupIndex(0), status: Status::Counted }),
            Anchor::Added(AddedEvent { added: Box::new(measured(event("unasked"))) }),
        ],
        groups: vec![measured_group(&[0])],
        period_ns: WallNs(SECOND),
        ..builders::header(events)
    }
}

/// A second of CPU time each: `waits` never gets on a counter, `pauses` only in the first second, and
/// a quarter of the time is spent on `cpu_core`. The last readings are those of anchors.
fn round(second: u64) -> Round {
    let reading = |count, running| Some(Reading { count, enabled: CpuNs(second * SECOND), running: CpuNs(running) });
    let whole = second * SECOND;
    let readings = vec![
        reading(1000 * second, whole),
        None,
        None,
        reading(0, 0),
        reading(500, SECOND / 2),
        reading(250 * second, whole / 4),
        reading(77_777 * second, whole),
        reading(88_888 * second, whole),
    ];
    Round { at: WallNs(whole), readings, ..Round::default() }
}

fn monitor(seconds: u64, ended: bool) -> Monitor {
    let mut monitor = builders::monitor(header(), Vec::new(), EstimatorKind::Scale);
    for second in 1..=seconds {
        monitor.round(&round(second), 0);
    }
    if ended {
        monitor.end(End { at_ns: WallNs(seconds * SECOND), ..End::default() });
    }
    monitor
}

/// The lines of a text that speak of each event, in their order.
fn lines(text: &str) -> Vec<String> {
    // Titles of screens name one of them, too.
    let is_row = |line: &&str, name: &str| line.contains(name) && !line.contains("Events");
    let of = |name: &str| text.lines().find(|line| is_row(line, name)).unwrap_or_default().to_owned();
    for of_anchor in ["77777", "155554", "88888", "177776", "unasked"] {
        assert!(!text.contains(of_anchor), "anchors aren't listed: {text}");
    }
    EVENTS.iter().map(|(name, ..)| of(name)).collect()
}

#[track_caller]
fn has(lines: &[String], words: [&str; 6]) {
    for (line, word) in lines.iter().zip(words) {
        assert!(line.contains(word), "expected {word:?} in {line:?}");
    }
}

const CELLS: [&str; 6] = ["2,000", "<not supported>", "<not permitted>", "<not counted>", "2,000", "500"];
const RUNNING: [&str; 6] = ["1k", "not supported", "not permitted", "not counted", "1k", "1k"];

#[test]
fn the_summary_of_stat_tells_them_apart() {
    let ended = [monitor(2, true)];
    let text = text::summary(&Repeats(&ended), SummaryLayout::default());
    has(&lines(&text), CELLS);
    assert!(lines(&text)[5].contains("partial") && lines(&text)[5].contains("25.0% on cpu_core"), "{text}");
    assert!(text.contains("partial: what one kind of core counted"), "{text}");
}

#[test]
fn intervals_tell_them_apart() {
    let text = text::interval(&monitor(1, false), SummaryLayout::default());
    has(&lines(&text), ["1,000", "<not supported>", "<not permitted>", "<not counted>", "1,000", "partial"]);
    // One that ran before isn't one that has yet to run.
    has(
        &lines(&text::interval(&monitor(2, false), SummaryLayout::default())),
        ["1,000", "<not sup", "<not per", "<not counted>", "<not counted>", "250"],
    );
}

#[test]
fn fields_tell_them_apart() {
    let ended = [monitor(2, true)];
    let text = text::csv_totals(&Repeats(&ended), ",", Repetition::Once);
    has(
        &lines(&text),
        ["2000,,counts", "<not supported>,,", "<not permitted>,,", "<not counted>,,", "2000,,", "500,,"],
    );
    has(&lines(&text), ["counted", "not supported", "not permitted", "not counted", "counted", "partial"]);
    assert!(lines(&text)[5].contains(",25.00,"), "{text}");
    let text = text::csv_interval(&monitor(2, false), ",", Repetition::Once);
    has(&lines(&text), ["counted", "not supported", "not permitted", "not counted", "not counted", "partial"]);
}

#[test]
fn json_tells_them_apart() {
    let of = |text: String, key: &str| {
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()[key].clone()).collect::<Vec<_>>()
    };
    let ended = [monitor(2, true)];
    let status = of(text::json_totals(&Repeats(&ended), Repetition::Once), "status");
    assert_eq!(status, ["counted", "not supported", "not permitted", "not counted", "counted", "partial"]);
    let values = of(text::json_totals(&Repeats(&ended), Repetition::Once), "counter-value");
    assert_eq!(values, [Some(2000.0), None, None, None, Some(2000.0), Some(500.0)].map(Value::from));
    let status = of(text::json_interval(&monitor(2, false)), "status");
    assert_eq!(status, ["counted", "not supported", "not permitted", "not counted", "not counted", "partial"]);
}

#[test]
fn blocks_of_text_tell_them_apart() {
    has(&lines(&text::block(&monitor(2, false), perfprop::monitor::MeasureChoice::default())), RUNNING);
    let text = text::block(&monitor(2, true), perfprop::monitor::MeasureChoice::default());
    has(&lines(&text), ["exact", "not supported", "not permitted", "not counted", "±", "partial"]);
    assert!(lines(&text)[5].contains("25%"), "{text}");
}

#[test]
fn recordings_tell_them_apart() {
    let mut bytes = Vec::new();
    let mut recorder = Recorder::new(&mut bytes, &header()).unwrap();
    recorder.round(&round(1), 0).unwrap();
    drop(recorder);
    let text = String::from_utf8(bytes.clone()).unwrap();
    assert!(text.contains(r#""count":[1000,null,null,0,500,250,77777,88888]"#), "{text}");
    assert!(
        text.contains(r#""anchors":[{"anchor_of":0,"group":0,"status":"counted"},{"added":{"name":"unasked""#),
        "{text}"
    );
    let recording = recording::read(&bytes[..]).unwrap();
    assert_eq!((&recording.header, &recording.rounds[0].round), (&header(), &round(1)));
    let statuses: Vec<_> = recording.header.events.iter().map(|event| event.status.clone()).collect();
    assert_eq!(statuses, EVENTS.map(|(_, status, _)| status));
}

#[test]
fn what_is_in_use_is_not_called_unsupported() {
    let mut header = header();
    header.events[1].status = Status::InUse;
    let mut monitor = builders::monitor(header, Vec::new(), EstimatorKind::Scale);
    monitor.round(&round(1), 0);
    monitor.end(End { at_ns: WallNs(SECOND), ..End::default() });
    assert!(monitor.findings().iter().any(|noted| noted.finding.code() == "W21"));
    let ended = [monitor];
    let line = |text: &str| lines(text)[1].clone();
    assert!(line(&text::summary(&Repeats(&ended), SummaryLayout::default())).contains("<in use>"));
    let fields = line(&text::csv_totals(&Repeats(&ended), ",", Repetition::Once));
    assert!(fields.starts_with("<in use>,,") && fields.contains(",in use,"), "{fields}");
    assert!(line(&text::json_totals(&Repeats(&ended), Repetition::Once)).contains(r#""status":"in use""#));
    assert!(line(&text::block(&ended[0], perfprop::monitor::MeasureChoice::default())).ends_with("in use"));
}

/// `waits` gets on a counter late and sees nothing there, as an event does that happens when a program begins.
fn none_seen() -> Monitor {
    let mut monitor = monitor(2, false);
    for second in 3..=4 {
        let mut round = round(second);
        round.readings[3] = round.readings[3].map(|waits| Reading { running: CpuNs((second - 2) * SECOND), ..waits });
        monitor.round(&round, 0);
    }
    monitor.end(End { at_ns: WallNs(4 * SECOND), ..End::default() });
    monitor
}

#[test]
fn what_was_never_seen_and_missed_the_beginning_is_not_0() {
    let ended = [none_seen()];
    let line = |text: &str| lines(text)[3].clone();
    assert!(line(&text::summary(&Repeats(&ended), SummaryLayout::default())).contains("<none seen>"));
    let fields = line(&text::csv_totals(&Repeats(&ended), ",", Repetition::Once));
    assert!(fields.starts_with("<none seen>,,") && fields.contains(",none seen,"), "{fields}");
    assert!(line(&text::block(&ended[0], perfprop::monitor::MeasureChoice::default())).ends_with("none seen"));
    let json: Value = serde_json::from_str(&line(&text::json_totals(&Repeats(&ended), Repetition::Once))).unwrap();
    assert_eq!((&json["counter-value"], &json["status"]), (&Value::Null, &Value::from("none seen")));
    // Of an interval in which it was on a counter all the time, 0 is known.
    let json: Value = serde_json::from_str(&line(&text::json_interval(&ended[0]))).unwrap();
    assert_eq!((&json["counter-value"], &json["status"]), (&Value::from(0.0), &Value::from("counted")));
}

#[test]
fn an_idle_thread_has_no_cpu_time_of_another() {
    let thread = |tid| Scope::Thread { tid, name: "worker".into() };
    let row = |tid| MeasuredEvent { scope: thread(tid), ..header().events[0].clone() };
    let header = Header { events: vec![row(7), row(8)], anchors: vec![], ..header() };
    let mut monitor = builders::monitor(header, Vec::new(), EstimatorKind::Scale);
    let busy = Reading { count: 1000, enabled: CpuNs(SECOND), running: CpuNs(SECOND) };
    monitor.round(
        &Round { at: WallNs(SECOND), readings: vec![Some(busy), Some(Reading::default())], ..Round::default() },
        0,
    );
    let times: Vec<_> = monitor.rows().map(|row| (row.cpu_time, row.history[0].cpu_time)).collect();
    assert_eq!(times, [(CpuNs(SECOND), CpuNs(SECOND)), (CpuNs(0), CpuNs(0))]);
}

#[cfg(feature = "tui")]
#[test]
fn screens_tell_them_apart() {
    use perfprop::tui::{self, Picture, PictureFormat, ScreenOptions};
    let wanted = Picture { size: (120, 40), format: PictureFormat::Text, ..Picture::default() };
    let screen = |ended| lines(&tui::picture(monitor(2, ended), &wanted, &ScreenOptions::default()));
    has(&screen(false), RUNNING);
    has(&screen(true), ["exact", "not supported", "not permitted", "not counted", "±", "partial"]);
    let picture = tui::picture(none_seen(), &wanted, &ScreenOptions::default());
    assert!(lines(&picture)[3].contains("none seen"), "{picture}");
}

#[test]
fn what_one_kind_of_core_counted_is_not_scaled() {
    let monitor = monitor(4, true);
    let row = monitor.row(5);
    assert_eq!((row.raw.run.estimate(), row.core_share), (Some(1000.0), Some(0.25)));
    assert!(monitor.findings().iter().any(|noted| noted.finding.code() == "W10"));
    assert!(
        !monitor.findings().iter().any(|noted| noted
            .finding
            .words(&monitor)
            .to_string()
            .contains("cpu_core/cycles/ ran"))
    );
}

/// The kernel took the counters off `counts` and `waits` before the second round, which shows it, and off `pauses` in
/// the first second.
fn taken_off() -> Vec<Round> {
    let mut rounds: Vec<_> = (1..=3).map(round).collect();
    let first = rounds[0].readings.clone();
    for round in &mut rounds[1..] {
        (round.readings[0], round.readings[3], round.readings[4]) = (first[0], first[3], Some(Reading::default()));
        round.uncounted = vec![0, 3, 4];
    }
    rounds[0].readings[4] = Some(Reading::default());
    rounds[0].uncounted = vec![4];
    rounds
}

fn monitor_of(header: Header, rounds: &[Round]) -> Monitor {
    let mut monitor = builders::monitor(header, Vec::new(), EstimatorKind::Scale);
    for round in rounds {
        monitor.round(round, 0);
    }
    monitor
}

#[test]
fn what_lost_its_counters_keeps_its_count_and_is_not_exact() {
    let monitor = monitor_of(header(), &taken_off());
    let block = lines(&text::block(&monitor, perfprop::monitor::MeasureChoice::default()));
    has(&[block[0].clone()], ["±?", "", "", "", "", ""]);
    assert!(block[4].ends_with("not counted from exec on"), "{block:?}");
    // What was counted in the first interval stays; in the last there is no number, and no 0.
    has(
        &lines(&text::interval(&monitor, SummaryLayout::default())),
        ["<not counted>", "<not sup", "<not per", "<not counted>", "<not counted>", "250"],
    );
    let ended = [monitor];
    let totals = text::summary(&Repeats(&ended), SummaryLayout::default());
    has(&lines(&totals), ["1,000", "<not sup", "<not per", "<not counted>", "<not counted>", "750"]);
    assert!(lines(&totals)[0].contains("±?"), "{totals}");
    let of = |text: String| {
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["status"].clone()).collect::<Vec<_>>()
    };
    let statuses = of(text::json_totals(&Repeats(&ended), Repetition::Once));
    assert_eq!((&statuses[0], &statuses[4]), (&"counted until exec".into(), &"not counted from exec on".into()));
    let fields = lines(&text::csv_totals(&Repeats(&ended), ",", Repetition::Once));
    assert!(fields[0].starts_with("1000,,") && fields[0].contains("counted until exec"), "{fields:?}");
    assert!(fields[4].starts_with("<not counted>,,") && fields[4].contains("not counted from exec on"), "{fields:?}");
    let codes: Vec<_> = ended[0].findings().iter().filter(|noted| noted.finding.code() == "W11").collect();
    let words = codes.iter().map(|noted| noted.finding.words(&ended[0]).to_string()).collect::<Vec<_>>();
    assert!(
        codes.len() == 2 && words.iter().all(|words| words.contains("./prog") && words.contains("setuid")),
        "{words:?}"
    );
}

#[test]
fn a_recording_keeps_what_lost_its_counters() {
    let mut bytes = Vec::new();
    let mut recorder = Recorder::new(&mut bytes, &header()).unwrap();
    taken_off().iter().for_each(|round| recorder.round(round, 0).unwrap());
    drop(recorder);
    let recording = recording::read(&bytes[..]).unwrap();
    let rounds: Vec<_> = recording.rounds.iter().map(|recorded| recorded.round.clone()).collect();
    assert_eq!(rounds, taken_off());
    let of_no_event = String::from_utf8(bytes).unwrap().replacen("\"uncounted\":[4]", "\"uncounted\":[8]", 1);
    assert!(recording::read(of_no_event.as_bytes()).is_err());
}

#[test]
fn threads_that_were_gone_before_they_were_opened_are_gone_and_not_unsupported() {
    let mut header = header();
    for (event, tid) in header.events.iter_mut().zip([1, 2, 2, 3, 4, 5]) {
        event.scope = Scope::Thread { tid, name: String::new() };
        event.status = if tid == 2 { Status::Gone } else { Status::Counted };
    }
    let monitor = monitor_of(header, &[round(1)]);
    let told: Vec<_> = monitor.findings().iter().filter(|noted| noted.finding.code() == "W12").collect();
    assert!(told.len() == 1 && told[0].finding.words(&monitor).to_string().starts_with("1 thread "), "{told:?}");
    let text = text::interval(&monitor, SummaryLayout::default());
    let absent = text.lines().find(|line| line.contains("absent")).unwrap_or_default().to_owned();
    assert!(absent.contains(" 2 ") && absent.contains("<gone>") && !absent.contains('-'), "{text}");
    assert!(text::block(&monitor, perfprop::monitor::MeasureChoice::default()).contains("gone"));
}

#[test]
fn an_event_that_is_not_counted_has_the_cpu_time_of_the_others_and_not_the_time_that_passes() {
    // `duration_time` is enabled for ten seconds while a second of CPU time passes.
    let mut header = header();
    header.anchors.clear();
    let mut duration = header.events[0].clone();
    (duration.event.name, duration.event.canonical) = ("duration_time".into(), "duration_time".into());
    duration.event.kind = EventKind::Tool;
    header.events.push(duration);
    let relation = br#"[{ "eventFrom": "counts", "eventTo": "absent", "expectedMean": 2 * {mean} }]"#;
    let relations = perfprop::relations::parse("twice.json", relation).strict().unwrap();
    let mut monitor = builders::monitor(header, relations, EstimatorKind::Linear);
    for second in 1..=3 {
        let mut round = round(second);
        let passed = 10 * second * SECOND;
        round.at = WallNs(passed);
        round.readings[6] = Some(Reading { count: passed, enabled: CpuNs(passed), running: CpuNs(passed) });
        monitor.round(&round, 0);
    }
    let absent = monitor.row(1);
    assert_eq!((absent.cpu_time, monitor.row(6).cpu_time), (CpuNs(3 * SECOND), CpuNs(30 * SECOND)));
    assert_eq!(absent.history.back().unwrap().cpu_time, CpuNs(SECOND));
    // What is derived for it is twice what `counts` counted.
    let derived = absent.estimate.total.unwrap().value;
    assert!((derived - 6000.0).abs() < 1e-6, "{derived}");
}

/// An event of three units, the last of which the kernel refused.
fn of_units() -> Monitor {
    let unit = |number: u32, absent: Option<&str>| PmuUnit {
        pmu: format!("uncore_imc_{number}"),
        encoding: Encoding { absent: absent.map(str::to_owned), ..Encoding::default() },
    };
    let mut header = header();
    header.events.truncate(2);
    (header.anchors, header.groups[0].members) = (Vec::new(), vec![0, 1]);
    for (event, third) in header.events.iter_mut().zip([None, Some("not supported")]) {
        event.status = Status::Counted;
        event.event.encoding.units = vec![unit(0, None), unit(1, None), unit(2, third)];
    }
    builders::monitor(header, Vec::new(), EstimatorKind::Scale)
}

/// Each counts 1000 a second; in the first, `lacking` units were on no counter, for half the time of all.
fn of_units_in(second: u64, lacking: &[usize]) -> Round {
    let whole = CpuNs(second * SECOND);
    let reading = Some(Reading { count: 1000 * second, enabled: whole, running: CpuNs(whole.0 / 2) });
    Round { at: WallNs(whole.0), readings: vec![reading; 2], uncounted: lacking.to_vec(), ..Round::default() }
}

#[test]
fn a_sum_without_all_of_its_units_is_partial_everywhere() {
    let mut monitor = of_units();
    monitor.round(&of_units_in(1, &[]), 0);
    let (whole, part) = (monitor.row(0), monitor.row(1));
    assert!(!whole.is_partial() && part.is_partial());
    // What is missing is not known from the others.
    assert_eq!(part.scaled.map(|count| (count.value, count.error)), Some((2000.0, Error::Unknown)));
    let text = text::summary(&Repeats(std::slice::from_ref(&monitor)), SummaryLayout::default());
    let line = |name: &str| text.lines().find(|line| line.contains(name)).unwrap().to_owned();
    assert!(line("absent").contains("partial") && !line("counts").contains("partial"), "{text}");
    assert!(text.contains("partial: the sum of the units that could be counted"), "{text}");
    let told: Vec<_> = monitor.findings().iter().filter(|noted| noted.finding.code() == "W14").collect();
    assert_eq!(told.len(), 1);
    let words = "absent is the sum of 2 of 3 units; not supported: uncore_imc_2";
    assert_eq!(told[0].finding.words(&monitor).to_string(), words);
    let csv = text::csv_totals(&Repeats(std::slice::from_ref(&monitor)), ",", Repetition::Once);
    // perf's time running is that of all units together.
    assert!(csv.contains("2000,,counts,1500000000,50.00,") && csv.contains("2000,,absent,1000000000,50.00,"), "{csv}");
    let states: Vec<_> = csv.lines().map(|line| line.split(',').nth(13).unwrap()).collect();
    assert_eq!(states, ["counted", "partial"], "{csv}");
    let json: Vec<Value> = text::json_totals(&Repeats(&[monitor]), Repetition::Once)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!((&json[1]["status"], &json[1]["ci-hi"]), (&"partial".into(), &Value::Null));
}

#[test]
fn what_a_unit_without_a_counter_would_have_added_is_not_made_up() {
    let mut monitor = of_units();
    monitor.round(&of_units_in(1, &[0]), 0);
    let row = monitor.row(0);
    assert!(row.lacks_units && row.uncounted.is_none() && row.absence.is_none());
    assert_eq!(row.scaled.map(|count| (count.value, count.error)), Some((1000.0, Error::Unknown)));
    // From then on all units count, each for half of the time.
    monitor.round(&of_units_in(2, &[]), 0);
    let row = monitor.row(0);
    assert!(!row.lacks_units);
    assert!((row.scaled.unwrap().value - 2000.0 * 2.0 / 1.5).abs() < 1e-6, "{:?}", row.scaled);
    assert!(monitor.findings().iter().all(|noted| noted.finding.code() != "W14" || noted.at == WallNs(0)));
}

#[test]
fn a_unit_that_never_got_a_counter_is_told_in_the_end() {
    let mut monitor = of_units();
    monitor.round(&of_units_in(1, &[0]), 0);
    monitor.end(End { at_ns: WallNs(SECOND), ..End::default() });
    let told = |noted: &&perfprop::monitor::Noted| noted.finding.code() == "W14" && noted.at == WallNs(SECOND);
    let told: Vec<_> = monitor.findings().iter().filter(told).collect();
    let words = told.first().unwrap().finding.words(&monitor).to_string();
    assert!(words.starts_with("counts is the sum of a part of its 3 units"), "{words}");
}

#[test]
fn a_cpu_that_a_pmu_does_not_listen_to_has_no_line() {
    let mut header = header();
    header.events.truncate(1);
    (header.anchors, header.groups) = (Vec::new(), Vec::new());
    header.events.push(MeasuredEvent { status: Status::Elsewhere, scope: Scope::Cpu(1), ..header.events[0].clone() });
    header.events[0].scope = Scope::Cpu(0);
    let mut monitor = builders::monitor(header, Vec::new(), EstimatorKind::Scale);
    let whole = CpuNs(SECOND);
    let reading = Some(Reading { count: 5, enabled: whole, running: whole });
    monitor.round(&Round { at: WallNs(SECOND), readings: vec![reading, None], ..Round::default() }, 0);
    let csv = text::csv_totals(&Repeats(std::slice::from_ref(&monitor)), ",", Repetition::Once);
    assert!(csv.lines().count() == 1 && csv.starts_with("CPU0,5,"), "{csv}");
    assert_eq!(monitor.sum(&[0, 1]).scaled, Some(Uncertain::exact(5.0)), "nothing is missing in the sum");
    assert!(monitor.findings().is_empty());
}
