//! Bearer tokens: `id.secret`. The log keeps them as notes with a hash of the secret, so all replicas know them.
//!
//! `laneway token` writes a file, also while the server runs. The server takes over its changes, and copies the tokens of
//! the log to it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use laneway_core::{Event, Note, Scheduler, Timestamp};
use laneway_engine::Handle;
use laneway_protocol::{CreatedToken, NewToken, Scope, TokenView};
use serde_json::json;
use subtle::ConstantTimeEq;
use tokio::sync::Notify;

use crate::admin::token_file::{FileNews, Stamp, TOKENS_MAX, Token, TokenError, TokenFile, hash};
use crate::app::App;
use crate::http::error::{ApiError, ApiResult};
use crate::notes;

/// A token, by its id.
const TOKEN: &str = "token\n";
/// When a token was removed, by its id. A server that was away then must not bring it back from its file.
const GONE: &str = "token gone\n";
/// How many removals the log keeps.
const GONE_MAX: usize = 10_000;
/// How often to check whether the file has changed.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The actor of the audit log for changes of the file.
const FILE_ACTOR: &str = "laneway token";

/// All tokens.
pub(crate) struct Tokens {
    file: Option<TokenFile>,
    known: Mutex<Known>,
    /// Notified when the file or the log lacks a change.
    behind: Notify,
}

#[derive(Default)]
struct Known {
    tokens: BTreeMap<String, Token>,
    /// Tokens that the file got while the server runs. They are valid once the log and the audit log have them.
    fresh: BTreeMap<String, Token>,
    /// The tokens that the log has.
    noted: BTreeSet<String>,
    /// The tokens that the log has or had. The audit log knows them.
    recorded: BTreeSet<String>,
    /// The removed tokens, each with the time of its removal.
    gone: BTreeMap<String, u64>,
    /// The removals that the log lacks.
    removed: BTreeSet<String>,
    /// The file lacks a change.
    is_file_behind: bool,
}

/// The owner of a valid token.
#[derive(Clone, Debug)]
pub(crate) struct Bearer {
    pub(crate) id: String,
    pub(crate) subject: String,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) speaks_for_others: bool,
}

fn parsed(text: &str) -> Option<Token> {
    serde_json::from_str(text).ok()
}

fn note(token: &Token) -> Note {
    (format!("{TOKEN}{}", token.id).into(), serde_json::to_string(token).ok().map(Arc::from))
}

