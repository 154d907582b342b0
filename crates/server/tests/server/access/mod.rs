//! Which requests the server admits: tokens, owners, keys, bounds, full lanes.

mod admission;
mod bounds;
mod keys;
mod ownership;
mod security;
