//! The commands of the language.

use laneway_core::{
    CancelReason, Command, Fence, LaneName, MessageId, Millis, Name, Outcome, Parent, Pattern, Selector,
    TaskId, ToolBatch, ToolCall, ToolLane, duration,
};

use crate::error::{LineError, wrong};
use crate::names::Names;
use crate::script::{Action, Query, Report, Watched};
use crate::session_commands::{message, message_command, messages, send, session_command};
use crate::submit_command::submit;
use crate::tokens::{Tokens, lane, name, number, pair, task, tasks};

/// Every command and the form of its arguments. `quietly` before a command shows only how often each event happened.
pub const COMMANDS: &[(&str, &str)] = &[
    ("lane", "LANE key=value… (one or more settings; the others stay)"),
    ("unset", "LANE"),
    ("submit", "TASKS LANE[,LANE…] [user|schedule|agent|background] [key=value…]"),
    ("batch", "SESSION [parent=TASK] [group=NAME]: TOOL[/LANE] TASK, TOOL TASK, …"),
    ("finish", "TASKS [#FENCE]"),
    ("fail", "TASKS [#FENCE] [final] [what went wrong]"),
    ("stopped", "TASKS [#FENCE]"),
    ("heartbeat", "TASKS [#FENCE]"),
    ("lapse", "TASKS [#FENCE]"),
    ("claim", "WORKER LANE[,LANE…] [MOST] [kinds=KIND,…] [lease=DURATION]"),
    ("cancel", "TASKS [caller|cleared|released|parent|interrupted]"),
    ("cancel-waiting", "[lane=LANE] [kind=KIND] [group=NAME]"),
    ("clear", "LANE"),
    ("leave", "TASKS"),
    ("priority", "TASKS 0..9"),
    ("pause", "LANE"),
    ("resume", "LANE"),
    ("drain", "LANE"),
    ("release", "LANE"),
    ("redrive", "LETTER as TASK"),
    ("discard", "LETTERS"),
    ("send", "MESSAGES SESSION \"TEXT\" [key=value…] [heartbeat] [may] ({} in the text: the message's name)"),
    ("messages", "[key=value…] (how messages are queued everywhere)"),
    ("channel", "NAME [key=value…]"),
    ("queue", "SESSION [key=value…]"),
    ("withdraw", "MESSAGE"),
    ("move", "MESSAGE [before MESSAGE]"),
    ("send-now", "MESSAGE"),
    ("promote", "MESSAGE"),
    ("resend", "MESSAGE as MESSAGE"),
    ("clear-session", "SESSION"),
    ("interrupt", "SESSION"),
    ("stop-session", "SESSION"),
    ("steering", "TURN on|off [#FENCE]"),
    ("take", "TURN [only MESSAGES] [#FENCE]"),
    ("offered", "TURN"),
    ("session", "SESSION"),
    ("message", "MESSAGE"),
    ("content", "TURN"),
    ("aside", ""),
    ("tick", ""),
    ("show", "LANE"),
    ("lanes", ""),
    ("place", "TASK"),
    ("explain", "TASK"),
    ("task", "TASK"),
    ("letters", ""),
    ("pending", ""),
    ("stats", "LANE or PATTERN"),
    ("wakeup", ""),
    ("say", "anything, as a comment in the output"),
    ("watch", "lanes (all but global), or LANE[,LANE…], or nothing"),
];

/// Reads the arguments of `command`, which is one of [`COMMANDS`].
pub(crate) fn read_command(
    command: &str,
    arguments: &str,
    words: &mut Tokens,
    names: &mut Names,
) -> Result<Action, LineError> {
    match command {
        "lane" => configure(words),
        "unset" => Ok(Action::Configure { lanes: pattern(words)?, settings: None }),
        "submit" => submit(words, names),
        "batch" => {
            words.rest();
            batch(arguments, names)
        }
        "claim" => claim(words),
        "finish" | "fail" | "stopped" | "heartbeat" | "lapse" => report(command, words, names),
        "cancel" | "leave" | "priority" | "discard" | "redrive" => task_command(command, words, names),
        "clear" => {
            let which = Selector { lane: Some(lane(&words.need("the lane")?)?), ..Selector::default() };
            one(Command::CancelWaiting { which, reason: CancelReason::Cleared })
        }
        "cancel-waiting" => cancel_waiting(words),
        "pause" | "resume" | "drain" | "release" => {
            let lane = lane(&words.need("the lane")?)?;
            one(match command {
                "pause" => Command::Pause { lane },
                "resume" => Command::Resume { lane },
                "drain" => Command::Drain { lane },
                _ => Command::ForceRelease { lane },
            })
        }
        "send" => send(words, names),
        "messages" | "channel" => messages(command, words),
        "queue" | "clear-session" | "interrupt" | "stop-session" => session_command(command, words),
        "withdraw" | "move" | "send-now" | "promote" | "resend" => message_command(command, words, names),
        "steering" | "take" => steering_command(command, words, names),
        "say" => Ok(Action::Say(words.rest())),
        "tick" => one(Command::Tick),
        "watch" => watch(words),
        _ => query(command, words, names).map(Action::Ask),
    }
}

