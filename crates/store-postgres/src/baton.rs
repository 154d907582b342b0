//! Who may append next: a courtesy, on which nothing but speed rests.

use std::sync::{Mutex, PoisonError};

use laneway_store::{Author, StoreError, Version};

use crate::store::Shared;

/// Stands in line, once. It need not be on a disk when it is said: what a crash loses of it costs some waiting.
const WANT: &str = "UPDATE head SET line = line || $1::bigint
    WHERE NOT $1 = ANY (line) AND set_config('synchronous_commit', 'off', true) = 'off'";

/// The newest batch that was heard of, and to whom it passed the baton.
#[derive(Default)]
pub(crate) struct Newest(Mutex<(Version, Option<Author>)>);

impl Newest {
    /// Takes note of a batch, if there is none that is newer.
    pub(crate) fn note(&self, version: Version, baton: Option<Author>) {
        let mut newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if version >= newest.0 {
            *newest = (version, baton);
        }
    }

    /// Forgets it: what comes next may be older.
    pub(crate) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = <(Version, Option<Author>)>::default();
    }

    pub(crate) fn get(&self) -> (Version, Option<Author>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Stands in line for the baton, once.
    pub(crate) async fn want_baton(&self, author: Author) -> Result<(), StoreError> {
        if author == Author(0) {
            return Ok(());
        }
        self.writer.query(WANT, &[&number_of(author)]).await.map(drop)
    }
}

/// An author as a number of Postgres.
pub(crate) fn number_of(author: Author) -> i64 {
    author.0.cast_signed()
}

/// An author from such a number; 0 is nobody.
pub(crate) fn author_of(number: i64) -> Option<Author> {
    (number != 0).then_some(Author(number.cast_unsigned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_batch_says_nothing_until_the_newer_one_is_forgotten() {
        let newest = Newest::default();
        newest.note(Version(7), Some(Author(1)));
        newest.note(Version(6), Some(Author(2)));
        assert_eq!(newest.get(), (Version(7), Some(Author(1))));
        newest.forget();
        newest.note(Version(6), None);
        assert_eq!(newest.get(), (Version(6), None));
    }

    #[test]
    fn every_author_has_a_number() {
        for author in [1, u64::MAX, 1 << 63].map(Author) {
            assert_eq!(author_of(number_of(author)), Some(author));
        }
        assert_eq!(author_of(number_of(Author(0))), None);
    }
}
