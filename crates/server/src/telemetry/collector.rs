//! The way to an OpenTelemetry collector: the variables that the specification names, and the requests.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::error::ServerError;

/// The tries of a request, and the pause before the second one.
pub(super) const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(500);
/// The timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The pause between two exports of metrics.
const METRICS_EVERY: Duration = Duration::from_secs(60);

/// Where telemetry goes, and what it says of this server.
pub(crate) struct Collectors {
    pub(crate) traces: Option<Collector>,
    pub(crate) metrics: Option<Collector>,
    pub(crate) metrics_every: Duration,
}

/// The address for one signal. Clones share the connections.
#[derive(Clone)]
pub(crate) struct Collector {
    client: reqwest::Client,
    url: String,
    headers: HeaderMap,
    timeout: Duration,
    /// What made the telemetry, in the form of OTLP.
    resource: Value,
}

/// A variable of the environment that is set and not empty.
struct Variables<F>(F);

impl<F: Fn(&str) -> Option<String>> Variables<F> {
    fn get(&self, name: &str) -> Option<String> {
        let value = (self.0)(name)?;
        Some(value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// The variable of a signal, else the one for all signals.
    fn of(&self, signal: &str, name: &str) -> Option<String> {
        let all = || self.get(&format!("OTEL_EXPORTER_OTLP_{name}"));
        self.get(&format!("OTEL_EXPORTER_OTLP_{signal}_{name}")).or_else(all)
    }

    fn millis(&self, name: &str, value: Option<String>) -> Result<Option<Duration>, ServerError> {
        let Some(value) = value else { return Ok(None) };
        let millis = value.parse().ok().filter(|millis| *millis > 0);
        let wrong = || wrong(name, "a whole number of milliseconds, such as 10000");
        millis.map(Duration::from_millis).map(Some).ok_or_else(wrong)
    }

    /// `key=value` pairs, in which both may be percent-encoded.
    fn pairs(&self, name: &str, value: Option<String>) -> Result<Vec<(String, String)>, ServerError> {
        let value = value.unwrap_or_default();
        let decode =
            |text: &str| percent_decode_str(text.trim()).decode_utf8().ok().map(|text| text.into_owned());
        let pair = |text: &str| {
            let (key, value) = text.split_once('=')?;
            Some((decode(key).filter(|key| !key.is_empty())?, decode(value)?))
        };
        let pairs = value.split(',').filter(|text| !text.trim().is_empty()).map(pair);
        pairs.collect::<Option<_>>().ok_or_else(|| wrong(name, "pairs such as key1=value1,key2=value2"))
    }
}

fn wrong(name: &str, expected: &'static str) -> ServerError {
    ServerError::TelemetryVariable { name: name.to_owned(), expected }
}

impl Collectors {
    /// Reads the configuration (`server.otlp`) and the environment. The configuration names an address for all signals.
    pub(crate) fn read(
        configured: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Collectors, ServerError> {
        let variables = Variables(variable);
        let every = "OTEL_METRIC_EXPORT_INTERVAL";
        let metrics_every = variables.millis(every, variables.get(every))?.unwrap_or(METRICS_EVERY);
        let mut collectors = Collectors { traces: None, metrics: None, metrics_every };
        if variables.get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(collectors);
        }
        let resource = resource(&variables)?;
        let configured = configured.map(str::trim).filter(|address| !address.is_empty());
        for (signal, path, exporter, collector) in [
            ("TRACES", "traces", "OTEL_TRACES_EXPORTER", &mut collectors.traces),
            ("METRICS", "metrics", "OTEL_METRICS_EXPORTER", &mut collectors.metrics),
        ] {
            let is_off = variables.get(exporter).is_some_and(|value| value == "none");
            let own = format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT");
            let whole = variables.get(&own).filter(|_| configured.is_none());
            let base = configured.map(str::to_owned).or_else(|| variables.get("OTEL_EXPORTER_OTLP_ENDPOINT"));
            let beneath = |base: String| format!("{}/v1/{path}", base.trim_end_matches('/'));
            let Some(url) = whole.or_else(|| base.map(beneath)).filter(|_| !is_off) else { continue };
            let is_json = |protocol: String| protocol == "http/json";
            if !variables.of(signal, "PROTOCOL").is_none_or(is_json) {
                tracing::warn!(
                    "OTEL_EXPORTER_OTLP_PROTOCOL is not http/json, the only one of this server, which uses it"
                );
            }
            let headers = variables.pairs("OTEL_EXPORTER_OTLP_HEADERS", variables.of(signal, "HEADERS"))?;
            let timeout = variables.millis("OTEL_EXPORTER_OTLP_TIMEOUT", variables.of(signal, "TIMEOUT"))?;
            let timeout = timeout.unwrap_or(TIMEOUT);
            *collector = Some(Collector::new(url, &headers, timeout, resource.clone())?);
        }
        Ok(collectors)
    }
}

/// The attributes of this server. The name comes first.
fn resource<F: Fn(&str) -> Option<String>>(variables: &Variables<F>) -> Result<Value, ServerError> {
    let name = "OTEL_RESOURCE_ATTRIBUTES";
    let mut given = variables.pairs(name, variables.get(name))?;
    let mut take = |key: &str| {
        let place = given.iter().position(|(known, _)| known == key);
        place.map(|place| given.remove(place).1)
    };
    let in_attributes = take("service.name");
    let service =
        variables.get("OTEL_SERVICE_NAME").or(in_attributes).unwrap_or_else(|| "laneway".to_owned());
    let version = take("service.version").unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned());
    // Tells the metrics of several replicas apart.
    let instance = take("service.instance.id").unwrap_or_else(new_instance);
    let own = [("service.name", service), ("service.version", version), ("service.instance.id", instance)];
    let own = own.into_iter().map(|(key, value)| (key.to_owned(), value));
    let attribute = |(key, value): (String, String)| json!({ "key": key, "value": { "stringValue": value } });
    Ok(json!({ "attributes": own.chain(given).map(attribute).collect::<Vec<_>>() }))
}

fn new_instance() -> String {
    let mut random = [0; 16];
    // Without randomness, servers share an id.
    getrandom::fill(&mut random).unwrap_or_default();
    Uuid::from_bytes(random).to_string()
}

impl Collector {
    fn new(
        url: String,
        headers: &[(String, String)],
        timeout: Duration,
        resource: Value,
    ) -> Result<Collector, ServerError> {
        let parsed: Result<Uri, _> = url.parse();
        if !parsed.is_ok_and(|uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some())
        {
            return Err(ServerError::TracesAddress(url));
        }
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::try_from(name.as_str());
            let (Ok(name), Ok(mut value)) = (name, HeaderValue::try_from(value.as_str())) else {
                return Err(wrong("OTEL_EXPORTER_OTLP_HEADERS", "names and values of HTTP headers"));
            };
            value.set_sensitive(true);
            map.insert(name, value);
        }
        // It may be installed already.
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = reqwest::Client::builder().build()?;
        Ok(Collector { client, url, headers: map, timeout, resource })
    }

