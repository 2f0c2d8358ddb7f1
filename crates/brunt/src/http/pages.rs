//! What there is to show, published by the control thread and read by the threads that serve, and the names of hosts by which it may be asked
//! for: a page elsewhere whose name was pointed at this host (DNS rebinding) could otherwise read what a browser here may.
//!
//! Ports are not looked at. Invariants: the control thread waits for none of them longer than a pointer takes to copy, but for the end; a page is written when it is
//! first requested, and once, however many clients request or follow it; a name that others control is never one of ours.

use crate::host::host_name;
use brunt_compat::front_end::Page;
use std::net::IpAddr;
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Browsers that follow at once.
pub(super) const FOLLOWERS_MAX: usize = 8;
/// How long the last page may take to those who follow: they have asked already, and to write it takes far less.
const LINGER: Duration = Duration::from_secs(2);
/// How long it may take to see that one who follows has left.
const LEAVING: Duration = Duration::from_millis(100);

/// The text of a page, or how it will be written.
pub(crate) type Text = LazyLock<Arc<[u8]>, Box<dyn FnOnce() -> Arc<[u8]> + Send>>;

/// A page of this type is followed: a client that requests it also gets what is published later.
pub(super) const EVENT_STREAM: &str = "text/event-stream";

/// The pages, and what is on them.
#[derive(Debug)]
pub(super) struct Pages {
    pages: Vec<Page>,
    hosts: Hosts,
    shown: Mutex<Shown>,
    /// A follower has left.
    left: Condvar,
    /// Held while a page is written.
    writes: Mutex<()>,
}

#[derive(Debug)]
struct Shown {
    texts: Arc<[Text]>,
    /// How often something was published.
    version: u64,
    is_last: bool,
    /// How many follow.
    followers: usize,
}

/// The place of one who follows.
#[derive(Debug)]
pub(super) struct Place<'a>(&'a Pages);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.shown().followers -= 1;
        self.0.left.notify_all();
    }
}

/// What is on a page.
#[derive(Debug)]
pub(super) struct Content {
    pub text: Arc<[u8]>,
    pub content_type: &'static str,
    pub version: u64,
}

/// What there is for a client that has the pages of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// Something newer was published.
    Newer,
    /// It has what there is; something else may be published.
    Nothing,
    /// It has what there is, and nothing else will be published.
    Over,
}

impl Pages {
    /// Pages with their texts, for who asks for one of these hosts.
    pub(super) fn new(pages: Vec<Page>, texts: Vec<Text>, hosts: Hosts) -> Self {
        assert_eq!(pages.len(), texts.len(), "a page without text");
        let shown = Mutex::new(Shown { texts: texts.into(), version: 0, is_last: false, followers: 0 });
        Self { pages, hosts, shown, left: Condvar::new(), writes: Mutex::default() }
    }

    /// May these pages be asked for by this value of `Host`?
    pub(super) fn are_of(&self, host: &str) -> bool {
        self.hosts.include(host)
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        // Nothing that can panic happens while it is held.
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes other texts.
    pub(super) fn put(&self, texts: Vec<Text>) {
        assert_eq!(self.pages.len(), texts.len(), "a page without text");
        let mut shown = self.shown();
        (shown.texts, shown.version) = (texts.into(), shown.version + 1);
    }

    /// Nothing else will be published: waits, not for long, until those who follow have what is there.
    pub(super) fn finish(&self) {
        let mut shown = self.shown();
        shown.is_last = true;
        // It is released meanwhile.
        drop(self.left.wait_timeout_while(shown, LINGER, |shown| shown.followers > 0));
    }

    /// A place to follow a page, unless as many follow as may. One who leaves at this time makes room.
    pub(super) fn place(&self) -> Option<Place<'_>> {
        let is_full = |shown: &mut Shown| shown.followers == FOLLOWERS_MAX;
        let waited = self.left.wait_timeout_while(self.shown(), LEAVING, is_full);
        let (mut shown, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        (!waited.timed_out()).then(|| {
            shown.followers += 1;
            Place(self)
        })
    }

    /// What there is for a client that has this version. Both answers are of one instant: between two questions the last pages could be
    /// published, and the client would leave without them.
    pub(super) fn news(&self, version: u64) -> News {
        let shown = self.shown();
        match (shown.version > version, shown.is_last) {
            (true, _) => News::Newer,
            (false, false) => News::Nothing,
            (false, true) => News::Over,
        }
    }

    /// The number of the page at a path.
    pub(super) fn find(&self, path: &str) -> Option<usize> {
        let at = |path: Option<&str>| self.pages.iter().position(|page| page.path == path);
        at(Some(path)).or_else(|| at(None))
    }

    /// What is on a page now.
    pub(super) fn content(&self, number: usize) -> Content {
        let (texts, version) = {
            let shown = self.shown();
            (shown.texts.clone(), shown.version)
        };
        let _one = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        Content { text: (*texts[number]).clone(), content_type: self.pages[number].content_type, version }
    }

    /// Where there are pages to read.
    pub(super) fn paths(&self) -> impl Iterator<Item = &'static str> {
        self.pages.iter().filter(|page| page.content_type != EVENT_STREAM).filter_map(|page| page.path)
    }
}

