//! A fuzz target: what must hold is in the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| brunt_fuzz::server_datagrams(data));
