//! What the kernel says of this process. Only Linux has these files; elsewhere there are no such metrics.

use std::fs;

/// The kernel counts CPU time in these parts of a second, on every platform of today.
const TICKS_PER_SECOND: f64 = 100.0;

/// The numbers of this process.
pub(super) struct Process {
    pub(super) cpu_seconds: f64,
    pub(super) start_time: f64,
    pub(super) resident_bytes: u64,
    pub(super) virtual_bytes: u64,
    pub(super) threads: u64,
    pub(super) open_fds: u64,
    /// `None`: no limit.
    pub(super) max_fds: Option<u64>,
}

impl Process {
    pub(super) fn read() -> Option<Process> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        // The name of the program is in brackets and may contain anything.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        // The numbers of `man 5 proc`, in which the first field after the name is the third.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let resident_kib: u64 = resident.split_ascii_whitespace().next()?.parse().ok()?;
        let boot = fs::read_to_string("/proc/stat").ok()?;
        let boot: f64 = boot.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
        let limits = fs::read_to_string("/proc/self/limits").ok()?;
        let files = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
        Some(Process {
            cpu_seconds: (field(14)? + field(15)?) as f64 / TICKS_PER_SECOND,
            start_time: boot + field(22)? as f64 / TICKS_PER_SECOND,
            resident_bytes: resident_kib * 1024,
            virtual_bytes: field(23)?,
            threads: field(20)?,
            open_fds: fs::read_dir("/proc/self/fd").ok()?.count() as u64,
            max_fds: files.split_ascii_whitespace().next()?.parse().ok(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    #[test]
    fn the_kernel_says_plausible_numbers() {
        let process = Process::read().unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        assert!(
            process.start_time <= now + 2.0 && process.start_time > now - 86_400.0,
            "{}",
            process.start_time
        );
        assert!(process.resident_bytes > 100_000 && process.virtual_bytes >= process.resident_bytes);
        assert!(process.threads >= 1 && process.open_fds >= 3 && process.max_fds.is_none_or(|max| max >= 3));
    }
}
