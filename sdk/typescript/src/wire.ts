// What goes over the wire. Written by scripts/generate.mjs from the server's OpenAPI document; not edited by hand.

/** A task was accepted. */
export interface AcceptedEvent {
  /** When. */
  at?: At | null;
  /** Its kind. */
  kind: string;
  /** The lanes that it named. */
  lanes?: string[] | null;
  /** Its own priority. */
  priority?: number | null;
  /** The task. */
  task_id?: string | null;
}

/** How a turn stood when it was accepted. */
export interface AcceptedExecution {
  /** When it will probably start. */
  eta_ms?: number | null;
  /** The task. */
  id: string;
  /** Its place in line, counted from one. */
  position?: number | null;
  /** `running`, `queued`, or how it ended already. */
  status: string;
}

/** A task that was accepted. */
export interface AcceptedTask {
  /** What has become of it: `memory`, `engine`, `disk` or `replicated`. */
  durability: string;
  /** When it will probably start. */
  eta_ms?: number | null;
  /** Its id. */
  id: string;
  /** Its place in line, counted from one. */
  position?: number | null;
  /** An earlier request under the same key had brought it. */
  replayed?: boolean;
  /** `running`, `queued`, or how it ended already. */
  status: string;
}

/** A turn that was accepted and is not waited for. */
export interface AcceptedTurn {
  /** What has become of it: `memory`, `engine`, `disk` or `replicated`. */
  durability: string;
  /** The task. */
  execution: AcceptedExecution;
}

/** An agent. */
export interface AgentView {
  /** Whether a turn runs. */
  is_busy: boolean;
  /** The lane of its turns. */
  lane: string;
  /** Further lanes that its turns need. */
  lanes: string[];
  /** How many may run at once. */
  max_concurrency?: number | null;
  /** How many may wait. */
  max_queued: number;
  /** Its name. */
  name: string;
  /** What runs its turns: `command`, `url`, `external` or `echo`. */
  runner: string;
  /** How many turns run. */
  running: number;
  /** The lane of its stateless tasks. */
  task_lane: string;
  /** How many wait. */
  waiting: number;
}

/** The line of a lane has grown over a threshold. */
export interface AlertEvent {
  /** When. */
  at?: At | null;
  /** The lane. */
  lane: string;
  /** `warning` or `critical`. */
  level: string;
  /** How many tasks wait in it. */
  waiting: number;
}

export type At = string;

/** One attempt at a task. */
export interface AttemptView {
  /** When it was over. */
  ended_at?: At | null;
  /** What went wrong. */
  error?: string | null;
  /** Which one, counted from one. */
  number: number;
  /** `running`, `failed` when another followed it, or how it ended the task. */
  outcome: string;
  /** When it started, where that is known. */
  started_at?: At | null;
  /** The worker that had it. */
  worker?: string | null;
}

/** One line of the audit log. */
export interface AuditEntry {
  /** What was done: `clear_queue`, `force_release`, … */
  action: string;
  /** Who. */
  actor: string;
  /** When. */
  at: string;
  /** More about it. */
  details: unknown;
  /** What sort of thing: `agent_queue`, `lane`, `token`, `schedule`, `task`, `dead_letter`, `config`, `server`. */
  event_type: string;
  /** The hash of this line. */
  hash: string;
  /** Counted from one. */
  id: number;
  /** The hash of the line before. */
  prev: string;
  /** `info`, `warning` or `critical`. */
  severity: string;
  /** To what. */
  target: string;
}

/** What came of the calls, in their order. */
export interface BatchAnswer {
  /** One for each call. */
  results: BatchResult[];
}

/** One call of a tool. */
export interface BatchCall {
  /** Its arguments. */
  payload?: unknown;
  /** The tool. */
  tool: string;
}

/** The tool calls of one model turn. */
export interface BatchRequest {
  /** The calls, in the order in which the model made them. */
  calls: BatchCall[];
  /** The label of all calls. */
  group?: string | null;
  /** The conversation. */
  session: string;
}

/** What came of one call. */
export interface BatchResult {
  /** Why it produced nothing. */
  error?: Problem | null;
  /** What it produced. */
  result?: unknown;
  /** Whether it was done. */
  success: boolean;
  /** The tool. */
  tool: string;
}

/** One thing that holds a task up. */
export interface BlockerView {
  /** How many. */
  count?: number | null;
  /** In one sentence. */
  detail: string;
  /** `not_yet`, `after`, `backing_off`, `paused`, `rate_limited`, `session_busy`, `lane_full`, `reserved`, `unclaimed`, `behind`. */
  kind: string;
  /** The lane. */
  lane?: string | null;
  /** Since when. */
  since?: At | null;
  /** The tasks in the way. */
  tasks?: string[];
  /** Until when. */
  until?: At | null;
}

/** The priority of a task has changed. */
export interface BoostedEvent {
  /** When. */
  at?: At | null;
  /** Why: `waiting`, `deadline` or `caller`. */
  by: string;
  /** By how many levels. */
  levels?: number | null;
  /** Its own priority now. */
  priority?: number | null;
  /** The task. */
  task_id?: string | null;
}

