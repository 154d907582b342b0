//! The loop of a queue in a store: take what was sent, decide it, store it, then answer.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::Sleep;

use crate::driver::engine::Engine;
use crate::driver::mailbox::{Call, Inbox, Receivers, ReplyTo, Request, mail};
use crate::error::Error;
use crate::journal::recovery::Outage;
use crate::replica::apply_remote::news;

impl Engine {
    /// Runs a queue in a store until its end.
    pub(crate) async fn run(mut self) {
        let mut inbox = Inbox::default();
        let sleep = tokio::time::sleep(Duration::ZERO);
        tokio::pin!(sleep);
        loop {
            let wake = self.plan(sleep.as_mut());
            let mut remote_batches = None;
            let is_open = tokio::select! {
                biased;
                news = news(&mut self.replica) => {
                    remote_batches = Some(news);
                    true
                }
                is_open = mail(&mut self.mail, &mut inbox) => is_open,
                () = sleep.as_mut(), if wake => true,
                () = Outage::over(&mut self.storage.outage) => true,
            };
            if !is_open {
                break;
            }
            if let Some(news) = remote_batches {
                self.on_news(news).await;
            }
            self.take_more(&mut inbox);
            if !inbox.reports.is_empty() || inbox.calls.iter().any(Call::may_append) || self.is_due() {
                self.await_append_turn().await;
                self.take_more(&mut inbox);
            }
            if self.outage_is_over().await {
                // Hearing of others is nothing to decide about, but for what they wait for.
                let is_asked = !inbox.is_empty() || !self.storage.deferred.is_empty();
                if self.replica.is_none() || is_asked || self.is_due() || self.has_append_turn() {
                    self.decide_inbox(&mut inbox).await;
                }
            } else {
                self.refuse(&mut inbox);
            }
            std::mem::take(&mut self.callers.outbox).send();
            if self.is_done() {
                break;
            }
        }
        self.leave().await;
        if let Some(mail) = self.mail.take() {
            mail.close().await;
        }
        self.end().await;
    }

    /// Sets the alarm to the next thing that is due; says whether there is one.
    fn plan(&mut self, sleep: Pin<&mut Sleep>) -> bool {
        let Some(wake) = self.set_alarm() else { return false };
        if sleep.deadline() != wake {
            sleep.reset(wake);
        }
        true
    }

    fn take_more(&mut self, inbox: &mut Inbox) {
        if let Some(mail) = &mut self.mail {
            mail.take_more(inbox);
        }
    }

    /// Whether more was asked meanwhile.
    pub(crate) fn has_more(&self) -> bool {
        self.mail.as_ref().is_some_and(Receivers::has_more)
    }

    /// Decides everything in the inbox, stores it, and answers.
    async fn decide_inbox(&mut self, inbox: &mut Inbox) {
        let (mut requests, mut queries) = (std::mem::take(&mut self.buffers.requests), Vec::new());
        let now = self.clock.now();
        self.gather(now, inbox, &mut requests, &mut queries);
        let reaped = self.reap_dead(now).await;
        requests.extend(reaped.into_iter().map(|command| Request::new(command, ReplyTo::NoCaller)));
        self.decide_and_store(&mut requests).await;
        self.buffers.requests = requests;
        if !queries.is_empty() {
            self.catch_up_to_look().await;
        }
        queries.into_iter().for_each(|query| self.answer_query(query));
    }

    /// Answers everything with why it cannot be done now; reports of runs are kept.
    fn refuse(&mut self, inbox: &mut Inbox) {
        let (mut requests, mut queries) = (Vec::new(), Vec::new());
        let now = self.clock.now();
        for report in inbox.reports.drain(..) {
            let request = self.on_report(report);
            let late = request.map(|it| Request { reported: it.reported.or(Some(now)), ..it });
            self.storage.deferred.extend(late);
        }
        self.sort(&mut inbox.calls, &mut requests, &mut queries);
        for request in requests {
            request.reply_to.refuse(self.trouble().unwrap_or(Error::Closed));
        }
        queries.into_iter().for_each(|query| self.answer_query(query));
    }
}
