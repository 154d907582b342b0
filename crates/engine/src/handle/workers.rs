//! Work that is done elsewhere: the pending list, claims, heartbeats, completions.

use std::time::Duration;

use bytes::Bytes;
use laneway_core::{
    BlobId, Command, Fence, LaneName, LiveTaskView, MessageId, Name, Outcome, Pattern, Reply, StopReason,
    TaskId, Timestamp,
};
use tokio::sync::oneshot;

use crate::driver::clock::millis;
use crate::driver::mailbox::{ReplyTo, Request};
use crate::error::{Error, Failure};
use crate::handle::Handle;

/// What a worker asks for.
#[derive(Clone, Debug)]
#[must_use]
pub struct ClaimRequest {
    worker: Result<Name, Error>,
    lanes: Result<Vec<Pattern>, Error>,
    kinds: Result<Vec<Name>, Error>,
    /// These and no others.
    these: Vec<TaskId>,
    max: u32,
    lease: Option<Duration>,
}

/// A task that is a worker's now, until its lease lapses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Which task.
    pub task: TaskId,
    /// To be shown with everything that the worker reports.
    pub fence: Fence,
    /// Which attempt, counted from one.
    pub attempt: u32,
    /// What sort of work it is.
    pub kind: Name,
    /// The lanes that it named, the home lane first.
    pub lanes: Vec<LaneName>,
    /// What to do, as JSON.
    pub payload: Option<Bytes>,
    /// When the lease lapses without a heartbeat.
    pub lease_until: Timestamp,
    /// When the attempt will have taken too long.
    pub timeout_at: Option<Timestamp>,
    /// The trace that it belongs to.
    pub trace: Option<std::sync::Arc<str>>,
    pub(crate) blob: Option<BlobId>,
}

impl ClaimRequest {
    /// One task of any kind from these home lanes (names or patterns).
    pub fn new(
        worker: impl Into<std::sync::Arc<str>>,
        lanes: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> ClaimRequest {
        let lanes = lanes.into_iter().map(|lane| Pattern::new(lane).map_err(Error::from)).collect();
        let worker = Name::new(worker).map_err(Error::from);
        ClaimRequest { worker, lanes, kinds: Ok(Vec::new()), these: Vec::new(), max: 1, lease: None }
    }

    /// Those of these tasks that may run now, whatever waits before them. At most 1000.
    pub fn these(worker: impl Into<std::sync::Arc<str>>, tasks: Vec<TaskId>) -> ClaimRequest {
        let lanes: [&str; 0] = [];
        ClaimRequest { these: tasks, ..ClaimRequest::new(worker, lanes) }
    }

    /// Only tasks of this kind, or of another that was named so.
    pub fn kind(mut self, kind: impl Into<std::sync::Arc<str>>) -> ClaimRequest {
        match (&mut self.kinds, Name::new(kind)) {
            (Ok(kinds), Ok(kind)) => kinds.push(kind),
            (kinds, Err(error)) => *kinds = Err(error.into()),
            (Err(_), Ok(_)) => {}
        }
        self
    }

    /// At most this many.
    pub fn max(mut self, max: u32) -> ClaimRequest {
        self.max = max;
        self
    }

    /// For how long without a heartbeat. Default: the home lane's lease.
    pub fn lease(mut self, lease: Duration) -> ClaimRequest {
        self.lease = Some(lease);
        self
    }

    fn command(self) -> Result<Command, Error> {
        let lease = self.lease.map(millis);
        let (worker, lanes, kinds) = (self.worker?, self.lanes?, self.kinds?);
        if self.these.is_empty() {
            Ok(Command::Claim { worker, lanes, kinds, max: self.max, lease })
        } else {
            Ok(Command::ClaimThese { worker, tasks: self.these, lease })
        }
    }
}

impl Handle {
    /// The tasks that a worker could claim now or later, in the order of the line.
    pub async fn pending(&self) -> Result<Vec<LiveTaskView>, Error> {
        self.read(|lanes| lanes.pending_external()).await
    }

