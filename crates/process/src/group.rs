//! A process group: whether it lives, and how to end it.

use std::process::{Child, ExitStatus};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid,
};

/// A group and its leader. Dropping it ends whatever is left.
pub(crate) struct Group {
    leader: Child,
    id: Option<Pid>,
    is_over: bool,
}

impl Group {
    /// The group that this child leads.
    pub(crate) fn of(leader: Child) -> Group {
        let id = i32::try_from(leader.id()).ok().and_then(Pid::from_raw);
        Group { leader, id, is_over: false }
    }

    pub(crate) fn number(&self) -> u32 {
        self.leader.id()
    }

    /// Whether the leader has ended. It stays a zombie, which keeps its number.
    pub(crate) fn has_leader_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let Some(id) = self.id else { return true };
        // An error means that there is no such child, and nothing to wait for.
        !matches!(waitid(WaitId::Pid(id), options), Ok(None))
    }

    /// Whether anything of the group is alive.
    pub(crate) fn is_alive(&self) -> bool {
        self.id.is_some_and(|id| !self.is_over && is_any_alive(id))
    }

    pub(crate) fn ask_to_stop(&self) {
        self.signal(Signal::TERM);
    }

    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if let Some(id) = self.id.filter(|_| !self.is_over) {
            // A group that is gone needs no signal.
            let _gone = kill_process_group(id, signal);
        }
    }

    /// Reaps the leader of a group that is gone.
    pub(crate) fn reap(&mut self) -> Option<ExitStatus> {
        self.is_over = true;
        self.leader.wait().ok()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.kill();
        self.is_over = true;
        // Mostly it is gone already. If not, the zombie is left to the end of this process: `drop` must not wait.
        drop(self.leader.try_wait());
    }
}

/// Zombies count as dead: their parents may take their time to reap them.
#[cfg(target_os = "linux")]
fn is_any_alive(group: Pid) -> bool {
    let Ok(entries) = std::fs::read_dir("/proc") else { return test_kill_process_group(group).is_ok() };
    let mut processes = entries.flatten().filter(|entry| {
        entry.file_name().to_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
    });
    processes.any(|process| {
        // One that ended meanwhile cannot be read.
        let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        is_living_member(&stat, group)
    })
}

/// Elsewhere a group of nothing but zombies cannot be signalled, which says as much.
#[cfg(not(target_os = "linux"))]
fn is_any_alive(group: Pid) -> bool {
    test_kill_process_group(group).is_ok()
}

/// The line is `pid (name) state parent group …`, and the name may hold anything.
#[cfg(target_os = "linux")]
fn is_living_member(stat: &str, group: Pid) -> bool {
    let Some((_, rest)) = stat.rsplit_once(')') else { return false };
    let mut words = rest.split_ascii_whitespace();
    let state = words.next();
    let number = words.nth(1).and_then(|word| word.parse::<i32>().ok());
    number == Some(group.as_raw_nonzero().get()) && !matches!(state, None | Some("Z" | "X"))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at anything unexpected")]

    use super::*;

    #[test]
    fn a_member_is_recognised_by_its_group_and_state_whatever_its_name() {
        let group = Pid::from_raw(7).unwrap();
        for (stat, lives) in [
            ("9 (sh) S 1 7 7 0", true),
            ("9 (a) Z 1 7) R 1 7 7 0", true),
            ("9 (sh) Z 1 7 7 0", false),
            ("9 (sh) S 7 8 7 0", false),
            ("", false),
        ] {
            assert_eq!(is_living_member(stat, group), lives, "{stat}");
        }
    }
}
