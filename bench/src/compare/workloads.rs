//! The work that every queue does. `peers.mjs` has the same for the Node queues, with the same numbers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;

use crate::Failed;
use crate::compare::queue::{Queue, Work};
use crate::table::{median, sorted};

/// How many callers submit at once. Each waits for its own acceptance.
const CALLERS: usize = 256;
pub const WIDTH: u32 = 50;
pub const FAN: u32 = 256;
pub const FAN_NAP: Duration = Duration::from_millis(20);
pub const SESSIONS: usize = 1000;
pub const TURNS: usize = 3;
pub const SESSION_SLOTS: u32 = 4;
pub const TURN: Duration = Duration::from_millis(2);
pub const HEAVY: usize = 1000;
pub const LIGHT: usize = 10;
pub const THROWING: usize = 100;
/// A queue in which nothing moves for this long is dead.
const PATIENCE: Duration = Duration::from_secs(10);

/// Counts down to zero and wakes the waiting workload.
struct Left(AtomicUsize, Notify);

impl Left {
    fn new(count: usize) -> Arc<Left> {
        Arc::new(Left(AtomicUsize::new(count), Notify::new()))
    }

    fn one_less(&self) {
        if self.0.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.1.notify_one();
        }
    }

    /// Waits for zero. False if nothing moves for [`PATIENCE`].
    async fn none(&self) -> bool {
        loop {
            let before = self.0.load(Ordering::SeqCst);
            if before == 0 || tokio::time::timeout(PATIENCE, self.1.notified()).await.is_ok() {
                return true;
            }
            if self.0.load(Ordering::SeqCst) == before {
                return false;
            }
        }
    }
}

/// Thousands of no-op tasks a second.
pub async fn no_ops(queue: &Queue, tasks: usize) -> Result<f64, Failed> {
    let start = Instant::now();
    let left = Left::new(tasks);
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let (queue, left) = (queue.clone(), Arc::clone(&left));
        callers.spawn(async move {
            for _ in (caller..tasks).step_by(CALLERS) {
                let left = Arc::clone(&left);
                queue.submit(Work::new(async move { left.one_less() })).await.map_err(|e| e.to_string())?;
            }
            Ok::<_, String>(())
        });
    }
    callers.join_all().await.into_iter().collect::<Result<(), String>>()?;
    if !left.none().await {
        return Err("some no-ops never ran".into());
    }
    Ok(tasks as f64 / start.elapsed().as_secs_f64() / 1e3)
}

