//! memcached's dialects, one file each.

pub mod text;

pub use text::TextCodec;
