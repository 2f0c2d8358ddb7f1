//! Hash slots: the slot of a key, and the map from slots to nodes.
//!
//! The slot is a pure function of the key's bytes; a map is read from one reply and never changes, so that it can be
//! shared and exchanged whole.

use crate::resp::reply::Value;
use brunt_plan::quoted_bytes::QuotedBytes;
use thiserror::Error;

/// How many slots every cluster has.
pub const SLOTS: u16 = 16_384;

/// Asks for the map, in the words of Redis before 7 and of everything since.
pub const ASK_SLOTS: &[u8] = b"*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n";

/// Asks for the map, in the words of Redis 7 and Valkey.
pub const ASK_SHARDS: &[u8] = b"*2\r\n$7\r\nCLUSTER\r\n$6\r\nSHARDS\r\n";

/// What goes before a request that an ASK redirected. It has a reply of its own, which is `Ok`.
pub const ASKING: &[u8] = b"*1\r\n$6\r\nASKING\r\n";

/// The slot of a key: that of its tag, if it has one, and else that of all of it.
#[inline]
pub fn slot_of(key: &[u8]) -> u16 {
    crc16(tag_of(key)) % SLOTS
}

/// What is between the first opening brace and the first closing one behind it, unless that is nothing.
#[inline]
fn tag_of(key: &[u8]) -> &[u8] {
    let Some(open) = memchr::memchr(b'{', key) else { return key };
    let behind = &key[open + 1..];
    match memchr::memchr(b'}', behind) {
        None | Some(0) => key,
        Some(len) => &behind[..len],
    }
}

/// CRC-16/XMODEM: polynomial 1021, nothing reflected, from 0.
#[inline]
fn crc16(bytes: &[u8]) -> u16 {
    let (blocks, rest) = bytes.as_chunks::<8>();
    let at = |followers: usize, byte: u8| TABLES[followers][usize::from(byte)];
    let by_blocks = blocks.iter().fold(0u16, |crc, [a, b, c, d, e, f, g, h]| {
        let [high, low] = crc.to_be_bytes();
        let front = at(7, a ^ high) ^ at(6, b ^ low) ^ at(5, *c) ^ at(4, *d);
        front ^ at(3, *e) ^ at(2, *f) ^ at(1, *g) ^ at(0, *h)
    });
    rest.iter().fold(by_blocks, |crc, byte| (crc << 8) ^ at(0, (crc >> 8) as u8 ^ byte))
}

/// What a byte does to the remainder when 0 to 7 bytes follow it. Byte by byte each step would wait for the one before,
/// which for a key of 30 bytes is half of what a request may cost; eight at a time they are looked up side by side.
static TABLES: [[u16; 256]; 8] = tables();

const fn tables() -> [[u16; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut table = 0;
        while table < 8 {
            let mut bit = 0;
            while bit < 8 {
                crc = (crc << 1) ^ if crc & 0x8000 != 0 { 0x1021 } else { 0 };
                bit += 1;
            }
            tables[table][byte] = crc;
            table += 1;
        }
        byte += 1;
    }
    tables
}

/// Where a node takes requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeAddress {
    /// Name or address, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

/// Slots that one node has, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotRange {
    /// The first one.
    pub first: u16,
    /// The last one.
    pub last: u16,
    /// Which of the nodes.
    pub node: u16,
}

/// Which node has which slots, as one node sees it. Slots may be unassigned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotMap {
    nodes: Vec<NodeAddress>,
    /// Ascending, and no slot twice.
    ranges: Vec<SlotRange>,
}

/// Why a reply is no map.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SlotMapError {
    /// The server answers with an error: its text. One that is no part of a cluster says so here.
    #[error("it answers \"{0}\"")]
    Declined(String),
    /// The reply is built otherwise than a map.
    #[error("its reply is built otherwise than a map of slots")]
    OtherForm,
    /// Two nodes are said to have this slot.
    #[error("it says of two nodes that they have slot {0}")]
    Contested(u16),
    /// No node has any slot.
    #[error("it knows of no node that has slots")]
    Empty,
}

impl SlotMap {
    /// Reads the reply to [`ASK_SLOTS`] of a node that was reached as `reached_as`. Its ports are those for the kind of
    /// connection that it came over.
    ///
    /// # Errors
    /// The reply is no map.
    pub fn of_slots(reply: &Value<'_>, reached_as: &str) -> Result<Self, SlotMapError> {
        let mut map = Self { nodes: Vec::new(), ranges: Vec::new() };
        for entry in list(reply)? {
            // The node behind the ends of the range is the one that takes writes; its replicas follow.
            let Value::List(entry) = entry else { return Err(SlotMapError::OtherForm) };
            let [first, last, Value::List(node), ..] = &entry[..] else {
                return Err(SlotMapError::OtherForm);
            };
            let [host, port, further @ ..] = &node[..] else { return Err(SlotMapError::OtherForm) };
            let ip = further.get(1).and_then(|more| more.field("ip"));
            let node = map.node(host_of(host, ip, reached_as)?, port_of(port)?)?;
            map.ranges.push(SlotRange { first: slot(first)?, last: slot(last)?, node });
        }
        map.checked()
    }

