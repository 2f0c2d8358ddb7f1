//! Redis's protocol as transcripts, which the real redis-server must answer alike, and what it has of its own: versions,
//! credentials, cuts.

use crate::real::Real;
use crate::{Random, answer, assert_same, cases, check_real, connected};
use brunt_server::core::{Core, CoreOptions, QUEUED_BYTES_MAX};
use brunt_server::{Credentials, End, Every, Faults};
use proptest::prelude::*;

/// A command of these words on the wire; blanks are between them, `''` is an empty one.
fn command(line: &str) -> Vec<u8> {
    let words: Vec<&str> = line.split(' ').map(|word| if word == "''" { "" } else { word }).collect();
    let mut bytes = format!("*{}\r\n", words.len());
    words.iter().for_each(|word| bytes += &format!("${}\r\n{word}\r\n", word.len()));
    bytes.into_bytes()
}

/// Lines of commands, each as an array of strings; a line that begins with `~` is sent as it is, `|` being a line end.
fn wire(commands: &str) -> Vec<u8> {
    let of = |line: &str| match line.strip_prefix('~') {
        Some(raw) => raw.replace('|', "\r\n").into_bytes(),
        None => command(line),
    };
    commands.lines().flat_map(of).collect()
}

fn lines(text: &str) -> Vec<u8> {
    text.replace('|', "\r\n").into_bytes()
}

