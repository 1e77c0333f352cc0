//! Parses the first line of a sample of `perf script`.

/// What the first line of a sample says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SampleHead<'a> {
    pub(super) comm: &'a str,
    pub(super) pid: Option<&'a str>,
    pub(super) tid: Option<&'a str>,
    pub(super) period: Option<u64>,
    /// Whether more than a blank stands behind the period: perf aligns several events so.
    pub(super) is_padded: bool,
    /// Name of the event; empty where the line has none.
    pub(super) event: &'a str,
    /// The only frame, where there are no call chains.
    pub(super) frame: Option<&'a str>,
}

impl<'a> SampleHead<'a> {
    /// Takes the line apart, if it holds a number of a process or an event.
    pub(super) fn parse(line: &'a str) -> Option<Self> {
        match process_field(line) {
            Some((comm, ids, rest)) => {
                let (pid, tid) = ids.split_once('/').map_or((None, ids), |(pid, tid)| (Some(pid), tid));
                let header = Self { comm, pid, tid: Some(tid), ..Self::default() };
                header.fields(rest)
            }
            None => {
                if let Some((comm, rest)) = time_field(line) {
                    return Self { comm, ..Self::default() }.fields(rest);
                }
                let event = line.trim().strip_suffix(':')?;
                let (before, event) = event.rsplit_once(' ').unwrap_or(("", event));
                let before = before.trim_end();
                let period = before.rsplit_once(' ').and_then(|(comm, period)| Some((comm, period.parse().ok()?)));
                let (comm, period) = period.map_or((before, None), |(comm, period)| (comm, Some(period)));
                Some(Self { comm: comm.trim(), period, event, ..Self::default() })
            }
        }
    }

    /// What stands behind the process: `[cpu] time: period event: frame`.
    fn fields(mut self, mut rest: &'a str) -> Option<Self> {
        let mut has_time = false;
        loop {
            rest = rest.trim_start();
            let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
            if word.is_empty() {
                return has_time.then_some(self);
            }
            rest = after;
            if word.starts_with("PERF_RECORD_") {
                return Some(Self { event: word, ..self });
            }
            match word.strip_suffix(':') {
                Some(time) if !has_time && is_time(time) => has_time = true,
                Some(event) => {
                    self.event = event;
                    self.frame = inline_frame(rest.trim());
                    return Some(self);
                }
                None if word.bytes().all(|byte| byte.is_ascii_digit()) => {
                    self.period = word.parse().ok();
                    self.is_padded = rest.starts_with(' ');
                }
                None => {}
            }
        }
    }
}