/** What a cancellation found. */
export interface CancelAnswer {
  /** The task. */
  id: string;
  /** `cancelled_while_queued`, `cancelling`, or `already_<state>`. */
  status: string;
}

/** How many tasks were cancelled. */
export interface CancelManyAnswer {
  /** So many; of a dry run, so many would be. */
  cancelled: number;
}

/** Which waiting tasks to cancel: those that fit everything that is given; at least one thing must be. */
export interface CancelManyRequest {
  /** Only counts them: nothing is cancelled. */
  dry_run?: boolean;
  /** They carry this label. */
  group?: string | null;
  /** They are of this kind. */
  kind?: string | null;
  /** They name this lane. */
  lane?: string | null;
  /** This task asked for them. */
  parent?: string | null;
  /** They are turns of this conversation. */
  session?: string | null;
}

/** A task was cancelled. */
export interface CancelledEvent {
  /** When. */
  at?: At | null;
  /** `CANCELLED`. */
  code: string;
  /** Why. */
  reason: string;
  /** The task. */
  task_id?: string | null;
}

/** The numbers of a lane have changed. */
export interface ChangedEvent {
  /** When. */
  at?: At | null;
  /** The lane. */
  lane: string;
  /** How many may run in it; none: any number. */
  max_concurrent?: number | null;
  /** How many tasks run in it. */
  running: number;
  /** How many tasks wait in it. */
  waiting: number;
}

/** What became of a turn that was waited for. */
export interface ChatAnswer {
  /** How it went. */
  execution: ExecutionSummary;
  /** What the agent answered. */
  response: unknown;
}

/** One turn of a conversation, or one stateless task, to ask of an agent. */
export interface ChatRequest {
  /** When it is too late to start, counted from acceptance. */
  deadline_ms?: number | null;
  /** What is asked. */
  message: string;
  /** Passed on to the agent. */
  metadata?: unknown;
  /** Passed on to the agent. */
  model?: string | null;
  /** 0 to 9, or `user`, `schedule`, `agent`, `background`. */
  priority?: PriorityRequest | null;
  /** The conversation. Default: the agent's own. */
  session?: string | null;
  /** How long an attempt may take. */
  timeout_ms?: number | null;
  /** For whom a token speaks that may speak for others. */
  user?: UserRef | null;
  /** How long it may wait; 0: it starts now or is refused. */
  wait_timeout_ms?: number | null;
}

/** What a worker got. */
export interface ClaimAnswer {
  /** The tasks that are the worker's now. */
  tasks: ClaimedTask[];
}

/** What a worker asks for. */
export interface ClaimBody {
  /** These tasks and no others, whoever stands before them: those of them that may run now. At most 1000; without `lanes`, `kinds` and `max`. */
  ids?: string[];
  /** Of which kinds. Default: any. */
  kinds?: string[];
  /** From which home lanes: names or patterns. At least one, unless `ids` are given. */
  lanes?: string[];
  /** For how long without a sign of life. Default: as the lane says. */
  lease_ms?: number | null;
  /** At most so many. Default 1, at most 1000. */
  max?: number | null;
  /** How long to wait for work. Default 0, at most 60 000. */
  wait_ms?: number | null;
  /** Who asks. */
  worker: string;
}

/** A task that is a worker's until its lease lapses. */
export interface ClaimedTask {
  /** Which attempt, counted from one. */
  attempt: number;
  /** To be shown with everything that the worker reports. */
  fence: number;
  /** Which task. */
  id: string;
  /** What sort of work it is. */
  kind: string;
  /** Its home lane. */
  lane: string;
  /** When it lapses without a sign of life. */
  lease_until: At;
  /** What to do. */
  payload: unknown;
  /** How much of that is left. */
  remaining_ms?: number | null;
  /** The conversation. */
  session?: string | null;
  /** How long the attempt may take. */
  timeout_ms?: number | null;
  /** The trace that it belongs to. */
  traceparent?: string | null;
}

/** What clearing an agent's line did. */
export interface ClearedQueue {
  /** The agent. */
  agent: string;
  /** How many had waited. */
  cleared_count: number;
  /** `cleared`. */
  status: string;
}

/** An event as the server sends it. Over SSE, `event` is the name of the event and `data` its data; a WebSocket frame holds both. A newer server may send events that are not listed here. */
export type ClientEvent = { data: AcceptedEvent; event: "accepted" } | { data: PlaceEvent; event: "queued" } | { data: PlaceEvent; event: "position" } | { data: NoticeEvent; event: "notice" } | { data: TurnEvent; event: "typing" } | { data: StartedEvent; event: "started" } | { data: DeltaEvent; event: "delta" } | { data: ProgressEvent; event: "progress" } | { data: TurnEvent; event: "steered" } | { data: BoostedEvent; event: "boosted" } | { data: RetryingEvent; event: "retrying" } | { data: CompletedEvent; event: "completed" } | { data: FailedEvent; event: "failed" } | { data: EndedEvent; event: "timed_out" } | { data: CancelledEvent; event: "cancelled" } | { data: EndedEvent; event: "expired" } | { data: TaskEvent; event: "done" } | { data: ChangedEvent; event: "changed" } | { data: PressureEvent; event: "pressure" } | { data: LaneEvent; event: "idle" } | { data: AlertEvent; event: "alert" } | { data: LaneEvent; event: "paused" } | { data: LaneEvent; event: "resumed" } | { data: LaneEvent; event: "draining" } | { data: LaneEvent; event: "drained" } | { data: ExternalPendingEvent; event: "external_task_pending" } | { data: ExternalCompletedEvent; event: "external_task_completed" } | { data: DeadLetteredEvent; event: "dead_lettered" } | { data: MessageEvent; event: "message" } | { data: ScheduleFiredEvent; event: "schedule_fired" } | { data: GroupEvent; event: "group" } | { data: ConfiguredEvent; event: "configured" } | { data: GapEvent; event: "gap" } | { data: Problem; event: "error" };

