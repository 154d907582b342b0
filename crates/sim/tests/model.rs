//! The protocol of lease, fence and append by itself, in all interleavings: three replicas and three tasks that share
//! one slot, crashes, answers that get lost, requests that outlive their senders, and a log that loses its end.
//!
//! A lease may lapse at any time from the point of view of others: clocks are left to chance. What a replica decides
//! rests on what it has read, and counts if the log still ends there.

use stateright::{Checker, HasDiscoveries, Model, Property};

const REPLICAS: usize = 3;
const TASKS: u8 = 3;
/// Histories of this many batches at most are looked at.
const LOG_MAX: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum What {
    Grant {
        task: u8,
        fence: u8,
    },
    Lapse {
        task: u8,
        fence: u8,
    },
    /// Reported by whoever had this fence.
    Done {
        task: u8,
        fence: u8,
    },
}

/// A batch, told apart from every other: by whom, at which version, and since how many losses of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Batch {
    by: u8,
    version: u8,
    era: u8,
    what: What,
    /// The one that it was decided on: by whom and since how many losses.
    after: Option<(u8, u8)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Replica {
    is_down: bool,
    /// What it has read.
    seen: Vec<Batch>,
    /// What it runs, whoever else believes that.
    runs: Option<(u8, u8)>,
    /// What is under way to the store. It stays so when the sender dies.
    sent: Option<Batch>,
    /// The sender of that is dead: nobody waits for the answer.
    is_orphan: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    log: Vec<Batch>,
    replicas: [Replica; REPLICAS],
    crashes_left: u8,
    lapses_left: u8,
    losses_left: u8,
}

