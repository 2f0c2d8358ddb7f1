//! Timestamps that the kernel takes of bytes on a socket: SO_TIMESTAMPING, its control messages, the error queue.
//!
//! [`crate::state::stamper`] chooses the requests and uses the stamps, which are CLOCK_REALTIME in nanoseconds.
//! Invariants: a socket on which these were never switched on behaves as if this file did not exist; a timestamp of another
//! byte than the last one of the awaited request is never taken for that of the request.

use super::{Stamps, Transmitted};
use crate::transport::socket::last_errno;
use rustix::io::Errno;
use std::io::IoSlice;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Flags of a socket: timestamps of everything received; of sent bytes only where the send requests them. `OPT_ID`
/// names a stamp by the last byte it belongs to, counted from here; `OPT_ID_TCP` counts from the next byte to be
/// written instead of the oldest unacknowledged one; `OPT_TSONLY` avoids a copy of the packet.
const SOCKET_FLAGS: u32 = libc::SOF_TIMESTAMPING_RX_SOFTWARE
    | libc::SOF_TIMESTAMPING_SOFTWARE
    | libc::SOF_TIMESTAMPING_OPT_ID
    | libc::SOF_TIMESTAMPING_OPT_ID_TCP
    | libc::SOF_TIMESTAMPING_OPT_TSONLY;
/// Flags of a send: the time at which the driver gets the packet with its last byte.
const SEND_FLAGS: u32 = libc::SOF_TIMESTAMPING_TX_SOFTWARE;

/// Kinds of stamps in the error queue (`SCM_TSTAMP_*` of linux/errqueue.h): handed to the driver.
const TRANSMITTED: u32 = 0;

/// The header of a control message: its length with the header, its level, its type.
const HEADER: usize = size_of::<usize>() + 8;
/// Room for the control messages of one call: a stamp (64 bytes) and an entry of the error queue (64).
const CONTROL_BYTES: usize = 256;

/// Room for the control message of one stamp: a header and three times.
pub(super) const STAMP_BYTES: usize = HEADER + 6 * size_of::<libc::c_long>();

/// Control messages, aligned as the kernel wants them.
#[repr(C, align(8))]
#[derive(Clone, Debug)]
pub(crate) struct Control {
    bytes: [u8; CONTROL_BYTES],
    len: usize,
}

/// An entry of the error queue: the timestamp of a transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transmission {
    /// The offset of the byte that was stamped, from when the stamps were switched on, modulo 2³².
    pub byte: u32,
    /// CLOCK_REALTIME when the driver got it.
    pub at_ns: u64,
}

impl Control {
    pub(crate) const EMPTY: Self = Self { bytes: [0; CONTROL_BYTES], len: 0 };

    /// Arrival of the last byte that the receive call returned; `None` without a timestamp.
    pub(crate) fn received_ns(&self) -> Option<u64> {
        stamp_of(&self.bytes[..self.len])
    }

    /// The control message that requests a timestamp of a send.
    fn transmit_request() -> Self {
        let mut control = Self::EMPTY;
        let word = size_of::<usize>();
        control.bytes[..word].copy_from_slice(&(HEADER + 4).to_ne_bytes());
        control.bytes[word..word + 4].copy_from_slice(&libc::SOL_SOCKET.to_ne_bytes());
        control.bytes[word + 4..word + 8].copy_from_slice(&libc::SO_TIMESTAMPING.to_ne_bytes());
        control.bytes[HEADER..HEADER + 4].copy_from_slice(&SEND_FLAGS.to_ne_bytes());
        control.len = aligned(HEADER + 4);
        control
    }
}

/// Control messages begin at multiples of a word.
const fn aligned(len: usize) -> usize {
    len.next_multiple_of(size_of::<usize>())
}

/// Level, type and data of every whole control message.
fn messages(control: &[u8]) -> impl Iterator<Item = (i32, i32, &[u8])> {
    let mut rest = control;
    std::iter::from_fn(move || {
        let (len, kind) = rest.get(..HEADER)?.split_at(size_of::<usize>());
        let (level, kind) = kind.split_at(4);
        let len = usize::from_ne_bytes(len.try_into().ok()?);
        let data = rest.get(HEADER..len)?;
        rest = rest.get(aligned(len)..).unwrap_or_default();
        Some((i32::from_ne_bytes(level.try_into().ok()?), i32::from_ne_bytes(kind.try_into().ok()?), data))
    })
}

/// The software timestamp among control messages: the first of three times, each seconds and nanoseconds as C
/// longs. All zero means none.
pub(super) fn stamp_of(control: &[u8]) -> Option<u64> {
    let (_, _, data) = messages(control)
        .find(|(level, kind, _)| *level == libc::SOL_SOCKET && *kind == libc::SCM_TIMESTAMPING)?;
    let word = size_of::<libc::c_long>();
    let field = |at: usize| {
        let bytes = data.get(at * word..(at + 1) * word)?;
        u64::try_from(libc::c_long::from_ne_bytes(bytes.try_into().ok()?)).ok()
    };
    Some(field(0)? * 1_000_000_000 + field(1)?).filter(|ns| *ns > 0)
}

