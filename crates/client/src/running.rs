//! The running task that sends a request.

use std::env;

tokio::task_local! {
    /// The server and the id of the task whose handler runs.
    static RUNNING: (String, String);
}

/// Runs the future of a handler, whose requests to the same server are children of its task. Those of a task that it spawns
/// are not.
pub(crate) async fn running_as<F: Future>(url: &str, task: &str, handler: F) -> F::Output {
    RUNNING.scope((url.to_owned(), task.to_owned()), handler).await
}

/// The id of the running task, if `is_own` knows the address of its server. The program of an agent has both in its
/// environment.
pub(crate) fn running_task(is_own: impl Fn(&str) -> bool) -> Option<String> {
    let own = RUNNING.try_with(Clone::clone).ok();
    let own = own.or_else(|| Some((env::var("LANEWAY_URL").ok()?, env::var("LANEWAY_TASK_ID").ok()?)));
    own.filter(|(server, task)| !task.is_empty() && is_own(server)).map(|(_, task)| task)
}