export type Code = string;

/** How an attempt went. */
export interface CompleteBody {
  /** Why it did not succeed. */
  error?: string | null;
  /** Which attempt. */
  fence: number;
  /** What it produced. */
  result?: unknown;
  /** Whether another attempt could help. Default true. */
  retryable?: boolean | null;
  /** The ids of messages that the run has taken and not named in a sign of life; those that it never named wait for a turn of their own. */
  steered?: string[];
  /** Whether it succeeded. */
  success: boolean;
}

/** A task succeeded. */
export interface CompletedEvent {
  /** When. */
  at?: At | null;
  /** What it produced. */
  result: unknown;
  /** The task. */
  task_id?: string | null;
}

/** One value that holds. */
export interface ConfigValue {
  /** The block, as people write it; empty at the top. */
  block: string;
  /** The key. */
  key: string;
  /** Where it came from: a file and line, a variable, `api`, `default`, or `replica (… says …)`. */
  source: string;
  /** The value, without secrets. */
  value: string;
}

/** What holds, and where each value comes from. */
export interface ConfigView {
  /** Every value. */
  values: ConfigValue[];
}

/** Settings changed. */
export interface ConfiguredEvent {
  /** When. */
  at?: At | null;
  /** The names and patterns of the lanes. */
  lanes: string[];
}

/** A token that was just made. */
export interface CreatedToken {
  /** When it was made. */
  created_at: At;
  /** The part before the dot. */
  id: string;
  /** What it may do. */
  scopes: Scope[];
  /** Whether it may say for whom it asks. */
  speaks_for_others: boolean;
  /** Who uses it. */
  subject: string;
  /** The token: `id.secret`. It is told this once; only a hash of the secret is kept. */
  token: string;
}

/** A task that could not be done. */
export interface DeadLetterView {
  /** When it died. */
  at: At;
  /** How many attempts there were. */
  attempts: number;
  /** What went wrong last. */
  error: string;
  /** The task. */
  id: string;
  /** What sort of work it was. */
  kind: string;
  /** Its home lane. */
  lane: string;
  /** What was to be done. */
  payload: unknown;
}

/** A task failed for good. */
export interface DeadLetteredEvent {
  /** When. */
  at?: At | null;
  /** How many attempts it had. */
  attempts: number;
  /** What went wrong. */
  error: string;
  /** The task. */
  task_id?: string | null;
}

/** More of the text that an attempt produces. */
export interface DeltaEvent {
  /** When. */
  at?: At | null;
  /** The task. */
  task_id?: string | null;
  /** The text. */
  text: string;
}

/** A task ended by the clock. */
export interface EndedEvent {
  /** When. */
  at?: At | null;
  /** Why: `RUN_TIMED_OUT`, `WAIT_TIMEOUT` or `EXPIRED`. */
  code: string;
  /** The task. */
  task_id?: string | null;
}

/** One turn in an agent's line. */
export interface Execution {
  /** With what waiting and its deadline have added. */
  effective_priority: number;
  /** The task. */
  id: string;
  /** What was asked. */
  message: string;
  /** Its place in line, counted from one. */
  position?: number | null;
  /** Its own priority. */
  priority: number;
  /** When it was accepted. */
  queued_at: At;
  /** Who asked: `user`, `schedule`, `agent`, `background`. */
  source: string;
  /** Which agent asked. */
  source_agent?: string | null;
  /** Their address. */
  source_user_email?: string | null;
  /** Who asked. */
  source_user_id?: string | null;
  /** When it started. */
  started_at?: At | null;
  /** `queued`, `running` or `retrying`. */
  status: string;
}

/** How a turn went. */
export interface ExecutionSummary {
  /** Which attempt that was. */
  attempt: number;
  /** The task. */
  id: string;
  /** How it stood when it was accepted: `running` or `queued:N`. */
  queue_status: string;
  /** How long the last attempt took. */
  run_ms: number;
  /** From acceptance to the start of the last attempt. */
  wait_ms: number;
  /** Whether it had to wait. */
  was_queued: boolean;
}

/** Why a task waits. */
export interface ExplainView {
  /** What holds it up, the most certain first. */
  blockers: BlockerView[];
  /** When it will probably start. */
  eta_ms?: number | null;
  /** The task. */
  id: string;
  /** Its place in line, counted from one. */
  position?: number | null;
  /** `queued`, `running`, `retrying`. */
  status: string;
}

