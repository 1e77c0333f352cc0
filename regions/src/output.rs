//! Writes rows as CSV and JSON, when asked and at exit.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::event_totals::{EventSums, EventTotal};
use crate::report::{Certainty, PathRow, Row, Times, outlasted_words};
use crate::run;
use crate::snapshot::{EventCounts, Snapshot};

/// Where CSV goes at exit: a file, or `-` for standard output.
pub const CSV: &str = "PERFPROP_REGION_CSV";
/// Where JSON goes at exit.
pub const JSON: &str = "PERFPROP_REGION_JSON";

/// The first columns are CmdStan's.
const COLUMNS: &str = "name,thread_id,total_time,forward_time,reverse_time,chain_stack,no_chain_stack,autodiff_calls,\
no_autodiff_calls,calls,self_time,mean_time,time_variance,min_time,max_time,p50_time,p99_time,warmup_calls,warmup_time,marker_time,self_marker_time";
/// The columns of an event are its name with each of these behind.
const EVENT_COLUMNS: [&str; 8] = ["", "_error", "_self", "_mean", "_variance", "_min", "_max", "_missing_calls"];

/// Rows by name and thread, a line each, with times in seconds.
///
/// The first nine columns are those of CmdStan's profiles: `autodiff_calls` are runs backwards, `no_autodiff_calls` calls
/// that recorded nothing, and `chain_stack` and `no_chain_stack` what the program counted under these names. `marker_time` is
/// what the markers took, which was taken off `forward_time`, and `self_marker_time` the part that was taken off `self_time`: a
/// time that is less than that is known [roughly](Certainty), and empty where nothing is left of it. An event has a column of its name for the count, and others for
/// half its 95 % interval, the count in the region alone, mean, variance, least and most of a call, and calls in which it
/// wasn't counted. What isn't known is empty. Names are quoted where they need it.
pub fn csv(snapshot: &Snapshot) -> String {
    let mut text = COLUMNS.to_owned();
    for name in snapshot.counters.iter().filter(|name| !is_stack(name)) {
        let _ = write!(text, ",{}", quoted(name));
    }
    for name in &snapshot.events {
        EVENT_COLUMNS.iter().for_each(|column| {
            let _ = write!(text, ",{}", quoted(&format!("{name}{column}")));
        });
    }
    text.push('\n');
    snapshot.rows().iter().for_each(|row| csv_line(&mut text, snapshot, row));
    text
}

fn is_stack(name: &str) -> bool {
    matches!(name, "chain_stack" | "no_chain_stack")
}

fn csv_line(text: &mut String, snapshot: &Snapshot, row: &Row) {
    let counted = |name: &str| {
        let place = snapshot.counters.iter().position(|counter| counter == name);
        place.map_or(0, |place| row.counters[place])
    };
    let times = &row.times;
    let seconds = |ns: f64| significant(ns / 1e9);
    let if_known = |certainty, ns| known(certainty, ns).map_or_else(String::new, seconds);
    let (certainty, self_certainty) = (times.certainty(), times.self_certainty());
    let spread = |of: fn(&crate::report::Spread) -> Option<f64>, unit: f64| {
        times.calls_ns.as_ref().and_then(of).map_or(String::new(), |value| significant(value / unit))
    };
    let _ = write!(
        text,
        "{},{},{},{},{},{},{},{},{}",
        quoted(&row.name),
        row.thread,
        if_known(certainty, times.total_ns()),
        if_known(certainty, times.forward_ns),
        seconds(times.reverse_ns),
        counted("chain_stack"),
        counted("no_chain_stack"),
        times.reverse_calls,
        times.calls - times.recorded.min(times.calls),
    );
    let _ = write!(text, ",{},{}", times.calls, if_known(self_certainty, times.self_ns));
    let mean = times.calls_ns.and_then(|spread| known(certainty, spread.mean)).map_or_else(String::new, seconds);
    let _ = write!(text, ",{mean},{}", spread(|s| s.variance, 1e18));
    let _ = write!(text, ",{},{}", spread(|s| Some(s.min), 1e9), spread(|s| Some(s.max), 1e9));
    let _ = write!(text, ",{},{}", spread(|s| Some(s.p50), 1e9), spread(|s| Some(s.p99), 1e9));
    let _ = write!(text, ",{},{}", row.warm_up.calls, if_known(row.warm_up.certainty(), row.warm_up.forward_ns));
    let _ = write!(text, ",{},{}", seconds(times.markers_ns), seconds(times.self_markers_ns));
    for (name, counted) in snapshot.counters.iter().zip(row.counters) {
        if !is_stack(name) {
            let _ = write!(text, ",{counted}");
        }
    }
    for event in &row.events {
        csv_event(text, event.all.missing, times.event(event).as_ref());
    }
    text.push('\n');
}

