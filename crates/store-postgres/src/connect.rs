//! Making connections to Postgres.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use laneway_store::{Author, StoreError, Version};
use laneway_store_remote::{Connect, Link, Verdict};
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Error, Row, Statement};

use crate::address::Address;
use crate::author::author_of;
use crate::error::{from_postgres, verdict};
use crate::schema;

/// A batch that was appended, and to whom it passed the append turn.
pub(crate) type Hint = (Version, Option<Author>);

/// Makes connections to one database.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) address: Arc<Address>,
    pub(crate) timeout: Duration,
    /// The channel whose notifications a connection receives, if it does.
    channel: Option<Channel>,
}

#[derive(Clone)]
struct Channel {
    name: String,
    on_notify: Arc<dyn Fn(&str) + Send + Sync>,
}

/// A connection, with the statements that were prepared on it.
pub(crate) struct Session {
    pub(crate) client: Client,
    statements: Mutex<HashMap<&'static str, Statement>>,
    timeout: Duration,
}

/// Why a statement has no rows.
pub(crate) enum QueryError {
    /// Postgres or its driver said so.
    Postgres(Error),
    /// There was no answer in time.
    Silent,
}

impl Connector {
    pub(crate) fn new(address: Address, timeout: Duration) -> Connector {
        Connector { address: Arc::new(address), timeout, channel: None }
    }

    /// A link whose connection also receives the notifications of a channel.
    pub(crate) fn listen(
        &self,
        name: String,
        on_notify: impl Fn(&str) + Send + Sync + 'static,
    ) -> Link<Connector> {
        let channel = Some(Channel { name, on_notify: Arc::new(on_notify) });
        Link::new(Connector { channel, ..self.clone() })
    }

    async fn open(&self) -> Result<Session, StoreError> {
        let (name, schema) = (&self.address.name, &self.address.schema);
        let failed = |error: Error| from_postgres(name, &error);
        let (mut client, mut connection) =
            self.address.config.connect(self.address.tls.clone()).await.map_err(failed)?;
        let channel = self.channel.clone();
        // It ends with the client, or when the connection breaks, which the next statement notices.
        tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                if let (AsyncMessage::Notification(notification), Some(channel)) = (message, &channel) {
                    (channel.on_notify)(notification.payload());
                }
            }
        });
        schema::migrate(name, schema, &mut client).await?;
        let settings = format!(
            "SET search_path TO \"{schema}\";
             SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;"
        );
        client.batch_execute(&settings).await.map_err(failed)?;
        if let Some(channel) = &self.channel {
            client.batch_execute(&format!("LISTEN \"{}\"", channel.name)).await.map_err(failed)?;
        }
        Ok(Session { client, statements: Mutex::default(), timeout: self.timeout })
    }
}

impl Connect for Connector {
    type Connection = Arc<Session>;
    type Error = QueryError;

    async fn connect(&self) -> Result<Arc<Session>, StoreError> {
        let session = timeout(self.timeout, self.open()).await;
        session.unwrap_or_else(|_| Err(self.error(QueryError::Silent))).map(Arc::new)
    }

    fn is_closed(&self, session: &Arc<Session>) -> bool {
        session.client.is_closed()
    }

    fn verdict(&self, error: &QueryError) -> Verdict {
        match error {
            QueryError::Postgres(error) => verdict(error),
            QueryError::Silent => Verdict::Silent,
        }
    }

    fn error(&self, error: QueryError) -> StoreError {
        let name = &self.address.name;
        match error {
            QueryError::Postgres(error) => from_postgres(name, &error),
            QueryError::Silent => {
                StoreError::unavailable(name, format!("no answer within {:?}", self.timeout))
            }
        }
    }
}

/// Runs one statement, which may be repeated.
pub(crate) async fn query(
    link: &Link<Connector>,
    sql: &'static str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, StoreError> {
    link.send(|session| async move {
        match timeout(session.timeout, session.query(sql, parameters)).await {
            Ok(answer) => answer.map_err(QueryError::Postgres),
            Err(_) => Err(QueryError::Silent),
        }
    })
    .await
}

/// What a notification says, if it is one of ours.
pub(crate) fn hint_of(payload: &str) -> Option<Hint> {
    let (version, append_turn) = payload.split_once(' ')?;
    Some((Version(version.parse().ok()?), author_of(append_turn.parse().ok()?)))
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

    async fn prepared(&self, sql: &'static str) -> Result<Statement, Error> {
        let known = self.statements.lock().unwrap_or_else(PoisonError::into_inner).get(sql).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.lock().unwrap_or_else(PoisonError::into_inner).insert(sql, statement.clone());
        Ok(statement)
    }
}
