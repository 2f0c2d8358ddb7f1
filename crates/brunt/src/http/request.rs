//! The head of a request: which page is asked for, or why there is none.
//!
//! Not a connection and not a page. Bodies of requests are not read. Invariant: whatever the bytes are, there is an answer as soon as no
//! further byte can make a request of them.

use super::pages::Pages;
use brunt_plan::quantity::listed;
use httparse::{EMPTY_HEADER, Error, Status};

/// A head is no longer: what browsers send takes a tenth of it.
pub(super) const HEAD_MAX: usize = 8 << 10;
const HEADERS_MAX: usize = 64;

/// What became of the bytes of a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// There is more to come.
    Unfinished,
    /// The page of this number is asked for.
    Page { page: usize, is_head_only: bool },
    /// There is none.
    Refused { refusal: RequestError, is_head_only: bool },
}

/// Why there is no page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestError {
    /// These bytes are no request.
    NoRequest,
    /// It does not say which host it is for, or says it twice.
    NoHost,
    /// It is for a host of another name.
    OtherHost,
    /// Nothing lies there.
    NoPage,
    /// Pages can be read only.
    NoMethod,
    /// As many follow as may.
    TooMany,
    /// It did not come in time.
    TooSlow,
    /// It is longer, or has more header fields, than any that asks for a page.
    TooLong,
}

impl RequestError {
    /// The status line's number and words, and a text for who asked.
    pub(super) fn response(self, pages: &Pages) -> (&'static str, String) {
        let (status, text) = match self {
            Self::NoRequest => ("400 Bad Request", "this is no HTTP request"),
            Self::NoHost => ("400 Bad Request", "the request must have one Host"),
            Self::NoPage => {
                let paths: Vec<_> = pages.paths().collect();
                return ("404 Not Found", format!("nothing is here; there are {}\n", listed(&paths)));
            }
            Self::NoMethod => ("405 Method Not Allowed", "pages can only be read: GET or HEAD"),
            Self::TooSlow => ("408 Request Timeout", "the request did not come in time"),
            Self::OtherHost => (
                "421 Misdirected Request",
                "this host answers to localhost and to the address where it listens, not to the name that was asked for",
            ),
            Self::TooLong => {
                let text = format!(
                    "the request is longer than {HEAD_MAX} bytes or has more than {HEADERS_MAX} header fields\n"
                );
                return ("431 Request Header Fields Too Large", text);
            }
            Self::TooMany => ("503 Service Unavailable", "as many browsers follow the run as may"),
        };
        (status, format!("{text}\n"))
    }
}

/// Reads what has come of a head.
pub(super) fn read(bytes: &[u8], pages: &Pages) -> Head {
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let parsed = request.parse(bytes);
    let is_head_only = request.method == Some("HEAD");
    let refused = |refusal| Head::Refused { refusal, is_head_only };
    match parsed {
        Ok(Status::Partial) if bytes.len() < HEAD_MAX => Head::Unfinished,
        Ok(Status::Partial) | Err(Error::TooManyHeaders) => refused(RequestError::TooLong),
        Err(_) => refused(RequestError::NoRequest),
        Ok(Status::Complete(_)) => match (request.method, request.path) {
            (_, Some(target)) if let Err(refusal) = check_host(&request, target, pages) => refused(refusal),
            (Some("GET" | "HEAD"), Some(target)) => match path_of(target).and_then(|path| pages.find(path)) {
                Some(page) => Head::Page { page, is_head_only },
                None => refused(RequestError::NoPage),
            },
            _ => refused(RequestError::NoMethod),
        },
    }
}

/// Is the request for this host? What a target names counts in place of the header; before HTTP/1.1 neither is needed.
fn check_host(request: &httparse::Request<'_, '_>, target: &str, pages: &Pages) -> Result<(), RequestError> {
    let mut named = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("Host"));
    let host = match (named.next(), named.next()) {
        (None, _) if request.version == Some(0) => None,
        (Some(header), None) => Some(str::from_utf8(header.value).map_err(|_| RequestError::NoHost)?.trim()),
        _ => return Err(RequestError::NoHost),
    };
    let in_target =
        target.strip_prefix("http://").map(|rest| rest.split(['/', '?', '#']).next().unwrap_or(rest));
    match in_target.or(host).is_none_or(|host| pages.are_of(host)) {
        true => Ok(()),
        false => Err(RequestError::OtherHost),
    }
}

/// The path of a target, which may have a query, and in front of the path the host, as who asks a proxy writes it.
fn path_of(target: &str) -> Option<&str> {
    let path = match target.strip_prefix("http://") {
        Some(rest) => &rest[rest.find('/')?..],
        None => target,
    };
    path.split(['?', '#']).next()
}

#[cfg(test)]
mod tests {
    use super::super::hosts::Hosts;
    use super::super::text;
    use super::*;
    use brunt_compat::front_end::Page;
    use brunt_plan::split_mix::output;
    use std::sync::Arc;

    const METRICS: usize = 0;
    const SUMMARY: usize = 1;

