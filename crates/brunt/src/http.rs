//! An HTTP endpoint: pages that the control thread puts up, shown to clients while a run goes on.
//!
//! Not what is on them: that is [`view`]'s for `--http`, and a front end's for another tool's option. Invariant: the control thread
//! waits for no client, and no worker knows of any; everything but putting up happens on a thread that ends with the process.
//! No library keeps what [`server`] does against hostile clients: those without `async` have time limits for each read or write, if any, which
//! a byte now and then puts off, and let new clients wait for slow ones.

mod address;
mod connection;
mod hosts;
mod pages;
mod request;
mod server;
mod view;

pub(crate) use address::HttpAddress;
pub(crate) use pages::Text;
use pages::{EVENT_STREAM, Pages};
pub(crate) use view::{HttpView, written};

use crate::exit::Failure;
use brunt_compat::front_end::Page;
use brunt_engine::process::cannot;
use brunt_plan::quantity::listed;
use hosts::Hosts;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Pages, and where they are served.
pub(crate) struct Endpoint {
    pages: Arc<Pages>,
    address: SocketAddr,
    has_fixed_port: bool,
    thread: Option<JoinHandle<()>>,
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
        let pages = Arc::new(Pages::new(pages, texts, Hosts::of(address.0.ip())).map_err(serving)?);
        let (has_fixed_port, address) = (address.has_fixed_port(), listener.local_addr().map_err(serving)?);
        let thread = Some(server::start(listener, pages.clone(), server::STEP_MAX).map_err(serving)?);
        Ok(Self { pages, address, has_fixed_port, thread })
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
    pub(crate) fn finish(&mut self) {
        self.pages.finish();
        self.thread.take().map(JoinHandle::join);
    }
}

/// A text that is written when it is first asked for.
pub(crate) fn text(write: impl FnOnce() -> Arc<[u8]> + Send + 'static) -> Text {
    Text::new(Box::new(write))
}
