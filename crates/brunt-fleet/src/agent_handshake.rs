//! The handshake by which controller and agent identify and authenticate each other before any message: three records of fixed length,
//! in which nothing is parsed.
//!
//! Not encryption (that is TLS's) and no message. With a token in a file on both sides, each proves to the other that it has it: a
//! keyed hash (HMAC-SHA-256) over both sides' random numbers, so that the token never travels and nothing that was overheard
//! serves again. Invariant: without that proof not a byte of a stranger's reaches the decoder of messages.
//!
//! The agent sends a [`Hello`], the controller its [`Answer`], the agent a [`Welcome`].

use ring::hmac;

/// Of the protocol: two versions do not talk.
pub const VERSION: u16 = 14;

/// Bytes by which ZeroMQ is known.
pub(crate) const ZEROMQ_BYTES: usize = 10;

/// Do these first bytes belong to ZeroMQ, which masters and agents of mutilate use? Since ZMTP 2.0 eight bytes of an unused length stand
/// between these two.
pub fn is_zeromq(begin: &[u8]) -> bool {
    begin.first() == Some(&0xFF) && begin.get(9) == Some(&0x7F)
}

const MAGIC: [u8; 6] = *b"brunt\0";
const NONCE: usize = 32;
const PROOF: usize = 32;

/// A random number that is never used again.
pub type Nonce = [u8; NONCE];

/// A secret that agents and controllers share.
#[derive(Clone)]
pub struct Token(hmac::Key);

impl Token {
    /// The first line of a file, at least 8 bytes of it.
    ///
    /// # Errors
    /// It is shorter; for a user.
    pub fn read(text: &str) -> Result<Self, String> {
        match text.lines().next() {
            Some(line) if line.len() >= 8 => Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, line.as_bytes()))),
            _ => Err("begins with no token of at least 8 bytes".to_owned()),
        }
    }

    fn proof_of(token: Option<&Self>, who: Side, agent: &Nonce, controller: &Nonce) -> [u8; PROOF] {
        let mut proof = [0; PROOF];
        if let Some(Self(key)) = token {
            proof.copy_from_slice(hmac::sign(key, &signed_text(who, agent, controller)).as_ref());
        }
        proof
    }

    fn verifies(
        token: Option<&Self>,
        who: Side,
        agent: &Nonce,
        controller: &Nonce,
        proof: &[u8; PROOF],
    ) -> bool {
        token.is_none_or(|Self(key)| hmac::verify(key, &signed_text(who, agent, controller), proof).is_ok())
    }
}

/// Whose proof it is, so that none serves for the other.
#[derive(Clone, Copy)]
enum Side {
    Agent = 1,
    Controller = 2,
}

fn signed_text(who: Side, agent: &Nonce, controller: &Nonce) -> [u8; 1 + 2 * NONCE] {
    joined([&[who as u8], agent, controller, &[]])
}

/// Parts of a record that are as long as it is together.
fn joined<const LEN: usize>(parts: [&[u8]; 4]) -> [u8; LEN] {
    parts.concat().try_into().expect("the parts of a record have fixed lengths")
}

/// What an agent sends first on a new connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Of its protocol.
    pub version: u16,
    /// It wants a proof.
    pub wants_token: bool,
    /// Its random number.
    pub nonce: Nonce,
}

impl Hello {
    /// How many bytes it has.
    pub const BYTES: usize = MAGIC.len() + 3 + NONCE;

    /// As bytes.
    pub fn bytes(&self) -> [u8; Self::BYTES] {
        joined([&MAGIC, &self.version.to_le_bytes(), &[u8::from(self.wants_token)], &self.nonce])
    }

    /// From bytes; `None` if the peer is not an agent.
    pub fn read(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let rest = bytes.strip_prefix(&MAGIC)?;
        let (version, rest) = rest.split_first_chunk()?;
        let (wants, nonce) = rest.split_first()?;
        Some(Self {
            version: u16::from_le_bytes(*version),
            wants_token: *wants == 1,
            nonce: nonce.try_into().ok()?,
        })
    }
}

/// What a controller sends back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    version: u16,
    nonce: Nonce,
    proof: [u8; PROOF],
}

impl Answer {
    /// How many bytes it has.
    pub const BYTES: usize = MAGIC.len() + 2 + NONCE + PROOF;

    /// To this hello.
    pub fn to(hello: &Hello, nonce: Nonce, token: Option<&Token>) -> Self {
        let proof = Token::proof_of(token, Side::Controller, &hello.nonce, &nonce);
        Self { version: VERSION, nonce, proof }
    }

    /// As bytes.
    pub fn bytes(&self) -> [u8; Self::BYTES] {
        joined([&MAGIC, &self.version.to_le_bytes(), &self.nonce, &self.proof])
    }

    /// From bytes; `None` if the peer is not a controller.
    pub fn read(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let rest = bytes.strip_prefix(&MAGIC)?;
        let (version, rest) = rest.split_first_chunk()?;
        let (nonce, proof) = rest.split_first_chunk()?;
        Some(Self { version: u16::from_le_bytes(*version), nonce: *nonce, proof: proof.try_into().ok()? })
    }
}

/// What the agent decides about a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum HandshakeResult {
    /// The controller has the session.
    Welcome = 0,
    /// It did not prove that it has the token.
    Unauthenticated = 1,
    /// It uses another version of the protocol.
    OtherVersion = 2,
    /// Another controller has the session.
    Busy = 3,
}

impl HandshakeResult {
    const ALL: [Self; 4] = [Self::Welcome, Self::Unauthenticated, Self::OtherVersion, Self::Busy];
}

