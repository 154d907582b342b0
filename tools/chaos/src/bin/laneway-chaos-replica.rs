//! One replica under load: `laneway-chaos-replica <address of the store> <number> <longest run in ms>`.

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [url, number, run_ms_max] = &words[..] else {
        eprintln!("laneway-chaos-replica <address of the store> <number> <longest run in ms>");
        std::process::exit(2);
    };
    let (Ok(number), Ok(run_ms_max)) = (number.parse(), run_ms_max.parse()) else {
        eprintln!("the number of a replica and its longest run are whole numbers");
        std::process::exit(2);
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime {
        Ok(runtime) => runtime.block_on(laneway_chaos::be_replica(url, number, run_ms_max)),
        Err(error) => eprintln!("no runtime: {error}"),
    }
}
