//! Sessions of clients of older revisions. A session has no state: its id shows that the server gave it to this token. So
//! any replica serves it, also after a restart. The log keeps which sessions have ended, and passes on cancelled calls to
//! the replica that answers them.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use laneway_core::{Event, Note, Scheduler};
use serde_json::Value;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

use crate::admin::token_file::hex;
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::error::ApiResult;
use crate::notes;

/// When a session ended, by its id.
const ENDED: &str = "mcp session ended\n";
/// How many ended sessions the log remembers.
const ENDED_MAX: usize = 10_000;
/// The call that was cancelled last at a replica that does not answer it.
const CANCELLED: &str = "mcp call cancelled\n";

/// The length of the unique part of an id, a UUID that begins with the time.
const UNIQUE_CHARS: usize = 36;
/// The length of the part that shows the owner.
const PROOF_CHARS: usize = 32;

/// A session and a request of it.
type CallKey = (String, String);

/// The sessions of older clients.
#[derive(Default)]
pub(crate) struct McpSessions {
    ended: Mutex<BTreeSet<String>>,
    calls: Arc<Calls>,
}

/// The calls that this server answers now.
#[derive(Default)]
struct Calls(Mutex<HashMap<CallKey, CancellationToken>>);

impl Calls {
    fn lock(&self) -> MutexGuard<'_, HashMap<CallKey, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that this server answers. It ends when this is dropped.
pub(super) struct OpenCall {
    calls: Arc<Calls>,
    key: CallKey,
    cancelled: CancellationToken,
}

impl OpenCall {
    pub(super) fn cancelled(&self) -> WaitForCancellationFuture<'_> {
        self.cancelled.cancelled()
    }

    pub(super) fn token(&self) -> CancellationToken {
        self.cancelled.clone()
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.calls.lock().remove(&self.key);
    }
}

/// The part of an id that shows its owner. Only the server knows the hash of a token's secret.
fn proof(app: &App, caller: &Caller, unique: &str) -> String {
    let secret = caller.token.as_deref().and_then(|id| app.tokens.hash_of(id)).unwrap_or_default();
    let text = format!("mcp session\n{}\n{secret}\n{unique}", caller.key_space());
    let mut digits = hex(&Sha256::digest(text));
    digits.truncate(PROOF_CHARS);
    digits
}

impl McpSessions {
    fn ended(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of a new session of this caller.
    pub(super) fn create(&self, app: &App, caller: &Caller) -> String {
        let unique = app.handle.new_id().to_string();
        let proof = proof(app, caller, &unique);
        unique + &proof
    }

    /// Whether this is the id of an open session of this caller.
    pub(super) fn is_open(&self, app: &App, caller: &Caller, id: &str) -> bool {
        let Some((unique, shown)) = id.split_at_checked(UNIQUE_CHARS) else { return false };
        let is_own: bool = proof(app, caller, unique).as_bytes().ct_eq(shown.as_bytes()).into();
        is_own && !self.ended().contains(id)
    }

    /// Ends a session and cancels its calls, at all replicas.
    pub(super) async fn end(&self, app: &App, id: &str) -> ApiResult<()> {
        let mut changes: Vec<Note> =
            vec![(format!("{ENDED}{id}").into(), Some(app.now().to_string().into()))];
        {
            let ended = self.ended();
            let too_many = (ended.len() + 1).saturating_sub(ENDED_MAX);
            changes.extend(ended.iter().take(too_many).map(|id| (format!("{ENDED}{id}").into(), None)));
        }
        notes::change(&app.handle, vec![], changes).await?;
        self.has_ended(id);
        Ok(())
    }

    fn has_ended(&self, id: &str) {
        self.ended().insert(id.to_owned());
        let calls = self.calls.lock();
        calls.iter().filter(|((session, _), _)| session == id).for_each(|(_, call)| call.cancel());
    }

    /// Begins to answer a request of a session.
    pub(super) fn begin(&self, session: &str, request: &Value) -> OpenCall {
        let key = (session.to_owned(), request.to_string());
        let cancelled = self.calls.lock().entry(key.clone()).or_default().clone();
        OpenCall { calls: Arc::clone(&self.calls), key, cancelled }
    }

    /// Cancels a call, wherever it is answered.
    pub(super) async fn cancel(&self, app: &App, session: &str, request: &Value) -> ApiResult<()> {
        let key = (session.to_owned(), request.to_string());
        let call = self.calls.lock().get(&key).cloned();
        match call {
            Some(call) => call.cancel(),
            None if app.is_shared => {
                let note = (CANCELLED.into(), Some(format!("{session}\n{request}").into()));
                notes::change(&app.handle, vec![], vec![note]).await?;
            }
            None => {}
        }
        Ok(())
    }

    /// Reads the ended sessions of the log, in case an event was missed.
    pub(crate) fn load(&self, lanes: &Scheduler) {
        notes::kept(lanes, ENDED).for_each(|(id, _)| self.has_ended(id));
    }

    /// Follows an event.
    pub(crate) fn follow(&self, event: &Event) {
        for (id, at) in notes::changed(event, ENDED) {
            match at {
                Some(_) => self.has_ended(id),
                None => drop(self.ended().remove(id)),
            }
        }
        for (_, call) in notes::changed(event, CANCELLED) {
            let Some((session, request)) = call.and_then(|call| call.split_once('\n')) else { continue };
            let call = self.calls.lock().get(&(session.to_owned(), request.to_owned())).cloned();
            if let Some(call) = call {
                call.cancel();
            }
        }
    }
}
