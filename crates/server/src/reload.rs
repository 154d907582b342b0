//! Reads the configuration file again.

use std::sync::Arc;

use crate::admin::audit::AuditRecord;
use crate::app::App;
use crate::error::ServerError;
use crate::schedules::check_schedules;
use crate::server::{lane_blocks, tool_calls, with_echo};

/// Reads the configuration file again.
#[derive(Clone)]
pub struct Reloader(Arc<App>);

impl Reloader {
    pub(crate) fn new(app: Arc<App>) -> Reloader {
        Reloader(app)
    }

    /// All of the file takes effect, or, with the error, none of it.
    pub async fn reload(&self) -> Result<(), ServerError> {
        let app = &self.0;
        let Some(path) = &app.config_file else {
            return Err(ServerError::NoConfigFile);
        };
        let options = app.variables.iter().map(|(option, value)| (option.as_str(), value.as_str()));
        let environment = laneway_config::with_options(std::env::vars(), options);
        let loaded = laneway_config::load(path, laneway_config::Profile::SERVER, environment);
        let mut new = loaded?;
        with_echo(&mut new);
        check_schedules(&new)?;
        let old = app.config();
        if new.listen != old.listen || new.store != old.store {
            return Err(ServerError::NeedsRestart);
        }
        let held = new.hold_until_restart(&old);
        // A reload replaces settings that were changed through the API, here or at another replica.
        app.overrides.forget();
        app.handle.settle(lane_blocks(&new)).await?;
        app.handle.set_tool_calls(tool_calls(&new));
        let messages = app.handle.configure_messages(new.messages.settings()).await;
        messages?;
        app.config.store(Arc::new(new));
        app.runners.register(&app.handle)?;
        app.schedules.changed.notify_one();
        if !held.is_empty() {
            let keys = held.join(", ");
            tracing::warn!(keys, "these take effect with a restart only; they stay as they were");
        }
        let details = serde_json::json!({ "needs_restart": held });
        let record = AuditRecord::new("config", "reload", path.display().to_string(), details);
        app.audit
            .record(app.now(), "signal", record)
            .await
            .map_err(|error| ServerError::Unrecorded(error.to_string()))
    }
}
