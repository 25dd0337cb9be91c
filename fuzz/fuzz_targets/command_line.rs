#![no_main]

#[path = "../../src/cli/mod.rs"]
#[allow(dead_code, reason = "the command is parsed and not run")]
mod cli;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cli::fuzz::command_line(bytes));
