//! Directives: `/queue …`, `/steer …`, `/stop` and `/new` in the text of a message, and what is answered to them.
//!
//! Pure text in, meaning out. Whether the sender may is decided before.

use crate::api::settings_schema::duration;
use crate::api::time::Millis;
use crate::sessions::queue_mode::{BeyondPolicy, DropRule, EffectiveQueue, Mode, QueueOverrides};

/// What a message that is a directive as a whole asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Directive {
    /// Show how messages are queued here, and how many wait.
    Show,
    /// Store this for the session.
    Set(QueueOverrides),
    /// Forget what was stored for the session.
    Reset,
    /// Cancel the turn and everything that waits.
    Stop,
    /// The same, and start afresh, with this text if there is one.
    New {
        /// The first message of the fresh conversation.
        text: Option<String>,
    },
}

/// What was found in the text of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// No directive.
    Plain,
    /// Nothing but a directive.
    Whole(Directive),
    /// A directive for this message alone, and the rest of the text.
    Inline {
        /// What holds for this message.
        queue: QueueOverrides,
        /// The text without the directive.
        text: String,
    },
    /// A directive that makes no sense, with what to answer.
    Wrong(String),
}

/// What one word after `/queue` means.
enum Word {
    Option(QueueOverrides),
    Reset,
    Unknown,
    Wrong(String),
}

/// Looks for a directive in the text of a message.
pub fn read_directive(text: &str) -> Reading {
    let trimmed = text.trim();
    if trimmed.eq_ignore_ascii_case("/stop") {
        return Reading::Whole(Directive::Stop);
    }
    if let Some(("", rest)) = split_command(trimmed, "/new") {
        let text = Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty());
        return Reading::Whole(Directive::New { text });
    }
    for command in ["/steer", "/tell"] {
        if let Some(("", rest)) = split_command(trimmed, command) {
            return read_steer(command, rest.trim());
        }
    }
    match split_command(trimmed, "/queue") {
        Some((before, after)) => read_queue(before.trim_end(), after),
        None => Reading::Plain,
    }
}

/// `/steer text`: the text goes into the running turn.
fn read_steer(command: &str, text: &str) -> Reading {
    if text.is_empty() {
        return Reading::Wrong(format!(
            "{command} needs a text for the running turn, as in {command} use the other file."
        ));
    }
    let queue = QueueOverrides { mode: Some(Mode::Steer), ..QueueOverrides::default() };
    Reading::Inline { queue, text: text.to_owned() }
}

/// Splits at the first word that is the command, with or without a colon behind it.
fn split_command<'a>(text: &'a str, command: &str) -> Option<(&'a str, &'a str)> {
    let mut from = 0;
    while let Some(word) = next_word(&text[from..]) {
        let start = from + word.0;
        let end = from + word.1;
        if let Some(head) = text.get(start..start + command.len())
            && head.eq_ignore_ascii_case(command)
        {
            let rest = &text[start + command.len()..];
            if start + command.len() == end {
                return Some((&text[..start], rest));
            }
            if let Some(rest) = rest.strip_prefix(':') {
                return Some((&text[..start], rest));
            }
        }
        from = end;
    }
    None
}

/// Where the next word starts and ends.
fn next_word(text: &str) -> Option<(usize, usize)> {
    let start = text.find(|char: char| !char.is_whitespace())?;
    let length = text[start..].find(char::is_whitespace).unwrap_or(text.len() - start);
    Some((start, start + length))
}

fn read_queue(before: &str, mut after: &str) -> Reading {
    let mut queue = QueueOverrides::default();
    let (mut words, mut resets) = (0_u32, 0_u32);
    let mut unknown = None;
    while let Some((start, end)) = next_word(after) {
        let word = &after[start..end];
        match read_word(word) {
            Word::Option(option) => queue = option.over(queue),
            Word::Reset => resets += 1,
            Word::Wrong(error) => return Reading::Wrong(error),
            Word::Unknown => {
                unknown = Some(word);
                break;
            }
        }
        words += 1;
        after = &after[end..];
    }
    let rest = after.trim_start();
    match (before.is_empty() && rest.is_empty(), words, resets) {
        (true, 0, _) => Reading::Whole(Directive::Show),
        (true, 1, 1) => Reading::Whole(Directive::Reset),
        (true, _, 0) => Reading::Whole(Directive::Set(queue)),
        (_, _, 1..) => Reading::Wrong(
            "\"default\", \"reset\" and \"clear\" clear what is stored for the session: send /queue default alone."
                .to_owned(),
        ),
        (false, 0, 0) if before.is_empty() => Reading::Wrong(not_an_option(unknown.unwrap_or_default())),
        (false, 0, 0) => Reading::Plain,
        (false, _, 0) => {
            let space = if before.is_empty() || rest.is_empty() { "" } else { " " };
            Reading::Inline { queue, text: format!("{before}{space}{rest}") }
        }
    }
}

