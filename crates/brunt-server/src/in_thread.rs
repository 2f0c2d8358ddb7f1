//! A server in a thread of the same process, for tests of clients.
//!
//! Not for measuring: that server would share the client's process, and with it its memory and its end. Invariant: when the
//! address is known, connections to it are accepted.

use crate::core::CoreOptions;
use crate::serve::{Listen, Options, serve};
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc;

/// What [`serve`] announces, as a message when it is whole.
struct Announcement {
    text: Vec<u8>,
    whole: mpsc::Sender<Vec<u8>>,
}

impl Write for Announcement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        // A caller that does not wait does not miss it.
        let _ = self.whole.send(std::mem::take(&mut self.text));
        Ok(())
    }
}

/// Starts a server on a free port of the loopback interface, in a thread that lives as long as the process. Returns its
/// address.
///
/// # Errors
/// The server did not start.
pub fn serve_in_thread(core: CoreOptions) -> io::Result<SocketAddr> {
    let listen = Listen::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    match serve_in_thread_at(Options { listen, core, ..Options::default() })? {
        Listen::Tcp(address) => Ok(address),
        Listen::Unix(_) => unreachable!("it was to listen at a port"),
    }
}

/// Starts a server at the address of the options, with datagrams if they ask for them. Returns the place with its port filled in. A socket file
/// is not removed, as the server never ends.
///
/// # Errors
/// The server did not start.
pub fn serve_in_thread_at(options: Options) -> io::Result<Listen> {
    let (whole, announced) = mpsc::channel();
    let thread = std::thread::Builder::new().name("reference-server".to_owned());
    let thread = thread.spawn(move || serve(options, None, &mut Announcement { text: Vec::new(), whole }))?;
    let Ok(text) = announced.recv() else {
        // It ends only by failing, and by what it failed it says.
        return Err(match thread.join() {
            Ok(Err(error)) => error,
            Ok(Ok(())) | Err(_) => io::Error::other("the reference server ended before it listened"),
        });
    };
    let text = String::from_utf8_lossy(&text);
    let place = text.trim().strip_prefix("listening on ").and_then(|place| place.parse().ok());
    place.ok_or_else(|| io::Error::other(format!("the reference server announced '{text}'")))
}