    fn pages(paths: &[Option<&'static str>]) -> Pages {
        let page = |path: &Option<&'static str>| Page { path: *path, content_type: "text/plain" };
        let texts = paths.iter().map(|_| text(Arc::default)).collect();
        Pages::new(paths.iter().map(page).collect(), texts, Hosts::of_test()).unwrap()
    }

    fn read(bytes: &[u8]) -> Head {
        super::read(bytes, &pages(&[Some("/metrics"), Some("/summary.json")]))
    }

    #[test]
    fn request_heads_are_parsed() {
        let page = |page| Head::Page { page, is_head_only: false };
        let refused = |refusal| Head::Refused { refusal, is_head_only: false };
        let long = format!("GET /metrics HTTP/1.1\r\nA: {}", "a".repeat(HEAD_MAX));
        let many = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(HEADERS_MAX + 1));
        let table: [(&str, Head); 29] = [
            ("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", page(METRICS)),
            ("GET /metrics HTTP/1.0\r\n\r\n", page(METRICS)),
            ("GET /metrics HTTP/1.1\nHost: 127.0.0.1:9090\n\n", page(METRICS)),
            ("GET /summary.json?a=b HTTP/1.1\r\nHost: localhost\r\n\r\n", page(SUMMARY)),
            ("GET http://127.0.0.1:9090/metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", page(METRICS)),
            ("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\nGET /more", page(METRICS)),
            (
                "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
                Head::Page { page: METRICS, is_head_only: true },
            ),
            (
                "HEAD /other HTTP/1.1\r\nHost: localhost\r\n\r\n",
                Head::Refused { refusal: RequestError::NoPage, is_head_only: true },
            ),
            ("", Head::Unfinished),
            ("G", Head::Unfinished),
            ("GET /metrics HTTP/1.1\r\nHost: localhost\r\n", Head::Unfinished),
            ("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", refused(RequestError::NoPage)),
            ("GET /metrics/ HTTP/1.1\r\nHost: localhost\r\n\r\n", refused(RequestError::NoPage)),
            ("GET /METRICS HTTP/1.1\r\nHost: localhost\r\n\r\n", refused(RequestError::NoPage)),
            ("GET /../metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", refused(RequestError::NoPage)),
            ("GET http://127.0.0.1 HTTP/1.1\r\nHost: localhost\r\n\r\n", refused(RequestError::NoPage)),
            (
                "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc",
                refused(RequestError::NoMethod),
            ),
            ("OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", refused(RequestError::NoMethod)),
            ("GET /metrics HTTP/1.1\r\n\r\n", refused(RequestError::NoHost)),
            (
                "GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
                refused(RequestError::NoHost),
            ),
            ("GET /metrics HTTP/1.1\r\nHost: evil.example:9090\r\n\r\n", refused(RequestError::OtherHost)),
            ("GET /other HTTP/1.0\r\nHost: evil.example\r\n\r\n", refused(RequestError::OtherHost)),
            (
                "GET http://evil.example/metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
                refused(RequestError::OtherHost),
            ),
            ("get stats\r\n", refused(RequestError::NoRequest)),
            ("GET /metrics\r\n\r\n", refused(RequestError::NoRequest)),
            ("\u{16}\u{3}\u{1}\u{2}", refused(RequestError::NoRequest)),
            ("GET /metrics HTTP/1.1\r\nno header\r\n\r\n", refused(RequestError::NoRequest)),
            (&long, refused(RequestError::TooLong)),
            (&many, refused(RequestError::TooLong)),
        ];
        for (bytes, expected) in table {
            let shown: String = bytes.chars().take(60).collect();
            assert_eq!(read(bytes.as_bytes()), expected, "{shown:?}");
        }
    }

    #[test]
    fn both_limits_of_a_head_are_named() {
        let (_, text) = RequestError::TooLong.response(&pages(&[]));
        assert_eq!(text, "the request is longer than 8192 bytes or has more than 64 header fields\n");
    }

    /// Wherever a request is cut, nothing is decided before its last byte.
    #[test]
    fn fragmented_heads_are_parsed() {
        let whole = b"GET /summary.json HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n";
        for len in 0..whole.len() {
            assert_eq!(read(&whole[..len]), Head::Unfinished, "{len}");
        }
    }

    #[test]
    fn a_page_without_path_matches_all_paths() {
        let pages = pages(&[Some("/metrics"), None]);
        for (target, page) in
            [("/metrics", 0), ("/", 1), ("/metrics/", 1), ("/a?b", 1), ("http://localhost/metrics", 0)]
        {
            let head = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
            assert_eq!(
                super::read(head.as_bytes(), &pages),
                Head::Page { page, is_head_only: false },
                "{target}"
            );
        }
    }

    /// Arbitrary bytes: what is decided once stays, whatever follows, and at the longest head everything is.
    #[test]
    fn decisions_are_final() {
        let whole =
            b"HEAD http://a:1/metrics?b#c HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\nGET / HTTP/1.1\r\n\r\n";
        for number in 0..300 {
            let below = |draw, bound: usize| (output(number, draw) % bound as u64) as usize;
            let mut bytes = whole.to_vec();
            for change in 0..=below(0, 4) as u64 {
                let [at, to] = [1, 2].map(|draw| below(4 * change + draw, bytes.len()));
                match below(4 * change + 3, 4) {
                    0 => bytes[at] = to as u8 * 3,
                    1 => bytes[at] = b"\r\n\0 :/\xff"[to % 7],
                    2 => drop(bytes.remove(at)),
                    _ => bytes.insert(at, bytes[to]),
                }
            }
            let heads: Vec<Head> = (0..=bytes.len()).map(|len| read(&bytes[..len])).collect();
            let is_final = |pair: &[Head]| pair[0] == Head::Unfinished || pair[0] == pair[1];
            assert!(heads.windows(2).all(is_final), "{number}: {}", bytes.escape_ascii());
            bytes.resize(HEAD_MAX, b'a');
            assert_ne!(read(&bytes), Head::Unfinished, "{number}: {}", bytes.escape_ascii());
        }
    }
}
