//! Names: of lanes, of everything else, and patterns over the names of lanes.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, LazyLock};

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};

/// The longest name, in characters.
pub const NAME_CHARS_MAX: usize = 128;

/// Why a text cannot be a name. It never repeats the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// Nothing was left after trimming.
    #[error("a name needs at least one character")]
    Empty,
    /// More than [`NAME_CHARS_MAX`] characters; holds how many.
    #[error("a name has at most {NAME_CHARS_MAX} characters, this one has {0}")]
    TooLong(usize),
    /// A control character, at this place counted from one.
    #[error("a name has no control characters, this one has one as character {0}")]
    ControlCharacter(usize),
    /// A `*`, which only patterns may contain.
    #[error("'*' belongs in patterns, not in the name of a lane")]
    Star,
}

fn check(text: &str) -> Result<(), NameError> {
    let chars = text.chars().count();
    if chars == 0 {
        return Err(NameError::Empty);
    }
    if chars > NAME_CHARS_MAX {
        return Err(NameError::TooLong(chars));
    }
    match text.chars().position(char::is_control) {
        Some(place) => Err(NameError::ControlCharacter(place + 1)),
        None => Ok(()),
    }
}

/// The name of a kind, a group, a worker or a caller's key: any short text without control characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Arc<str>", into = "Arc<str>")]
pub struct Name(Arc<str>);

/// The name of a lane. Dots, slashes and unicode are only text; `*` is refused, because it means a pattern.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Arc<str>", into = "Arc<str>")]
pub struct LaneName(Arc<str>);

/// A lane's name or a pattern of names; `*` stands for any run of characters without a `/`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Arc<str>", into = "Arc<str>")]
pub struct Pattern(Arc<str>);

pub(crate) static GLOBAL: LazyLock<LaneName> = LazyLock::new(|| LaneName("global".into()));
pub(crate) static MAIN: LazyLock<LaneName> = LazyLock::new(|| LaneName("main".into()));

