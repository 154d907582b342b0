//! A Postgres that takes only connections with TLS, with certificates made for the test.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

use std::sync::Arc;

use laneway_core::Timestamp;
use laneway_store::{Batch, BatchId, Entry, Head, Log, Version};
use laneway_store_postgres::{Options, PostgresStore};
use laneway_test_services::{Certificates, Postgres};

fn address(postgres: &Postgres, password: &str, parameters: &str) -> String {
    let url = postgres.url().replacen("postgres@", &format!("postgres:{password}@"), 1);
    format!("{url}?{parameters}")
}

async fn refused(url: &str) -> String {
    let said = PostgresStore::open(url).await.err().unwrap().to_string();
    assert!(!said.contains("hush"), "{said}");
    said
}

/// Appends a batch and hears of it.
async fn use_it(url: &str, namespace: &str) {
    let options = Options { namespace: namespace.to_owned(), ..Options::default() };
    let log = Log::new(Arc::new(PostgresStore::open_with(url, options).await.unwrap()));
    let tail = tokio::spawn({
        let store = Arc::clone(log.store());
        async move { store.tail(Version(0)).await }
    });
    let entry = Entry::of(Batch { id: BatchId(1), at: Timestamp(0), events: vec![] });
    log.append(Head::EMPTY, &entry).await.unwrap();
    assert_eq!(tail.await.unwrap(), Ok(Version(1)));
    assert!(!log.store().name().contains("hush"));
}

#[tokio::test]
async fn each_mode_trusts_whom_it_says() {
    // For another name, so that the modes differ.
    let certificates = Certificates::make_for(&["localhost"]);
    let postgres = Postgres::start_with_tls(&certificates);
    let ca = format!("sslrootcert={}", certificates.ca().display());
    let other = Certificates::make();
    let wrong_ca = format!("sslrootcert={}", other.ca().display());
    let url = |parameters: &str| address(&postgres, "hush", parameters);

    use_it(&url("sslmode=prefer"), "prefer").await;
    use_it(&url("sslmode=require"), "require").await;
    use_it(&url(&format!("sslmode=require&{ca}")), "require_ca").await;
    use_it(&url(&format!("sslmode=verify-ca&{ca}")), "verify_ca").await;
    let named = url(&format!("sslmode=verify-full&{ca}")).replacen("127.0.0.1", "localhost", 1);
    use_it(&named, "verify_full").await;

    let said = refused(&url(&format!("sslmode=verify-full&{ca}"))).await;
    assert!(said.contains("not valid for name"), "{said}");
    for mode in ["require", "verify-ca", "verify-full"] {
        let said = refused(&url(&format!("sslmode={mode}&{wrong_ca}"))).await;
        assert!(said.contains("invalid peer certificate") && said.contains("sslrootcert="), "{said}");
    }
    // This machine does not know the authority.
    let said = refused(&url("sslmode=verify-full")).await;
    assert!(said.contains("sslrootcert="), "{said}");
    let said = refused(&url("sslmode=disable")).await;
    assert!(said.contains("if it asks for TLS, add sslmode=verify-full"), "{said}");
    let said = refused(&address(&postgres, "hush2", "sslmode=require")).await;
    assert!(said.contains("password authentication failed"), "{said}");
}

#[tokio::test]
async fn a_server_without_tls_is_not_spoken_to_where_tls_was_asked_for() {
    let postgres = Postgres::start();
    for mode in ["require", "verify-full"] {
        let said = refused(&address(&postgres, "hush", &format!("sslmode={mode}"))).await;
        assert!(said.contains("does not support TLS") && said.contains("turn on ssl there"), "{said}");
    }
    use_it(&address(&postgres, "hush", "sslmode=prefer"), "plain").await;
    use_it(&address(&postgres, "hush", "sslmode=disable"), "plain2").await;
}
