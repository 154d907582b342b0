//! The one vocabulary of refusals, the same over HTTP, SSE, WebSocket, MCP and on the command line.

use serde::{Deserialize, Serialize};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident, $text:literal, $slug:literal, $title:literal, $status:literal, $retryable:literal;)*) => {
        /// Why something was refused, or did not succeed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* #[serde(rename = $text)] $name,)*
        }

        impl Code {
            /// Every code there is.
            pub const ALL: &[Code] = &[$(Code::$name),*];

            /// The code as it is written on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => $text,)* }
            }

            /// The last part of its URN.
            pub fn slug(self) -> &'static str {
                match self { $(Code::$name => $slug,)* }
            }

            /// A few words for people.
            pub fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* }
            }

            /// The status of an HTTP answer.
            pub fn status(self) -> u16 {
                match self { $(Code::$name => $status,)* }
            }

            /// Whether asking again, unchanged, could help.
            pub fn is_retryable(self) -> bool {
                match self { $(Code::$name => $retryable,)* }
            }

            /// The code that is written so.
            pub fn from_text(text: &str) -> Option<Code> {
                match text { $($text => Some(Code::$name),)* _ => None }
            }
        }
    };
}

codes! {
    /// The line is full, or the caller may not wait.
    AtCapacity, "AT_CAPACITY", "at-capacity", "At capacity", 429, true;
    /// By a rate limit of the caller.
    RateLimited, "RATE_LIMITED", "rate-limited", "Too many requests", 429, true;
    /// The session has a turn, and its mode is `reject`.
    SessionBusy, "SESSION_BUSY", "session-busy", "Session busy", 409, true;
    /// An old fence: the attempt lost its lease.
    StaleLease, "STALE_LEASE", "stale-lease", "Stale lease", 409, false;
    /// The same key with another body.
    IdempotencyConflict, "IDEMPOTENCY_CONFLICT", "idempotency-conflict", "Idempotency conflict", 422, false;
    /// It would wait for a slot that is held until it has ended.
    WouldDeadlock, "WOULD_DEADLOCK", "would-deadlock", "Would deadlock", 409, false;
    /// Too many tasks would wait for each other.
    ChainTooDeep, "CHAIN_TOO_DEEP", "chain-too-deep", "Chain too deep", 409, false;
    /// It cannot start in time.
    DeadlineUnmeetable, "DEADLINE_UNMEETABLE", "deadline-unmeetable", "Deadline cannot be met", 503, true;
    /// No new work is taken.
    Draining, "DRAINING", "draining", "Draining", 503, true;
    /// The store cannot be reached.
    StoreUnavailable, "STORE_UNAVAILABLE", "store-unavailable", "Store unavailable", 503, true;
    /// It waited for longer than it was allowed to.
    WaitTimeout, "WAIT_TIMEOUT", "wait-timeout", "Waited too long", 504, true;
    /// Its deadline passed while it waited.
    Expired, "EXPIRED", "expired", "Deadline passed", 504, false;
    /// The run took too long.
    RunTimedOut, "RUN_TIMED_OUT", "run-timed-out", "Run timed out", 504, true;
    /// The run did not succeed.
    RunFailed, "RUN_FAILED", "run-failed", "Run failed", 502, false;
    /// Whoever ran it is gone.
    Lost, "LOST", "lost", "Lost", 502, true;
    /// It was cancelled.
    Cancelled, "CANCELLED", "cancelled", "Cancelled", 409, false;
    /// The request makes no sense.
    Invalid, "INVALID", "invalid", "Invalid request", 400, false;
    /// No token, or not one that is known.
    Unauthorized, "UNAUTHORIZED", "unauthorized", "Unauthorized", 401, false;
    /// The token may not do that.
    Forbidden, "FORBIDDEN", "forbidden", "Forbidden", 403, false;
    /// There is no such thing.
    NotFound, "NOT_FOUND", "not-found", "Not found", 404, false;
    /// The request is too large.
    TooLarge, "TOO_LARGE", "too-large", "Too large", 413, false;
    /// The server is at fault.
    Internal, "INTERNAL", "internal", "Internal error", 500, false;
}

impl PartialSchema for Code {
    fn schema() -> RefOr<Schema> {
        let codes = Code::ALL.iter().map(|code| code.as_str());
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(codes)).into()
    }
}

impl ToSchema for Code {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_slugs_and_statuses_go_together() {
        for code in Code::ALL {
            assert_eq!(Code::from_text(code.as_str()), Some(*code));
            assert_eq!(code.slug(), code.as_str().to_lowercase().replace('_', "-"));
            assert!((400..600).contains(&code.status()));
        }
        assert_eq!(Code::from_text("NO_SUCH_CODE"), None);
    }
}
