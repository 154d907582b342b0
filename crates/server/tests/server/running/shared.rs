//! What all replicas know from the log: changed settings, tokens, sessions of MCP clients.

use std::path::Path;
use std::sync::Arc;

use laneway_core::Timestamp;
use laneway_protocol::{NewToken, Scope};
use laneway_server::TokenFile;
use laneway_store::Store;
use laneway_store_redis::RedisStore;
use laneway_test_services::Redis;
use serde_json::{Value, json};

use crate::common::{Answer, Events, Gate, PATIENCE, Running, serve_in, until};

async fn server_in(redis: &Redis, config: &str, state: Option<&Path>) -> Running {
    let store = Arc::new(RedisStore::open(&redis.url()).await.unwrap()) as Arc<dyn Store>;
    serve_in(config, Some(store), state.map(Path::to_owned)).await
}

async fn server_on(redis: &Redis, config: &str) -> Running {
    server_in(redis, config, None).await
}

async fn stop(mut server: Running) {
    server.stop();
    server.stopped().await;
}

/// Changes settings of the lane `work`.
async fn set(server: &Running, changes: Value) -> Value {
    let changed = server.send("PATCH", "/api/lanes/work", changes).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    changed.json()["settings"].clone()
}

async fn setting(server: &Running, key: &str) -> Value {
    server.get("/api/lanes/work").await.json()["settings"][key].clone()
}

/// A value of the lane `work` in the configuration: the value, its source, what the configuration says.
async fn configured(server: &Running, key: &str) -> (String, String, String) {
    let config = server.get("/api/config").await.json();
    let is_it = |value: &&Value| value["block"] == "lane \"work\"" && value["key"] == key;
    let value = config["values"].as_array().unwrap().iter().find(is_it).unwrap().clone();
    let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    (text("value"), text("source"), text("configured"))
}

fn three(value: &str, source: &str, configured: &str) -> (String, String, String) {
    (value.to_owned(), source.to_owned(), configured.to_owned())
}

const WORK: &str = "lane \"work\" {\n max_concurrency = 3\n weight = 2\n}";

#[tokio::test]
async fn a_changed_setting_holds_at_every_start_until_the_file_changes_it() {
    let redis = Redis::start();
    let a = server_on(&redis, WORK).await;
    set(&a, json!({ "max_concurrency": 7, "retry": { "max_retries": 5 } })).await;
    let b = server_on(&redis, WORK).await;
    for server in [&a, &b] {
        assert_eq!(setting(server, "max_concurrency").await, 7);
        assert_eq!(configured(server, "max_concurrency").await, three("7", "api", "test.hcl:2 says 3"));
        let (value, source, _) = configured(server, "retry.max_retries").await;
        assert_eq!((value.as_str(), source.as_str()), ("5", "api"));
        assert_eq!(configured(server, "weight").await, three("2", "test.hcl:3", ""));
    }
    stop(a).await;
    stop(b).await;
    // Other settings of the file change, and the setting stays.
    let c = server_on(&redis, &WORK.replace("weight = 2", "weight = 9\n timeout = \"5s\"")).await;
    assert_eq!((setting(&c, "max_concurrency").await, setting(&c, "weight").await), (json!(7), json!(9)));
    // The same setting changes, so the file decides, now and later.
    let d = server_on(&redis, &WORK.replace("= 3", "= 5")).await;
    assert_eq!(configured(&d, "max_concurrency").await, three("5", "test.hcl:2", ""));
    assert_eq!(setting(&d, "retry.max_retries").await, 5);
    let audit = d.get("/api/audit").await.json()["items"][0].clone();
    assert_eq!((&audit["actor"], &audit["target"]), (&json!("configuration"), &json!("work")));
    assert_eq!(audit["details"], json!({ "withdrawn": ["max_concurrency"] }));
    let e = server_on(&redis, WORK).await;
    assert_eq!(setting(&e, "max_concurrency").await, 3);
}