impl State {
    /// Whether a replica has done nothing that anybody could know of.
    fn is_fresh(&self, number: usize) -> bool {
        let is_its = |batch: &Batch| batch.by as usize == number;
        let seen = self.replicas.iter().flat_map(|replica| replica.seen.iter().chain(&replica.sent));
        self.replicas[number] == Replica::default() && !seen.chain(&self.log).any(is_its)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Action {
    Read(usize),
    Grant(usize),
    Lapse(usize),
    Done(usize),
    /// The request gets there.
    Arrive(usize),
    /// The answer gets back, or the sender asks again and hears.
    Answer(usize),
    /// The request gets lost, and its sender is dead.
    Vanish(usize),
    Crash(usize),
    Start(usize),
    /// The store forgets its last batch.
    LoseTail,
}

/// The protocol, or one with something left out.
#[derive(Clone, Copy)]
struct Protocol {
    has_fence: bool,
    compares_batches: bool,
}

/// What the log says of each task: the fence under which it runs, and whether it is done.
fn tasks(log: &[Batch]) -> ([Option<u8>; TASKS as usize], [bool; TASKS as usize], u8) {
    let (mut running, mut done, mut last) = ([None; TASKS as usize], [false; TASKS as usize], 0);
    for batch in log {
        match batch.what {
            What::Grant { task, fence } => {
                running[task as usize] = Some(fence);
                last = last.max(fence);
            }
            What::Lapse { task, .. } => running[task as usize] = None,
            What::Done { task, .. } => {
                running[task as usize] = None;
                done[task as usize] = true;
            }
        }
    }
    (running, done, last)
}

impl Protocol {
    /// What a replica would append, on what it has read.
    fn decide(self, state: &State, replica: usize, action: Action) -> Option<Batch> {
        let this = &state.replicas[replica];
        let (running, done, last) = tasks(&this.seen);
        let holder = (0..TASKS).find_map(|task| running[task as usize].map(|fence| (task, fence)));
        let what = match action {
            Action::Grant(_) => {
                let task = (0..TASKS).find(|task| !done[*task as usize])?;
                holder.is_none().then_some(What::Grant { task, fence: last + 1 })?
            }
            Action::Lapse(_) => {
                let (task, fence) = holder.filter(|holder| this.runs != Some(*holder))?;
                What::Lapse { task, fence }
            }
            Action::Done(_) => {
                let (task, fence) = this.runs?;
                let believed = running[task as usize]?;
                (!self.has_fence || believed == fence).then_some(What::Done { task, fence })?
            }
            _ => return None,
        };
        let after = this.seen.last().map(|batch| (batch.by, batch.era));
        let era = 1 - state.losses_left;
        Some(Batch { by: replica as u8, version: this.seen.len() as u8, era, what, after })
    }

    /// The store: takes a batch if the log ends where its sender believed.
    fn append(self, log: &mut Vec<Batch>, batch: Batch) {
        let end = log.last().map(|batch| (batch.by, batch.era));
        if log.len() == batch.version as usize && (!self.compares_batches || end == batch.after) {
            log.push(batch);
        }
    }
}

/// What the sender of a batch learns.
fn answer(state: &mut State, replica: usize) {
    let this = &mut state.replicas[replica];
    let Some(batch) = this.sent.take() else { return };
    if state.log.get(batch.version as usize) == Some(&batch) {
        this.seen = state.log[..=batch.version as usize].to_vec();
        match batch.what {
            What::Grant { task, fence } => this.runs = Some((task, fence)),
            What::Done { .. } => this.runs = None,
            What::Lapse { .. } => {}
        }
    }
}

/// Reads the log. What one runs and the log does not know any more is told to stop by and by.
fn read(state: &mut State, replica: usize) {
    let this = &mut state.replicas[replica];
    this.seen.clone_from(&state.log);
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let replicas = std::array::from_fn(|_| Replica::default());
        vec![State { log: vec![], replicas, crashes_left: 1, lapses_left: 1, losses_left: 1 }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (number, replica) in state.replicas.iter().enumerate() {
            // Those that nobody has heard of are alike, so the first of them stands for all.
            if state.is_fresh(number) && (0..number).any(|lower| state.is_fresh(lower)) {
                continue;
            }
            if replica.sent.is_some() {
                actions.push(Action::Arrive(number));
                actions.push(if replica.is_orphan { Action::Vanish(number) } else { Action::Answer(number) });
            }
            if replica.is_down {
                actions.push(Action::Start(number));
                continue;
            }
            if replica.seen != state.log && replica.sent.is_none() {
                actions.push(Action::Read(number));
            }
            if replica.sent.is_none() {
                actions.extend([Action::Grant(number), Action::Done(number)]);
                actions.extend((state.lapses_left > 0).then_some(Action::Lapse(number)));
            }
            actions.extend((state.crashes_left > 0).then_some(Action::Crash(number)));
        }
        actions.extend((state.losses_left > 0 && !state.log.is_empty()).then_some(Action::LoseTail));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Read(number) => read(&mut state, number),
            Action::Grant(number) | Action::Lapse(number) | Action::Done(number) => {
                let batch = self.decide(last, number, action)?;
                state.lapses_left -= u8::from(matches!(batch.what, What::Lapse { .. }));
                state.replicas[number].sent = Some(batch);
            }
            Action::Arrive(number) => {
                let batch = last.replicas[number].sent?;
                self.append(&mut state.log, batch);
            }
            Action::Answer(number) => answer(&mut state, number),
            Action::Vanish(number) => {
                (state.replicas[number].sent, state.replicas[number].is_orphan) = (None, false);
            }
            Action::Crash(number) => {
                let (sent, is_orphan) = (last.replicas[number].sent, last.replicas[number].sent.is_some());
                state.replicas[number] = Replica { is_down: true, sent, is_orphan, ..Replica::default() };
                state.crashes_left -= 1;
            }
            Action::Start(number) => state.replicas[number].is_down = false,
            Action::LoseTail => {
                state.log.pop();
                state.losses_left -= 1;
            }
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Protocol>> {
        vec![
            Property::always("one attempt at a time has the slot", |_, state: &State| {
                (0..=state.log.len()).all(|end| tasks(&state.log[..end]).0.iter().flatten().count() <= 1)
            }),
            Property::always("fences grow", |_, state: &State| {
                let granted = state.log.iter().filter_map(|batch| match batch.what {
                    What::Grant { fence, .. } => Some(fence),
                    _ => None,
                });
                granted.collect::<Vec<_>>().windows(2).all(|two| two[0] < two[1])
            }),
            Property::always("only whoever has the lease ends a task, once", |_, state: &State| {
                state.log.iter().enumerate().all(|(at, batch)| match batch.what {
                    What::Done { task, fence } | What::Lapse { task, fence } => {
                        tasks(&state.log[..at]).0[task as usize] == Some(fence)
                    }
                    What::Grant { task, .. } => !tasks(&state.log[..at]).1[task as usize],
                })
            }),
            Property::always("every batch follows the one that it was decided on", |_, state: &State| {
                let ends = state.log.iter().map(|batch| Some((batch.by, batch.era)));
                std::iter::once(None).chain(ends).zip(&state.log).all(|(end, batch)| end == batch.after)
            }),
            Property::sometimes("two tasks are done", |_, state: &State| {
                tasks(&state.log).1.iter().filter(|done| **done).count() >= 2
            }),
        ]
    }

    fn within_boundary(&self, state: &State) -> bool {
        state.log.len() <= LOG_MAX
    }
}

#[test]
fn no_interleaving_breaks_the_protocol() {
    let protocol = Protocol { has_fence: true, compares_batches: true };
    let checker = protocol.checker().threads(2).spawn_bfs().join();
    println!("{} states", checker.unique_state_count());
    checker.assert_properties();
}

#[test]
fn without_the_fence_there_is_a_counterexample() {
    let protocol = Protocol { has_fence: false, compares_batches: true };
    let checker = protocol.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let found = checker.discovery("only whoever has the lease ends a task, once");
    assert!(found.is_some(), "an attempt that lost its lease must be seen to end the next one");
}

#[test]
fn a_store_that_compares_versions_alone_is_caught_when_it_loses_its_end() {
    let protocol = Protocol { has_fence: true, compares_batches: false };
    let checker = protocol.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    assert!(checker.discovery("every batch follows the one that it was decided on").is_some());
}
