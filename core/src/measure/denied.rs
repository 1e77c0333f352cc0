//! Says which layer keeps this user from counting, and what helps.

use std::fmt;

use super::Error;
use crate::host::HostFiles;
use crate::machine::Denial;
use crate::names::shown;

/// Why this user may not count what was asked for, and what can be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenialWords {
    /// The layer that refuses it: `perf_event_paranoid=2, EACCES`.
    pub reason: String,
    /// Whether it could be counted of a command that perfprop starts.
    pub works_alone: bool,
    /// What changes that, in lines.
    pub remedy: String,
}

impl Error {
    /// The words for a missing right; `None` where something else is in the way.
    pub fn denial(&self) -> Option<DenialWords> {
        let Self::NotPermitted { denial, works_alone, .. } = self else { return None };
        Some(DenialWords { reason: reason(*denial), works_alone: *works_alone, remedy: remedy(*denial) })
    }
}

/// What gives this program the right that counts everything.
pub(super) fn setcap() -> String {
    HostFiles::here().setcap()
}

pub(super) fn not_permitted(
    f: &mut fmt::Formatter<'_>,
    events: &[String],
    denial: Denial,
    works_alone: bool,
) -> fmt::Result {
    let uid = nix::unistd::geteuid();
    let names = shown(&events.join(",")).into_owned();
    write!(f, "cannot count {names} as uid {uid} ({})", reason(denial))?;
    what_helps(f, denial, works_alone)
}

/// What can be measured in its place, and what changes that, in lines below those of an error.
pub(super) fn what_helps(f: &mut fmt::Formatter<'_>, denial: Denial, works_alone: bool) -> fmt::Result {
    if works_alone {
        write!(f, "\n      of a command that perfprop starts it works now:  the same with -- COMMAND as the target")?;
    }
    // Only CPUs need level 0.
    if let Denial::Level { allows: 0, .. } = denial {
        write!(f, "\n      CPU time and processes of the machine need no right:  perfprop top")?;
    }
    remedy(denial).lines().try_for_each(|line| write!(f, "\n      {line}"))
}

fn reason(denial: Denial) -> String {
    match denial {
        Denial::Level { level: Some(level), .. } => format!("perf_event_paranoid={level}, EACCES"),
        Denial::Level { level: None, .. } => "EACCES".into(),
        Denial::Capability => "only CAP_PERFMON allows it, EACCES".into(),
        Denial::Nobody(errno) => format!("the kernel refuses it to every user, {errno:?}"),
        Denial::Seccomp(errno) => format!("a seccomp filter refuses perf_event_open, {errno:?}"),
        Denial::NoSystemCall => "this kernel has no perf_event_open, ENOSYS".into(),
        Denial::Everything(errno) => format!("perf_event_open is refused altogether, {errno:?}"),
        Denial::Target => "the target is not yours, EACCES".into(),
    }
}

fn remedy(denial: Denial) -> String {
    match denial {
        Denial::Level { allows, .. } => format!("sudo sysctl kernel.perf_event_paranoid={allows}\nor: {}", setcap()),
        Denial::Capability => format!("{}\nor as root; lowering perf_event_paranoid will not help", setcap()),
        Denial::Nobody(_) => "what it counts instead:  perfprop list".into(),
        Denial::Seccomp(_) => "neither root nor perf_event_paranoid helps; start the container with\n\
                               --cap-add PERFMON --security-opt seccomp=unconfined   try: perfprop check"
            .into(),
        Denial::NoSystemCall => {
            "it is built without CONFIG_PERF_EVENTS, or a sandbox plays the kernel   try: perfprop check".into()
        }
        Denial::Everything(_) => {
            "a security module or the container forbids even software events   try: perfprop check".into()
        }
        Denial::Target => format!("run as its user or root\nor: {}", setcap()),
    }
}

#[cfg(test)]
mod tests {
    use nix::errno::Errno;

    use super::*;

    fn error(denial: Denial, works_alone: bool) -> Error {
        Error::NotPermitted { events: vec!["cycles".into(), "a\u{1b}".into()], denial, works_alone }
    }

    #[test]
    fn the_error_has_the_reason_and_each_line_of_the_remedy() {
        let level = error(Denial::Level { level: Some(2), allows: 0 }, true).to_string();
        let lines: Vec<_> = level.lines().collect();
        assert!(lines[0].contains("cannot count cycles,a") && lines[0].ends_with("(perf_event_paranoid=2, EACCES)"));
        assert!(lines[1].contains("-- COMMAND") && lines[2].ends_with("  perfprop top"), "{level}");
        assert!(lines[3].ends_with("perf_event_paranoid=0"), "{level}");
        let own = error(Denial::Level { level: Some(2), allows: 1 }, false).to_string();
        let lines: Vec<_> = own.lines().collect();
        assert!(
            lines.len() == 3 && lines[1].ends_with("perf_event_paranoid=1") && lines[2].contains("setcap"),
            "{own}"
        );
        let filter = error(Denial::Seccomp(Errno::EPERM), false).to_string();
        assert_eq!(filter.lines().count(), 3, "{filter}");
        assert!(filter.lines().skip(1).all(|line| line.starts_with("      ")) && !filter.contains('\u{1b}'));
    }

    #[test]
    fn only_a_missing_right_is_a_denial() {
        let words = error(Denial::Level { level: None, allows: 1 }, false).denial();
        assert_eq!(words.map(|words| (words.reason, words.works_alone)), Some(("EACCES".into(), false)));
        assert_eq!(Error::NoValgrind.denial(), None);
    }
}
