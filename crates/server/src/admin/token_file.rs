//! The file of tokens: what `laneway token` writes, and a copy of the tokens in the log.
//!
//! `laneway token` works with it while the server runs and while it does not. The server takes over what changed.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use laneway_core::Timestamp;
use laneway_protocol::{At, CreatedToken, NewToken, Scope, TokenView};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::admin::files;
use crate::error::FileError;

/// The largest number of tokens.
pub(super) const TOKENS_MAX: usize = 10_000;

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

/// A token, with a hash of its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Token {
    pub(crate) id: String,
    pub(crate) subject: String,
    pub(crate) scopes: Vec<Scope>,
    #[serde(default)]
    pub(crate) speaks_for_others: bool,
    created_ms: u64,
    /// SHA-256 of the secret, in hex.
    pub(crate) hash: String,
}

impl Token {
    /// A new token. Only the returned answer holds its secret.
    pub(super) fn create(new: &NewToken, now: Timestamp) -> Result<(Token, CreatedToken), TokenError> {
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
        Ok((token, CreatedToken { token: format!("{}.{secret}", view.id), view }))
    }

    pub(super) fn view(&self) -> TokenView {
        TokenView {
            id: self.id.clone(),
            subject: self.subject.clone(),
            scopes: self.scopes.clone(),
            speaks_for_others: self.speaks_for_others,
            created_at: At(Timestamp(self.created_ms)),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Content {
    version: u32,
    tokens: Vec<Token>,
    /// Tokens that `laneway token remove` removed and a server has not yet removed from the log.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    removed: BTreeSet<String>,
}

impl Default for Content {
    fn default() -> Content {
        Content { version: 1, tokens: Vec::new(), removed: BTreeSet::new() }
    }
}

/// What tells one state of a file from another.
pub(super) type Stamp = Option<(SystemTime, u64)>;

/// What a server did not know of the file.
#[derive(Default)]
pub(super) struct FileNews {
    pub(super) added: Vec<Token>,
    pub(super) removed: BTreeSet<String>,
}

/// The file of tokens. Each change of it is whole, also while other programs change it.
pub struct TokenFile {
    path: PathBuf,
}

impl TokenFile {
    /// The tokens in a file, which may be missing.
    pub fn open(path: PathBuf) -> Result<TokenFile, TokenError> {
        let file = TokenFile { path };
        file.read()?;
        Ok(file)
    }

    /// Creates a token. Only this answer holds its secret.
    pub fn create(&self, new: &NewToken, now: Timestamp) -> Result<CreatedToken, TokenError> {
        let (token, created) = Token::create(new, now)?;
        self.change(|content| {
            if content.tokens.len() >= TOKENS_MAX {
                return Err(TokenError::TooMany);
            }
            content.tokens.push(token);
            Ok(())
        })?;
        Ok(created)
    }

    /// Removes a token. Returns whether it existed.
    pub fn remove(&self, id: &str) -> Result<bool, TokenError> {
        self.change(|content| {
            let before = content.tokens.len();
            content.tokens.retain(|token| token.id != id);
            let found = content.tokens.len() < before;
            if found {
                content.removed.insert(id.to_owned());
            }
            Ok(found)
        })
    }

    /// All tokens, without their secrets.
    pub fn list(&self) -> Result<Vec<TokenView>, TokenError> {
        Ok(self.read()?.tokens.iter().map(Token::view).collect())
    }

    /// The state of the file; another state has another stamp.
    pub(super) fn stamp(&self) -> Stamp {
        let meta = std::fs::metadata(&self.path).ok()?;
        Some((meta.modified().ok()?, meta.ino()))
    }

    /// Writes the known tokens to the file, and returns what else was in it. A removal stays there until it is among `gone`.
    pub(super) fn sync(
        &self,
        known: &BTreeMap<String, Token>,
        gone: &BTreeMap<String, u64>,
    ) -> Result<FileNews, TokenError> {
        self.change(|content| {
            content.removed.retain(|id| !gone.contains_key(id));
            let mut news = FileNews { added: Vec::new(), removed: content.removed.clone() };
            let is_new = |token: &&Token| !known.contains_key(&token.id) && !gone.contains_key(&token.id);
            news.added.extend(content.tokens.iter().filter(is_new).cloned());
            let all = known.values().chain(&news.added).filter(|token| !news.removed.contains(&token.id));
            let mut all: Vec<Token> = all.cloned().collect();
            all.sort_by(|a, b| (a.created_ms, &a.id).cmp(&(b.created_ms, &b.id)));
            content.tokens = all;
            Ok(news)
        })
    }

    fn read(&self) -> Result<Content, TokenError> {
        let path = &self.path;
        let text = files::read(path).map_err(FileError::of("read", path))?;
        let Some(text) = text else { return Ok(Content::default()) };
        let content: Content = serde_json::from_str(&text)
            .map_err(|source| TokenError::Damaged { path: path.to_owned(), source })?;
        if content.version != 1 {
            return Err(TokenError::Version { path: path.to_owned(), version: content.version });
        }
        Ok(content)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Content) -> Result<T, TokenError>) -> Result<T, TokenError> {
        let path: &Path = &self.path;
        let _lock = files::lock_beside(path).map_err(FileError::of("lock", path))?;
        let mut content = self.read()?;
        let before = serde_json::to_vec_pretty(&content)?;
        let done = change(&mut content)?;
        let after = serde_json::to_vec_pretty(&content)?;
        if after != before {
            files::replace(path, &after).map_err(FileError::of("write", path))?;
        }
        Ok(done)
    }
}

pub(crate) fn hash(secret: &str) -> String {
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

    fn new_token(subject: &str) -> NewToken {
        NewToken { subject: subject.to_owned(), scopes: vec![Scope::Read], speaks_for_others: false }
    }

    fn ids(file: &TokenFile) -> Vec<String> {
        file.list().unwrap().into_iter().map(|token| token.id).collect()
    }

    #[test]
    fn the_file_holds_no_secret_and_only_its_owner_may_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.json");
        let file = TokenFile::open(path.clone()).unwrap();
        let made = file.create(&new_token("ann"), Timestamp(0)).unwrap();
        let (id, secret) = made.token.split_once('.').unwrap();
        assert!(!std::fs::read_to_string(&path).unwrap().contains(secret));
        assert_eq!(ids(&TokenFile::open(path).unwrap()), [id]);
        assert!(file.remove(id).unwrap());
        assert!(!file.remove(id).unwrap());
    }

    #[test]
    fn a_file_that_makes_no_sense_is_told_and_never_taken_as_empty() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.json");
        for text in ["", "{", "{\"version\": 9, \"tokens\": []}"] {
            std::fs::write(&path, text).unwrap();
            assert!(TokenFile::open(path.clone()).is_err());
        }
    }

