//! Finds which columns of a profile's table there is room for.

use super::super::columns::fit;
use super::called::CallColumns;
use crate::tui::model::profile::{Listing, ProfileState, TreeDirection};
use crate::tui::text::{left, right};

/// Cells of a share and of its interval.
const SHARE: usize = 6;
const INTERVAL: usize = 9;
/// Cells of a ratio and of its interval.
const RATIO: usize = 7;
const RATIO_INTERVAL: usize = 11;
/// Cells of the number of a side, of how two differ, and of the word for it.
const SIDE: usize = 9;
const CHANGE: usize = 8;
const MARK: usize = 9;
/// Cells of a module's name.
const LEAST_MODULE: usize = 8;
const MOST_MODULE: usize = 24;

/// A share of the table, or what it lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShareColumn {
    Total,
    TotalInterval,
    Own,
    OwnInterval,
    /// What the event is held against, and the interval of that.
    Ratio,
    RatioInterval,
    /// The two sides of a difference, how they differ, and what a test says of that.
    SideA,
    SideB,
    Change,
    Mark,
    Module,
}

/// Which numbers a table shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShownNumbers {
    /// Shares of samples.
    Shares,
    /// Shares of sums, which have no intervals: a file of another tool's, or a model, that has no samples.
    Sums,
    /// The same, and what the event is held against.
    WithRatio,
    /// The two sides of a difference.
    Difference,
    /// The same where too few runs are known for verdicts.
    UntestedDifference,
}

/// What a table is about: in which order its columns stand and leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableKind {
    /// Of paths, and what is below them.
    Paths,
    /// Of functions, and what is in themselves.
    Functions,
    /// Of modules.
    Modules,
    /// Of callers beside another table.
    Beside,
}

impl TableKind {
    /// All columns, in the order of the screen.
    fn columns(self) -> &'static [ShareColumn] {
        use ShareColumn::{Module, Own, OwnInterval, Ratio, RatioInterval, Total, TotalInterval};
        match self {
            Self::Paths => &[Total, TotalInterval, Own, OwnInterval, Ratio, RatioInterval, Module],
            Self::Functions | Self::Modules => &[Own, OwnInterval, Total, TotalInterval, Ratio, RatioInterval, Module],
            Self::Beside => &[Total, TotalInterval],
        }
    }

    /// These leave together where there is no room, the first first.
    fn leaving(self) -> &'static [&'static [ShareColumn]] {
        use ShareColumn::{Module, Own, OwnInterval, Ratio, RatioInterval, Total, TotalInterval};
        match self {
            Self::Paths => &[&[OwnInterval], &[Module], &[TotalInterval], &[RatioInterval], &[Own], &[Ratio]],
            Self::Functions | Self::Modules => {
                &[&[TotalInterval], &[Module], &[OwnInterval], &[RatioInterval], &[Total], &[Ratio]]
            }
            Self::Beside => &[&[TotalInterval]],
        }
    }

    /// Cells of a name, before columns leave for its sake.
    fn least_name(self) -> usize {
        match self {
            // Names of the tree are indented.
            Self::Paths => 32,
            Self::Beside => 18,
            Self::Functions | Self::Modules => 24,
        }
    }

    /// The kind of what is listed.
    fn of(profile: &ProfileState) -> Self {
        match profile.listing() {
            Listing::CallTree | Listing::Callers => Self::Paths,
            Listing::Functions => Self::Functions,
            Listing::Modules => Self::Modules,
        }
    }
}

/// The columns that there is room for.
#[derive(Clone, Debug)]
pub(super) struct ProfileColumns {
    pub(super) name: usize,
    pub(super) kind: TableKind,
    pub(super) shown: Vec<ShareColumn>,
    pub(super) module: usize,
}

impl ProfileColumns {
    pub(super) fn of(room: usize, kind: TableKind, numbers: ShownNumbers) -> Self {
        use ShareColumn::{Change, Mark, Module, OwnInterval, Ratio, RatioInterval, SideA, SideB, TotalInterval};
        const DIFFERENCE: &[ShareColumn] = &[SideA, SideB, Change, Mark, Module];
        const LEAVING: &[&[ShareColumn]] = &[&[Module], &[SideA], &[SideB], &[Mark]];
        let is_shown = |column: &ShareColumn| match column {
            Ratio | RatioInterval => numbers == ShownNumbers::WithRatio,
            OwnInterval | TotalInterval => numbers != ShownNumbers::Sums,
            Mark => numbers != ShownNumbers::UntestedDifference,
            _ => true,
        };
        let (all, leaving) = match numbers {
            ShownNumbers::Difference | ShownNumbers::UntestedDifference => (DIFFERENCE, LEAVING),
            ShownNumbers::Shares | ShownNumbers::Sums | ShownNumbers::WithRatio => (kind.columns(), kind.leaving()),
        };
        let of = |shown: &[ShareColumn]| Self { name: 0, kind, shown: shown.to_vec(), module: LEAST_MODULE };
        let fits = |shown: &[ShareColumn]| of(shown).rest() + kind.least_name() <= room;
        let mut columns = of(&fit(all.iter().copied().filter(is_shown), leaving, fits));
        if columns.has(ShareColumn::Module) {
            let spare = room - columns.rest() - kind.least_name();
            columns.module += (spare / 3).min(MOST_MODULE - LEAST_MODULE);
        }
        columns.name = room.saturating_sub(columns.rest()).max(1);
        columns
    }

