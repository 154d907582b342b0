//! Making connections to Postgres.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use laneway_store::{Author, StoreError, Version};
use laneway_store_remote::{Connect, Link, Verdict};
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, Client, Error, Row, Statement};

use crate::address::Address;
use crate::author::author_of;
use crate::error::{from_postgres, verdict};
use crate::parameter::Parameter;
use crate::pooler::is_pooled;
use crate::schema;

/// A batch that was appended, and to whom it passed the append turn.
pub(crate) type Hint = (Version, Option<Author>);

/// Makes connections to one database.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) address: Arc<Address>,
    pub(crate) timeout: Duration,
    /// Whether a pooler gives each transaction another connection.
    pub(crate) is_pooled: bool,
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
    address: Arc<Address>,
    statements: Mutex<HashMap<&'static str, Prepared>>,
    timeout: Duration,
    is_pooled: bool,
}

/// A statement for our schema.
#[derive(Clone)]
enum Prepared {
    /// Prepared on the connection.
    Named(Statement),
    /// To be prepared for each use, because the next transaction has another connection.
    Text(Arc<str>),
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
        let is_pooled = address.is_pooled.unwrap_or_default();
        Connector { address: Arc::new(address), timeout, is_pooled, channel: None }
    }

    /// Finds out whether a pooler gives each transaction another connection, unless the address says so.
    pub(crate) async fn find_pooler(mut self) -> Result<Connector, StoreError> {
        if self.address.is_pooled.is_none() {
            let finding = async {
                let (one, other) = (self.client().await?, self.client().await?);
                let is_pooled = is_pooled(&one, &other).await;
                is_pooled.map_err(|error| from_postgres(&self.address.name, &error))
            };
            let found = timeout(self.timeout, finding).await;
            self.is_pooled = found.unwrap_or_else(|_| Err(self.error(QueryError::Silent)))?;
        }
        Ok(self)
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

    async fn client(&self) -> Result<Client, StoreError> {
        let connecting = self.address.config.connect(self.address.tls.clone()).await;
        let (client, mut connection) =
            connecting.map_err(|error| from_postgres(&self.address.name, &error))?;
        let channel = self.channel.clone();
        // It ends with the client, or when the connection breaks, which the next statement notices.
        tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                if let (AsyncMessage::Notification(notification), Some(channel)) = (message, &channel) {
                    (channel.on_notify)(notification.payload());
                }
            }
        });
        Ok(client)
    }

    async fn open(&self) -> Result<Session, StoreError> {
        let (name, schema) = (&self.address.name, &self.address.schema);
        let failed = |error: Error| from_postgres(name, &error);
        let mut client = self.client().await?;
        schema::migrate(name, schema, &mut client).await?;
        if self.is_pooled {
            schema::check_isolation(name, &client).await?;
        } else {
            let isolation = "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED";
            client.batch_execute(isolation).await.map_err(failed)?;
        }
        if let Some(channel) = &self.channel {
            client.batch_execute(&format!("LISTEN \"{}\"", channel.name)).await.map_err(failed)?;
        }
        let (address, statements) = (Arc::clone(&self.address), Mutex::default());
        Ok(Session { client, address, statements, timeout: self.timeout, is_pooled: self.is_pooled })
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
    parameters: &[&dyn Parameter],
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
    /// Runs one statement, whose tables are in the schema `laneway`: ours is put in its place.
    pub(crate) async fn query(
        &self,
        sql: &'static str,
        parameters: &[&dyn Parameter],
    ) -> Result<Vec<Row>, Error> {
        match self.prepared(sql, parameters).await? {
            Prepared::Named(statement) => {
                let values: Vec<_> = parameters.iter().map(|parameter| parameter.value()).collect();
                self.client.query(&statement, &values).await
            }
            Prepared::Text(text) => {
                let values = parameters.iter().map(|parameter| (parameter.value(), parameter.kind()));
                self.client.query_typed(&text, &values.collect::<Vec<_>>()).await
            }
        }
    }

    async fn prepared(&self, sql: &'static str, parameters: &[&dyn Parameter]) -> Result<Prepared, Error> {
        let known = self.statements.lock().unwrap_or_else(PoisonError::into_inner).get(sql).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let text = sql.replace("laneway.", &format!("\"{}\".", self.address.schema));
        let prepared = if self.is_pooled {
            Prepared::Text(text.into())
        } else {
            let kinds: Vec<_> = parameters.iter().map(|parameter| parameter.kind()).collect();
            Prepared::Named(self.client.prepare_typed(&text, &kinds).await?)
        };
        self.statements.lock().unwrap_or_else(PoisonError::into_inner).insert(sql, prepared.clone());
        Ok(prepared)
    }
}
