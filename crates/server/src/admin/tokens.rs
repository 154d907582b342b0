//! Bearer tokens: `id.secret`. The file holds a hash of the secret.
//!
//! `laneway token create` writes the same file, also while the server runs. The server notices within a second.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use laneway_core::Timestamp;
use laneway_protocol::{At, CreatedToken, NewToken, Scope, TokenView};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::admin::files;
use crate::error::FileError;

/// The largest number of tokens.
const TOKENS_MAX: usize = 10_000;
/// How often to check whether the file has changed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Why tokens cannot be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The subject is not a name.
    #[error("subject: {0}")]
    Subject(#[from] laneway_core::NameError),
    /// A new token has no scopes.
    #[error("scopes must name at least one of read, submit, worker, admin")]
    NoScopes,
    /// There are too many tokens.
    #[error("there can be {TOKENS_MAX} tokens at most")]
    TooMany,
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is damaged.
    #[error("{} cannot be read as tokens (line {})", path.display(), source.line())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// Where it makes no sense.
        source: serde_json::Error,
    },
    /// Another version of the program wrote the file.
    #[error("{} has version {version}; this program knows 1", path.display())]
    Version {
        /// Which file.
        path: PathBuf,
        /// Which version.
        version: u32,
    },
    /// The tokens cannot be written as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The system has no random numbers.
    #[error("no random numbers: {0}")]
    Random(#[from] getrandom::Error),
}

/// All tokens.
pub struct Tokens {
    path: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    tokens: Vec<Token>,
    changed: Option<SystemTime>,
    looked: Option<Instant>,
}

/// One token in the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Token {
    id: String,
    subject: String,
    scopes: Vec<Scope>,
    #[serde(default)]
    speaks_for_others: bool,
    created_ms: u64,
    /// SHA-256 of the secret, in hex.
    hash: String,
}

#[derive(Serialize, Deserialize)]
struct TokenFile {
    version: u32,
    tokens: Vec<Token>,
}

/// The owner of a valid token.
#[derive(Clone, Debug)]
pub(crate) struct Bearer {
    pub(crate) id: String,
    pub(crate) subject: String,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) speaks_for_others: bool,
}