/// A time, unless nothing is known of it.
fn known(certainty: Certainty, ns: f64) -> Option<f64> {
    (certainty != Certainty::Unknown).then_some(ns)
}

fn csv_event(text: &mut String, missing: u64, total: Option<&EventTotal>) {
    let field =
        |of: fn(&EventTotal) -> Option<f64>, print: fn(f64) -> String| total.and_then(of).map_or(String::new(), print);
    let whole = |value: f64| format!("{value:.0}");
    let _ = write!(text, ",{},{}", field(|t| Some(t.count), whole), field(EventTotal::half_width, significant));
    let _ = write!(text, ",{},{}", field(|t| t.self_count, whole), field(|t| Some(t.mean), significant));
    let _ = write!(text, ",{}", field(|t| t.variance, significant));
    let _ = write!(text, ",{},{},{missing}", field(|t| Some(t.min), whole), field(|t| Some(t.max), whole));
}

/// A name as a field of CSV: in quotes where it needs them (RFC 4180).
fn quoted(name: &str) -> String {
    let needs = name.contains([',', '"', '\n', '\r']) || name.starts_with(' ') || name.ends_with(' ');
    if needs { format!("\"{}\"", name.replace('"', "\"\"")) } else { name.to_owned() }
}

/// A number with six significant digits, as C++ streams print it.
fn significant(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".into() } else { String::new() };
    }
    let scientific = format!("{value:.5e}");
    let (digits, power) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    match power {
        -4..6 => trimmed(&format!("{value:.*}", (5 - power) as usize)),
        _ => format!("{}e{}{:02}", trimmed(digits), if power < 0 { '-' } else { '+' }, power.abs()),
    }
}

/// Rows by path, thread and phase as JSON, with times in nanoseconds, which are null where they are empty in CSV. `unended` has the paths of which no call has ended.
pub fn json(snapshot: &Snapshot) -> String {
    let mut text = format!(
        "{{\"version\":1,\"pid\":{},\"lost_calls\":{},\"marker_ns\":{{\"inner\":{},\"outer\":{},\"again\":{}}}",
        snapshot.pid,
        snapshot.lost.total(),
        number(snapshot.marker.inner_ns),
        number(snapshot.marker.outer_ns),
        number(snapshot.marker.again_ns)
    );
    let markers = snapshot.events.iter().zip(&snapshot.event_markers).map(|(name, marker)| {
        let [inner, outer, again] = [marker.inner, marker.outer, marker.again].map(number);
        format!("{}:{{\"inner\":{inner},\"outer\":{outer},\"again\":{again}}}", string(name))
    });
    let _ = write!(text, ",\"marker_events\":{{{}}},\"regions\":[", markers.collect::<Vec<_>>().join(","));
    for (place, row) in snapshot.paths().iter().enumerate() {
        text.push_str(if place == 0 { "\n" } else { ",\n" });
        json_row(&mut text, snapshot, row);
    }
    let unended: Vec<String> = snapshot.unended().iter().map(|path| json_path(path)).collect();
    let _ = writeln!(text, "],\"unended\":[{}]}}", unended.join(","));
    text
}

fn json_row(text: &mut String, snapshot: &Snapshot, row: &PathRow) {
    let _ = write!(text, "{{\"path\":{},\"thread\":{}", json_path(&row.path), row.thread);
    let phase = if row.phase.is_empty() { "null".into() } else { string(&row.phase) };
    let _ = write!(text, ",\"phase\":{phase}");
    json_times(text, &row.times);
    if let Some(name) = &row.times.outlasted_by {
        let _ = write!(text, ",\"outlasted_by\":{}", string(name));
    }
    for (name, counted) in snapshot.counters.iter().zip(row.counters) {
        let _ = write!(text, ",{}:{counted}", string(name));
    }
    let events = snapshot.events.iter().zip(&row.events);
    let event = |event: &EventSums| json_event(&event.all, row.times.event(event).as_ref());
    let events = events.map(|(name, sums)| format!("{}:{}", string(name), event(sums)));
    if !snapshot.events.is_empty() {
        let _ = write!(text, ",\"events\":{{{}}}", events.collect::<Vec<_>>().join(","));
    }
    text.push('}');
}

fn json_path(path: &[String]) -> String {
    let names: Vec<String> = path.iter().map(|name| string(name)).collect();
    format!("[{}]", names.join(","))
}

