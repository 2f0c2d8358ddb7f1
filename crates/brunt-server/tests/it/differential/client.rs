//! A client of every protocol, one operation at a time: operations to bytes, whole replies to outcomes.

/// How an operation travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WireProtocol {
    Text,
    Meta,
    Binary,
    TextDatagrams,
    MetaDatagrams,
    Resp2,
    Resp3,
}

impl WireProtocol {
    pub(crate) fn is_datagram(self) -> bool {
        matches!(self, Self::TextDatagrams | Self::MetaDatagrams)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Get,
    Mget,
    /// A get that tells the unique.
    Gets,
    Set,
    Add,
    Replace,
    Append,
    Prepend,
    Cas,
    Incr,
    Decr,
    Delete,
    Touch,
}

#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) kind: Kind,
    pub(crate) keys: Vec<String>,
    pub(crate) value: Vec<u8>,
    pub(crate) flags: u32,
    pub(crate) ttl_s: u32,
    /// The unique of a cas, the delta of incr and decr.
    pub(crate) operand: u64,
    /// No answer is wanted.
    pub(crate) is_quiet: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Of every key in order, its flags and its value.
    Values(Vec<Option<(u32, Vec<u8>)>>),
    /// Flags, value, unique.
    Unique(u32, Vec<u8>, u64),
    Stored,
    NotStored,
    Exists,
    NotFound,
    Number(u64),
    Deleted,
    Touched,
    /// Refused by script.
    Failed,
    /// What is stored is no number.
    NotANumber,
    /// No answer, or not all of it.
    Lost,
    /// No answer was wanted.
    Unseen,
}

pub(crate) fn encode(protocol: WireProtocol, operation: &Operation) -> Vec<u8> {
    match protocol {
        WireProtocol::Text | WireProtocol::TextDatagrams => text(operation),
        WireProtocol::Meta | WireProtocol::MetaDatagrams => meta(operation),
        WireProtocol::Binary => binary(operation),
        WireProtocol::Resp2 | WireProtocol::Resp3 => resp(operation),
    }
}

/// What a whole reply says; `None` if it is none.
pub(crate) fn decode(protocol: WireProtocol, operation: &Operation, reply: &[u8]) -> Option<Outcome> {
    let mut reply = Reply(reply);
    let outcome = match protocol {
        WireProtocol::Text | WireProtocol::TextDatagrams => text_outcome(operation, &mut reply),
        WireProtocol::Meta | WireProtocol::MetaDatagrams => meta_outcome(operation, &mut reply),
        WireProtocol::Binary => binary_outcome(operation, &mut reply),
        WireProtocol::Resp2 | WireProtocol::Resp3 => resp_outcome(operation, &mut reply),
    }?;
    assert!(reply.0.is_empty(), "{operation:?}: {} is left", reply.0.escape_ascii());
    Some(outcome)
}

/// What is left of a reply.
struct Reply<'a>(&'a [u8]);

impl<'a> Reply<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn line(&mut self) -> Option<&'a str> {
        let end = self.0.windows(2).position(|pair| pair == b"\r\n")?;
        let line = std::str::from_utf8(self.take(end)?).unwrap();
        self.take(2)?;
        Some(line)
    }

    /// A value with its line end.
    fn value(&mut self, len: usize) -> Option<Vec<u8>> {
        let value = self.take(len)?.to_vec();
        (self.take(2)? == b"\r\n").then_some(value)
    }
}

/// What a retrieval comes to that found these, of the keys that it requested.
fn found(operation: &Operation, found: &[(String, u32, Vec<u8>, u64)]) -> Outcome {
    if operation.kind == Kind::Gets {
        let unique = found.first().map(|(_, flags, value, unique)| (*flags, value.clone(), *unique));
        return unique.map_or(Outcome::Values(vec![None]), |(flags, value, unique)| {
            Outcome::Unique(flags, value, unique)
        });
    }
    let of = |key: &String| found.iter().find(|(name, ..)| name == key);
    let values = operation.keys.iter().map(|key| of(key).map(|(_, flags, value, _)| (*flags, value.clone())));
    Outcome::Values(values.collect())
}

fn is_retrieval(kind: Kind) -> bool {
    matches!(kind, Kind::Get | Kind::Gets | Kind::Mget)
}

// --- Text ---

