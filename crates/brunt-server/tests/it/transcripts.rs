//! Every command as a transcript: what is sent, what comes back, on a fresh server.

use crate::{Random, assert_same, cases, connected, drain, meta};
use brunt_server::core::{Core, CoreOptions, End};
use proptest::prelude::*;

/// `\n` stands for the line end of the protocol, `␊` for a line feed alone, `§` for a key of 250 letters.
fn bytes(text: &str) -> Vec<u8> {
    text.replace('\n', "\r\n").replace('␊', "\n").replace('§', &"k".repeat(250)).into_bytes()
}

/// What memcached 1.6 and this server answer alike: (sent, answered).
const SHARED: &str = r"
    // Retrieval. (With a bad key behind good ones memcached 1.6.18 takes back what it has found, and with it the replies
    // to requests before this one that it has not sent yet; hence no reply is before that transcript's.)
    get a\n => END\n
    set a 7 0 3\nabc\nget a\n => STORED\nVALUE a 7 3\nabc\nEND\n
    set a 1 0 1\nx\nget a no a\n => STORED\nVALUE a 1 1\nx\nVALUE a 1 1\nx\nEND\n
    set a 0 0 1\nx\nset b 0 0 1\ny\ngets b a\n => STORED\nSTORED\nVALUE b 0 1 2\ny\nVALUE a 0 1 1\nx\nEND\n
    set a 0 0 0\n\nget a\n => STORED\nVALUE a 0 0\n\nEND\n
    set § 0 0 1\nx\nget §\n => STORED\nVALUE § 0 1\nx\nEND\n
    set a 0 0 1 noreply\nx\nget a §x a\nget a\n => CLIENT_ERROR bad command line format\nVALUE a 0 1\nx\nEND\n
    get\ngets\nget \n => ERROR\nERROR\nERROR\n
    // Values are bytes, not text.
    set a 0 0 9\nget b\n\0 \ngets a\n => STORED\nVALUE a 0 9 1\nget b\n\0 \nEND\n
    // Blanks and bare line feeds.
    \x20\x20set a 0  0 1  \nx\n get  a  ␊get a␊ => STORED\nVALUE a 0 1\nx\nEND\nVALUE a 0 1\nx\nEND\n
    get a\r\n => END\n
    // Writes.
    set a 4294967295 0 1\nx\nget a\n => STORED\nVALUE a 4294967295 1\nx\nEND\n
    set a 01 0 +1\nx\nget a\n => STORED\nVALUE a 1 1\nx\nEND\n
    add a 1 0 1\nx\nadd a 2 0 1\ny\nget a\n => STORED\nNOT_STORED\nVALUE a 1 1\nx\nEND\n
    replace a 0 0 1\nx\nset a 1 0 1\nx\nreplace a 2 0 2\nyz\nget a\n => NOT_STORED\nSTORED\nSTORED\nVALUE a 2 2\nyz\nEND\n
    append a 0 0 1\nx\nprepend a 0 0 1\nx\nset a 5 0 1\nm\nappend a 7 0 2\nyz\nprepend a 9 9 2\nvw\ngets a\n
        => NOT_STORED\nNOT_STORED\nSTORED\nSTORED\nSTORED\nVALUE a 5 5 3\nvwmyz\nEND\n
    set a 0 -1 1\nx\nget a\nadd a 0 0 1\ny\n => STORED\nEND\nSTORED\n
    set a 0 1 1\nx\nset a 0 100 1\ny\nget a\n => STORED\nSTORED\nVALUE a 0 1\ny\nEND\n
    set a 0 2592001 1\nx\nget a\n => STORED\nEND\n
    set a 0 2147483647 1\nx\nget a\n => STORED\nVALUE a 0 1\nx\nEND\n
    // Compare and swap.
    cas a 0 0 1 1\nx\n => NOT_FOUND\n
    set a 0 0 1\nx\ncas a 3 0 1 1\ny\ncas a 0 0 1 1\nz\ngets a\n => STORED\nSTORED\nEXISTS\nVALUE a 3 1 2\ny\nEND\n
    set a 0 0 1\nx\ncas a 0 0 1 9 noreply\ny\ncas a 0 0 1 1 noreply\nz\ngets a\n => STORED\nVALUE a 0 1 2\nz\nEND\n
    cas a 0 0 1\nx\n => ERROR\nERROR\n
    cas a 0 0 1 -5\nx\n => CLIENT_ERROR bad command line format\nERROR\n
    // Numbers.
    incr a 1\ndecr a 1\n => NOT_FOUND\nNOT_FOUND\n
    set n 3 0 2\n10\nincr n 5\ngets n\n => STORED\n15\nVALUE n 3 2 2\n15\nEND\n
    set n 0 0 2\n10\ndecr n 1\nget n\nincr n 1\nget n\n => STORED\n9\nVALUE n 0 2\n9 \nEND\n10\nVALUE n 0 2\n10\nEND\n
    set n 0 0 2\n99\nincr n 1\ngets n\ndecr n 1000\nget n\n => STORED\n100\nVALUE n 0 3 2\n100\nEND\n0\nVALUE n 0 3\n0  \nEND\n
    set n 0 0 1\n0\nincr n 18446744073709551615\nincr n 2\nget n\n
        => STORED\n18446744073709551615\n1\nVALUE n 0 20\n1                   \nEND\n
    set n 0 0 1\n5\nincr n 2 noreply\ndecr n 1 noreply\nget n\n => STORED\nVALUE n 0 1\n6\nEND\n
    set n 0 0 3\n 12\nincr n 1\n => STORED\n13\n
    set n 0 0 3\n12a\nincr n 1\nset n 0 0 0\n\ndecr n 1\nset n 0 0 20\n99999999999999999999\nincr n 1\n
        => STORED\nCLIENT_ERROR cannot increment or decrement non-numeric value\nSTORED\nCLIENT_ERROR cannot increment or decrement non-numeric value\nSTORED\nCLIENT_ERROR cannot increment or decrement non-numeric value\n
    incr n x\nincr n -1\ndecr n 18446744073709551616\n
        => CLIENT_ERROR invalid numeric delta argument\nCLIENT_ERROR invalid numeric delta argument\nCLIENT_ERROR invalid numeric delta argument\n
    incr\nincr n\nincr n 1 2 3\nincr §x 1\n => ERROR\nERROR\nERROR\nCLIENT_ERROR bad command line format\n
    // Removal.
    delete a\nset a 0 0 1\nx\ndelete a\nget a\n => NOT_FOUND\nSTORED\nDELETED\nEND\n
    set a 0 0 1\nx\ndelete a 0\nset a 0 0 1\nx\ndelete a noreply\nset b 0 0 1\nx\ndelete b 0 noreply\nget a b\n
        => STORED\nDELETED\nSTORED\nSTORED\nEND\n
    delete a 1\ndelete a 0 0\ndelete\ndelete a 0 0 0\ndelete §x\n
        => CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\nCLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\nERROR\nERROR\nCLIENT_ERROR bad command line format\n
    // Expiry.
    touch a 0\nset a 0 0 1\nx\ntouch a 0\ntouch a 100 noreply\ngets a\ntouch a -1\nget a\n
        => NOT_FOUND\nSTORED\nTOUCHED\nVALUE a 0 1 1\nx\nEND\nTOUCHED\nEND\n
    touch\ntouch a\ntouch a x\ntouch §x 0\n
        => ERROR\nERROR\nCLIENT_ERROR invalid exptime argument\nCLIENT_ERROR bad command line format\n
    // The whole store.
    set a 0 0 1\nx\nflush_all\nget a\nadd a 0 0 1\ny\nget a\n => STORED\nOK\nEND\nSTORED\nVALUE a 0 1\ny\nEND\n
    set a 0 0 1\nx\nflush_all noreply\nget a\nflush_all 0\nflush_all 0 noreply\n => STORED\nEND\nOK\n
    set a 0 0 1\nx\nflush_all 1000\nget a\n => STORED\nOK\nVALUE a 0 1\nx\nEND\n
    flush_all x\nflush_all 1 2 3\n => CLIENT_ERROR invalid exptime argument\nERROR\n
    // Control.
    verbosity\nverbosity 1\nverbosity x\nverbosity 0 noreply\nverbosity noreply\nverbosity 0 1 2\n
        => ERROR\nOK\nCLIENT_ERROR bad command line format\nERROR\n
    stats reset\nstats nonsense\n => RESET\nERROR\n
    quit\nget a\n => ''
    get a\nquit now\nget a\n => END\n
    // noreply of every write.
    set a 0 0 1 noreply\nx\nadd b 0 0 1 noreply\nx\nreplace b 0 0 1 noreply\ny\nappend b 0 0 1 noreply\nz\nprepend b 0 0 1 noreply\nx\nadd a 0 0 1 noreply\nno\nget a b\n
        => ERROR\nVALUE a 0 1\nx\nVALUE b 0 3\nxyz\nEND\n
    set a 0 0 1 loud\nx\nget a\n => STORED\nVALUE a 0 1\nx\nEND\n
    // Mistakes.
    \n␊x\nGET a\nset\ta 0 0 1\n => ERROR\nERROR\nERROR\nERROR\nERROR\n
    set\nset a 0 0\nx\nset a 0 0 1 2 3\nx\n => ERROR\nERROR\nERROR\nERROR\nERROR\n
    set a x 0 1\nx\nset a 0 x 1\nx\nset a 0 0 x\nx\nset a -1 0 1\nx\nset a 0 0 -1\nx\nset a 1x 0 1\nx\n
        => CLIENT_ERROR bad command line format\nERROR\nCLIENT_ERROR bad command line format\nERROR\nCLIENT_ERROR bad command line format\nERROR\nCLIENT_ERROR bad command line format\nERROR\nCLIENT_ERROR bad command line format\nERROR\nCLIENT_ERROR bad command line format\nERROR\n
    set a 0 0 2147483646\n => CLIENT_ERROR bad command line format\n
    set §x 0 0 1\nx\nset §x 0 0 1 noreply\nx\n => CLIENT_ERROR bad command line format\nERROR\nERROR\n
    set a 0 0 2\nxyz\nget a\n => CLIENT_ERROR bad data chunk\nERROR\nEND\n
    set a 0 0 2\nx\nget a\n => CLIENT_ERROR bad data chunk\nERROR\n
    set a 0 0 1␊x␊get a\n => CLIENT_ERROR bad data chunk\nERROR\n
    set a 0 0 1 noreply\nxyz\nget a\n => ERROR\nEND\n
    a b c d e f g h i j k l m n o p q r s t u v w x y z a b c\nget a\n => ERROR\nEND\n
