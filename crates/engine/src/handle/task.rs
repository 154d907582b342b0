//! A task as a program asks for it.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use laneway_core::{Idempotency, LaneName, Millis, Name, Parent, ReplicaId, Retry, Source, TaskId, TaskSpec};
use serde::Serialize;

use crate::driver::clock::millis;
use crate::error::Error;

/// One piece of work to submit. What it leaves out comes from the settings of its home lane.
///
/// An invalid name is an error when the task is submitted, so that building needs no `?`.
#[derive(Clone, Debug)]
#[must_use]
pub struct Task(Form);

/// Small in every form, because futures that hold a task move it.
#[derive(Clone, Debug)]
enum Form {
    /// It names a home lane and nothing else.
    Lane(LaneName),
    Full(Full),
    /// Something about it is invalid.
    Wrong(Box<Error>),
}

#[derive(Clone, Debug)]
struct Full {
    spec: Box<TaskSpec>,
    payload: Option<Box<Bytes>>,
    has_kind: bool,
}

impl Task {
    /// Work whose home lane is `lane`.
    pub fn new(lane: impl AsRef<str>) -> Task {
        match LaneName::new(lane) {
            Ok(lane) => Task(Form::Lane(lane)),
            Err(error) => Task(Form::Wrong(Box::new(error.into()))),
        }
    }

    /// It needs a slot of this lane too.
    pub fn lane(self, lane: impl AsRef<str>) -> Task {
        self.checked(LaneName::new(lane), |full, lane| full.spec.lanes.push(lane))
    }

    /// It is a turn of this session: no other one runs at the same time.
    pub fn session(self, key: impl AsRef<str>) -> Task {
        self.checked(LaneName::session(key.as_ref()), |full, lane| full.spec.lanes.push(lane))
    }

    /// Which handler runs it. Makes it durable where the store is; see [`Handle::submit`](crate::Handle::submit).
    pub fn kind(self, kind: impl Into<Arc<str>>) -> Task {
        self.checked(Name::new(kind), |full, kind| {
            (full.spec.kind, full.has_kind) = (kind, true);
        })
    }

    /// What the handler gets, as JSON.
    pub fn payload(self, payload: impl Serialize) -> Task {
        let payload = serde_json::to_vec(&payload).map_err(|error| Error::Json(error.to_string().into()));
        self.checked(payload, |full, payload| {
            full.payload = Some(Box::new(payload.into()));
        })
    }

    /// Who asked; gives the priority where nothing else does. Default: a user.
    pub fn source(self, source: Source) -> Task {
        self.set(|spec| spec.source = source)
    }

    /// 0 to 9; larger is more urgent.
    pub fn priority(self, priority: u8) -> Task {
        self.set(|spec| spec.priority = Some(priority))
    }

    /// Tasks with the same key share their turns: the name of a tenant or user, say. Default: its home lane.
    pub fn fair_key(self, key: impl AsRef<str>) -> Task {
        self.checked(LaneName::new(key), |full, key| {
            full.spec.fair_key = Some(key);
        })
    }

    /// How long it may wait; zero: it starts now or is refused.
    pub fn wait_timeout(self, length: Duration) -> Task {
        self.set(|spec| spec.wait_timeout = Some(at_least_one(length)))
    }

    /// How long an attempt may take.
    pub fn timeout(self, length: Duration) -> Task {
        self.set(|spec| spec.timeout = Some(at_least_one(length)))
    }

    /// When it is too late to start, counted from acceptance.
    pub fn deadline(self, length: Duration) -> Task {
        self.set(|spec| spec.deadline = Some(at_least_one(length)))
    }

    /// How long it must wait before it may start.
    pub fn run_after(self, length: Duration) -> Task {
        self.set(|spec| spec.run_after = Some(at_least_one(length)))
    }

    /// What follows a failure. Only for tasks of named handlers.
    pub fn retry(self, retry: Retry) -> Task {
        self.set(|spec| spec.retry = Some(retry))
    }

