//! Names the screens.

/// A screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Screen {
    /// All events in a table.
    #[default]
    Events,
    /// One event: its chart, histogram and statistics.
    Detail,
    /// All relations and how they fare.
    Relations,
    /// Where samples of events were taken: the tree of call paths.
    Profile,
    /// Which events share a group, and when each ran.
    Groups,
    /// Findings, and the command's output.
    Log,
    /// What each thread does.
    Threads,
    /// The source of a function of the profile, line by line; opened from Profile.
    Source,
    /// Recordings side by side; there only where several are open.
    Compare,
}

impl Screen {
    /// The screens of every measurement, in the order of their keys.
    pub const ALL: [Self; 7] =
        [Self::Events, Self::Detail, Self::Relations, Self::Profile, Self::Groups, Self::Log, Self::Threads];

    /// Name of the screen on the command line and in the configuration.
    pub fn word(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Detail => "detail",
            Self::Relations => "relations",
            Self::Profile => "profile",
            Self::Groups => "groups",
            Self::Log => "log",
            Self::Threads => "threads",
            Self::Source => "source",
            Self::Compare => "compare",
        }
    }

    /// Name of the screen in titles.
    pub fn name(self) -> &'static str {
        match self {
            Self::Events => "Events",
            Self::Detail => "Detail",
            Self::Relations => "Relations",
            Self::Profile => "Profile",
            Self::Groups => "Groups",
            Self::Log => "Log",
            Self::Threads => "Threads",
            Self::Source => "Source",
            Self::Compare => "Compare",
        }
    }
}