";

/// The transcripts that the real memcached must answer alike, as bytes; those with long values are made here.
pub(crate) fn shared() -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all: Vec<_> = [SHARED, meta::SHARED]
        .into_iter()
        .flat_map(cases)
        .map(|[sent, answered]| (bytes(&sent), bytes(&answered)))
        .collect();
    let long = |verb: &str, len: usize, rest: &str| {
        format!("set a 0 0 1\nx\n{verb} a 0 0 {len}{rest}\n{}\nget a\n", "z".repeat(len))
    };
    let too_large = "STORED\nSERVER_ERROR object too large for cache\n";
    let kept = "VALUE a 0 1\nx\nEND\n";
    for (sent, answered) in [
        (long("set", 2_000_000, ""), format!("{too_large}END\n")),
        (long("set", 2_000_000, " noreply"), "STORED\nEND\n".to_owned()),
        (long("add", 2_000_000, ""), format!("{too_large}{kept}")),
        (long("append", 2_000_000, " noreply"), format!("STORED\n{kept}")),
        (long("add", 100_000, ""), format!("STORED\nNOT_STORED\n{kept}")),
        (format!("get {}\nget a\n", "k ".repeat(20_000)), "END\nEND\n".to_owned()),
    ] {
        all.push((bytes(&sent), bytes(&answered)));
    }
    all
}