/// (sent, answered); what is answered in version 3 has `_` for a null.
const SHARED: &str = r"
    // Strings.
    GET a\nSET a hello\nGET a\nget a\nSTRLEN a\nSTRLEN none => $-1|+OK|$5|hello|$5|hello|:5|:0|
    SET a ''\nGET a\nSTRLEN a => +OK|$0||:0|
    SET a 1\nSET b 2\nMGET a none b a\nMGET none => +OK|+OK|*4|$1|1|$-1|$1|2|$1|1|*1|$-1|
    SET a 1 NX\nSET a 2 NX\nSET a 3 XX\nSET b 1 XX\nGET a\nGET b => +OK|$-1|+OK|$-1|$1|3|$-1|
    SET a 1 EX 100\nTTL a\nSET a 2 PX 100000 xx\nTTL a\nSET a 3\nTTL a\nTTL none => +OK|:100|+OK|:100|+OK|:-1|:-2|
    SETEX a 100 x\nTTL a\nPSETEX a 50000 y\nTTL a\nGET a => +OK|:100|+OK|:50|$1|y|
    SET a 1 EX 0\nSET a 1 EX x\nSET a 1 EX\nSET a 1 NX XX\nSET a 1 EX 1 PX 1\nSET a 1 no\nSETEX a -1 x\nSETEX a x x\nPSETEX a 0 x\nGET a
        => -ERR invalid expire time in 'set' command|-ERR value is not an integer or out of range|-ERR syntax error|-ERR syntax error|-ERR syntax error|-ERR syntax error|-ERR invalid expire time in 'setex' command|-ERR value is not an integer or out of range|-ERR invalid expire time in 'psetex' command|$-1|
    APPEND a x\nAPPEND a yz\nGET a\nSETEX b 100 1\nAPPEND b 2\nTTL b => :1|:3|$3|xyz|+OK|:2|:100|
    // Numbers, with a sign and from nothing.
    INCR n\nINCR n\nINCRBY n 40\nDECR n\nDECRBY n 100\nGET n\nDECR m\nINCRBY k 7\nMGET m k
        => :1|:2|:42|:41|:-59|$3|-59|:-1|:7|*2|$2|-1|$1|7|
    SET n 9223372036854775806\nINCR n\nINCR n\nDECRBY n -1\nINCRBY n 9223372036854775808\nSET n -9223372036854775808\nDECR n
        => +OK|:9223372036854775807|-ERR increment or decrement would overflow|-ERR increment or decrement would overflow|-ERR value is not an integer or out of range|+OK|-ERR increment or decrement would overflow|
    SET n 007\nINCR n\nSET n +1\nINCR n\nSET n ''\nINCR n\nSET n -0\nINCR n\nSET n x\nDECRBY n 5\nINCRBY n x
        => +OK|-ERR value is not an integer or out of range|+OK|-ERR value is not an integer or out of range|+OK|-ERR value is not an integer or out of range|+OK|-ERR value is not an integer or out of range|+OK|-ERR value is not an integer or out of range|-ERR value is not an integer or out of range|
    SETEX n 100 5\nINCR n\nTTL n\nINCRBY n 100\nGET n => +OK|:6|:100|:106|$3|106|
    // Removal and times to live.
    DEL a\nSET a 1\nSET b 1\nDEL a none b a\nUNLINK a => :0|+OK|+OK|:2|:0|
    SET a 1\nEXISTS a none a\nTOUCH a none a\nEXPIRE a 100\nTTL a\nPEXPIRE a 30000\nTTL a\nEXPIRE none 1
        => +OK|:2|:2|:1|:100|:1|:30|:0|
    SET a 1\nEXPIRE a 0\nGET a\nSET a 1\nEXPIRE a -5\nEXISTS a\nEXPIRE a x
        => +OK|:1|$-1|+OK|:1|:0|-ERR value is not an integer or out of range|
    SETEX a 100 x\nTOUCH a\nTTL a\nSET a y XX\nTTL a => +OK|:1|:100|+OK|:-1|
    // Hashes.
    HSET h f 1\nHSET h f 22 g ''\nHGET h f\nHGET h g\nHGET h none\nHGET none f\nTTL h => :1|:1|$2|22|$0||$-1|$-1|:-1|
    HSET h f 1\nEXPIRE h 100\nHSET h g 2\nTTL h\nHGET h g\nDEL h\nHGET h f => :1|:1|:1|:100|$1|2|:1|$-1|
    HSET h f 1\nGET h\nAPPEND h x\nINCR h\nSTRLEN h\nMGET h\nSET s x\nHGET s f\nHGETALL s\nHSET s f 1\nSET h x\nGET h
        => :1|-WRONGTYPE Operation against a key holding the wrong kind of value|-WRONGTYPE Operation against a key holding the wrong kind of value|-WRONGTYPE Operation against a key holding the wrong kind of value|-WRONGTYPE Operation against a key holding the wrong kind of value|*1|$-1|+OK|-WRONGTYPE Operation against a key holding the wrong kind of value|-WRONGTYPE Operation against a key holding the wrong kind of value|-WRONGTYPE Operation against a key holding the wrong kind of value|+OK|$1|x|
    HSET h f\nHSET h f 1 g => -ERR wrong number of arguments for 'hset' command|-ERR wrong number of arguments for 'hset' command|
    // Control.
    PING\nPING hi\nECHO x\nDBSIZE\nSET a 1\nDBSIZE\nFLUSHALL\nGET a => +PONG|$2|hi|$1|x|:0|+OK|:1|+OK|$-1|
    SELECT 15\nSELECT 16\nSELECT -1\nSELECT 0\nCLIENT SETNAME me\nCLIENT SETNAME a\x7fb
        => +OK|-ERR DB index is out of range|-ERR DB index is out of range|+OK|+OK|-ERR Client names cannot contain spaces, newlines or special characters.|
    AUTH x\nAUTH default x\nAUTH nobody x\nAUTH a b c
        => -ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?|+OK|-WRONGPASS invalid username-password pair or user is disabled.|-ERR syntax error|
    HELLO 4\nHELLO x\nHELLO 3 AUTH nobody x\nHELLO 2 no
        => -NOPROTO unsupported protocol version|-ERR Protocol version is not an integer or out of range|-WRONGPASS invalid username-password pair or user is disabled.|-ERR Syntax error in HELLO option 'no'|
    // Mistakes.
    GET\nGET a b\nSET a\nNONE\nnone a bc\nPING
        => -ERR wrong number of arguments for 'get' command|-ERR wrong number of arguments for 'get' command|-ERR wrong number of arguments for 'set' command|-ERR unknown command 'NONE', with args beginning with: |-ERR unknown command 'none', with args beginning with: 'a' 'bc' |+PONG|
    ~*0|\n~*-1|\nPING => +PONG|
    PING\n~*x|\nPING => +PONG|-ERR Protocol error: invalid multibulk length|
    ~*1|$-1|\nPING => -ERR Protocol error: invalid bulk length|
    PING\nQUIT\nPING => +PONG|+OK|
";

/// What version 3 writes otherwise: (sent, answered in 2, answered in 3).
const VERSIONS: &str = r"
    GET a\nMGET a\nSET a 1 XX\nHGET h f => $-1|*1|$-1|$-1|$-1| => _|*1|_|_|_|
    HGETALL none\nHSET h f 1 g 22\nHGETALL h => *0|:2|*4|$1|f|$1|1|$1|g|$2|22| => %0|:2|%2|$1|f|$1|1|$1|g|$2|22|
    INCR n\nDEL n none\nPING => :1|:1|+PONG| => :1|:1|+PONG|
