//! Divides the Profile screen between the icicle, the table, and the callers beside it.

use ratatui::layout::Rect;

use super::{Regions, Room, split_below, split_right};

/// Rows of the panel that has the whole path.
const PATH: u16 = 11;

/// Columns between the table and the callers.
const BETWEEN: u16 = 3;

/// Rows inside a panel, before the icicle leaves for the table's sake.
const LEAST_BOTH: u16 = 9;

/// Which part of the screen has the room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tui) enum Emphasis {
    #[default]
    Both,
    Icicle,
    Table,
}

impl Emphasis {
    pub(in crate::tui) fn next(self) -> Self {
        match self {
            Self::Both => Self::Icicle,
            Self::Icicle => Self::Table,
            Self::Table => Self::Both,
        }
    }
}

/// What has the room with the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tui) enum BesideTable {
    Nothing,
    /// The icicle above it, with so many levels to show.
    Icicle {
        levels: u16,
    },
    /// That, and at the right the callers of the function that is selected in the table.
    IcicleAndCallers {
        levels: u16,
    },
}

impl BesideTable {
    pub(in crate::tui) fn levels(self) -> u16 {
        match self {
            Self::Nothing => 0,
            Self::Icicle { levels } | Self::IcicleAndCallers { levels } => levels,
        }
    }
}

/// Where everything stands; what has no room is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tui) struct ProfileLayout {
    /// The panel around the icicle and the table below it.
    pub(in crate::tui) panel: Rect,
    pub(in crate::tui) icicle: Rect,
    /// The heads of the table, on the line between icicle and table.
    pub(in crate::tui) heads: Rect,
    pub(in crate::tui) table: Rect,
    /// The heads of the callers, and their rows.
    pub(in crate::tui) callers_heads: Rect,
    pub(in crate::tui) callers: Rect,
    /// The panel with the whole path.
    pub(in crate::tui) path: Rect,
}

impl ProfileLayout {
    /// `focus` is whether the screen is the profile's alone.
    pub(in crate::tui) fn of(area: Rect, room: Room, emphasis: Emphasis, focus: bool, beside: BesideTable) -> Self {
        match (room, emphasis) {
            (Room::Lines, Emphasis::Icicle) => return Self { icicle: area, ..Self::default() },
            (Room::Lines, _) => return Self { table: area, ..Self::default() },
            _ => {}
        }
        let (area, path) = split_below(area, if room == Room::Large && focus { PATH } else { 0 });
        let inner = inside(area);
        let icicle = match emphasis {
            Emphasis::Icicle => inner.height,
            Emphasis::Table => 0,
            Emphasis::Both if inner.height >= LEAST_BOTH => most_levels(inner.height).min(beside.levels()),
            Emphasis::Both => 0,
        };
        let (above, below) = split_below(inner, inner.height - icicle);
        let (heads, table) = split_below(below, below.height.saturating_sub(1));
        let parts = Self { panel: area, icicle: above, heads, table, path, ..Self::default() };
        match beside {
            BesideTable::IcicleAndCallers { .. } if focus && matches!(room, Room::Medium | Room::Large) => {
                parts.with_callers()
            }
            _ => parts,
        }
    }

    /// The callers at the right of the table, a column of air and a line between them.
    fn with_callers(self) -> Self {
        let part = |area: Rect| {
            let (left, right) = split_right(area, area.width * 2 / 5);
            (Rect { width: left.width.saturating_sub(BETWEEN), ..left }, right)
        };
        let ((heads, callers_heads), (table, callers)) = (part(self.heads), part(self.table));
        Self { heads, callers_heads, table, callers, ..self }
    }
}

/// The most rows of an icicle in so many, which it shares with the table: in a low panel the table has twice as many.
fn most_levels(rows: u16) -> u16 {
    match rows {
        40.. => rows / 2,
        28.. => rows * 2 / 5,
        _ => (rows * 5 / 18).max(3),
    }
}