/// A core at a plausible hour, so that absolute expiry times mean something.
pub(crate) fn fresh() -> Core {
    let mut options = CoreOptions::default();
    options.epoch.start_unix_s = 1_800_000_000;
    connected(options)
}

/// What a fresh server answers when the bytes come in these pieces.
fn answer<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    crate::answer(&mut fresh(), pieces)
}

#[test]
fn golden_answers() {
    for (sent, answered) in shared() {
        assert_same(&answer([&sent[..]]), &answered, &sent);
    }
}

#[test]
fn cuts_change_nothing() {
    for (sent, answered) in shared() {
        // Every cut of a short transcript, every 9973rd of a long one; then all bytes one by one.
        for cut in (0..sent.len()).step_by(if sent.len() < 10_000 { 1 } else { 9973 }) {
            assert_same(&answer([&sent[..cut], &sent[cut..]]), &answered, &sent);
        }
        if sent.len() < 10_000 {
            assert_same(&answer(sent.chunks(1)), &answered, &sent);
        }
    }
}

#[test]
fn stats_count_operations() {
    let mut core = fresh();
    core.connect(1);
    let sent = bytes(
        "set a 0 0 1\nx\nadd a 0 0 1\nx\nget a b c a\ngets a\ntouch a 0\ntouch b 0\ndelete b\ndelete a\n\
         incr n 1\nset n 0 0 1\n1\nincr n 1\ndecr n 1\ndecr m 1\ncas n 0 0 1 99\n5\ncas m 0 0 1 1\n5\n\
         flush_all\nset a 0 0 1\nx\n",
    );
    core.receive(0, &sent, 0);
    let written = drain(&mut core, 0, 0).len();
    core.receive(1, b"stats\r\n", 3_500_000_000);
    let stats = String::from_utf8(drain(&mut core, 1, 3_500_000_000)).unwrap();
    let expected = bytes(&format!(
        "STAT rusage_user 0.000000\nSTAT rusage_system 0.000000\nSTAT time 1800000003\nSTAT pointer_size 64\nSTAT threads 1\nSTAT curr_connections 2\n\
         STAT total_connections 2\nSTAT cmd_get 5\nSTAT cmd_set 6\nSTAT cmd_flush 1\nSTAT cmd_touch 2\n\
         STAT get_hits 3\nSTAT get_misses 2\nSTAT delete_misses 1\nSTAT delete_hits 1\nSTAT incr_misses 1\n\
         STAT incr_hits 1\nSTAT decr_misses 1\nSTAT decr_hits 1\nSTAT cas_misses 1\nSTAT cas_hits 0\n\
         STAT cas_badval 1\nSTAT touch_hits 1\nSTAT touch_misses 1\nSTAT bytes_read {}\nSTAT bytes_written {written}\n\
         STAT limit_maxbytes 1073741824\nSTAT bytes 82\nSTAT curr_items 1\nSTAT total_items 3\nSTAT evictions 0\n\
         STAT faults_dropped 0\nSTAT faults_reset 0\nSTAT faults_cut 0\nSTAT faults_error 0\nSTAT faults_wrong 0\n\
         STAT client_output_buffer_limit_disconnections 0\nSTAT client_query_buffer_limit_disconnections 0\n\
         STAT datagrams_dropped 0\nSTAT datagrams_duplicated 0\nSTAT datagrams_swapped 0\nEND\n",
        sent.len() + 7
    ));
    let rest = stats.strip_prefix("STAT pid 0\r\nSTAT uptime 3\r\n").unwrap();
    let (version, rest) = rest.split_once("\r\n").unwrap();
    assert!(version.starts_with("STAT version "), "{version}");
    assert_eq!(rest, String::from_utf8(expected).unwrap());
}

