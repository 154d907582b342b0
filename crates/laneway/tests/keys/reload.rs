//! A file that changes while the queue runs: all of it holds or, with the error, nothing of it.

use std::path::Path;
use std::time::Duration;

use laneway::{ConfigError, Configured, LaneName, Task};

use crate::look::Look;
use crate::open;

async fn limit(lanes: &Configured, lane: &str) -> Option<u32> {
    lanes.settings(LaneName::new(lane).unwrap()).await.unwrap().max_concurrency
}

fn write(dir: &Path, text: &str) {
    std::fs::write(dir.join("laneway.hcl"), text).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_changed_file_holds_at_once_and_what_is_gone_from_it_has_its_default_again() {
    let dir = tempfile::tempdir().unwrap();
    let before =
        "store = \"memory\"\nlane \"a\" { max_concurrency = 1 }\nlane \"b\" { max_concurrency = 9 }\n
        handler \"old\" { command = [\"cat\"] }";
    let (lanes, diary) = open(dir.path(), before).await;
    for _ in 0..3 {
        lanes.submit(Task::new("a").kind("forever")).await.unwrap().detach();
    }
    assert_eq!((lanes.inflight().await.unwrap(), limit(&lanes, "b").await), (1, Some(9)));
    assert_eq!(Look::Batch("glob").at(&lanes, &diary).await, "2 s");
    let after = "store = \"memory\"\nlane \"a\" { max_concurrency = 3 }\nqueue {}
        handler \"new\" { command = [\"cat\"] }";
    write(dir.path(), after);
    lanes.reload().await.unwrap();
    assert_eq!((lanes.inflight().await.unwrap(), limit(&lanes, "b").await), (3, Some(1)));
    assert_eq!(Look::Batch("glob").at(&lanes, &diary).await, "1 s");
    assert_eq!(lanes.config().lanes.len(), 1);
    let old = lanes.submit(Task::new("b").kind("old").payload(1)).await.err().unwrap();
    assert_eq!(old.to_string(), "nothing here runs tasks of kind old");
    lanes.submit(Task::new("b").kind("new").payload(1)).await.unwrap().detach();
}

#[tokio::test(start_paused = true)]
async fn a_file_with_anything_wrong_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let good = "store = \"memory\"\nlane \"a\" { max_concurrency = 2 }";
    let (lanes, diary) = open(dir.path(), good).await;
    for (wrong, words) in [
        (
            "lane \"a\" { max_concurrency = 3 }\nqueue {}\nlane \"b\" { max_concurrency = 0 }",
            "max_concurrency must",
        ),
        (
            "lane \"a\" { max_concurrency = 3 }\nqueue {}\nhandler \"x\" { url = \"http://a/\" }",
            "only the server",
        ),
        ("store = \"./elsewhere\"\nlane \"a\" { max_concurrency = 3 }\nqueue {}", "the store cannot change"),
    ] {
        let store = if wrong.contains("store") { "" } else { "store = \"memory\"\n" };
        write(dir.path(), &format!("{store}{wrong}"));
        let error = lanes.reload().await.err().unwrap();
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(limit(&lanes, "a").await, Some(2));
        assert_eq!(Look::Batch("glob").at(&lanes, &diary).await, "2 s");
        assert_eq!(lanes.config().lanes.len(), 1);
    }
    std::fs::remove_file(dir.path().join("laneway.hcl")).unwrap();
    assert!(matches!(lanes.reload().await, Err(ConfigError::Wrong(_))));
    assert_eq!(limit(&lanes, "a").await, Some(2));
}

#[tokio::test]
async fn the_file_speaks_for_a_store_that_was_left_under_another_before_anything_starts() {
    let dir = tempfile::tempdir().unwrap();
    let store = format!("store = {:?}\n", dir.path().join("data").to_str().unwrap());
    let (lanes, _) =
        open(dir.path(), &format!("{store}lane \"a\" {{\nmax_concurrency = 1\nretry {{}}\n}}")).await;
    for _ in 0..4 {
        lanes.submit(Task::new("a").kind("forever")).await.unwrap().detach();
    }
    lanes.pause(LaneName::new("a").unwrap()).await.unwrap();
    lanes.shutdown(Duration::ZERO).await;
    drop(lanes);
    let (lanes, _) = open(dir.path(), &format!("{store}lane \"b\" {{ max_concurrency = 7 }}")).await;
    assert_eq!((limit(&lanes, "a").await, limit(&lanes, "b").await), (Some(1), Some(7)));
    assert_eq!(lanes.blocks().await.unwrap().len(), 1);
    assert_eq!(lanes.tasks().await.unwrap().len(), 4);
    lanes.shutdown(Duration::ZERO).await;
}
