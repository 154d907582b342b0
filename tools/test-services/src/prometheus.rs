//! A Prometheus server.

use crate::listening::{Listening, write};

/// A Prometheus that scrapes servers each second. It ends with the value.
pub struct Prometheus(Listening);

impl Prometheus {
    /// Scrapes these addresses (`127.0.0.1:7717`) under the name `laneway`.
    pub fn scrape(addresses: &[String]) -> Prometheus {
        Prometheus(Listening::start("prometheus", "prometheus", |dir, port| {
            let config = format!(
                "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\n\
                 scrape_configs:\n- job_name: laneway\n  static_configs:\n  - targets: {addresses:?}\n"
            );
            let (config, data) = (write(dir, "prometheus.yml", &config), dir.join("data"));
            let words = [
                "prometheus".to_owned(),
                format!("--config.file={config}"),
                format!("--storage.tsdb.path={}", data.display()),
                format!("--web.listen-address=127.0.0.1:{port}"),
                "--log.level=warn".to_owned(),
            ];
            words.into()
        }))
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.0.port)
    }
}
