//! Tracks where in the recording a replay stands, and how fast it goes on.

use crate::recording::{Speed, TimeRange};
use crate::units::WallNs;

/// The speeds that keys go through.
const SPEEDS: [f64; 9] = [0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0];

/// Where a replay goes from the time that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeDirection {
    Back,
    On,
}

impl TimeRange {
    /// Both ranges and what lies between them.
    pub(super) fn with(self, other: Self) -> Self {
        Self { from: self.from.min(other.from), to: self.to.max(other.to) }
    }

    /// How long it is.
    pub(super) fn length(self) -> WallNs {
        self.to - self.from
    }

    /// A range as long, by so much earlier or later, within a recording of this length.
    pub(super) fn moved(self, by: WallNs, direction: TimeDirection, length: WallNs) -> Self {
        let from = match direction {
            TimeDirection::Back => WallNs(self.from.0.saturating_sub(by.0)),
            TimeDirection::On => WallNs(self.from.0.saturating_add(by.0).min((length - self.length()).0)),
        };
        Self { from, to: WallNs(from.0 + self.length().0) }
    }
}

/// What of a recording is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sight {
    /// What came before the time at which the replay stands.
    #[default]
    UpToNow,
    /// The same, and a range begins at this time, whose end isn't chosen yet.
    RangeBegun(WallNs),
    /// A range alone.
    Range(TimeRange),
}

/// How a replay goes on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Playback {
    pub(super) playing: bool,
    /// Seconds of the recording a second; 0 is at once.
    pub(super) speed: f64,
    /// Times that the user marked, in order.
    pub(super) marks: Vec<WallNs>,
    pub(super) sight: Sight,
    /// The cell of the time line at which the mouse went down.
    pub(super) dragged_from: Option<TimeRange>,
    /// A way through the recording, while there is one.
    pub(super) way: Option<WayDone>,
}

/// How far a way through the recording is done, and where it leads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WayDone {
    pub(super) part: f64,
    pub(super) to: WallNs,
}

impl Playback {
    pub(super) fn new(speed: f64) -> Self {
        Self { playing: true, speed, marks: Vec::new(), sight: Sight::default(), dragged_from: None, way: None }
    }

    /// The range that is chosen, or would be if it ended now.
    pub(super) fn range_in_sight(&self, now: WallNs) -> Option<TimeRange> {
        match self.sight {
            Sight::UpToNow => None,
            Sight::RangeBegun(at) => Some(TimeRange::between(at, now)),
            Sight::Range(range) => Some(range),
        }
    }

    pub(super) fn pace(&self) -> Speed {
        if self.speed > 0.0 { Speed::Times(self.speed) } else { Speed::AtOnce }
    }

    /// Plays on; what was shown at once is played as it was recorded.
    pub(super) fn go_on(&mut self) {
        self.playing = true;
        if self.speed <= 0.0 {
            self.speed = 1.0;
        }
    }

    /// The next of the known speeds.
    pub(super) fn faster(&mut self) {
        self.speed = SPEEDS.into_iter().find(|&speed| speed > self.speed).unwrap_or(SPEEDS[SPEEDS.len() - 1]);
    }

    pub(super) fn slower(&mut self) {
        self.speed = SPEEDS.into_iter().rev().find(|&speed| speed < self.speed).unwrap_or(SPEEDS[0]);
    }

    /// Marks a time, or takes its mark away.
    pub(super) fn mark(&mut self, now: WallNs) -> bool {
        match self.marks.binary_search(&now) {
            Ok(place) => {
                self.marks.remove(place);
                false
            }
            Err(place) => {
                self.marks.insert(place, now);
                true
            }
        }
    }

    /// The mark after a time; the first behind the last.
    pub(super) fn next_mark(&self, now: WallNs) -> Option<WallNs> {
        self.marks.iter().find(|&&mark| mark > now).or(self.marks.first()).copied()
    }
}

/// A time as people write it: `83`, `83.5`, `1:23`, `0:01:23`; `None` if it is none.
pub fn parse_time(text: &str) -> Option<WallNs> {
    let mut seconds = 0.0;
    let parts: Vec<&str> = text.trim().split(':').collect();
    if parts.len() > 3 {
        return None;
    }
    for (place, part) in parts.iter().enumerate() {
        let last = place + 1 == parts.len();
        let digits = part.bytes().all(|byte| byte.is_ascii_digit() || (last && byte == b'.'));
        let number: f64 = part.parse().ok().filter(|_| digits)?;
        if place > 0 && number >= 60.0 {
            return None;
        }
        seconds = seconds * 60.0 + number;
    }
    Some(WallNs((seconds * 1e9) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn times_are_read_as_people_write_them() {
        let good = [("83", 83.0), ("83.5", 83.5), ("1:23", 83.0), ("0:01:23", 83.0), ("2:00:00", 7200.0)];
        for (text, seconds) in good {
            assert_eq!(parse_time(text), Some(WallNs((seconds * 1e9) as u64)), "{text}");
        }
        for bad in ["", ":", "1:", "1:60", "1.5:00", "-3", "1e3", "a", "1:2:3:4", "inf"] {
            assert_eq!(parse_time(bad), None, "{bad}");
        }
    }

    #[test]
    fn speeds_go_up_and_down_to_an_end() {
        let mut playback = Playback::new(1.0);
        playback.faster();
        assert_eq!((playback.speed, playback.pace()), (2.0, Speed::Times(2.0)));
        (0..20).for_each(|_| playback.faster());
        assert_eq!(playback.speed, 64.0);
        (0..20).for_each(|_| playback.slower());
        assert_eq!(playback.speed, 0.125);
        assert_eq!(Playback::new(0.0).pace(), Speed::AtOnce);
    }

    #[test]
    fn ranges_move_within_the_recording() {
        let range = |from: u64, to: u64| TimeRange { from: WallNs(from), to: WallNs(to) };
        assert_eq!(range(4, 9).with(range(1, 2)), range(1, 9));
        assert_eq!(range(4, 9).moved(WallNs(3), TimeDirection::On, WallNs(20)), range(7, 12));
        assert_eq!(range(4, 9).moved(WallNs(30), TimeDirection::On, WallNs(20)), range(15, 20));
        assert_eq!(range(4, 9).moved(WallNs(30), TimeDirection::Back, WallNs(20)), range(0, 5));
    }

    #[test]
    fn marks_stay_in_order_and_go_round() {
        let mut playback = Playback::new(1.0);
        assert_eq!(playback.next_mark(WallNs(0)), None);
        assert!(playback.mark(WallNs(9 * SECOND)) && playback.mark(WallNs(3 * SECOND)));
        assert_eq!(playback.next_mark(WallNs(3 * SECOND)), Some(WallNs(9 * SECOND)));
        assert_eq!(playback.next_mark(WallNs(9 * SECOND)), Some(WallNs(3 * SECOND)));
        assert!(!playback.mark(WallNs(3 * SECOND)));
        assert_eq!(playback.marks, [WallNs(9 * SECOND)]);
    }
}