    fn has(&self, column: ShareColumn) -> bool {
        self.shown.contains(&column)
    }

    /// The cells of all but the name.
    fn rest(&self) -> usize {
        let cells = |(place, column): (usize, &ShareColumn)| self.gap(place, *column) + self.width(*column);
        2 + self.shown.iter().enumerate().map(cells).sum::<usize>()
    }

    fn width(&self, column: ShareColumn) -> usize {
        match column {
            ShareColumn::Total | ShareColumn::Own => SHARE,
            ShareColumn::TotalInterval | ShareColumn::OwnInterval => INTERVAL,
            ShareColumn::Ratio => RATIO,
            ShareColumn::RatioInterval => RATIO_INTERVAL,
            ShareColumn::SideA | ShareColumn::SideB => SIDE,
            ShareColumn::Change => CHANGE,
            ShareColumn::Mark => MARK,
            ShareColumn::Module => self.module,
        }
    }

    /// The cells before a column: a share is apart from the interval of another.
    fn gap(&self, place: usize, column: ShareColumn) -> usize {
        match column {
            ShareColumn::Total | ShareColumn::Own if place > 0 => 2,
            ShareColumn::Module | ShareColumn::Ratio | ShareColumn::Mark => 2,
            _ => 1,
        }
    }

    /// A line with a text for each column.
    pub(super) fn texts(&self, text: impl Fn(ShareColumn) -> String) -> Vec<(ShareColumn, String)> {
        let each = self.shown.iter().enumerate().map(|(place, &column)| {
            let (text, width) = (text(column), self.width(column));
            let is_word = matches!(column, ShareColumn::Module | ShareColumn::Mark);
            let text = if is_word { left(&text, width) } else { right(&text, width) };
            (column, format!("{}{text}", " ".repeat(self.gap(place, column))))
        });
        each.collect()
    }
}

/// Shares with intervals, where there are samples: times on no CPU are measured and have none.
pub(super) fn shown_numbers(profile: &ProfileState) -> ShownNumbers {
    if profile.has_samples() && !profile.is_off_cpu() { ShownNumbers::Shares } else { ShownNumbers::Sums }
}

fn difference_numbers(profile: &ProfileState) -> ShownNumbers {
    match profile.difference_note() {
        Some(_) => ShownNumbers::UntestedDifference,
        None => ShownNumbers::Difference,
    }
}

/// The columns of what is shown.
#[derive(Clone, Debug)]
pub(super) enum TableColumns {
    /// Shares of samples with their intervals.
    Sampled(ProfileColumns),
    /// What was measured of calls.
    Called(CallColumns),
}

impl TableColumns {
    pub(super) fn of(room: usize, profile: &ProfileState) -> Self {
        match profile.call_measure() {
            Some(_) => Self::Called(CallColumns::of(room)),
            None => {
                let numbers = match profile.place().direction {
                    TreeDirection::Calls if profile.has_difference() => difference_numbers(profile),
                    TreeDirection::Calls if profile.ratio_kind().is_some() => ShownNumbers::WithRatio,
                    TreeDirection::Calls | TreeDirection::CalledBy => shown_numbers(profile),
                };
                Self::Sampled(ProfileColumns::of(room, TableKind::of(profile), numbers))
            }
        }
    }

    /// Of functions of both sides of a difference.
    pub(super) fn of_difference(room: usize, profile: &ProfileState) -> Self {
        Self::Sampled(ProfileColumns::of(room, TableKind::Functions, difference_numbers(profile)))
    }

    pub(super) fn name(&self) -> usize {
        match self {
            Self::Sampled(columns) => columns.name,
            Self::Called(columns) => columns.name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_leave_in_order_and_take_no_more_than_there_is() {
        use ShareColumn::{Module, Own, OwnInterval, Total, TotalInterval};
        for kind in [TableKind::Paths, TableKind::Functions, TableKind::Modules, TableKind::Beside] {
            for room in 12..200 {
                let columns = ProfileColumns::of(room, kind, ShownNumbers::WithRatio);
                assert!(columns.rest() + columns.name <= room.max(12), "{room}: {columns:?}");
                assert!(columns.has(kind.columns()[0]), "{room}: {columns:?}");
            }
        }
        let shown = |room, kind| ProfileColumns::of(room, kind, ShownNumbers::Shares).shown;
        let of_sums = ProfileColumns::of(120, TableKind::Functions, ShownNumbers::Sums).shown;
        assert_eq!(of_sums, [Own, Total, Module]);
        assert_eq!(shown(116, TableKind::Paths), [Total, TotalInterval, Own, OwnInterval, Module]);
        assert_eq!(shown(76, TableKind::Paths), [Total, TotalInterval, Own, Module]);
        assert_eq!(shown(66, TableKind::Paths), [Total, TotalInterval, Own]);
        assert_eq!(shown(56, TableKind::Paths), [Total, Own]);
        assert_eq!(shown(76, TableKind::Functions), [Own, OwnInterval, Total, TotalInterval, Module]);
        assert_eq!(shown(67, TableKind::Functions), [Own, OwnInterval, Total, Module]);
        assert_eq!(shown(52, TableKind::Functions), [Own, OwnInterval, Total]);
        assert_eq!(shown(30, TableKind::Functions), [Own]);
        let with_ratio = ProfileColumns::of(67, TableKind::Functions, ShownNumbers::WithRatio).shown;
        assert_eq!(with_ratio, [Own, Total, ShareColumn::Ratio, ShareColumn::RatioInterval]);
    }
}
