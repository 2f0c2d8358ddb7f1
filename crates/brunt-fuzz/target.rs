//! The program of one fuzz target, the one that `BRUNT_FUZZ_TARGET` names when it is compiled: what must hold is in the library.
#![no_main]

/// A constant, so that the other targets are not linked: a fuzzer looks through all edges after each input.
const CHECK: fn(&[u8]) = brunt_fuzz::target(env!("BRUNT_FUZZ_TARGET"));

libfuzzer_sys::fuzz_target!(|data: &[u8]| CHECK(data));
