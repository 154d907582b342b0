//! The server's own reactions to events.

use std::sync::{Arc, Weak};

use laneway_core::{Event, TaskId, Timestamp};
use laneway_engine::{Observer, Update};
use serde_json::Value;
use tokio::sync::Notify;

use crate::app::App;
use crate::schedules::notes;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::otlp::Traces;

/// One log line names at most this many tasks.
const NAMED_MAX: usize = 20;

pub(crate) struct ServerObserver {
    pub(crate) traces: Traces,
    pub(crate) metrics: Arc<Metrics>,
    /// Notified when settings change, here or at another replica.
    pub(crate) reconfigured: Arc<Notify>,
    /// Notified when schedules change, here or at another replica.
    pub(crate) rescheduled: Arc<Notify>,
    pub(crate) app: Weak<App>,
}

impl ServerObserver {
    /// Follows what the server keeps in the log. The handlers of new agents are registered before any later event can start
    /// their turns.
    fn follow(&self, event: &Event) {
        let Some(app) = self.app.upgrade() else { return };
        app.tokens.follow(event);
        app.mcp.follow(event);
        let changed = app.agents.follow(event);
        if let Err(error) = app.handlers.register_agents(&app.handle, &changed) {
            tracing::warn!(%error, "the agents of the API cannot be registered");
        }
    }

    /// Reads what the server keeps in the log again after a time in which events were missed.
    fn refresh(&self) {
        let Some(app) = self.app.upgrade() else { return };
        tokio::spawn(async move {
            if let Err(error) = app.refresh().await {
                tracing::warn!(%error, "the agents and tokens in the log cannot be read now");
            }
        });
    }
}

impl Observer for ServerObserver {
    fn on_event(&self, _at: Timestamp, event: &Event, is_own: bool) {
        if is_own {
            self.metrics.decided(event);
        }
        match event {
            Event::Configured { .. } | Event::MessagesConfigured { .. } => self.reconfigured.notify_one(),
            Event::Noted { .. } if notes::changes_schedules(event) => self.rescheduled.notify_one(),
            Event::Noted { .. } => self.follow(event),
            Event::Ended { task, .. } => self.traces.ended(*task),
            _ => {}
        }
    }

    fn read_notes(&self, event: &Event) -> Vec<(Option<TaskId>, Value)> {
        notes::fired(event).collect()
    }

    fn on_store(&self, update: &Update) {
        self.metrics.befell_store(update);
        match update {
            Update::StoreAway { reason } => {
                tracing::warn!(%reason, "the store cannot be used: nothing is granted, and requests fail with STORE_UNAVAILABLE");
            }
            Update::StoreBack => {
                self.refresh();
                tracing::info!("the store can be used again");
            }
            Update::LogLost { known, found, lost, restored, ends_restored } => {
                self.reconfigured.notify_one();
                self.rescheduled.notify_one();
                self.refresh();
                tracing::error!(
                    known = known.0,
                    found = found.0,
                    gone = lost.len(),
                    gone_ids = first_ids(lost),
                    restored = restored.len(),
                    restored_ids = first_ids(restored),
                    ends_restored = ends_restored.len(),
                    ends_restored_ids = first_ids(ends_restored),
                    "the store has lost its last writes, or was restored from a backup: this server submits recent tasks \
                     again and records the ends that it knows; other tasks are lost unless another replica restores \
                     them"
                );
            }
            _ => {}
        }
    }
}

fn first_ids(tasks: &[TaskId]) -> String {
    tasks.iter().take(NAMED_MAX).map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
