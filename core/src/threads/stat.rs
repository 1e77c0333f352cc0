//! Parses what `/proc` says of a process or a thread in `stat`.

use crate::units::ClockTicks;

/// `stat` of proc(5). That of a process has the times and faults of all its threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// The name, which may hold any character.
    pub(crate) name: String,
    /// `R` of what runs, `S` of what sleeps, and so on.
    pub(crate) state: char,
    /// The process that started it, or who has adopted it since that has ended.
    pub(crate) parent: i32,
    /// Its process group, which is called as the process that began it.
    pub(crate) group: i32,
    /// Its session, which is called as the process that began it.
    pub(crate) session: i32,
    flags: u64,
    /// Page faults, minor and major.
    pub(crate) faults: u64,
    /// CPU time in user space.
    pub(crate) user: ClockTicks,
    /// CPU time in the kernel.
    pub(crate) system: ClockTicks,
    /// CPU time in user space of the children that have ended and were waited for.
    pub(crate) children_user: ClockTicks,
    /// CPU time of those in the kernel.
    pub(crate) children_system: ClockTicks,
    /// How many threads the process has.
    pub(crate) threads: u64,
    /// When it began, since the machine runs.
    pub(crate) began: ClockTicks,
    /// Memory that the process has in RAM.
    pub(crate) resident_pages: u64,
    /// How long it waited for block devices; 0 where the kernel doesn't keep that.
    pub(crate) blocked: ClockTicks,
}

/// `PF_EXITING` of the kernel's `linux/sched.h`.
const EXITING: u64 = 0x4;

/// `PF_KTHREAD` of the same.
pub(super) const KERNEL_THREAD: u64 = 0x0020_0000;

impl Stat {
    /// Parses the text of the file, in which bytes of the name that are no text may have been replaced.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        // The second field, the name, is in parentheses and may hold blanks and parentheses.
        let (before, after) = text.rsplit_once(')')?;
        let name = before.split_once('(')?.1.to_owned();
        let mut fields = after.split_whitespace();
        let state = fields.next()?.chars().next()?;
        // From the fourth field on. Those that are below zero aren't needed.
        let numbers: Vec<u64> = fields.map(|field| field.parse().unwrap_or(0)).collect();
        let number = |field: usize| numbers.get(field - 4).copied();
        let ticks = |field| number(field).map(ClockTicks);
        let id = |field| number(field).and_then(|number| i32::try_from(number).ok());
        Some(Self {
            name,
            state,
            parent: id(4)?,
            group: id(5)?,
            session: id(6)?,
            flags: number(9)?,
            faults: number(10)?.saturating_add(number(12)?),
            user: ticks(14)?,
            system: ticks(15)?,
            children_user: ticks(16)?,
            children_system: ticks(17)?,
            threads: number(20)?,
            began: ticks(22)?,
            resident_pages: number(24)?,
            blocked: ticks(42).unwrap_or_default(),
        })
    }

    /// Whether it is a thread of the kernel.
    pub(crate) fn is_of_kernel(&self) -> bool {
        self.flags & KERNEL_THREAD != 0
    }

    /// Whether it has ended, and nobody has waited for it.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    /// Whether it has ended or begun to.
    pub(crate) fn ends(&self) -> bool {
        self.has_ended() || self.flags & EXITING != 0
    }

    /// CPU time.
    pub(crate) fn cpu(&self) -> ClockTicks {
        self.user + self.system
    }

    /// CPU time of the children that have ended and were waited for.
    pub(crate) fn children(&self) -> ClockTicks {
        self.children_user + self.children_system
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;

    /// What follows the name.
    const REST: &str = "S 1 7 7 0 -1 4194560 30 1000 2 2000 50 51 52 53 20 0 3 0 100 9999 4 18446744073709551615";

    #[test]
    fn fields_by_hand() {
        let stat = Stat::parse(&format!("7 (a (b) c) {REST}\n")).unwrap();
        let wanted = Stat {
            name: "a (b) c".into(),
            state: 'S',
            parent: 1,
            group: 7,
            session: 7,
            flags: 0x0040_0100,
            faults: 32,
            user: ClockTicks(50),
            system: ClockTicks(51),
            children_user: ClockTicks(52),
            children_system: ClockTicks(53),
            threads: 3,
            began: ClockTicks(100),
            resident_pages: 4,
            blocked: ClockTicks(0),
        };
        assert_eq!(stat, wanted);
        assert_eq!((stat.cpu(), stat.children()), (ClockTicks(101), ClockTicks(105)));
        assert!(!stat.is_of_kernel() && !stat.has_ended() && !stat.ends());
    }

    #[test]
    fn waiting_for_a_disk_is_the_field_42() {
        let more = "1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 9 0 0";
        assert_eq!(Stat::parse(&format!("7 (a) {REST} {more}")).unwrap().blocked, ClockTicks(9));
    }

    #[test]
    fn states_and_flags_by_hand() {
        let stat = |state, flags| Stat { state, flags, ..Stat::parse(&format!("7 (a) {REST}")).unwrap() };
        assert!(stat('Z', 0).has_ended() && stat('X', 0).ends() && !stat('R', EXITING).has_ended());
        assert!(stat('R', EXITING).ends() && stat('I', KERNEL_THREAD).is_of_kernel());
    }

    #[test]
    fn a_line_that_is_no_stat_says_nothing() {
        for text in ["", "7 (a", "7 (a) ", "7 (a) R 1 2 3", "7 a) R"] {
            assert_eq!(Stat::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_name_may_be_any_bytes(name: Vec<u8>) {
            let line = [b"7 (", &name[..], b") ", REST.as_bytes()].concat();
            let stat = Stat::parse(&String::from_utf8_lossy(&line)).unwrap();
            let simple = Stat::parse(&format!("7 (a) {REST}")).unwrap();
            prop_assert_eq!(stat, Stat { name: String::from_utf8_lossy(&name).into_owned(), ..simple });
        }

        #[test]
        fn no_text_is_too_strange(text: String) {
            Stat::parse(&text);
        }
    }
}