";

/// All of them in one version or the other, with what asks for the version in front.
fn shared() -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all: Vec<_> =
        cases(SHARED).iter().map(|[sent, answered]| (wire(sent), lines(answered))).collect();
    for [sent, two, three] in &cases(VERSIONS) {
        all.push((wire(sent), lines(two)));
        all.push((wire(&format!("HELLO 3\nPING marker\n{sent}")), lines(three)));
        all.push((wire(&format!("HELLO 3\nHELLO 2 SETNAME me\nPING marker\n{sent}")), lines(two)));
    }
    all
}

/// What is behind the marker, if there is one: what came before tells of the server itself.
fn behind_marker(answered: &[u8]) -> &[u8] {
    let marker = b"$6\r\nmarker\r\n";
    let found = answered.windows(marker.len()).position(|window| window == marker);
    found.map_or(answered, |at| &answered[at + marker.len()..])
}

fn fresh() -> Core {
    connected(CoreOptions::default())
}

#[test]
fn golden_answers() {
    for (sent, answered) in shared() {
        let ours = answer(&mut fresh(), [&sent[..]]);
        assert_same(behind_marker(&ours), &answered, &sent);
    }
}

#[test]
fn cuts_change_nothing() {
    for (sent, _) in shared() {
        let whole = answer(&mut fresh(), [&sent[..]]);
        for cut in 0..sent.len() {
            assert_same(&answer(&mut fresh(), [&sent[..cut], &sent[cut..]]), &whole, &sent);
        }
        assert_same(&answer(&mut fresh(), sent.chunks(1)), &whole, &sent);
    }
}

#[test]
fn answers_match_redis() {
    let Some(redis) = Real::redis() else { return };
    check_real(shared(), |sent| {
        redis.converse(&wire("FLUSHALL"));
        Some(behind_marker(&redis.converse(sent)).to_vec())
    });
}

fn locked(user: &str) -> Core {
    let credentials = Some(Credentials { user: user.to_owned(), password: "secret".to_owned() });
    connected(CoreOptions { credentials, ..CoreOptions::default() })
}

#[test]
fn connections_without_the_password_are_rejected() {
    let no = "-NOAUTH Authentication required.|";
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.|";
    let table = [
        (
            "default",
            "GET a\nPING\nAUTH wrong\nGET a\nAUTH secret\nGET a",
            format!("{no}{no}{wrong}{no}+OK|$-1|"),
        ),
        ("default", "AUTH default secret\nSET a 1", "+OK|+OK|".to_owned()),
        (
            "reader",
            "AUTH secret\nAUTH reader wrong\nAUTH reader secret\nGET a",
            format!("{wrong}{wrong}+OK|$-1|"),
        ),
        ("reader", "QUIT\nGET a", "+OK|".to_owned()),
    ];
    for (user, sent, answered) in table {
        assert_same(&answer(&mut locked(user), [&wire(sent)[..]]), &lines(&answered), sent.as_bytes());
    }
    let mut core = locked("reader");
    let hello = answer(&mut core, [&wire("HELLO 3")[..]]);
    assert!(hello.starts_with(b"-NOAUTH HELLO must be called"), "{}", hello.escape_ascii());
    let hello = answer(&mut core, [&wire("HELLO 3 AUTH reader secret SETNAME me\nPING marker\nGET a")[..]]);
    assert!(hello.starts_with(b"%7\r\n$6\r\nserver\r\n"), "{}", hello.escape_ascii());
    assert_eq!(behind_marker(&hello), b"_\r\n");
    // Nothing of it was a request of the script.
    assert_eq!((core.counters().cmd_get, core.counters().get_misses), (1, 1));
}

