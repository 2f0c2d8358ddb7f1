//! Queues whose response times have a known distribution, in virtual time: the experiments T3 (M/M/1), T4 (M/D/1) and
//! T5 (D/M/1) of docs/method.md, and D/D/1.
//!
//! Two comparisons of each. Every single response time equals the *path*: Lindley's recursion over the intended times and
//! the server's service times, computed here, to the nanosecond. And the quantiles that come out of the production
//! histograms agree with the *distribution* that theory gives the queue, within the error of that number of dependent requests.

use super::{SECOND, plan, simulate, simulate_within};
use crate::simulated::sim::SimOptions;
use brunt_plan::quantile::Quantile;
use brunt_server::{CoreOptions, Service};
use brunt_stats::histogram::Histogram;

/// The server's mean service time: 10 000 requests/s.
const MEAN_NS: u64 = 100_000;
const SERVICE_SEED: u64 = 5;

/// A queue with one server.
struct Queue {
    name: &'static str,
    arrival: &'static str,
    service: Service,
    /// Utilisation in per cent: that many hundred requests/s.
    rho_percent: u64,
    /// The p50, p90, p99, p99.9 by theory, in microseconds.
    theory_us: [f64; 4],
    /// By how much quantiles of 200 000 requests may differ from theory, from their number and how much they depend on each
    /// other: at ρ = 0.5 they count as a ninth of their number, at 0.8 as an eightieth.
    tolerance: f64,
}

const QUANTILES: [Quantile; 4] = [Quantile::P50, Quantile::P90, Quantile::P99, Quantile::P999];

/// M/M/1: R is exponential with rate μ − λ. M/D/1: Erlang's series. D/M/1: R is exponential with rate μ(1 − σ), where
/// σ = e^−(1−σ)/ρ.
const QUEUES: [Queue; 9] = {
    const EXPONENTIAL: Service = Service::Exponential(MEAN_NS);
    const FIXED: Service = Service::Fixed(MEAN_NS);
    const fn queue(
        name: &'static str,
        arrival: &'static str,
        service: Service,
        rho_percent: u64,
        theory_us: [f64; 4],
        tolerance: f64,
    ) -> Queue {
        Queue { name, arrival, service, rho_percent, theory_us, tolerance }
    }
    [
        queue("M/M/1", "poisson", EXPONENTIAL, 30, [99.0, 328.9, 657.9, 986.8], 0.02),
        queue("M/M/1", "poisson", EXPONENTIAL, 50, [138.6, 460.5, 921.0, 1381.6], 0.03),
        queue("M/M/1", "poisson", EXPONENTIAL, 80, [346.6, 1151.3, 2302.6, 3453.9], 0.10),
        queue("M/D/1", "poisson", FIXED, 30, [100.0, 183.8, 289.1, 402.3], 0.02),
        queue("M/D/1", "poisson", FIXED, 50, [100.0, 251.6, 433.6, 616.8], 0.03),
        queue("M/D/1", "poisson", FIXED, 80, [227.6, 601.2, 1135.6, 1670.0], 0.10),
        queue("D/M/1", "uniform", EXPONENTIAL, 30, [72.3, 240.1, 480.1, 720.2], 0.02),
        queue("D/M/1", "uniform", EXPONENTIAL, 50, [87.0, 289.0, 577.9, 866.9], 0.03),
        queue("D/M/1", "uniform", EXPONENTIAL, 80, [186.6, 620.0, 1240.0, 1860.1], 0.10),
    ]
};

/// A plan with this number of requests over one connection, so that the order of arrival is the order of the schedule.
fn toml(queue: &Queue, requests: u64) -> String {
    format!(
        "rate = {}\narrival = '{}'\nconnections = 1\ndepth = 100000\nrequests = {requests}\n\
         preload = false\nkeys = 1000\ntimeout = '60s'",
        queue.rho_percent * 100,
        queue.arrival
    )
}

fn options(service: Service) -> SimOptions {
    SimOptions::of(CoreOptions { service, seed: SERVICE_SEED, ..CoreOptions::default() })
}

/// Compares the first `quantiles` of the response times with theory.
fn check_quantiles(queue: &Queue, histogram: &Histogram, tolerance: f64, quantiles: usize) {
    let Queue { name, rho_percent, theory_us, .. } = queue;
    for (quantile, theory_us) in QUANTILES.into_iter().zip(theory_us).take(quantiles) {
        let measured_us = histogram.quantile(quantile).unwrap() as f64 / 1e3;
        assert!(
            (measured_us / theory_us - 1.0).abs() <= tolerance,
            "{name} at {rho_percent} %: {quantile} {measured_us:.1} us, law {theory_us} us"
        );
    }
}

fn is_full() -> bool {
    std::env::var("BRUNT_ACCURACY").is_ok_and(|value| value == "full")
}

/// A quarter of the requests doubles what chance does to a quantile, which is still little next to the distribution of another queue, and leaves
/// too few for a p99.9; how near theory a quantile comes, a million requests show below.
#[test]
fn queues_follow_their_path_and_their_distribution() {
    let (requests, errors, quantiles) = if is_full() { (200_000, 1.0, 4) } else { (50_000, 2.0, 3) };
    for queue in &QUEUES {
        let outcome = simulate(&toml(queue, requests), options(queue.service));
        assert_eq!(outcome.samples.len() as u64, requests);
        let mut departure_ns = 0;
        for (number, sample) in outcome.samples.iter().enumerate() {
            let times = &sample.times;
            let service_ns = queue.service.service_ns(SERVICE_SEED, number as u64);
            departure_ns = times.intended_ns.max(departure_ns) + service_ns;
            let expected_ns = departure_ns - times.intended_ns;
            assert_eq!(times.response_ns(), expected_ns, "{}: request {number}", queue.name);
        }
        let (_, _, row) = outcome.store.rows().next().unwrap();
        check_quantiles(queue, &row.latencies.response, errors * queue.tolerance, quantiles);
    }
}

/// T3 at length: M/M/1 at half load, the p99 within 1.5 % of theory. A standard error is 0.6 % over the million requests of
/// the usual run, and 0.2 % over the ten million of `cargo xtask replications`.
#[test]
fn the_p99_of_a_million_requests_is_that_of_theory() {
    let (requests, queue) = (if is_full() { 10_000_000 } else { 1_000_000 }, &QUEUES[1]);
    let mut plan = plan(&toml(queue, requests));
    plan.samples_max = 0;
    let outcome = simulate_within(plan, options(queue.service), 3_000 * SECOND);
    let (_, _, row) = outcome.store.rows().next().unwrap();
    let (p99_ns, theory_ns) = (row.latencies.response.quantile(Quantile::P99).unwrap(), 921_034.0);
    let off = p99_ns as f64 / theory_ns - 1.0;
    println!(
        "T3 in virtual time: {requests} requests, p99 {:.1} us, law 921.0 us, off {:.2} %",
        p99_ns as f64 / 1e3,
        off * 100.0
    );
    assert!(off.abs() <= 0.015, "p99 {p99_ns} ns of {requests} requests, law {theory_ns} ns");
}

/// At half the capacity evenly spaced requests of the same length never meet.
#[test]
fn a_queue_without_chance_has_no_queue() {
    let queue = Queue { arrival: "uniform", service: Service::Fixed(MEAN_NS), ..QUEUES[1] };
    let outcome = simulate(&toml(&queue, 100_000), options(queue.service));
    assert!(outcome.samples.iter().all(|sample| sample.times.response_ns() == MEAN_NS));
}
