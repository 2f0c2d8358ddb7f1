//! What there is to show: put up by the control thread, read by the thread that serves.
//!
//! Invariants: neither waits for the other longer than a pointer takes to copy; a page is written when it is first asked for, and once,
//! however many ask for it or follow it.

use super::hosts::Hosts;
use brunt_compat::front_end::Page;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The text of a page, or how it will be written.
pub(crate) type Text = LazyLock<Arc<[u8]>, Box<dyn FnOnce() -> Arc<[u8]> + Send>>;

/// A page of this type is followed: a client that requests it also gets what is published later.
pub(super) const EVENT_STREAM: &str = "text/event-stream";
/// Browsers that follow at once.
const FOLLOWERS_MAX: usize = 8;
/// Scrapers ask at least as often.
const WATCHED: Duration = Duration::from_secs(60);

/// The pages, and what is on them.
#[derive(Debug)]
pub(super) struct Pages {
    pages: Vec<Page>,
    hosts: Hosts,
    shown: Mutex<Shown>,
    /// Readable when something was put up.
    news: OwnedFd,
    followers: Mutex<usize>,
    /// When a page was last asked for.
    asked: Mutex<Option<Instant>>,
    /// There is a follower less.
    left: Condvar,
}

#[derive(Debug)]
struct Shown {
    texts: Arc<[Text]>,
    /// How often something was put up.
    version: u64,
    is_last: bool,
}

/// What is on a page.
pub(super) struct Content {
    pub text: Arc<[u8]>,
    pub content_type: &'static str,
    pub version: u64,
}

impl Pages {
    /// Pages with their texts, for who asks for one of these hosts.
    pub(super) fn new(pages: Vec<Page>, texts: Vec<Text>, hosts: Hosts) -> io::Result<Self> {
        assert_eq!(pages.len(), texts.len(), "a page without text");
        let shown = Mutex::new(Shown { texts: texts.into(), version: 0, is_last: false });
        let news = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self {
            pages,
            hosts,
            shown,
            news,
            followers: Mutex::new(0),
            asked: Mutex::new(None),
            left: Condvar::new(),
        })
    }

    /// May these pages be asked for by this value of `Host`?
    pub(super) fn are_of(&self, host: &str) -> bool {
        self.hosts.include(host)
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        // Nothing that can panic happens while it is held.
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts up other texts.
    pub(super) fn put(&self, texts: Vec<Text>) {
        assert_eq!(self.pages.len(), texts.len(), "a page without text");
        let mut shown = self.shown();
        (shown.texts, shown.version) = (texts.into(), shown.version + 1);
        drop(shown);
        self.announce();
    }

    /// Nothing else will be put up: waits, for so long at most, until those who follow have what is there.
    pub(super) fn finish(&self, within: Duration) {
        self.shown().is_last = true;
        self.announce();
        let followers = self.followers.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.left.wait_timeout_while(followers, within, |followers| *followers > 0));
    }

    fn announce(&self) {
        // It counts, and no run has so many seconds that it is full.
        let _ = rustix::io::write(&self.news, &1_u64.to_ne_bytes());
    }

    /// What is readable once something was put up.
    pub(super) fn news(&self) -> BorrowedFd<'_> {
        self.news.as_fd()
    }

    /// It is not any more.
    pub(super) fn read_news(&self) {
        let _ = rustix::io::read(&self.news, &mut [0; 8]);
    }

    /// Is there something newer than this version, and will there be?
    pub(super) fn is_newer(&self, version: u64) -> (bool, bool) {
        let shown = self.shown();
        (shown.version > version, !shown.is_last)
    }

    /// A place among those who follow, if there is one.
    pub(super) fn follow(self: &Arc<Self>) -> Option<Follower> {
        let mut followers = self.followers.lock().unwrap_or_else(PoisonError::into_inner);
        (*followers < FOLLOWERS_MAX).then(|| {
            *followers += 1;
            Follower(self.clone())
        })
    }

    /// Does anyone follow, or has anyone asked for a page lately?
    pub(super) fn is_watched(&self) -> bool {
        let asked = *self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.is_some_and(|asked| asked.elapsed() < WATCHED)
            || *self.followers.lock().unwrap_or_else(PoisonError::into_inner) > 0
    }

    /// The number of the page at a path.
    pub(super) fn find(&self, path: &str) -> Option<usize> {
        let at = |path: Option<&str>| self.pages.iter().position(|page| page.path == path);
        at(Some(path)).or_else(|| at(None))
    }

    /// What is on a page now.
    pub(super) fn page(&self, number: usize) -> Content {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        let (texts, version) = {
            let shown = self.shown();
            (shown.texts.clone(), shown.version)
        };
        Content { text: (*texts[number]).clone(), content_type: self.pages[number].content_type, version }
    }

    /// Where there are pages to read.
    pub(super) fn paths(&self) -> impl Iterator<Item = &'static str> {
        self.pages.iter().filter(|page| page.content_type != EVENT_STREAM).filter_map(|page| page.path)
    }
}

/// One who follows, until dropped.
#[derive(Debug)]
pub(super) struct Follower(Arc<Pages>);

impl Drop for Follower {
    fn drop(&mut self) {
        *self.0.followers.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_compat::front_end::Page;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn pages_are_rendered_on_request() {
        let written = Arc::new(AtomicU32::new(0));
        let texts = || -> Vec<Text> {
            let written = written.clone();
            let counted = move || format!("{}", written.fetch_add(1, Ordering::Relaxed)).into_bytes().into();
            vec![Text::new(Box::new(counted)), Text::new(Box::new(|| Arc::from(*b"other")))]
        };
        let page = |path| Page { path, content_type: "text/plain" };
        let board = Pages::new(vec![page(Some("/a")), page(None)], texts(), Hosts::of_test()).unwrap();
        let says =
            |path: &str| String::from_utf8(board.page(board.find(path).unwrap()).text.to_vec()).unwrap();
        board.put(texts());
        assert!(!board.is_watched());
        assert_eq!([says("/"), says("/a"), says("/a"), says("/a/")], ["other", "0", "0", "other"]);
        board.put(texts());
        assert!(board.is_watched());
        assert_eq!(says("/a"), "1");
        assert_eq!(board.paths().collect::<Vec<_>>(), ["/a"]);
    }

    #[test]
    fn the_last_page_is_waited_for() {
        let page = Page { path: Some("/"), content_type: EVENT_STREAM };
        let board = Arc::new(
            Pages::new(vec![page], vec![Text::new(Box::new(Arc::default))], Hosts::of_test()).unwrap(),
        );
        let mut followers: Vec<Follower> = (0..FOLLOWERS_MAX).filter_map(|_| board.follow()).collect();
        assert_eq!((followers.len(), board.follow().is_none()), (FOLLOWERS_MAX, true));
        assert!(board.is_watched());
        followers.pop();
        assert!(board.follow().is_some());
        assert_eq!(board.is_newer(0), (false, true));
        board.put(vec![Text::new(Box::new(Arc::default))]);
        assert_eq!((board.is_newer(0), board.is_newer(1)), ((true, true), (false, true)));
        let gone = std::thread::spawn(move || drop(followers));
        board.finish(Duration::from_secs(60));
        gone.join().unwrap();
        assert_eq!((board.is_newer(1), *board.followers.lock().unwrap()), ((false, false), 0));
        assert_eq!(board.paths().count(), 0);
    }
}
