//! Placement of keys on servers by the rules of client libraries.
//!
//! Only the rules by key, as functions of the key's bytes; placement in turn or at random is a matter of the session.
//! Nothing is allocated or changed after construction: the plan fixes the set of servers, and a server that is down keeps its
//! keys. Compatible with libmemcached to the last point of its continuum, which tests against recorded answers prove.

#[cfg(test)]
mod libmemcached;

use brunt_plan::plan::Placement;
use brunt_plan::server::ServerAddress;
use md5::{Digest, Md5};

/// Maps keys to servers.
#[derive(Clone, Debug)]
pub struct Router(Rule);

#[derive(Clone, Debug)]
enum Rule {
    One,
    Modulo { servers: u32 },
    Ketama(Continuum),
    KetamaWeighted(Continuum),
}

impl Router {
    /// The rule for these servers, at least one. With several of them `placement` is one by key.
    pub fn new(placement: Placement, servers: &[ServerAddress]) -> Self {
        assert!(!servers.is_empty(), "no servers to place keys on");
        Self(match placement {
            _ if servers.len() == 1 => Rule::One,
            Placement::Modulo => Rule::Modulo { servers: servers.len() as u32 },
            Placement::Ketama => Rule::Ketama(Continuum::unweighted(servers)),
            Placement::KetamaWeighted => Rule::KetamaWeighted(Continuum::equally_weighted(servers)),
            Placement::RoundRobin | Placement::Random | Placement::ByThread => {
                panic!("{placement} does not look at keys")
            }
        })
    }

    /// The index of the server that this key lives on.
    #[inline]
    pub fn route(&self, key: &[u8]) -> u32 {
        match &self.0 {
            Rule::One => 0,
            Rule::Modulo { servers } => one_at_a_time(key) % servers,
            Rule::Ketama(continuum) => continuum.server_at(one_at_a_time(key)),
            Rule::KetamaWeighted(continuum) => continuum.server_at(md5_words(key)[0]),
        }
    }
}

/// Jenkins's hash of this name (Dr. Dobb's Journal, September 1997); libmemcached adds bytes as signed ones.
#[inline]
fn one_at_a_time(key: &[u8]) -> u32 {
    let mixed = key.iter().fold(0u32, |hash, byte| {
        let hash = hash.wrapping_add(*byte as i8 as u32);
        let hash = hash.wrapping_add(hash << 10);
        hash ^ (hash >> 6)
    });
    let hash = mixed.wrapping_add(mixed << 3);
    let hash = hash ^ (hash >> 11);
    hash.wrapping_add(hash << 15)
}

