//! Replies that leave the server, and the end of their connection.

/// A connection: a small number of the caller's choice, free for reuse after [`Core::disconnect`](crate::Core::disconnect).
pub type ConnectionId = u32;

/// What happens to a connection after the bytes of a departure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// Nothing: it stays open.
    #[default]
    Stays,
    /// It is closed in good order: the client reads every byte, then the end.
    Closes,
    /// It is reset: the client sees an error, and bytes that it has not got yet may be lost.
    Resets,
}

/// Replies that leave now: of one connection, at one instant. There may be several of them, and there may be none if
/// the connection only ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure<'a> {
    /// To whom.
    pub connection: ConnectionId,
    /// When they were due; at most the `now_ns` of the call.
    pub departure_ns: u64,
    /// The replies.
    pub bytes: &'a [u8],
    /// What happens to the connection after them.
    pub end: End,
}
