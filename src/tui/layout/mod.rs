//! Divides the screen into regions.

use ratatui::layout::Rect;

pub(super) mod profile;

/// The least width and height that anything can be shown in.
pub(in crate::tui) const LEAST: (u16, u16) = (20, 3);

/// Rows of the strip below the table of events.
const STRIP: u16 = 5;

/// Rows of the time line of a replay.
pub(in crate::tui) const TIMELINE: u16 = 2;

/// Rows of a step of the tour: its title, and its words.
pub(in crate::tui) const TOUR: u16 = 5;

/// Whether a screen has room for a time line: that leaves with the strip, below 20 rows, and where it would be short.
pub(in crate::tui) fn has_room_for_timeline((width, height): (u16, u16)) -> bool {
    width >= 60 && height >= 20
}

/// How much there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tui) enum Room {
    /// Room for one sentence only.
    TooSmall,
    /// Room for a line for each event.
    Lines,
    /// One panel, with a strip below it.
    Small,
    /// Room for several panels.
    Medium,
    /// Room for three columns of panels.
    Large,
}

impl Room {
    /// The room on a screen of this width and height.
    pub(in crate::tui) fn on(size: (u16, u16)) -> Self {
        Self::of(Rect::new(0, 0, size.0, size.1))
    }

    pub(in crate::tui) fn of(area: Rect) -> Self {
        match (area.width, area.height) {
            (width, height) if width < LEAST.0 || height < LEAST.1 => Self::TooSmall,
            (width, height) if width < 40 || height < 6 => Self::Lines,
            (width, height) if width >= 170 && height >= 45 => Self::Large,
            (width, height) if width >= 110 && height >= 32 => Self::Medium,
            _ => Self::Small,
        }
    }
}

/// The rows of the screen; a region without room is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tui) struct Regions {
    pub(in crate::tui) header: Rect,
    pub(in crate::tui) tabs: Rect,
    pub(in crate::tui) body: Rect,
    pub(in crate::tui) timeline: Rect,
    pub(in crate::tui) message: Rect,
    pub(in crate::tui) hints: Rect,
}

impl Regions {
    /// Header, tabs, message and hints take a row each. Below 12 rows the tabs and the message go;
    /// below 6 only the header stays, and below 4 nothing does. A time line has so many rows.
    pub(in crate::tui) fn of(area: Rect, room: Room, timeline: u16) -> Self {
        let height = area.height;
        let header = u16::from(height >= 4);
        let full = height >= 12 && room != Room::Lines;
        let (tabs, message) = (u16::from(full), u16::from(full));
        let hints = u16::from(height >= 6);
        let rest = height - header - tabs - message - hints;
        let timeline = timeline.min(rest.saturating_sub(1));
        let body = rest - timeline;
        let mut next = area.y;
        let mut rows = |rows: u16| {
            let region = Rect { y: next, height: rows, ..area };
            next += rows;
            region
        };
        Self {
            header: rows(header),
            tabs: rows(tabs),
            body: rows(body),
            timeline: rows(timeline),
            message: rows(message),
            hints: rows(hints),
        }
    }
}

/// The table, and the strip below it unless the screen has under 20 rows. The area counts the row that they share
/// twice.
pub(in crate::tui) fn above_strip(area: Rect) -> (Rect, Rect) {
    // 20 rows on the screen are 17 here.
    let strip = if area.height >= 17 { STRIP } else { 0 };
    split_below(area, strip)
}

/// What the panels of the overview have to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tui) struct Filled {
    /// How many lines the table of events has.
    pub(in crate::tui) events: usize,
    /// How many relations there are.
    pub(in crate::tui) relations: usize,
    /// How many lines the command has written; `None` where it is not this program's.
    pub(in crate::tui) output: Option<usize>,
}

