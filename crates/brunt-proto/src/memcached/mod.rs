//! memcached's dialects, one file each, and what it says of itself.

mod line;
pub mod meta;
pub mod statistics;
pub mod text;

pub use meta::MetaCodec;
pub use text::TextCodec;

#[cfg(test)]
mod transcript;