fn one(command: Command) -> Result<Action, LineError> {
    Ok(Action::Commands(vec![command]))
}

fn pattern(words: &mut Tokens) -> Result<Pattern, LineError> {
    Ok(Pattern::new(words.need("the lane")?)?)
}

fn configure(words: &mut Tokens) -> Result<Action, LineError> {
    let lanes = pattern(words)?;
    Ok(Action::Configure { lanes, settings: Some(words.pairs()?) })
}

fn fence(words: &mut Tokens) -> Result<Option<Fence>, LineError> {
    words.next_after('#').map(|word| number("fence", &word).map(Fence)).transpose()
}

fn report(command: &str, words: &mut Tokens, names: &mut Names) -> Result<Action, LineError> {
    let tasks = tasks(&words.need("the task")?, names)?;
    let fence = fence(words)?;
    let report = match command {
        "finish" => Report::Finish(Outcome::Success),
        "stopped" => Report::Finish(Outcome::Stopped),
        "heartbeat" => Report::Heartbeat,
        "lapse" => Report::Lapse,
        _ => {
            let retryable = !words.next_is("final");
            let error = Some(words.rest()).filter(|error| !error.is_empty());
            let error = error.unwrap_or_else(|| "it broke".to_owned()).into();
            Report::Finish(Outcome::Failure { error, retryable })
        }
    };
    Ok(Action::Report { tasks, fence, report })
}

fn steering_command(command: &str, words: &mut Tokens, names: &mut Names) -> Result<Action, LineError> {
    let tasks = tasks(&words.need("the turn")?, names)?;
    let report = match command {
        "take" if words.next_is("only") => {
            let list = crate::tokens::tasks(&words.need("the messages")?, names)?;
            Report::TakeSteering(Some(list.into_iter().map(|id| MessageId(id.0)).collect()))
        }
        "take" => Report::TakeSteering(None),
        _ if words.next_is("on") => Report::Steering(true),
        _ if words.next_is("off") => Report::Steering(false),
        _ => return wrong("on or off is missing"),
    };
    Ok(Action::Report { tasks, fence: fence(words)?, report })
}

fn task_command(command: &str, words: &mut Tokens, names: &mut Names) -> Result<Action, LineError> {
    let tasks = tasks(&words.need("the task")?, names)?;
    let each =
        |make: &dyn Fn(TaskId) -> Command| Ok(Action::Commands(tasks.iter().copied().map(make).collect()));
    match command {
        "leave" => each(&|task| Command::Leave { task }),
        "discard" => each(&|dead_letter| Command::Discard { dead_letter }),
        "priority" => {
            let priority = number("the priority", &words.need("the priority")?)?;
            each(&|task| Command::Reprioritise { task, priority })
        }
        "redrive" => {
            if !words.next_is("as") {
                return wrong("the new task is missing");
            }
            let again = task(&words.need("the new task")?, names)?;
            each(&|dead_letter| Command::Redrive { dead_letter, task: again })
        }
        _ => {
            let reason = words.next().map_or(Ok(CancelReason::Caller), |word| reason(&word))?;
            each(&|task| Command::Cancel { task, reason })
        }
    }
}

fn reason(word: &str) -> Result<CancelReason, LineError> {
    match word {
        "caller" => Ok(CancelReason::Caller),
        "cleared" => Ok(CancelReason::Cleared),
        "released" => Ok(CancelReason::Released),
        "parent" => Ok(CancelReason::Parent),
        "interrupted" => Ok(CancelReason::Interrupted),
        _ => wrong(format!("{word:?} is not a reason")),
    }
}

