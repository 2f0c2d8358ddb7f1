//! Redirections: the node that an error reply of a cluster names.

use super::slot::SLOTS;
use crate::resp::slot::NodeHost;

/// Whether a redirection is for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedirectKind {
    /// The slot lives there from now on.
    Moved,
    /// The slot is on its way there: requests for this key go there, after an `ASKING`, and the map stays as it is.
    Ask,
}

/// Where an error sends its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redirect<'a> {
    /// For good or not.
    pub kind: RedirectKind,
    /// Which slot it is about; below [`SLOTS`].
    pub slot: u16,
    /// On which host the node is.
    pub host: NodeHost<'a>,
    /// The port there, not 0.
    pub port: u16,
}

impl<'a> Redirect<'a> {
    /// Reads `MOVED SLOT HOST:PORT` or the same of `ASK`; `None` of every other text.
    pub fn of(text: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let mut words = text.split(' ');
        let kind = match words.next()? {
            "MOVED" => RedirectKind::Moved,
            "ASK" => RedirectKind::Ask,
            _ => return None,
        };
        let slot = words.next()?.parse().ok().filter(|slot| *slot < SLOTS)?;
        // An IPv6 address is there without brackets: its last colon is the one before the port.
        let (host, port) = words.next()?.rsplit_once(':')?;
        let port = port.parse().ok().filter(|port| *port != 0)?;
        words.next().is_none().then_some(Self { kind, slot, host: NodeHost::of(host), port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirections_parse() {
        let to = |kind, slot, host, port| Some(Redirect { kind, slot, host, port });
        let table = [
            ("MOVED 3999 127.0.0.1:6381", to(RedirectKind::Moved, 3999, NodeHost::Named("127.0.0.1"), 6381)),
            ("ASK 3999 127.0.0.1:6381", to(RedirectKind::Ask, 3999, NodeHost::Named("127.0.0.1"), 6381)),
            ("MOVED 0 cache-1.example:1", to(RedirectKind::Moved, 0, NodeHost::Named("cache-1.example"), 1)),
            ("MOVED 16383 ::1:7000", to(RedirectKind::Moved, 16383, NodeHost::Named("::1"), 7000)),
            ("MOVED 16383 [::1]:7000", to(RedirectKind::Moved, 16383, NodeHost::Named("::1"), 7000)),
            // `cluster-preferred-endpoint-type unknown-endpoint`, and `hostname` where none is announced.
            ("MOVED 12182 :22403", to(RedirectKind::Moved, 12182, NodeHost::Asked, 22403)),
            ("MOVED 12182 ?:22403", to(RedirectKind::Moved, 12182, NodeHost::Unknown, 22403)),
            ("MOVED 16384 127.0.0.1:6381", None),
            ("MOVED -1 127.0.0.1:6381", None),
            ("MOVED 1 127.0.0.1", None),
            ("MOVED 1 127.0.0.1:0", None),
            ("MOVED 1 127.0.0.1:65536", None),
            ("MOVED 1 127.0.0.1:6381 more", None),
            ("MOVED 1", None),
            ("MOVED", None),
            ("moved 1 127.0.0.1:6381", None),
            ("ERR MOVED 1 127.0.0.1:6381", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(Redirect::of(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(Redirect::of(b"MOVED 1 \xff:1"), None);
    }
}
