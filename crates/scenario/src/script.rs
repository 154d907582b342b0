//! Reads a script into entries, before anything is played.

use laneway_core::{
    Command, Fence, LaneName, MessageId, Millis, Outcome, Pattern, TaskId, Timestamp, duration,
};

use crate::commands::{COMMANDS, read_command};
use crate::error::{LineError, ScriptError};
use crate::names::Names;
use crate::tokens::Tokens;

/// One line that does something.
pub(crate) struct Entry {
    pub(crate) line: usize,
    pub(crate) at: Timestamp,
    /// Only the count of each event is shown.
    pub(crate) quietly: bool,
    pub(crate) action: Action,
}

/// What a line means.
pub(crate) enum Action {
    Commands(Vec<Command>),
    /// Change some settings of a block, or remove it.
    Configure {
        lanes: Pattern,
        settings: Option<Vec<(String, String)>>,
    },
    /// Report about attempts: the last one of each task, or the one with this fence.
    Report {
        tasks: Vec<TaskId>,
        fence: Option<Fence>,
        report: Report,
    },
    Ask(Query),
    /// Change how messages are queued, everywhere or in one channel.
    Messages {
        channel: Option<String>,
        settings: Vec<(String, String)>,
    },
    Watch(Watched),
    Say(String),
    /// The scheduler would refuse the words.
    Refused(String),
}

#[derive(Clone)]
pub(crate) enum Report {
    Finish(Outcome),
    Heartbeat,
    /// Its executor is dead.
    Lapse,
    /// Whether it takes steering.
    Steering(bool),
    /// It takes what was accepted for it, or only these.
    TakeSteering(Option<Vec<MessageId>>),
}

/// A question that changes nothing.
pub(crate) enum Query {
    Show(LaneName),
    Lanes,
    Place(TaskId),
    Explain(TaskId),
    Task(TaskId),
    DeadLetters,
    Pending,
    Stats(String),
    Wakeup,
    Session(String),
    Message(MessageId),
    Content(TaskId),
    Parked,
    Offered(TaskId),
}

/// The lanes whose changes are shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Watched {
    /// None.
    Nothing,
    /// All but `global`, which changes with every other.
    Lanes,
    /// These.
    Only(Vec<LaneName>),
}

pub(crate) fn read(script: &str, names: &mut Names) -> Result<Vec<Entry>, ScriptError> {
    let mut entries: Vec<Entry> = Vec::new();
    for (index, text) in script.lines().enumerate() {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let line = index + 1;
        let last = entries.last().map_or(Timestamp(0), |entry| entry.at);
        entries.push(read_line(line, text, last, names)?);
    }
    Ok(entries)
}

fn read_line(line: usize, text: &str, last: Timestamp, names: &mut Names) -> Result<Entry, ScriptError> {
    let error = |wrong: String, right: String| ScriptError { line, wrong, right };
    let (time, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let at = duration("the time", time, Millis(0)).map(|length| Timestamp(length.0)).map_err(|_| {
        let right = "a line starts with the time in milliseconds, as in: 0 submit a main".to_owned();
        error(format!("{time:?} is not a time"), right)
    })?;
    if at < last {
        let right = "each line's time is that of the line before it or later".to_owned();
        return Err(error(format!("the time goes back from {last} to {at}"), right));
    }
    let (quietly, rest) = match rest.trim_start().strip_prefix("quietly ") {
        Some(rest) => (true, rest),
        None => (false, rest.trim_start()),
    };
    let (command, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let Some((_, usage)) = COMMANDS.iter().find(|(name, _)| *name == command) else {
        let known: Vec<&str> = COMMANDS.iter().map(|(name, _)| *name).collect();
        let wrong = if command.is_empty() {
            "the command is missing".to_owned()
        } else {
            format!("{command:?} is not a command")
        };
        return Err(error(wrong, format!("there are {}", known.join(", "))));
    };
    let read = Tokens::new(arguments).and_then(|mut words| {
        let action = read_command(command, arguments, &mut words, names)?;
        words.end()?;
        Ok(action)
    });
    let action = match read {
        Ok(action) => action,
        Err(LineError::Script(wrong)) => {
            let example = format!("write: {time} {command} {usage}").trim_end().to_owned();
            return Err(error(format!("{command}: {wrong}"), example));
        }
        Err(refused) => Action::Refused(refused.to_string()),
    };
    Ok(Entry { line, at, quietly, action })
}
