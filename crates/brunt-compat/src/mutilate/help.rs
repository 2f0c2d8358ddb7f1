//! The help of `brunt mutilate`, in our own words.
//!
//! What is honoured, repaired or refused in detail is in docs/compat.md.

/// Text of `--help`.
pub const HELP: &str = "\
brunt mutilate: takes the command line of mutilate, both generations, and prints its report

Usage: mutilate -s HOST[:PORT] [options]

Whom to load
  -s, --server=HOST[:PORT]     a server; several times, or a list with commas [port: 11211]
      --unix_socket            -s is the path of a socket
      --binary                 memcached's binary protocol
      --redis                  Redis's protocol
  -U, --username=NAME          log in with this name (--binary)
  -P, --password=WORD          and this password
      --assoc=BYTES            with --redis: so many at the end of a key are the field of a hash
  -R, --roundrobin             deal the servers out to the threads

How much
  -q, --qps=N                  requests per second in all; 0 is as fast as it goes [0]
  -i, --iadist=DISTRIBUTION    of the gaps between requests, scaled to -q [exponential]
  -t, --time=SECONDS           length of the measurement [5]
  -N, --queries=N              end after so many requests instead
  -w, --warmup=SECONDS         run so long before
  -W, --wait=SECONDS           do not measure before so long after the start
  -T, --threads=N              [1]
  -c, --connections=N          per server and thread, 1 to 512 [1]
  -d, --depth=N                requests in flight on a connection [1]
  -C, --measure_connections=N  takes the place of -c here, not on agents
      --affinity               pin threads to processors
  -B, --blocking               sleep between requests, never spin
      --no_nodelay             leave TCP_NODELAY off
      --moderate               without -q: pause 250 us behind each reply
  -S, --skip                   accepted; requests that are late are sent all the same

What
  -K, --keysize=DISTRIBUTION   [30]
  -V, --valuesize=DISTRIBUTION [200]
  -r, --records=N              keys, divided by the number of servers [10000]
  -u, --update=FRACTION        of requests that are sets [0.0]
      --prefix=TEXT            before every key
      --getset                 gets, and a set behind every miss
      --getsetorset            the same; with --read_file its sets, too
      --delete90               with --getset and -N: delete 90 % of the keys after half of them
      --read_file=FILE         what the lines of a file say, in their order; unpacked where its name ends in .zst
      --twitter_trace=0|1|2    its columns: with read and write [0], Twitter's, or with 1 for get and 2 for set
      --noload                 do not store the keys first
      --loadonly               store the keys and end

Several hosts
  -A, --agentmode              wait for masters, for ever, and do as they say
  -a, --agent=HOST             have this agent send, too; several times, or a list with commas
  -p, --agent_port=PORT        of agents [5556]
  -l, --lambda_mul=N           a thread here sends N times as much as one of weight 1
  -Q, --measure_qps=N          of -q, what this process sends itself; the agents send the rest
  -D, --measure_depth=N        takes the place of -d here, not on agents
      --agent-sampling         rows of everyone, not only of this process
      --auth=DIR               masters and agents have the same folder of brunt agent --new-auth: TLS and a token

What for
      --scan=MIN:MAX:STEP      a row for each rate
      --search=N:X             the highest rate with an N-th percentile of reads below X us
      --save=FILE              the time and latency of every read
  -m, --misswindow=N           the part of reads that missed, on standard error, of every N requests
      --successful             rows and rate of what succeeded only
      --legacy-latency         latency from when a request was sent, not from when it was due
      --quiet                  nothing on standard error
  -v, --verbose                more there; twice: still more
  -h, --help                   this
      --version                version, and end


A DISTRIBUTION is a number, fixed:N, uniform:MAX, normal:MEAN,SD, exponential:LAMBDA, pareto:LOC,SCALE,SHAPE,
gev:LOC,SCALE,SHAPE, or one of Facebook's: fb_key, fb_value, fb_ia.
";
