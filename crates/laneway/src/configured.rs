//! A queue that follows a configuration file.

use std::collections::BTreeSet;
use std::future::IntoFuture;
use std::ops::Deref;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

pub use laneway_config::Config;
use laneway_config::{Errors, KindHandler, Profile, Protocol, Runner};
use laneway_core::Name;
use laneway_engine::{Context, Error, Failure, Handle, Options, Program, ToolCalls};
use laneway_store::Store;
use laneway_store_sqlite::SqliteStore;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Laneway;

type Environment = Vec<(String, String)>;

/// A queue to be opened as a file describes it: `Laneway::from_config(file).handler(…).await?`.
#[must_use = "nothing is opened before this is awaited"]
pub struct FromConfig {
    path: PathBuf,
    environment: Option<Environment>,
    store: Option<Arc<dyn Store>>,
    kinds: BTreeSet<Name>,
    options: Result<Options, Error>,
}

/// A queue as a file describes it. Clones are the same queue.
#[derive(Clone)]
pub struct Configured {
    lanes: Laneway,
    source: Arc<Source>,
}

/// Where a configuration comes from, and what it says now.
struct Source {
    path: PathBuf,
    environment: Option<Environment>,
    /// The kinds that the program runs itself, whatever the file says.
    kinds: BTreeSet<Name>,
    has_own_store: bool,
    /// One change at a time.
    changing: tokio::sync::Mutex<()>,
    config: Mutex<Arc<Config>>,
}

/// Why a configuration did not take effect. None of it did.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file or the environment is wrong; holds every error.
    #[error(transparent)]
    Wrong(#[from] Errors),
    /// It asks for something that only the server, or a store of the program's own, can do.
    #[error("{0}")]
    NotHere(String),
    /// The store cannot change while it is in use.
    #[error("the store cannot change while it is in use; open the queue again")]
    StoreChanged,
    /// The queue could not be opened or changed.
    #[error(transparent)]
    Queue(#[from] Error),
}

impl FromConfig {
    pub(crate) fn new(path: PathBuf) -> FromConfig {
        let (kinds, options) = (BTreeSet::new(), Ok(Options::default()));
        FromConfig { path, environment: None, store: None, kinds, options }
    }

    /// Runs tasks of a kind, instead of the handler in the file; see [`Handle::handler`].
    pub fn handler<P, R, F, Fut>(mut self, kind: impl Into<Arc<str>>, function: F) -> FromConfig
    where
        P: DeserializeOwned + Send + 'static,
        R: Serialize + Send + 'static,
        F: Fn(Context, P) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        let kind = kind.into();
        self.kinds.extend(Name::new(Arc::clone(&kind)));
        self.options = self.options.and_then(|options| options.handler(kind, function));
        self
    }

    /// Changes the options.
    pub fn with(mut self, change: impl FnOnce(&mut Options)) -> FromConfig {
        if let Ok(options) = &mut self.options {
            change(options);
        }
        self
    }

    /// Keeps the queue in this store, whatever the file says.
    pub fn store(mut self, store: Arc<dyn Store>) -> FromConfig {
        self.store = Some(store);
        self
    }

    /// These variables stand above the file. Default: those of this process, read again at each reload.
    pub fn environment(
        mut self,
        variables: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
    ) -> FromConfig {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        self.environment = Some(variables.collect());
        self
    }

    async fn open(self) -> Result<Configured, ConfigError> {
        let config = load(&self.path, self.environment.as_deref())?;
        let mut options = self.options?;
        for (kind, program) in programs(&config, &self.kinds)? {
            options = options.command(Arc::from(kind.as_str()), program)?;
        }
        let blocks = config.lane_blocks();
        options.settings = Some(Box::new(move |_, _| blocks));
        let source = Source {
            path: self.path,
            environment: self.environment,
            kinds: self.kinds,
            has_own_store: self.store.is_some(),
            changing: tokio::sync::Mutex::default(),
            config: Mutex::new(Arc::new(config)),
        };
        let config = source.config();
        let handle = match (self.store, &config.store) {
            (Some(store), _) => Handle::open(store, options).await?,
            (None, laneway_config::StoreLocation::Memory) => {
                let handle = Handle::in_memory(options);
                handle.settle(config.lane_blocks()).await?;
                handle
            }
            (None, laneway_config::StoreLocation::Path(dir)) => {
                let dir = dir.clone();
                // Opening waits for the disk.
                let opened = tokio::task::spawn_blocking(move || SqliteStore::open(dir)).await;
                let store = opened.map_err(|_| Error::Closed)?.map_err(Error::from)?;
                Handle::open(Arc::new(store), options).await?
            }
            (None, other) => {
                return Err(ConfigError::NotHere(format!(
                    "the store {other} needs a store of the program's own, given with `store`"
                )));
            }
        };
        handle.configure_messages(config.messages.settings()).await?;
        handle.set_tool_calls(tool_calls(&config));
        Ok(Configured { lanes: Laneway::from(handle), source: Arc::new(source) })
    }
}

