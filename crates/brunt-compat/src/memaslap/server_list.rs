//! Servers as memaslap has them: `HOST[:PORT[ WEIGHT]]` with commas between them.
//!
//! Not where they are: names stay names. Invariant: the list is not empty, and weights, which libmemcached reads and memaslap does not
//! look at, are gone.

use super::PORT;
use crate::options::invalid_value;
use brunt_plan::server::ServerAddress;
use std::net::Ipv6Addr;

/// Reads a list. Empty items, such as the one behind a comma at the end, are none.
///
/// # Errors
/// An item is no server.
pub fn parse(text: &str) -> Result<Vec<ServerAddress>, String> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(server).collect()
}

fn server(item: &str) -> Result<ServerAddress, String> {
    let accepted = |_| invalid_value("servers", item, "HOST, HOST:PORT, [IPV6]:PORT or the path of a socket");
    let place = item.split_whitespace().next().unwrap_or_default();
    if place.starts_with('/') {
        return format!("unix:{place}").parse().map_err(accepted);
    }
    // Of HOST:PORT:WEIGHT. IPv6 literals have their own colons.
    let is_literal = place.starts_with('[') || place.parse::<Ipv6Addr>().is_ok();
    let weightless = match place.splitn(3, ':').collect::<Vec<_>>().as_slice() {
        [host, port, weight] if weight.parse::<u32>().is_ok() && !is_literal => {
            format!("{host}:{port}")
        }
        _ => place.to_owned(),
    };
    let without_port =
        weightless.strip_suffix(":0").filter(|host| !host.contains(':') || host.ends_with(']'));
    let address = without_port.unwrap_or(&weightless).parse::<ServerAddress>().map_err(accepted)?;
    Ok(address.at_port(PORT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_lists_are_parsed() {
        let table = [
            ("127.0.0.1:11212", "127.0.0.1:11212"),
            ("a", "a:11211"),
            ("a:1,b:2,", "a:1 b:2"),
            ("a:1, b:2", "a:1 b:2"),
            ("a:0,b:7 5,c:8:5", "a:11211 b:7 c:8"),
            ("[::1]:7,::1,[::1]:0", "[::1]:7 [::1]:11211 [::1]:11211"),
            ("/tmp/mc.sock,unix:/run/x", "unix:/tmp/mc.sock unix:/run/x"),
        ];
        for (text, expected) in table {
            let shown: Vec<String> = parse(text).unwrap().iter().map(ToString::to_string).collect();
            assert_eq!(shown.join(" "), expected, "{text}");
        }
        for text in ["a:b", "a:1:x", "a:99999", "!"] {
            let refusal = parse(&format!("ok,{text}")).unwrap_err();
            assert!(
                refusal.starts_with(&format!("invalid value '{text}' for --servers: expected HOST")),
                "{refusal}"
            );
        }
    }
}