/// The most rows of a log that has the width of the screen: a part of all, and not less than so many.
const WIDE_LOG: u16 = 7;
const LOG_PART: u16 = 5;
/// Rows of one beside other panels, whose messages take several lines.
const NARROW_LOG: u16 = 8;

/// The part of the width, in percent, that the profile has beside the overview: more where that has no columns of its
/// own.
const PROFILE_BESIDE_ONE: u16 = 36;
const PROFILE_BESIDE_TWO: u16 = 26;

/// Cells of a screen from which on the table of events has all its columns beside the chart of one.
const WITH_CHART_BESIDE: u16 = 170;

/// Rows below the events, and what stands there otherwise, from which on a chart of one is drawn in them.
pub(in crate::tui) const LEAST_CHART: u16 = 9;

/// The panels of the overview; one without anything to show may be empty. Without a place of its own the detail has the
/// rows that the events leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tui) struct Overview {
    pub(in crate::tui) events: Rect,
    pub(in crate::tui) detail: Rect,
    pub(in crate::tui) relations: Rect,
    pub(in crate::tui) log: Rect,
    pub(in crate::tui) output: Option<Rect>,
}

impl Filled {
    /// Whether the chart of an event has a column of its own: not where few events leave it the rows below them.
    fn has_chart_beside(self, area: Rect, room: Room) -> bool {
        let is_wide = room == Room::Large || area.width >= WITH_CHART_BESIDE;
        is_wide && (self.relations > 0 || rows_of_list(self.events) > area.height / 2)
    }
}

/// Whether the profile stands at the right of the overview: on a large screen, and on one that is as wide, but for
/// charts there.
pub(in crate::tui) fn has_profile_beside(area: Rect, room: Room, filled: Filled) -> bool {
    match room {
        Room::Large => true,
        Room::Medium => area.width >= WITH_CHART_BESIDE && !filled.has_chart_beside(area, room),
        Room::Small | Room::Lines | Room::TooSmall => false,
    }
}

/// The overview, and at the right of it the profile.
pub(in crate::tui) fn beside_profile(area: Rect, filled: Filled) -> (Rect, Rect) {
    let part = if filled.has_chart_beside(area, Room::Large) { PROFILE_BESIDE_TWO } else { PROFILE_BESIDE_ONE };
    split_right(area, area.width * part / 100)
}

/// ```text
/// events               events     | detail          events          | detail
/// detail               relations  | log             relations | log | output
/// relations | log                 | output
///           | output
/// ```
///
/// `log_rows` says how many rows a log of some width has to show, up to so many.
pub(in crate::tui) fn overview(area: Rect, room: Room, filled: Filled, log_rows: impl Fn(u16, u16) -> u16) -> Overview {
    let has_output = filled.output.is_some();
    if !filled.has_chart_beside(area, room) {
        return stacked(area, filled, log_rows);
    }
    if room == Room::Large {
        let most = area.height * 2 / 5;
        let is_log_alone = filled.relations == 0 && !has_output;
        let (upper, lower) = split_below(area, if is_log_alone { log_rows(area.width, most) } else { most });
        let (events, detail) = split_right(upper, upper.width * 31 / 100);
        let (relations, rest) =
            split_right(lower, if filled.relations > 0 { lower.width * 3 / 5 } else { lower.width });
        let (log, output) = if has_output { split_right(rest, rest.width / 2) } else { (rest, Rect::default()) };
        return Overview { events, detail, relations, log, output: has_output.then_some(output) };
    }
    let (left, right) = split_right(area, area.width * 37 / 100);
    let lower = area.height * 4 / 10;
    let (events, relations) = split_below(left, if filled.relations > 0 { lower } else { 0 });
    let (log, output) = log_and_output(right, lower, filled, log_rows);
    let (detail, below) = split_below(right, log + output);
    let (log, output) = split_below(below, output);
    Overview { events, detail, relations, log, output: has_output.then_some(output) }
}

