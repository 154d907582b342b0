//! What somebody knows of a task and the log has forgotten.

use crate::api::command::Reply;
use crate::api::event::End;
use crate::api::ids::TaskId;
use crate::api::rejection::Rejection;
use crate::api::task_spec::TaskSpec;
use crate::step::Step;

impl Step<'_> {
    /// Says how a task ended that the log has forgotten, or believes to wait. One that runs ends otherwise.
    pub(crate) fn recount(
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
            // Whoever it followed, and asked for it, may be forgotten too, and its payload is gone.
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
