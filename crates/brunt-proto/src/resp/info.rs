//! Parser of Redis's reply to `INFO`.
//!
//! Gathering the reply is [`super::reply`]'s business; names and values stay texts, and what they mean is not known
//! here. Sections of other names than [`SECTIONS`] are passed over: they belong to modules and to servers that tell
//! more than a Redis does.

use super::reply::Value;
use brunt_plan::quoted_bytes::QuotedBytes;

/// The question. Before Redis 7.0 only one section could be named, and `ALL` takes a server 0.05 ms where the sections that
/// are read here take 0.04 ms.
pub const REQUEST: &[u8] = b"*2\r\n$4\r\nINFO\r\n$3\r\nALL\r\n";

/// The sections that are read.
pub const SECTIONS: [&str; 7] = ["Server", "Clients", "Memory", "Stats", "CPU", "Commandstats", "Keyspace"];

/// The longest piece of a server's own words in a message.
const QUOTED_MAX: usize = 120;

/// Names and values in the order of the server. The head of a section is a row of its own, `# NAME` without a value: of
/// what a section leaves out there is none, but only if the section is there.
///
/// # Errors
/// The server answers with an error, or with no text: its own words, or what it sent instead.
pub fn rows<'a>(reply: &Value<'a>) -> Result<Vec<(&'a str, &'a str)>, String> {
    let text = match reply {
        Value::Text(text) => std::str::from_utf8(text).ok(),
        Value::Error(text) => {
            let words = QuotedBytes(&text[..text.len().min(QUOTED_MAX)]);
            return Err(format!("it answers \"{words}\""));
        }
        _ => None,
    };
    let text = text.ok_or_else(|| "its answer to INFO is no text".to_owned())?;
    let (mut rows, mut is_read) = (Vec::new(), false);
    for line in text.lines() {
        if let Some(section) = line.strip_prefix("# ") {
            is_read = SECTIONS.contains(&section);
            rows.extend(is_read.then_some((line, "")));
        } else if is_read {
            rows.extend(line.split_once(':').filter(|(name, _)| !name.is_empty()));
        }
    }
    if rows.is_empty() { Err("its answer to INFO is empty".to_owned()) } else { Ok(rows) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::reply::WholeReply;

    /// What redis-server 7.0.15 says after some traffic; line ends as in a text file.
    const REDIS: &str = include_str!("information/golden/redis-7.0.15.txt");

    fn wire(text: &str) -> Vec<u8> {
        let text = text.replace('\n', "\r\n");
        format!("${}\r\n{text}\r\n", text.len()).into_bytes()
    }

    /// Takes a reply in two pieces.
    fn gathered(bytes: &[u8], cut: usize) -> WholeReply {
        let mut reply = WholeReply::default();
        assert_eq!(reply.take(&bytes[..cut]), Ok(cut == bytes.len()), "{cut}");
        if cut < bytes.len() {
            assert_eq!(reply.take(&bytes[cut..]), Ok(true), "{cut}");
        }
        reply
    }

    #[test]
    fn a_whole_reply_and_one_cut_at_every_byte() {
        // The sections that are read, taken apart another way.
        let sections = REDIS.split("\n\n").filter(|section| {
            SECTIONS.iter().any(|name| section.trim_start().starts_with(&format!("# {name}\n")))
        });
        let lines = sections.flat_map(|section| section.trim().split('\n'));
        let expected: Vec<String> = lines.map(str::to_owned).collect();
        assert_eq!(expected.iter().filter(|line| line.starts_with("# ")).count(), SECTIONS.len());
        let bytes = wire(REDIS);
        for cut in 0..=bytes.len() {
            let reply = gathered(&bytes, cut);
            let value = reply.value().unwrap();
            let rows = rows(&value).unwrap();
            let told = rows.iter().map(|(name, value)| match name.starts_with('#') {
                true => (*name).to_owned(),
                false => format!("{name}:{value}"),
            });
            assert_eq!(told.collect::<Vec<_>>(), expected, "{cut}");
        }
    }

    #[test]
    fn known_rows_are_found() {
        let reply = gathered(&wire(REDIS), 0);
        let value = reply.value().unwrap();
        let rows = rows(&value).unwrap();
        let of = |name: &str| rows.iter().find(|(held, _)| *held == name).map(|(_, value)| *value);
        assert_eq!(of("redis_version"), Some("7.0.15"));
        assert_eq!(of("keyspace_hits"), Some("4"));
        assert!(of("cmdstat_mget").unwrap().starts_with("calls=1,usec="), "{rows:?}");
        assert_eq!(of("db0"), Some("keys=3,expires=0,avg_ttl=0"));
        assert_eq!(of("role"), None, "of another section");
        assert_eq!(of("# Keyspace"), Some(""));
    }

    #[test]
    fn other_replies_are_reported() {
        let table: [(&[u8], &str); 6] = [
            (
                b"-NOPERM this user has no permissions to run the 'info' command\r\n",
                "it answers \"NOPERM this user has no permissions to run the 'info' command\"",
            ),
            (b"-LOADING Redis is loading\r\n", "it answers \"LOADING Redis is loading\""),
            (b":5\r\n", "its answer to INFO is no text"),
            (b"$2\r\n\xff\xfe\r\n", "its answer to INFO is no text"),
            (b"$0\r\n\r\n", "its answer to INFO is empty"),
            (b"$17\r\n# Other\r\nhits:5\r\n\r\n", "its answer to INFO is empty"),
        ];
        for (bytes, expected) in table {
            let reply = gathered(bytes, bytes.len());
            let found = rows(&reply.value().unwrap()).unwrap_err();
            assert_eq!(found.to_string(), expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn resp3_yields_the_same_rows() {
        let text = "# Stats\r\nkeyspace_hits:5\r\n";
        let reply = gathered(format!("={}\r\ntxt:{text}\r\n", text.len() + 4).as_bytes(), 3);
        assert_eq!(rows(&reply.value().unwrap()).unwrap(), [("# Stats", ""), ("keyspace_hits", "5")]);
    }
}
