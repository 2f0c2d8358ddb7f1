//! Lines and records of every layout, and what they come to.

use super::*;
use TraceLayout::{
    Meta, Monitor, MutilateAllGets, MutilateOneTwo, MutilateReadWrite, Oracle, OracleText, Twitter,
};

/// The lines that help shows.
fn example(layout: TraceLayout) -> &'static str {
    layout.describe().split_once('\n').unwrap().1
}

/// What a line came to in words: `TIME_S KIND KEY[/KEYBYTES]=BYTES [ttl SECONDS] [xREPEATS]`, `-` for what is absent.
fn told(request: &RecordedRequest<'_>) -> String {
    let or_absent = |value: Option<u64>| value.map_or("-".to_owned(), |value| value.to_string());
    let time = request.time_ns.map_or("-".to_owned(), |ns| (ns as f64 / 1e9).to_string());
    let key_len = request.key_len.map(|len| format!("/{len}")).unwrap_or_default();
    let ttl = request.ttl_ns.map(|ns| format!(" ttl {}", ns as f64 / 1e9)).unwrap_or_default();
    let repeats = if request.repeats > 1 { format!(" x{}", request.repeats) } else { String::new() };
    let key = request.key.escape_ascii();
    format!("{time} {} {key}{key_len}={}{ttl}{repeats}", request.kind, or_absent(request.value_len))
}

/// The same of everything that a piece stands for, or why it is none.
fn decoded(decoder: &mut TraceDecoder, piece: &[u8]) -> String {
    let mut requests = Vec::new();
    let came_to = decoder.decode(piece, &mut |request| {
        requests.push(told(request));
        Ok(())
    });
    match came_to {
        Ok(Decoded::Requests) => requests.join(" | "),
        Ok(other) => format!("{other:?}"),
        Err(why) => format!("{why:?}"),
    }
}

fn decoder(layout: TraceLayout) -> TraceDecoder {
    TraceDecoder::new(layout)
}