/// The digest as the four little-endian words it consists of.
#[inline]
fn md5_words(bytes: &[u8]) -> [u32; 4] {
    let digest: [u8; 16] = Md5::digest(bytes).into();
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(digest.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    words
}

/// The circle of 2³² hashes on which servers have points; a key belongs to the next point from its hash on.
#[derive(Clone, Debug)]
struct Continuum {
    /// By hash, and where two are equal, in the order of the servers.
    points: Box<[Point]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    hash: u32,
    server: u32,
}

/// The port that libmemcached leaves out of the names of points.
const PORT_UNNAMED: u16 = 11211;

impl Continuum {
    /// 100 points for each server, by the hash of the default: the library's manual promises MD5 here, its code changes
    /// the distribution alone.
    fn unweighted(servers: &[ServerAddress]) -> Self {
        Self::from_names(servers, 100, |name| [one_at_a_time(name)])
    }

    /// 160 points for each server, four from every digest: 40 digests each, if it were not for single precision, in which
    /// 1/servers · 40 · servers comes out below 40 for 25 servers, for 47 and for some more; then it is one digest less.
    fn equally_weighted(servers: &[ServerAddress]) -> Self {
        let count = servers.len() as f32;
        let weight = 1.0 / count;
        let digests = weight * 160.0 / 4.0 * count;
        Self::from_names(servers, digests as u32, md5_words)
    }

    /// As many names for each server, and a point for each of a name's hashes.
    fn from_names<const N: usize>(
        servers: &[ServerAddress],
        names: u32,
        hashes: impl Fn(&[u8]) -> [u32; N],
    ) -> Self {
        let mut points = Vec::with_capacity(servers.len() * names as usize * N);
        for (server, address) in (0..).zip(servers) {
            for index in 0..names {
                let name = match address {
                    ServerAddress::Network { host, port: PORT_UNNAMED } => format!("{host}-{index}"),
                    ServerAddress::Network { host, port } => format!("{host}:{port}-{index}"),
                    // The library takes the path for a host, and 0 for its port.
                    ServerAddress::Unix { path } => format!("{path}:0-{index}"),
                };
                points.extend(hashes(name.as_bytes()).map(|hash| Point { hash, server }));
            }
        }
        points.sort_by_key(|point| point.hash);
        Self { points: points.into_boxed_slice() }
    }

    /// The server of the first point at or behind this hash, around the circle.
    #[inline]
    fn server_at(&self, hash: u32) -> u32 {
        let index = self.points.partition_point(|point| point.hash < hash);
        self.points.get(index).unwrap_or(&self.points[0]).server
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn servers(texts: &[&str]) -> Vec<ServerAddress> {
        texts.iter().map(|text| text.parse::<ServerAddress>().unwrap().at_port(11211)).collect()
    }

    fn numbered(count: usize) -> Vec<ServerAddress> {
        (0..count).map(|server| ServerAddress::network(format!("cache-{server}"), 11311)).collect()
    }

    #[test]
    fn placement_matches_libmemcached() {
        let mut compared = 0;
        for (placement, texts, fewest, name) in libmemcached::ANSWERS {
            for (count, answers) in (fewest..).zip(libmemcached::recorded(name)) {
                let router = Router::new(placement, &servers(&texts[..count]));
                compared += 1;
                assert_eq!(answers.len(), libmemcached::KEYS);
                for (number, answer) in answers.bytes().enumerate() {
                    let key = libmemcached::key(number);
                    let server = b'a' + router.route(key.as_bytes()) as u8;
                    assert_eq!(server, answer, "{key} by {placement} on {count} of {texts:?}");
                }
            }
        }
        assert_eq!(compared, 37);
    }

    #[test]
    fn hashes_agree_with_published_values() {
        // MD5 from RFC 1321, A.5, in words; one at a time from the table in Wikipedia's article on Jenkins's hashes.
        assert_eq!(md5_words(b"abc"), [0x9850_0190, 0xb04f_d23c, 0x7d3f_96d6, 0x727f_e128]);
        assert_eq!(one_at_a_time(b"a"), 0xca2e_9442);
        assert_eq!(one_at_a_time(b"The quick brown fox jumps over the lazy dog"), 0x519e_91f5);
    }

    #[test]
    fn one_server_has_every_key() {
        for placement in Placement::ALL {
            let router = Router::new(placement, &numbered(1));
            assert!((0..100u32).all(|key| router.route(&key.to_le_bytes()) == 0), "{placement}");
        }
    }

    #[test]
    fn servers_have_the_keys_of_their_arcs() {
        // The share of a server is the length of the arcs that end at its points; a binomial count, four deviations.
        let keys = 200_000;
        for placement in [Placement::Modulo, Placement::Ketama, Placement::KetamaWeighted] {
            let router = Router::new(placement, &numbered(5));
            let mut counts = [0f64; 5];
            (0..keys)
                .for_each(|key| counts[router.route(format!("key-{key:010}").as_bytes()) as usize] += 1.0);
            for (count, share) in counts.iter().zip(shares(&router)) {
                let expected = f64::from(keys) * share;
                let bar = 4.0 * (expected * (1.0 - share)).sqrt();
                assert!((count - expected).abs() < bar, "{placement}: {count}, {expected} ± {bar}");
            }
        }
    }

    /// The fraction of all hashes that belongs to each of five servers.
    fn shares(router: &Router) -> [f64; 5] {
        let (Rule::Ketama(continuum) | Rule::KetamaWeighted(continuum)) = &router.0 else { return [0.2; 5] };
        let mut shares = [0.0; 5];
        let mut before = continuum.points[continuum.points.len() - 1].hash;
        for point in &continuum.points {
            shares[point.server as usize] += f64::from(point.hash.wrapping_sub(before)) / 4_294_967_296.0;
            before = point.hash;
        }
        shares
    }

    #[test]
    fn points_are_as_many_as_the_rules_say() {
        for (servers, unweighted, weighted) in
            [(2, 200, 320), (7, 700, 1_120), (24, 2_400, 3_840), (25, 2_500, 25 * 156), (47, 4_700, 47 * 156)]
        {
            let servers = numbered(servers);
            assert_eq!(Continuum::unweighted(&servers).points.len(), unweighted);
            assert_eq!(Continuum::equally_weighted(&servers).points.len(), weighted);
        }
    }

    proptest! {
        #[test]
        fn without_a_server_only_its_keys_move(count in 2..20usize, gone in any::<prop::sample::Index>(), seed in any::<u32>()) {
            let all = numbered(count);
            let gone = gone.index(count);
            let mut rest = all.clone();
            rest.remove(gone);
            for placement in [Placement::Ketama, Placement::KetamaWeighted] {
                let (before, after) = (Router::new(placement, &all), Router::new(placement, &rest));
                for number in 0..200 {
                    let key = format!("{seed}-{number}");
                    let (old, new) = (before.route(key.as_bytes()) as usize, after.route(key.as_bytes()) as usize);
                    prop_assert!(old == gone || all[old] == rest[new], "{} by {}", key, placement);
                }
            }
        }
    }
}
