//! `laneway export` and `laneway import`: copy the content of one store into another.

use std::path::Path;
use std::sync::Arc;

use laneway_config::StoreLocation;
use laneway_store::{Copied, CopyError, Head, Log, Store};
use serde_json::json;

use crate::arguments::{ConfigFile, Export, Import};
use crate::commands::serve;
use crate::error::CliError;
use crate::output;
use crate::output::format;
use crate::output::progress;

/// The database file of an embedded store.
const DATABASE: &str = "laneway.db";

/// Copies the configured store into a directory, as an embedded store.
pub(crate) async fn export(verb: Export) -> Result<(), CliError> {
    if let Ok(mut entries) = std::fs::read_dir(&verb.dir)
        && entries.next().is_some()
    {
        let why = format!("{} is not empty; name a directory that does not exist", verb.dir.display());
        return Err(CliError::Input(why));
    }
    let place = place_of(&verb.place, verb.store.as_deref())?;
    if let StoreLocation::Path(dir) = &place {
        exists(dir)?;
    }
    let from = opened(&place).await?;
    // Check before creating the directory, so that an empty store leaves none behind.
    if from.store().head().await.map_err(failed)? == Head::EMPTY {
        let nothing = CopyError::Nothing { from: from.store().name().to_owned() };
        return Err(CliError::Failure(nothing.to_string()));
    }
    let to = embedded(&verb.dir).await?;
    transfer(&from, &to, verb.place.json).await
}

/// Fills the configured store from a directory that [`export`] wrote.
pub(crate) async fn import(verb: Import) -> Result<(), CliError> {
    exists(&verb.dir)?;
    let from = embedded(&verb.dir).await?;
    let to = opened(&place_of(&verb.place, verb.store.as_deref())?).await?;
    transfer(&from, &to, verb.place.json).await
}

fn failed(error: laneway_store::StoreError) -> CliError {
    CliError::Failure(error.to_string())
}

async fn embedded(dir: &Path) -> Result<Log, CliError> {
    opened(&StoreLocation::Path(dir.to_owned())).await
}

/// Checks that a directory holds a store, because opening would create one.
pub(crate) fn exists(dir: &Path) -> Result<(), CliError> {
    if dir.join(DATABASE).is_file() {
        Ok(())
    } else {
        Err(CliError::Input(format!("there is no store in {}", dir.display())))
    }
}

/// The named store, or else the configured one.
pub(crate) fn place_of(place: &ConfigFile, store: Option<&str>) -> Result<StoreLocation, CliError> {
    let overrides: Vec<(&str, &str)> = store.map(|store| ("--store", store)).into_iter().collect();
    let (config, _) = serve::configuration(place, &overrides)?;
    Ok(config.store)
}

pub(crate) async fn opened(place: &StoreLocation) -> Result<Log, CliError> {
    let store: Option<Arc<dyn Store>> = serve::open_store(place).await?;
    let store = store.ok_or_else(|| {
        let why = "a store in memory exists only inside its server; name another with --store";
        CliError::Input(why.to_owned())
    })?;
    Ok(Log::new(store))
}

async fn transfer(from: &Log, to: &Log, is_json: bool) -> Result<(), CliError> {
    let bar = progress::bar(0, is_json);
    let on_progress = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let copied = laneway_store::copy(from, to, on_progress).await;
    bar.finish_and_clear();
    let Copied { tasks, dead_letters, payloads, finished } =
        copied.map_err(|error| CliError::Failure(error.to_string()))?;
    let (from, to) = (from.store().name(), to.store().name());
    if is_json {
        return output::json(&json!({
            "from": from, "to": to, "tasks": tasks, "dead_letters": dead_letters, "payloads": payloads,
            "finished": finished,
        }));
    }
    output::line(&format!(
        "Copied {from} to {to}: {}, {}, {}.",
        format::counted(tasks, "live task"),
        format::counted(dead_letters, "dead letter"),
        format::counted(finished, "ended task"),
    ))
}
