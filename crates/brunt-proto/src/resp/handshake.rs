//! Connection setup of Redis: version, credentials, name and database, before the first request.
//!
//! All commands go out together, and each has one reply; the first that is refused says why the connection is of no
//! use.

use super::error::ErrorPrefix;
use super::request::put_bulk;
use crate::out::Out;
use brunt_plan::outcome::ReplyKind;
use brunt_plan::quoted_bytes::QuotedBytes;
use std::fmt;

/// The version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// What every server speaks, and a connection begins with.
    Two,
    /// What servers speak since Redis 6, when asked.
    Three,
}

/// Who comes, and what for.
#[derive(Clone, PartialEq, Eq)]
pub struct HandshakeOptions {
    /// Which version is to be spoken.
    pub version: Version,
    /// The user of an access list; without one it is the server's default user.
    pub user: Option<String>,
    /// The password. Without one there is no authentication, whatever the user.
    pub password: Option<String>,
    /// What the connection is called in the server's list of clients.
    pub client_name: Option<String>,
    /// The number of the database; connections begin in 0.
    pub database: u32,
}

impl fmt::Debug for HandshakeOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let password = self.password.as_ref().map(|_| "(secret)");
        formatter
            .debug_struct("HandshakeOptions")
            .field("version", &self.version)
            .field("user", &self.user)
            .field("password", &password)
            .field("client_name", &self.client_name)
            .field("database", &self.database)
            .finish()
    }
}

/// A command of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the protocol's own")]
pub enum SetupCommand {
    Hello,
    Auth,
    SetName,
    Select,
}

impl SetupCommand {
    /// The command, for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hello => "HELLO",
            Self::Auth => "AUTH",
            Self::SetName => "CLIENT SETNAME",
            Self::Select => "SELECT",
        }
    }
}

/// Why a server does not let a connection in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupRefusal {
    /// The command that it refused.
    pub step: SetupCommand,
    /// What its error begins with.
    pub prefix: ErrorPrefix,
    /// All of its text, escaped.
    pub text: String,
}

impl fmt::Display for SetupRefusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} refused: {}", self.step.name(), self.text)
    }
}

/// A handshake as bytes. Shows nothing of them, because the password is among them.
#[derive(Clone)]
pub struct Handshake {
    bytes: Box<[u8]>,
    steps: Vec<SetupCommand>,
}

impl fmt::Debug for Handshake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Handshake").field("steps", &self.steps).finish_non_exhaustive()
    }
}

impl Handshake {
    /// What has to be said; nothing, of a connection that begins as it is to be.
    pub fn new(login: &HandshakeOptions) -> Self {
        let mut commands: Vec<(SetupCommand, Vec<&str>)> = Vec::new();
        let (name, database) = (login.client_name.as_deref(), login.database.to_string());
        let credentials = login.password.as_deref().map(|password| (login.user.as_deref(), password));
        match login.version {
            Version::Three => {
                let mut hello = vec!["HELLO", "3"];
                if let Some((user, password)) = credentials {
                    // HELLO takes no password without a user; this is what the default one is called.
                    hello.extend(["AUTH", user.unwrap_or("default"), password]);
                }
                hello.extend(name.into_iter().flat_map(|name| ["SETNAME", name]));
                commands.push((SetupCommand::Hello, hello));
            }
            Version::Two => {
                if let Some((user, password)) = credentials {
                    // Servers before Redis 6 know no users, and AUTH with one argument only.
                    let words = ["AUTH"].into_iter().chain(user).chain([password]);
                    commands.push((SetupCommand::Auth, words.collect()));
                }
                commands.extend(name.map(|name| (SetupCommand::SetName, vec!["CLIENT", "SETNAME", name])));
            }
        }
        if login.database != 0 {
            commands.push((SetupCommand::Select, vec!["SELECT", &database]));
        }
        let words = commands.iter().map(|(_, words)| words);
        let bytes = words.flat_map(|words| command(words)).collect();
        Self { bytes, steps: commands.iter().map(|(step, _)| *step).collect() }
    }

    /// What is to be sent before anything else.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The commands, in the order of their replies.
    pub fn steps(&self) -> &[SetupCommand] {
        &self.steps
    }

    /// What the reply to the step of this number means, from its `End`.
    ///
    /// # Errors
    /// The server refuses it.
    pub fn check_reply(&self, number: usize, reply: ReplyKind, text: &[u8]) -> Result<(), SetupRefusal> {
        let Some(&step) = self.steps.get(number) else { return Ok(()) };
        match reply {
            ReplyKind::Ok => Ok(()),
            _ => {
                Err(SetupRefusal { step, prefix: ErrorPrefix::of(text), text: QuotedBytes(text).to_string() })
            }
        }
    }
}

