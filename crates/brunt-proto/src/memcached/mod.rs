//! memcached's dialects, one file each, and what it says of itself.

mod line;
pub mod statistics;
pub mod text;

pub use text::TextCodec;
