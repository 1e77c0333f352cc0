//! Says what a thread waited for while it was on no CPU, by the functions in its stack: the kernel's, and those of the
//! C library that wait for a futex.

use super::StackFrame;
use crate::profile::{FrameId, FrameKind, NodeRef};

/// What a thread waited for while it was on no CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// A CPU: it could have gone on, but its slice was over or another thread went before.
    Cpu,
    /// A lock, of the program or of the kernel.
    Lock,
    /// A condition variable.
    Condition,
    /// The end of another thread.
    Thread,
    /// A semaphore.
    Semaphore,
    /// A barrier.
    Barrier,
    /// A futex: whatever of the above it stands for, the stack doesn't tell.
    Futex,
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

/// Beginnings of the names of kernel functions in which threads wait, and for what. Of a stack the innermost of them
/// counts.
const KERNEL_FUNCTIONS: [(&str, WaitReason); 44] = [
    ("futex_", WaitReason::Futex),
    ("do_futex", WaitReason::Futex),
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

/// The same of functions of the C library, without underscores before them: what a futex stands for.
const LIBRARY_FUNCTIONS: [(&str, WaitReason); 12] = [
    ("pthread_mutex_", WaitReason::Lock),
    ("pthread_rwlock_", WaitReason::Lock),
    ("lll_lock_wait", WaitReason::Lock),
    ("pthread_cond_", WaitReason::Condition),
    ("pthread_join", WaitReason::Thread),
    ("pthread_timedjoin", WaitReason::Thread),
    ("pthread_clockjoin", WaitReason::Thread),
    ("sem_wait", WaitReason::Semaphore),
    ("sem_timedwait", WaitReason::Semaphore),
    ("sem_clockwait", WaitReason::Semaphore),
    ("new_sem_", WaitReason::Semaphore),
    ("pthread_barrier_wait", WaitReason::Barrier),
];

impl WaitReason {
    /// What is waited for in a function of the kernel or of a program; `None` of one that says nothing of it.
    pub fn within(function: &str, is_kernel: bool) -> Option<Self> {
        let find = |functions: &[(&str, Self)], function: &str| {
            functions.iter().find(|(name, _)| function.starts_with(name)).map(|&(_, reason)| reason)
        };
        match is_kernel {
            true => find(&KERNEL_FUNCTIONS, function),
            // `__GI_` is what glibc calls a function by within itself.
            false => find(&LIBRARY_FUNCTIONS, function.trim_start_matches("__GI_").trim_start_matches('_')),
        }
    }

    /// What is waited for in a stack, by its innermost function and by those that called it. Who calls the kernel for a
    /// futex knows what it stands for.
    pub fn called_by(innermost: Option<Self>, caller: Option<Self>) -> Option<Self> {
        match innermost {
            Some(Self::Futex) => caller.filter(|caller| caller.may_be_futex()).or(innermost),
            innermost => innermost.or(caller),
        }
    }

    /// Whether it is what a futex may stand for: functions of programs say so before they wait, and may wait for
    /// something else.
    pub fn may_be_futex(self) -> bool {
        matches!(self, Self::Lock | Self::Condition | Self::Thread | Self::Semaphore | Self::Barrier)
    }

    /// The name of the frame that stands behind the stack in which a thread waited.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "[waits for a CPU]",
            Self::Lock => "[waits for a lock]",
            Self::Condition => "[waits for a condition]",
            Self::Thread => "[waits for a thread]",
            Self::Semaphore => "[waits for a semaphore]",
            Self::Barrier => "[waits for a barrier]",
            Self::Futex => "[waits for a futex]",
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

/// How the name of the frame begins that says who woke a thread: `[woken by worker]`.
pub const WOKEN_BY: &str = "[woken by ";

/// The innermost function of the program above a node of what a thread waited for: not one of the kernel or of the C
/// library, which wait for others.
pub fn waiting_function(wait: &NodeRef<'_>) -> Option<FrameId> {
    wait.ancestors().find(is_of_program).map(|caller| caller.frame_id())
}

fn is_of_program(node: &NodeRef<'_>) -> bool {
    let frame = node.frame();
    let file = frame.module.rsplit('/').next().unwrap_or_default();
    let is_library =
        ["libc.so", "libc-", "libpthread", "ld-linux", "ld-musl", "[vdso"].iter().any(|start| file.starts_with(start));
    let is_function = node.depth() > 0 && frame.kind == FrameKind::Function;
    is_function && !is_library && frame.module != OFF_CPU && !frame.is_kernel()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_kernel_tell_what_is_waited_for() {
        let within = |name| WaitReason::within(name, true).map(WaitReason::name);
        assert_eq!(within("futex_wait_queue"), Some("[waits for a futex]"));
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
    fn functions_of_the_c_library_tell_what_a_futex_stands_for() {
        // Callers first; the kernel's functions begin with a `k:`.
        let reason = |stack: &str| {
            let one = |name: &str| match name.strip_prefix("k:") {
                Some(name) => WaitReason::within(name, true),
                None => WaitReason::within(name, false),
            };
            stack.split(' ').fold(None, |caller, name| WaitReason::called_by(one(name), caller)).map(WaitReason::name)
        };
        let futex = "k:do_syscall_64 k:do_futex k:futex_wait k:schedule";
        assert_eq!(reason(&format!("main ___pthread_mutex_lock {futex}")), Some("[waits for a lock]"));
        assert_eq!(
            reason(&format!("worker pthread_cond_wait __futex_abstimed_wait_common {futex}")),
            Some("[waits for a condition]")
        );
        assert_eq!(reason(&format!("main __pthread_clockjoin_ex {futex}")), Some("[waits for a thread]"));
        assert_eq!(reason(&format!("main __GI___lll_lock_wait {futex}")), Some("[waits for a lock]"));
        assert_eq!(reason(&format!("main __new_sem_wait {futex}")), Some("[waits for a semaphore]"));
        assert_eq!(reason(&format!("main std::sys::futex {futex}")), Some("[waits for a futex]"));
        // A page that comes from a disk is no lock.
        assert_eq!(reason("main pthread_mutex_lock k:exc_page_fault k:folio_wait_bit"), Some("[waits for a disk]"));
        // A lock of the kernel on the way to a futex is itself.
        assert_eq!(reason("main pthread_join k:do_futex k:__mutex_lock"), Some("[waits for a lock]"));
    }

    #[test]
    fn each_reason_has_a_name_of_its_own() {
        use WaitReason::*;
        let all = [Cpu, Lock, Condition, Thread, Semaphore, Barrier, Futex, Disk, Pipe, Events, Child, Sleep, Unknown];
        let mut names = all.map(WaitReason::name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 13);
    }
}