/// The rows of the log and, below it, of the output, in so many at most: one that has less to say than its half leaves the rest to the
/// other, and what neither needs to what stands above them.
fn log_and_output(area: Rect, most: u16, filled: Filled, log_rows: impl Fn(u16, u16) -> u16) -> (u16, u16) {
    let output = filled.output.map_or(0, rows_of_text);
    let log = log_rows(area.width, most);
    let output = output.min((most / 2).max(most.saturating_sub(log)));
    (log.min(most - output), output)
}

/// The events over all of the width, as columns only grow with that.
fn stacked(area: Rect, filled: Filled, log_rows: impl Fn(u16, u16) -> u16) -> Overview {
    let most = area.height * 4 / 10;
    let lower = match (filled.relations, filled.output) {
        (0, None) => log_rows(area.width, WIDE_LOG.max(area.height / LOG_PART)),
        // The command's output has the screen Log, too; the rows are those of what is counted.
        (0, Some(lines)) => rows_of_text(lines).max(log_rows(area.width / 2, NARROW_LOG)).min(NARROW_LOG).min(most),
        (relations, None) => rows_of_list(relations).max(log_rows(beside_relations(area.width), NARROW_LOG)).min(most),
        (_, Some(_)) => most,
    };
    let (events, lower) = split_below(area, lower);
    let (relations, right) = match filled.relations > 0 {
        true => split_right(lower, beside_relations(lower.width)),
        false => (Rect { width: 0, ..lower }, lower),
    };
    let (log, output) = match (filled.output.is_some(), filled.relations > 0) {
        (false, _) => (right, Rect::default()),
        (true, true) => {
            // The rows that neither needs are the log's: more may come.
            let (_, output) = log_and_output(right, right.height, filled, log_rows);
            split_below(right, output)
        }
        (true, false) => split_right(right, right.width / 2),
    };
    Overview { events, detail: Rect::default(), relations, log, output: filled.output.map(|_| output) }
}

/// Columns of what stands beside relations.
fn beside_relations(width: u16) -> u16 {
    width * 37 / 100
}

/// Rows of a panel with so many lines, or with a line that says that there are none.
fn rows_of_text(lines: usize) -> u16 {
    u16::try_from(lines.max(1)).unwrap_or(u16::MAX).saturating_add(2)
}

/// Rows of a panel with a list of so many lines: its frame and its heads take three more.
pub(in crate::tui) fn rows_of_list(lines: usize) -> u16 {
    u16::try_from(lines).unwrap_or(u16::MAX).saturating_add(3)
}

pub(in crate::tui) fn split_below(area: Rect, rows: u16) -> (Rect, Rect) {
    let rows = rows.min(area.height);
    let above = Rect { height: area.height - rows, ..area };
    (above, Rect { y: above.bottom(), height: rows, ..area })
}

pub(in crate::tui) fn split_above(area: Rect, rows: u16) -> (Rect, Rect) {
    split_below(area, area.height.saturating_sub(rows))
}