/** A worker has finished a task. */
export interface ExternalCompletedEvent {
  /** When. */
  at?: At | null;
  /** Whether it succeeded. */
  success: boolean;
  /** The task. */
  task_id?: string | null;
}

/** A task waits for a worker. */
export interface ExternalPendingEvent {
  /** When. */
  at?: At | null;
  /** Its kind. */
  kind: string;
  /** Its home lane. */
  lane: string;
  /** The task. */
  task_id?: string | null;
}

/** A task that waits for a worker. */
export interface ExternalTask {
  /** Which attempt comes next, counted from one. */
  attempt: number;
  /** Which task. */
  id: string;
  /** What sort of work it is. */
  kind: string;
  /** Its home lane. */
  lane: string;
  /** What to do. */
  payload: unknown;
  /** How long it may still wait. */
  remaining_ms?: number | null;
  /** The conversation. */
  session?: string | null;
  /** How long an attempt may take. */
  timeout_ms?: number | null;
}

/** A task failed. */
export interface FailedEvent {
  /** When. */
  at?: At | null;
  /** `RUN_FAILED`, or `LOST` if its owner died. */
  code: string;
  /** What went wrong. */
  error: string;
  /** The task. */
  task_id?: string | null;
}

/** Events are missing here. */
export interface GapEvent {
  /** How many; `null` if the server does not know. */
  missed?: number | null;
}

/** A task of a group was accepted or has ended. */
export interface GroupEvent {
  /** When. */
  at?: At | null;
  /** How many of its tasks have ended, failed ones counted. */
  done: number;
  /** How many ended otherwise than completed. */
  failed: number;
  /** The group. */
  group: string;
  /** How many tasks it has. */
  total: number;
}

/** How tasks with one label stand. */
export interface GroupView {
  /** How many have ended, failed ones counted. */
  done: number;
  /** How many ended otherwise than completed. */
  failed: number;
  /** How many there are. */
  total: number;
}

/** Whether the server is alive. */
export interface Health {
  /** How many may run at once; `null`: any number. */
  limit?: number | null;
  /** How many tasks run. */
  running: number;
  /** `ok`. */
  status: string;
  /** How many wait. */
  waiting: number;
}

/** What a sign of life is answered with. */
export interface HeartbeatAnswer {
  /** Whether to stop. */
  cancel_requested: boolean;
  /** When the lease lapses now. */
  lease_until: At;
  /** What was said to the run since the last sign of life; to one that names what it has `steered`, all that it has not. */
  steer: string[];
  /** The same with the messages' ids. */
  steering?: SteeringView[];
}

/** A sign of life. */
export interface HeartbeatBody {
  /** Which attempt. */
  fence: number;
  /** How far it is; told to whoever watches. */
  progress?: unknown;
  /** The ids of messages in `steering` that the run has taken, or an empty list: what is not named stays on offer, so that a lost answer loses nothing. Without it what is handed over counts as taken. */
  steered?: string[] | null;
  /** Whether the turn takes steering from now on; without it nothing is handed over. Only of turns of a conversation. */
  takes_steering?: boolean | null;
}

/** One point of a chart. */
export interface HistoryPoint {
  /** When. */
  at: At;
  /** How much. */
  value: number;
}

/** Points of a chart. */
export interface HistoryPoints {
  /** Of `refused`: the points of each code by itself. */
  by_code?: Record<string, HistoryPoint[]>;
  /** Of which lane. */
  lane: string;
  /** What was measured. */
  metric: string;
  /** The points, the oldest first. */
  points: HistoryPoint[];
  /** How far back: `5m`, `1h` or `24h`. */
  range: string;
  /** How far points are apart; the newest may be nearer. */
  step_ms: number;
}

/** What lanes have seen. */
export interface LaneCounters {
  /** Tasks accepted. */
  accepted: number;
  /** Tasks that were cancelled. */
  cancelled: number;
  /** Tasks that ended well. */
  completed: number;
  /** Tasks that failed or took too long. */
  failed: number;
  /** Tasks whose lease lapsed and that did not run again. */
  lost: number;
  /** Attempts that were followed by another. */
  retried: number;
  /** Attempts started. */
  started: number;
  /** Tasks that waited too long. */
  timed_out_waiting: number;
}

/** An event of a lane. */
export interface LaneEvent {
  /** When. */
  at?: At | null;
  /** The lane. */
  lane: string;
}

/** How a lane stands. */
export interface LaneNumbers {
  /** The worst alert about its line that is not over: `warning` or `critical`. */
  alert?: string | null;
  /** What the lanes of its block have seen together. */
  counters: LaneCounters;
  /** Nothing new is accepted. */
  draining: boolean;
  /** The block or pattern that speaks for it, under which it is counted. */
  label: string;
  /** Its name. */
  lane: string;
  /** How many slots it has. */
  max_concurrency?: number | null;
  /** How many may wait. */
  max_queued: number;
  /** Nothing starts. */
  paused: boolean;
  /** How many wait for their next attempt's time. */
  retrying: number;
  /** Of each attempt. */
  run: Percentiles;
  /** How many of its slots are taken. */
  running: number;
  /** Everything that is set, by name. */
  settings: Record<string, unknown>;
  /** From joining the line to each start. */
  wait: Percentiles;
  /** How many tasks wait. */
  waiting: number;
}

