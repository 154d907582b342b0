//! Values with their types: a statement that Postgres prepares for one use must not wait to hear which types it wants.

use tokio_postgres::types::{ToSql, Type};

/// A parameter of a statement.
pub(crate) trait Parameter: Sync {
    /// Its type in Postgres.
    fn kind(&self) -> Type;

    /// Itself, as the driver takes it.
    fn value(&self) -> &(dyn ToSql + Sync);
}

macro_rules! parameters {
    ($($rust:ty => $kind:ident),* $(,)?) => {$(
        impl Parameter for $rust {
            fn kind(&self) -> Type {
                Type::$kind
            }

            fn value(&self) -> &(dyn ToSql + Sync) {
                self
            }
        }
    )*};
}

parameters! {
    bool => BOOL,
    i32 => INT4,
    i64 => INT8,
    &str => TEXT,
    String => TEXT,
    &[u8] => BYTEA,
    Vec<i32> => INT4_ARRAY,
    Vec<i64> => INT8_ARRAY,
    Vec<&str> => TEXT_ARRAY,
    Vec<String> => TEXT_ARRAY,
    Vec<&[u8]> => BYTEA_ARRAY,
    Vec<Vec<u8>> => BYTEA_ARRAY,
    Vec<Option<&[u8]>> => BYTEA_ARRAY,
}