#[tokio::test]
async fn null_withdraws_a_change_at_every_server() {
    let redis = Redis::start();
    let (a, b) = (server_on(&redis, WORK).await, server_on(&redis, WORK).await);
    set(&a, json!({ "max_concurrency": 7, "timeout_ms": 5000, "retry": { "jitter": true } })).await;
    let settings = set(&b, json!({ "maxConcurrency": null, "retry": null })).await;
    assert_eq!((&settings["max_concurrency"], &settings["retry"]), (&json!(3), &json!("none")));
    assert_eq!(settings["timeout"], "5000ms");
    assert_eq!(configured(&a, "max_concurrency").await, three("3", "test.hcl:2", ""));
    assert_eq!(set(&a, json!({ "timeout": null, "weight": null })).await["timeout"], "none");
    for (changes, why) in [
        (json!({ "speed": null }), "not a setting of a lane"),
        (json!({ "retry": { "jitter": null } }), "a whole setting"),
        (json!({ "weight": 0, "lease": "7s" }), "weight must be"),
    ] {
        let refused = a.send("PATCH", "/api/lanes/work", changes).await;
        assert_eq!(refused.status, 400, "{refused:?}");
        assert!(refused.json()["detail"].as_str().unwrap().contains(why), "{refused:?}");
    }
    // A lane that only a change had named is gone with it.
    let patch = async |changes| a.send("PATCH", "/api/lanes/fresh:*", changes).await.json();
    assert_eq!(patch(json!({ "max_concurrency": 4 })).await["max_concurrency"], 4);
    assert_eq!(b.get("/api/lanes/fresh:x").await.json()["max_concurrency"], 4);
    assert_eq!(patch(json!({ "max_concurrency": null })).await["max_concurrency"], 1);
    let c = server_on(&redis, WORK).await;
    assert_eq!(setting(&c, "max_concurrency").await, 3);
    assert_eq!(c.get("/api/lanes/fresh:x").await.json()["max_concurrency"], 1);
}

#[tokio::test]
async fn changes_of_two_servers_at_once_keep_each_other() {
    let redis = Redis::start();
    let (a, b) = (server_on(&redis, WORK).await, server_on(&redis, WORK).await);
    for round in 1..=10 {
        tokio::join!(
            set(&a, json!({ "max_queued": round })),
            set(&b, json!({ "pressure_threshold": round })),
            set(&b, json!({ "max_redelivery": round })),
        );
        for key in ["max_queued", "pressure_threshold", "max_redelivery"] {
            assert_eq!(setting(&a, key).await, round, "{key}");
            assert_eq!(configured(&a, key).await.1, "api");
        }
    }
    let c = server_on(&redis, WORK).await;
    for key in ["max_queued", "pressure_threshold", "max_redelivery"] {
        assert_eq!(setting(&c, key).await, 10, "{key}");
    }
}

#[tokio::test]
async fn a_reload_keeps_changed_settings_that_the_file_does_not_change() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("laneway.hcl");
    std::fs::write(&file, WORK).unwrap();
    let server = serve_in(WORK, None, Some(dir.path().to_owned())).await;
    set(&server, json!({ "max_concurrency": 7 })).await;
    std::fs::write(&file, WORK.replace("weight = 2", "weight = 4")).unwrap();
    server.reloader.reload().await.unwrap();
    assert_eq!(
        (setting(&server, "max_concurrency").await, setting(&server, "weight").await),
        (json!(7), json!(4))
    );
    std::fs::write(&file, WORK.replace("= 3", "= 6")).unwrap();
    server.reloader.reload().await.unwrap();
    assert_eq!(setting(&server, "max_concurrency").await, 6);
    std::fs::write(&file, WORK).unwrap();
    server.reloader.reload().await.unwrap();
    assert_eq!(setting(&server, "max_concurrency").await, 3);
}

async fn token(server: &Running, subject: &str, scope: &str) -> String {
    let created = server.post("/api/tokens", json!({ "subject": subject, "scopes": [scope] })).await;
    assert_eq!(created.status, 201, "{created:?}");
    created.json()["token"].as_str().unwrap().to_owned()
}

/// The status of a request with a token.
async fn status_with(server: &Running, token: &str) -> u16 {
    let request = reqwest::Client::new().get(server.url("/api/me")).timeout(PATIENCE);
    crate::common::answer(request.bearer_auth(token)).await.status
}

async fn until_status(server: &Running, token: &str, status: u16) {
    until(&format!("a token gives {status}"), async || status_with(server, token).await == status).await;
}

fn id(token: &str) -> &str {
    token.split_once('.').unwrap().0
}