/// An event; its numbers are null where it was never counted.
fn json_event(counts: &EventCounts, total: Option<&EventTotal>) -> String {
    let names = ["count", "error", "self", "mean", "variance", "min", "max"];
    let values = total.map_or([None; 7], |t| {
        [Some(t.count), t.half_width(), t.self_count, Some(t.mean), t.variance, Some(t.min), Some(t.max)]
    });
    let field = |(name, value): (&str, Option<f64>)| format!("\"{name}\":{},", value.map_or("null".into(), number));
    let mut text: String = names.into_iter().zip(values).map(field).collect();
    let _ = write!(text, "\"calls\":{},\"missing_calls\":{}", counts.calls, counts.missing);
    let _ = write!(text, ",\"enabled_ns\":{},\"running_ns\":{}", counts.enabled_ns, counts.running_ns);
    format!("{{{text}}}")
}

fn json_times(text: &mut String, times: &Times) {
    let _ = write!(text, ",\"calls\":{},\"recorded_calls\":{}", times.calls, times.recorded);
    let if_known = |certainty, ns| known(certainty, ns).map_or_else(|| "null".to_owned(), number);
    let (certainty, self_certainty) = (times.certainty(), times.self_certainty());
    let _ = write!(text, ",\"forward_ns\":{}", if_known(certainty, times.forward_ns));
    let _ = write!(text, ",\"self_ns\":{}", if_known(self_certainty, times.self_ns));
    let _ = write!(text, ",\"markers_ns\":{}", number(times.markers_ns));
    let _ = write!(text, ",\"self_markers_ns\":{}", number(times.self_markers_ns));
    let _ = write!(text, ",\"reverse_calls\":{},\"reverse_ns\":{}", times.reverse_calls, number(times.reverse_ns));
    let Some(spread) = &times.calls_ns else { return };
    let variance = spread.variance.map_or("null".into(), number);
    let _ = write!(text, ",\"mean_ns\":{},\"variance_ns2\":{variance}", if_known(certainty, spread.mean));
    let _ = write!(text, ",\"min_ns\":{},\"max_ns\":{}", number(spread.min), number(spread.max));
    let _ = write!(text, ",\"p50_ns\":{},\"p99_ns\":{}", number(spread.p50), number(spread.p99));
}

fn number(value: f64) -> String {
    if value.is_finite() { format!("{value}") } else { "null".into() }
}

/// A string of JSON (RFC 8259).
fn string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                let _ = write!(quoted, "\\{character}");
            }
            control if control.is_control() || control > '\u{ffff}' => {
                for unit in control.encode_utf16(&mut [0; 2]) {
                    let _ = write!(quoted, "\\u{unit:04x}");
                }
            }
            other => quoted.push(other),
        }
    }
    quoted + "\""
}

/// Writes what the environment asks for, and says which regions are in no row.
pub(crate) fn at_exit(snapshot: &Snapshot, is_child: bool) {
    let is_asked = |variable: &str| std::env::var_os(variable).is_some_and(|target| !target.is_empty());
    if is_asked(CSV) || is_asked(JSON) {
        unended(snapshot)
            .into_iter()
            .chain(outlasted(snapshot))
            .chain(snapshot.lost.sentences(|calls| calls.to_string()))
            .for_each(|warning| warn(&warning));
    }
    for (variable, text) in [(CSV, csv as fn(&Snapshot) -> String), (JSON, json)] {
        if let Some(target) = std::env::var_os(variable).filter(|target| !target.is_empty())
            && let Err(error) = write(target.as_ref(), &text(snapshot), is_child)
        {
            complain(variable, &error);
        }
    }
}

/// Which regions were entered, but have no call that ended.
fn unended(snapshot: &Snapshot) -> Option<String> {
    let ended: BTreeSet<String> = snapshot.rows().into_iter().map(|row| row.name).collect();
    let entered: BTreeSet<&str> = snapshot.nodes.iter().map(|node| node.name.as_str()).collect();
    let open: Vec<_> = entered.into_iter().filter(|name| !ended.contains(*name)).collect();
    (!open.is_empty()).then(|| format!("no call has ended of {}: no row has it", first_of(&open)))
}

/// Of which regions the time alone isn't known, and what outlasted them.
fn outlasted(snapshot: &Snapshot) -> Option<String> {
    let pairs = snapshot.nodes.iter().filter_map(|node| Some((node.name.as_str(), node.outlasted_by.as_deref()?)));
    let (outlasted, by): (BTreeSet<&str>, BTreeSet<&str>) = pairs.unzip();
    let [outlasted, by] = [outlasted, by].map(|names| first_of(&Vec::from_iter(names)));
    (!outlasted.is_empty()).then(|| outlasted_words("self_time", &outlasted, &by))
}