    #[test]
    fn what_the_command_line_changed_beside_a_server_reaches_it_once_and_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let file = TokenFile::open(dir.path().join("tokens.json")).unwrap();
        let of_server = Token::create(&new_token("api"), Timestamp(1)).unwrap().0;
        let mut known = BTreeMap::from([(of_server.id.clone(), of_server.clone())]);
        let mut gone = BTreeMap::new();
        let made = file.create(&new_token("ann"), Timestamp(2)).unwrap().view.id;
        let news = file.sync(&known, &gone).unwrap();
        assert_eq!(news.added.iter().map(|token| &token.id).collect::<Vec<_>>(), [&made]);
        assert_eq!(ids(&file), [of_server.id.clone(), made.clone()]);
        known.extend(news.added.into_iter().map(|token| (token.id.clone(), token)));

        // A removal waits in the file until the log has it, also if the server stops before that.
        assert!(file.remove(&made).unwrap());
        for _ in 0..2 {
            assert_eq!(file.sync(&known, &gone).unwrap().removed, BTreeSet::from([made.clone()]));
            assert_eq!(ids(&file), std::slice::from_ref(&of_server.id));
        }
        known.remove(&made);
        gone.insert(made.clone(), 3);
        assert!(file.sync(&known, &gone).unwrap().removed.is_empty());
        assert!(!std::fs::read_to_string(&file.path).unwrap().contains(&made));
        // A token that another server removed leaves the file.
        gone.insert(of_server.id.clone(), 4);
        assert!(file.sync(&BTreeMap::new(), &gone).unwrap().added.is_empty());
        assert!(ids(&file).is_empty());
    }
}