impl Tokens {
    /// The tokens in a file, which may be missing. `None` has no file.
    pub(crate) fn open(path: Option<PathBuf>) -> Result<Tokens, TokenError> {
        let file = path.map(TokenFile::open).transpose()?;
        let tokens = Tokens { file, known: Mutex::default(), behind: Notify::new() };
        tokens.sync_file()?;
        let mut known = tokens.known();
        known.tokens = std::mem::take(&mut known.fresh);
        drop(known);
        Ok(tokens)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there are no tokens.
    pub(crate) fn is_empty(&self) -> bool {
        self.known().tokens.is_empty()
    }

    /// Whether there is a token with this id.
    pub(crate) fn holds(&self, id: &str) -> bool {
        self.known().tokens.contains_key(id)
    }

    /// Whether there is no token but this one.
    pub(crate) fn holds_only(&self, id: &str) -> bool {
        let known = self.known();
        known.tokens.len() == 1 && known.tokens.contains_key(id)
    }

    /// The owner of this token. Takes the same time for every wrong secret.
    pub(crate) fn bearer(&self, shown: &str) -> Option<Bearer> {
        let (id, secret) = shown.split_once('.')?;
        let hash = hash(secret);
        let known = self.known();
        let token = known.tokens.get(id)?;
        let is_right: bool = token.hash.as_bytes().ct_eq(hash.as_bytes()).into();
        is_right.then(|| Bearer {
            id: token.id.clone(),
            subject: token.subject.clone(),
            scopes: token.scopes.clone(),
            speaks_for_others: token.speaks_for_others,
        })
    }

    /// The hash of a token's secret.
    pub(crate) fn hash_of(&self, id: &str) -> Option<String> {
        self.known().tokens.get(id).map(|token| token.hash.clone())
    }

    /// All tokens, without their secrets, the oldest first.
    pub(crate) fn list(&self) -> Vec<TokenView> {
        let mut list: Vec<TokenView> = self.known().tokens.values().map(Token::view).collect();
        list.sort_by_key(|token| token.created_at.0);
        list
    }

    /// Creates a token. All replicas know it when this returns or soon after. Only this answer holds its secret.
    pub(crate) async fn create(
        &self,
        handle: &Handle,
        new: &NewToken,
        now: Timestamp,
    ) -> ApiResult<CreatedToken> {
        if self.known().tokens.len() >= TOKENS_MAX {
            return Err(ApiError::invalid(TokenError::TooMany.to_string()));
        }
        let (token, created) =
            Token::create(new, now).map_err(|error| ApiError::invalid(error.to_string()))?;
        notes::change(handle, vec![], vec![note(&token)]).await?;
        self.known().adopt(token);
        self.behind.notify_one();
        Ok(created)
    }

    /// Removes a token. Returns whether it existed.
    pub(crate) async fn remove(&self, handle: &Handle, id: &str, now: Timestamp) -> ApiResult<bool> {
        let changes = {
            let known = self.known();
            if !known.tokens.contains_key(id) {
                return Ok(false);
            }
            known.removal(id, now)
        };
        notes::change(handle, vec![], changes).await?;
        self.known().forget(id, now.0);
        self.behind.notify_one();
        Ok(true)
    }

    /// Reads the tokens of the log, in case an event was missed. Tokens that it has lost go back to it.
    pub(crate) fn load(&self, lanes: &Scheduler) {
        let mut known = self.known();
        let lost = std::mem::take(&mut known.gone);
        known.noted.clear();
        for (id, at) in notes::kept(lanes, GONE) {
            known.forget(id, at.parse().unwrap_or(0));
        }
        for (id, text) in notes::kept(lanes, TOKEN) {
            match parsed(text) {
                Some(token) if !lost.contains_key(id) => known.adopt(token),
                _ => {}
            }
        }
        known.is_file_behind = true;
        let lost: Vec<String> = lost.into_keys().filter(|id| !known.gone.contains_key(id)).collect();
        known.removed.extend(lost);
        drop(known);
        self.behind.notify_one();
    }

    /// Follows an event.
    pub(crate) fn follow(&self, event: &Event) {
        let mut is_change = false;
        for (id, text) in notes::changed(event, TOKEN) {
            is_change = true;
            match text.and_then(|text| parsed(text)) {
                Some(token) => self.known().adopt(token),
                None => self.known().drop_token(id),
            }
        }
        for (id, at) in notes::changed(event, GONE) {
            is_change = true;
            match at {
                Some(at) => self.known().forget(id, at.parse().unwrap_or(0)),
                None => drop(self.known().gone.remove(id)),
            }
        }
        if is_change {
            self.behind.notify_one();
        }
    }

    /// Brings the file up to date, and takes over what else is in it.
    fn sync_file(&self) -> Result<Stamp, TokenError> {
        let Some(file) = &self.file else { return Ok(None) };
        let (tokens, gone) = {
            let mut known = self.known();
            known.is_file_behind = false;
            let all = known.tokens.iter().chain(&known.fresh);
            let all: BTreeMap<_, _> = all.map(|(id, token)| (id.clone(), token.clone())).collect();
            (all, known.gone.clone())
        };
        let synced = file.sync(&tokens, &gone);
        let mut known = self.known();
        match synced {
            Ok(FileNews { added, removed }) => {
                known.fresh.extend(added.into_iter().map(|token| (token.id.clone(), token)));
                for id in removed {
                    known.drop_token(&id);
                    known.removed.insert(id);
                }
                Ok(file.stamp())
            }
            Err(error) => {
                known.is_file_behind = true;
                Err(error)
            }
        }
    }

    /// The changes that the log lacks: new tokens and removals of the file, and what the log has lost.
    fn unpublished(&self) -> (Vec<Token>, Vec<String>) {
        let known = self.known();
        let is_new = |token: &&Token| !known.noted.contains(&token.id);
        let new = known.tokens.values().filter(is_new).chain(known.fresh.values());
        (new.cloned().collect(), known.removed.iter().cloned().collect())
    }
}

impl Known {
    /// Takes over a token of the log.
    fn adopt(&mut self, token: Token) {
        let is_gone = self.gone.contains_key(&token.id) || self.removed.contains(&token.id);
        if is_gone || self.fresh.contains_key(&token.id) {
            return;
        }
        self.noted.insert(token.id.clone());
        self.recorded.insert(token.id.clone());
        self.tokens.insert(token.id.clone(), token);
        self.is_file_behind = true;
    }

