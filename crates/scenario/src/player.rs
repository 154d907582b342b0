//! Plays a script and checks the scheduler at every step.

use std::collections::BTreeMap;

use laneway_core::{
    Block, Command, Event, LaneChange, LaneName, LaneSettings, Pattern, Scheduler, SessionCommand, TaskId,
    Timestamp,
};

use crate::answer::answer;
use crate::describe::{Describer, Description, lane_change};
use crate::error::ScriptError;
use crate::line::{Line, Tone};
use crate::names::Names;
use crate::script::{Action, Entry, Report, Watched, read};
use crate::session_commands::change_settings;

/// Up to this many live tasks, the player checks the invariants after every step; beyond that, after every line.
const CHECKED_AT_EACH_STEP_MAX: usize = 64;
/// No decision may depend on the seed, so the replay has another one.
const SEED: u64 = 1;
const REPLAY_SEED: u64 = 2;

/// Plays a script and returns what happened.
///
/// # Panics
///
/// If the scheduler breaks one of its own invariants: that is a bug in it, whatever the script says.
pub fn play(script: &str) -> Result<Vec<Line>, ScriptError> {
    perform(script, false)
}

/// Plays a script like [`play`], but on a scheduler that is saved and restored after every line. What happens
/// must be the same.
///
/// # Panics
///
/// If the scheduler breaks one of its own invariants.
pub fn play_with_restarts(script: &str) -> Result<Vec<Line>, ScriptError> {
    perform(script, true)
}

fn perform(script: &str, restarts: bool) -> Result<Vec<Line>, ScriptError> {
    let mut names = Names::default();
    let entries = read(script, &mut names)?;
    let mut player = Player {
        lanes: Scheduler::new(SEED),
        describer: Describer::new(names),
        settings: BTreeMap::new(),
        watched: Watched::Nothing,
        history: Vec::new(),
        lines: Vec::new(),
        tally: None,
    };
    for entry in &entries {
        player.play(entry);
        if restarts {
            player.lanes = Scheduler::restore(SEED, &player.lanes.snapshot());
        }
    }
    player.check_history();
    Ok(player.lines)
}

struct Player {
    lanes: Scheduler,
    describer: Describer,
    /// The blocks of settings in force, to change single settings of them.
    settings: BTreeMap<Pattern, LaneSettings>,
    watched: Watched,
    history: Vec<(Timestamp, Event)>,
    lines: Vec<Line>,
    /// How often each event happened, while a line is played quietly.
    tally: Option<Vec<(&'static str, usize)>>,
}

impl Player {
    fn play(&mut self, entry: &Entry) {
        self.tally = entry.quietly.then(Vec::new);
        while let Some(at) = self.lanes.next_wakeup().filter(|at| *at <= entry.at) {
            self.step(at, Command::Tick);
            let next = self.lanes.next_wakeup();
            assert!(next.is_none_or(|next| next > at), "woken at {at}, it wants to be woken at {next:?}");
        }
        match &entry.action {
            Action::Commands(commands) => {
                for command in commands {
                    self.step(entry.at, command.clone());
                }
            }
            Action::Configure { lanes, settings } => self.configure(entry.at, lanes, settings.as_deref()),
            Action::Report { tasks, fence, report } => {
                for task in tasks {
                    let (task, fence) = (*task, fence.unwrap_or_else(|| self.describer.fence(*task)));
                    let command = match report.clone() {
                        Report::Finish(outcome) => Command::Finish { task, fence, taken: vec![], outcome },
                        Report::Heartbeat => Command::Heartbeat { task, fence },
                        Report::Lapse => Command::Lapse { task, fence },
                        Report::Steering(open) => {
                            Command::Session(Box::new(SessionCommand::Steering { turn: task, fence, open }))
                        }
                        Report::TakeSteering(only) => {
                            let take = SessionCommand::TakeSteering { turn: task, fence, only };
                            Command::Session(Box::new(take))
                        }
                    };
                    self.step(entry.at, command);
                }
            }
            Action::Ask(query) => {
                // A question must see the present, not the last event.
                self.step(entry.at, Command::Tick);
                for text in answer(&self.lanes, &self.describer, query) {
                    self.say(entry.at, text, Tone::Answer);
                }
            }
            Action::Messages { channel, settings } => {
                self.configure_messages(entry.at, channel.as_deref(), settings);
            }
            Action::Say(text) => self.say(entry.at, text.clone(), Tone::Narration),
            Action::Watch(watched) => self.watched = watched.clone(),
            Action::Refused(why) => self.refuse(entry.at, why),
        }
        if let Some(tally) = self.tally.take() {
            let tally: Vec<String> = tally.iter().map(|(verb, times)| format!("{times} {verb}")).collect();
            self.say(entry.at, tally.join(", "), Tone::Answer);
        }
        self.check(entry.line);
    }

