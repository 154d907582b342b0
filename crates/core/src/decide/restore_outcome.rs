//! Restores the ends of tasks that the log has lost.

use crate::api::command::Reply;
use crate::api::event::End;
use crate::api::ids::TaskId;
use crate::api::rejection::Rejection;
use crate::api::task_spec::TaskSpec;
use crate::step::Step;

impl Step<'_> {
    /// Ends a task as it ended before the log lost it or its end. A running task is left alone.
    pub(super) fn restore_outcome(
        &mut self,
        task: TaskId,
        spec: Option<Box<TaskSpec>>,
        end: End,
    ) -> Result<Reply, Rejection> {
        if self.state.tasks.find(task).is_none() {
            let mut spec = spec.ok_or(Rejection::NotLive { task })?;
            spec.check().map_err(Rejection::BadTask)?;
            if self.state.dead_letters.get(task).is_some() {
                return Err(Rejection::IdTaken { task });
            }
            // The task before it and its parent may be lost too, and its payload is gone.
            (spec.after, spec.parent, spec.payload, spec.run_after) = (None, None, None, None);
            if spec.idempotency.as_ref().is_some_and(|asked| self.state.keys.contains_key(&asked.key)) {
                spec.idempotency = None;
            }
            let submitted = self.accept_unasked(task, spec);
            self.emit(submitted);
        }
        match self.state.tasks.find(task) {
            Some(idx) if self.state.tasks[idx].attempt().is_none() => {
                self.end(idx, end);
                Ok(Reply::Done)
            }
            _ => Err(Rejection::IdTaken { task }),
        }
    }
}
