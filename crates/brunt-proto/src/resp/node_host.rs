//! The host of a cluster node as servers write it, in redirections and in slot maps.

/// How a server names the host of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeHost<'a> {
    /// By name or address, without brackets.
    Named(&'a str),
    /// Not at all: it is the host that was asked (`cluster-preferred-endpoint-type unknown-endpoint`).
    Asked,
    /// As unknown: names are preferred, and this node has none. A map has its address.
    Unknown,
}

impl<'a> NodeHost<'a> {
    /// Reads it as it is in a redirection or a map.
    pub(super) fn of(text: &'a str) -> Self {
        match text {
            "" => Self::Asked,
            "?" => Self::Unknown,
            _ => {
                let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
                Self::Named(bare.unwrap_or(text))
            }
        }
    }
}
