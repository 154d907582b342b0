//! Finding out whether a pooler such as PgBouncer stands in front of Postgres, and gives each transaction another connection.
//!
//! Then a prepared statement, a setting or a `LISTEN` of one transaction is not there in the next, or belongs to another
//! client. So no session keeps any: statements are unnamed, tables have their schema with them, and a follower asks where
//! the log ends.

use tokio_postgres::{Client, Error, SimpleQueryMessage};

/// Whether two clients share connections to Postgres. A pooler hands out the connection that was used last or, if it
/// takes them in turn, the one that was used first: both show here.
pub(crate) async fn is_pooled(one: &Client, other: &Client) -> Result<bool, Error> {
    let first = process_of(one).await?;
    if process_of(one).await? != first {
        return Ok(true);
    }
    other.batch_execute("BEGIN").await?;
    let is_pooled = process_of(other).await? == first || process_of(one).await? != first;
    other.batch_execute("COMMIT").await?;
    Ok(is_pooled)
}

/// The process of Postgres that answers.
async fn process_of(client: &Client) -> Result<Option<String>, Error> {
    let messages = client.simple_query("SELECT pg_backend_pid()").await?;
    Ok(messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    }))
}
