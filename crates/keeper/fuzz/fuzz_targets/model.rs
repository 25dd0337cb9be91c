#![no_main]

#[path = "../../tests/fuzz/targets.rs"]
#[allow(dead_code, reason = "each target uses one function of the shared file")]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::model(bytes));
