//! An HTTP endpoint: pages that the control thread puts up, shown to clients while a run goes on.
//!
//! Not what is on them: that is [`view`]'s for `--http`, and a front end's for another tool's option. Host names are rejected as addresses to
//! listen at, as a name can have several. Invariants: the control thread waits for no client, and no worker knows of any; everything but putting
//! up happens on threads that end with the process; other hosts can connect only if an address is given explicitly.
//! No library keeps what [`server`] does against hostile clients: those without `async` have time limits for each read or write, if any, which
//! a byte now and then puts off, and let new clients wait for slow ones.

mod pages;
mod server;
mod view;

pub(crate) use pages::{Text, text};
pub(crate) use view::{HttpView, written};

use crate::exit::Failure;
use brunt_compat::front_end::Page;
use brunt_engine::process::cannot;
use brunt_plan::quantity::listed;
use pages::{Hosts, Pages};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::str::FromStr;
use std::sync::Arc;
use std::{fmt, io};

/// Pages, and where they are served.
pub(crate) struct Endpoint {
    pages: Arc<Pages>,
    address: SocketAddr,
    has_fixed_port: bool,
}

impl Endpoint {
    /// Listens where this option says; each page begins with its text.
    pub(crate) fn open(
        option: &str,
        address: HttpAddress,
        pages: Vec<Page>,
        texts: Vec<Text>,
    ) -> Result<Self, Failure> {
        let refused = |error: io::Error| {
            Failure::usage(format!(
                "invalid value '{address}' for {option} ({error}): expected an address of this host and a free port, or port 0 for any that is free"
            ))
        };
        let listener = TcpListener::bind(address.0).map_err(refused)?;
        let serving = |error| Failure::failed(cannot(&format!("serve pages at {option} {address}"))(error));
        let pages = Arc::new(Pages::new(pages, texts, Hosts::of(address.0.ip())));
        // Otherwise the kernel chooses one, which must be printed.
        let has_fixed_port = address.0.port() != 0;
        let address = listener.local_addr().map_err(serving)?;
        server::start(listener, pages.clone(), server::STEP_MAX).map_err(serving)?;
        Ok(Self { pages, address, has_fixed_port })
    }

    /// Puts up other texts, one for each page.
    pub(crate) fn put(&self, texts: Vec<Text>) {
        self.pages.put(texts);
    }

    /// A sentence with the URLs of the pages, and whether it must be printed: a user who gave no port does not know them.
    pub(crate) fn note(&self) -> (String, bool) {
        let address = self.address;
        let reach = if address.ip().is_loopback() {
            ""
        } else {
            "; other hosts can read the plan and its numbers there"
        };
        let pages: Vec<String> = self.pages.paths().map(|path| format!("http://{address}{path}")).collect();
        (format!("{} show the run while it goes on{reach}", listed(&pages)), !self.has_fixed_port)
    }

    /// Nothing else will be put up: waits, not for long, until those who follow have what is there.
    pub(crate) fn finish(&self) {
        self.pages.finish();
    }
}

/// An address to listen at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HttpAddress(SocketAddr);

impl HttpAddress {
    /// The syntax that error messages name.
    pub(crate) const ACCEPTED: &str = "a port of this host alone, such as 9090 (0 for any that is free), or an address with a port, such as 0.0.0.0:9090";
}

impl FromStr for HttpAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let port = |text: &str| {
            text.strip_prefix("localhost").unwrap_or(text).strip_prefix(':').unwrap_or(text).parse()
        };
        let loopback = |port: u16| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        let address = port(text).map(loopback).or_else(|_| text.parse().map_err(|_| ()));
        address.map(Self).map_err(|()| format!("expected {}", Self::ACCEPTED))
    }
}

impl fmt::Display for HttpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_hosts_need_an_explicit_address() {
        let table = [
            ("9090", Some("127.0.0.1:9090")),
            (":9090", Some("127.0.0.1:9090")),
            ("localhost:9090", Some("127.0.0.1:9090")),
            ("0", Some("127.0.0.1:0")),
            ("127.0.0.2:80", Some("127.0.0.2:80")),
            ("0.0.0.0:9090", Some("0.0.0.0:9090")),
            ("[::1]:9090", Some("[::1]:9090")),
            ("[::]:0", Some("[::]:0")),
            ("", None),
            (":", None),
            ("65536", None),
            ("-1", None),
            ("0.0.0.0", None),
            ("::1", None),
            ("localhost", None),
            ("localhost9090", None),
            ("example.com:9090", None),
            ("http://127.0.0.1:9090", None),
        ];
        for (text, expected) in table {
            let found = text.parse::<HttpAddress>().ok().map(|address| address.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}
