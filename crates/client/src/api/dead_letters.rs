//! Dead letters.

use laneway_protocol::{DeadLetterView, LettersSelector, Page, RedriveAnswer};
use reqwest::Method;

use crate::client::Client;
use crate::error::Error;

impl Client {
    /// One page of dead letters.
    pub async fn dead_letters(
        &self,
        limit: Option<u32>,
        cursor: Option<&str>,
    ) -> Result<Page<DeadLetterView>, Error> {
        self.page(["api", "dead-letters"], limit, cursor).await
    }

    /// One page of the selected dead letters.
    pub async fn dead_letters_of(
        &self,
        which: &LettersSelector,
        cursor: Option<&str>,
    ) -> Result<Page<DeadLetterView>, Error> {
        self.call(Method::GET, ["api", "dead-letters"])
            .query("lane", which.lane.as_deref())
            .query("session", which.session.as_deref())
            .query("kind", which.kind.as_deref())
            .query("cursor", cursor)
            .send()
            .await
    }

    /// Makes a new task of a dead letter.
    pub async fn redrive(&self, id: &str) -> Result<RedriveAnswer, Error> {
        self.call(Method::POST, ["api", "dead-letters", id, "redrive"]).send().await
    }

    /// Makes new tasks of all selected dead letters.
    pub async fn redrive_many(&self, which: &LettersSelector) -> Result<RedriveAnswer, Error> {
        self.call(Method::POST, ["api", "dead-letters", "redrive"]).body(which).within(None).send().await
    }

    /// Discards a dead letter.
    pub async fn discard(&self, id: &str) -> Result<RedriveAnswer, Error> {
        self.delete(["api", "dead-letters", id]).await
    }

    /// Discards all selected dead letters.
    pub async fn discard_many(&self, which: &LettersSelector) -> Result<RedriveAnswer, Error> {
        self.call(Method::DELETE, ["api", "dead-letters"])
            .query("lane", which.lane.as_deref())
            .query("session", which.session.as_deref())
            .query("kind", which.kind.as_deref())
            .within(None)
            .send()
            .await
    }
}