#[test]
fn injected_errors_and_wrong_values() {
    let faults = Faults { error_every: Every::new(3), wrong_every: Every::new(4), ..Faults::default() };
    let mut core = connected(CoreOptions { faults, ..CoreOptions::default() });
    let sent = "SET a ab\nGET a\nSET a xy\nMGET a none\nPING\nHSET h f ab\nDEL a none";
    let ours = answer(&mut core, [&wire(sent)[..]]);
    let expected = "+OK|$2|ab|-ERR injected fault|*2|$2|`c|$-1|+PONG|:1|-ERR injected fault|";
    assert_same(&ours, &lines(expected), sent.as_bytes());
    let counters = *core.counters();
    assert_eq!((counters.cmd_set, counters.cmd_get, counters.get_hits, counters.get_misses), (3, 3, 2, 1));
    assert_eq!((counters.faults_error, counters.faults_wrong, counters.delete_hits), (2, 1, 0));
}

/// A client that keeps asking while replies wait gets no more, and is closed behind those it has.
#[test]
fn queued_bytes_are_bounded() {
    let mut core = fresh();
    let text = vec![b'x'; 1 << 20];
    let asked = [b"*2\r\n$4\r\nECHO\r\n$1048576\r\n", &text[..], b"\r\n"].concat();
    // Departures are not taken.
    for _ in 0..QUEUED_BYTES_MAX / text.len() + 100 {
        core.receive(0, &asked, 0);
    }
    let (mut bytes, mut end) = (0, End::Stays);
    while let Some(departure) = core.pop_due(0) {
        assert_eq!(end, End::Stays, "nothing comes behind the end");
        bytes += departure.bytes.len();
        end = departure.end;
    }
    assert!((QUEUED_BYTES_MAX..=QUEUED_BYTES_MAX + asked.len()).contains(&bytes), "{bytes}");
    assert_eq!(end, End::Closes);
}

/// A hundred thousand fields of one command take no longer than the text of them is long.
#[test]
fn a_hash_may_have_many_fields() {
    const FIELDS: usize = 100_000;
    let field = |index: usize| format!("$6\r\n{index:06}\r\n$1\r\nv\r\n");
    let fields: String = (0..FIELDS).map(field).collect();
    let sent = format!("*{}\r\n$4\r\nHSET\r\n$1\r\nh\r\n{fields}", 2 + 2 * FIELDS);
    let mut core = connected(CoreOptions { value_bytes_max: 8 << 20, ..CoreOptions::default() });
    assert_eq!(answer(&mut core, [sent.as_bytes()]), b":100000\r\n");
    assert_eq!(answer(&mut core, [&wire("HGET h 099999\nHSET h 5 x 000007 y")[..]]), b"$1\r\nv\r\n:1\r\n");
}

#[test]
fn info_reports_the_server() {
    for (version, head) in [("2", "$"), ("3", "=")] {
        let mut core = fresh();
        let sent = format!(
            "HELLO {version}\nSET a 1\nGET a\nGET b\nTOUCH a b c\nGET\nPING marker\nINFO\nCOMMAND DOCS\nCLIENT ID"
        );
        let answered = answer(&mut core, [&wire(&sent)[..]]);
        let text = String::from_utf8(behind_marker(&answered).to_vec()).unwrap();
        assert!(text.starts_with(head) && text.ends_with("*0\r\n:1\r\n"), "{text}");
        for row in [
            "redis_mode:standalone\r",
            "keyspace_hits:2\r",
            "keyspace_misses:3\r",
            "total_commands_processed:7\r",
            "cmdstat_get:calls=2\r",
            "cmdstat_touch:calls=1\r",
            "db0:keys=1,",
            "get_hits:1\r",
            "cmd_set:1\r",
        ] {
            assert!(text.contains(&format!("\r\n{row}")), "{row} in {text}");
        }
    }
}

#[test]
fn garbage_gets_an_error() {
    let mut random = Random(42);
    let words =
        ["*1|", "*2|", "*3|", "$3|", "GET|", "$1|", "a|", "$5|", "HELLO|", "3|", "$-1|", "*9|", "\0", "|"];
    for _ in 0..2000 {
        let sent: String =
            (0..random.below(40)).map(|_| words[random.below(words.len() as u64) as usize]).collect();
        let sent = lines(&sent);
        let whole = answer(&mut fresh(), [&sent[..]]);
        assert_same(&answer(&mut fresh(), sent.chunks(1)), &whole, &sent);
    }
}

proptest! {
    #[test]
    fn any_bytes_in_any_pieces(rest in prop::collection::vec(any::<u8>(), 0..2000), piece_len in 1usize..2000) {
        let sent = [b"*", &rest[..]].concat();
        prop_assert_eq!(answer(&mut fresh(), sent.chunks(piece_len)), answer(&mut fresh(), [&sent[..]]));
    }
}