/// The transmission in the control messages of an error queue entry: a timestamp and a `sock_extended_err`, which
/// is errno (4 bytes), origin, type, code, padding, `info` (the kind of timestamp) and `data` (the byte it belongs
/// to).
fn transmission_of(control: &[u8]) -> Option<Transmission> {
    let (_, _, error) = messages(control).find(|(level, kind, _)| {
        matches!((*level, *kind), (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR))
    })?;
    let number = |at: usize| Some(u32::from_ne_bytes(error.get(at..at + 4)?.try_into().ok()?));
    let is_stamp = *error.get(4)? == libc::SO_EE_ORIGIN_TIMESTAMPING && number(8)? == TRANSMITTED;
    is_stamp.then_some(Transmission { byte: number(12)?, at_ns: stamp_of(control)? })
}

/// Switches stamps on for a connection that is established and has sent nothing.
#[expect(unsafe_code, reason = "no safe wrapper of SO_TIMESTAMPING exists in what we depend on")]
pub(crate) fn switch_on(socket: impl AsFd) -> Result<(), Errno> {
    let flags = SOCKET_FLAGS;
    // SAFETY: the descriptor is open for as long as it is borrowed; the kernel reads four bytes from a pointer to a
    // local of four bytes and keeps nothing of it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPING,
            std::ptr::from_ref(&flags).cast(),
            size_of::<u32>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(last_errno()) }
}

/// Sends as many bytes as are taken without waiting and asks for a stamp of the last of them.
#[expect(unsafe_code, reason = "rustix sends no control message of this type")]
pub(crate) fn send(socket: impl AsFd, parts: &[IoSlice<'_>]) -> Result<usize, Errno> {
    let mut control = Control::transmit_request();
    // SAFETY: all zeroes are a valid msghdr: no name, no parts, no control messages.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    // An IoSlice has the layout of an iovec by its documentation; sendmsg does not write through the pointer.
    header.msg_iov = parts.as_ptr().cast_mut().cast();
    header.msg_iovlen = parts.len() as _;
    header.msg_control = control.bytes.as_mut_ptr().cast();
    header.msg_controllen = control.len as _;
    // SAFETY: the descriptor is open while it is borrowed; `header` points to `parts`, which are as many initialised
    // slices as it says, and to the first `control.len` bytes of `control`; all of them outlive the call, and sendmsg
    // only reads them.
    let sent = unsafe { libc::sendmsg(socket.as_fd().as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL) };
    usize::try_from(sent).map_err(|_| last_errno())
}

/// Receives available bytes with the timestamp of the last of them.
pub(crate) fn receive(socket: impl AsFd, buffer: &mut [u8], control: &mut Control) -> Result<usize, Errno> {
    receive_message(socket.as_fd(), buffer, control, libc::MSG_DONTWAIT)
}

/// Takes the oldest entry out of a socket's error queue: `None` for one that is no stamp of a transmission, an errno
/// when the queue is empty.
pub(crate) fn take_transmission(socket: impl AsFd) -> Result<Option<Transmission>, Errno> {
    let mut control = Control::EMPTY;
    receive_message(socket.as_fd(), &mut [], &mut control, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT)?;
    Ok(transmission_of(&control.bytes[..control.len]))
}

#[expect(unsafe_code, reason = "rustix drops control messages that it does not know")]
fn receive_message(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    control: &mut Control,
    flags: i32,
) -> Result<usize, Errno> {
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all zeroes are a valid msghdr: no name, no parts, no control messages.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.bytes.as_mut_ptr().cast();
    header.msg_controllen = control.bytes.len() as _;
    // SAFETY: the descriptor is open while it is borrowed; `header` points to one part, which is all of `buffer`, and to
    // all of `control.bytes`; both are borrowed mutably until the call returns, hold initialised bytes, and the kernel
    // writes no more than it is told they hold.
    let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags) };
    control.len = 0;
    let received = usize::try_from(received).map_err(|_| last_errno())?;
    control.len = (header.msg_controllen as usize).min(control.bytes.len());
    Ok(received)
}

/// The timestamps of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ConnectionStamps {
    /// Bytes sent since timestamps were switched on, modulo 2³², as the kernel counts them.
    sent: u32,
    /// The byte whose stamp is awaited.
    awaited: Option<u32>,
    transmitted: Transmitted,
}

impl ConnectionStamps {
    /// Counts bytes that the socket took.
    pub(super) fn add_sent(&mut self, bytes: usize) {
        self.sent = self.sent.wrapping_add(bytes as u32);
    }

    /// The last byte sent is that of a stamped request.
    pub(super) fn await_last(&mut self) {
        self.awaited = Some(self.sent.wrapping_sub(1));
        self.transmitted = Transmitted::Unknown;
    }