/** What a worker has of one task. */
export interface LeaseView {
  /** What sort of work it is. */
  kind: string;
  /** When the worker last said that it is at it. */
  last_heartbeat: At;
  /** When the lease lapses. */
  lease_until: At;
  /** Since when the worker has it. */
  started_at: At;
  /** Which task. */
  task: string;
}

/** Which dead letters are meant: those that fit everything that is given; at least one thing must be. */
export interface LettersSelector {
  /** Only counts them: nothing becomes of them. */
  dry_run?: boolean;
  /** Of this kind. */
  kind?: string | null;
  /** Of tasks with this home lane. */
  lane?: string | null;
}

/** Who asks, as the server sees it. */
export interface Me {
  /** What the caller may do, everything that a wider scope brings included. */
  scopes: Scope[];
  /** Who uses the token; `local` where there are no tokens. */
  subject: string;
}

/** What became of a message when it was sent. */
export interface MessageAnswer {
  /** The message; of a `duplicate`, the one that was taken. */
  id: string;
  /** `started`, `queued`, `steered`, `steered_and_queued`, `interrupted`, `dropped`, `duplicate` or `directive`. */
  outcome: string;
  /** Its place in the session's line, counted from one. */
  position?: number | null;
  /** What a directive answers; of a `duplicate`, what was answered then. */
  reply?: string | null;
  /** The turn that it started, was put into, or interrupted. */
  task_id?: string | null;
  /** Whether the sender should see typing. */
  typing: boolean;
}

/** A message to a session was accepted or has come to its end. */
export interface MessageEvent {
  /** When. */
  at?: At | null;
  /** More about its end. */
  detail?: string | null;
  /** The message. */
  message_id: string;
  /** What became of it. */
  outcome: string;
  /** The key of the session. */
  session: string;
  /** The turn that answered it. */
  task_id?: string | null;
  /** An answer is on its way. */
  typing?: boolean | null;
}

/** A message to a session. */
export interface MessageRequest {
  /** By which account. */
  account?: string | null;
  /** Who answers. */
  agent: string;
  /** How many messages may wait. */
  cap?: number | null;
  /** Where it came from. */
  channel?: string | null;
  /** How long it must have been quiet. */
  debounce_ms?: number | null;
  /** Which go when there are more. */
  drop?: string | null;
  /** It is worth nothing later: dropped when the session is busy. */
  heartbeat?: boolean | null;
  /** After how long the turn starts although it is not quiet. */
  max_wait_ms?: number | null;
  /** The channel's own id of the message: the same one twice is one message. */
  message_id?: string | null;
  /** What happens if the session is busy. */
  mode?: string | null;
  /** What becomes of it if that turn is over or takes no steering: `followup` (the default), `reject` or `drop`. */
  otherwise?: string | null;
  /** What the sender may do. */
  permissions?: string[] | null;
  /** Who said it. */
  sender?: string | null;
  /** As people know them. */
  sender_name?: string | null;
  /** What is said. */
  text: string;
  /** In which thread. */
  thread?: string | null;
  /** Where the answer goes. */
  to?: string | null;
  /** The turn that it means to steer. */
  turn_id?: string | null;
}

/** A message that waits. */
export interface MessageView {
  /** Who answers. */
  agent: string;
  /** When it was accepted. */
  at: At;
  /** Where it came from. */
  channel?: string | null;
  /** Why it was set aside. */
  error?: string | null;
  /** Its id. */
  id: string;
  /** The name to show. */
  sender_name?: string | null;
  /** What is said. */
  text: string;
}

/** Another place in line for a message. */
export interface MoveRequest {
  /** Before which message; `null`: to the end. */
  before?: string | null;
}

/** A schedule to make. */
export interface NewSchedule {
  /** Who is asked. */
  agent: string;
  /** What happens about firings that were missed while the server was down: `skip` (the default) or `one`. */
  catch_up?: string | null;
  /** When: five or six fields of cron, or `@daily` and the like. */
  cron: string;
  /** Whether it fires. Default true. */
  enabled?: boolean | null;
  /** What is asked. */
  message: string;
  /** Its name. */
  name: string;
  /** In which conversation. Default: the agent's own. */
  session?: string | null;
  /** In which time zone. Default `UTC`. */
  timezone?: string | null;
}

/** A token to make. */
export interface NewToken {
  /** What it may do. */
  scopes: Scope[];
  /** Whether it may say for whom it asks. */
  speaks_for_others?: boolean;
  /** Who uses it: stands in the audit log and in the tasks that it asks for. */
  subject: string;
}

/** A task has waited for a while. */
export interface NoticeEvent {
  /** How many tasks are ahead of it. */
  ahead: number;
  /** When. */
  at?: At | null;
  /** The task. */
  task_id?: string | null;
  /** How long. */
  waited_ms: number;
}

/** Durations, in milliseconds. */
export interface Percentiles {
  /** How many were measured. */
  count: number;
  /** Half are not longer. */
  p50_ms?: number | null;
  /** 90 % are not longer. */
  p90_ms?: number | null;
  /** 99 % are not longer. */
  p99_ms?: number | null;
}