#[test]
fn lines_of_every_layout() {
    let table: &[(TraceLayout, &str, &str)] = &[
        (MutilateAllGets, "0,1,1,key0,10", "- get key0/4=10"),
        (MutilateAllGets, "5,app,whatever,k,0\r", "- get k/1=0"),
        (MutilateAllGets, "today,1,1,k,3", "- get k/1=3"),
        (MutilateReadWrite, "1,1,read,a,20", "- get a/1=20"),
        (MutilateReadWrite, "1,1,write,a,20", "- set a/1=20"),
        (MutilateOneTwo, "1,1,1,a,20", "- get a/1=20"),
        (MutilateOneTwo, "1,1,2,a,20,beyond", "- set a/1=20"),
        (Twitter, "0,q:a:1:8WTfjZU,13,213,4,get,0", "0 get q:a:1:8WTfjZU/13=213"),
        (Twitter, "300,n:b:7777,8,0,9,get,0", "0 get n:b:7777/8=-"),
        (Twitter, "300,q,1,212,33,gets,0", "0 gets q/1=212"),
        (Twitter, "300,q,1,7,33,set,86400", "0 set q/1=7 ttl 86400"),
        (Twitter, "300,q,?,7,33,cas", "0 cas q=7"),
        (Twitter, "300, q ,1,0,33,delete,", "0 delete  q /1=-"),
        (Twitter, "300,q,1,0,33,set,0", "0 set q/1=0"),
        (Twitter, "300,a key\x01,5,7000000,33,set,0", r"0 set a key\x01/5=7000000"),
        (OracleText, "10, 7, 100, 3", "0 get 7=100"),
        (OracleText, "10,7,100,-1", "0 get 7=100"),
        (OracleText, "# time, object, size, next_access_vtime", "PassedOver"),
        (OracleText, "10, 7, 0, 3", "PassedOver"),
        (Monitor, "OK", "PassedOver"),
        (Monitor, "+OK\r", "PassedOver"),
        (
            Monitor,
            r#"1700000000.000250 [0 127.0.0.1:51706] "set" "k:1" "a\x00b" "EX" "60""#,
            "0 set k:1/3=3 ttl 60",
        ),
        (Monitor, r#"+1700000000.000900 [0 [::1]:51707] "get" "k:1""#, "0 get k:1/3=-"),
        (Monitor, r#"1700000000.001000 [0 lua] "del" "k:2""#, "PassedOver"),
        (
            Monitor,
            r#"1.000000 [3 unix:/tmp/a ] b] "GET" "\"\\\n\r\t\a\b\xff""#,
            r#"0 get \"\\\n\r\t\x07\x08\xff/8=-"#,
        ),
        (Monitor, r#"1.000000 [0 a:1] "MGET" "a" "bc""#, "0 get a/1=- | 0 get bc/2=-"),
        (Monitor, r#"1.000000 [0 a:1] "mset" "a" "1" "b" "22""#, "0 set a/1=1 | 0 set b/1=2"),
        (Monitor, r#"1.000000 [0 a:1] "del" "a" "b""#, "0 delete a/1=- | 0 delete b/1=-"),
        (Monitor, r#"1.000000 [0 a:1] "setex" "a" "5" "xyz""#, "0 set a/1=3 ttl 5"),
        (Monitor, r#"1.000000 [0 a:1] "psetex" "a" "1500" "xyz""#, "0 set a/1=3 ttl 1.5"),
        (Monitor, r#"1.000000 [0 a:1] "set" "a" "v" "nx" "px" "20""#, "0 add a/1=1 ttl 0.02"),
        (Monitor, r#"1.000000 [0 a:1] "set" "a" "v" "XX" "exat" "9""#, "0 replace a/1=1"),
        (Monitor, r#"1.000000 [0 a:1] "setnx" "a" "v""#, "0 add a/1=1"),
        (Monitor, r#"1.000000 [0 a:1] "append" "a" "v""#, "0 append a/1=1"),
        (Monitor, r#"1.000000 [0 a:1] "incrby" "a" "3""#, "0 incr a/1=-"),
        (Monitor, r#"1.000000 [0 a:1] "decr" "a""#, "0 decr a/1=-"),
        (Monitor, r#"1.000000 [0 a:1] "hset" "a" "f" "v""#, "Unsupported"),
        (Monitor, r#"1.000000 [0 a:1] "get""#, "Unsupported"),
    ];
    for (layout, line, expected) in table {
        assert_eq!(decoded(&mut decoder(*layout), line.as_bytes()), *expected, "{line}");
    }
    for kind in Twitter.kinds() {
        let line = format!("1,k,1,5,1,{kind},0");
        assert_eq!(decoded(&mut decoder(Twitter), line.as_bytes()), format!("0 {kind} k/1=5"));
    }
}

#[test]
fn lines_that_are_no_requests() {
    let table: &[(TraceLayout, &str, LineError)] = &[
        (MutilateAllGets, "T,App,Req,Key,ValueLen", LineError::Length),
        (MutilateAllGets, "", LineError::Columns),
        (MutilateAllGets, "0,1,1,key0", LineError::Columns),
        (MutilateAllGets, "0,1,1,key0,-5", LineError::Length),
        (MutilateAllGets, "0,1,1,,5", LineError::Key),
        (MutilateReadWrite, "0,1,delete,k,5", LineError::Operation),
        (MutilateReadWrite, "0,1,1,k,5", LineError::Operation),
        (MutilateOneTwo, "0,1,read,k,5", LineError::Operation),
        (Twitter, "1,k,1,5,1", LineError::Columns),
        (Twitter, "1,k,1,5,1,touch", LineError::Operation),
        (Twitter, "now,k,1,5,1,get", LineError::Time),
        (Twitter, "1,k,1,5,1,set,-1", LineError::Ttl),
        (Twitter, "1,,0,5,1,get", LineError::Key),
        (OracleText, "time,object,size", LineError::Time),
        (OracleText, "1,2", LineError::Columns),
        (OracleText, "1,2,99999999999999999999", LineError::Length),
        (Meta, "1000,00000000deadbeef,48,GET,3,87", LineError::Head),
        (Monitor, r#"1700000000.25 [0 a:1] "get" "k""#, LineError::Form),
        (Monitor, r#"1700000000.000250 [0 a:1] "get" "k"#, LineError::Form),
        (Monitor, r#"1700000000.000250 [0 a:1] "get" "\q""#, LineError::Form),
        (Monitor, r#"1700000000.000250 [0 a:1] "get" "\xg0""#, LineError::Form),
        (Monitor, r#"1700000000.000250 [0 a:1] "get""k""#, LineError::Form),
        (Monitor, r#"1700000000.000250 [0 a:1] "get" """#, LineError::Key),
    ];
    for (layout, line, expected) in table {
        assert_eq!(decoded(&mut decoder(*layout), line.as_bytes()), format!("{expected:?}"), "{line}");
    }
}

/// Two heads that were published, and one in another order.
#[test]
fn columns_of_meta_are_found_by_name() {
    let table: &[(&str, &[(&str, &str)])] = &[
        (
            "op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase,sub_usecase",
            &[
                ("1000,00000000deadbeef,20,GET,3,87,3,0,7,9", "0 get 00000000deadbeef..../20=87 x3"),
                ("1001,00000000cafef00d,16,SET,1,65,0,7200,7,9", "1 set 00000000cafef00d/16=65 ttl 7200"),
                ("999,1,1,GET_LEASE,1,0,0,0,7,9", "-1 get 1/1=-"),
                ("1000,1,1,SET,1,5,0,day,7,9", "Ttl"),
                ("1000,1,1,SET_LEASE,1,0,0,0,7,9", "0 set 1/1=0"),
                ("1000,1,1,DELETE,1,0,0,0,7,9", "0 delete 1/1=-"),
                ("1000,1,1,GET,0,5,0,0,7,9", "Repeats"),
                ("1000,1,1,GET,65536,5,0,0,7,9", "Repeats"),
                ("1000,1,1,POP,1,5,0,0,7,9", "Operation"),
                ("1000,1,1,GET", "Columns"),
            ],
        ),
        ("key,op,size,op_count,key_size", &[("77,GET,5,2,4", "- get 77../4=5 x2")]),
        (" size , op,other, key\r", &[("5,SET,?,longer,", "- set longer=5")]),
    ];
    for (head, lines) in table {
        let mut decoder = decoder(Meta);
        assert_eq!(decoded(&mut decoder, head.as_bytes()), "PassedOver");
        for (line, expected) in *lines {
            assert_eq!(decoded(&mut decoder, line.as_bytes()), *expected, "{line}");
        }
    }
    let mut long = decoder(Meta);
    decoded(&mut long, b"key,op,size,key_size");
    assert!(decoded(&mut long, b"k,GET,5,4000000000").ends_with("./4000000000=5"), "memory is bounded");
    assert_eq!(long.key.len(), 251, "too long to be sent as it is");
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()).collect()
}

#[test]
fn records_of_oracle_general() {
    let file = bytes(
        "0a000000 0700000000000000 64000000 0300000000000000
         0a000000 0800000000000000 c8000000 ffffffffffffffff
         0b000000 0700000000000000 64000000 ffffffffffffffff
         0c000000 0900000000000000 00000000 ffffffffffffff7f
         312c6b2c 312c352c312c6765 742c300a 312c6b2c312c352c",
    );
    let mut decoder = decoder(Oracle);
    assert_eq!(decoder.piece(), Piece::Record(24));
    let expected = ["0 get 7=100", "0 get 8=200", "1 get 7=100", "PassedOver", "Next"];
    for (record, expected) in file.chunks(24).zip(expected) {
        assert_eq!(decoded(&mut decoder, record), expected);
    }
}

#[test]
fn layouts_are_told_by_files_or_not_at_all() {
    let table: &[(&str, Option<TraceLayout>)] = &[
        ("op_time,key,key_size,op,op_count,size\n1,2", Some(Meta)),
        ("key,op,size\r\n", Some(Meta)),
        ("key,op\n", None),
        ("OK\n1700000000.000250 [0 a:1] \"get\" \"k\"\n", Some(Monitor)),
        ("+OK\r\n+1700000000.000250 [0 a:1] \"get\" \"k\"\r\n", Some(Monitor)),
        ("1700000000.000250 [0 a:1] \"get\" \"k", Some(Monitor)),
        ("OK\n", None),
        ("", None),
        ("0,q:a:1:8WTfjZU14ee,17,213,4,get,0\n", None),
        ("10, 7, 100, 3\n", None),
        ("1,1,read,a,20\n", None),
    ];
    for (head, expected) in table {
        assert_eq!(recognised(head.as_bytes()), *expected, "{head}");
    }
    for layout in TraceLayout::TOLD_BY_FILES {
        assert_eq!(recognised(example(layout).as_bytes()), Some(layout), "{layout}");
    }
}

/// The lines of each layout that help shows have that layout, and end with a request.
#[test]
fn examples_are_decoded() {
    for layout in TraceLayout::ALL {
        let mut decoder = decoder(layout);
        let binary = if layout == Oracle { bytes(example(layout)) } else { Vec::new() };
        let pieces =
            example(layout).lines().map(|line| if layout == Oracle { &binary } else { line.as_bytes() });
        let came_to = pieces.map(|piece| decoded(&mut decoder, piece)).last().unwrap();
        assert!(came_to.contains('='), "{layout}: {came_to}");
    }
}

/// What is refused by who takes the requests is the line's error, and the other requests of the line are yielded.
#[test]
fn refused_requests_are_the_error_of_their_line() {
    let line = br#"1.000000 [0 a:1] "mget" "a" "b" "c""#;
    let mut taken = Vec::new();
    let came_to = decoder(Monitor).decode(line, &mut |request| {
        if request.key == b"b" {
            return Err(LineError::Key);
        }
        taken.push(request.key.to_vec());
        Ok(())
    });
    assert_eq!((came_to, taken), (Err(LineError::Key), vec![b"a".to_vec(), b"c".to_vec()]));
}
