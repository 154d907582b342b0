//! Authors as numbers of Postgres, which have a sign.

use laneway_store::Author;

pub(crate) fn number_of(author: Author) -> i64 {
    author.0.cast_signed()
}

/// The author with this number; 0 is none.
pub(crate) fn author_of(number: i64) -> Option<Author> {
    (number != 0).then_some(Author(number.cast_unsigned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_author_has_a_number() {
        for author in [1, u64::MAX, 1 << 63].map(Author) {
            assert_eq!(author_of(number_of(author)), Some(author));
        }
        assert_eq!(author_of(number_of(Author(0))), None);
    }
}
