//! Accepts connections and serves HTTP on them.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tower::ServiceExt;

use crate::app::App;
use crate::net::read_timeout::ConnectionTimer;
use crate::net::write_timeout::{Peer, WriteTimeout};

/// The longest head of a request.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// How long a client may take to read what the server wrote.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause after a failed accept: a file descriptor becomes free when another connection ends.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Accepts connections until it is dropped. A connection beyond the bound is closed at once.
pub(crate) async fn accept(listener: TcpListener, app: Arc<App>, router: Router) {
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        if app.connections.len() < app.config.load().server.connections_max as usize {
            app.connections.spawn(serve(stream, Arc::clone(&app), router.clone()));
        } else {
            app.metrics.connections_refused.inc();
        }
    }
}

async fn serve(stream: TcpStream, app: Arc<App>, router: Router) {
    // Small answers leave at once.
    drop(stream.set_nodelay(true));
    let stream = Arc::new(stream);
    let peer = Peer(Arc::clone(&stream));
    let io = TokioIo::new(WriteTimeout::new(stream, WRITE_TIMEOUT));
    let service = TowerToHyperService::new(router.map_request(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer.clone());
        request
    }));
    let mut builder = http1::Builder::new();
    builder
        .timer(ConnectionTimer::default())
        .header_read_timeout(Duration::from_millis(app.config.load().server.header_timeout.0))
        .max_buf_size(HEAD_BYTES_MAX);
    let serving = builder.serve_connection(io, service).with_upgrades();
    let mut serving = std::pin::pin!(serving);
    let ended = match app.closing.unless_given(serving.as_mut()).await {
        Some(ended) => ended,
        None => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::trace!(%error, "a connection ended early");
    }
}
