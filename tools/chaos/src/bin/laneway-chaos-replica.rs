//! One replica under load: `laneway-chaos-replica <address of the store> <number>`.

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [url, number] = &words[..] else {
        eprintln!("laneway-chaos-replica <address of the store> <number>");
        std::process::exit(2);
    };
    let Ok(number) = number.parse() else {
        eprintln!("the number of a replica is a whole number");
        std::process::exit(2);
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime {
        Ok(runtime) => runtime.block_on(laneway_chaos::be_replica(url, number)),
        Err(error) => eprintln!("no runtime: {error}"),
    }
}