    /// Its caller is connected to this engine ([`Handle::here`](crate::Handle::here)), which runs it, whichever of those that share
    /// a log grants it. It goes with the engine if that dies, and goes on elsewhere if that ends in order.
    pub fn caller_at(self, replica: Option<ReplicaId>) -> Task {
        self.set(|spec| spec.caller_at = replica)
    }

    /// The token that asks for it, and the trace that it belongs to.
    pub fn asked_by(self, caller: Option<Name>, trace: Option<Arc<str>>) -> Task {
        self.set(|spec| (spec.caller, spec.trace) = (caller, trace))
    }

    /// It may start only when this task has ended, however that ended.
    pub fn after(self, task: TaskId) -> Task {
        self.set(|spec| spec.after = Some(task))
    }

    /// A label that tasks which belong together share.
    pub fn group(self, group: impl Into<Arc<str>>) -> Task {
        self.checked(Name::new(group), |full, group| {
            full.spec.group = Some(group);
        })
    }

    /// Makes asking twice, within a day, the same as asking once. The fingerprint tells a repetition from another
    /// request under the same key. Only for tasks of named handlers.
    pub fn idempotency(self, key: impl Into<Arc<str>>, fingerprint: u64) -> Task {
        let key = key.into();
        self.set(|spec| spec.idempotency = Some(Idempotency { key, fingerprint, until_end: false }))
    }

    /// The running task that asks for it.
    pub(crate) fn parent(self, task: TaskId, detached: bool) -> Task {
        self.set(|spec| spec.parent = Some(Parent { task, detached }))
    }

    fn set(self, change: impl FnOnce(&mut TaskSpec)) -> Task {
        self.checked(Ok::<_, Error>(()), |full, ()| {
            change(&mut full.spec);
        })
    }

    fn checked<T>(self, value: Result<T, impl Into<Error>>, change: impl FnOnce(&mut Full, T)) -> Task {
        let changed = self.full().and_then(|mut full| {
            change(&mut full, value.map_err(Into::into)?);
            Ok(full)
        });
        Task(changed.map_or_else(|error| Form::Wrong(Box::new(error)), Form::Full))
    }

    fn full(self) -> Result<Full, Error> {
        match self.0 {
            Form::Lane(lane) => {
                let kind = slot_kind().cloned().map_or_else(|| Name::new(SLOT_KIND), Ok)?;
                let spec = Box::new(TaskSpec::new(kind, vec![lane]));
                Ok(Full { spec, payload: None, has_kind: false })
            }
            Form::Full(full) => Ok(full),
            Form::Wrong(error) => Err(*error),
        }
    }

    /// What is asked, of a named handler.
    pub(super) fn for_handler(self) -> Result<(Box<TaskSpec>, Option<Bytes>), Error> {
        let Full { spec, payload, has_kind } = self.full()?;
        if has_kind {
            Ok((spec, payload.map(|payload| *payload)))
        } else {
            Err(Error::NoHandler { kind: spec.kind })
        }
    }

    /// What is asked, of the caller itself.
    pub(super) fn for_slot(self) -> Result<Box<TaskSpec>, Error> {
        let Full { mut spec, payload, has_kind } = self.full()?;
        let refused = match &*spec {
            _ if has_kind => Some("a kind"),
            _ if payload.is_some() => Some("a payload"),
            TaskSpec { retry: Some(_), .. } => Some("retries"),
            TaskSpec { idempotency: Some(_), .. } => Some("an idempotency key"),
            _ => None,
        };
        spec.retry = Some(Retry::NONE);
        refused.map_or(Ok(spec), |what| Err(Error::NotForClosures(what)))
    }
}

/// The kind of tasks that exist only as long as the program that asked: closures and slots. What makes them slots is their owner.
const SLOT_KIND: &str = "laneway.slot";

/// The same as a name, which all share.
fn slot_kind() -> Option<&'static Name> {
    static KIND: LazyLock<Option<Name>> = LazyLock::new(|| Name::new(SLOT_KIND).ok());
    KIND.as_ref()
}

/// A length that is not zero stays so.
fn at_least_one(length: Duration) -> Millis {
    if length.is_zero() { Millis(0) } else { millis(length).max(Millis(1)) }
}
