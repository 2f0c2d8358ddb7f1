//! Many datagrams in one system call, in both directions: `sendmmsg` and `recvmmsg` on a connected socket of UDP.
//!
//! Invariant: every datagram is sent whole or not at all, and received into memory of its own.

#![expect(unsafe_code, reason = "no safe wrapper of these calls exists in what we depend on")]

use brunt_proto::memcached::udp::DATAGRAM_ROOM;
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};

/// Datagrams per sendmmsg or recvmmsg call.
pub(crate) const BATCH: usize = 32;

/// Received datagrams, each at a multiple of the maximum length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    lens: [u32; BATCH],
    count: usize,
    next: usize,
}

impl Received {
    pub(crate) const NOTHING: Self = Self { lens: [0; BATCH], count: 0, next: 0 };

    /// More may be in the socket.
    pub(crate) fn is_full(&self) -> bool {
        self.count == BATCH
    }

    /// Start and length of the next one.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<(usize, usize)> {
        if self.next == self.count {
            return None;
        }
        let at = self.next;
        self.next += 1;
        Some((at * DATAGRAM_ROOM, self.lens[at] as usize))
    }
}

/// Message headers, with one piece each.
type Headers = [MaybeUninit<libc::mmsghdr>; BATCH];
type Pieces = [MaybeUninit<libc::iovec>; BATCH];

const NO_HEADERS: Headers = [const { MaybeUninit::uninit() }; BATCH];
const NO_PIECES: Pieces = [const { MaybeUninit::uninit() }; BATCH];

/// Initialises a message header of this piece.
fn put_header(header: &mut MaybeUninit<libc::mmsghdr>, piece: &mut MaybeUninit<libc::iovec>) {
    header.write(libc::mmsghdr {
        msg_hdr: libc::msghdr {
            msg_name: std::ptr::null_mut(),
            msg_namelen: 0,
            msg_iov: piece.as_mut_ptr(),
            msg_iovlen: 1,
            msg_control: std::ptr::null_mut(),
            msg_controllen: 0,
            msg_flags: 0,
        },
        msg_len: 0,
    });
}

/// Receives available datagrams into `memory`, which has room for [`BATCH`].
pub(crate) fn receive(socket: impl AsFd, memory: &mut [u8]) -> Result<Received, Errno> {
    let (mut headers, mut pieces) = (NO_HEADERS, NO_PIECES);
    let count = memory.len().min(BATCH * DATAGRAM_ROOM) / DATAGRAM_ROOM;
    for ((header, piece), room) in
        headers.iter_mut().zip(&mut pieces).zip(memory.chunks_exact_mut(DATAGRAM_ROOM))
    {
        piece.write(libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() });
        put_header(header, piece);
    }
    // SAFETY: the first `count` headers were written, each with a piece that was and whose memory is borrowed exclusively for as long
    // as the call takes. The timeout is none, and nothing is kept.
    let received = unsafe {
        libc::recvmmsg(
            socket.as_fd().as_raw_fd(),
            headers.as_mut_ptr().cast(),
            count as libc::c_uint,
            libc::MSG_DONTWAIT,
            std::ptr::null_mut(),
        )
    };
    let received = usize::try_from(received).map_err(|_| last_errno())?;
    let mut result = Received { count: received, ..Received::NOTHING };
    for (len, header) in result.lens.iter_mut().zip(&headers[..received]) {
        // SAFETY: those that were received are among those that were written.
        *len = unsafe { header.assume_init_ref() }.msg_len;
    }
    Ok(result)
}

/// Sends datagrams, which end at `ends`. Returns the bytes of those taken before the first failure; an error only
/// if the first one failed.
pub(crate) fn send(
    socket: impl AsFd,
    bytes: &[u8],
    ends: &[u32],
    syscalls: &mut u64,
) -> Result<usize, Errno> {
    let mut taken = 0;
    for batch in ends.chunks(BATCH) {
        *syscalls += 1;
        match send_batch(&socket, bytes, taken, batch) {
            Ok(0) => return Ok(taken),
            Ok(sent) => {
                taken = batch[sent - 1] as usize;
                if sent < batch.len() {
                    return Ok(taken);
                }
            }
            Err(error) if taken == 0 => return Err(error),
            // A pending socket error is cleared by reporting it; a later send reports its own.
            Err(_) => return Ok(taken),
        }
    }
    Ok(taken)
}

/// Sends one batch. Returns how many were taken.
fn send_batch(socket: &impl AsFd, bytes: &[u8], from: usize, ends: &[u32]) -> Result<usize, Errno> {
    let (mut headers, mut pieces) = (NO_HEADERS, NO_PIECES);
    let mut from = from;
    for ((header, piece), end) in headers.iter_mut().zip(&mut pieces).zip(ends) {
        let datagram = &bytes[from..*end as usize];
        from = *end as usize;
        piece.write(libc::iovec { iov_base: datagram.as_ptr().cast_mut().cast(), iov_len: datagram.len() });
        put_header(header, piece);
    }
    // SAFETY: as many headers were written as `ends` has, which is no more than there are; each has a piece that was written, of memory
    // that is borrowed for as long as the call takes and that a send only reads.
    let sent = unsafe {
        libc::sendmmsg(
            socket.as_fd().as_raw_fd(),
            headers.as_mut_ptr().cast(),
            ends.len() as libc::c_uint,
            libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT,
        )
    };
    usize::try_from(sent).map_err(|_| last_errno())
}

fn last_errno() -> Errno {
    Errno::from_raw_os_error(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    fn pair() -> [UdpSocket; 2] {
        let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        sockets[0].connect(sockets[1].local_addr().unwrap()).unwrap();
        sockets[1].connect(sockets[0].local_addr().unwrap()).unwrap();
        sockets
    }

    #[test]
    fn datagrams_keep_their_bounds() {
        let [here, there] = pair();
        // More than a call takes, none of them as long as the one before.
        let count = BATCH + 8;
        let bytes: Vec<u8> = (0..count).flat_map(|at| vec![at as u8; at + 1]).collect();
        let ends: Vec<u32> = (1..=count as u32).map(|count| count * (count + 1) / 2).collect();
        let mut syscalls = 0;
        assert_eq!(send(&here, &bytes, &ends, &mut syscalls), Ok(bytes.len()));
        assert_eq!(syscalls, 2);
        let mut memory = vec![0; BATCH * DATAGRAM_ROOM];
        let mut seen = 0;
        for expected in [BATCH, 8] {
            let mut received = receive(&there, &mut memory).unwrap();
            assert_eq!((received.count, received.is_full()), (expected, expected == BATCH));
            while let Some((start, len)) = received.next() {
                assert_eq!(memory[start..start + len], vec![seen as u8; seen + 1]);
                seen += 1;
            }
        }
        assert_eq!(seen, count);
        assert!(matches!(receive(&there, &mut memory), Err(Errno::AGAIN)));
    }

    #[test]
    fn missing_listeners_show_with_the_next_call() {
        let [here, there] = pair();
        drop(there);
        let send = |ends: &[u32]| send(&here, b"ab", ends, &mut 0);
        assert_eq!(send(&[2]), Ok(2));
        assert_eq!(send(&[1, 2]), Err(Errno::CONNREFUSED), "of the one before");
        assert_eq!(send(&[1, 2]), Ok(1), "the second meets the refusal of the first");
    }
}
