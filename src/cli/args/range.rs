//! Parses ranges of times.

use crate::recording::TimeRange;
use crate::tui;

/// `12.5-30` or `1:00-1:30`.
pub(crate) fn range(text: &str) -> Result<TimeRange, String> {
    let ends = text.split_once('-').and_then(|(from, to)| Some((tui::parse_time(from)?, tui::parse_time(to)?)));
    match ends {
        Some((from, to)) if from < to => Ok(TimeRange { from, to }),
        _ => Err("give two times, the earlier first, as in 12.5-30 or 1:00-1:30".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::WallNs;

    #[test]
    fn ranges() {
        let seconds = |tenths: u64| WallNs(tenths * 100_000_000);
        assert_eq!(range("12.5-30"), Ok(TimeRange { from: seconds(125), to: seconds(300) }));
        assert_eq!(range("0-1:01"), Ok(TimeRange { from: seconds(0), to: seconds(610) }));
        assert!(["", "3", "3-", "-3", "5-5", "6-5", "a-b", "1-2-3"].iter().all(|text| range(text).is_err()));
    }
}
