//! Names of lanes, session keys and patterns. An input is a pattern, and on the next line a name or key.

use laneway_core::{LaneName, NAME_CHARS_MAX, Name, Pattern};

use crate::FuzzOutcome;

pub(super) fn read(input: &[u8]) -> FuzzOutcome {
    let text = String::from_utf8_lossy(input);
    let (pattern, name) = text.split_once('\n').unwrap_or((&text, ""));
    check_session(name);
    drop(Name::new(name));
    let (Ok(name), Ok(pattern)) = (LaneName::new(name), Pattern::new(pattern)) else {
        return FuzzOutcome::Refused;
    };
    assert!(name.as_str().chars().count() <= NAME_CHARS_MAX, "a long name: {name:?}");
    assert_eq!(LaneName::new(name.as_str()).as_ref(), Ok(&name), "a name that is not its own text");
    let fits = pattern.matches(&name);
    let expected = matches_slowly(pattern.as_str().as_bytes(), name.as_str().as_bytes());
    assert_eq!(fits, expected, "{pattern:?} and {name:?}");
    if let Some(exact) = pattern.exact() {
        assert_eq!(fits, exact == name, "{pattern:?} is one name");
    }
    FuzzOutcome::Understood
}

/// Every valid key is the lane of one conversation, and that lane's name holds the key.
fn check_session(key: &str) {
    let Ok(lane) = LaneName::session(key) else { return };
    let back = lane.session_key();
    assert!(back.as_deref() == Some(key) && lane.is_session(), "{key:?} is {lane:?}, then {back:?}");
}

/// The matching rule by a table instead of backtracking: `*` is any run without a `/`.
fn matches_slowly(pattern: &[u8], name: &[u8]) -> bool {
    let mut fits = vec![false; name.len() + 1];
    fits[0] = true;
    for letter in pattern {
        let mut next = vec![false; name.len() + 1];
        for n in 0..=name.len() {
            next[n] = match letter {
                b'*' => fits[n] || (n > 0 && next[n - 1] && name[n - 1] != b'/'),
                letter => n > 0 && fits[n - 1] && name[n - 1] == *letter,
            };
        }
        fits = next;
    }
    fits[name.len()]
}