impl IntoFuture for FromConfig {
    type Output = Result<Configured, ConfigError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<Configured, ConfigError>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.open())
    }
}

impl Configured {
    /// The configuration in force, with where each value comes from.
    pub fn config(&self) -> Arc<Config> {
        self.source.config()
    }

    /// Reads the file again and applies it: all of it or, with the error, none. It replaces settings of lanes that were
    /// changed by other means. Running tasks go on.
    pub async fn reload(&self) -> Result<(), ConfigError> {
        let _one_at_a_time = self.source.changing.lock().await;
        let (before, source) = (self.config(), &self.source);
        let config = load(&source.path, source.environment.as_deref())?;
        if config.store != before.store && !source.has_own_store {
            return Err(ConfigError::StoreChanged);
        }
        let programs = programs(&config, &source.kinds)?;
        // Only these two steps can fail, so they come first.
        self.lanes.settle(config.lane_blocks()).await?;
        self.lanes.configure_messages(config.messages.settings()).await?;
        let is_gone = |old: &&KindHandler| {
            !source.kinds.contains(&old.kind) && !programs.iter().any(|(kind, _)| *kind == old.kind)
        };
        before.handlers.iter().filter(is_gone).for_each(|old| self.lanes.remove_handler(&old.kind));
        for (kind, program) in programs {
            self.lanes.command(Arc::from(kind.as_str()), program)?;
        }
        self.lanes.set_tool_calls(tool_calls(&config));
        *source.config.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
        Ok(())
    }
}

impl Deref for Configured {
    type Target = Laneway;

    fn deref(&self) -> &Laneway {
        &self.lanes
    }
}

impl Source {
    fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn load(path: &std::path::Path, environment: Option<&[(String, String)]>) -> Result<Config, ConfigError> {
    let own: Environment = match environment {
        Some(given) => given.to_vec(),
        // Laneway reads no variable that is not text.
        None => std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect(),
    };
    Ok(laneway_config::load(path, Profile::LIBRARY, own)?)
}

fn tool_calls(config: &Config) -> ToolCalls {
    match &config.tools {
        None => ToolCalls::Direct,
        Some(lanes) => ToolCalls::Lanes { metrics: lanes.metrics, tools: lanes.tools.clone() },
    }
}

/// The programs of `handler` blocks, but for kinds that the program runs itself.
fn programs(config: &Config, own: &BTreeSet<Name>) -> Result<Vec<(Name, Program)>, ConfigError> {
    let handlers = config.handlers.iter().filter(|handler| !own.contains(&handler.kind));
    handlers.map(|handler| Ok((handler.kind.clone(), program(handler)?))).collect()
}

fn program(handler: &KindHandler) -> Result<Program, ConfigError> {
    let not_here = |what: &str| {
        ConfigError::NotHere(format!(
            "handler \"{}\": {what}; give the queue a handler of its own",
            handler.kind
        ))
    };
    let Runner::Program(asked) = &handler.runner else {
        return Err(not_here("only the server calls a url"));
    };
    if asked.protocol != Protocol::Text {
        return Err(not_here("only the server speaks the protocol jsonl"));
    }
    let program = Program::new(asked.command.iter().cloned());
    let mut program = program.map_err(|error| not_here(&error.to_string()))?;
    if let Some(names) = &asked.env {
        program = program.allow(names.iter().cloned());
    }
    Ok(match &asked.cwd {
        Some(dir) => program.dir(dir.clone()),
        None => program,
    })
}
