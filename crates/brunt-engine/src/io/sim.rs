//! A deterministic network, server and clock behind [`Io`], for tests only.
//!
//! The production worker runs on it unchanged. Time moves only inside `wait`, to the next event or to the instant asked
//! for, exactly; the server is the reference server's own core, which shares no code with the codecs. Everything is a
//! function of the options, so every latency is known to the nanosecond.

use super::{Chunk, CloseHow, Completion, Io, LinkId, SendResult, Until, What};
use brunt_server::{Core, CoreOptions};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::IoSlice;
use std::net::SocketAddr;

/// What the simulated world is like.
#[derive(Clone, Debug)]
pub(crate) struct SimOptions {
    /// The server.
    pub server: CoreOptions,
    /// From one end of the network to the other, nanoseconds.
    pub latency_ns: u64,
    /// What one call of send costs the client.
    pub send_cost_ns: u64,
    /// Looking without sleeping costs this much, so that a spinning worker gets on.
    pub look_cost_ns: u64,
    /// Replies reach the client in pieces of at most this many bytes.
    pub piece_bytes: usize,
    /// The client stands still from the first instant for the second's length.
    pub pause: Option<(u64, u64)>,
}

impl Default for SimOptions {
    fn default() -> Self {
        Self {
            server: CoreOptions::default(),
            latency_ns: 0,
            send_cost_ns: 0,
            look_cost_ns: 50,
            piece_bytes: usize::MAX,
            pause: None,
        }
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Bytes of a client reach the server.
    AtServer { link: LinkId, generation: u32, bytes: Vec<u8> },
    /// Bytes of the server reach the client; none means that it closed.
    AtClient { link: LinkId, generation: u32, bytes: Vec<u8> },
    /// A connection is established.
    Connected { link: LinkId, generation: u32 },
}

#[derive(Clone, Copy, Debug, Default)]
struct Link {
    generation: u32,
    is_open: bool,
}

/// The simulated world as one worker sees it.
#[derive(Debug)]
pub(crate) struct Sim {
    options: SimOptions,
    now_ns: u64,
    core: Core,
    links: Vec<Link>,
    /// By time, then in order of their making.
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    made: u64,
    /// What the last wait found for the client.
    ready: std::collections::VecDeque<(LinkId, u32, What, Vec<u8>)>,
    current: Vec<u8>,
    polled_ns: u64,
    calls: u64,
}

impl Sim {
    /// A world for links `0..links`; its clock begins at 1 s.
    pub(crate) fn new(links: usize, options: SimOptions) -> Self {
        Self {
            core: Core::new(options.server.clone()),
            options,
            now_ns: 1_000_000_000,
            links: vec![Link::default(); links],
            events: BinaryHeap::new(),
            made: 0,
            ready: std::collections::VecDeque::new(),
            current: Vec::new(),
            polled_ns: 0,
            calls: 0,
        }
    }

    fn make(&mut self, at_ns: u64, event: Event) {
        self.made += 1;
        self.events.push(Reverse((at_ns, self.made, event)));
    }

    fn is_current(&self, link: LinkId, generation: u32) -> bool {
        self.links[link as usize].is_open && self.links[link as usize].generation == generation
    }

    /// Lets the server send what is due at `at_ns`.
    fn serve(&mut self, at_ns: u64) {
        while let Some(departure) = self.core.pop_due(at_ns) {
            let (link, arrives_ns) = (departure.connection, departure.departure_ns + self.options.latency_ns);
            let pieces: Vec<Vec<u8>> =
                departure.bytes.chunks(self.options.piece_bytes).map(<[u8]>::to_vec).collect();
            let closes = departure.is_last();
            let generation = self.links[link as usize].generation;
            for bytes in pieces {
                self.make(arrives_ns, Event::AtClient { link, generation, bytes });
            }
            if closes {
                self.make(arrives_ns, Event::AtClient { link, generation, bytes: Vec::new() });
            }
        }
    }

    /// The next thing that happens anywhere.
    fn next_event_ns(&self) -> u64 {
        let network_ns = self.events.peek().map_or(u64::MAX, |Reverse((at_ns, _, _))| *at_ns);
        network_ns.min(self.core.next_departure_ns().unwrap_or(u64::MAX))
    }

