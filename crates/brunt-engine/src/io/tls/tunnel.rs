//! One TLS connection between plain bytes and records, with the records that are not on the wire yet.
//!
//! Bytes only: it has no socket, no clock and no state of the worker. Invariants: records leave in the order in which they were made;
//! bytes that were handed to the Io stay where they are until it has answered; and plain bytes count as taken when the last
//! byte of their record was.

use crate::transport::tls_client::TlsClient;
use brunt_proto::out::PARTS_MAX;
use rustls::{AlertDescription, CertificateError, ClientConnection, Error};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, Read, Write};

/// Plain bytes in a record at most (RFC 8446, section 5.1).
const RECORD_BYTES_MAX: usize = 16 << 10;
/// Record type of application data (RFC 5246, section 6.2.1; RFC 8446, section 5.2).
const APPLICATION_DATA: u8 = 23;
/// Records of a usual send.
const MARKS_USUAL: usize = 4;

/// The client's side of a TLS connection.
pub(super) struct Tunnel {
    connection: ClientConnection,
    /// Records for the Io: those before `taken` it has taken, the others stay until it has.
    sending: Vec<u8>,
    taken: usize,
    /// The Io was given the others, and has not answered.
    pub(super) is_sending: bool,
    /// Records that were made meanwhile.
    waiting: Vec<u8>,
    /// Bytes of records that were made and that were taken, from the beginning on.
    made: u64,
    accepted: u64,
    /// Where the records of plain bytes end that do not count as taken yet; and how many of these there are in all.
    marks: VecDeque<Mark>,
    ahead: usize,
}

/// One record of plain bytes.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// How many bytes of records were made up to its end.
    made: u64,
    plain: usize,
}

/// The bytes of the next record.
fn front<'p>(parts: &'p [IoSlice<'_>]) -> [IoSlice<'p>; PARTS_MAX] {
    let mut front = [IoSlice::new(&[]); PARTS_MAX];
    let mut room = RECORD_BYTES_MAX;
    for (piece, part) in front.iter_mut().zip(parts) {
        let len = part.len().min(room);
        *piece = IoSlice::new(&part[..len]);
        room -= len;
    }
    front
}

impl Tunnel {
    /// Begins a handshake: its first records are queued.
    pub(super) fn begin(client: &TlsClient) -> Result<Self, Error> {
        let mut connection = client.connection()?;
        // The send queue of the connection bounds it already.
        connection.set_buffer_limit(None);
        let (sending, waiting) = (Vec::new(), Vec::new());
        let marks = VecDeque::with_capacity(MARKS_USUAL);
        let mut tunnel = Self {
            connection,
            sending,
            taken: 0,
            is_sending: false,
            waiting,
            made: 0,
            accepted: 0,
            marks,
            ahead: 0,
        };
        tunnel.make_records();
        Ok(tunnel)
    }

    pub(super) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Decrypts received records and appends their plain bytes. Returns whether the peer has closed. After an error
    /// only an alert may be left to send.
    pub(super) fn receive(&mut self, mut records: &[u8], plain: &mut Vec<u8>) -> Result<bool, Error> {
        let mut is_over = false;
        let mut processed = Ok(());
        while processed.is_ok() && !is_over && !records.is_empty() {
            // Reading from a slice does not fail, and whatever it makes is fetched before more is read.
            let read =
                self.connection.read_tls(&mut records).map_err(|error| Error::General(error.to_string()))?;
            match self.connection.process_new_packets() {
                Ok(state) => {
                    is_over = state.peer_has_closed() || read == 0;
                    self.fetch(plain, state.plaintext_bytes_to_read())?;
                }
                Err(error) => {
                    // Bytes before the error are valid.
                    self.fetch_rest(plain);
                    processed = Err(error);
                }
            }
        }
        self.make_records();
        processed.map(|()| is_over)
    }

    fn fetch(&mut self, plain: &mut Vec<u8>, len: usize) -> Result<(), Error> {
        if len == 0 {
            return Ok(());
        }
        let begin = plain.len();
        plain.resize(begin + len, 0);
        self.connection
            .reader()
            .read_exact(&mut plain[begin..])
            .map_err(|error| Error::General(error.to_string()))
    }

    /// Fetches all plain bytes after an error, whose number is unknown.
    #[cold]
    fn fetch_rest(&mut self, plain: &mut Vec<u8>) {
        let mut bytes = [0; 1 << 12];
        while let Ok(len @ 1..) = self.connection.reader().read(&mut bytes) {
            plain.extend_from_slice(&bytes[..len]);
        }
    }