    /// Hands the best external tasks that may run now to a worker; none if there are none.
    pub async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claim>, Error> {
        let (answer, claims) = oneshot::channel();
        self.send(Request::new(request.command()?, ReplyTo::Claim(answer))).await?;
        let mut claims = claims.await.map_err(|_| Error::Closed)??;
        for claim in &mut claims {
            if let Some(blob) = claim.blob {
                claim.payload = self.journal()?.payload(blob).await?;
            }
        }
        Ok(claims)
    }

    /// Hands out work like [`claim`](Handle::claim), and waits for some if there is none.
    pub async fn claim_when_there_is(&self, request: ClaimRequest) -> Result<Vec<Claim>, Error> {
        self.claim_until(request, std::future::pending()).await
    }

    /// Hands out work like [`claim_when_there_is`](Handle::claim_when_there_is), or nothing once `given_up` is ready. A
    /// claim that is being decided by then is heard to its end: what it takes is handed out, and not left to its lease.
    pub async fn claim_until(
        &self,
        request: ClaimRequest,
        given_up: impl Future<Output = ()>,
    ) -> Result<Vec<Claim>, Error> {
        tokio::pin!(given_up);
        loop {
            let offered = self.offered();
            tokio::pin!(offered);
            // From here on no offer is missed.
            offered.as_mut().enable();
            let claims = self.claim(request.clone()).await?;
            if !claims.is_empty() {
                return Ok(claims);
            }
            tokio::select! {
                biased;
                () = offered => {}
                () = given_up.as_mut() => return Ok(Vec::new()),
            }
        }
    }

    /// A worker's heartbeat: renews the lease. Says until when, and whether to stop.
    pub async fn heartbeat(
        &self,
        task: TaskId,
        fence: Fence,
    ) -> Result<(Timestamp, Option<StopReason>), Error> {
        match self.ask(Command::Heartbeat { task, fence }).await? {
            Reply::Renewed { until, stopping } => Ok((until, stopping)),
            _ => Err(Error::Closed),
        }
    }

    /// A worker is done, with this result (JSON).
    pub async fn complete(&self, task: TaskId, fence: Fence, result: Option<Bytes>) -> Result<(), Error> {
        self.finish(task, fence, Vec::new(), Outcome::Success, result).await
    }

    /// A worker could not do it. An output of the failure is kept as the result of the task.
    pub async fn fail(&self, task: TaskId, fence: Fence, failure: Failure) -> Result<(), Error> {
        let output = failure.output_bytes();
        let outcome = Outcome::Failure { error: failure.error.into(), retryable: failure.retryable };
        self.finish(task, fence, Vec::new(), outcome, output).await
    }

    /// A worker that was told to stop has.
    pub async fn stopped(&self, task: TaskId, fence: Fence) -> Result<(), Error> {
        self.finish(task, fence, Vec::new(), Outcome::Stopped, None).await
    }

    /// What a task is to do, if that is to be remembered when it has ended.
    async fn work_of(&self, task: TaskId) -> Result<Option<Bytes>, Error> {
        let max = self.payloads_kept_max();
        if max == 0 {
            return Ok(None);
        }
        let Some(payload) = self.task(task).await?.and_then(|view| view.payload) else { return Ok(None) };
        Ok(self.journal()?.payload(payload).await?.filter(|work| work.len() <= max))
    }

    /// An attempt of a worker is over: how, with which result (JSON), and which messages it has taken last.
    pub async fn finish(
        &self,
        task: TaskId,
        fence: Fence,
        taken: Vec<MessageId>,
        outcome: Outcome,
        result: Option<Bytes>,
    ) -> Result<(), Error> {
        let (answer, reply) = oneshot::channel();
        let mut request =
            Request::new(Command::Finish { task, fence, taken, outcome }, ReplyTo::Reply(answer));
        request.result = result;
        request.work = self.work_of(task).await?;
        self.send(request).await?;
        reply.await.map_err(|_| Error::Closed)?.map(drop)
    }
}