/// Each row: (seconds since the start, sent, answered).
#[test]
fn items_live_exactly_as_long_as_asked() {
    let mut core = fresh();
    let rows = [
        (0.0, "set a 0 10 1\nx\nset b 0 1800000020 1\ny\nset c 0 2592000 1\nz\n", "STORED\nSTORED\nSTORED\n"),
        (9.999_999_999, "get a\n", "VALUE a 0 1\nx\nEND\n"),
        (10.0, "get a\n", "END\n"),
        (19.5, "get b\ntouch b 5\n", "VALUE b 0 1\ny\nEND\nTOUCHED\n"),
        (24.0, "get b\nflush_all 10\n", "VALUE b 0 1\ny\nEND\nOK\n"),
        (24.5, "get b\n", "END\n"),
        (33.5, "get c\n", "VALUE c 0 1\nz\nEND\n"),
        (34.0, "get c\nset c 0 0 1\nz\n", "END\nSTORED\n"),
        (1e6, "get c\n", "VALUE c 0 1\nz\nEND\n"),
    ];
    for (seconds, sent, answered) in rows {
        let now_ns = (seconds * 1e9) as u64;
        core.receive(0, &bytes(sent), now_ns);
        assert_same(&drain(&mut core, 0, now_ns), &bytes(answered), sent.as_bytes());
    }
}

#[test]
fn lines_without_end_close_the_connection() {
    for (sent, answered) in [
        (bytes(&format!("get a\n{}", "x".repeat(2049))), "END\r\n"),
        (bytes(&format!("get {}", "x ".repeat(600_000))), ""),
    ] {
        for piece_len in [1000, usize::MAX] {
            let mut core = fresh();
            let (mut answered_here, mut closed) = (Vec::new(), false);
            for piece in sent.chunks(piece_len.min(sent.len())) {
                core.receive(0, piece, 0);
                while let Some(departure) = core.pop_due(0) {
                    answered_here.extend_from_slice(departure.bytes);
                    closed |= departure.end == End::Closes;
                }
            }
            assert!(closed);
            assert_eq!(answered_here, answered.as_bytes());
        }
    }
}

#[test]
fn garbage_gets_an_error() {
    let mut random = Random(42);
    let words: [&[u8]; 16] = [
        b"get ",
        b"set ",
        b"a ",
        b"0 ",
        b"1 ",
        b"5",
        b"\r\n",
        b"\n",
        b" ",
        b"noreply",
        b"\0\xff",
        b"incr ",
        b"cas ",
        b"99999999999999999999",
        b"append ",
        b"-1 ",
    ];
    for _ in 0..2000 {
        let sent: Vec<u8> =
            (0..random.below(60)).flat_map(|_| words[random.below(16) as usize].to_vec()).collect();
        let (mut pieces, mut rest) = (Vec::new(), &sent[..]);
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(1 + random.below(rest.len() as u64) as usize);
            pieces.push(piece);
            rest = behind;
        }
        assert_same(&answer(pieces), &answer([&sent[..]]), &sent);
    }
}

proptest! {
    #[test]
    fn any_bytes_in_any_pieces(sent in prop::collection::vec(any::<u8>(), 0..5000), piece_len in 1usize..5000) {
        prop_assert_eq!(answer(sent.chunks(piece_len)), answer([&sent[..]]));
    }
}
