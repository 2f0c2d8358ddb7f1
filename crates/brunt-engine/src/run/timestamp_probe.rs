//! Probes kernel timestamps on a connection over loopback.
//!
//! Other interfaces depend on their drivers, which take the send timestamps.

use crate::io::kernel_stamps::{self, Control};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{self, IoSlice, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::Duration;

/// The kernel begins to stamp received packets some time after the first socket asked for it.
const ROUNDS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(5);
/// Nothing on loopback takes longer, however busy the host.
const PATIENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Do timestamps of both directions come over loopback? Tried once in a process; the error names what is missing.
pub fn timestamps_work() -> Result<(), &'static str> {
    static FOUND: OnceLock<Result<(), String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| probe_timestamps().map_err(|error| error.to_string()));
    found.as_ref().copied().map_err(String::as_str)
}

/// Sends bytes over loopback and reads the timestamps of both directions.
fn probe_timestamps() -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut client = TcpStream::connect(listener.local_addr()?)?;
    let (mut server, _) = listener.accept()?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    kernel_stamps::switch_on(&client).map_err(|errno| unsupported(format!("SO_TIMESTAMPING: {errno}")))?;
    for round in 0..ROUNDS {
        if is_stamped(&mut client, &mut server, round)? {
            return Ok(());
        }
        std::thread::park_timeout(PAUSE);
    }
    Err(unsupported("no timestamps of received packets"))
}

/// Sends one byte each way and checks both timestamps. Sends must be stamped from the first byte on.
fn is_stamped(client: &mut TcpStream, server: &mut TcpStream, round: u32) -> io::Result<bool> {
    kernel_stamps::send(&*client, &[IoSlice::new(b"?")])?;
    await_events(client, PollFlags::ERR)?;
    let transmission = match kernel_stamps::take_transmission(&*client) {
        Ok(Some(transmission)) => transmission,
        Ok(None) | Err(Errno::AGAIN) => return Err(unsupported("no timestamps of sent packets")),
        Err(errno) => return Err(unsupported(format!("the error queue: {errno}"))),
    };
    if transmission.byte != round {
        let said = format!("timestamp of byte {} for byte {round}", transmission.byte);
        return Err(unsupported(said));
    }
    server.write_all(b"!")?;
    await_events(client, PollFlags::IN)?;
    let mut control = Control::EMPTY;
    let received = kernel_stamps::receive(&*client, &mut [0; 16], &mut control)?;
    Ok(received > 0 && control.received_ns().is_some_and(|received_ns| received_ns >= transmission.at_ns))
}

/// Waits for one of these events, up to a second.
fn await_events(socket: &impl AsFd, events: PollFlags) -> io::Result<()> {
    poll(&mut [PollFd::new(socket, events)], Some(&PATIENCE))?;
    Ok(())
}

fn unsupported(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, reason.into())
}

#[cfg(test)]
mod tests {
    /// Kernels of the tests have timestamps; if one has none, this test says so first.
    #[test]
    fn stamps_are_taken_on_loopback() {
        super::timestamps_work().unwrap();
    }
}