pub(in crate::tui) fn split_right(area: Rect, columns: u16) -> (Rect, Rect) {
    let columns = columns.min(area.width);
    let left = Rect { width: area.width - columns, ..area };
    (left, Rect { x: left.right(), width: columns, ..area })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_covered_without_overlap() {
        for width in 0..=250 {
            for height in 0..=80 {
                let area = Rect::new(0, 0, width, height);
                let room = Room::of(area);
                if room == Room::TooSmall {
                    continue;
                }
                let regions =
                    Regions::of(area, room, if has_room_for_timeline((width, height)) { TIMELINE } else { 0 });
                let all =
                    [regions.header, regions.tabs, regions.body, regions.timeline, regions.message, regions.hints];
                assert_eq!(all.iter().map(|region| region.height).sum::<u16>(), height);
                assert!(regions.body.height > 0);
                for case in 0..24 {
                    let [output, log] = [0, 1].map(|bit| case >> bit & 1 == 1);
                    let relations = [0, 1, 30][case / 4 % 3];
                    let filled = Filled { events: [3, 50][case / 12], relations, output: output.then_some(case) };
                    let panels = overview(regions.body, room, filled, |_, most| if log { most } else { 3 });
                    let panels =
                        [panels.events, panels.detail, panels.relations, panels.log, panels.output.unwrap_or_default()];
                    assert_eq!(panels.iter().map(|panel| panel.area()).sum::<u32>(), regions.body.area());
                }
            }
        }
    }

    #[test]
    fn panels_have_the_rows_that_they_have_something_to_show_in() {
        let area = Rect::new(0, 0, 200, 54);
        let of = |events, output, log: u16| {
            let filled = Filled { events, relations: 0, output };
            overview(area, Room::Large, filled, |_, most| log.min(most))
        };
        let heights = |panels: Overview| (panels.events.height, panels.detail.width, panels.log.height);
        // The chart of few events stands below them.
        assert_eq!(heights(of(5, None, 4)), (50, 0, 4));
        assert_eq!(heights(of(5, None, 99)), (44, 0, 10));
        assert_eq!(heights(of(5, Some(0), 3)), (51, 0, 3));
        assert_eq!(heights(of(5, Some(99), 3)), (46, 0, 8));
        assert_eq!(heights(of(40, None, 4)), (50, 62, 4));
        let width = |events| beside_profile(area, Filled { events, relations: 0, output: None }).1.width;
        assert_eq!([width(5), width(40)], [72, 52]);
        let beside = |width, room, relations| {
            let filled = Filled { events: 5, relations, output: None };
            has_profile_beside(Rect { width, height: 34, ..area }, room, filled)
        };
        assert!(beside(200, Room::Medium, 0) && !beside(200, Room::Medium, 1) && !beside(120, Room::Medium, 0));
    }

    #[test]
    fn an_empty_log_or_output_leaves_its_rows_to_the_other() {
        let of = |output, log: u16| {
            let filled = Filled { events: 3, relations: 9, output: Some(output) };
            let panels = overview(Rect::new(0, 0, 120, 34), Room::Medium, filled, |_, most| log.min(most));
            (panels.log.height, panels.output.map(|output| output.height))
        };
        assert_eq!(
            [of(0, 99), of(0, 3), of(99, 3), of(99, 99)],
            [(10, Some(3)), (10, Some(3)), (3, Some(10)), (7, Some(6))]
        );
        // Relations alone have as many rows as they need.
        let alone = Filled { events: 3, relations: 2, output: None };
        let height =
            |log: u16| overview(Rect::new(0, 0, 120, 34), Room::Medium, alone, |_, most| log.min(most)).log.height;
        assert_eq!([height(3), height(99)], [5, 8]);
    }

    #[test]
    fn regions_leave_in_order() {
        let rooms = [(19, 3), (20, 2), (20, 3), (39, 24), (80, 5), (80, 24), (120, 40), (200, 60)];
        let found = rooms.map(|(width, height)| Room::of(Rect::new(0, 0, width, height)));
        use Room::{Large, Lines, Medium, Small, TooSmall};
        assert_eq!(found, [TooSmall, TooSmall, Lines, Lines, Lines, Small, Medium, Large]);
        let rows = |height| {
            let area = Rect::new(0, 0, 80, height);
            let regions = Regions::of(area, Room::of(area), 0);
            (regions.header.height, regions.tabs.height, regions.message.height, regions.hints.height)
        };
        assert_eq!((rows(24), rows(11), rows(5), rows(3)), ((1, 1, 1, 1), (1, 0, 0, 1), (1, 0, 0, 0), (0, 0, 0, 0)));
        assert_eq!(above_strip(Rect::new(0, 2, 80, 20)).1.height, STRIP);
        assert_eq!(above_strip(Rect::new(0, 2, 80, 16)).1.height, 0);
    }
}
