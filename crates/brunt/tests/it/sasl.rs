//! Who comes to a memcached that asks: SASL PLAIN against a real one, whose users are those of a daemon in this program.

use crate::server::{Directory, Ended, Server, ended_run};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;

const USER: (&str, &str) = ("reader", "s3cret");

/// Is memcached there, and can it ask who comes? Otherwise a word on stderr.
fn asks_for_users() -> bool {
    let help = Command::new("memcached").arg("-h").output().map(|output| output.stdout).unwrap_or_default();
    let asks = String::from_utf8_lossy(&help).contains("--enable-sasl");
    if !asks {
        eprintln!("SKIPPED: memcached is not installed, or built without SASL");
    }
    asks
}

/// A directory with what memcached's SASL library is to know: whom to ask is a daemon (saslauthd's protocol), in a thread that
/// lives as long as the test program.
fn users() -> Directory {
    let directory = Directory::new();
    let socket = directory.join("mux");
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || listener.incoming().for_each(|stream| answer(stream.unwrap())));
    let text = format!("mech_list: plain\npwcheck_method: saslauthd\nsaslauthd_path: {}\n", socket.display());
    directory.with("memcached.conf", &text);
    directory
}

/// User, password, service and realm come, each with its length in two bytes; the answer has one, too.
fn answer(mut stream: UnixStream) {
    let mut word = || {
        let mut len = [0; 2];
        stream.read_exact(&mut len).unwrap();
        let mut word = vec![0; usize::from(u16::from_be_bytes(len))];
        stream.read_exact(&mut word).unwrap();
        String::from_utf8(word).unwrap()
    };
    let [user, password, _, _] = [(); 4].map(|()| word());
    let is_known = (user.as_str(), password.as_str()) == USER;
    let _ = stream.write_all(if is_known { b"\x00\x02OK" } else { b"\x00\x02NO" });
}

fn run(address: &str, flags: &str) -> Ended {
    ended_run(&format!("-s {address} --protocol memcached-binary {flags}"))
}

/// A refusal is one message, with the server's own words, and exit code 5; a client that is let in notices nothing.
#[test]
fn credentials_are_checked() {
    if !asks_for_users() {
        return;
    }
    let directory = users();
    let Some(server) = Server::memcached_with_users(&directory) else { return };
    for io in ["epoll", "auto"] {
        let refused: [(&str, &str); 3] = [
            ("--set user=reader --password wrong", "SASL PLAIN refused: Auth failure"),
            ("--set user=nobody --password s3cret", "SASL PLAIN refused: Auth failure"),
            ("", "Auth failure"),
        ];
        for (flags, message) in refused {
            let output = run(&server, &format!("{flags} --io {io}"));
            output.is(5, &[message]);
            assert_eq!((output.said.lines().count(), &*output.out), (1, ""), "{flags}");
        }
        let user = format!("user={}", USER.0);
        for password in [USER.1, &format!("@{}", directory.with("password", "s3cret\n"))] {
            let flags = format!("--set {user} --password '{password}' -o json:- --io {io} -c 8 -T 2");
            let output = run(&server, &flags);
            assert!(matches!(output.exit, 0 | 3), "{password}");
            assert!(!output.out.contains(USER.1) && !output.said.contains(USER.1), "{password}");
            assert!(output.out.contains("\"completed\": 1000"), "{password}");
        }
    }
}

/// Who brings a password to a server that asks for none is told so.
#[test]
fn passwords_without_users_are_rejected() {
    let Some(server) = Server::memcached("") else { return };
    let output = run(&server, &format!("--set user={} --password '{}'", USER.0, USER.1));
    output.is_line(5, &["SASL PLAIN refused: Unknown command (", "-S"]);
}