fn cancel_waiting(words: &mut Tokens) -> Result<Action, LineError> {
    let mut which = Selector::default();
    while let Some(word) = words.next() {
        match pair(&word)? {
            ("lane", value) => which.lane = Some(lane(value)?),
            ("kind", value) => which.kind = Some(name(value)?),
            ("group", value) => which.group = Some(name(value)?),
            (key, _) => return wrong(format!("{key:?} does not tell which tasks are meant")),
        }
    }
    one(Command::CancelWaiting { which, reason: CancelReason::Caller })
}

fn claim(words: &mut Tokens) -> Result<Action, LineError> {
    let worker = name(&words.need("the worker")?)?;
    let lanes = words.need("the lane")?;
    let lanes: Result<Vec<Pattern>, _> = lanes.split(',').map(Pattern::new).collect();
    let (mut max, mut kinds, mut lease): (u32, Vec<Name>, Option<Millis>) = (1, vec![], None);
    while let Some(word) = words.next() {
        match word.split_once('=') {
            None => max = number("the most", &word)?,
            Some(("kinds", value)) => kinds = value.split(',').map(name).collect::<Result<_, _>>()?,
            Some(("lease", value)) => lease = Some(duration("lease", value, Millis(0))?),
            Some((key, _)) => return wrong(format!("{key:?} is nothing that a claim can say")),
        }
    }
    one(Command::Claim { worker, lanes: lanes?, kinds, max, lease })
}

fn batch(arguments: &str, names: &mut Names) -> Result<Action, LineError> {
    let Some((head, calls)) = arguments.split_once(": ") else {
        return wrong("the colon after the session is missing");
    };
    let mut head = Tokens::new(head)?;
    let session = head.need("the session")?.into();
    let mut batch = ToolBatch {
        session,
        calls: vec![],
        parent: None,
        group: None,
        asker: None,
        caller: None,
        trace: None,
    };
    while let Some(word) = head.next() {
        match pair(&word)? {
            ("parent", value) => batch.parent = Some(Parent { task: task(value, names)?, detached: false }),
            ("group", value) => batch.group = Some(name(value)?),
            ("asker", value) => batch.asker = Some(lane(value)?),
            (key, _) => return wrong(format!("{key:?} is nothing that a batch can say")),
        }
    }
    for call in calls.split(',').filter(|call| !call.trim().is_empty()) {
        let mut words = Tokens::new(call)?;
        let tool = words.need("the tool")?;
        let (tool, lane) = match tool.split_once('/') {
            Some((tool, lane)) => (tool, tool_lane(lane)?),
            None => (&*tool, ToolLane::of_tool(&tool)),
        };
        let task = task(&words.need("the name of a call")?, names)?;
        batch.calls.push(ToolCall { task, tool: name(tool)?, lane, payload: None });
        words.end()?;
    }
    one(Command::SubmitBatch(Box::new(batch)))
}

fn tool_lane(word: &str) -> Result<ToolLane, LineError> {
    let lanes = [ToolLane::Control, ToolLane::Query, ToolLane::Execute, ToolLane::Generate];
    let found = lanes.into_iter().find(|lane| lane.as_str() == word);
    found.ok_or_else(|| LineError::Script(format!("{word:?} is not control, query, execute or generate")))
}

fn watch(words: &mut Tokens) -> Result<Action, LineError> {
    let what = words.need("what to watch")?;
    Ok(Action::Watch(match &*what {
        "nothing" => Watched::Nothing,
        "lanes" => Watched::Lanes,
        lanes => Watched::Only(lanes.split(',').map(LaneName::new).collect::<Result<_, _>>()?),
    }))
}

fn query(command: &str, words: &mut Tokens, names: &mut Names) -> Result<Query, LineError> {
    match command {
        "show" => Ok(Query::Show(lane(&words.need("the lane")?)?)),
        "lanes" => Ok(Query::Lanes),
        "letters" => Ok(Query::DeadLetters),
        "pending" => Ok(Query::Pending),
        "wakeup" => Ok(Query::Wakeup),
        "aside" => Ok(Query::Parked),
        "offered" => Ok(Query::Offered(task(&words.need("the turn")?, names)?)),
        "session" => Ok(Query::Session(words.need("the session")?)),
        "message" => Ok(Query::Message(message(&words.need("the message")?, names)?)),
        "content" => Ok(Query::Content(task(&words.need("the turn")?, names)?)),
        "stats" => Ok(Query::Stats(words.need("the lane")?)),
        _ => {
            let task = task(&words.need("the task")?, names)?;
            Ok(match command {
                "place" => Query::Place(task),
                "explain" => Query::Explain(task),
                _ => Query::Task(task),
            })
        }
    }
}