    /// Lets everything happen up to and including `until_ns`, but not beyond the instant at which the client first has
    /// something to take in.
    fn advance(&mut self, until_ns: u64) {
        loop {
            let next_ns = self.next_event_ns();
            if next_ns > until_ns || (!self.ready.is_empty() && next_ns > self.now_ns) {
                break;
            }
            self.now_ns = self.now_ns.max(next_ns);
            self.serve(next_ns);
            if self.events.peek().is_some_and(|Reverse((at_ns, _, _))| *at_ns <= next_ns)
                && let Some(Reverse((_, _, event))) = self.events.pop()
            {
                self.happen(next_ns, event);
            }
        }
        if self.ready.is_empty() && until_ns != u64::MAX {
            self.now_ns = self.now_ns.max(until_ns);
        }
    }

    fn happen(&mut self, at_ns: u64, event: Event) {
        match event {
            Event::AtServer { link, generation, bytes } if self.is_current(link, generation) => {
                self.core.receive(link, &bytes, at_ns);
            }
            Event::AtClient { link, generation, bytes } if self.is_current(link, generation) => {
                let chunk = Chunk { start: 0, len: bytes.len() };
                let what = if bytes.is_empty() { What::Closed(None) } else { What::Received(chunk) };
                self.ready.push_back((link, generation, what, bytes));
            }
            Event::Connected { link, generation } if self.links[link as usize].generation == generation => {
                self.links[link as usize].is_open = true;
                self.core.connect(link);
                self.ready.push_back((link, generation, What::Connected, Vec::new()));
            }
            _ => {}
        }
    }
}

impl Io for Sim {
    fn now_ns(&mut self) -> u64 {
        self.now_ns
    }

    fn connect(&mut self, link: LinkId, _address: SocketAddr) -> Result<(), i32> {
        self.links[link as usize].generation += 1;
        let generation = self.links[link as usize].generation;
        self.make(self.now_ns + 2 * self.options.latency_ns, Event::Connected { link, generation });
        Ok(())
    }

    fn send(&mut self, link: LinkId, parts: &[IoSlice<'_>]) -> SendResult {
        self.calls += 1;
        self.now_ns += self.options.send_cost_ns;
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.to_vec()).collect();
        let (taken, generation) = (bytes.len(), self.links[link as usize].generation);
        self.make(self.now_ns + self.options.latency_ns, Event::AtServer { link, generation, bytes });
        SendResult { taken: Ok(taken), at_ns: self.now_ns }
    }

    fn close(&mut self, link: LinkId, _how: CloseHow) {
        let entry = &mut self.links[link as usize];
        entry.generation += 1;
        if std::mem::take(&mut entry.is_open) {
            self.core.disconnect(link);
        }
    }

    fn wait(&mut self, until: Until) -> u64 {
        self.calls += 1;
        let before_ns = self.now_ns;
        match until {
            Until::Now => {
                let look_ns = self.now_ns + self.options.look_cost_ns;
                self.advance(look_ns);
                self.polled_ns = before_ns;
            }
            Until::Instant(at_ns) => {
                self.advance(at_ns);
                self.polled_ns = self.now_ns;
            }
        }
        if let Some((at_ns, for_ns)) = self.options.pause
            && self.now_ns >= at_ns
        {
            // The process stands still: the network and the server go on.
            self.options.pause = None;
            self.polled_ns = self.now_ns;
            let resumed_ns = at_ns + for_ns;
            while self.next_event_ns() <= resumed_ns {
                let ready = std::mem::take(&mut self.ready);
                self.advance(resumed_ns);
                let later = std::mem::replace(&mut self.ready, ready);
                self.ready.extend(later);
            }
            self.now_ns = self.now_ns.max(resumed_ns);
        }
        self.now_ns
    }

    fn next(&mut self) -> Option<Completion> {
        loop {
            let (link, generation, what, bytes) = self.ready.pop_front()?;
            if self.links[link as usize].generation != generation {
                continue;
            }
            self.calls += 1;
            self.current = bytes;
            if let What::Closed(_) = what {
                self.close(link, CloseHow::Orderly);
            }
            return Some(Completion { link, at_ns: self.now_ns, polled_ns: self.polled_ns, what });
        }
    }

    fn bytes(&self, chunk: Chunk) -> &[u8] {
        &self.current[chunk.start..chunk.start + chunk.len]
    }

    fn syscalls(&self) -> u64 {
        self.calls
    }
}
