//! Tells the kernel's own clock from that of a time namespace.

use super::HostFiles;

impl HostFiles {
    /// By how many nanoseconds this process' clock that never goes backwards (`CLOCK_MONOTONIC`) is ahead of the
    /// kernel's own, which the times of samples are of: 0 but in a time namespace.
    pub fn monotonic_ahead(&self) -> i64 {
        // What is said of offsets is that of children's namespace.
        let namespace = |name: &str| std::fs::read_link(self.path(name)).ok();
        let is_own = namespace("proc/self/ns/time") == namespace("proc/self/ns/time_for_children");
        let offsets = self.text("proc/self/timens_offsets").filter(|_| is_own);
        offsets.and_then(|text| ahead(&text)).unwrap_or(0)
    }
}

/// The offset of the line `monotonic SECONDS NANOSECONDS`.
fn ahead(offsets: &str) -> Option<i64> {
    let mut fields = offsets.lines().find_map(|line| line.trim_start().strip_prefix("monotonic "))?.split_whitespace();
    let mut number = || fields.next()?.parse::<i64>().ok();
    number()?.checked_mul(1_000_000_000)?.checked_add(number()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_of_a_time_namespace() {
        assert_eq!(
            ahead("monotonic      100000         0\nboottime            0         0\n"),
            Some(100_000_000_000_000)
        );
        assert_eq!(ahead("boottime 7 0\nmonotonic         -3 500000000"), Some(-2_500_000_000));
        assert_eq!([ahead(""), ahead("monotonic x 0"), ahead("monotonic 9223372036854775807 0")], [None; 3]);
        assert_eq!(HostFiles::under(std::path::Path::new("/none")).monotonic_ahead(), 0);
    }
}