/// The agent's decision and its own proof: the last part of the handshake. After a rejection the agent closes the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// Whether the controller is let in.
    pub result: HandshakeResult,
    proof: [u8; PROOF],
}

impl Welcome {
    /// How many bytes it has.
    pub const BYTES: usize = 1 + PROOF;

    /// To the controller that gave this answer to our hello.
    pub fn to(hello: &Hello, answer: &Answer, token: Option<&Token>, is_busy: bool) -> Self {
        let is_authenticated =
            Token::verifies(token, Side::Controller, &hello.nonce, &answer.nonce, &answer.proof);
        let result = match (answer.version == hello.version, is_authenticated, is_busy) {
            (false, ..) => HandshakeResult::OtherVersion,
            (true, false, _) => HandshakeResult::Unauthenticated,
            (true, true, true) => HandshakeResult::Busy,
            (true, true, false) => HandshakeResult::Welcome,
        };
        // A peer that is not authenticated gets no proof.
        let proven = token.filter(|_| is_authenticated);
        Self { result, proof: Token::proof_of(proven, Side::Agent, &hello.nonce, &answer.nonce) }
    }

    /// As bytes.
    pub fn bytes(&self) -> [u8; Self::BYTES] {
        joined([&[self.result as u8], &self.proof, &[], &[]])
    }

    /// From bytes; `None` if the peer is not an agent.
    pub fn read(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let (result, proof) = bytes.split_first()?;
        let result = HandshakeResult::ALL.into_iter().find(|known| *known as u8 == *result)?;
        Some(Self { result, proof: proof.try_into().ok()? })
    }

    /// Does the agent know our token? Always true without a token.
    pub fn verifies(&self, hello: &Hello, answer: &Answer, token: Option<&Token>) -> bool {
        Token::verifies(token, Side::Agent, &hello.nonce, &answer.nonce, &self.proof)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: &str) -> Option<Token> {
        Some(Token::read(text).unwrap())
    }

    /// An agent with one token and a controller with another: who comes in, and whether the controller believes it.
    fn meet(
        agents: Option<&Token>,
        controllers: Option<&Token>,
        version: u16,
        is_busy: bool,
    ) -> (HandshakeResult, bool) {
        let hello = Hello { version, wants_token: agents.is_some(), nonce: [7; NONCE] };
        let hello = Hello::read(&hello.bytes()).unwrap();
        let answer = Answer::to(&hello, [9; NONCE], controllers);
        let answer = Answer::read(&answer.bytes()).unwrap();
        let welcome = Welcome::to(&hello, &answer, agents, is_busy);
        let welcome = Welcome::read(&welcome.bytes()).unwrap();
        (welcome.result, welcome.verifies(&hello, &answer, controllers))
    }

    #[test]
    fn zeromq_is_recognized() {
        let signature = [0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 0x7F];
        assert!(is_zeromq(&signature) && is_zeromq(&[&signature[..], &[3, 0]].concat()));
        assert!(!is_zeromq(&signature[..9]));
        let answer = Answer { version: VERSION, nonce: [0xFF; NONCE], proof: [0x7F; PROOF] };
        let hello = Hello { version: VERSION, wants_token: true, nonce: [0x7F; NONCE] };
        assert!(!is_zeromq(&answer.bytes()) && !is_zeromq(&hello.bytes()));
    }

    #[test]
    fn only_peers_with_the_token_are_accepted() {
        let (one, other) = (token("correct horse"), token("battery staple"));
        let (one, other) = (one.as_ref(), other.as_ref());
        let table = [
            (None, None, VERSION, false, (HandshakeResult::Welcome, true)),
            (one, one, VERSION, false, (HandshakeResult::Welcome, true)),
            (one, one, VERSION, true, (HandshakeResult::Busy, true)),
            (one, other, VERSION, false, (HandshakeResult::Unauthenticated, false)),
            (one, None, VERSION, false, (HandshakeResult::Unauthenticated, true)),
            // The agent lets everyone in; a controller with a token does not talk to it.
            (None, one, VERSION, false, (HandshakeResult::Welcome, false)),
            (one, one, VERSION + 1, false, (HandshakeResult::OtherVersion, true)),
            // An unauthenticated peer does not learn whether the agent is busy.
            (one, other, VERSION, true, (HandshakeResult::Unauthenticated, false)),
        ];
        for (agents, controllers, version, is_busy, expected) in table {
            assert_eq!(meet(agents, controllers, version, is_busy), expected);
        }
    }

    #[test]
    fn proofs_are_valid_once_and_for_one_side() {
        let token = token("correct horse");
        let hello = Hello { version: VERSION, wants_token: true, nonce: [7; NONCE] };
        let answer = Answer::to(&hello, [9; NONCE], token.as_ref());
        let other = Hello { nonce: [8; NONCE], ..hello.clone() };
        assert_eq!(
            Welcome::to(&other, &answer, token.as_ref(), false).result,
            HandshakeResult::Unauthenticated
        );
        // The agent's own proof, sent back to it.
        let welcome = Welcome::to(&hello, &answer, token.as_ref(), false);
        let reflected = Answer { proof: welcome.proof, ..answer };
        assert_eq!(
            Welcome::to(&hello, &reflected, token.as_ref(), false).result,
            HandshakeResult::Unauthenticated
        );
    }

    #[test]
    fn malformed_handshakes_are_rejected() {
        assert_eq!(Hello::read(&[0; Hello::BYTES]), None);
        assert_eq!(Answer::read(&[b'b'; Answer::BYTES]), None);
        assert_eq!(Welcome::read(&[4; Welcome::BYTES]), None);
        assert!(Token::read("short\n").is_err() && Token::read("").is_err());
    }
}
