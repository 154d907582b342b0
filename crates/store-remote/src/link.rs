//! One connection to a backend, which is made again when it breaks.

use laneway_store::StoreError;
use tokio::sync::Mutex;

/// How often a command is sent over a new connection, at most.
const TRIES: usize = 3;

/// What an error says about the connection on which it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It works: the backend has refused the command.
    Works,
    /// It is broken; another one may work.
    Broken,
    /// The backend does not answer in time. A late answer would be taken for that to another command.
    Silent,
}

/// Makes connections, and knows what their errors mean.
pub trait Connect: Send + Sync + 'static {
    /// A handle on a connection.
    type Connection: Clone + Send + Sync;
    /// What the backend's driver reports.
    type Error: Send;

    /// Makes a connection and checks the backend behind it.
    fn connect(&self) -> impl Future<Output = Result<Self::Connection, StoreError>> + Send;

    /// Whether a connection is known to be closed.
    fn is_closed(&self, _connection: &Self::Connection) -> bool {
        false
    }

    /// What an error says about its connection.
    fn verdict(&self, error: &Self::Error) -> Verdict;

    /// Called before a connection that is broken or silent is dropped.
    fn on_lost(&self, _error: &Self::Error) {}

    /// What an error means to the caller.
    fn error(&self, error: Self::Error) -> StoreError;
}

/// A connection that many callers share.
pub struct Link<C: Connect> {
    connector: C,
    /// Locked while a connection is made, so that one is made for all who need it.
    connection: Mutex<Option<C::Connection>>,
}

impl<C: Connect> Link<C> {
    /// A link without a connection so far.
    pub fn new(connector: C) -> Link<C> {
        Link { connector, connection: Mutex::new(None) }
    }

    /// What makes the connections.
    pub fn connector(&self) -> &C {
        &self.connector
    }

    /// The connection, made if there is none.
    pub async fn connection(&self) -> Result<C::Connection, StoreError> {
        let mut held = self.connection.lock().await;
        if let Some(connection) = &*held
            && !self.connector.is_closed(connection)
        {
            return Ok(connection.clone());
        }
        let connection = self.connector.connect().await?;
        Ok(held.insert(connection).clone())
    }

    /// The connection, for the caller alone.
    pub async fn take(&self) -> Result<C::Connection, StoreError> {
        let connection = self.connection().await?;
        *self.connection.lock().await = None;
        Ok(connection)
    }

    /// Gives back a connection that was [taken](Link::take) and has nothing under way.
    pub async fn give_back(&self, connection: C::Connection) {
        *self.connection.lock().await = Some(connection);
    }

    /// Sends a command, and sends it again over a new connection where the present one breaks.
    pub async fn send<T, F>(&self, command: impl Fn(C::Connection) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, C::Error>>,
    {
        let mut tries = 0;
        loop {
            tries += 1;
            let error = match command(self.connection().await?).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let verdict = self.connector.verdict(&error);
            if verdict != Verdict::Works {
                self.connector.on_lost(&error);
                *self.connection.lock().await = None;
            }
            if verdict != Verdict::Broken || tries == TRIES {
                return Err(self.connector.error(error));
            }
        }
    }
}
