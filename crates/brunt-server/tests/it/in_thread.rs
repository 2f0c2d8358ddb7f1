//! A server in a thread of the test process, which lives as long as that; the tests of other crates start it with this, too.
//!
//! Not for measuring: it shares the process of the client.

use brunt_server::{CoreOptions, Listen, Options, serve};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc;

/// Of a server at a free port of the loopback interface.
pub(crate) fn options(core: CoreOptions) -> Options {
    Options {
        listen: Listen::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
        datagrams: false,
        core,
        log: None,
        die_with_parent: false,
        output_buffer_limit: 64 << 20,
        busy_poll: false,
    }
}

/// Starts it. Returns its address: connections to it are accepted.
pub(crate) fn serve_in_thread(options: Options) -> SocketAddr {
    let (sender, announced) = mpsc::channel();
    let announce = move |place: &Listen| sender.send(place.clone()).map_err(std::io::Error::other);
    std::thread::spawn(move || serve(options, None, announce));
    match announced.recv() {
        Ok(Listen::Tcp(address)) => address,
        other => panic!("the reference server has no address: {other:?}"),
    }
}
