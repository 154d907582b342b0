//! The tables, and the migrations that make them.

use laneway_store::{Damage, Durability, StoreError};
use tokio_postgres::{Client, Error};

use crate::error::from_postgres;

/// The steps from an empty schema to today's tables. A released step never changes; a change is a new step.
const MIGRATIONS: [&str; 2] = [include_str!("migrations/1.sql"), include_str!("migrations/2.sql")];

/// The oldest Postgres that is known to work.
const POSTGRES_MIN: u32 = 15;

/// Brings the schema to today's layout. If several replicas try at once, one does it and the others wait.
pub(crate) async fn migrate(store: &str, schema: &str, client: &mut Client) -> Result<(), StoreError> {
    let known = MIGRATIONS.len() as u32;
    let failed = |error: Error| from_postgres(store, &error);
    check_version(store, client).await?;
    let found = steps_done(schema, client).await.map_err(failed)?;
    if found > known {
        return Err(StoreError::damaged(store, Damage::UnknownFormat { found, known }));
    }
    if found == known {
        return Ok(());
    }
    let transaction = client.transaction().await.map_err(failed)?;
    let begin = format!(
        "SELECT pg_advisory_xact_lock(hashtextextended('{schema}', 0));
         CREATE SCHEMA IF NOT EXISTS \"{schema}\";
         SET LOCAL search_path TO \"{schema}\";
         CREATE TABLE IF NOT EXISTS layout (step integer PRIMARY KEY);"
    );
    transaction.batch_execute(&begin).await.map_err(failed)?;
    // Another replica may have done some steps before we had the lock.
    let row = transaction.query_typed_one("SELECT coalesce(max(step), 0) FROM layout", &[]).await;
    let done = row.map_err(failed)?.get::<_, i32>(0) as usize;
    for (step, statements) in MIGRATIONS.iter().enumerate().skip(done) {
        transaction.batch_execute(statements).await.map_err(failed)?;
        let note = format!("INSERT INTO layout (step) VALUES ({})", step + 1);
        transaction.batch_execute(&note).await.map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)
}

/// How many of the steps were applied to this schema; none if there is no such schema.
async fn steps_done(schema: &str, client: &Client) -> Result<u32, Error> {
    let there = format!("SELECT to_regclass('\"{schema}\".layout') IS NOT NULL");
    if !client.query_typed_one(&there, &[]).await?.get::<_, bool>(0) {
        return Ok(0);
    }
    let steps = format!("SELECT coalesce(max(step), 0) FROM \"{schema}\".layout");
    Ok(client.query_typed_one(&steps, &[]).await?.get::<_, i32>(0) as u32)
}

/// Refuses a database whose transactions see it as it was when they began. A session cannot choose behind a pooler.
pub(crate) async fn check_isolation(store: &str, client: &Client) -> Result<(), StoreError> {
    let sql = "SELECT current_setting('default_transaction_isolation')";
    let row = client.query_typed_one(sql, &[]).await.map_err(|error| from_postgres(store, &error))?;
    let isolation: String = row.get(0);
    if isolation == "read committed" {
        return Ok(());
    }
    let reason = format!(
        "its transactions are {isolation}, and behind a pooler in transaction mode no client can change that for \
         itself; set default_transaction_isolation to 'read committed' for its user, or use a pool in session mode"
    );
    Err(StoreError::unfit(store, reason))
}

async fn check_version(store: &str, client: &Client) -> Result<(), StoreError> {
    let sql = "SELECT current_setting('server_version_num')::int / 10000";
    let row = client.query_typed_one(sql, &[]).await;
    let version = row.map_err(|error| from_postgres(store, &error))?.get::<_, i32>(0) as u32;
    if version >= POSTGRES_MIN {
        return Ok(());
    }
    let reason = format!("it is Postgres {version}, and {POSTGRES_MIN} is the oldest that works");
    Err(StoreError::unfit(store, reason))
}

/// What a committed transaction means, as Postgres is configured now.
pub(crate) async fn durability(client: &Client) -> Result<Durability, Error> {
    let sql = "SELECT current_setting('fsync'), current_setting('synchronous_commit'),
               current_setting('synchronous_standby_names') <> ''";
    let row = client.query_typed_one(sql, &[]).await?;
    let (flush, commit, has_standbys): (String, String, bool) = (row.get(0), row.get(1), row.get(2));
    Ok(match (commit.as_str(), has_standbys, flush.as_str()) {
        ("on" | "remote_write" | "remote_apply", true, _) => Durability::Replicated,
        ("off", ..) => Durability::Backend,
        (_, _, "on") => Durability::Disk,
        _ => Durability::Backend,
    })
}
