//! Connection setup of Redis: version, credentials, name and database, before the first request.
//!
//! All commands go out together, and each has one reply; the first that is refused says why the connection is of no
//! use.

use super::request::put_bulk;
use crate::out::Out;
use brunt_plan::login::Login;
use brunt_plan::plan::Protocol;
use std::fmt;

brunt_plan::named! {
    /// A command of a handshake.
    #[allow(missing_docs, reason = "the names are the protocol's own")]
    pub enum SetupCommand {
        Hello = "HELLO",
        Auth = "AUTH",
        SetName = "CLIENT SETNAME",
        Select = "SELECT",
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
    /// What has to be said in this version of the protocol; nothing, of a connection that begins as it is to be.
    pub fn new(protocol: Protocol, login: &Login) -> Self {
        let mut commands: Vec<(SetupCommand, Vec<&str>)> = Vec::new();
        let (name, database) = (login.client_name.as_deref(), login.database.to_string());
        let credentials = login.password.as_ref().map(|password| (login.user.as_deref(), password.secret()));
        if protocol == Protocol::Resp3 {
            let mut hello = vec!["HELLO", "3"];
            if let Some((user, password)) = credentials {
                // HELLO takes no password without a user; this is what the default one is called.
                hello.extend(["AUTH", user.unwrap_or("default"), password]);
            }
            hello.extend(name.into_iter().flat_map(|name| ["SETNAME", name]));
            commands.push((SetupCommand::Hello, hello));
        } else {
            if let Some((user, password)) = credentials {
                // Servers before Redis 6 know no users, and AUTH with one argument only.
                let words = ["AUTH"].into_iter().chain(user).chain([password]);
                commands.push((SetupCommand::Auth, words.collect()));
            }
            commands.extend(name.map(|name| (SetupCommand::SetName, vec!["CLIENT", "SETNAME", name])));
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

    /// The command that the reply of this number answers.
    pub fn step(&self, number: u32) -> Option<SetupCommand> {
        self.steps.get(number as usize).copied()
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
    use crate::template::Templates;
    use crate::{Codec, Event};
    use brunt_plan::login::Password;
    use brunt_plan::outcome::ReplyKind;
    use std::sync::Arc;

    fn own(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    fn secret(text: &str) -> Option<Password> {
        Some(Password::verbatim(text.to_owned()))
    }

    #[test]
    fn handshakes_are_these_bytes() {
        let table: [(Protocol, Login, &str, &[SetupCommand]); 8] = [
            (Protocol::Resp2, Login::default(), "", &[]),
            (Protocol::Resp3, Login::default(), "*2|$5|HELLO|$1|3|", &[SetupCommand::Hello]),
            (
                Protocol::Resp3,
                Login { password: secret("secret"), ..Login::default() },
                "*5|$5|HELLO|$1|3|$4|AUTH|$7|default|$6|secret|",
                &[SetupCommand::Hello],
            ),
            (
                Protocol::Resp3,
                Login { user: own("u"), password: secret("p w"), client_name: own("brunt"), database: 12 },
                "*7|$5|HELLO|$1|3|$4|AUTH|$1|u|$3|p w|$7|SETNAME|$5|brunt|*2|$6|SELECT|$2|12|",
                &[SetupCommand::Hello, SetupCommand::Select],
            ),
            (
                Protocol::Resp2,
                Login { password: secret("secret"), ..Login::default() },
                "*2|$4|AUTH|$6|secret|",
                &[SetupCommand::Auth],
            ),
            (
                Protocol::Resp2,
                Login { user: own("u"), password: secret("p"), client_name: own("brunt"), database: 1 },
                "*3|$4|AUTH|$1|u|$1|p|*3|$6|CLIENT|$7|SETNAME|$5|brunt|*2|$6|SELECT|$1|1|",
                &[SetupCommand::Auth, SetupCommand::SetName, SetupCommand::Select],
            ),
            (Protocol::Resp2, Login { user: own("u"), ..Login::default() }, "", &[]),
            (
                Protocol::Resp2,
                Login { database: u32::MAX, ..Login::default() },
                "*2|$6|SELECT|$10|4294967295|",
                &[SetupCommand::Select],
            ),
        ];
        for (version, login, bytes, steps) in table {
            let handshake = Handshake::new(version, &login);
            assert_eq!(handshake.bytes(), bytes.replace('|', "\r\n").as_bytes(), "{login:?}");
            assert_eq!(handshake.steps(), steps, "{login:?}");
        }
    }

    #[test]
    fn passwords_are_not_shown() {
        let login = Login { password: secret("hunter2"), ..Login::default() };
        assert!(!format!("{:?}", Handshake::new(Protocol::Resp3, &login)).contains("hunter2"));
    }

    /// What redis-server 7.0.15 answers to the step of this number.
    fn check((version, login): &(Protocol, Login), number: u32, answer: &str, expected: Result<(), &str>) {
        let (mut codec, mut used) = (RespCodec::default(), 0);
        let judge = RespCodec::new(Templates::default(), Some(Arc::new(Handshake::new(*version, login))));
        let said = loop {
            let (step, event) = codec.decode(&answer.as_bytes()[used..]);
            used += step;
            match event.expect("a whole reply") {
                Event::End { reply, text, .. } => {
                    break match reply {
                        ReplyKind::Ok => Ok(()),
                        _ => Err(judge.setup_error(number, reply, text)),
                    };
                }
                event => assert!(matches!(event, Event::Begin | Event::Control(_)), "{event:?}"),
            }
        };
        assert_eq!(used, answer.len());
        assert_eq!(said, expected.map_err(str::to_owned));
    }

    #[test]
    fn server_answers_are_judged() {
        let three = (Protocol::Resp3, Login { database: 1, ..Login::default() });
        let two = (
            Protocol::Resp2,
            Login { password: secret("wrong"), client_name: own("a b"), database: 99, ..Login::default() },
        );
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
