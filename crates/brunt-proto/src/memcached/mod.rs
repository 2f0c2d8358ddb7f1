//! memcached's dialects, one file each, and what it says of itself.

pub mod statistics;
pub mod text;

pub use text::TextCodec;