fn is_time(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// The name in front of the time of a line without numbers of a process, and the rest from the time on: `rec [001] 23.5: 12 cycles:`.
fn time_field(line: &str) -> Option<(&str, &str)> {
    let mut start = 0;
    for word in line.split(' ') {
        if is_exact_time(word) {
            let before = line[..start].trim();
            let (name, last) = before.rsplit_once(' ').unwrap_or(("", before));
            let comm = if is_cpu(last) { name.trim() } else { before };
            return Some((comm, &line[start..]));
        }
        start += word.len() + 1;
    }
    None
}

/// `23.500000:`, as perf prints times: events have no such names.
fn is_exact_time(word: &str) -> bool {
    word.strip_suffix(':').is_some_and(|time| time.contains('.') && is_time(time))
}

/// `[001]`
fn is_cpu(word: &str) -> bool {
    let number = word.strip_prefix('[').and_then(|word| word.strip_suffix(']'));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The address and the symbol behind an event, which may be fields of a tracepoint as well: the last ones, as the
/// address of data and what is there stand before them (`-F +addr`).
fn inline_frame(text: &str) -> Option<&str> {
    let is_hexadecimal = |word: &str| word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (first, _) = text.split_once(' ').filter(|(first, _)| is_hexadecimal(first))?;
    // A shorter word may be a symbol.
    let is_address =
        |word: &str| word.len() >= 6 && is_hexadecimal(word) && word.bytes().any(|byte| byte.is_ascii_digit());
    let mut begin = 0;
    for (place, _) in text.match_indices(' ').skip_while(|(place, _)| *place < first.len()) {
        let word = &text[place + 1..];
        let end = word.find(' ');
        if end.is_some_and(|end| is_address(&word[..end])) {
            begin = place + 1;
        }
    }
    Some(&text[begin..])
}

/// How far behind the word before it a period ends at least: perf aligns it with 10 columns, and numbers of processes
/// with fewer.
const PERIOD_COLUMNS: usize = 11;

/// The name, the numbers and the rest of a line, at a word of digits, or of two numbers with a slash between them: the
/// last one before the CPU or the time, as names of commands may hold spaces and digits; where neither is there, before
/// the period or the event.
fn process_field(line: &str) -> Option<(&str, &str, &str)> {
    let (mut start, mut end_before, mut last, mut before_event) = (0, 0, None, None);
    let mut has_event = false;
    for word in line.split(' ') {
        let end = start + word.len();
        // Behind the time stands a period.
        if is_exact_time(word) || is_cpu(word) && last.is_some() {
            return last;
        }
        let is_id = |text: &str| text.strip_prefix('-').unwrap_or(text).bytes().all(|byte| byte.is_ascii_digit());
        let is_ids = word.split('/').count() <= 2 && word.split('/').all(|id| !id.is_empty() && is_id(id));
        if is_ids && start > 0 && end < line.len() && !line[..start].trim().is_empty() {
            last = Some((line[..start].trim(), word, &line[end..]));
            let is_period = !word.contains('/') && end - end_before >= PERIOD_COLUMNS;
            before_event = if is_period || has_event { before_event } else { last };
        }
        has_event |= before_event.is_some() && word.ends_with(':');
        end_before = if word.is_empty() { end_before } else { end };
        start = end + 1;
    }
    before_event
}

/// A first line around what differs from sample to sample: its time, and its period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeadParts<'a> {
    pub(super) before: &'a [u8],
    pub(super) period: Option<u64>,
    pub(super) behind: &'a [u8],
}

impl<'a> HeadParts<'a> {
    pub(super) fn of(line: &'a [u8]) -> Option<Self> {
        let is_time = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
        let mut ends = memchr::memchr_iter(b':', line);
        let (before, rest) = ends.find_map(|end| {
            let start = line[..end].iter().rposition(|byte| !is_time(byte)).map_or(0, |at| at + 1);
            let is_word = start < end && (start == 0 || line[start - 1] == b' ');
            is_word.then(|| (&line[..start], &line[end + 1..]))
        })?;
        let word = rest.trim_ascii_start();
        let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 || word.get(digits) != Some(&b' ') {
            return Some(Self { before, period: None, behind: rest });
        }
        let period = std::str::from_utf8(&word[..digits]).ok()?.parse().ok()?;
        Some(Self { before, period: Some(period), behind: &word[digits..] })
    }

    /// Writes the head in the form by which known heads are looked up.
    pub(super) fn put_into(&self, text: &mut Vec<u8>) {
        text.clear();
        text.extend_from_slice(&self.before.len().to_le_bytes());
        text.push(u8::from(self.period.is_some()));
        text.extend_from_slice(self.before);
        text.extend_from_slice(self.behind);
    }

    /// Whether all that the header says but the period is said before and behind.
    pub(super) fn mean(&self, header: &SampleHead<'_>) -> bool {
        let [before, behind] = [self.before, self.behind].map(String::from_utf8_lossy);
        let period = if self.period.is_some() { " 0" } else { "" };
        let other = format!("{before}0.0:{period}{behind}");
        let expected = SampleHead { period: self.period.map(|_| 0), ..header.clone() };
        header.period == self.period && SampleHead::parse(&other) == Some(expected)
    }
}

/// Whether a line begins a sample beyond doubt.
pub(in crate::stack_formats) fn is_head(line: &[u8]) -> bool {
    SampleHead::parse(&String::from_utf8_lossy(line.trim_ascii_end())).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_taken_apart() {
        let ids = SampleHead { comm: "rec", tid: Some("7"), ..SampleHead::default() };
        let clock = SampleHead { event: "cpu-clock", ..SampleHead::default() };
        let full = SampleHead { period: Some(12), event: "cpu-clock", ..ids.clone() };
        for (line, header) in [
            ("rec 7  23.5:  12 cpu-clock: ", full.clone()),
            ("rec 7 [001] 23.5:  12 cpu-clock: ", full.clone()),
            ("rec 3/7  23.5:  12 cpu-clock:", SampleHead { pid: Some("3"), ..full.clone() }),
            ("V8 Worker 7  23.5:  12 cycles:u:", SampleHead { comm: "V8 Worker", event: "cycles:u", ..full.clone() }),
            // Digits in a name are no numbers of a process, and no period.
            (
                "Job.Worker 0 7 [001] 23.5: cpu-clock: ",
                SampleHead { comm: "Job.Worker 0", period: None, ..full.clone() },
            ),
            ("worker 3 3/7  23.5:  12 cpu-clock: ", SampleHead { comm: "worker 3", pid: Some("3"), ..full.clone() }),
            (
                "  rec 7  23.5:  12 cpu-clock:   5b f+0x1 (/x)",
                SampleHead { frame: Some("5b f+0x1 (/x)"), ..full.clone() },
            ),
            ("rec 7  23.5:  12    cpu-clock:", SampleHead { is_padded: true, ..full.clone() }),
            ("rec 7  23.5: cpu-clock: ", SampleHead { period: None, ..full.clone() }),
            (
                "rec 7  23.5: sched:sched_switch: prev=a b",
                SampleHead { period: None, event: "sched:sched_switch", ..full.clone() },
            ),
            ("rec 23.5: ", SampleHead { comm: "rec", ..SampleHead::default() }),
            ("V8 Worker [001]  23.5: ", SampleHead { comm: "V8 Worker", ..SampleHead::default() }),
            ("23.5: ", SampleHead::default()),
            (
                "rec 23.5:  12 cycles: ",
                SampleHead { comm: "rec", period: Some(12), event: "cycles", ..SampleHead::default() },
            ),
            // Of several numbers the period is the one that perf aligns.
            (
                "worker 0 17869          1 cpu-clock: ",
                SampleHead { comm: "worker 0", tid: Some("17869"), period: Some(1), ..clock.clone() },
            ),
            (
                "worker 0 17854/17869          1 cpu-clock: ",
                SampleHead {
                    pid: Some("17854"),
                    tid: Some("17869"),
                    period: Some(1),
                    comm: "worker 0",
                    ..clock.clone()
                },
            ),
            ("worker 0 17869 cpu-clock: ", SampleHead { comm: "worker 0", tid: Some("17869"), ..clock.clone() }),
            (
                "worker 0     3/7     1001001001 cpu-clock: ",
                SampleHead {
                    pid: Some("3"),
                    tid: Some("7"),
                    period: Some(1_001_001_001),
                    comm: "worker 0",
                    ..clock.clone()
                },
            ),
            ("rec 7 sched:s: prev 12 next 9", SampleHead { event: "sched:s", ..ids.clone() }),
            // What a program read or wrote there is no frame.
            (
                "rec 7 23.5:  12 cpu-clock:     5563d4553068 data+0x0 (/x y) ffffffff817554ea f+0x1 (/z)",
                SampleHead { frame: Some("ffffffff817554ea f+0x1 (/z)"), ..full.clone() },
            ),
            (
                "rec 7 23.5:  12 cpu-clock:     5563d4553068 1e05080022 |OP LOAD|BLK N/A 12 401126 decade (/z)",
                SampleHead { frame: Some("401126 decade (/z)"), ..full.clone() },
            ),
            ("rec cpu-clock: ", SampleHead { comm: "rec", event: "cpu-clock", ..SampleHead::default() }),
        ] {
            assert_eq!(SampleHead::parse(line), Some(header), "{line}");
        }
        for line in ["", "hello", "hello world 7", "7 7"] {
            assert_eq!(SampleHead::parse(line), None, "{line}");
        }
    }

    #[test]
    fn heads_are_known_by_what_does_not_differ() {
        let parts = |line: &'static str| HeadParts::of(line.as_bytes());
        let known =
            |line| parts(line).is_some_and(|parts| SampleHead::parse(line).is_some_and(|header| parts.mean(&header)));
        assert_eq!(
            parts("rec 7 [001] 23.5:  12 cpu-clock: "),
            Some(HeadParts { before: b"rec 7 [001] ", period: Some(12), behind: b" cpu-clock: " })
        );
        assert_eq!(parts("kworker/0:1 7 2.5: a:b:").map(|parts| parts.before), Some(&b"kworker/0:1 7 "[..]));
        assert!(known("rec 7 23.5: 12 cycles:") && known("rec 7 23.5:  12    cycles:") && known("rec 7 23.5: cycles:"));
        // What looks like a time is part of a name.
        assert!(!known("foo 12: bar 7 23.5: 1 ev:") && known("rec 23.5: 12 cycles:"));
        assert_eq!(parts("rec 7 23.5: 99999999999999999999 cycles:"), None);
    }
}
