//! A Redis that speaks TLS, with certificates made for the test.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

use std::sync::Arc;

use laneway_core::Timestamp;
use laneway_store::{Batch, BatchId, Entry, Head, Log, Version};
use laneway_store_redis::RedisStore;
use laneway_test_services::{Certificates, Redis};

const ANYBODY: [&str; 2] = ["--tls-auth-clients", "no"];

fn with_password(url: &str) -> String {
    url.replacen("://", "://default:hush@", 1)
}

async fn refused(url: &str) -> String {
    let said = RedisStore::open(url).await.err().unwrap().to_string();
    assert!(!said.contains("hush"), "{said}");
    said
}

/// Appends a batch and hears of it.
async fn use_it(url: &str) {
    let log = Log::new(Arc::new(RedisStore::open(url).await.unwrap()));
    let tail = tokio::spawn({
        let store = Arc::clone(log.store());
        async move { store.tail(Version(0)).await }
    });
    let entry = Entry::of(Batch { id: BatchId(1), at: Timestamp(0), events: vec![] });
    log.append(Head::EMPTY, &entry).await.unwrap();
    assert_eq!(tail.await.unwrap(), Ok(Version(1)));
    assert_eq!(log.read(Head::EMPTY).await.unwrap().len(), 1);
    let name = log.store().name().to_owned();
    assert!(name.starts_with("rediss://127.0.0.1:") && !name.contains("hush"), "{name}");
}

#[tokio::test]
async fn a_log_is_kept_over_tls_by_whoever_trusts_its_authority() {
    let certificates = Certificates::make();
    let settings = [&ANYBODY[..], &["--requirepass", "hush"]].concat();
    let redis = Redis::start_with_tls(&certificates, &settings);
    let url = with_password(&redis.tls_url());
    use_it(&format!("{url}?ca={}", certificates.ca().display())).await;

    // This machine does not know the authority, another is not that one, and neither falls back to plain text.
    let other = Certificates::make();
    for url in [url.clone(), format!("{url}?ca={}", other.ca().display())] {
        let said = refused(&url).await;
        assert!(said.contains("invalid peer certificate") && said.contains("?ca="), "{said}");
    }
    let said = refused(&format!("{url}?ca={}", certificates.key().display())).await;
    assert!(said.contains("holds no certificate"), "{said}");
    // Right in everything but the password.
    let wrong = redis.tls_url().replacen("://", "://default:hush2@", 1);
    let said = refused(&format!("{wrong}?ca={}", certificates.ca().display())).await;
    assert!(said.to_lowercase().contains("password") && !said.contains("TLS"), "{said}");
}

#[tokio::test]
async fn a_certificate_for_another_host_is_not_trusted() {
    let certificates = Certificates::make_for(&["redis.example"]);
    let redis = Redis::start_with_tls(&certificates, &ANYBODY);
    let said = refused(&format!("{}?ca={}", redis.tls_url(), certificates.ca().display())).await;
    assert!(said.contains("not valid for name"), "{said}");
}

#[tokio::test]
async fn a_redis_that_asks_for_a_certificate_gets_ours() {
    let certificates = Certificates::make();
    let redis = Redis::start_with_tls(&certificates, &["--tls-auth-clients", "yes"]);
    let url = format!("{}?ca={}", redis.tls_url(), certificates.ca().display());
    let said = refused(&url).await;
    assert!(said.contains("?cert="), "{said}");
    let (cert, key) = (certificates.cert(), certificates.key());
    use_it(&format!("{url}&cert={}&key={}", cert.display(), key.display())).await;
}

#[tokio::test]
async fn tls_on_one_side_only_is_said_with_what_would_be_right() {
    let certificates = Certificates::make();
    let redis = Redis::start_with_tls(&certificates, &ANYBODY);
    let said = refused(&with_password(&redis.url())).await;
    assert!(said.contains("if it asks for TLS, its address begins with rediss://"), "{said}");

    let plain = Redis::start();
    let url = format!("{}?ca={}", with_password(&plain.tls_url()), certificates.ca().display());
    let said = refused(&url).await;
    assert!(said.contains("may not speak TLS on this port"), "{said}");
}
