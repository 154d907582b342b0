//! Answers that are sent once the engine is unlocked, because a caller that wakes wants the engine next.

use laneway_core::Reply;
use smallvec::SmallVec;
use tokio::sync::oneshot::Sender;

use crate::driver::mailbox::{Accepted, Ending, ReplyTo, Waiter};
use crate::error::{Error, RunError};
use crate::handle::workers::Claim;
use crate::runs::slot::Slot;

/// Answers on their way: most often one.
#[derive(Default)]
pub(crate) struct Outbox(SmallVec<[Delivery; 1]>);

impl Outbox {
    pub(crate) fn push(&mut self, told: Delivery) {
        self.0.push(told);
    }

    pub(crate) fn send(self) {
        self.0.into_iter().for_each(Delivery::send);
    }
}

/// An answer and the way to its caller.
pub(crate) enum Delivery {
    Reply(Sender<Result<Reply, Error>>, Result<Reply, Error>),
    Slot(Sender<Result<Slot, RunError>>, Result<Slot, RunError>),
    Task(Sender<Result<Accepted, Error>>, Accepted),
    Batch(Sender<Result<Vec<Waiter>, Error>>, Vec<Waiter>),
    Claims(Sender<Result<Vec<Claim>, Error>>, Vec<Claim>),
    Ending(Sender<Box<Ending>>, Box<Ending>),
    Awaited(Sender<Result<Option<Waiter>, Error>>, Result<Option<Waiter>, Error>),
    Refusal(ReplyTo, Error),
}

impl Delivery {
    pub(crate) fn send(self) {
        // A caller that has gone needs no answer; a slot that is dropped gives itself back.
        let _gone = match self {
            Delivery::Reply(answer, reply) => answer.send(reply).map_err(drop),
            Delivery::Slot(answer, slot) => answer.send(slot).map_err(drop),
            Delivery::Task(answer, accepted) => answer.send(Ok(accepted)).map_err(drop),
            Delivery::Batch(answer, waiters) => answer.send(Ok(waiters)).map_err(drop),
            Delivery::Claims(answer, claims) => answer.send(Ok(claims)).map_err(drop),
            Delivery::Ending(answer, ending) => answer.send(ending).map_err(drop),
            Delivery::Awaited(answer, waiter) => answer.send(waiter).map_err(drop),
            Delivery::Refusal(reply_to, error) => {
                reply_to.refuse(error);
                Ok(())
            }
        };
    }
}
