#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bellwether_server::fuzz::configuration(bytes));