/** Where a task stands in line. */
export interface PlaceEvent {
  /** When. */
  at?: At | null;
  /** When it will probably start. */
  eta_ms?: number | null;
  /** Its place in the line of its home lane, counted from one. */
  position?: number | null;
  /** The task. */
  task_id?: string | null;
}

/** A lane is under pressure. */
export interface PressureEvent {
  /** When. */
  at?: At | null;
  /** The lane. */
  lane: string;
  /** How many tasks wait in it. */
  waiting: number;
}

export type PriorityRequest = number | "user" | "schedule" | "agent" | "background";

/** Why something was refused or did not succeed, and what to do next. `reason`, `taskId`, `error`, `agent` and `message` say the same things under names that clients of other servers know. */
export interface Problem {
  /** The agent that was asked. */
  agent?: string | null;
  /** What sort of refusal it is. */
  code: Code;
  /** The task that has held a slot of the lane for longest. */
  current_task_id?: string | null;
  /** One sentence about this refusal. */
  detail: string;
  /** The title, in the words of the refusal. */
  error: string;
  /** The lane that refused. */
  lane?: string | null;
  /** How many it has. */
  max_concurrency?: number | null;
  /** How many may. */
  max_queued?: number | null;
  /** As `detail`. */
  message: string;
  /** `setup` before it ran, `run` after. */
  phase: string;
  /** How many tasks wait in it. */
  queue_length?: number | null;
  /** The code, or why a task was cancelled. */
  reason: string;
  /** When to come back, in whole seconds, rounded up. */
  retry_after?: number | null;
  /** When to come back, in milliseconds. */
  retry_after_ms?: number | null;
  /** Whether asking again, unchanged, could help. */
  retryable: boolean;
  /** How many of its slots are taken. */
  running?: number | null;
  /** The status of the HTTP answer. */
  status: number;
  /** As `task_id`. */
  taskId?: string | null;
  /** The task that this is about. */
  task_id?: string | null;
  /** A few words, the same for every refusal with this code. */
  title: string;
  /** `urn:laneway:problem:<slug>`. */
  type: string;
}

/** The progress that an attempt reports, or what a request to cancel found. */
export interface ProgressEvent {
  /** When. */
  at?: At | null;
  /** What a request to cancel found, on a WebSocket. */
  cancel?: string | null;
  /** The report. */
  progress?: unknown;
  /** The task. */
  task_id?: string | null;
}

/** How the line of an agent stands. */
export interface QueueView {
  /** The agent. */
  agent_name: string;
  /** The turn that has run for longest. */
  current_execution?: Execution | null;
  /** Whether a turn runs. */
  is_busy: boolean;
  /** How many wait. */
  queue_length: number;
  /** Those that wait, in order. */
  queued_executions: Execution[];
  /** All that run, the longest first. */
  running_executions?: Execution[];
}

/** Whether the server takes work. */
export interface Readiness {
  /** `ready`, `draining`, `full` or `store_unavailable`. */
  status: string;
}

/** What became of a message. */
export interface Receipt {
  /** By which rule, for which reason, with which error. */
  detail?: string | null;
  /** Whether that is its end, which never changes. One that was `steered` has not ended before its turn has. */
  ended: boolean;
  /** The message. */
  id: string;
  /** Its place in line, counted from one. */
  position?: number | null;
  /** `waiting`, `steering`, `in_turn`, `delivered`, `steered`, `dropped`, `cancelled` or `set_aside`. */
  status: string;
  /** In which turn. */
  task_id?: string | null;
}

/** What became of dead letters. */
export interface RedriveAnswer {
  /** How many. */
  count: number;
  /** The new tasks, where some were made. */
  tasks: string[];
}

/** What releasing an agent by force did. */
export interface ReleasedQueue {
  /** The agent. */
  agent: string;
  /** The tasks that lost their slots. */
  released: string[];
  /** `released`. */
  status: string;
  /** That the old runs may still be going. */
  warning: string;
  /** Whether something ran. */
  was_running: boolean;
}

/** What follows a failure. */
export interface RetryRequest {
  /** Fixed: before each retry. Default 1000. */
  fixed_delay_ms?: number | null;
  /** Exponential: before the first retry; it doubles each time. Default 100. */
  initial_delay_ms?: number | null;
  /** Spreads each delay over its upper half. Default false. */
  jitter?: boolean | null;
  /** No delay is longer. Default 30 000. */
  max_delay_ms?: number | null;
  /** How many attempts may follow the first. Default 3. */
  max_retries?: number | null;
  /** `none`, `fixed` or `exponential` (the default). */
  strategy?: string | null;
}

/** An attempt is over and another follows. */
export interface RetryingEvent {
  /** When. */
  at?: At | null;
  /** The attempt that is over. */
  attempt?: number | null;
  /** How long the task rests before it waits again. */
  delay_ms: number;
  /** What went wrong. */
  error: string;
  /** The task. */
  task_id?: string | null;
}