/// So many names are told.
const MOST_NAMED: usize = 8;

/// The first of some names, and how many more there are.
fn first_of(names: &[&str]) -> String {
    let first: Vec<_> = names.iter().take(MOST_NAMED).map(|name| format!("'{}'", name.escape_debug())).collect();
    let more = match names.len() - first.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    first.join(", ") + &more
}

#[expect(clippy::print_stderr, reason = "the program is at its end")]
fn warn(what: &str) {
    eprintln!("perfprop: {what}");
}

#[expect(clippy::print_stderr, reason = "the program is at its end")]
fn complain(variable: &str, error: &io::Error) {
    eprintln!("perfprop: {variable}: {error}; the regions of this program are not written");
}

/// What stands for the process's number in the name of a file.
const NUMBER: &str = "%p";

/// A process that was forked writes a file of its own, with its number behind the name. So does one that finds a file which
/// another process of this run has written.
fn write(target: &Path, text: &str, is_child: bool) -> io::Result<()> {
    if target.as_os_str() == "-" {
        return io::stdout().write_all(text.as_bytes());
    }
    let number = std::process::id();
    if let Some(name) = target.to_str().filter(|name| name.contains(NUMBER)) {
        return std::fs::write(name.replace(NUMBER, &number.to_string()), text);
    }
    let mut own = target.as_os_str().to_owned();
    own.push(format!(".{number}"));
    if is_child {
        return std::fs::write(own, text);
    }
    match File::options().write(true).create_new(true).open(target) {
        Ok(mut new) => new.write_all(text.as_bytes()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if replace(target, text)? == Replaced::No {
                let (of_another, own_name) = (target.display(), Path::new(&own).display());
                warn(&format!("{of_another} is another process's of this run: this one's regions are in {own_name}"));
                std::fs::write(&own, text)?;
            }
            Ok(())
        }
        Err(error) => Err(error),
    }
}

#[derive(PartialEq)]
enum Replaced {
    Yes,
    /// Another process of this run has written it, or holds its lock.
    No,
}

/// Writes over a file of an earlier run, or into what isn't a regular file.
fn replace(target: &Path, text: &str) -> io::Result<Replaced> {
    let mut file = File::options().write(true).open(target)?;
    if file.metadata()?.is_file() {
        // Of processes that end together, one looks when the other has written.
        if lock(&file) == Lock::Held {
            return Ok(Replaced::No);
        }
        if run::has_written(&file.metadata()?) {
            return Ok(Replaced::No);
        }
        file.set_len(0)?;
    }
    file.write_all(text.as_bytes()).map(|()| Replaced::Yes)
}

#[derive(PartialEq)]
enum Lock {
    /// This process has it, or the file system has none.
    Taken,
    /// Another one has had it for longer than writing takes.
    Held,
}

/// Takes the file's lock, which lasts while the file is open. Who holds it for long may wait for this program to end.
fn lock(file: &File) -> Lock {
    const LONGEST: Duration = Duration::from_secs(1);
    const PAUSE: Duration = Duration::from_millis(2);
    let begun = Instant::now();
    loop {
        #[expect(unsafe_code, reason = "a call of the kernel, which the standard library has from Rust 1.89 on")]
        // SAFETY: it takes numbers.
        let done = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
        let error = io::Error::last_os_error();
        match error.kind() {
            _ if done == 0 => return Lock::Taken,
            io::ErrorKind::Interrupted => {}
            io::ErrorKind::WouldBlock if begun.elapsed() < LONGEST => std::thread::sleep(PAUSE),
            io::ErrorKind::WouldBlock => return Lock::Held,
            _ => return Lock::Taken,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_c_prints_them() {
        let printed = [0.0, 7.0385e-5, 0.00111821, 0.0098197, 1.0, 123_456.7, 1_234_567.0, 0.1, 1e-10].map(significant);
        let wanted = ["0", "7.0385e-05", "0.00111821", "0.0098197", "1", "123457", "1.23457e+06", "0.1", "1e-10"];
        assert_eq!(printed, wanted);
    }

    #[test]
    fn names_are_quoted_where_they_need_it() {
        let names = ["transformed data", "a,b", "say \"x\"", "two\nlines", "\u{1b}[31m"].map(quoted);
        assert_eq!(names, ["transformed data", "\"a,b\"", "\"say \"\"x\"\"\"", "\"two\nlines\"", "\u{1b}[31m"]);
        assert_eq!(string("\u{1b}\"\\é\u{1f600}"), "\"\\u001b\\\"\\\\é\\ud83d\\ude00\"");
    }
}