    /// Encrypts offered bytes, except for the front that was encrypted when it was offered before.
    ///
    /// # Errors
    /// The library encrypts no more. With TLS 1.2 this happens when a key is used up (AES-GCM: after 2^24 records):
    /// it accepts the bytes, drops them and closes. With TLS 1.3 it changes the key.
    pub(super) fn encrypt(&mut self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        let mut copies = [IoSlice::new(&[]); PARTS_MAX];
        let mut rest = &mut copies[..parts.len()];
        rest.copy_from_slice(parts);
        IoSlice::advance_slices(&mut rest, self.ahead);
        while !rest.is_empty() {
            let begin = self.waiting.len();
            let plain = self.connection.writer().write_vectored(&front(rest))?;
            self.make_records();
            if self.waiting.get(begin) != Some(&APPLICATION_DATA) {
                return Err(ErrorKind::ConnectionAborted.into());
            }
            IoSlice::advance_slices(&mut rest, plain);
            self.ahead += plain;
            self.marks.push_back(Mark { made: self.made, plain });
        }
        Ok(())
    }

    /// Queues a close_notify.
    pub(super) fn send_close_notify(&mut self) {
        self.connection.send_close_notify();
        self.make_records();
    }

    /// Fetches the records that were made.
    fn make_records(&mut self) {
        while self.connection.wants_write() {
            let written = self.connection.write_tls(&mut self.waiting);
            debug_assert!(written.is_ok(), "a vector takes everything: {written:?}");
            self.made += written.unwrap_or(0) as u64;
        }
    }

    /// Records to send now; empty if there are none or a send is pending. The bytes stay in place until
    /// [`Tunnel::sent`].
    pub(super) fn take_off(&mut self) -> &[u8] {
        if self.is_sending {
            return &[];
        }
        if self.taken == self.sending.len() {
            self.sending.clear();
            self.taken = 0;
            std::mem::swap(&mut self.sending, &mut self.waiting);
        } else {
            self.sending.append(&mut self.waiting);
        }
        self.is_sending = self.taken < self.sending.len();
        &self.sending[self.taken..]
    }

    /// Notes how many of these bytes the Io has taken.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.is_sending = false;
        self.taken += bytes;
        self.accepted += bytes as u64;
        debug_assert!(self.taken <= self.sending.len(), "no more than it was given");
    }

    /// Has the Io taken all that it was given?
    pub(super) fn is_all_accepted(&self) -> bool {
        !self.is_sending && self.taken == self.sending.len()
    }

    /// Are there records that the Io was not given?
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The plain bytes that count as taken, each once: those of the records that have accepted whole. No server can have answered
    /// others.
    pub(super) fn take_accepted(&mut self) -> usize {
        let mut plain = 0;
        while let Some(mark) = self.marks.front().filter(|mark| mark.made <= self.accepted) {
            plain += mark.plain;
            self.marks.pop_front();
        }
        self.ahead -= plain;
        plain
    }

    /// Are there plain bytes that do not count as taken?
    pub(super) fn is_ahead(&self) -> bool {
        self.ahead > 0
    }
}

/// Hint for a server that does not answer TLS.
pub(crate) const PLAIN_HINT: &str =
    "; without TLS use --set transport=tcp, in a URL redis:// or memcached://";

/// What `openssl req -x509` makes is one unless it is told otherwise.
const CA_HINT: &str = "the server shows a CA's own certificate; make it with -addext basicConstraints=CA:FALSE, or add --tls-insecure";

/// Describes a TLS error for a user.
pub(crate) fn explain(error: &Error) -> String {
    match error {
        Error::AlertReceived(alert) => {
            format!("TLS alert {alert:?}{}", certificate_hint(*alert))
        }
        Error::InvalidCertificate(reason) => match reason {
            CertificateError::UnknownIssuer => {
                "certificate not signed by a trusted CA; add --tls-ca FILE or --tls-insecure".to_owned()
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                format!("invalid certificate: {reason}; --tls-server-name sets the expected name")
            }
            _ if reason.to_string().contains("CaUsedAsEndEntity") => CA_HINT.to_owned(),
            _ => format!("invalid certificate: {reason}"),
        },
        Error::InvalidMessage(_) => format!("the reply is not TLS{PLAIN_HINT}"),
        other => other.to_string(),
    }
}

/// The options that an alert suggests.
fn certificate_hint(alert: AlertDescription) -> &'static str {
    match alert {
        AlertDescription::CertificateRequired => {
            "; it requires a client certificate: set --tls-cert and --tls-key"
        }
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnknownCA => "; it rejects the client certificate (--tls-cert, --tls-key)",
        AlertDescription::HandshakeFailure => {
            "; it requires a client certificate (--tls-cert, --tls-key), or shares no cipher"
        }
        _ => "",
    }
}