#[tokio::test]
async fn a_token_made_at_one_server_is_known_at_all_and_survives_their_restart() {
    let redis = Redis::start();
    let (mut a, mut b) = (server_on(&redis, "").await, server_on(&redis, "").await);
    let root = token(&a, "root", "admin").await;
    // The first token closes all servers to callers without one.
    until("the other server asks for a token", async || b.get("/api/me").await.status == 401).await;
    (a.token, b.token) = (Some(root.clone()), Some(root.clone()));
    let ann = token(&b, "ann", "read").await;
    until_status(&a, &ann, 200).await;
    let listed = a.get("/api/tokens").await.json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
    let log = RedisStore::open(&redis.url()).await.unwrap();
    assert!(log.head().await.unwrap().version.0 > 0);

    // A removal at one server ends the streams of the token at the other one.
    let auth = format!("Bearer {ann}");
    let events = Events::open(&a, "/api/events", &[("authorization", &auth)]).await;
    let path = format!("/api/tokens?id={}", id(&ann));
    assert_eq!(b.send("DELETE", &path, json!(null)).await.status, 204);
    until_status(&a, &ann, 401).await;
    events.rest().await;
    assert_eq!(b.send("DELETE", &path, json!(null)).await.status, 404);

    stop(a).await;
    stop(b).await;
    let c = server_on(&redis, "").await;
    assert_eq!((status_with(&c, &root).await, status_with(&c, &ann).await), (200, 401));
    assert_eq!(c.get("/api/me").await.status, 401);
}

#[tokio::test]
async fn the_file_of_one_server_and_the_log_follow_each_other() {
    let redis = Redis::start();
    let dir = tempfile::tempdir().unwrap();
    let file = TokenFile::open(dir.path().join("tokens.json")).unwrap();
    let create = |subject: &str| {
        let new =
            NewToken { subject: subject.to_owned(), scopes: vec![Scope::Admin], speaks_for_others: false };
        file.create(&new, Timestamp(1)).unwrap().token
    };
    let held = || file.list().unwrap().into_iter().map(|token| token.subject).collect::<Vec<_>>();
    let root = create("root");
    let a = server_in(&redis, "", Some(dir.path())).await;
    let mut b = server_on(&redis, "").await;
    b.token = Some(root.clone());
    until_status(&b, &root, 200).await;

    // The command line creates and removes a token while the server runs.
    let ann = create("ann");
    until_status(&a, &ann, 200).await;
    until_status(&b, &ann, 200).await;
    assert!(file.remove(id(&ann)).unwrap());
    until_status(&a, &ann, 401).await;
    until_status(&b, &ann, 401).await;
    // The file lists the tokens of other servers, so the command line can remove them.
    let bob = token(&b, "bob", "read").await;
    until("the file has the token", async || held().contains(&"bob".to_owned())).await;
    let eve = token(&b, "eve", "read").await;
    until("the file has the token", async || held().contains(&"eve".to_owned())).await;
    let audit = crate::common::answer(
        a.request("GET", "/api/audit").header("authorization", format!("Bearer {root}")),
    );
    let audit = audit.await.json();
    let actions: Vec<(&Value, &Value)> =
        audit["items"].as_array().unwrap().iter().map(|entry| (&entry["actor"], &entry["action"])).collect();
    let (actor, made, gone) = (json!("laneway token"), json!("create_token"), json!("remove_token"));
    assert_eq!(actions, [(&actor, &gone), (&actor, &made), (&actor, &made)]);

    // While the server is away, one token is removed at the other server and one in the file.
    stop(a).await;
    assert_eq!(b.send("DELETE", &format!("/api/tokens?id={}", id(&bob)), json!(null)).await.status, 204);
    assert!(file.remove(id(&eve)).unwrap());
    let a = server_in(&redis, "", Some(dir.path())).await;
    assert_eq!((status_with(&a, &bob).await, status_with(&a, &eve).await), (401, 401));
    until_status(&b, &eve, 401).await;
    until("the file has only one token", async || held() == ["root"]).await;
    assert_eq!(status_with(&b, &root).await, 200);
}

#[tokio::test]
async fn a_store_that_lost_its_data_does_not_open_the_servers() {
    let mut redis = Redis::start();
    let (a, b) = (server_on(&redis, "").await, server_on(&redis, "").await);
    let root = token(&a, "root", "admin").await;
    until_status(&b, &root, 200).await;
    until("the other server asks for a token", async || b.get("/api/me").await.status == 401).await;
    redis.kill();
    redis.restart_empty();
    for server in [&a, &b] {
        until("the server has its store again", async || server.get("/readyz").await.status == 200).await;
        assert_eq!((server.get("/api/me").await.status, status_with(server, &root).await), (401, 200));
    }
    let c = server_on(&redis, "").await;
    until_status(&c, &root, 200).await;
    assert_eq!(c.get("/api/me").await.status, 401);
}