    fn drop_token(&mut self, id: &str) {
        self.noted.remove(id);
        self.tokens.remove(id);
        self.fresh.remove(id);
        self.is_file_behind = true;
    }

    /// Takes over a removal of the log.
    fn forget(&mut self, id: &str, at: u64) {
        self.drop_token(id);
        self.removed.remove(id);
        self.gone.insert(id.to_owned(), at);
    }

    /// The changes of the log that remove a token, and the oldest removal if there are too many.
    fn removal(&self, id: &str, now: Timestamp) -> Vec<Note> {
        let mut changes: Vec<Note> = vec![
            (format!("{TOKEN}{id}").into(), None),
            (format!("{GONE}{id}").into(), Some(now.0.to_string().into())),
        ];
        if self.gone.len() >= GONE_MAX
            && let Some((oldest, _)) = self.gone.iter().min_by_key(|(_, at)| **at)
        {
            changes.push((format!("{GONE}{oldest}").into(), None));
        }
        changes
    }
}

/// Keeps the file and the log up to date with each other until the server ends.
pub(crate) async fn keep(app: Arc<App>) {
    let (mut stamp, mut told) = (None, String::new());
    loop {
        let tokens = &app.tokens;
        let is_behind = tokens.known().is_file_behind;
        if let Some(file) = &tokens.file
            && (is_behind || file.stamp() != stamp)
        {
            let app = Arc::clone(&app);
            match tokio::task::spawn_blocking(move || app.tokens.sync_file()).await {
                Ok(Ok(synced)) => stamp = synced,
                Ok(Err(error)) if error.to_string() != told => {
                    told = error.to_string();
                    tracing::error!(%error, "the file of tokens is not used until that is put right");
                }
                _ => {}
            }
        }
        if let Err(ApiError { problem, .. }) = publish(&app).await {
            tracing::warn!(
                error = problem.detail,
                "the log does not have the last changes of the tokens yet"
            );
        }
        tokio::select! {
            () = tokens.behind.notified() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = app.closing.given() => return,
        }
    }
}

/// Writes to the log what it lacks.
async fn publish(app: &App) -> ApiResult<()> {
    let (new, removed) = app.tokens.unpublished();
    for token in new {
        let is_recorded = app.tokens.known().recorded.contains(&token.id);
        notes::change(&app.handle, vec![], vec![note(&token)]).await?;
        if !is_recorded {
            let details = created_details(&token.view());
            app.audit.record(app.now(), FILE_ACTOR, ("token", "create_token"), &token.id, details).await?;
        }
        let mut known = app.tokens.known();
        known.fresh.remove(&token.id);
        known.adopt(token);
    }
    for id in removed {
        let changes = app.tokens.known().removal(&id, app.now());
        notes::change(&app.handle, vec![], changes).await?;
        app.tokens.known().forget(&id, app.now().0);
        app.audit.record(app.now(), FILE_ACTOR, ("token", "remove_token"), &id, json!({})).await?;
    }
    Ok(())
}

/// What the audit log says about a new token.
pub(crate) fn created_details(token: &TokenView) -> serde_json::Value {
    let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.as_str()).collect();
    json!({ "subject": token.subject, "scopes": scopes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_opens() {
        let tokens = Tokens::open(None).unwrap();
        let new = NewToken { subject: "ann".to_owned(), scopes: vec![Scope::Read], speaks_for_others: false };
        let (token, made) = Token::create(&new, Timestamp(0)).unwrap();
        tokens.known().adopt(token);
        let (id, secret) = made.token.split_once('.').unwrap();
        assert_eq!(tokens.bearer(&made.token).unwrap().subject, "ann");
        for wrong in [id, secret, "", ".", &format!("{id}."), &format!("{id}.{secret}0"), &secret[1..]] {
            assert!(tokens.bearer(wrong).is_none());
        }
        tokens.known().forget(id, 1);
        assert!(tokens.bearer(&made.token).is_none());
    }
}
