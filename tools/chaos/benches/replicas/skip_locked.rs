//! The peer on Postgres: a table, and `FOR UPDATE SKIP LOCKED` on eight connections.

use std::time::Instant;

use laneway_test_services::Postgres;
use tokio_postgres::NoTls;

const CONNECTIONS: usize = 8;

/// Tasks a second, inserted, claimed and completed, each step a transaction, as such loops are written.
pub(crate) async fn throughput(postgres: &Postgres, tasks: usize) -> f64 {
    let (client, connection) = tokio_postgres::connect(&postgres.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let table = "DROP TABLE IF EXISTS job; CREATE TABLE job (id bigserial PRIMARY KEY, state text NOT NULL);
                 CREATE INDEX ON job (id) WHERE state = 'queued'";
    client.batch_execute(table).await.unwrap();
    let start = Instant::now();
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..CONNECTIONS {
        let url = postgres.url();
        workers.spawn(async move {
            let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
            tokio::spawn(connection);
            let insert = client.prepare("INSERT INTO job (state) VALUES ('queued')").await.unwrap();
            let claim =
                "UPDATE job SET state = 'running' WHERE id = (SELECT id FROM job WHERE state = 'queued'
                         ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id";
            let claim = client.prepare(claim).await.unwrap();
            let complete = client.prepare("UPDATE job SET state = 'done' WHERE id = $1").await.unwrap();
            for _ in 0..tasks / CONNECTIONS {
                client.execute(&insert, &[]).await.unwrap();
                // Another may have locked the first that is left; it looks again, as such loops do.
                let row = loop {
                    if let Some(row) = client.query_opt(&claim, &[]).await.unwrap() {
                        break row;
                    }
                };
                client.execute(&complete, &[&row.get::<_, i64>(0)]).await.unwrap();
            }
        });
    }
    while let Some(done) = workers.join_next().await {
        done.unwrap();
    }
    tasks as f64 / start.elapsed().as_secs_f64()
}
