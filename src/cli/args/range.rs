//! Parses times, and ranges of them.

use crate::recording::TimeRange;
use crate::tui;
use crate::units::WallNs;

/// `90`, `12.5` or `1:30`.
pub(crate) fn time(text: &str) -> Result<WallNs, String> {
    tui::parse_time(text).ok_or_else(|| "give seconds, as in 12.5, or minutes and seconds, as in 1:30".into())
}

/// `12.5-30` or `1:00-1:30`.
pub(crate) fn range(text: &str) -> Result<TimeRange, String> {
    let ends = text.split_once('-').and_then(|(from, to)| Some((time(from).ok()?, time(to).ok()?)));
    match ends {
        Some((from, to)) if from < to => Ok(TimeRange { from, to }),
        _ => Err("give two times, the earlier first, as in 12.5-30 or 1:00-1:30".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let seconds = |seconds: u64| Ok(WallNs(seconds * 1_000_000_000));
        assert_eq!([time("7"), time("1:30"), time("83:20:00")], [seconds(7), seconds(90), seconds(300_000)]);
        assert!(["", "-1", "1e3", "nan", "x"].iter().all(|text| time(text).is_err()));
    }

    #[test]
    fn ranges() {
        let seconds = |tenths: u64| WallNs(tenths * 100_000_000);
        assert_eq!(range("12.5-30"), Ok(TimeRange { from: seconds(125), to: seconds(300) }));
        assert_eq!(range("0-1:01"), Ok(TimeRange { from: seconds(0), to: seconds(610) }));
        assert!(["", "3", "3-", "-3", "5-5", "6-5", "a-b", "1-2-3"].iter().all(|text| range(text).is_err()));
    }
}