    fn configure(&mut self, at: Timestamp, lanes: &Pattern, words: Option<&[(String, String)]>) {
        let settings = words.map(|words| {
            let mut settings = self.settings.get(lanes).cloned().unwrap_or_default();
            words.iter().try_for_each(|(key, value)| settings.set(key, value)).map(|()| settings)
        });
        match settings.transpose() {
            Err(error) => self.refuse(at, &error.to_string()),
            Ok(settings) => {
                match settings.clone() {
                    Some(settings) => self.settings.insert(lanes.clone(), settings),
                    None => self.settings.remove(lanes),
                };
                self.step(at, Command::Configure(vec![Block { lanes: lanes.clone(), settings }]));
            }
        }
    }

    fn configure_messages(&mut self, at: Timestamp, channel: Option<&str>, words: &[(String, String)]) {
        let mut settings = self.lanes.message_settings().clone();
        match change_settings(&mut settings, channel, words) {
            Err(error) => self.refuse(at, &error.to_string()),
            Ok(()) => {
                let command = SessionCommand::ConfigureMessages(Box::new(settings));
                self.step(at, Command::Session(Box::new(command)));
            }
        }
    }

    fn step(&mut self, at: Timestamp, command: Command) {
        let asked = subject(&command);
        let mut events = Vec::new();
        let result = self.lanes.step(at, command, &mut events);
        for event in &events {
            let description = self.describer.event(event);
            match &mut self.tally {
                Some(tally) => add(tally, description.verb),
                None => {
                    let Description { verb, rest, tone } = description;
                    self.say(at, format!("{verb} {rest}"), tone);
                }
            }
        }
        self.history.extend(events.into_iter().map(|event| (at, event)));
        match result {
            Ok(reply) => {
                if let Some(text) = self.describer.reply(asked, &reply) {
                    self.say(at, text, Tone::Answer);
                }
            }
            Err(rejection) => self.refuse(at, &self.describer.names.with_names(&rejection.to_string())),
        }
        self.show_lane_changes(at);
        if self.lanes.live_tasks() <= CHECKED_AT_EACH_STEP_MAX {
            let violation = self.lanes.violation();
            assert!(violation.is_none(), "at {at}: {violation:?}");
        }
    }

    fn show_lane_changes(&mut self, at: Timestamp) {
        let is_watched = |change: &LaneChange| match &self.watched {
            Watched::Nothing => false,
            Watched::Lanes => change.lane != LaneName::global(),
            Watched::Only(lanes) => lanes.contains(&change.lane),
        };
        let mut changes: Vec<LaneChange> = self.lanes.changes().filter(is_watched).collect();
        changes.sort_by(|a, b| a.lane.cmp(&b.lane));
        for change in changes {
            self.say(at, lane_change(&change), Tone::Lane);
        }
    }

    fn say(&mut self, at: Timestamp, text: String, tone: Tone) {
        self.lines.push(Line { at, text, tone });
    }

    fn refuse(&mut self, at: Timestamp, why: &str) {
        match &mut self.tally {
            Some(tally) => add(tally, "rejected"),
            None => self.say(at, format!("rejected: {why}"), Tone::Refusal),
        }
    }

    fn check(&self, line: usize) {
        let violation = self.lanes.violation();
        assert!(violation.is_none(), "after line {line}: {violation:?}");
        let state = self.lanes.snapshot();
        let restored = Scheduler::restore(REPLAY_SEED, &state);
        assert!(restored.snapshot() == state, "after line {line}: the state does not survive being saved");
        let violation = restored.violation();
        assert!(violation.is_none(), "restored after line {line}: {violation:?}");
    }

    /// Replaying the events on another scheduler must lead to the same state. Both are ticked, so that
    /// both have let the same time pass; nothing may be left to happen.
    fn check_history(&mut self) {
        let mut replayed = Scheduler::new(REPLAY_SEED);
        for (at, event) in &self.history {
            replayed.apply(*at, event);
        }
        let now = self.lanes.now();
        for lanes in [&mut self.lanes, &mut replayed] {
            let mut events = Vec::new();
            let ticked = lanes.step(now, Command::Tick, &mut events);
            assert!(ticked.is_ok() && events.is_empty(), "at {now} something was left to happen: {events:?}");
        }
        assert!(replayed.violation().is_none(), "replayed: {:?}", replayed.violation());
        let (played, replayed) = (self.lanes.snapshot(), replayed.snapshot());
        assert!(
            played == replayed,
            "replaying gives another state\nplayed {played:#?}\nreplayed {replayed:#?}"
        );
    }
}

fn add(tally: &mut Vec<(&'static str, usize)>, verb: &'static str) {
    match tally.iter_mut().find(|(other, _)| *other == verb) {
        Some((_, times)) => *times += 1,
        None => tally.push((verb, 1)),
    }
}

/// The new task that a command asks for.
fn subject(command: &Command) -> Option<TaskId> {
    match command {
        Command::Submit { task, .. } | Command::Redrive { task, .. } => Some(*task),
        _ => None,
    }
}