/// The area without the frame and, at the sides, a column of air.
fn inside(area: Rect) -> Rect {
    if area.width < 4 || area.height < 2 {
        return Rect::default();
    }
    Rect { x: area.x + 2, y: area.y + 1, width: area.width - 4, height: area.height - 2 }
}

/// How many rows the table of the Profile screen has.
pub(in crate::tui) fn table_rows(size: (u16, u16), timeline: u16, emphasis: Emphasis, beside: BesideTable) -> usize {
    let area = Rect::new(0, 0, size.0, size.1);
    let room = Room::of(area);
    let parts = ProfileLayout::of(Regions::of(area, room, timeline).body, room, emphasis, true, beside);
    usize::from(parts.table.height).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(width: u16, height: u16, emphasis: Emphasis, beside: BesideTable) -> ProfileLayout {
        let area = Rect::new(0, 0, width, height);
        let room = Room::of(area);
        ProfileLayout::of(Regions::of(area, room, 0).body, room, emphasis, true, beside)
    }

    fn rows(width: u16, height: u16, emphasis: Emphasis) -> (u16, u16, u16) {
        let parts = parts(width, height, emphasis, BesideTable::Icicle { levels: 99 });
        (parts.icicle.height, parts.table.height, parts.path.height)
    }

    #[test]
    fn sizes_by_hand() {
        assert_eq!(rows(80, 24, Emphasis::Both), (5, 12, 0));
        assert_eq!(rows(120, 40, Emphasis::Both), (13, 20, 0));
        assert_eq!(rows(200, 60, Emphasis::Both), (21, 21, 11));
        assert_eq!(rows(80, 24, Emphasis::Icicle), (18, 0, 0));
        assert_eq!(rows(80, 24, Emphasis::Table), (0, 17, 0));
        assert_eq!(rows(80, 10, Emphasis::Both), (0, 5, 0));
        assert_eq!(rows(30, 10, Emphasis::Both), (0, 8, 0));
        assert_eq!(rows(30, 10, Emphasis::Icicle), (8, 0, 0));
    }

    #[test]
    fn the_table_has_the_rows_that_the_icicle_has_no_levels_for() {
        let rows = |levels| {
            let parts = parts(120, 40, Emphasis::Both, BesideTable::Icicle { levels });
            (parts.icicle.height, parts.table.height)
        };
        assert_eq!([rows(99), rows(13), rows(3), rows(0)], [(13, 20), (13, 20), (3, 30), (0, 33)]);
    }

    #[test]
    fn callers_stand_beside_the_table() {
        let sizes = |width, height| {
            let parts = parts(width, height, Emphasis::Both, BesideTable::IcicleAndCallers { levels: 99 });
            [parts.table, parts.callers].map(|part| (part.width, part.height))
        };
        assert_eq!(sizes(80, 24), [(76, 12), (0, 0)]);
        assert_eq!(sizes(120, 40), [(67, 20), (46, 20)]);
        assert_eq!(sizes(200, 60), [(115, 21), (78, 21)]);
    }

    #[test]
    fn parts_lie_within_the_screen_and_apart() {
        for width in (0..250).step_by(3) {
            for height in 0..80 {
                let beside = [BesideTable::Nothing, BesideTable::IcicleAndCallers { levels: 9 }];
                let all =
                    [Emphasis::Both, Emphasis::Icicle, Emphasis::Table].map(|one| beside.map(|beside| (one, beside)));
                for (emphasis, beside) in all.into_iter().flatten() {
                    let area = Rect::new(0, 0, width, height);
                    let room = Room::of(area);
                    if room == Room::TooSmall {
                        continue;
                    }
                    let body = Regions::of(area, room, 0).body;
                    let parts = ProfileLayout::of(body, room, emphasis, true, beside);
                    let inner =
                        [parts.icicle, parts.heads, parts.table, parts.callers_heads, parts.callers, parts.path];
                    for (i, part) in inner.iter().enumerate() {
                        assert_eq!(part.intersection(body).area(), part.area(), "{width}x{height} {i}");
                        assert!(inner[..i].iter().all(|other| part.intersection(*other).area() == 0));
                    }
                }
            }
        }
    }
}
