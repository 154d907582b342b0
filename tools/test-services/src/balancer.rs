//! Proxies that stand in front of servers: nginx, HAProxy and Caddy.

use crate::listening::{Listening, write};

/// A proxy on a port of this machine. It ends with the value.
pub struct Balancer(Listening);

impl Balancer {
    /// nginx with the content of a `conf.d` file. `site` writes it for a port.
    pub fn nginx(site: impl Fn(u16) -> String) -> Balancer {
        Balancer(Listening::start("nginx", "nginx", |dir, port| {
            let own = |name: &str| dir.join(name).display().to_string();
            let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
            let paths = paths.map(|name| format!("{name}_temp_path {};", own(name))).join("\n");
            let (pid, site) = (own("pid"), write(dir, "site.conf", &site(port)));
            let main = format!(
                "daemon off;\nworker_processes 1;\npid {pid};\nerror_log stderr;\nevents {{}}\n\
                 http {{\naccess_log off;\n{paths}\ninclude {site};\n}}\n"
            );
            vec!["nginx".into(), "-p".into(), own(""), "-c".into(), write(dir, "nginx.conf", &main)]
        }))
    }

    /// HAProxy with its configuration.
    pub fn haproxy(config: impl Fn(u16) -> String) -> Balancer {
        Balancer(Listening::start("haproxy", "haproxy", |dir, port| {
            vec!["haproxy".into(), "-db".into(), "-f".into(), write(dir, "haproxy.cfg", &config(port))]
        }))
    }

    /// Caddy with its configuration.
    pub fn caddy(config: impl Fn(u16) -> String) -> Balancer {
        Balancer(Listening::start("caddy", "caddy", |dir, port| {
            // Every Caddy would listen on the same port for its administration.
            let config = format!("{{\n\tadmin off\n}}\n{}", config(port));
            let config = write(dir, "Caddyfile", &config);
            let home = format!("HOME={}", dir.display());
            let words = ["caddy", "run", "--adapter", "caddyfile", "--config", &config];
            ["env", &home].into_iter().chain(words).map(str::to_owned).collect()
        }))
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.0.port
    }
}
