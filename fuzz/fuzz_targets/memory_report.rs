#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| wgvae_fuzz::run("memory_report", bytes));