impl Name {
    /// Checks `text`, which is taken as it is.
    pub fn new(text: impl Into<Arc<str>>) -> Result<Name, NameError> {
        let text = text.into();
        check(&text)?;
        Ok(Name(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl LaneName {
    /// Trims and checks `text`; an empty text means `main`.
    pub fn new(text: impl AsRef<str>) -> Result<LaneName, NameError> {
        let text = text.as_ref().trim();
        let text = if text.is_empty() { "main" } else { text };
        check(text)?;
        if text.contains('*') {
            return Err(NameError::Star);
        }
        Ok(LaneName(text.into()))
    }

    /// The lane that every task names without saying so.
    pub fn global() -> LaneName {
        GLOBAL.clone()
    }

    /// The lane of tasks that name none.
    pub fn main() -> LaneName {
        MAIN.clone()
    }

    /// The lane of an agent's turns.
    pub fn agent(name: &str) -> Result<LaneName, NameError> {
        LaneName::new(format!("agent:{name}"))
    }

    /// The lane of an agent's stateless tasks.
    pub fn task(name: &str) -> Result<LaneName, NameError> {
        LaneName::new(format!("task:{name}"))
    }

    /// The lane of the agents' turns and tasks that a running task has asked for.
    pub(crate) fn children(parent: crate::api::ids::TaskId) -> LaneName {
        LaneName(format!("children:{parent}").into())
    }

    /// The lane of one sort of tool calls of the session `key`.
    pub fn tool(key: &str, lane: crate::ToolLane) -> Result<LaneName, NameError> {
        LaneName::new(format!("{}/{}", LaneName::session(key)?, lane.as_str()))
    }

    /// The lane of the session `key`, which may be any text: what a lane's name may not hold is
    /// percent-encoded, and so is `/`, so that a key can never reach into another session's lanes.
    pub fn session(key: &str) -> Result<LaneName, NameError> {
        let mut text = String::from("session:");
        let last = key.chars().count().saturating_sub(1);
        for (place, char) in key.chars().enumerate() {
            let at_the_end = place == 0 || place == last;
            if matches!(char, '%' | '/' | '*') || char.is_control() || (at_the_end && char.is_whitespace()) {
                for byte in char.encode_utf8(&mut [0; 4]).bytes() {
                    text.push_str(&format!("%{byte:02X}"));
                }
            } else {
                text.push(char);
            }
        }
        LaneName::new(text)
    }

    /// The key of the session whose own lane this is.
    pub fn session_key(&self) -> Option<String> {
        let encoded = self.0.strip_prefix("session:").filter(|_| self.is_session())?;
        percent_decode_str(encoded).decode_utf8().ok().map(Cow::into_owned)
    }

    /// The session's own lane, of one of its tool lanes.
    pub fn session_of_tool_lane(&self) -> Option<LaneName> {
        let (session, _) = self.0.split_once('/').filter(|_| self.is_session_family())?;
        Some(LaneName(session.into()))
    }

    /// Whether this is a lane of one session: its own or one of its tool lanes.
    pub fn is_session_family(&self) -> bool {
        self.0.starts_with("session:")
    }

    /// Whether this is a session's own lane, in which one turn runs at a time.
    pub fn is_session(&self) -> bool {
        self.is_session_family() && !self.0.contains('/')
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Pattern {
    /// Trims and checks `text`; an empty text means `main`.
    pub fn new(text: impl AsRef<str>) -> Result<Pattern, NameError> {
        let text = text.as_ref().trim();
        let text = if text.is_empty() { "main" } else { text };
        check(text)?;
        Ok(Pattern(text.into()))
    }

    /// Whether this is one lane's name and not a pattern of many.
    pub fn is_exact(&self) -> bool {
        !self.0.contains('*')
    }

    /// The one lane's name that this is.
    pub fn exact(&self) -> Option<LaneName> {
        self.is_exact().then(|| LaneName(Arc::clone(&self.0)))
    }

    /// Whether `name` fits.
    pub fn matches(&self, name: &LaneName) -> bool {
        matches(self.0.as_bytes(), name.0.as_bytes())
    }

    /// Whether every name that fits `other` fits this one too.
    pub fn covers(&self, other: &Pattern) -> bool {
        // A `*` of this one takes a `*` of the other like any other byte, and nothing else takes it.
        matches(self.0.as_bytes(), other.0.as_bytes())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Matches with one step back: remembers the last `*` and lets it swallow one byte more, never a `/`.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut last_star: Option<(usize, usize)> = None;
    while n < name.len() {
        if p < pattern.len() && pattern[p] == b'*' {
            last_star = Some((p, n));
            p += 1;
        } else if p < pattern.len() && pattern[p] == name[n] {
            p += 1;
            n += 1;
        } else {
            match last_star {
                Some((star, swallowed)) if name[swallowed] != b'/' => {
                    last_star = Some((star, swallowed + 1));
                    p = star + 1;
                    n = swallowed + 1;
                }
                _ => return false,
            }
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

macro_rules! text {
    ($name:ident) => {
        impl TryFrom<Arc<str>> for $name {
            type Error = NameError;
            fn try_from(text: Arc<str>) -> Result<Self, NameError> {
                $name::new(text)
            }
        }
        impl From<$name> for Arc<str> {
            fn from(name: $name) -> Arc<str> {
                name.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
    };
}

text!(Name);
text!(LaneName);
text!(Pattern);

impl From<&LaneName> for Pattern {
    fn from(name: &LaneName) -> Pattern {
        Pattern(name.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, name: &str) -> bool {
        Pattern::new(pattern).unwrap().matches(&LaneName::new(name).unwrap())
    }

    #[test]
    fn a_star_never_crosses_a_slash() {
        assert!(fits("session:*", "session:alice"));
        assert!(!fits("session:*", "session:alice/query"));
        assert!(fits("session:*/query", "session:alice/query"));
        assert!(!fits("session:*/query", "session:a/b/query"));
        assert!(fits("*:*", "task:coder"));
        assert!(fits("a*b*c", "a-b-b-c"));
        assert!(!fits("a*b*c", "a-b-b-d"));
        assert!(fits("main", "main"));
        assert!(!fits("main", "main2"));
        assert!(fits("*", "ünïcode.and.dots"));
    }

    #[test]
    fn blank_means_main_and_nonsense_is_named() {
        assert_eq!(LaneName::new(" main ").unwrap().as_str(), "main");
        assert_eq!(LaneName::new("").unwrap().as_str(), "main");
        assert_eq!(LaneName::new("a\u{7}b"), Err(NameError::ControlCharacter(2)));
        assert_eq!(LaneName::new("x".repeat(10_000)), Err(NameError::TooLong(10_000)));
        assert_eq!(LaneName::new("é".repeat(128)).map(|name| name.as_str().len()), Ok(256));
        assert_eq!(LaneName::new("session:*"), Err(NameError::Star));
    }

    #[test]
    fn a_session_key_cannot_reach_into_another_lane() {
        assert_eq!(LaneName::session("alice/query").unwrap().as_str(), "session:alice%2Fquery");
        assert_eq!(LaneName::session("100%").unwrap().as_str(), "session:100%25");
        assert_eq!(LaneName::session(" a b ").unwrap().as_str(), "session:%20a b%20");
        assert!(LaneName::session("a*\n").unwrap().is_session());
        for key in ["alice/query", "100%", " a b ", "é%zz", ""] {
            assert_eq!(LaneName::session(key).unwrap().session_key().as_deref(), Some(key));
        }
    }
}