/// Milliseconds until all naps have ended, with one slot for each.
pub async fn fan_out(queue: &Queue) -> Result<f64, Failed> {
    let start = Instant::now();
    let left = Left::new(FAN as usize);
    let mut callers = JoinSet::new();
    for _ in 0..FAN {
        let (queue, left) = (queue.clone(), Arc::clone(&left));
        callers.spawn(async move {
            let nap = async move {
                tokio::time::sleep(FAN_NAP).await;
                left.one_less();
            };
            queue.submit(Work::new(nap)).await.map_err(|error| error.to_string())
        });
    }
    callers.join_all().await.into_iter().collect::<Result<(), String>>()?;
    if !left.none().await {
        return Err("some naps never ran".into());
    }
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

/// The result of the conversations.
#[derive(Clone, Copy, Default)]
pub struct Sessions {
    /// The time, divided by the time of four loops with the same naps and no queue.
    pub times_bare: f64,
    /// Turns that ran at the same time as another of their conversation, or before an earlier one.
    pub wrong: usize,
}

/// Three turns of each of a thousand conversations through four slots.
pub async fn sessions(queue: &Queue) -> Result<Sessions, Failed> {
    let bare = bare_turns().await;
    let state: State = Arc::new((0..SESSIONS).map(|_| Mutex::default()).collect());
    let wrong = Arc::new(AtomicUsize::new(0));
    let left = Left::new(SESSIONS * TURNS);
    let start = Instant::now();
    let mut callers = JoinSet::new();
    for session in 0..SESSIONS {
        let queue = queue.clone();
        // The turns of a conversation come one right after another, as messages of an impatient user do.
        let turns: Vec<Work> = (0..TURNS)
            .map(|turn| {
                let body = one_turn(Arc::clone(&state), session, turn, Arc::clone(&wrong), Arc::clone(&left));
                Work { session: Some(session), ..Work::new(body) }
            })
            .collect();
        callers.spawn(async move {
            let accepted =
                turns.into_iter().map(async |turn| queue.submit(turn).await.map_err(|e| e.to_string()));
            join_all(accepted).await.into_iter().collect::<Result<(), String>>()
        });
    }
    callers.join_all().await.into_iter().collect::<Result<(), String>>()?;
    if !left.none().await {
        return Err("some turns never ran".into());
    }
    let times_bare = start.elapsed().as_secs_f64() / bare;
    Ok(Sessions { times_bare, wrong: wrong.load(Ordering::SeqCst) })
}

/// For each conversation: whether a turn runs, and which is next.
type State = Arc<Vec<Mutex<(bool, usize)>>>;

async fn one_turn(state: State, session: usize, turn: usize, wrong: Arc<AtomicUsize>, left: Arc<Left>) {
    {
        let mut now = state[session].lock().unwrap_or_else(PoisonError::into_inner);
        wrong.fetch_add(usize::from(now.0 || now.1 != turn), Ordering::SeqCst);
        *now = (true, turn + 1);
    }
    tokio::time::sleep(TURN).await;
    state[session].lock().unwrap_or_else(PoisonError::into_inner).0 = false;
    left.one_less();
}

/// Seconds of the same naps in bare loops. Measures a third of the naps and multiplies by three.
async fn bare_turns() -> f64 {
    let start = Instant::now();
    let mut loops = JoinSet::new();
    for _ in 0..SESSION_SLOTS {
        loops.spawn(async {
            for _ in 0..SESSIONS / SESSION_SLOTS as usize {
                tokio::time::sleep(TURN).await;
            }
        });
    }
    loops.join_all().await;
    start.elapsed().as_secs_f64() * TURNS as f64
}

/// The median time from submission to start on an idle queue, in microseconds.
pub async fn idle(queue: &Queue, times: usize) -> Result<f64, Failed> {
    let mut all = Vec::new();
    for _ in 0..times {
        let (tell, told) = tokio::sync::oneshot::channel();
        let start = Instant::now();
        queue.submit(Work::new(async move { _ = tell.send(start.elapsed()) })).await?;
        all.push(told.await?.as_secs_f64() * 1e6);
    }
    Ok(median(&sorted(all.into_iter())))
}

/// How many of the other tasks run in a lane of two slots in which every tenth task panics.
pub async fn panics(queue: &Queue) -> Result<usize, Failed> {
    let sound = THROWING - THROWING / 10;
    let left = Left::new(sound);
    for number in 0..THROWING {
        let left = Arc::clone(&left);
        let body = async move {
            tokio::task::yield_now().await;
            assert!(number % 10 != 0, "on purpose");
            left.one_less();
        };
        if queue.submit(Work::new(body)).await.is_err() {
            break;
        }
    }
    left.none().await;
    Ok(sound - left.0.load(Ordering::SeqCst))
}

/// The places, from 1, in which the light user's ten tasks begin behind the heavy user's thousand.
pub async fn flood(queue: &Queue) -> Result<Vec<usize>, Failed> {
    let order = Arc::new(Mutex::new(Vec::new()));
    let left = Left::new(HEAVY + LIGHT);
    let (open, gate) = watch::channel(false);
    for number in 0..HEAVY + LIGHT {
        let user = if number < HEAVY { "heavy" } else { "light" };
        let (order, left, mut gate) = (Arc::clone(&order), Arc::clone(&left), gate.clone());
        let body = async move {
            order.lock().unwrap_or_else(PoisonError::into_inner).push(user);
            // No task ends before all are submitted.
            drop(gate.wait_for(|is_open| *is_open).await);
            tokio::time::sleep(Duration::from_millis(1)).await;
            left.one_less();
        };
        queue.submit(Work { user, ..Work::new(body) }).await?;
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    open.send_replace(true);
    if !left.none().await {
        return Err("some of the flood never ran".into());
    }
    let order = order.lock().unwrap_or_else(PoisonError::into_inner);
    let places = order.iter().enumerate().filter(|(_, user)| **user == "light");
    Ok(places.map(|(place, _)| place + 1).collect())
}

/// The reference for the noise of the machine: thousands of no-ops a second behind a bare semaphore.
pub async fn reference(tasks: usize) -> Result<f64, Failed> {
    let semaphore = Arc::new(Semaphore::new(WIDTH as usize));
    let left = Left::new(tasks);
    let start = Instant::now();
    for _ in 0..tasks {
        let (semaphore, left) = (Arc::clone(&semaphore), Arc::clone(&left));
        tokio::spawn(async move {
            drop(semaphore.acquire_owned().await);
            left.one_less();
        });
    }
    left.none().await;
    Ok(tasks as f64 / start.elapsed().as_secs_f64() / 1e3)
}