fn text(operation: &Operation) -> Vec<u8> {
    let Operation { kind, keys, value, flags, ttl_s, operand, is_quiet } = operation;
    let (key, noreply) = (&keys[0], if *is_quiet { " noreply" } else { "" });
    let verb = format!("{kind:?}").to_lowercase();
    let line = match kind {
        Kind::Get | Kind::Gets => format!("{verb} {key}\r\n"),
        Kind::Mget => format!("get {}\r\n", keys.join(" ")),
        Kind::Incr | Kind::Decr => format!("{verb} {key} {operand}{noreply}\r\n"),
        Kind::Delete => format!("delete {key}{noreply}\r\n"),
        Kind::Touch => format!("touch {key} {ttl_s}{noreply}\r\n"),
        Kind::Cas => format!("cas {key} {flags} {ttl_s} {} {operand}{noreply}\r\n", value.len()),
        _ => format!("{verb} {key} {flags} {ttl_s} {}{noreply}\r\n", value.len()),
    };
    match kind {
        Kind::Set | Kind::Add | Kind::Replace | Kind::Append | Kind::Prepend | Kind::Cas => {
            [line.as_bytes(), value, b"\r\n"].concat()
        }
        _ => line.into_bytes(),
    }
}

fn text_outcome(operation: &Operation, reply: &mut Reply<'_>) -> Option<Outcome> {
    let mut values = Vec::new();
    loop {
        let line = reply.line()?;
        let words: Vec<&str> = line.split(' ').collect();
        return Some(match words[..] {
            ["VALUE", key, flags, len, ref unique @ ..] => {
                let value = reply.value(len.parse().unwrap())?;
                let unique = unique.first().map_or(0, |unique| unique.parse().unwrap());
                values.push((key.to_owned(), flags.parse().unwrap(), value, unique));
                continue;
            }
            ["END"] => found(operation, &values),
            ["STORED"] => Outcome::Stored,
            ["NOT_STORED"] => Outcome::NotStored,
            ["EXISTS"] => Outcome::Exists,
            ["NOT_FOUND"] => Outcome::NotFound,
            ["DELETED"] => Outcome::Deleted,
            ["TOUCHED"] => Outcome::Touched,
            ["SERVER_ERROR", "injected", "fault"] => Outcome::Failed,
            ["CLIENT_ERROR", "cannot", ..] => Outcome::NotANumber,
            [number] => Outcome::Number(number.parse().unwrap()),
            _ => panic!("{operation:?}: {line}"),
        });
    }
}

// --- Meta ---

fn meta(operation: &Operation) -> Vec<u8> {
    let Operation { kind, keys, value, flags, ttl_s, operand, is_quiet } = operation;
    let (key, quiet) = (&keys[0], if *is_quiet { " q" } else { "" });
    let mode = match kind {
        Kind::Add => " ME".to_owned(),
        Kind::Replace => " MR".to_owned(),
        Kind::Append => " MA".to_owned(),
        Kind::Prepend => " MP".to_owned(),
        Kind::Cas => format!(" C{operand}"),
        _ => String::new(),
    };
    let line = match kind {
        Kind::Get => format!("mg {key} k f v\r\n"),
        Kind::Gets => format!("mg {key} k f c v\r\n"),
        Kind::Mget => {
            let further: String = keys[1..].iter().map(|key| format!("mg {key} q k f v\r\n")).collect();
            format!("mg {key} k f v\r\n{further}mn\r\n")
        }
        Kind::Incr => format!("ma {key} D{operand} v{quiet}\r\n"),
        Kind::Decr => format!("ma {key} MD D{operand} v{quiet}\r\n"),
        Kind::Delete => format!("md {key}{quiet}\r\n"),
        Kind::Touch => format!("mg {key} T{ttl_s}\r\n"),
        _ => {
            let head = format!("ms {key} {} F{flags} T{ttl_s}{mode}{quiet}\r\n", value.len());
            return [head.as_bytes(), value, b"\r\n"].concat();
        }
    };
    line.into_bytes()
}