    /// What made the telemetry.
    pub(super) fn resource(&self) -> &Value {
        &self.resource
    }

    /// Sends a body, also several times if the collector is busy or away. Returns whether it has arrived.
    pub(super) async fn send(&self, what: &'static str, body: &Value, tries: u32) -> bool {
        let body = body.to_string();
        let mut pause = PAUSE;
        for attempt in 1..=tries {
            let problem = match self.post(body.clone()).await {
                Ok(status) if (200..300).contains(&status) => return true,
                Ok(status @ (429 | 502 | 503 | 504)) => format!("it answered {status}"),
                Ok(status) => {
                    tracing::warn!(what, status, "the collector refuses telemetry, which is dropped");
                    return false;
                }
                Err(error) => error.to_string(),
            };
            if attempt == tries {
                tracing::warn!(what, problem, "the collector cannot be reached; telemetry is dropped");
                break;
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        false
    }

    async fn post(&self, body: String) -> Result<u16, reqwest::Error> {
        let request = self.client.post(&self.url).timeout(self.timeout).headers(self.headers.clone());
        let request = request.header("content-type", "application/json").body(body);
        // The address may hold a password, and is in the error's text.
        let answer = request.send().await.map_err(reqwest::Error::without_url)?;
        Ok(answer.status().as_u16())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(configured: Option<&str>, set: &[(&str, &str)]) -> Result<Collectors, ServerError> {
        let value =
            |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Collectors::read(configured, value)
    }

    fn urls(configured: Option<&str>, set: &[(&str, &str)]) -> [Option<String>; 2] {
        let collectors = read(configured, set).unwrap();
        [collectors.traces, collectors.metrics].map(|collector| collector.map(|collector| collector.url))
    }

    fn owned(urls: [Option<&str>; 2]) -> [Option<String>; 2] {
        urls.map(|url| url.map(str::to_owned))
    }

    #[test]
    fn the_configuration_stands_above_the_environment_and_a_signal_above_all_signals() {
        let all = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://b:4318/otlp/");
        let own = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://c:4318/own");
        let of_a = owned([Some("http://a:4318/v1/traces"), Some("http://a:4318/v1/metrics")]);
        assert_eq!(urls(Some("http://a:4318"), &[all, own]), of_a);
        assert_eq!(
            urls(None, &[all, own]),
            owned([Some("http://b:4318/otlp/v1/traces"), Some("http://c:4318/own")])
        );
        assert_eq!(urls(None, &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]), owned([None, None]));
        assert_eq!(urls(None, &[all, ("OTEL_SDK_DISABLED", "true")]), owned([None, None]));
        let no_metrics = urls(None, &[all, ("OTEL_METRICS_EXPORTER", "none")]);
        assert_eq!(no_metrics, owned([Some("http://b:4318/otlp/v1/traces"), None]));
    }

    #[test]
    fn headers_and_attributes_are_pairs_that_may_be_encoded() {
        let set = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://b:4318"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=all, x-more=a%20b"),
            ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "x-key=traces"),
            ("OTEL_SERVICE_NAME", "lanes"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,deployment.environment.name=test%2C%20here"),
        ];
        let collectors = read(None, &set).unwrap();
        let (traces, metrics) = (collectors.traces.unwrap(), collectors.metrics.unwrap());
        assert_eq!((traces.headers.len(), traces.headers["x-key"].to_str().unwrap()), (1, "traces"));
        let of_metrics = ["x-key", "x-more"].map(|name| metrics.headers[name].to_str().unwrap());
        assert_eq!(of_metrics, ["all", "a b"]);
        let attributes = traces.resource["attributes"].as_array().unwrap();
        let value = |key: &str| {
            attributes.iter().find(|one| one["key"] == key).map(|one| &one["value"]["stringValue"])
        };
        assert_eq!(value("service.name"), Some(&json!("lanes")));
        assert_eq!(value("deployment.environment.name"), Some(&json!("test, here")));
        assert!(value("service.instance.id").is_some() && attributes.len() == 4, "{attributes:?}");
        assert_eq!(traces.resource, metrics.resource);
    }

    #[test]
    fn a_wrong_variable_is_named() {
        let all = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://b:4318");
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_HEADERS", "token"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a b=c"),
            ("OTEL_RESOURCE_ATTRIBUTES", "=x"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "soon"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "0"),
        ] {
            let error = read(None, &[all, (name, value)]).err().map(|error| error.to_string());
            assert!(error.as_ref().is_some_and(|error| error.starts_with(name)), "{error:?}");
        }
    }
}
