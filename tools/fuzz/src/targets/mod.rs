//! Everything that reads input from outside.

mod configuration;
mod cron;
mod directives;
mod http;
mod names;
mod records;
mod served;
mod socket;

use crate::Target;

/// All targets, each made anew.
pub fn all() -> Result<Vec<Box<dyn Target>>, String> {
    Ok(vec![
        Box::new(configuration::Configuration),
        Box::new(directives::Directives),
        Box::new(records::Records::open()?),
        Box::new(http::Http::of_the_api()?),
        Box::new(socket::Socket::open()?),
        Box::new(cron::Schedules),
        Box::new(names::Names),
        Box::new(http::Http::of_mcp()?),
    ])
}

/// Words as a target wants them.
fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
