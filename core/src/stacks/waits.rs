//! Says what a thread waited for while it was on no CPU, by the kernel's functions in its stack.

use super::StackFrame;

/// What a thread waited for while it was on no CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// A CPU: it could have gone on, but its slice was over or another thread went before.
    Cpu,
    /// A lock, of the program or of the kernel.
    Lock,
    /// A disk.
    Disk,
    /// A pipe, a socket or a terminal.
    Pipe,
    /// One of several events: poll, select, epoll.
    Events,
    /// A child.
    Child,
    /// A timer.
    Sleep,
    /// Something that the stack doesn't tell.
    Unknown,
}

/// Beginnings of the names of kernel functions in which threads wait, and for what. Of a stack the innermost of them counts.
const FUNCTIONS: [(&str, WaitReason); 44] = [
    ("futex_", WaitReason::Lock),
    ("do_futex", WaitReason::Lock),
    ("__mutex_lock", WaitReason::Lock),
    ("mutex_lock", WaitReason::Lock),
    ("rwsem_", WaitReason::Lock),
    ("down_read", WaitReason::Lock),
    ("down_write", WaitReason::Lock),
    ("__down", WaitReason::Lock),
    ("rt_mutex_", WaitReason::Lock),
    ("percpu_rwsem_", WaitReason::Lock),
    ("fcntl_setlk", WaitReason::Lock),
    ("flock_lock_", WaitReason::Lock),
    ("io_schedule", WaitReason::Disk),
    ("folio_wait_", WaitReason::Disk),
    ("wait_on_page_", WaitReason::Disk),
    ("__wait_on_buffer", WaitReason::Disk),
    ("submit_bio_wait", WaitReason::Disk),
    ("blkdev_issue_", WaitReason::Disk),
    ("balance_dirty_pages", WaitReason::Disk),
    ("jbd2_", WaitReason::Disk),
    ("xfs_buf_", WaitReason::Disk),
    ("btrfs_wait_", WaitReason::Disk),
    ("pipe_", WaitReason::Pipe),
    ("anon_pipe_", WaitReason::Pipe),
    ("unix_", WaitReason::Pipe),
    ("sk_", WaitReason::Pipe),
    ("tcp_", WaitReason::Pipe),
    ("__skb_wait_", WaitReason::Pipe),
    ("inet_csk_accept", WaitReason::Pipe),
    ("n_tty_", WaitReason::Pipe),
    ("tty_", WaitReason::Pipe),
    ("eventfd_read", WaitReason::Pipe),
    ("do_sys_poll", WaitReason::Events),
    ("do_poll", WaitReason::Events),
    ("do_select", WaitReason::Events),
    ("ep_poll", WaitReason::Events),
    ("do_epoll_", WaitReason::Events),
    ("io_cqring_wait", WaitReason::Events),
    ("do_sigtimedwait", WaitReason::Events),
    ("do_wait", WaitReason::Child),
    ("kernel_wait", WaitReason::Child),
    ("kernel_clone", WaitReason::Child),
    ("do_nanosleep", WaitReason::Sleep),
    ("hrtimer_nanosleep", WaitReason::Sleep),
];

impl WaitReason {
    /// What is waited for in a function of the kernel; `None` of one that says nothing of it.
    pub fn within(function: &str) -> Option<Self> {
        FUNCTIONS.iter().find(|(name, _)| function.starts_with(name)).map(|&(_, reason)| reason)
    }

    /// The name of the frame that stands behind the stack in which a thread waited.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "[waits for a CPU]",
            Self::Lock => "[waits for a lock]",
            Self::Disk => "[waits for a disk]",
            Self::Pipe => "[waits for a pipe or socket]",
            Self::Events => "[waits for events]",
            Self::Child => "[waits for a child]",
            Self::Sleep => "[sleeps]",
            Self::Unknown => "[waits]",
        }
    }

    /// That frame.
    pub fn frame(self) -> StackFrame {
        StackFrame { name: self.name().into(), module: OFF_CPU.into(), kernel: true, ..StackFrame::default() }
    }
}

/// The name of the event of time on no CPU, and the module of its frames.
pub const OFF_CPU: &str = "off-cpu";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_kernel_tell_what_is_waited_for() {
        let within = |name| WaitReason::within(name).map(WaitReason::name);
        assert_eq!(within("futex_wait_queue"), Some("[waits for a lock]"));
        assert_eq!(within("rwsem_down_read_slowpath"), Some("[waits for a lock]"));
        assert_eq!(within("io_schedule_timeout"), Some("[waits for a disk]"));
        assert_eq!(within("anon_pipe_read"), Some("[waits for a pipe or socket]"));
        assert_eq!(within("do_epoll_wait"), Some("[waits for events]"));
        assert_eq!(within("do_wait"), Some("[waits for a child]"));
        assert_eq!(within("do_nanosleep"), Some("[sleeps]"));
        // What stands in all of them.
        assert_eq!([within("__schedule"), within("schedule"), within("do_syscall_64"), within("")], [None; 4]);
    }

    #[test]
    fn each_reason_has_a_name_of_its_own() {
        use WaitReason::{Child, Cpu, Disk, Events, Lock, Pipe, Sleep, Unknown};
        let mut names = [Cpu, Lock, Disk, Pipe, Events, Child, Sleep, Unknown].map(WaitReason::name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 8);
    }
}
