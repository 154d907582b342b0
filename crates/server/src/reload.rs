//! Reloads the configuration file.

use std::sync::Arc;

use crate::app::App;
use crate::error::ServerError;
use crate::schedules::check_schedules;
use crate::server::{lane_blocks, tool_calls, with_echo};
use crate::service::change_lanes::drop_outdated;

/// Reloads the configuration file.
#[derive(Clone)]
pub struct Reloader(Arc<App>);

impl Reloader {
    pub(crate) fn new(app: Arc<App>) -> Reloader {
        Reloader(app)
    }

    /// Applies the whole file, or, on an error, nothing.
    pub async fn reload(&self) -> Result<(), ServerError> {
        let app = &self.0;
        let Some(path) = &app.config_file else {
            return Err(ServerError::NoConfigFile);
        };
        let options = app.options.iter().map(|(option, value)| (option.as_str(), value.as_str()));
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
        let _changing = app.agents.changing.lock().await;
        let (file, new) = app.agents.with_file(new);
        app.handle.settle(lane_blocks(&new)).await?;
        app.handle.set_tool_calls(tool_calls(&new));
        app.handle.configure_messages(new.messages.settings()).await?;
        app.agents.set_file(file);
        drop_outdated(app).await.map_err(|error| ServerError::Unrecorded(error.to_string()))?;
        app.handlers.register(&app.handle)?;
        app.schedules.changed.notify_one();
        if !held.is_empty() {
            let keys = held.join(", ");
            tracing::warn!(keys, "a change of these settings needs a restart; the old values stay in force");
        }
        let details = serde_json::json!({ "needs_restart": held });
        let path = path.display().to_string();
        let recorded = app.audit.record(app.now(), "signal", ("config", "reload"), &path, details).await;
        recorded.map_err(|error| ServerError::Unrecorded(error.to_string()))
    }
}
