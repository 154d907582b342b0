//! The codes of refusals, the same for HTTP, SSE, WebSocket, MCP and the command line.

use serde::{Deserialize, Serialize};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident, $text:literal, $slug:literal, $title:literal, $status:literal, $retryable:literal;)*) => {
        /// Why a request was refused or a task did not succeed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* #[serde(rename = $text)] $name,)*
        }

        impl Code {
            /// All codes.
            pub const ALL: &[Code] = &[$(Code::$name),*];

            /// The code on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => $text,)* }
            }

            /// The last part of the URN.
            pub fn slug(self) -> &'static str {
                match self { $(Code::$name => $slug,)* }
            }

            /// A title for people.
            pub fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* }
            }

            /// The status of the HTTP response.
            pub fn status(self) -> u16 {
                match self { $(Code::$name => $status,)* }
            }

            /// Whether the same request may succeed later.
            pub fn is_retryable(self) -> bool {
                match self { $(Code::$name => $retryable,)* }
            }

            /// The code with this text.
            pub fn from_text(text: &str) -> Option<Code> {
                match text { $($text => Some(Code::$name),)* _ => None }
            }
        }
    };
}

codes! {
    /// The lane is full, or the caller may not wait.
    AtCapacity, "AT_CAPACITY", "at-capacity", "At capacity", 429, true;
    /// The caller exceeded its rate limit.
    RateLimited, "RATE_LIMITED", "rate-limited", "Too many requests", 429, true;
    /// The session is busy and its mode is `reject`.
    SessionBusy, "SESSION_BUSY", "session-busy", "Session busy", 409, true;
    /// The fence is old: the attempt lost its lease.
    StaleLease, "STALE_LEASE", "stale-lease", "Stale lease", 409, false;
    /// The key was used with another body.
    IdempotencyConflict, "IDEMPOTENCY_CONFLICT", "idempotency-conflict", "Idempotency conflict", 422, false;
    /// The task would wait for a slot that is held until the task itself ends.
    WouldDeadlock, "WOULD_DEADLOCK", "would-deadlock", "Would deadlock", 409, false;
    /// Too many tasks would wait for each other.
    ChainTooDeep, "CHAIN_TOO_DEEP", "chain-too-deep", "Chain too deep", 409, false;
    /// The task cannot start before its deadline.
    DeadlineUnmeetable, "DEADLINE_UNMEETABLE", "deadline-unmeetable", "Deadline cannot be met", 503, true;
    /// The server or the lane takes no new work.
    Draining, "DRAINING", "draining", "Draining", 503, true;
    /// The store cannot be reached.
    StoreUnavailable, "STORE_UNAVAILABLE", "store-unavailable", "Store unavailable", 503, true;
    /// The task waited longer than allowed.
    WaitTimeout, "WAIT_TIMEOUT", "wait-timeout", "Waited too long", 504, true;
    /// The deadline passed while the task waited.
    Expired, "EXPIRED", "expired", "Deadline passed", 504, false;
    /// The attempt took too long.
    RunTimedOut, "RUN_TIMED_OUT", "run-timed-out", "Run timed out", 504, true;
    /// The attempt failed.
    RunFailed, "RUN_FAILED", "run-failed", "Run failed", 502, false;
    /// The owner of the attempt is gone.
    Lost, "LOST", "lost", "Lost", 502, true;
    /// The task was cancelled.
    Cancelled, "CANCELLED", "cancelled", "Cancelled", 409, false;
    /// The request is malformed.
    Invalid, "INVALID", "invalid", "Invalid request", 400, false;
    /// The token is missing or unknown.
    Unauthorized, "UNAUTHORIZED", "unauthorized", "Unauthorized", 401, false;
    /// The token lacks the scope.
    Forbidden, "FORBIDDEN", "forbidden", "Forbidden", 403, false;
    /// The resource does not exist.
    NotFound, "NOT_FOUND", "not-found", "Not found", 404, false;
    /// The request is too large.
    TooLarge, "TOO_LARGE", "too-large", "Too large", 413, false;
    /// The server has a bug.
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
