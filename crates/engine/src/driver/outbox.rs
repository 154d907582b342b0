//! Answers that are sent once the engine is unlocked, because a caller that wakes wants the engine next.

use laneway_core::Reply;
use smallvec::SmallVec;
use tokio::sync::oneshot::Sender;

use crate::driver::mailbox::{Accepted, Ending, Waiter, Wants};
use crate::error::{Error, RunError};
use crate::handle::workers::Claim;
use crate::runs::slot::Slot;

/// Answers on their way: most often one.
#[derive(Default)]
pub(crate) struct Outbox(SmallVec<[Told; 1]>);

impl Outbox {
    pub(crate) fn push(&mut self, told: Told) {
        self.0.push(told);
    }

    pub(crate) fn send(self) {
        self.0.into_iter().for_each(Told::tell);
    }
}

/// An answer, and who waits for it.
pub(crate) enum Told {
    Reply(Sender<Result<Reply, Error>>, Result<Reply, Error>),
    Slot(Sender<Result<Slot, RunError>>, Result<Slot, RunError>),
    Task(Sender<Result<Accepted, Error>>, Accepted),
    Batch(Sender<Result<Vec<Waiter>, Error>>, Vec<Waiter>),
    Claims(Sender<Result<Vec<Claim>, Error>>, Vec<Claim>),
    Ending(Sender<Box<Ending>>, Box<Ending>),
    Awaited(Sender<Result<Option<Waiter>, Error>>, Result<Option<Waiter>, Error>),
    Refusal(Wants, Error),
}

impl Told {
    pub(crate) fn tell(self) {
        // Whoever does not listen any more need not be told; a slot that nobody takes gives itself back.
        let _gone = match self {
            Told::Reply(answer, reply) => answer.send(reply).map_err(drop),
            Told::Slot(answer, slot) => answer.send(slot).map_err(drop),
            Told::Task(answer, accepted) => answer.send(Ok(accepted)).map_err(drop),
            Told::Batch(answer, waiters) => answer.send(Ok(waiters)).map_err(drop),
            Told::Claims(answer, claims) => answer.send(Ok(claims)).map_err(drop),
            Told::Ending(answer, ending) => answer.send(ending).map_err(drop),
            Told::Awaited(answer, waiter) => answer.send(waiter).map_err(drop),
            Told::Refusal(wants, error) => {
                wants.refuse(error);
                Ok(())
            }
        };
    }
}
