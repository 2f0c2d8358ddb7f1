//! What there is to show: put up by the control thread, read by the thread that serves.
//!
//! Invariants: neither waits for the other longer than a pointer takes to copy; a page is written when it is first asked for, and once,
//! however many ask for it.

use brunt_compat::front_end::Page;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// The text of a page, or how it will be written.
pub(crate) type Text = LazyLock<Arc<[u8]>, Box<dyn FnOnce() -> Arc<[u8]> + Send>>;

/// The pages, and what is on them.
#[derive(Debug)]
pub(super) struct Pages {
    pages: Vec<Page>,
    texts: Mutex<Arc<[Text]>>,
}

impl Pages {
    /// Pages with their texts.
    pub(super) fn new(pages: Vec<Page>, texts: Vec<Text>) -> Self {
        assert_eq!(pages.len(), texts.len(), "a page without text");
        Self { pages, texts: Mutex::new(texts.into()) }
    }

    /// Puts up other texts.
    pub(super) fn put(&self, texts: Vec<Text>) {
        assert_eq!(self.pages.len(), texts.len(), "a page without text");
        // Nothing that can panic happens while it is held, here and below.
        *self.texts.lock().unwrap_or_else(PoisonError::into_inner) = texts.into();
    }

    /// The number of the page at a path.
    pub(super) fn find(&self, path: &str) -> Option<usize> {
        let at = |path: Option<&str>| self.pages.iter().position(|page| page.path == path);
        at(Some(path)).or_else(|| at(None))
    }

    /// What is on a page now, and what it is.
    pub(super) fn page(&self, number: usize) -> (Arc<[u8]>, &'static str) {
        let texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ((*texts[number]).clone(), self.pages[number].content_type)
    }

    /// Where there are pages.
    pub(super) fn paths(&self) -> impl Iterator<Item = &'static str> {
        self.pages.iter().filter_map(|page| page.path)
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
        let board = Pages::new(vec![page(Some("/a")), page(None)], texts());
        let says = |path: &str| String::from_utf8(board.page(board.find(path).unwrap()).0.to_vec()).unwrap();
        board.put(texts());
        assert_eq!([says("/"), says("/a"), says("/a"), says("/a/")], ["other", "0", "0", "other"]);
        board.put(texts());
        assert_eq!(says("/a"), "1");
        assert_eq!(board.paths().collect::<Vec<_>>(), ["/a"]);
    }
}
