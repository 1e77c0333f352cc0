//! Tells what belongs to this run: what the processes of one process group do, which a shell makes for each line that its user
//! enters, and a script keeps for all that it starts.

use std::fs::Metadata;
use std::time::{Duration, SystemTime};

/// Whether a regular file was written since the run began.
pub(crate) fn has_written(file: &Metadata) -> bool {
    let written = Some(file).filter(|file| file.is_file()).and_then(|file| file.modified().ok());
    written.zip(start()).is_some_and(|(written, start)| {
        written.checked_add(step_of_file_times()).is_none_or(|written| written >= start)
    })
}

/// By how much the time of a file may be behind the clock: the kernel takes it from the clock that moves with its timer.
fn step_of_file_times() -> Duration {
    let mut step = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    #[expect(unsafe_code, reason = "a call of the C library")]
    // SAFETY: the pointer is to a value of our own.
    unsafe {
        libc::clock_getres(libc::CLOCK_REALTIME_COARSE, &raw mut step)
    };
    Duration::new(u64::try_from(step.tv_sec).unwrap_or(0), u32::try_from(step.tv_nsec).unwrap_or(0))
}

/// When the group's first process started; where it has ended, when this one did.
fn start() -> Option<SystemTime> {
    // First, as what passes between both clocks makes the start too early then, which costs another file name and no rows.
    let wall = SystemTime::now();
    #[expect(unsafe_code, reason = "calls of the kernel and the C library")]
    // SAFETY: they take numbers, and can't fail; the pointer is to a value of our own.
    let (group, ticks_a_second, now) = unsafe {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut now);
        (libc::getpgrp(), libc::sysconf(libc::_SC_CLK_TCK), now)
    };
    let since_boot = Duration::new(u64::try_from(now.tv_sec).ok()?, u32::try_from(now.tv_nsec).ok()?);
    let stat = [group.to_string(), "self".to_owned()].into_iter().find_map(|process| {
        // The name in it may be any bytes.
        std::fs::read(format!("/proc/{process}/stat")).ok()
    })?;
    let ticks = ticks_of(&String::from_utf8_lossy(&stat))?;
    let started = Duration::from_secs_f64(ticks as f64 / ticks_a_second.max(1) as f64);
    wall.checked_sub(since_boot.saturating_sub(started))
}

/// When a process started, in ticks of the clock since the machine did (proc_pid_stat(5), field 22).
fn ticks_of(stat: &str) -> Option<u64> {
    // pid (name) state ppid ..., where the name may have blanks and brackets: fields count from the state on, which is the third.
    stat.rsplit(") ").next()?.split(' ').nth(22 - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_a_process_is_read_behind_any_name() {
        let fields: Vec<String> = (4..=52).map(|field| field.to_string()).collect();
        assert_eq!(ticks_of(&format!("7 (a) b 1 2) S {}", fields.join(" "))), Some(22));
        assert_eq!(ticks_of("7 (a"), None);
    }

    #[test]
    fn the_run_began_before_now_and_not_before_the_machine() {
        let age = start().and_then(|start| start.elapsed().ok());
        assert!(age.is_some_and(|age| age < Duration::from_secs(100 * 365 * 86_400)), "{age:?}");
        assert!(std::fs::metadata("/dev/null").is_ok_and(|file| !has_written(&file)));
        let step = step_of_file_times();
        assert!(!step.is_zero() && step <= Duration::from_millis(10), "{step:?}");
    }
}