impl Tokens {
    /// The tokens in a file, which may be missing. `None` keeps them in memory.
    pub fn open(path: Option<PathBuf>) -> Result<Tokens, TokenError> {
        let tokens = Tokens { path, state: Mutex::default() };
        tokens.reload(&mut tokens.lock())?;
        Ok(tokens)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reload(&self, state: &mut State) -> Result<(), TokenError> {
        let Some(path) = &self.path else { return Ok(()) };
        state.looked = Some(Instant::now());
        let changed = std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
        if changed == state.changed && changed.is_some() {
            return Ok(());
        }
        state.tokens = load(path)?;
        state.changed = changed;
        Ok(())
    }

    /// The current tokens. If the file cannot be read, the old tokens stay.
    fn current(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        if state.looked.is_none_or(|looked| looked.elapsed() >= LOOK_EVERY)
            && let Err(error) = self.reload(&mut state)
        {
            tracing::error!(%error, "the tokens stay as they were");
        }
        state
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.current().tokens.is_empty()
    }

    /// Whether there is a token with this id.
    pub(crate) fn holds(&self, id: &str) -> bool {
        self.current().tokens.iter().any(|token| token.id == id)
    }

    /// The owner of this token. Takes the same time for every wrong secret.
    pub(crate) fn bearer(&self, shown: &str) -> Option<Bearer> {
        let (id, secret) = shown.split_once('.')?;
        let hash = hash(secret);
        let state = self.current();
        let token = state.tokens.iter().find(|token| token.id == id)?;
        let is_right: bool = token.hash.as_bytes().ct_eq(hash.as_bytes()).into();
        is_right.then(|| Bearer {
            id: token.id.clone(),
            subject: token.subject.clone(),
            scopes: token.scopes.clone(),
            speaks_for_others: token.speaks_for_others,
        })
    }

    /// Creates a token. Only this answer holds its secret.
    pub fn create(&self, new: &NewToken, now: Timestamp) -> Result<CreatedToken, TokenError> {
        laneway_core::Name::new(new.subject.as_str())?;
        if new.scopes.is_empty() {
            return Err(TokenError::NoScopes);
        }
        let (id, secret) = (random_hex(8)?, random_hex(32)?);
        let mut scopes = new.scopes.clone();
        scopes.sort_unstable();
        scopes.dedup();
        let token = Token {
            id: format!("lw_{id}"),
            subject: new.subject.clone(),
            scopes,
            speaks_for_others: new.speaks_for_others,
            created_ms: now.0,
            hash: hash(&secret),
        };
        let view = token.view();
        self.change(|tokens| {
            if tokens.len() >= TOKENS_MAX {
                return Err(TokenError::TooMany);
            }
            tokens.push(token);
            Ok(())
        })?;
        Ok(CreatedToken { token: format!("{}.{secret}", view.id), view })
    }

    /// Removes a token. Returns whether it existed.
    pub fn remove(&self, id: &str) -> Result<bool, TokenError> {
        let mut found = false;
        self.change(|tokens| {
            let before = tokens.len();
            tokens.retain(|token| token.id != id);
            found = tokens.len() < before;
            Ok(())
        })?;
        Ok(found)
    }

    /// All tokens, without their secrets.
    pub fn list(&self) -> Vec<TokenView> {
        self.current().tokens.iter().map(Token::view).collect()
    }

    fn change(
        &self,
        change: impl FnOnce(&mut Vec<Token>) -> Result<(), TokenError>,
    ) -> Result<(), TokenError> {
        let mut state = self.lock();
        self.reload(&mut state)?;
        let mut tokens = state.tokens.clone();
        change(&mut tokens)?;
        if let Some(path) = &self.path {
            let kept = TokenFile { version: 1, tokens: tokens.clone() };
            let text = serde_json::to_vec_pretty(&kept)?;
            files::replace(path, &text).map_err(FileError::of("write", path))?;
            state.changed = std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
        }
        state.tokens = tokens;
        Ok(())
    }
}

impl Token {
    fn view(&self) -> TokenView {
        TokenView {
            id: self.id.clone(),
            subject: self.subject.clone(),
            scopes: self.scopes.clone(),
            speaks_for_others: self.speaks_for_others,
            created_at: At(Timestamp(self.created_ms)),
        }
    }
}

fn load(path: &Path) -> Result<Vec<Token>, TokenError> {
    let text = files::read(path).map_err(FileError::of("read", path))?;
    let Some(text) = text else { return Ok(Vec::new()) };
    let kept: TokenFile = serde_json::from_str(&text)
        .map_err(|source| TokenError::Damaged { path: path.to_owned(), source })?;
    if kept.version != 1 {
        return Err(TokenError::Version { path: path.to_owned(), version: kept.version });
    }
    Ok(kept.tokens)
}

fn hash(secret: &str) -> String {
    hex(&Sha256::digest(secret.as_bytes()))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn random_hex(bytes: usize) -> Result<String, TokenError> {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random)?;
    Ok(hex(&random))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_token(scopes: &[Scope]) -> NewToken {
        NewToken { subject: "ann".to_owned(), scopes: scopes.to_vec(), speaks_for_others: false }
    }

    #[test]
    fn only_the_whole_token_opens_and_the_file_holds_no_secret() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.json");
        let tokens = Tokens::open(Some(path.clone())).unwrap();
        let made = tokens.create(&new_token(&[Scope::Read]), Timestamp(0)).unwrap();
        let (id, secret) = made.token.split_once('.').unwrap();
        assert_eq!(tokens.bearer(&made.token).unwrap().subject, "ann");
        for wrong in [id, secret, "", ".", &format!("{id}."), &format!("{id}.{secret}0"), &secret[1..]] {
            assert!(tokens.bearer(wrong).is_none());
        }
        assert!(!std::fs::read_to_string(&path).unwrap().contains(secret));
        let again = Tokens::open(Some(path)).unwrap();
        assert!(again.bearer(&made.token).is_some());
        assert!(again.remove(id).unwrap());
        assert!(again.bearer(&made.token).is_none());
        assert!(!again.remove(id).unwrap());
    }

    #[test]
    fn a_file_that_makes_no_sense_is_told_and_never_taken_as_empty() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.json");
        for text in ["", "{", "{\"version\": 9, \"tokens\": []}"] {
            std::fs::write(&path, text).unwrap();
            assert!(Tokens::open(Some(path.clone())).is_err());
        }
    }
}