fn meta_outcome(operation: &Operation, reply: &mut Reply<'_>) -> Option<Outcome> {
    let mut values = Vec::new();
    loop {
        let line = reply.line()?;
        let words: Vec<&str> = line.split(' ').collect();
        let outcome = match words[..] {
            ["VA", len, ref flags @ ..] => {
                let value = reply.value(len.parse().unwrap())?;
                let told = |letter: char| flags.iter().find_map(|word| word.strip_prefix(letter));
                let Some(key) = told('k') else {
                    return Some(Outcome::Number(String::from_utf8(value).unwrap().parse().unwrap()));
                };
                let number = |letter| told(letter).map_or(0, |text| text.parse().unwrap());
                values.push((key.to_owned(), number('f') as u32, value, number('c')));
                None
            }
            ["EN", ..] if is_retrieval(operation.kind) => None,
            ["MN"] => Some(found(operation, &values)),
            ["EN"] | ["NF"] => Some(Outcome::NotFound),
            ["NS"] => Some(Outcome::NotStored),
            ["EX"] => Some(Outcome::Exists),
            ["HD"] => Some(match operation.kind {
                Kind::Delete => Outcome::Deleted,
                Kind::Touch => Outcome::Touched,
                _ => Outcome::Stored,
            }),
            ["CLIENT_ERROR", "cannot", ..] => Some(Outcome::NotANumber),
            ["SERVER_ERROR", "injected", "fault"] => {
                // What ends the batch is said all the same.
                return (operation.kind != Kind::Mget || reply.line()? == "MN").then_some(Outcome::Failed);
            }
            _ => panic!("{operation:?}: {line}"),
        };
        match outcome {
            Some(outcome) => return Some(outcome),
            None if operation.kind != Kind::Mget => return Some(found(operation, &values)),
            None => {}
        }
    }
}

// --- Binary ---

fn frame(opcode: u8, extras: &[u8], key: &str, value: &[u8], unique: u64) -> Vec<u8> {
    let body = (extras.len() + key.len() + value.len()) as u32;
    let mut frame = vec![0x80, opcode];
    frame.extend((key.len() as u16).to_be_bytes());
    frame.extend([extras.len() as u8, 0, 0, 0]);
    frame.extend(body.to_be_bytes());
    frame.extend([0; 4]);
    frame.extend(unique.to_be_bytes());
    [&frame, extras, key.as_bytes(), value].concat()
}

fn binary(operation: &Operation) -> Vec<u8> {
    let Operation { kind, keys, value, flags, ttl_s, operand, is_quiet } = operation;
    let key = &keys[0];
    let store = [flags.to_be_bytes(), ttl_s.to_be_bytes()].concat();
    let change = [&operand.to_be_bytes()[..], &[0; 8], &[0xff; 4]].concat();
    let quiet = |aloud, quiet| if *is_quiet { quiet } else { aloud };
    match kind {
        Kind::Get | Kind::Gets => frame(0x0c, &[], key, &[], 0),
        Kind::Mget => {
            let gets: Vec<u8> = keys.iter().flat_map(|key| frame(0x0d, &[], key, &[], 0)).collect();
            [gets, frame(0x0a, &[], "", &[], 0)].concat()
        }
        Kind::Set => frame(quiet(0x01, 0x11), &store, key, value, 0),
        Kind::Cas => frame(quiet(0x01, 0x11), &store, key, value, *operand),
        Kind::Add => frame(quiet(0x02, 0x12), &store, key, value, 0),
        Kind::Replace => frame(quiet(0x03, 0x13), &store, key, value, 0),
        Kind::Append => frame(quiet(0x0e, 0x19), &[], key, value, 0),
        Kind::Prepend => frame(quiet(0x0f, 0x1a), &[], key, value, 0),
        Kind::Incr => frame(quiet(0x05, 0x15), &change, key, &[], 0),
        Kind::Decr => frame(quiet(0x06, 0x16), &change, key, &[], 0),
        Kind::Delete => frame(quiet(0x04, 0x14), &[], key, &[], 0),
        Kind::Touch => frame(0x1c, &ttl_s.to_be_bytes(), key, &[], 0),
    }
}

