//! The syscall client on epoll: one registration per connection, one read per event, one write per connection and
//! iteration.
//!
//! Edge-triggered: one read takes everything in flight on a connection, so no bytes are left without an event, and
//! the kernel need not poll each socket again (3 to 5 % of all at depth 1).

use super::load::{Load, Timer};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use std::net::TcpStream;

/// Event data of the timer.
const TIMER: u64 = u64::MAX;

/// Makes the load's requests until all are answered. Returns the system calls it took.
///
/// # Errors
/// The kernel refuses a call, or a server ends a connection.
pub(super) fn run(
    streams: &[TcpStream],
    load: &mut Load<'_>,
    timer: &mut Timer,
    reply_bytes: usize,
) -> Result<u64, Errno> {
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    for (index, stream) in streams.iter().enumerate() {
        epoll::add(&epoll, stream, EventData::new_u64(index as u64), EventFlags::IN | EventFlags::ET)?;
    }
    epoll::add(&epoll, &*timer, EventData::new_u64(TIMER), EventFlags::IN)?;
    timer.start()?;
    let mut syscalls = 0;
    for (index, stream) in streams.iter().enumerate() {
        syscalls += send(stream, load.begin(index as u32))?;
    }
    // One byte more than can be there, so that a read never ends for want of room.
    let mut buffer = vec![0_u8; reply_bytes + 1];
    let mut events: Vec<Event> = Vec::with_capacity(streams.len() + 1);
    while !load.is_over() {
        events.clear();
        syscalls += 1;
        match epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        for event in &events {
            let data = event.data.u64();
            if data == TIMER {
                if !timer.ring(load)? {
                    return Ok(syscalls);
                }
                continue;
            }
            syscalls += 1;
            match rustix::net::recv(&streams[data as usize], &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(Errno::CONNRESET),
                Ok((len, _)) => load.arrived(data as u32, len as u32),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
            while let Some((connection, bytes)) = load.next() {
                syscalls += send(&streams[connection as usize], bytes)?;
            }
        }
    }
    Ok(syscalls)
}

/// Sends everything: the socket blocks, and has room for a pipeline. Returns the number of calls.
#[inline]
fn send(stream: &TcpStream, mut bytes: &[u8]) -> Result<u64, Errno> {
    let mut syscalls = 0;
    while !bytes.is_empty() {
        syscalls += 1;
        match rustix::net::send(stream, bytes, SendFlags::NOSIGNAL) {
            Ok(len) => bytes = &bytes[len..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(syscalls)
}
