//! The way to Postgres: one connection that is made anew when it breaks.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use laneway_store::{Author, StoreError, Version};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Error, Row, Statement};

use crate::address::Address;
use crate::baton::author_of;
use crate::failure::{breaks_connection, from_postgres, unavailable};
use crate::schema;

/// A statement that finds its connection broken is sent again over a new one, so often. All of them may be repeated.
const TRIES: usize = 3;

/// A batch that was appended, and to whom it passed the baton.
pub(crate) type Hint = (Version, Option<Author>);

/// One connection to Postgres.
pub(crate) struct Link {
    address: Arc<Address>,
    patience: Duration,
    /// Held while a connection is made, so that one is made for all who need it.
    session: Mutex<Option<Arc<Session>>>,
    /// What it listens to, if it does.
    ear: Option<Ear>,
}

/// A channel, and who is told what is said there.
#[derive(Clone)]
struct Ear {
    channel: String,
    tell: Arc<dyn Fn(&str) + Send + Sync>,
}

/// A connection with what was prepared on it.
pub(crate) struct Session {
    pub(crate) client: Client,
    statements: StdMutex<HashMap<&'static str, Statement>>,
}

impl Link {
    pub(crate) fn new(address: &Arc<Address>, patience: Duration) -> Link {
        Link { address: Arc::clone(address), patience, session: Mutex::new(None), ear: None }
    }

    /// A connection that also listens to a channel.
    pub(crate) fn listening(
        address: &Arc<Address>,
        patience: Duration,
        channel: String,
        tell: impl Fn(&str) + Send + Sync + 'static,
    ) -> Link {
        Link { ear: Some(Ear { channel, tell: Arc::new(tell) }), ..Link::new(address, patience) }
    }

    fn name(&self) -> &str {
        &self.address.name
    }

    /// The connection, made if there is none.
    pub(crate) async fn session(&self) -> Result<Arc<Session>, StoreError> {
        let mut held = self.session.lock().await;
        if let Some(session) = &*held
            && !session.client.is_closed()
        {
            return Ok(Arc::clone(session));
        }
        let made = self.in_time(self.connect()).await?;
        Ok(Arc::clone(held.insert(Arc::new(made))))
    }

    /// The connection, for one who wants it for itself.
    pub(crate) async fn take(&self) -> Result<Arc<Session>, StoreError> {
        let session = self.session().await?;
        *self.session.lock().await = None;
        Ok(session)
    }

    /// Gives back a connection on which nothing is under way.
    pub(crate) async fn give_back(&self, session: Arc<Session>) {
        *self.session.lock().await = Some(session);
    }

    async fn connect(&self) -> Result<Session, StoreError> {
        let failed = |error: Error| from_postgres(self.name(), &error);
        let (mut client, mut connection) =
            self.address.config.connect(self.address.tls.clone()).await.map_err(failed)?;
        let ear = self.ear.clone();
        // It ends with the client, or when the connection breaks, which whoever uses the client finds out.
        tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                if let (AsyncMessage::Notification(told), Some(ear)) = (message, &ear) {
                    (ear.tell)(told.payload());
                }
            }
        });
        let schema = &self.address.schema;
        schema::migrate(self.name(), schema, &mut client).await?;
        let settings = format!(
            "SET search_path TO \"{schema}\";
             SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;"
        );
        client.batch_execute(&settings).await.map_err(failed)?;
        if let Some(ear) = &self.ear {
            client.batch_execute(&format!("LISTEN \"{}\"", ear.channel)).await.map_err(failed)?;
        }
        Ok(Session { client, statements: StdMutex::default() })
    }

    /// Runs one statement, which may be repeated, over a new connection if the present one breaks.
    pub(crate) async fn query(
        &self,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let session = self.session().await?;
            let error = match timeout(self.patience, session.query(sql, parameters)).await {
                Ok(Ok(rows)) => return Ok(rows),
                Ok(Err(error)) => error,
                // Whoever does not answer is not asked again.
                Err(_) => return Err(self.gives_up().await),
            };
            if !breaks_connection(&error) {
                return Err(from_postgres(self.name(), &error));
            }
            *self.session.lock().await = None;
            if tries == TRIES {
                return Err(from_postgres(self.name(), &error));
            }
        }
    }

    /// Waits no longer than our patience.
    pub(crate) async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        match timeout(self.patience, work).await {
            Ok(done) => done,
            Err(_) => Err(self.no_answer()),
        }
    }

    /// Nothing was heard in time: what comes over this connection later would be the answer to something else.
    async fn gives_up(&self) -> StoreError {
        *self.session.lock().await = None;
        self.no_answer()
    }

    fn no_answer(&self) -> StoreError {
        unavailable(self.name(), &format!("no answer within {:?}", self.patience))
    }
}

/// What a notification says, if it is one of ours.
pub(crate) fn hint_of(payload: &str) -> Option<Hint> {
    let (version, baton) = payload.split_once(' ')?;
    Some((Version(version.parse().ok()?), author_of(baton.parse().ok()?)))
}

impl Session {
    pub(crate) async fn query(
        &self,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        let statement = self.prepared(sql).await?;
        self.client.query(&statement, parameters).await
    }

    pub(crate) async fn prepared(&self, sql: &'static str) -> Result<Statement, Error> {
        let known = self.statements.lock().unwrap_or_else(PoisonError::into_inner).get(sql).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.lock().unwrap_or_else(PoisonError::into_inner).insert(sql, statement.clone());
        Ok(statement)
    }
}
