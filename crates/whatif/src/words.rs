//! The words of a trace for what the scheduler knows as values, and back.

use laneway_core::{Millis, Retry, RetryStrategy, Source};

use crate::trace::{Asker, RetryOf, Strategy};

impl From<Source> for Asker {
    fn from(source: Source) -> Asker {
        match source {
            Source::User => Asker::User,
            Source::Schedule => Asker::Schedule,
            Source::Agent => Asker::Agent,
            Source::Background => Asker::Background,
        }
    }
}

impl From<Asker> for Source {
    fn from(asker: Asker) -> Source {
        match asker {
            Asker::User => Source::User,
            Asker::Schedule => Source::Schedule,
            Asker::Agent => Source::Agent,
            Asker::Background => Source::Background,
        }
    }
}

impl From<Retry> for RetryOf {
    fn from(retry: Retry) -> RetryOf {
        RetryOf {
            strategy: match retry.strategy {
                RetryStrategy::None => Strategy::None,
                RetryStrategy::Fixed => Strategy::Fixed,
                RetryStrategy::Exponential => Strategy::Exponential,
            },
            max_retries: retry.max_retries,
            initial_delay_ms: retry.initial_delay.0,
            fixed_delay_ms: retry.fixed_delay.0,
            max_delay_ms: retry.max_delay.0,
            jitter: retry.jitter,
        }
    }
}

impl From<RetryOf> for Retry {
    fn from(retry: RetryOf) -> Retry {
        Retry {
            strategy: match retry.strategy {
                Strategy::None => RetryStrategy::None,
                Strategy::Fixed => RetryStrategy::Fixed,
                Strategy::Exponential => RetryStrategy::Exponential,
            },
            max_retries: retry.max_retries,
            initial_delay: Millis(retry.initial_delay_ms),
            fixed_delay: Millis(retry.fixed_delay_ms),
            max_delay: Millis(retry.max_delay_ms),
            jitter: retry.jitter,
        }
    }
}