fn read_word(word: &str) -> Word {
    let one = |change: fn(&mut QueueOverrides, Mode), mode| {
        let mut queue = QueueOverrides::default();
        change(&mut queue, mode);
        Word::Option(queue)
    };
    if let Some(mode) = Mode::parse(word) {
        return one(|queue, mode| queue.mode = Some(mode), mode);
    }
    if ["default", "reset", "clear"].iter().any(|reset| word.eq_ignore_ascii_case(reset)) {
        return Word::Reset;
    }
    let Some((key, value)) = word.split_once([':', '=']) else { return Word::Unknown };
    let mut queue = QueueOverrides::default();
    let length = || duration("", &value.to_ascii_lowercase(), Millis(0)).ok();
    let choices = match &*key.to_ascii_lowercase() {
        "debounce" => {
            queue.debounce = length();
            "is not a duration; write a number with ms, s, m, h or d, as in debounce:2s"
        }
        "max_wait" | "max-wait" | "maxwait" => {
            queue.max_wait = length();
            "is not a duration; write a number with ms, s, m, h or d, as in max_wait:10s"
        }
        "cap" => {
            queue.cap = value.parse().ok().filter(|cap| *cap > 0);
            "is not a cap; write a whole number of 1 or more, as in cap:20"
        }
        "drop" => {
            queue.drop = DropRule::parse(value);
            "is not a drop rule; there are old, new, summarize"
        }
        _ => return Word::Unknown,
    };
    if queue.is_empty() {
        Word::Wrong(format!("\"{}\" {choices}.", quoted(word)))
    } else {
        Word::Option(queue)
    }
}

fn not_an_option(word: &str) -> String {
    format!(
        "\"{}\" is not a queue mode or option. Modes: {}. Options: debounce:2s, max_wait:10s, cap:20, drop:{}. \
         /queue default clears them.",
        quoted(word),
        Mode::CHOICES,
        DropRule::CHOICES.replace(", ", "|"),
    )
}

/// A word of the sender's that is safe to show: short, on one line.
fn quoted(word: &str) -> String {
    const CHARS_MAX: usize = 64;
    let mut cut: String = word.chars().filter(|char| !char.is_control()).take(CHARS_MAX).collect();
    if word.chars().count() > CHARS_MAX {
        cut.push('…');
    }
    cut
}

/// The answer to a directive that stored something.
pub(crate) fn set(queue: &QueueOverrides) -> String {
    let words: Vec<String> = [
        queue.mode.map(|mode| format!("mode {}", mode.as_str())),
        queue.debounce.map(|millis| format!("debounce {}", millis.written())),
        queue.max_wait.map(|millis| format!("max_wait {}", millis.written())),
        queue.cap.map(|cap| format!("cap {cap}")),
        queue.drop.map(|drop| format!("drop {}", drop.as_str())),
    ]
    .into_iter()
    .flatten()
    .collect();
    format!("Queue set for this session: {}.", words.join(", "))
}

fn in_words(queue: &EffectiveQueue) -> String {
    format!(
        "mode {} ({}), debounce {} ({}), max_wait {} ({}), cap {} ({}), drop {} ({})",
        queue.mode.value.as_str(),
        queue.mode.origin.as_str(),
        queue.debounce.value.written(),
        queue.debounce.origin.as_str(),
        queue.max_wait.value.written(),
        queue.max_wait.origin.as_str(),
        queue.cap.value,
        queue.cap.origin.as_str(),
        queue.drop.value.as_str(),
        queue.drop.origin.as_str(),
    )
}

/// The answer to `/queue` alone.
pub(crate) fn shown(queue: &EffectiveQueue, depth: usize) -> String {
    format!("Queue: {}, depth {depth}.", in_words(queue))
}

/// The answer to `/queue default`.
pub(crate) fn cleared(queue: &EffectiveQueue) -> String {
    format!("Queue of this session cleared: {}.", in_words(queue))
}

/// The answer to a value that is not allowed here.
pub(super) fn beyond(too_much: BeyondPolicy) -> String {
    format!("Not allowed here: {too_much}.")
}

/// The answer to `/stop`.
pub(crate) fn stopped(tasks: usize, messages: usize) -> String {
    match (tasks, messages) {
        (0, 0) => "Nothing to stop.".to_owned(),
        _ => format!("Stopped: {}.", cancelled(tasks, messages)),
    }
}

/// The answer to `/new`.
pub(crate) fn renewed(tasks: usize, messages: usize) -> String {
    match (tasks, messages) {
        (0, 0) => "A fresh conversation starts with your next message.".to_owned(),
        _ => format!("A fresh conversation starts with your next message; {}.", cancelled(tasks, messages)),
    }
}

fn cancelled(tasks: usize, messages: usize) -> String {
    let count = |number: usize, noun: &str| match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    };
    format!("{} and {} cancelled", count(tasks, "turn"), count(messages, "waiting message"))
}
