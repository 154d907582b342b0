//! Splits a line into words, and reads single words.

use laneway_core::{LaneName, Name, TaskId};

use crate::error::{LineError, wrong};
use crate::names::Names;

/// The most tasks that one range can mean.
const RANGE_MAX: u64 = 100_000;

/// What is left of a line.
pub(crate) struct Tokens {
    rest: std::collections::VecDeque<String>,
}

impl Tokens {
    /// Splits at white space; double quotes keep words together, and know `\"`, `\\`, `\n` and `\t`.
    pub(crate) fn new(text: &str) -> Result<Tokens, LineError> {
        let mut words = Tokens { rest: Default::default() };
        let mut chars = text.trim().chars();
        let mut word: Option<String> = None;
        let mut is_quoted = false;
        while let Some(char) = chars.next() {
            match char {
                '"' => {
                    is_quoted = !is_quoted;
                    word.get_or_insert_default();
                }
                '\\' if is_quoted => {
                    let escaped = match chars.next() {
                        Some('n') => '\n',
                        Some('t') => '\t',
                        Some(char @ ('"' | '\\')) => char,
                        _ => return wrong("a \\ in quotes stands before \", \\, n or t"),
                    };
                    word.get_or_insert_default().push(escaped);
                }
                char if char.is_whitespace() && !is_quoted => words.rest.extend(word.take()),
                char => word.get_or_insert_default().push(char),
            }
        }
        words.rest.extend(word);
        if is_quoted { wrong("a quotation mark is never closed") } else { Ok(words) }
    }

    pub(crate) fn next(&mut self) -> Option<String> {
        self.rest.pop_front()
    }

    /// The next word, which must be there; `what` says what it is.
    pub(crate) fn need(&mut self, what: &str) -> Result<String, LineError> {
        self.next().ok_or_else(|| LineError::Script(format!("{what} is missing")))
    }

    /// The next word, if it starts with `start`, without that.
    pub(crate) fn next_after(&mut self, start: char) -> Option<String> {
        let word = self.rest.front()?.strip_prefix(start)?.to_owned();
        self.rest.pop_front();
        Some(word)
    }

    /// Takes the next word if it is this one.
    pub(crate) fn next_is(&mut self, word: &str) -> bool {
        let is_it = self.rest.front().is_some_and(|next| next == word);
        if is_it {
            self.rest.pop_front();
        }
        is_it
    }

    /// Reads the rest of the line as `key=value` pairs.
    pub(crate) fn pairs(&mut self) -> Result<Vec<(String, String)>, LineError> {
        let own = |word: String| pair(&word).map(|(key, value)| (key.to_owned(), value.to_owned()));
        std::mem::take(&mut self.rest).into_iter().map(own).collect()
    }

    /// All that is left, as one text.
    pub(crate) fn rest(&mut self) -> String {
        Vec::from(std::mem::take(&mut self.rest)).join(" ")
    }

    /// There must be nothing left.
    pub(crate) fn end(mut self) -> Result<(), LineError> {
        match self.next() {
            Some(word) => wrong(format!("{word:?} is one word too many")),
            None => Ok(()),
        }
    }
}

/// Reads `key=value`.
pub(crate) fn pair(word: &str) -> Result<(&str, &str), LineError> {
    match word.split_once('=') {
        Some(pair) => Ok(pair),
        None => wrong(format!("{word:?} is not key=value")),
    }
}

pub(crate) fn number<T: std::str::FromStr>(what: &str, word: &str) -> Result<T, LineError> {
    word.parse().or_else(|_| wrong(format!("{what} {word:?} is not a whole number, or too large")))
}

pub(crate) fn lane(word: &str) -> Result<LaneName, LineError> {
    Ok(LaneName::new(word)?)
}

pub(crate) fn name(word: &str) -> Result<Name, LineError> {
    Ok(Name::new(word)?)
}

/// Reads `a`, `a,b`, `t1..t31` and mixtures of these.
pub(crate) fn tasks(word: &str, names: &mut Names) -> Result<Vec<TaskId>, LineError> {
    let mut tasks = Vec::new();
    for part in word.split(',') {
        match part.split_once("..") {
            Some((first, last)) => {
                for name in range(first, last)? {
                    tasks.push(names.id(&name));
                }
            }
            None if part.is_empty() || part.contains('=') || part.starts_with('#') => {
                return wrong(format!("{word:?} is not the name of a task"));
            }
            None => tasks.push(names.id(part)),
        }
    }
    Ok(tasks)
}

/// Reads the name of one task.
pub(crate) fn task(word: &str, names: &mut Names) -> Result<TaskId, LineError> {
    match tasks(word, names)?[..] {
        [task] => Ok(task),
        _ => wrong(format!("{word:?} names more than one task")),
    }
}

fn range(first: &str, last: &str) -> Result<impl Iterator<Item = String>, LineError> {
    let digits_at = |text: &str| text.trim_end_matches(|char: char| char.is_ascii_digit()).len();
    let (prefix, from) = first.split_at(digits_at(first));
    let to = last.strip_prefix(prefix).unwrap_or(last);
    let bounds = from.parse::<u64>().ok().zip(to.parse::<u64>().ok());
    match bounds {
        Some((from, to)) if from <= to && to - from < RANGE_MAX => {
            let prefix = prefix.to_owned();
            Ok((from..=to).map(move |number| format!("{prefix}{number}")))
        }
        _ => wrong(format!("{first}..{last} is not a range such as t1..t31 of at most {RANGE_MAX} tasks")),
    }
}