/// A command of these words.
fn command(words: &[&str]) -> Vec<u8> {
    let room = words.iter().map(|word| word.len() + super::request::FRAME_BYTES_MAX).sum::<usize>();
    let mut out = Out::with_room(room + super::request::FRAME_BYTES_MAX);
    out.put(b"*");
    out.put_decimal(words.len() as u64);
    out.put(b"\r\n");
    for word in words {
        put_bulk(word.as_bytes(), &mut out);
    }
    // Nothing of it is a reference.
    out.contiguous().unwrap_or_default().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::RespCodec;
    use crate::{Codec, Event};

    const NOBODY: HandshakeOptions = HandshakeOptions {
        version: Version::Two,
        user: None,
        password: None,
        client_name: None,
        database: 0,
    };

    fn own(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn handshakes_are_these_bytes() {
        let three = HandshakeOptions { version: Version::Three, ..NOBODY };
        let table: [(HandshakeOptions, &str, &[SetupCommand]); 8] = [
            (NOBODY, "", &[]),
            (three.clone(), "*2|$5|HELLO|$1|3|", &[SetupCommand::Hello]),
            (
                HandshakeOptions { password: own("secret"), ..three.clone() },
                "*5|$5|HELLO|$1|3|$4|AUTH|$7|default|$6|secret|",
                &[SetupCommand::Hello],
            ),
            (
                HandshakeOptions {
                    user: own("u"),
                    password: own("p w"),
                    client_name: own("brunt"),
                    database: 12,
                    ..three
                },
                "*7|$5|HELLO|$1|3|$4|AUTH|$1|u|$3|p w|$7|SETNAME|$5|brunt|*2|$6|SELECT|$2|12|",
                &[SetupCommand::Hello, SetupCommand::Select],
            ),
            (
                HandshakeOptions { password: own("secret"), ..NOBODY },
                "*2|$4|AUTH|$6|secret|",
                &[SetupCommand::Auth],
            ),
            (
                HandshakeOptions {
                    user: own("u"),
                    password: own("p"),
                    client_name: own("brunt"),
                    database: 1,
                    ..NOBODY
                },
                "*3|$4|AUTH|$1|u|$1|p|*3|$6|CLIENT|$7|SETNAME|$5|brunt|*2|$6|SELECT|$1|1|",
                &[SetupCommand::Auth, SetupCommand::SetName, SetupCommand::Select],
            ),
            (HandshakeOptions { user: own("u"), ..NOBODY }, "", &[]),
            (
                HandshakeOptions { database: u32::MAX, ..NOBODY },
                "*2|$6|SELECT|$10|4294967295|",
                &[SetupCommand::Select],
            ),
        ];
        for (login, bytes, steps) in table {
            let handshake = Handshake::new(&login);
            assert_eq!(handshake.bytes(), bytes.replace('|', "\r\n").as_bytes(), "{login:?}");
            assert_eq!(handshake.steps(), steps, "{login:?}");
        }
    }

    #[test]
    fn passwords_are_not_shown() {
        let login = HandshakeOptions { password: own("hunter2"), ..NOBODY };
        assert!(!format!("{login:?}").contains("hunter2"));
    }

    /// What redis-server 7.0.15 answers to the step of this number.
    fn check(login: &HandshakeOptions, number: usize, answer: &str, expected: Result<(), &str>) {
        let (mut codec, mut used) = (RespCodec::default(), 0);
        let said = loop {
            let (step, event) = codec.decode(&answer.as_bytes()[used..]);
            used += step;
            match event.expect("a whole reply") {
                Event::End { reply, text, .. } => {
                    break Handshake::new(login).check_reply(number, reply, text);
                }
                event => assert!(matches!(event, Event::Begin | Event::Control(_)), "{event:?}"),
            }
        };
        assert_eq!(used, answer.len());
        assert_eq!(said.map_err(|refusal| refusal.to_string()), expected.map_err(str::to_owned));
    }

    #[test]
    fn server_answers_are_judged() {
        let three = HandshakeOptions { version: Version::Three, database: 1, ..NOBODY };
        let two =
            HandshakeOptions { password: own("wrong"), client_name: own("a b"), database: 99, ..NOBODY };
        let greeting = "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:3\r\n\
            $2\r\nid\r\n:4\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n";
        check(&three, 0, greeting, Ok(()));
        check(&three, 1, "+OK\r\n", Ok(()));
        check(
            &three,
            0,
            "-NOPROTO unsupported protocol version\r\n",
            Err("HELLO refused: NOPROTO unsupported protocol version"),
        );
        check(
            &three,
            0,
            "-ERR unknown command `HELLO`, with args beginning with: `3`, \r\n",
            Err("HELLO refused: ERR unknown command `HELLO`, with args beginning with: `3`, "),
        );
        check(
            &two,
            0,
            "-WRONGPASS invalid username-password pair or user is disabled.\r\n",
            Err("AUTH refused: WRONGPASS invalid username-password pair or user is disabled."),
        );
        check(
            &two,
            1,
            "-ERR Client names cannot contain spaces, newlines or special characters.\r\n",
            Err(
                "CLIENT SETNAME refused: ERR Client names cannot contain spaces, newlines or special characters.",
            ),
        );
        check(
            &two,
            2,
            "-ERR DB index is out of range\r\n",
            Err("SELECT refused: ERR DB index is out of range"),
        );
    }
}