/** A change of a schedule; what is left out stays. */
export interface ScheduleChange {
  /** Who is asked. */
  agent?: string | null;
  /** `skip` or `one`. */
  catch_up?: string | null;
  /** When. */
  cron?: string | null;
  /** Whether it fires. */
  enabled?: boolean | null;
  /** What is asked. */
  message?: string | null;
  /** In which conversation. */
  session?: string | null;
  /** In which time zone. */
  timezone?: string | null;
}

/** A schedule fired. */
export interface ScheduleFiredEvent {
  /** When. */
  at?: At | null;
  /** For which moment. */
  due_at: string;
  /** Why it was refused. */
  error?: string | null;
  /** The name of the schedule. */
  schedule: string;
  /** `running`, or `failed` if the task was refused. */
  status: string;
  /** The task. */
  task_id?: string | null;
}

/** One firing of a schedule. */
export interface ScheduleRun {
  /** For which moment. */
  due_at: string;
  /** Why it was refused or did not succeed. */
  error?: string | null;
  /** When it fired. */
  fired_at: string;
  /** `running`, how the task ended, or `failed` when it was refused. */
  status: string;
  /** The task. */
  task_id?: string | null;
  /** By the clock, to make up for missed ones, or because somebody asked: `clock`, `catch_up`, `manual`. */
  trigger: string;
}

/** A schedule. */
export interface ScheduleView {
  /** Who is asked. */
  agent: string;
  /** `skip` or `one`. */
  catch_up: string;
  /** When. */
  cron: string;
  /** Whether it fires. */
  enabled: boolean;
  /** The last firing. */
  last_run?: ScheduleRun | null;
  /** What is asked. */
  message: string;
  /** Its name. */
  name: string;
  /** The next firings. */
  next_runs: At[];
  /** Whether it comes from the configuration file or from the API. */
  origin: string;
  /** In which conversation. */
  session?: string | null;
  /** In which time zone. */
  timezone: string;
  /** When, in words. */
  words?: string | null;
}

/** What a token may do. */
export type Scope = "read" | "submit" | "worker" | "admin";

/** How messages of one session are queued; what is left out stays. */
export interface SessionChange {
  /** How many messages may wait. */
  cap?: number | null;
  /** How long it must have been quiet. */
  debounce_ms?: number | null;
  /** Which go when there are more. */
  drop?: string | null;
  /** After how long a turn starts although it is not quiet. */
  max_wait_ms?: number | null;
  /** What happens to messages while it is busy. */
  mode?: string | null;
}

/** How the tool lanes of a session stand. */
export interface SessionStats {
  /** How many of those that wait, wait for a worker. */
  external_pending: number;
  /** By tool lane. */
  lanes: Record<string, ToolLaneStats>;
  /** How its messages are queued, each value with where it comes from; also of a session of which nothing is remembered. */
  settings?: Record<string, unknown>;
  /** How many run. */
  total_active: number;
  /** How many calls wait. */
  total_pending: number;
}

/** A session. */
export interface SessionSummary {
  /** The turn that is under way: `task_id`, the ids of its `messages`, of those `pending` for it and those `steered` into it, whether it `takes_steering`, and what was `said` in all of these. */
  current_turn?: unknown;
  /** How many messages were dropped that the next turn will tell of. */
  dropped: number;
  /** Whether a turn was accepted and has not ended. */
  is_busy: boolean;
  /** The conversation's key. */
  key: string;
  /** The messages that wait, in order. */
  messages: MessageView[];
  /** Nothing is tried again before. */
  retry_at?: At | null;
  /** The messages that were set aside, the oldest first: they can be sent again or thrown away. */
  set_aside?: MessageView[];
  /** How messages are queued, each value with where it came from. */
  settings: Record<string, unknown>;
  /** Whether the people in it should see typing. */
  typing: boolean;
}

/** A slot that is the caller's until its lease lapses. */
export interface SlotAnswer {
  /** To be shown with them. */
  fence: number;
  /** The task that holds it: for its heartbeat and its completion. */
  id: string;
  /** When it lapses without a sign of life. */
  lease_until: At;
}

/** A slot of each of some lanes, for work of the caller's own. */
export interface SlotRequest {
  /** The lanes; the first is the home lane. */
  lanes: string[];
  /** How long without a sign of life. Default: as the home lane says. */
  lease_ms?: number | null;
  /** 0 to 9, or the name of a source. */
  priority?: PriorityRequest | null;
  /** The conversation. */
  session?: string | null;
  /** How long to wait; 0: now or never. Default: as the home lane says. */
  wait_ms?: number | null;
}

/** An attempt starts. */
export interface StartedEvent {
  /** When. */
  at?: At | null;
  /** Which attempt, counted from one. */
  attempt: number;
  /** Its fence. */
  fence: number;
  /** The task. */
  task_id?: string | null;
  /** The worker that has it. */
  worker?: string | null;
}

/** How everything stands. */
export interface StatusView {
  /** How many tasks could not be done and are kept. */
  dead_letters?: number;
  /** `Agent: 2/3`, or `Agent: 3/3 (2 queued)`. */
  line: string;
  /** How many may run at once; `null`: any number. */
  max_concurrent?: number | null;
  /** How many tasks run. */
  running: number;
  /** How many wait. */
  waiting: number;
}

