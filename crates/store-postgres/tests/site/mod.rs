//! Namespaces of one Postgres, as tests need them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use laneway_store::conformance::Site;
use laneway_store::{Answer, Record, Store};
use laneway_store_postgres::{Options, PostgresStore};
use laneway_test_services::Postgres;
use tokio_postgres::{Client, NoTls};

/// A namespace for one case, in a Postgres that other cases use too.
pub(crate) struct Namespace {
    postgres: Arc<Postgres>,
    /// The port to connect to, such as that of a pooler.
    port: u16,
    number: u32,
}

/// With time for a machine that is busy.
pub(crate) fn options(namespace: &str) -> Options {
    Options { namespace: namespace.to_owned(), timeout: Duration::from_secs(30) }
}

impl Namespace {
    pub(crate) fn new(postgres: &Arc<Postgres>) -> Namespace {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        Namespace { postgres: Arc::clone(postgres), port: postgres.port(), number }
    }

    /// The same by way of another port.
    pub(crate) fn by_way_of(port: u16, postgres: &Arc<Postgres>) -> Namespace {
        Namespace { port, ..Namespace::new(postgres) }
    }

    /// With characters that would end an identifier if they were taken as they are.
    fn name(&self) -> String {
        format!("A\"{}", self.number)
    }

    fn schema(&self) -> String {
        format!("laneway_$41$22{}", self.number)
    }
}

/// A connection of our own, behind the store's back.
pub(crate) async fn connect(postgres: &Postgres) -> Client {
    let (client, connection) = tokio_postgres::connect(&postgres.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

fn as_dyn(store: PostgresStore) -> Arc<dyn Store> {
    Arc::new(store)
}

impl Site for Namespace {
    fn has_append_turn(&self) -> bool {
        true
    }

    fn open(&self) -> Answer<'_, Arc<dyn Store>> {
        let (url, options) = (self.postgres.url_at(self.port), options(&self.name()));
        Box::pin(async move { PostgresStore::open_with(&url, options).await.map(as_dyn) })
    }

    fn tamper(&self, record: Record, change: &(dyn Fn(&mut Vec<u8>) + Sync)) -> bool {
        let id = |id: u128| format!("'\\x{id:032x}'");
        let (table, column, key, value) = match record {
            Record::Batch(version) => ("log", "record", "version", version.to_string()),
            Record::Snapshot(version) => ("snapshot_part", "bytes", "version", version.to_string()),
            Record::Payload(blob) => ("blob", "record", "id", id(blob.0.get())),
            Record::Finished(task) => ("finished", "record", "task", id(task.0)),
            Record::Result(task) => ("finished", "result", "task", id(task.0)),
            other => panic!("there is no table for {other}"),
        };
        let table = format!("\"{}\".{table}", self.schema());
        let work = async {
            let client = connect(&self.postgres).await;
            let select = format!("SELECT {column} FROM {table} WHERE {key} = {value}");
            let Some(row) = client.query_opt(&select, &[]).await.unwrap() else { return false };
            let mut bytes: Vec<u8> = row.get(0);
            change(&mut bytes);
            let update = format!("UPDATE {table} SET {column} = $1 WHERE {key} = {value}");
            client.execute(&update, &[&bytes]).await.unwrap() == 1
        };
        // A thread of its own may wait for something; ours is that of a runtime.
        std::thread::scope(|scope| {
            let build = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            scope.spawn(move || build().block_on(work)).join().unwrap()
        })
    }
}
