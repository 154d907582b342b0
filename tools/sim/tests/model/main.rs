//! The protocol of lease, fence and append by itself, in all interleavings: three replicas and three tasks that share
//! one slot, crashes, answers that get lost, requests that outlive their senders, and a log that loses its end.
//!
//! A lease may lapse at any time from the point of view of others: clocks are left to chance. What a replica decides
//! rests on what it has read, and counts if the log still ends there. A sender that gives up on a request goes
//! on, and the request may arrive later.
//!
//! The bounds: a crash, a lapse, a request that is given up and a loss of the log's last batch, each once at most and
//! any two of them in one history. With none or one of them the log has up to six batches, which is room for all three
//! tasks to be granted and to end, with two of them up to four. Replicas and tasks that differ in nothing but their
//! numbers are one.

mod state;

use stateright::{Checker, HasDiscoveries, Model, Property};

use crate::state::{Batch, LOG_MAX, Replica, State, TASKS, Troubles, What};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Action {
    Read(usize),
    Grant(usize, u8),
    Lapse(usize),
    Done(usize),
    /// The request gets there.
    Arrive(usize),
    /// The answer gets back, or the sender asks again and hears.
    Answer(usize),
    /// The sender waits no longer, and its request is still under way.
    GiveUp(usize),
    /// A request arrives whose sender has given up.
    ArriveLate(usize),
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
        if this.seen.len() >= LOG_MAX[state.troubles as usize] {
            return None;
        }
        let (running, done, last) = tasks(&this.seen);
        let holder = (0..TASKS).find_map(|task| running[task as usize].map(|fence| (task, fence)));
        let what = match action {
            Action::Grant(_, task) => {
                let is_free = holder.is_none() && !done[task as usize];
                is_free.then_some(What::Grant { task, fence: last + 1 })?
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
        let era = 2 * this.lives + u8::from(state.has.loss);
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

/// What the sender of a batch learns when it looks for it in the log.
fn learn(log: &[Batch], this: &mut Replica, batch: Batch) {
    if log.get(batch.version as usize) == Some(&batch) {
        this.seen = log[..=batch.version as usize].to_vec();
        match batch.what {
            What::Grant { task, fence } => this.runs = Some((task, fence)),
            What::Done { .. } => this.runs = None,
            What::Lapse { .. } => {}
        }
    }
}

/// Reads the log. A run that the log no longer knows is stopped later.
fn read(log: &[Batch], this: &mut Replica) {
    if let Some(batch) = this.unsure.filter(|batch| log.len() > batch.version as usize) {
        learn(log, this, batch);
        this.unsure = None;
    }
    this.seen = log.to_vec();
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let replicas = std::array::from_fn(|_| Replica::default());
        vec![State { log: vec![], replicas, late: vec![], troubles: 0, has: Troubles::default() }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (number, replica) in state.replicas.iter().enumerate() {
            // Tasks that no process knows are alike, so the first stands for all.
            if state.is_fresh(number) && (0..number).any(|lower| state.is_fresh(lower)) {
                continue;
            }
            if replica.is_down {
                actions.push(Action::Start(number));
                continue;
            }
            if replica.sent.is_some() {
                actions.extend([Action::Arrive(number), Action::Answer(number)]);
                actions.extend(state.may_go_wrong(state.has.given_up).then_some(Action::GiveUp(number)));
            } else {
                actions.extend((replica.seen != state.log).then_some(Action::Read(number)));
                let first = (0..TASKS).find(|task| state.is_untouched(*task));
                let tasks = (0..TASKS).filter(|task| first == Some(*task) || !state.is_untouched(*task));
                actions.extend(tasks.map(|task| Action::Grant(number, task)));
                actions.push(Action::Done(number));
                actions.extend(state.may_go_wrong(state.has.lapse).then_some(Action::Lapse(number)));
            }
            actions.extend(state.may_go_wrong(state.has.crash).then_some(Action::Crash(number)));
        }
        actions.extend((0..state.late.len()).map(Action::ArriveLate));
        let may_lose = state.may_go_wrong(state.has.loss) && !state.log.is_empty();
        actions.extend(may_lose.then_some(Action::LoseTail));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Read(number) => read(&last.log, &mut state.replicas[number]),
            Action::Grant(number, _) | Action::Lapse(number) | Action::Done(number) => {
                let batch = self.decide(last, number, action)?;
                state.has.lapse |= matches!(batch.what, What::Lapse { .. });
                state.replicas[number].sent = Some(batch);
            }
            Action::Arrive(number) => {
                let batch = last.replicas[number].sent?;
                self.append(&mut state.log, batch);
            }
            Action::Answer(number) => {
                let batch = state.replicas[number].sent.take()?;
                learn(&last.log, &mut state.replicas[number], batch);
            }
            Action::GiveUp(number) => {
                let this = &mut state.replicas[number];
                this.unsure = this.sent.take();
                this.lives += 1;
                state.late.extend(this.unsure);
                state.has.given_up = true;
            }
            Action::ArriveLate(place) => {
                let batch = state.late.remove(place);
                self.append(&mut state.log, batch);
            }
            Action::Crash(number) => {
                state.late.extend(last.replicas[number].sent);
                let lives = last.replicas[number].lives + 1;
                state.replicas[number] = Replica { is_down: true, lives, ..Replica::default() };
                state.has.crash = true;
            }
            Action::Start(number) => state.replicas[number].is_down = false,
            Action::LoseTail => {
                state.log.pop();
                state.has.loss = true;
            }
        }
        let Troubles { crash, lapse, given_up, loss } = state.has;
        state.troubles = [crash, lapse, given_up, loss].into_iter().map(u8::from).sum();
        if state == *last {
            return None;
        }
        state.forget();
        let mut state = state.renumbered();
        state.late.sort_unstable();
        Some(state)
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
            Property::always("only the holder of the lease ends a task, once", |_, state: &State| {
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
            Property::sometimes("all three tasks were granted", |_, state: &State| {
                (0..TASKS).all(|task| {
                    state
                        .log
                        .iter()
                        .any(|batch| matches!(batch.what, What::Grant { task: of, .. } if of == task))
                })
            }),
            Property::sometimes("all three tasks are done", |_, state: &State| {
                tasks(&state.log).1.iter().all(|is_done| *is_done)
            }),
            Property::sometimes(
                "a request arrives that its sender gave up, and finds it in the log",
                |_, state: &State| {
                    state
                        .replicas
                        .iter()
                        .flat_map(|replica| replica.unsure)
                        .any(|batch| state.log.contains(&batch))
                },
            ),
        ]
    }

    fn within_boundary(&self, state: &State) -> bool {
        state.log.len() <= LOG_MAX[state.troubles as usize]
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
    let found = checker.discovery("only the holder of the lease ends a task, once");
    assert!(found.is_some(), "an attempt that lost its lease must be seen to end the next one");
}

#[test]
fn a_store_that_compares_versions_alone_is_caught_when_it_loses_its_end() {
    let protocol = Protocol { has_fence: true, compares_batches: false };
    let checker = protocol.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    assert!(checker.discovery("every batch follows the one that it was decided on").is_some());
}