    /// Is a stamp awaited?
    pub(super) fn is_awaited(&self) -> bool {
        self.awaited.is_some()
    }

    /// Empties the error queue of the connection's socket. Returns whether there was anything in it.
    pub(super) fn drain_error_queue(&mut self, socket: impl AsFd, syscalls: &mut u64) -> bool {
        let mut any = false;
        loop {
            *syscalls += 1;
            // An error here is that of an empty queue, or one of the socket, which a read will meet too.
            let Ok(entry) = take_transmission(socket.as_fd()) else { return any };
            any = true;
            // Of several the first: a packet that is sent again is stamped again.
            if let (Some(transmission), Some(awaited), Transmitted::Unknown | Transmitted::OtherByte) =
                (entry, self.awaited, self.transmitted)
            {
                self.transmitted = match transmission.byte == awaited {
                    true => Transmitted::At(transmission.at_ns),
                    false => Transmitted::OtherByte,
                };
            }
        }
    }

    /// Ends the wait with the arrival of the reply.
    pub(super) fn take(
        &mut self,
        socket: Option<impl AsFd>,
        received_ns: Option<u64>,
        syscalls: &mut u64,
    ) -> Stamps {
        if let (Transmitted::Unknown, Some(socket)) = (self.transmitted, socket) {
            self.drain_error_queue(socket, syscalls);
        }
        self.awaited = None;
        Stamps { transmitted: std::mem::take(&mut self.transmitted), received_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A control message as the kernel lays it out.
    fn message(level: i32, kind: i32, data: &[u8]) -> Vec<u8> {
        let mut bytes = (HEADER + data.len()).to_ne_bytes().to_vec();
        bytes.extend(level.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(data);
        bytes.resize(aligned(bytes.len()), 0xee);
        bytes
    }

    fn stamp(seconds: i64, ns: i64) -> Vec<u8> {
        let fields = [seconds, ns, 0, 0, 0, 0].into_iter().flat_map(i64::to_ne_bytes);
        message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, &fields.collect::<Vec<_>>())
    }

    fn error(level: i32, kind: i32, origin: u8, info: u32, data: u32) -> Vec<u8> {
        let mut bytes = libc::ENOMSG.to_ne_bytes().to_vec();
        bytes.extend([origin, 0, 0, 0]);
        bytes.extend(info.to_ne_bytes());
        bytes.extend(data.to_ne_bytes());
        // The address that follows is unspecified.
        bytes.extend([0; 16]);
        message(level, kind, &bytes)
    }

    #[test]
    fn stamps_are_found_among_other_messages() {
        let other = message(libc::SOL_SOCKET, 99, b"abc");
        let table = [
            (stamp(2, 7), Some(2_000_000_007)),
            ([other.clone(), stamp(1_800_000_000, 999_999_999)].concat(), Some(1_800_000_000_999_999_999)),
            (stamp(0, 0), None),
            (stamp(-1, 5), None),
            (other, None),
            (Vec::new(), None),
            // Cut short: by the kernel for lack of room, or by a length that is none.
            (stamp(2, 7)[..HEADER + 8].to_vec(), None),
            (stamp(2, 7)[..HEADER - 1].to_vec(), None),
            (vec![0; 64], None),
            (vec![0xff; 64], None),
        ];
        for (bytes, expected) in table {
            assert_eq!(stamp_of(&bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn transmissions_carry_their_byte_offset() {
        const STAMPED: u8 = libc::SO_EE_ORIGIN_TIMESTAMPING;
        let (ip, ip6) = ((libc::SOL_IP, libc::IP_RECVERR), (libc::SOL_IPV6, libc::IPV6_RECVERR));
        let both =
            |(level, kind), origin, info| [stamp(3, 4), error(level, kind, origin, info, 159)].concat();
        let found = Some(Transmission { byte: 159, at_ns: 3_000_000_004 });
        let table = [
            (both(ip, STAMPED, 0), found),
            (both(ip6, STAMPED, 0), found),
            // The other order.
            ([error(ip.0, ip.1, STAMPED, 0, 159), stamp(3, 4)].concat(), found),
            // Entered the queue of the device; acknowledged; an error of the network.
            (both(ip, STAMPED, 1), None),
            (both(ip, STAMPED, 2), None),
            (both(ip, libc::SO_EE_ORIGIN_ICMP, 0), None),
            (error(ip.0, ip.1, STAMPED, 0, 159), None),
            (stamp(3, 4), None),
            (both(ip, STAMPED, 0)[..64 + HEADER + 12].to_vec(), None),
        ];
        for (bytes, expected) in table {
            assert_eq!(transmission_of(&bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn transmit_requests_are_one_whole_message() {
        let control = Control::transmit_request();
        let asked: Vec<_> = messages(&control.bytes[..control.len]).collect();
        let flags = SEND_FLAGS.to_ne_bytes();
        assert_eq!(asked, [(libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags.as_slice())]);
    }
}
