//! An HTTP endpoint: pages that the control thread puts up, shown to clients while a run goes on.
//!
//! Not what is on them: that is [`view`]'s for `--http`, and a front end's for another tool's option. Invariant: the control thread
//! waits for no client, and no worker knows of any; everything but putting up happens on a thread that ends with the process.

mod address;
mod connection;
mod hosts;
mod pages;
mod request;
mod server;
mod view;

pub(crate) use address::HttpAddress;
use pages::EVENT_STREAM;
pub(crate) use pages::Text;
pub(crate) use view::HttpView;

use crate::exit::Failure;
use brunt_compat::front_end::Page;
use brunt_engine::system_error::cannot;
use hosts::Hosts;
use pages::Pages;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

/// How long the last page may take to those who follow: they have asked already, and nothing of it is written anew.
const LINGER: Duration = Duration::from_secs(2);

/// Pages, and where they are served.
pub(crate) struct Endpoint {
    board: Arc<Pages>,
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
        let refused = |error: &dyn std::fmt::Display| {
            Failure::usage(format!(
                "invalid value '{address}' for {option} ({error}): expected an address of this host and a free port, or port 0 for any that is free"
            ))
        };
        let listener = TcpListener::bind(address.0).map_err(|error| refused(&error))?;
        let serving = |error| Failure::failed(cannot(&format!("serve pages at {option} {address}"))(error));
        let board = Arc::new(Pages::new(pages, texts, Hosts::of(address.0.ip())).map_err(serving)?);
        let (has_fixed_port, address) = (address.has_fixed_port(), listener.local_addr().map_err(serving)?);
        server::start(listener, board.clone()).map_err(serving)?;
        Ok(Self { board, address, has_fixed_port })
    }

    /// Puts up other texts, one for each page.
    pub(crate) fn put(&self, texts: Vec<Text>) {
        self.board.put(texts);
    }

    /// Has anyone looked lately?
    pub(crate) fn is_watched(&self) -> bool {
        self.board.is_watched()
    }

    /// A sentence with the URLs of the pages, and whether it must be printed: a user who gave no port does not know them.
    pub(crate) fn note(&self) -> (String, bool) {
        let address = self.address;
        let reach = if address.ip().is_loopback() {
            ""
        } else {
            "; other hosts can read the plan and its numbers there"
        };
        let pages: Vec<String> = self.board.paths().map(|path| format!("http://{address}{path}")).collect();
        (format!("{} show the run while it goes on{reach}", listed(&pages)), !self.has_fixed_port)
    }

    /// Nothing else will be put up: waits, not for long, until those who follow have what is there.
    pub(crate) fn finish(&self) {
        self.board.finish(LINGER);
    }
}

/// `a, b and c`.
fn listed(names: &[impl AsRef<str>]) -> String {
    let mut list = String::new();
    for (index, name) in names.iter().enumerate() {
        let divider = if index + 1 < names.len() { ", " } else { " and " };
        list.push_str(if index == 0 { "" } else { divider });
        list.push_str(name.as_ref());
    }
    list
}
