//! Names of lanes, keys of conversations and patterns. An input is a pattern, and on the next line a name or key.

use laneway_core::{LaneName, NAME_CHARS_MAX, Name, Pattern};

use super::words;
use crate::{Chance, Target};

pub(super) struct Names;

impl Target for Names {
    fn name(&self) -> &'static str {
        "names"
    }

    fn words(&self) -> Vec<String> {
        words(&[
            "*",
            "/",
            "%",
            "%2F",
            "%2f",
            "%25",
            "%00",
            "session:",
            "session:*",
            "*/query",
            "task:",
            "main",
            "global",
            ":",
            " ",
            "\u{85}",
            "\u{2028}",
            "\u{a0}",
            "\u{feff}",
            "a",
            "aa",
            "ab",
            "é",
            "\u{301}",
            "\u{1f468}\u{200d}",
        ])
    }

    /// Few letters and many stars, where patterns go wrong.
    fn make(&self, chance: &mut Chance) -> Option<Vec<u8>> {
        let mut text = |letters: &[u8]| -> Vec<u8> {
            (0..chance.below(14)).filter_map(|_| chance.one(letters).copied()).collect()
        };
        Some([text(b"ab*/*\xc3\xa9").as_slice(), b"\n", &text(b"aabb/\xc3\xa9")].concat())
    }

    fn read(&mut self, input: &[u8]) -> Result<String, String> {
        let text = String::from_utf8_lossy(input);
        let (pattern, name) = text.split_once('\n').unwrap_or((&text, ""));
        let session = check_session(name)?;
        drop(Name::new(name));
        let name = match LaneName::new(name) {
            Ok(name) => name,
            Err(error) => return Ok(format!("no name: {error}, {session}")),
        };
        if name.as_str().chars().count() > NAME_CHARS_MAX
            || LaneName::new(name.as_str()).as_ref() != Ok(&name)
        {
            return Err(format!("{name:?} is not a name of its own"));
        }
        let pattern = match Pattern::new(pattern) {
            Ok(pattern) => pattern,
            Err(error) => return Ok(format!("no pattern: {error}, {session}")),
        };
        let fits = pattern.matches(&name);
        if fits != slowly(pattern.as_str().as_bytes(), name.as_str().as_bytes()) {
            return Err(format!("{pattern:?} and {name:?}: {fits} is wrong"));
        }
        if pattern.exact().is_some_and(|exact| fits != (exact == name)) {
            return Err(format!("{pattern:?} is one name and fits {name:?}"));
        }
        Ok(format!("fits {fits}, exact {}, {session}", pattern.is_exact()))
    }
}

/// A key, whatever is in it, is one lane of one conversation, and comes back out of its name.
fn check_session(key: &str) -> Result<&'static str, String> {
    let Ok(lane) = LaneName::session(key) else { return Ok("no key") };
    match lane.session_key() {
        Some(back) if back == key && lane.is_conversation() => Ok("a key"),
        back => Err(format!("the key {key:?} is the lane {lane:?}, and from there {back:?}")),
    }
}

/// The same rule by a table instead of a step back: `*` is any run without a `/`.
fn slowly(pattern: &[u8], name: &[u8]) -> bool {
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