async fn mcp(server: &Running, method: &str, session: &str, body: Value) -> Answer {
    let accept = ("accept", "application/json, text/event-stream");
    let mut headers = vec![accept];
    if !session.is_empty() {
        headers.push(("mcp-session-id", session));
    }
    server.send_with(method, "/mcp", body, &headers).await
}

fn rpc(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

async fn session(server: &Running) -> String {
    let params = json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    });
    let answer = mcp(server, "POST", "", rpc(1, "initialize", params)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.header("mcp-session-id").to_owned()
}

fn chat(message: &str) -> Value {
    json!({ "name": "chat_with_agent", "arguments": { "agent_name": "coder", "message": message } })
}

#[tokio::test]
async fn any_server_serves_and_ends_a_session_and_cancels_its_calls() {
    let redis = Redis::start();
    let gate = Gate::open().await;
    let config = format!("agent \"coder\" {{\n url = \"{}\"\n lanes = []\n}}", gate.url);
    let (a, b) = (server_on(&redis, &config).await, server_on(&redis, &config).await);
    let id = session(&a).await;
    let calling = mcp(&b, "POST", &id, rpc(2, "tools/call", chat("hello")));
    let (answer, ()) = tokio::join!(calling, async {
        gate.arrival().await;
        gate.let_go(1);
    });
    assert!(answer.status == 200 && answer.text.contains("answer to hello"), "{answer:?}");

    // The client cancels a call at another server than the one that answers it.
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 3 } });
    let calling = mcp(&a, "POST", &id, rpc(3, "tools/call", chat("cancelled")));
    let (_, ()) = tokio::join!(calling, async {
        gate.arrival().await;
        assert_eq!(mcp(&b, "POST", &id, cancel).await.status, 202);
    });
    a.until_numbers((0, 0)).await;
    // So does the end of the session.
    let calling = mcp(&b, "POST", &id, rpc(4, "tools/call", chat("ended")));
    let (_, ()) = tokio::join!(calling, async {
        gate.arrival().await;
        assert_eq!(mcp(&a, "DELETE", &id, json!(null)).await.status, 204);
    });
    a.until_numbers((0, 0)).await;
    let list = rpc(5, "tools/list", json!({}));
    for server in [&a, &b] {
        until("the session is unknown", async || mcp(server, "POST", &id, list.clone()).await.status == 404)
            .await;
    }
    let c = server_on(&redis, &config).await;
    assert_eq!(mcp(&c, "POST", &id, list).await.status, 404);
}

#[tokio::test]
async fn a_session_outlives_its_server_and_belongs_to_its_token() {
    let redis = Redis::start();
    let mut a = server_on(&redis, "").await;
    let root = token(&a, "root", "admin").await;
    a.token = Some(root.clone());
    let ann = token(&a, "ann", "admin").await;
    let id = session(&a).await;
    stop(a).await;
    let mut b = server_on(&redis, "").await;
    b.token = Some(root);
    let list = rpc(7, "tools/list", json!({}));
    assert_eq!(mcp(&b, "POST", &id, list.clone()).await.status, 200);
    let digit = if id.ends_with('0') { '1' } else { '0' };
    let forged = format!("{}{digit}", &id[..id.len() - 1]);
    let (short, long, text) = (&id[..10], format!("{id}0"), "é".repeat(16));
    for wrong in [&forged, short, &long, "unknown", &text] {
        for method in ["POST", "GET", "DELETE"] {
            let refused = mcp(&b, method, wrong, list.clone()).await;
            // A header of other characters is malformed.
            let expected = if wrong == text { 400 } else { 404 };
            assert_eq!(refused.status, expected, "{method} {wrong}: {refused:?}");
        }
    }
    let refused = mcp(&b, "POST", &forged, list.clone()).await.json();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(7), &json!(-32600)));
    assert!(refused["error"]["message"].as_str().unwrap().contains("initialize"), "{refused}");
    b.token = Some(ann);
    assert_eq!(mcp(&b, "POST", &id, list).await.status, 404);
}
