//! Command lines with agents: the plans that they come to, what is refused and what is said.

use super::super::command_line::{CommandLine, parse};
use super::*;
use crate::front_end::Refusal;
use crate::options::tests::words;
use brunt_plan::resolve::{Host, resolve};
use brunt_plan::units::Count;

const HOST: [u32; 4] = [0, 1, 2, 3];

fn asked(line: &str) -> Result<CommandLine, Refusal> {
    parse(&words(line)).map(|action| action.run().0)
}

fn invocation(line: &str) -> Result<Invocation, Refusal> {
    let (line, generation) = parse(&words(line))?.run();
    Ok(Invocation::new(line, generation, &HOST)?)
}

/// Agents of so many threads, each of a weight.
fn agents(all: &[(u32, u32)]) -> Vec<AgentCapacity> {
    all.iter()
        .map(|(threads, weight)| AgentCapacity {
            threads: *threads,
            weight: *weight,
            ..AgentCapacity::default()
        })
        .collect()
}

/// A plan at its own rate: the agents' threads, and of each class connections, depth and rate.
fn plan(line: &str, all: &[(u32, u32)]) -> String {
    let invocation = invocation(line).unwrap_or_else(|refusal| panic!("{line}: {refusal:?}"));
    let spec = invocation.leading(invocation.line.qps, &agents(all));
    let host = Host::of(HOST.to_vec(), 7);
    let plan = resolve(&spec, &host).unwrap_or_else(|error| panic!("{line}: {error}"));
    // What agents are told is what the master has.
    let text = plan.spec.to_toml();
    assert_eq!(resolve(&PlanSpec::from_toml(&text).unwrap(), &host).as_ref(), Ok(&plan), "{line}");
    let count = |count: Option<Count>| count.map_or(0, |count| count.0);
    let class = |class: &ClassSpec| {
        let rate = class.rate.map_or("-".to_owned(), |rate| rate.to_string());
        format!("{}x{} {rate}", count(class.connections), count(class.depth))
    };
    let printed = plan.spec.clone();
    let classes: Vec<String> = printed.classes.iter().map(class).collect();
    format!("{} threads: {}", plan.threads, classes.join(", "))
}

#[test]
fn master_options_become_plans() {
    let one = &[(1, 1)][..];
    let table = [
        // (command line, threads and weights of agents, theirs and then the master's)
        (
            "-s h -T 16 -Q 1000 -D 4 -C 4 -c 4 -q 200000",
            &[(16, 1); 8][..],
            "128 threads: 512x1 199000/s, 64x4 1000/s",
        ),
        ("-s h -q 500 -Q 100 -C 1 -D 1", one, "1 threads: 1x1 400/s, 1x1 100/s"),
        // In proportion to connections, where the master is one among others.
        ("-s h -q 400 -c 2 -T 2 -d 3", &[(2, 1), (4, 1)], "6 threads: 12x3 300/s, 4x3 100/s"),
        ("-s h -q 400 -c 2 -l 3", one, "1 threads: 2x1 100/s, 2x1 300/s"),
        ("-s h -q 400 -c 2", &[(1, 3)], "1 threads: 2x1 300/s, 2x1 100/s"),
        ("-s h -q 400 -c 1 -C 3", one, "1 threads: 1x1 100/s, 3x1 300/s"),
        // Two servers, all of them for each thread or dealt out.
        ("-s h,i -q 400 -c 2", &[(3, 1)], "3 threads: 12x1 300/s, 4x1 100/s"),
        ("-s h,i -R -T 8 -c 2", &[(8, 1)], "8 threads: 16x1 -, 16x1 -"),
        ("-s h,i -R -T 8 -c 1", &[(8, 1)], "4 threads: 8x1 -, 8x1 -"),
        // As fast as it goes.
        ("-s h", one, "1 threads: 1x1 -, 1x1 -"),
        ("-s h -Q 1000", one, "1 threads: 1x1 -, 1x1 1000/s"),
        ("-s h -q 1000 -Q 0", one, "1 threads: 1x1 1000/s, 1x1 -"),
        // No threads on this host.
        ("-s h -T 0 -q 1000 -Q 10", one, "1 threads: 1x1 1000/s"),
        ("-s h -T 0", &[(2, 1)], "2 threads: 2x1 -"),
    ];
    for (line, all, expected) in table {
        assert_eq!(plan(&format!("{line} -a x"), all), expected, "{line}");
    }
}

