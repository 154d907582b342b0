//! Stands between a client and a server and does to their connections what networks do.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// A TCP proxy on a port of this machine. It ends with the value.
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    is_over: AtomicBool,
    refuses: AtomicBool,
    /// How many of the next replies are lost: the server acts, and the connection ends.
    replies_to_lose: AtomicU64,
    delay_ms: AtomicU64,
    cuts: AtomicU64,
    connections: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    /// Passes on everything to a port of this machine.
    pub fn to(port: u16) -> Proxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("there is a free port");
        let own = listener.local_addr().expect("it has an address").port();
        let shared = Arc::<Shared>::default();
        let for_thread = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, port, &for_thread));
        Proxy { port: own, shared }
    }

    /// Where to connect instead.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Cuts every connection; new ones are let through.
    pub fn cut(&self) {
        let mut connections = self.shared.connections();
        self.shared.cuts.fetch_add(connections.len() as u64, Ordering::SeqCst);
        for connection in connections.drain(..) {
            // It may be closed already.
            drop(connection.shutdown(Shutdown::Both));
        }
    }

    /// Cuts every connection and lets no new one through until [`let_through`](Proxy::let_through).
    pub fn refuse(&self) {
        self.shared.refuses.store(true, Ordering::SeqCst);
        self.cut();
    }

    /// Ends what [`refuse`](Proxy::refuse) began.
    pub fn let_through(&self) {
        self.shared.refuses.store(false, Ordering::SeqCst);
    }

    /// Loses the next `replies`: the server acts, the reply is dropped, and the connection is cut.
    pub fn lose_replies(&self, count: u64) {
        self.shared.replies_to_lose.store(count, Ordering::SeqCst);
    }

    /// How many replies are still to be lost.
    pub fn replies_to_lose(&self) -> u64 {
        self.shared.replies_to_lose.load(Ordering::SeqCst)
    }

    /// Passes on every reply so much later.
    pub fn delay(&self, delay: Duration) {
        self.shared.delay_ms.store(delay.as_millis() as u64, Ordering::SeqCst);
    }

    /// How many connections were cut.
    pub fn cuts(&self) -> u64 {
        self.shared.cuts.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.cut();
        // Wakes the thread that accepts, which then ends.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

impl Shared {
    fn connections(&self) -> std::sync::MutexGuard<'_, Vec<TcpStream>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn loses_this_reply(&self) -> bool {
        let less_one = |left: u64| left.checked_sub(1);
        self.replies_to_lose.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less_one).is_ok()
    }
}

fn accept(listener: &TcpListener, port: u16, shared: &Arc<Shared>) {
    for client in listener.incoming() {
        if shared.is_over.load(Ordering::SeqCst) {
            return;
        }
        let Ok(client) = client else { continue };
        if shared.refuses.load(Ordering::SeqCst) {
            continue;
        }
        // When the server is away, the client sees its connection closed.
        let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { continue };
        pass_on(client, server, shared);
    }
}

fn pass_on(client: TcpStream, server: TcpStream, shared: &Arc<Shared>) {
    let no_delay = client.set_nodelay(true).and(server.set_nodelay(true));
    let copies = (client.try_clone(), server.try_clone());
    let (Ok(()), (Ok(client_in), Ok(server_in))) = (no_delay, copies) else { return };
    if let (Ok(client), Ok(server)) = (client.try_clone(), server.try_clone()) {
        shared.connections().extend([client, server]);
    }
    thread::spawn(move || copy(client_in, server, || true));
    let shared = Arc::clone(shared);
    let tamper = move || {
        thread::sleep(Duration::from_millis(shared.delay_ms.load(Ordering::SeqCst)));
        !shared.loses_this_reply()
    };
    thread::spawn(move || copy(server_in, client, tamper));
}

/// Copies until either side ends, or something is not to be passed on.
fn copy(mut from: TcpStream, mut to: TcpStream, passes: impl Fn() -> bool) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(len) = from.read(&mut buffer)
        && len > 0
        && passes()
        && to.write_all(&buffer[..len]).is_ok()
    {}
    // Either may be closed already.
    drop(from.shutdown(Shutdown::Both));
    drop(to.shutdown(Shutdown::Both));
}
