//! Asking a replica from elsewhere: what is asked and what is answered takes time and gets lost.

use std::time::Duration;

use laneway_engine::{Error, Handle};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::kind::Kind;
use crate::network::link::pass;
use crate::world::Sim;

/// How long a caller waits for the answer of a replica.
const ANSWER: Duration = Duration::from_millis(1500);

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Silence {
    /// The replica is not there, or its engine says no.
    Refused(Option<Error>),
    /// Whether it was done is not known.
    Lost,
}

impl Sim {
    /// Asks a replica, whichever of its lives this is.
    pub(crate) async fn call<T, F, Fut>(&self, replica: usize, ask: F) -> Result<T, Silence>
    where
        T: Send + 'static,
        F: FnOnce(Handle) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, Error>> + Send,
    {
        let (there, back, kind) = self.fate_of_call();
        pass(there).await;
        let (host, handle) = {
            let mut world = self.world();
            let place = &world.replicas[replica % world.replicas.len()];
            let (host, handle) = (std::sync::Arc::clone(&place.host), place.handle.clone());
            // Without a replica that could answer, a late request makes no difference.
            if let Some(kind @ (Kind::CallLost | Kind::CallSlow)) = kind
                && handle.is_some()
                && !host.is_paused()
            {
                world.count(kind);
            }
            (host, handle)
        };
        if kind == Some(Kind::CallLost) {
            pass(ANSWER.as_millis() as u64).await;
            return Err(Silence::Lost);
        }
        let Some(handle) = handle else { return Err(Silence::Refused(None)) };
        let (mut answer, told) = oneshot::channel();
        host.start(async move {
            let done = {
                let asked = ask(handle);
                tokio::pin!(asked);
                tokio::select! {
                    biased;
                    done = &mut asked => Some(done),
                    // The caller has given up.
                    () = answer.closed() => None,
                }
            };
            if let Some(done) = done {
                drop(answer.send(done));
            }
        });
        let answer = timeout(ANSWER, told).await;
        pass(back).await;
        match answer {
            Ok(Ok(_)) if kind == Some(Kind::AnswerLost) => {
                self.world().count(Kind::AnswerLost);
                Err(Silence::Lost)
            }
            Ok(Ok(Ok(answer))) => Ok(answer),
            Ok(Ok(Err(error))) => Err(self.refused(error)),
            Ok(Err(_)) | Err(_) => Err(Silence::Lost),
        }
    }

    fn refused(&self, error: Error) -> Silence {
        let mut world = self.world();
        if let Error::Broken(_) = &error {
            let text = error.to_string();
            if !text.contains("newer version of Laneway") {
                world.wrong(format!("a replica stopped: {text}"));
            } else {
                world.count(Kind::OldProgram);
            }
        }
        Silence::Refused(Some(error))
    }

    fn fate_of_call(&self) -> (u64, u64, Option<Kind>) {
        let mut world = self.world();
        let (there, back) = (world.random.below(4), world.random.below(4));
        let Some((kind, much)) = world.calls.pop_front() else { return (there, back, None) };
        let now = world.now();
        world.calls_until = world.calls_until.max(now + 3500);
        world.fault_end = world.fault_end.max(now + 3500);
        match kind {
            Kind::CallSlow => (there + much % 2000, back, Some(kind)),
            _ => (there, back, Some(kind)),
        }
    }
}