/// To the millionth of a request per second, whatever weighs how much.
#[test]
fn rates_add_up() {
    let micro = |rate: Option<Rate>| rate.map_or(0, |rate| rate.micro_per_second);
    for qps in [1, 7, 999, 200_000] {
        for (weight, masters_weight) in [(1, 0), (1, 1), (3, 7), (512, 64), (99_991, 13)] {
            for own in [None, Some(qps / 3), Some(qps - 1)] {
                let Rates { agents, master } = Rates::of(qps, own, weight, masters_weight);
                assert_eq!(
                    micro(agents) + micro(master),
                    qps * 1_000_000,
                    "{qps} {weight}:{masters_weight} {own:?}"
                );
                let expected = own.filter(|_| masters_weight > 0);
                assert!(expected.is_none_or(|own| micro(master) == own * 1_000_000), "{qps} {own:?}");
            }
        }
    }
}

/// The steps of a scan that are no faster than the master by itself.
#[test]
fn slow_steps_are_the_masters_alone() {
    let invocation = invocation("-s h -a x -Q 1000 -C 4 -D 2 -c 3 --scan 500:2000:500").unwrap();
    let alone: Vec<u64> =
        (500..=2_000).step_by(500).filter(|qps| invocation.is_masters_alone(*qps)).collect();
    assert_eq!(alone, [500, 1_000]);
    let spec = invocation.leading(500, &agents(&[(1, 1)]));
    let own = (spec.run.agent, spec.base.connections, spec.base.depth, spec.base.rate);
    assert_eq!(own, (None, Some(Count(4)), Some(Count(2)), Some(Rate::per_second(500))));
    assert_eq!(invocation.leading(1_500, &agents(&[(1, 1)])).classes.len(), 2);
}

/// Single requests are kept of the master alone, and so many as it sends.
#[test]
fn samples_are_the_masters() {
    let invocation = invocation("-s h -a x -Q 1000 -q 200000 -t 10 --save f").unwrap();
    assert_eq!(invocation.leading(200_000, &agents(&[(16, 1)])).run.samples_max, Some(Count(22_500)));
}

#[test]
fn agents_have_names_and_ports() {
    let agents = |line: &str| invocation(&format!("-s h {line}")).unwrap().agents();
    let named = |all: &[(&str, u16)]| -> Vec<(String, u16)> {
        all.iter().map(|(host, port)| ((*host).to_owned(), *port)).collect()
    };
    assert_eq!(agents(""), []);
    assert_eq!(agents("-a a,b --agent=c"), named(&[("a", 5556), ("b", 5556), ("c", 5556)]));
    assert_eq!(agents("-a a,b:7 -p 6556"), named(&[("a", 6556), ("b", 7)]));
    assert_eq!(
        agents("-a ::1 -a [::2]:7 -a [::3]"),
        named(&[("[::1]", 5556), ("[::2]", 7), ("[::3]", 5556)])
    );
}

#[test]
fn agents_print_only_warnings() {
    let mode = |line: &str| asked(line).unwrap();
    let usual = mode("-A");
    assert!(usual.agentmode);
    assert_eq!((usual.agent_port, usual.threads, usual.lambda_mul), (5556, 1, 1));
    assert!(usual.warnings.is_empty() && !usual.affinity && !usual.blocking && !usual.quiet);
    let all = mode("-A --affinity -B --quiet -T 14 -p 0 -l 3 --auth d");
    assert_eq!(
        (all.agent_port, all.threads, all.lambda_mul, all.affinity, all.blocking, all.quiet),
        (0, 14, 3, true, true, true)
    );
    assert_eq!(all.auth.as_deref(), Some("d"));
    assert!(all.warnings.is_empty(), "{:?}", all.warnings);
    assert_eq!(mode("-A -vv").warnings, ["--verbose: without effect on an agent; it says all it has to say"]);
    assert_eq!(
        mode("-A -s h -s i -C 4 -t 9").warnings,
        ["server", "measure_connections", "time"]
            .map(|long| format!("--{long}: without effect on an agent; the master decides"))
    );
}

#[test]
fn invalid_combinations_are_rejected() {
    let table = [
        ("-s h -a x -q 100 -Q 101", "invalid value '101' for --measure_qps: expected less than --qps 100"),
        ("-s h -a x -q 100 -Q 100", "invalid value '100' for --measure_qps"),
        ("-s h -a x -N 5", "--queries cannot be used with --agent"),
        ("-s h -a x -T 0 --search 95:1", "--search judges reads of the master"),
        ("-s h -a x -p 0", "invalid value '0' for --agent_port: expected a port of TCP, from 1 to 65535"),
        ("-A -p -1", "invalid value '-1' for --agent_port: expected a port of TCP, from 0 to 65535"),
        ("-s h -a a:b", "invalid value 'a:b' for --agent: expected HOST or HOST:PORT"),
        ("-s h -a x, ", "invalid value '' for --agent"),
        ("-s h -a x -l 0", "invalid value '0' for --lambda_mul: expected 1 or more"),
        ("-s h -a x -D 0", "invalid value '0' for --measure_depth"),
        ("-s h -a x -Q -1", "invalid value '-1' for --measure_qps"),
        ("-A -T 0", "invalid value '0' for --threads"),
        ("-s h -T 0", "invalid value '0' for --threads: expected 1 or more, or 0 beside --agent"),
    ];
    for (line, message) in table {
        let refusal = asked(line).map(|_| ()).unwrap_err();
        assert!(refusal.code.is_none() && refusal.message.starts_with(message), "{line}: {refusal:?}");
    }
}

