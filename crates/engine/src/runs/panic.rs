//! A panic inside a future is a failure of that future, and of nothing else.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A future panicked; holds the message of the panic.
#[derive(Debug, thiserror::Error)]
#[error("panicked: {0}")]
pub(super) struct Panicked(String);

/// Drives a future to its end or its panic, whose message is the error. The future is not polled again after a
/// panic, so it does not matter in which state that left it.
pub(super) async fn catch_panic<F: Future>(mut future: Pin<&mut F>) -> Result<F::Output, Panicked> {
    poll_fn(move |context| poll_catching_panic(future.as_mut(), context)).await
}

/// Drives a future a bit further and returns a panic in it as its text.
pub(super) fn poll_catching_panic<F: Future>(
    future: Pin<&mut F>,
    context: &mut Context<'_>,
) -> Poll<Result<F::Output, Panicked>> {
    match catch_unwind(AssertUnwindSafe(|| future.poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(panic) => Poll::Ready(Err(Panicked(message(&*panic)))),
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a message").to_owned()
}