/** Something to say to a running turn. */
export interface SteerRequest {
  /** What. */
  text: string;
}

/** Something that was said to a run. */
export interface SteeringView {
  /** The message, to be named when the run has taken it. */
  id: string;
  /** Who said it, as people know them. */
  sender_name?: string | null;
  /** What was said. */
  text: string;
}

/** A change of a waiting task. */
export interface TaskChange {
  /** 0 to 9, or the name of a source. */
  priority: PriorityRequest;
}

/** An event of a task. */
export interface TaskEvent {
  /** When. */
  at?: At | null;
  /** The task. */
  task_id?: string | null;
}

/** A task to ask for. */
export interface TaskRequest {
  /** When it is too late to start, counted from acceptance. */
  deadline_ms?: number | null;
  /** With whom it shares turns. */
  fair_key?: string | null;
  /** A label that tasks which belong together share. */
  group?: string | null;
  /** What sort of work it is: decides who runs it. */
  kind: string;
  /** The lanes it needs; the first is its home lane. None: `main`, or `external` for a kind that nothing here runs. */
  lanes?: string[];
  /** The running task that asks. */
  parent?: string | null;
  /** What whoever runs it gets. */
  payload?: unknown;
  /** 0 to 9, or the name of a source. */
  priority?: PriorityRequest | null;
  /** What follows a failure. */
  retry?: RetryRequest | null;
  /** How long it must wait before it may start. */
  run_after_ms?: number | null;
  /** Who asked: `user`, `schedule`, `agent`, `background`. */
  source?: string | null;
  /** How long an attempt may take. */
  timeout_ms?: number | null;
  /** How long it may wait; 0: it starts now or is refused. */
  wait_timeout_ms?: number | null;
}

/** A task, live or over. */
export interface TaskView {
  /** The newest of them, the last one included, in order. Lists leave it out. */
  attempt_list?: AttemptView[];
  /** How many attempts have started. */
  attempts: number;
  /** Whether it was told to stop. */
  cancel_requested?: boolean;
  /** When it is too late to start. */
  deadline_at?: At | null;
  /** With what waiting and its deadline have added. */
  effective_priority?: number | null;
  /** When it ended. */
  ended_at?: At | null;
  /** Why it produced nothing. */
  error?: string | null;
  /** When it will probably start. */
  eta_ms?: number | null;
  /** Its label. */
  group?: string | null;
  /** Its id. */
  id: string;
  /** What sort of work it is. */
  kind: string;
  /** Its place among all that wait in the lane that was asked for, counted from one. */
  lane_position?: number | null;
  /** The lanes that it named, the home lane first. */
  lanes: string[];
  /** When its lease lapses. */
  lease_until?: At | null;
  /** Whose token asked. */
  owner?: string | null;
  /** The task that asked for it. */
  parent?: string | null;
  /** What whoever runs it gets: while it is live, and as long as it is remembered once an attempt has ended it, if it is no longer than 16 KiB. */
  payload?: unknown;
  /** Its place in line, counted from one. */
  position?: number | null;
  /** Its own priority. */
  priority: number;
  /** Why it was cancelled. */
  reason?: string | null;
  /** What it produced. */
  result?: unknown;
  /** The conversation that it is a turn of. */
  session?: string | null;
  /** Who asked. */
  source: string;
  /** When its last attempt started. */
  started_at?: At | null;
  /** `queued`, `running`, `retrying`, or how it ended. */
  status: string;
  /** When it was accepted. */
  submitted_at: At;
  /** How long an attempt may take. */
  timeout_ms?: number | null;
  /** The trace that it belongs to. */
  traceparent?: string | null;
  /** When it has waited too long. */
  wait_until?: At | null;
  /** Which worker has it, or had it last. */
  worker?: string | null;
}

/** A token, without its secret. */
export interface TokenView {
  /** When it was made. */
  created_at: At;
  /** The part before the dot. */
  id: string;
  /** What it may do. */
  scopes: Scope[];
  /** Whether it may say for whom it asks. */
  speaks_for_others: boolean;
  /** Who uses it. */
  subject: string;
}

/** How one tool lane of a session stands; the counts are those of all sessions under the same settings. */
export interface ToolLaneStats {
  /** How many run. */
  active: number;
  /** How many ended well. */
  completed: number;
  /** How many did not. */
  failed: number;
  /** `internal`, `external` or `hybrid`. */
  handler_mode: string;
  /** How many may run at once. */
  max_concurrency?: number | null;
  /** How many calls wait. */
  pending: number;
}

/** The turn of a session takes up messages. */
export interface TurnEvent {
  /** When. */
  at?: At | null;
  /** The ids of the messages. */
  messages: string[];
  /** The key of the session. */
  session: string;
}

/** Somebody for whom a token speaks. */
export interface UserRef {
  /** Their address. */
  email?: string | null;
  /** Who. */
  id: string;
}

/** A worker that has work. */
export interface WorkerView {
  /** When it was last heard of. */
  last_heartbeat: At;
  /** When the first of its leases lapses. */
  lease_until: At;
  /** Its leases, one for each task. */
  leases: LeaseView[];
  /** What it has. */
  tasks: string[];
  /** Who. */
  worker: string;
}
