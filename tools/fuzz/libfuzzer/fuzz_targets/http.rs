#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    laneway_fuzz::read("http", input);
});