    /// Reads the reply to [`ASK_SHARDS`] of a node that was reached as `reached_as`, by TLS or not.
    ///
    /// # Errors
    /// The reply is no map.
    pub fn of_shards(reply: &Value<'_>, reached_as: &str, by_tls: bool) -> Result<Self, SlotMapError> {
        let mut map = Self { nodes: Vec::new(), ranges: Vec::new() };
        for shard in list(reply)? {
            let (Some(Value::List(slots)), Some(Value::List(nodes))) =
                (shard.field("slots"), shard.field("nodes"))
            else {
                return Err(SlotMapError::OtherForm);
            };
            let is_primary =
                |node: &&Value<'_>| matches!(node.field("role"), Some(Value::Text(b"master" | b"primary")));
            // After a failover the node that failed is listed beside the one that took over, and may still be called so.
            let is_online = |node: &&Value<'_>| matches!(node.field("health"), Some(Value::Text(b"online")));
            let mut primaries = nodes.iter().filter(is_primary);
            let Some(node) = primaries.clone().find(is_online).or_else(|| primaries.next()) else { continue };
            let port = node.field(if by_tls { "tls-port" } else { "port" });
            let host = node.field("endpoint").unwrap_or(&Value::Null);
            let (pairs, odd) = slots.as_chunks::<2>();
            if !odd.is_empty() {
                return Err(SlotMapError::OtherForm);
            }
            let host = host_of(host, node.field("ip"), reached_as);
            let port = port.ok_or(SlotMapError::OtherForm).and_then(port_of);
            if pairs.is_empty() {
                // It may be given some, if it is there.
                if let (true, Ok(host), Ok(port)) = (is_online(&node), host, port) {
                    map.node(host, port)?;
                }
                continue;
            }
            let node = map.node(host?, port?)?;
            for [first, last] in pairs {
                map.ranges.push(SlotRange { first: slot(first)?, last: slot(last)?, node });
            }
        }
        map.checked()
    }

    /// The number of the node with this address, which is a new one if none has it.
    fn node(&mut self, host: &str, port: u16) -> Result<u16, SlotMapError> {
        let known = self.nodes.iter().position(|node| node.host == host && node.port == port);
        let number = known.unwrap_or_else(|| {
            self.nodes.push(NodeAddress { host: host.to_owned(), port });
            self.nodes.len() - 1
        });
        u16::try_from(number).map_err(|_| SlotMapError::OtherForm)
    }

    /// Puts the ranges in order and looks whether they can be true.
    fn checked(mut self) -> Result<Self, SlotMapError> {
        self.ranges.sort_by_key(|range| range.first);
        if self.ranges.is_empty() {
            return Err(SlotMapError::Empty);
        }
        if self.ranges.iter().any(|range| range.first > range.last) {
            return Err(SlotMapError::OtherForm);
        }
        match self.ranges.windows(2).find(|pair| pair[0].last >= pair[1].first) {
            Some(pair) => Err(SlotMapError::Contested(pair[1].first)),
            None => Ok(self),
        }
    }

    /// The nodes that have slots, and as far as the reply has them those that may be given some, in its order.
    pub fn nodes(&self) -> &[NodeAddress] {
        &self.nodes
    }

    /// Which node has the slot: its place in [`SlotMap::nodes`].
    pub fn node_of(&self, slot: u16) -> Option<u16> {
        let at = self.ranges.partition_point(|range| range.last < slot);
        self.ranges.get(at).filter(|range| range.first <= slot).map(|range| range.node)
    }

    /// The nodes that have no slots.
    pub fn idle(&self) -> impl Iterator<Item = &NodeAddress> {
        let has_none = |place: &usize| self.ranges.iter().all(|range| usize::from(range.node) != *place);
        (0..self.nodes.len()).filter(has_none).map(|place| &self.nodes[place])
    }

    /// How many slots are unassigned.
    pub fn uncovered(&self) -> u16 {
        SLOTS - self.ranges.iter().map(|range| range.last - range.first + 1).sum::<u16>()
    }
}

fn list<'v, 'a>(reply: &'v Value<'a>) -> Result<&'v [Value<'a>], SlotMapError> {
    match reply {
        Value::List(list) => Ok(list),
        Value::Error(text) => Err(SlotMapError::Declined(QuotedBytes(text).to_string())),
        _ => Err(SlotMapError::OtherForm),
    }
}

fn slot(value: &Value<'_>) -> Result<u16, SlotMapError> {
    let slot = value.number().and_then(|number| u16::try_from(number).ok());
    slot.filter(|slot| *slot < SLOTS).ok_or(SlotMapError::OtherForm)
}

fn port_of(value: &Value<'_>) -> Result<u16, SlotMapError> {
    let port = value.number().and_then(|number| u16::try_from(number).ok());
    port.filter(|port| *port != 0).ok_or(SlotMapError::OtherForm)
}

/// The host as a map gives it; where it gives none, the one that was asked, and of a node without the name that is wanted,
/// its address.
fn host_of<'v>(
    value: &Value<'v>,
    ip: Option<&Value<'v>>,
    reached_as: &'v str,
) -> Result<&'v str, SlotMapError> {
    let text = match value {
        Value::Null => return Ok(reached_as),
        Value::Text(text) => std::str::from_utf8(text).map_err(|_| SlotMapError::OtherForm)?,
        _ => return Err(SlotMapError::OtherForm),
    };
    match (NodeHost::of(text), ip) {
        (NodeHost::Named(host), _) => Ok(host),
        (NodeHost::Unknown, Some(ip)) if *ip != *value => host_of(ip, None, reached_as),
        _ => Ok(reached_as),
    }
}

#[cfg(test)]
mod tests;

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