fn binary_outcome(operation: &Operation, reply: &mut Reply<'_>) -> Option<Outcome> {
    let (mut values, mut has_failed) = (Vec::new(), false);
    loop {
        let header = reply.take(24)?;
        let number = |at: usize, len: usize| {
            header[at..at + len].iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte))
        };
        let (key_len, extras_len, body_len) = (number(2, 2) as usize, number(4, 1) as usize, number(8, 4));
        let body = reply.take(body_len as usize)?;
        let (extras, key, value) =
            (&body[..extras_len], &body[extras_len..extras_len + key_len], &body[extras_len + key_len..]);
        let is_batch = operation.kind == Kind::Mget;
        match (header[1], number(6, 2), operation.kind) {
            (0x0a, 0, Kind::Mget) if has_failed => return Some(Outcome::Failed),
            (0x0a, 0, Kind::Mget) => return Some(found(operation, &values)),
            (_, 0x84, _) if is_batch => has_failed = true,
            (_, 0x84, _) => return Some(Outcome::Failed),
            (_, status, kind) if is_retrieval(kind) => {
                if status == 0 {
                    let flags = u32::from_be_bytes(extras.try_into().unwrap());
                    let key = String::from_utf8(key.to_vec()).unwrap();
                    values.push((key, flags, value.to_vec(), number(16, 8)));
                }
                if !is_batch {
                    return Some(found(operation, &values));
                }
            }
            (_, 0, Kind::Incr | Kind::Decr) => {
                return Some(Outcome::Number(u64::from_be_bytes(value.try_into().unwrap())));
            }
            (_, 0, Kind::Delete) => return Some(Outcome::Deleted),
            (_, 0, Kind::Touch) => return Some(Outcome::Touched),
            (_, 0, _) => return Some(Outcome::Stored),
            (_, 1, Kind::Replace) | (_, 2, Kind::Add) | (_, 5, _) => return Some(Outcome::NotStored),
            (_, 1, _) => return Some(Outcome::NotFound),
            (_, 2, _) => return Some(Outcome::Exists),
            (_, 6, _) => return Some(Outcome::NotANumber),
            (opcode, status, _) => panic!("{operation:?}: {opcode:#x} {status:#x}"),
        }
    }
}

// --- Redis ---

fn resp(operation: &Operation) -> Vec<u8> {
    let Operation { kind, keys, value, ttl_s, operand, .. } = operation;
    let (ttl, operand) = (ttl_s.to_string(), operand.to_string());
    let key = keys[0].as_bytes();
    let mut words: Vec<&[u8]> = match kind {
        Kind::Get => vec![b"GET", key],
        Kind::Mget => [&b"MGET"[..]].into_iter().chain(keys.iter().map(|key| key.as_bytes())).collect(),
        Kind::Set | Kind::Add | Kind::Replace => vec![b"SET", key, value],
        Kind::Append => vec![b"APPEND", key, value],
        Kind::Incr => vec![b"INCRBY", key, operand.as_bytes()],
        Kind::Decr => vec![b"DECRBY", key, operand.as_bytes()],
        Kind::Delete => vec![b"DEL", key],
        Kind::Touch => vec![b"EXPIRE", key, ttl.as_bytes()],
        Kind::Gets | Kind::Prepend | Kind::Cas => panic!("{kind:?} is not Redis's"),
    };
    if *ttl_s > 0 && matches!(kind, Kind::Set | Kind::Add | Kind::Replace) {
        words.extend([b"EX", ttl.as_bytes()]);
    }
    match kind {
        Kind::Add => words.push(b"NX"),
        Kind::Replace => words.push(b"XX"),
        _ => {}
    }
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn resp_outcome(operation: &Operation, reply: &mut Reply<'_>) -> Option<Outcome> {
    let line = reply.line()?;
    let (sort, text) = line.split_at(1);
    let is_write = matches!(operation.kind, Kind::Set | Kind::Add | Kind::Replace);
    Some(match (sort, operation.kind) {
        ("-", _) if text == "ERR injected fault" => Outcome::Failed,
        ("+", _) if is_write && text == "OK" => Outcome::Stored,
        ("_", _) if is_write => Outcome::NotStored,
        ("$", _) if is_write && text == "-1" => Outcome::NotStored,
        ("$" | "_", Kind::Get) => Outcome::Values(vec![resp_string(line, reply)?]),
        ("*", Kind::Mget) => {
            assert_eq!(text, operation.keys.len().to_string());
            let values = operation.keys.iter().map(|_| resp_string(reply.line()?, reply));
            Outcome::Values(values.collect::<Option<_>>()?)
        }
        (":", Kind::Append) => Outcome::Stored,
        (":", Kind::Incr | Kind::Decr) => Outcome::Number(text.parse().unwrap()),
        (":", Kind::Delete) => {
            if text == "1" {
                Outcome::Deleted
            } else {
                Outcome::NotFound
            }
        }
        (":", Kind::Touch) => {
            if text == "1" {
                Outcome::Touched
            } else {
                Outcome::NotFound
            }
        }
        _ => panic!("{operation:?}: {line}"),
    })
}

/// A string or a null, of which this is the first line; `None` if it is cut. There are no flags.
fn resp_string(line: &str, reply: &mut Reply<'_>) -> Option<Option<(u32, Vec<u8>)>> {
    match line {
        "_" | "$-1" => Some(None),
        _ => {
            let len = line.strip_prefix('$').unwrap().parse().unwrap();
            Some(Some((0, reply.value(len)?)))
        }
    }
}