#[test]
fn surprising_options_are_warned_of() {
    let table = [
        ("-s localhost -a far", "--server: agent far looks 'localhost' up itself"),
        ("-s h -a x -T 0 --agent-sampling -C 4", "--measure_connections: without effect; with --threads 0"),
        ("-s h -a x -T 0", "--threads: with 0 no row has a latency"),
        ("-s h -a x --agent-sampling --successful", "--agent-sampling: without effect"),
        ("-s h -a x --loadonly", "--agent: without effect"),
        ("-s h --agent-sampling", "--agent-sampling: without effect"),
        ("-s h --auth x", "--auth: without effect"),
    ];
    for (line, message) in table {
        let warnings = invocation(line).unwrap().warnings;
        assert!(
            matches!(warnings.as_slice(), [warning] if warning.starts_with(message)),
            "{line}: {warnings:?}"
        );
    }
    for line in [
        "-s 127.0.0.1:7 -a localhost -a [::1]",
        "-s h -a far -Q 5 -C 4 -D 4 -c 4 -q 9 -l 2 -p 7 --auth d",
        "-s h -a x -Q 300 --scan 0:1000:200",
    ] {
        assert_eq!(invocation(line).unwrap().warnings, [""; 0], "{line}");
    }
}

#[test]
fn command_lines_of_known_scripts_become_plans() {
    let table = [
        "-s memcached_server --noload -B -T 16 -Q 1000 -D 4 -C 4 -a agent1 -a agent2 -a agent8 -c 4 -q 200000",
        "--binary -s 192.168.1.9 --noload --agent=192.168.1.106,192.168.1.107,192.168.1.37,192.168.1.38 --threads=1 \
         --keysize=fb_key --valuesize=fb_value --iadist=fb_ia --update=0.25 --depth=4 --measure_depth=1 --connections=16 \
         --measure_connections=32 --measure_qps=2000 --qps=10000 --time=30",
        "--agent=10.10.1.2 --agent=10.10.1.3 --depth=128 --measure_connections=32 --qps=100000 --time=30 -s 10.10.1.1",
        "-s 172.16.0.18 --noload -T 4 -Q 1000 -C 4 -c 4 -q 20000 -t 1 -i exponential:1 -a 172.16.0.19",
        "-s 172.16.0.18 --noload -T 4 -Q 1000 -C 4 -c 4 --scan=200:4000:100 -v -a 172.16.0.19",
        "-B -T 12 -c 12 -w 5 -Q 1000 -q 100000 -t 15 -s host:11211 --noload -a x",
        "-v -s 10.5.3.9:11211 -T 20 -B -C 4 -D 4 -c 4 --noload -p 6556 --warmup 5 -t 30 --search 99:500 -a x",
        "--binary -B -s M -a localhost -K fb_key -V fb_value -i fb_ia -u 0.25 -c 8 -d 4 -C 8 --search=99:500 -t 60",
        "-s 10.10.1.1 --noload -T 2 -c 8 -d 32 -K 30 -V 32 -u 0.1 -r 100000 -i exponential:1 -q 100000 -w 5 -t 65 -C 1 -Q 200 \
         -D 4 --save F -a x",
        "-s ip -T 4 -c 25 -t 60 -D 4 -C 4 -a ip -q 50000 -a localhost",
        "--keysize=16 --valuesize=128 --records=10000 --roundrobin --server=ip:11211 --server=ip:11212 --noload --qps=0 \
         --time=300 --update=0.0 --threads=8 --connections=8 --depth=4 --agent=y --measure_connections=8 --measure_qps=1000 \
         --measure_depth=1 --iadist=exponential:0.0 --binary",
        "-T 8 -s 10.0.0.1 -t 60 -a client1",
    ];
    for line in table {
        plan(line, &[(2, 1), (16, 1), (3, 2)]);
        let invocation = invocation(line).unwrap();
        let host = Host::of(HOST.to_vec(), 7);
        for qps in [0, 200, 4_000] {
            resolve(&invocation.leading(qps, &agents(&[(2, 1)])), &host)
                .unwrap_or_else(|error| panic!("{line}: {error}"));
        }
    }
}