/// A text that is written when it is first asked for.
pub(crate) fn text(write: impl FnOnce() -> Arc<[u8]> + Send + 'static) -> Text {
    Text::new(Box::new(write))
}

/// The names of an endpoint.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    /// Where it listens.
    ip: IpAddr,
    /// The name of this host.
    name: String,
}

impl Hosts {
    /// Of an endpoint that listens at this address.
    pub(super) fn of(ip: IpAddr) -> Self {
        Self { ip, name: host_name() }
    }

    /// Of a test's endpoint on the loopback interface.
    #[cfg(test)]
    pub(super) fn of_test() -> Self {
        Self::of(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST))
    }

    /// May an endpoint be asked for by this value of `Host`? By a name or an address of the loopback interface and by the address where it
    /// listens; beyond the loopback interface by the name of this host; at all addresses by any address.
    pub(super) fn include(&self, host: &str) -> bool {
        let Some(host) = without_port(host) else { return false };
        let literal = host.strip_prefix('[').map_or(host, |rest| rest.strip_suffix(']').unwrap_or(rest));
        if let Ok(ip) = literal.parse::<IpAddr>() {
            let ip = ip.to_canonical();
            return ip.is_loopback() || ip == self.ip.to_canonical() || self.ip.is_unspecified();
        }
        let name = host.strip_suffix('.').unwrap_or(host);
        name.eq_ignore_ascii_case("localhost")
            || !self.ip.is_loopback() && !name.is_empty() && name.eq_ignore_ascii_case(&self.name)
    }
}

/// The host in front of its port, if that is a number.
fn without_port(host: &str) -> Option<&str> {
    let (name, port) = match host.rfind(':') {
        Some(colon) if !host[colon..].contains(']') => host.split_at(colon),
        _ => (host, ""),
    };
    port.bytes().skip(1).all(|byte| byte.is_ascii_digit()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::{cases, words};
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn pages_are_rendered_on_request() {
        let written = Arc::new(AtomicU32::new(0));
        let texts = || -> Vec<Text> {
            let written = written.clone();
            let counted = move || format!("{}", written.fetch_add(1, Ordering::Relaxed)).into_bytes().into();
            vec![text(counted), text(|| Arc::from(*b"other"))]
        };
        let page = |path| Page { path, content_type: "text/plain" };
        let pages = Pages::new(vec![page(Some("/a")), page(None)], texts(), Hosts::of_test());
        let says =
            |path: &str| String::from_utf8(pages.content(pages.find(path).unwrap()).text.to_vec()).unwrap();
        pages.put(texts());
        assert_eq!([says("/"), says("/a"), says("/a"), says("/a/")], ["other", "0", "0", "other"]);
        pages.put(texts());
        assert_eq!(says("/a"), "1");
        assert_eq!(pages.paths().collect::<Vec<_>>(), ["/a"]);
    }

    #[test]
    fn who_follows_has_the_last_page_before_the_end() {
        let page = Page { path: Some("/a"), content_type: EVENT_STREAM };
        let texts = || vec![text(Arc::default)];
        let pages = Pages::new(vec![page], texts(), Hosts::of_test());
        assert_eq!(pages.news(0), News::Nothing);
        pages.put(texts());
        pages.finish();
        assert_eq!((pages.news(0), pages.news(1)), (News::Newer, News::Over));
    }

    /// A thread publishes the last page and the end while this one asks.
    #[test]
    fn the_end_never_hides_a_page() {
        for _ in 0..2_000 {
            let page = Page { path: Some("/a"), content_type: EVENT_STREAM };
            let texts = || vec![text(Arc::default)];
            let pages = Pages::new(vec![page], texts(), Hosts::of_test());
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    pages.put(texts());
                    pages.finish();
                });
                let first = (0..).map(|_| pages.news(0)).find(|news| *news != News::Nothing);
                assert_eq!(first, Some(News::Newer));
            });
        }
    }

    #[test]
    fn names_that_others_control_are_refused() {
        // Where it listens, what may be asked for, and what may not.
        let table = r#"
127.0.0.1 | localhost LocalHost:9090 localhost. 127.0.0.1:9090 127.8.9.1 [::1]:9090 [::1] | "" :9090 evil.example evil.example:9090 localhost.evil.example 127.0.0.1.evil.example bench 192.0.2.1 localhost:x [::2]
192.0.2.1 | 192.0.2.1:9090 localhost bench:9090 BENCH | 192.0.2.2 evil.example
0.0.0.0 | 192.0.2.1:9090 [2001:db8::1]:9090 127.0.0.1 bench | evil.example bench.evil.example ""
:: | 192.0.2.1 [2001:db8::1] localhost:1 | evil.example"#;
        for [ip, included, refused] in cases(table) {
            let hosts = Hosts { ip: ip.parse().unwrap(), name: "bench".to_owned() };
            words(&included).iter().for_each(|host| assert!(hosts.include(host), "{host} at {ip}"));
            words(&refused).iter().for_each(|host| assert!(!hosts.include(host), "{host} at {ip}"));
        }
    }
}
