//! memcached's protocols, one file each, and its statistics.

pub mod binary;
pub mod datagram;
mod line;
pub mod meta;
pub mod stats;
pub mod text;
pub mod udp;

pub use binary::BinaryCodec;
pub use datagram::DatagramCodec;
pub use meta::MetaCodec;
pub use text::TextCodec;

#[cfg(test)]
pub(crate) mod tests {
    pub(crate) mod transcript;
}
