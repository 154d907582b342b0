// What goes over the wire. Written by scripts/generate.mjs from the server's OpenAPI document; not edited by hand.

/** A task was accepted. */
export interface AcceptedEvent {
  /** When the event happened. */
  at?: At | null;
  /** The kind. */
  kind: string;
  /** The lanes, the home lane first. */
  lanes?: string[] | null;
  /** The priority without boosts. */
  priority?: number | null;
  /** The task. */
  task_id?: string | null;
}

/** The state of a turn at acceptance. */
export interface AcceptedExecution {
  /** The estimated time until the start. */
  eta_ms?: number | null;
  /** The task. */
  id: string;
  /** The position in the home lane, counted from one. */
  position?: number | null;
  /** `running`, `queued`, or the end if the task has ended. */
  status: string;
}

/** A task that was accepted. */
export interface AcceptedTask {
  /** How safely the task is stored: `memory`, `engine`, `disk` or `replicated`. */
  durability: string;
  /** The estimated time until the start. */
  eta_ms?: number | null;
  /** The id. */
  id: string;
  /** The position in the home lane, counted from one. */
  position?: number | null;
  /** Whether an earlier request with the same key submitted the task. */
  replayed?: boolean;
  /** `running`, `queued`, or the end if the task has ended. */
  status: string;
}

/** A turn that was accepted, for a caller that does not wait. */
export interface AcceptedTurn {
  /** How safely the task is stored: `memory`, `engine`, `disk` or `replicated`. */
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
  /** The largest number of tasks that run at once. */
  max_concurrency?: number | null;
  /** The largest number of waiting tasks. */
  max_queued: number;
  /** Its name. */
  name: string;
  /** Where it comes from: `file` or `api`. */
  origin?: string;
  /** What answers its turns: `command`, `url`, `external` or `echo`. */
  runner: string;
  /** The number of running turns. */
  running: number;
  /** The lane of its stateless tasks. */
  task_lane: string;
  /** The number of waiting tasks. */
  waiting: number;
}

/** The number of waiting tasks in a lane exceeds a threshold. */
export interface AlertEvent {
  /** When the event happened. */
  at?: At | null;
  /** The lane. */
  lane: string;
  /** `warning` or `critical`. */
  level: string;
  /** The number of tasks that wait in the lane. */
  waiting: number;
}

export type At = string;

/** One attempt at a task. */
export interface AttemptView {
  /** When the attempt ended. */
  ended_at?: At | null;
  /** The error. */
  error?: string | null;
  /** The number, counted from one. */
  number: number;
  /** `running`, `failed` if another attempt followed, or the end of the task. */
  outcome: string;
  /** When the attempt started, if known. */
  started_at?: At | null;
  /** The worker. */
  worker?: string | null;
}

/** One line of the audit log. */
export interface AuditEntry {
  /** What was done, such as `clear_queue` or `force_release`. */
  action: string;
  /** The id of the person. */
  actor: string;
  /** When. */
  at: string;
  /** Details. */
  details: unknown;
  /** What was changed: `agent_queue`, `lane`, `token`, `schedule`, `task`, `dead_letter`, `config` or `server`. */
  event_type: string;
  /** The hash of this line. */
  hash: string;
  /** The number, counted from one. */
  id: number;
  /** The hash of the previous line. */
  prev: string;
  /** `info`, `warning` or `critical`. */
  severity: string;
  /** The name of what was changed. */
  target: string;
}

/** The results of the calls, in their order. */
export interface BatchAnswer {
  /** One result for each call. */
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
  /** The session. */
  session: string;
}

/** The result of one call. */
export interface BatchResult {
  /** The error. */
  error?: Problem | null;
  /** The result. A call that failed may have one too: its output. */
  result?: unknown;
  /** Whether the call completed. */
  success: boolean;
  /** The tool. */
  tool: string;
}

/** One reason why a task waits. */
export interface BlockerView {
  /** The number. */
  count?: number | null;
  /** The reason in one sentence. */
  detail: string;
  /** `not_yet`, `after`, `backing_off`, `paused`, `rate_limited`, `session_busy`, `lane_full`, `reserved`, `unclaimed`, `behind`. */
  kind: string;
  /** The lane. */
  lane?: string | null;
  /** Since when. */
  since?: At | null;
  /** The tasks that hold the slots. */
  tasks?: string[];
  /** Until when. */
  until?: At | null;
}

/** The priority of a task has changed. */
export interface BoostedEvent {
  /** When the event happened. */
  at?: At | null;
  /** The cause: `waiting`, `deadline` or `caller`. */
  by: string;
  /** The number of levels. */
  levels?: number | null;
  /** The new priority without boosts. */
  priority?: number | null;
  /** The task. */
  task_id?: string | null;
}

/** The result of a cancellation. */
export interface CancelAnswer {
  /** The task. */
  id: string;
  /** `cancelled_while_queued`, `cancelling`, or `already_<state>`. */
  status: string;
}

/** The number of cancelled tasks. */
export interface CancelManyAnswer {
  /** The number of tasks; for a dry run, the number that would be cancelled. */
  cancelled: number;
}

/** Which waiting tasks to cancel: those that match all fields. At least one field must be set. */
export interface CancelManyRequest {
  /** Only counts the tasks. */
  dry_run?: boolean;
  /** Tasks with this label. */
  group?: string | null;
  /** Tasks of this kind. */
  kind?: string | null;
  /** Tasks that name this lane. */
  lane?: string | null;
  /** Tasks that this task submitted. */
  parent?: string | null;
  /** Turns of this session. */
  session?: string | null;
}

/** A task was cancelled. */
export interface CancelledEvent {
  /** When the event happened. */
  at?: At | null;
  /** `CANCELLED`. */
  code: string;
  /** The reason. */
  reason: string;
  /** The task. */
  task_id?: string | null;
}

/** The numbers of a lane have changed. */
export interface ChangedEvent {
  /** When the event happened. */
  at?: At | null;
  /** The lane. */
  lane: string;
  /** The largest number of tasks that run at once; `null` if there is no limit. */
  max_concurrent?: number | null;
  /** The number of running tasks. */
  running: number;
  /** The number of tasks that wait in the lane. */
  waiting: number;
}

/** The answer to a request that waited for the end of its turn. */
export interface ChatAnswer {
  /** The course of the turn. */
  execution: ExecutionSummary;
  /** The agent's answer: its text, if the agent answered with more fields. */
  response: unknown;
  /** All further fields. */
  [field: string]: unknown;
}

/** A request to an agent: a turn of a session, or a stateless task. */
export interface ChatRequest {
  /** The server passes it on to the agent. */
  allowed_tools?: string[] | null;
  /** The latest start, counted from acceptance. */
  deadline_ms?: number | null;
  /** The message to the agent. */
  message: string;
  /** The server passes it on to the agent. */
  metadata?: unknown;
  /** The server passes it on to the agent. */
  model?: string | null;
  /** 0 to 9, or `user`, `schedule`, `agent`, `background`. */
  priority?: PriorityRequest | null;
  /** The session, whose turns run one after another. Default: none, so only the lanes of the agent limit such turns. */
  session?: string | null;
  /** The server passes it on to the agent. The header `Accept` decides whether the server streams. */
  stream?: boolean | null;
  /** The server passes it on to the agent. */
  system_prompt?: string | null;
  /** The longest time of one attempt. */
  timeout_ms?: number | null;
  /** The longest time of one attempt, in seconds, unless `timeout_ms` gives it. The server passes it on to the agent. */
  timeout_seconds?: number | null;
  /** The person on whose behalf the token sends the request. The token must be allowed to speak for others. */
  user?: UserRef | null;
  /** The longest time in the queue. With 0 the task starts at once or is refused. */
  wait_timeout_ms?: number | null;
}

/** The tasks that a worker claimed. */
export interface ClaimAnswer {
  /** The claimed tasks. */
  tasks: ClaimedTask[];
}

/** A worker's request for tasks. */
export interface ClaimBody {
  /** Only those of these tasks that may run now, regardless of the order. At most 1000; without `lanes`, `kinds` and `max`. */
  ids?: string[];
  /** The kinds. Default: any. */
  kinds?: string[];
  /** The home lanes: names or patterns. At least one, unless `ids` are set. */
  lanes?: string[];
  /** The lease without a heartbeat. Default: the setting of the lane. */
  lease_ms?: number | null;
  /** The largest number of tasks. Default 1, at most 1000. */
  max?: number | null;
  /** The longest wait for a task. Default 0, at most 60 000. */
  wait_ms?: number | null;
  /** The name of the worker. */
  worker: string;
}

/** A task that a worker holds until the lease lapses. */
export interface ClaimedTask {
  /** The number of the attempt, counted from one. */
  attempt: number;
  /** The fence, for every report of the worker. */
  fence: number;
  /** The task. */
  id: string;
  /** The kind. */
  kind: string;
  /** Its home lane. */
  lane: string;
  /** When the lease lapses without a heartbeat. */
  lease_until: At;
  /** The payload. */
  payload: unknown;
  /** The time that is left. */
  remaining_ms?: number | null;
  /** The session. */
  session?: string | null;
  /** How long the attempt may take. */
  timeout_ms?: number | null;
  /** The trace of the task. */
  traceparent?: string | null;
}

/** The result of clearing an agent's queue. */
export interface ClearedQueue {
  /** The agent. */
  agent: string;
  /** The number of cancelled tasks. */
  cleared_count: number;
  /** `cleared`. */
  status: string;
}

/** An event as the server sends it. Over SSE, `event` is the name of the event and `data` its data; a WebSocket frame holds both. A newer server may send events that are not listed here. */
export type ClientEvent = { data: AcceptedEvent; event: "accepted" } | { data: PlaceEvent; event: "queued" } | { data: PlaceEvent; event: "position" } | { data: NoticeEvent; event: "notice" } | { data: TurnEvent; event: "typing" } | { data: StartedEvent; event: "started" } | { data: DeltaEvent; event: "delta" } | { data: ProgressEvent; event: "progress" } | { data: UsageEvent; event: "usage" } | { data: TurnEvent; event: "steered" } | { data: BoostedEvent; event: "boosted" } | { data: RetryingEvent; event: "retrying" } | { data: CompletedEvent; event: "completed" } | { data: FailedEvent; event: "failed" } | { data: EndedEvent; event: "timed_out" } | { data: CancelledEvent; event: "cancelled" } | { data: EndedEvent; event: "expired" } | { data: TaskEvent; event: "done" } | { data: ChangedEvent; event: "changed" } | { data: PressureEvent; event: "pressure" } | { data: LaneEvent; event: "idle" } | { data: AlertEvent; event: "alert" } | { data: LaneEvent; event: "paused" } | { data: LaneEvent; event: "resumed" } | { data: LaneEvent; event: "draining" } | { data: LaneEvent; event: "drained" } | { data: ExternalPendingEvent; event: "external_task_pending" } | { data: ExternalCompletedEvent; event: "external_task_completed" } | { data: TaskEvent; event: "heartbeat_wanted" } | { data: DeadLetteredEvent; event: "dead_lettered" } | { data: MessageEvent; event: "message" } | { data: ScheduleFiredEvent; event: "schedule_fired" } | { data: GroupEvent; event: "group" } | { data: ConfiguredEvent; event: "configured" } | { data: GapEvent; event: "gap" } | { data: Problem; event: "error" };

export type Code = string;

/** The end of an attempt. */
export interface CompleteBody {
  /** The error of a failure. */
  error?: string | null;
  /** The fence of the attempt. */
  fence: number;
  /** The result. A failure may have one too, such as the output of a command that failed. The task keeps it with the error. */
  result?: unknown;
  /** Whether a retry may help. Default true. */
  retryable?: boolean | null;
  /** The ids of messages that the attempt has taken and not sent with a heartbeat. Messages that it never names wait for a turn of their own. */
  steered?: string[];
  /** Whether the attempt succeeded. */
  success: boolean;
}

/** A task succeeded. */
export interface CompletedEvent {
  /** When the event happened. */
  at?: At | null;
  /** The result. */
  result: unknown;
  /** The task. */
  task_id?: string | null;
}

/** A value in force. */
export interface ConfigValue {
  /** The block, as in the file; empty at the top level. */
  block: string;
  /** What the configuration says, for a value that a caller has changed: `laneway.hcl:3 says 4`. */
  configured?: string | null;
  /** The key. */
  key: string;
  /** The origin: a file and line, a variable, `api`, `default`, or `replica (… says …)`. */
  source: string;
  /** The value, without secrets. */
  value: string;
}

/** The configuration in force, and where each value comes from. */
export interface ConfigView {
  /** Every value. */
  values: ConfigValue[];
}

/** Settings changed. */
export interface ConfiguredEvent {
  /** When the event happened. */
  at?: At | null;
  /** The names and patterns of the lanes. */
  lanes: string[];
}

/** A new token. */
export interface CreatedToken {
  /** When the token was created. */
  created_at: At;
  /** The part of the token before the dot. */
  id: string;
  /** The scopes. */
  scopes: Scope[];
  /** Whether the token may send requests on behalf of other people. */
  speaks_for_others: boolean;
  /** The user of the token. */
  subject: string;
  /** The token: `id.secret`. Only this answer holds it; the server keeps a hash of the secret. */
  token: string;
}

/** The turn that is under way in a session. */
export interface CurrentTurn {
  /** The ids of its messages. */
  messages: string[];
  /** The ids of the messages that wait for the turn to take them. */
  pending: string[];
  /** The texts of all of these messages; of a turn without messages, its request. */
  said: MessageView[];
  /** The ids of the messages that the turn has taken while it ran. */
  steered: string[];
  /** Whether messages can steer it. */
  takes_steering: boolean;
  /** The task. */
  task_id: string;
}

/** A dead letter: a task that failed for good. */
export interface DeadLetterView {
  /** When the task failed for good. */
  at: At;
  /** The number of attempts. */
  attempts: number;
  /** The last error. */
  error: string;
  /** The task. */
  id: string;
  /** The kind. */
  kind: string;
  /** Its home lane. */
  lane: string;
  /** The payload. */
  payload: unknown;
  /** What the last attempt produced all the same, while the history has the task. */
  result?: unknown;
  /** The session. */
  session?: string | null;
}

/** A task failed for good. */
export interface DeadLetteredEvent {
  /** When the event happened. */
  at?: At | null;
  /** The number of attempts. */
  attempts: number;
  /** The error. */
  error: string;
  /** The task. */
  task_id?: string | null;
}

/** More of the text that an attempt produces. */
export interface DeltaEvent {
  /** When the event happened. */
  at?: At | null;
  /** The task. */
  task_id?: string | null;
  /** The text. */
  text: string;
}

/** A task ended by the clock. */
export interface EndedEvent {
  /** When the event happened. */
  at?: At | null;
  /** The cause: `RUN_TIMED_OUT`, `WAIT_TIMEOUT` or `EXPIRED`. */
  code: string;
  /** The task. */
  task_id?: string | null;
}

/** A turn in an agent's queue. */
export interface Execution {
  /** The agent. */
  agent_name?: string;
  /** The priority with the boosts of waiting and of the deadline. */
  effective_priority: number;
  /** The task. */
  id: string;
  /** The message. */
  message: string;
  /** The position in the home lane, counted from one. */
  position?: number | null;
  /** The priority without boosts. */
  priority: number;
  /** When the task was accepted. */
  queued_at: At;
  /** The source of the task: `user`, `schedule`, `agent` or `background`. */
  source: string;
  /** The agent that sent the request. */
  source_agent?: string | null;
  /** The email address. */
  source_user_email?: string | null;
  /** The source of the request. */
  source_user_id?: string | null;
  /** When it started. */
  started_at?: At | null;
  /** `queued`, `running` or `retrying`. */
  status: string;
}

/** The course of a turn. */
export interface ExecutionSummary {
  /** The number of the last attempt. */
  attempt: number;
  /** The task. */
  id: string;
  /** The state at acceptance: `running` or `queued:N`. */
  queue_status: string;
  /** The duration of the last attempt. */
  run_ms: number;
  /** The time from acceptance to the start of the last attempt. */
  wait_ms: number;
  /** Whether the task waited. */
  was_queued: boolean;
}

/** Why a task waits. */
export interface ExplainView {
  /** The blockers, the most certain first. */
  blockers: BlockerView[];
  /** The estimated time until the start. */
  eta_ms?: number | null;
  /** The task. */
  id: string;
  /** The position in the home lane, counted from one. */
  position?: number | null;
  /** `queued`, `running`, `retrying`. */
  status: string;
}

/** A task of an external or hybrid lane has ended. */
export interface ExternalCompletedEvent {
  /** When the event happened. */
  at?: At | null;
  /** The kind. */
  kind?: string;
  /** The home lane. */
  lane?: string;
  /** The session. */
  session?: string | null;
  /** Whether the attempt succeeded. */
  success: boolean;
  /** The task. */
  task_id?: string | null;
}

/** A task of an external or hybrid lane was accepted. */
export interface ExternalPendingEvent {
  /** When the event happened. */
  at?: At | null;
  /** The kind. */
  kind: string;
  /** The home lane. */
  lane: string;
  /** The payload. */
  payload?: unknown;
  /** How long the task may wait for a worker. */
  remaining_ms?: number | null;
  /** The session. */
  session?: string | null;
  /** The task. */
  task_id?: string | null;
  /** How long an attempt may take. */
  timeout_ms?: number | null;
}

/** A task that waits for a worker. */
export interface ExternalTask {
  /** The number of the next attempt, counted from one. */
  attempt: number;
  /** The task. */
  id: string;
  /** The kind. */
  kind: string;
  /** Its home lane. */
  lane: string;
  /** The payload. */
  payload: unknown;
  /** The time until the wait times out. */
  remaining_ms?: number | null;
  /** The session. */
  session?: string | null;
  /** The longest time of one attempt. */
  timeout_ms?: number | null;
}

/** A task failed. */
export interface FailedEvent {
  /** When the event happened. */
  at?: At | null;
  /** `RUN_FAILED`, or `LOST` if its owner died. */
  code: string;
  /** The error. */
  error: string;
  /** What the task produced all the same. */
  result?: unknown;
  /** The task. */
  task_id?: string | null;
}

/** Events are missing here. */
export interface GapEvent {
  /** The number of missing events; `null` if the server does not know. */
  missed?: number | null;
}

/** A task of a group was accepted or has ended. */
export interface GroupEvent {
  /** When the event happened. */
  at?: At | null;
  /** The number of tasks that have ended, failed ones included. */
  done: number;
  /** The number of tasks that ended without completing. */
  failed: number;
  /** The group. */
  group: string;
  /** The number of tasks. */
  total: number;
}

/** The tasks with one label. */
export interface GroupView {
  /** The number of tasks that have ended, failed ones included. */
  done: number;
  /** The number of tasks that ended without completing. */
  failed: number;
  /** The number of tasks. */
  total: number;
}

/** Whether the server is alive. */
export interface Health {
  /** The largest number of tasks that run at once; `null` if there is no limit. */
  limit?: number | null;
  /** The number of running tasks. */
  running: number;
  /** `ok`. */
  status: string;
  /** The number of waiting tasks. */
  waiting: number;
}

/** The answer to a heartbeat. */
export interface HeartbeatAnswer {
  /** Whether the worker must stop. */
  cancel_requested: boolean;
  /** When the lease lapses now. */
  lease_until: At;
  /** The texts of steering messages since the last heartbeat. For a worker that sends `steered`, all that it has not taken. */
  steer: string[];
  /** The same messages with their ids. */
  steering?: TurnMessageView[];
}

/** A heartbeat. */
export interface HeartbeatBody {
  /** More of the text that the attempt produces, for clients that watch the task. */
  delta?: string | null;
  /** The fence of the attempt. */
  fence: number;
  /** The progress, for clients that watch the task. */
  progress?: unknown;
  /** The ids of messages in `steering` that the attempt has taken, or an empty list. Other messages stay on offer, so that a lost answer loses nothing. Without this field all messages in the answer count as taken. */
  steered?: string[] | null;
  /** Whether the turn takes steering from now on. Only for turns of a session. */
  takes_steering?: boolean | null;
  /** What the attempt has used so far, such as tokens, for clients that watch the task. */
  usage?: unknown;
}

/** One point of a chart. */
export interface HistoryPoint {
  /** When. */
  at: At;
  /** The value. */
  value: number;
}

/** Points of a chart. */
export interface HistoryPoints {
  /** For the metric `refused`: the points of each code. */
  by_code?: Record<string, HistoryPoint[]>;
  /** The lane. */
  lane: string;
  /** The metric. */
  metric: string;
  /** The points, the oldest first. */
  points: HistoryPoint[];
  /** The range: `5m`, `1h` or `24h`. */
  range: string;
  /** The time between two points. The newest point may come sooner. */
  step_ms: number;
}

/** The counters of lanes. */
export interface LaneCounters {
  /** Tasks accepted. */
  accepted: number;
  /** Tasks that were cancelled. */
  cancelled: number;
  /** Tasks that completed. */
  completed: number;
  /** Tasks that failed or took too long. */
  failed: number;
  /** Tasks whose lease lapsed and that did not run again. */
  lost: number;
  /** Attempts that were followed by another attempt. */
  retried: number;
  /** Attempts started. */
  started: number;
  /** Tasks that waited too long. */
  timed_out_waiting: number;
}

/** An event of a lane. */
export interface LaneEvent {
  /** When the event happened. */
  at?: At | null;
  /** The lane. */
  lane: string;
}

/** The state of a lane. */
export interface LaneNumbers {
  /** The alert in force: `warning` or `critical`. */
  alert?: string | null;
  /** The counters of all lanes with this label. */
  counters: LaneCounters;
  /** Whether the lane accepts no tasks. */
  draining: boolean;
  /** The block or pattern with its settings. Metrics count the lane under this label. */
  label: string;
  /** Its name. */
  lane: string;
  /** The number of slots. */
  max_concurrency?: number | null;
  /** The largest number of waiting tasks. */
  max_queued: number;
  /** Whether the lane starts no tasks. */
  paused: boolean;
  /** The number of tasks that wait for the time of their next attempt. */
  retrying: number;
  /** The durations of attempts. */
  run: Percentiles;
  /** The number of taken slots. */
  running: number;
  /** All settings, by name. */
  settings: Record<string, unknown>;
  /** The waiting times before each start. */
  wait: Percentiles;
  /** The number of waiting tasks. */
  waiting: number;
}

/** The lease of a worker on one task. */
export interface LeaseView {
  /** The kind. */
  kind: string;
  /** The last heartbeat for this task. */
  last_heartbeat: At;
  /** When the lease lapses. */
  lease_until: At;
  /** When the worker claimed the task. */
  started_at: At;
  /** The task. */
  task: string;
}

/** Which dead letters: those that match all fields. At least one field must be set. */
export interface LettersSelector {
  /** Only counts the dead letters. */
  dry_run?: boolean;
  /** Tasks of this kind. */
  kind?: string | null;
  /** Tasks with this home lane. */
  lane?: string | null;
  /** Tasks of this session, also of its tool lanes. */
  session?: string | null;
}

/** The caller, as the server sees it. */
export interface Me {
  /** The scopes of the caller, with those that a wider scope includes. */
  scopes: Scope[];
  /** The user of the token; `local` if the server has no tokens. */
  subject: string;
}

/** The outcome of sending a message. */
export interface MessageAnswer {
  /** The message; for a `duplicate`, the accepted one. */
  id: string;
  /** `started`, `queued`, `steered`, `steered_and_queued`, `interrupted`, `dropped`, `duplicate` or `directive`. */
  outcome: string;
  /** The position among the waiting messages, counted from one. */
  position?: number | null;
  /** The answer to a directive; for a `duplicate`, the answer to the accepted message. */
  reply?: string | null;
  /** The turn that the message started, steers or interrupted. */
  task_id?: string | null;
  /** Whether the sender should see typing. */
  typing: boolean;
}

/** A message to a session was accepted or has ended. */
export interface MessageEvent {
  /** When the event happened. */
  at?: At | null;
  /** The rule, reason or error of the end. */
  detail?: string | null;
  /** The message. */
  message_id: string;
  /** The outcome. */
  outcome: string;
  /** The key of the session. */
  session: string;
  /** The turn that answered it. */
  task_id?: string | null;
  /** Whether the sender should see typing. */
  typing?: boolean | null;
}

/** A message to a session. */
export interface MessageRequest {
  /** The account on the channel. */
  account?: string | null;
  /** The agent that answers. */
  agent: string;
  /** What the message has attached, as JSON that the server passes on to the agent. The text, the metadata and the attachments have at most 256 KiB together. */
  attachments?: unknown[] | null;
  /** The largest number of waiting messages. */
  cap?: number | null;
  /** The channel that the message came from. */
  channel?: string | null;
  /** How long the session must be quiet before the turn starts. */
  debounce_ms?: number | null;
  /** Which messages the server drops if there are more. */
  drop?: string | null;
  /** Whether the server drops the message if the session is busy. */
  heartbeat?: boolean | null;
  /** The longest wait for a quiet session. */
  max_wait_ms?: number | null;
  /** The channel's own id of the message. The server accepts each id once. */
  message_id?: string | null;
  /** JSON that the server passes on to the agent with the message. */
  metadata?: unknown;
  /** The mode: what happens if the session is busy. */
  mode?: string | null;
  /** What happens if that turn has ended or takes no steering: `followup` (the default), `reject` or `drop`. */
  otherwise?: string | null;
  /** The permissions of the sender. Directives such as `/stop` count only with `queue` among them. Without this field, the token decides: it needs the scope `admin`. */
  permissions?: string[] | null;
  /** The id of the sender. */
  sender?: string | null;
  /** The name of the sender. */
  sender_name?: string | null;
  /** The text. A message with attachments needs none. */
  text?: string;
  /** The thread on the channel. A number is the same as its digits. */
  thread?: ThreadId | null;
  /** The recipient of the answer. */
  to?: string | null;
  /** The turn that the message steers. */
  turn_id?: string | null;
}

/** A message. */
export interface MessageView {
  /** The agent that answers. */
  agent: string;
  /** When the task was accepted. */
  at: At;
  /** The channel that the message came from. */
  channel?: string | null;
  /** Why the message was parked. */
  error?: string | null;
  /** The id. */
  id: string;
  /** The name of the sender. */
  sender_name?: string | null;
  /** The text. */
  text: string;
}

/** Another place in line for a message. */
export interface MoveRequest {
  /** Before which message; `null`: to the end. */
  before?: string | null;
}

/** A schedule to create. */
export interface NewSchedule {
  /** The agent. */
  agent: string;
  /** What follows firings that were missed while the server was down: `skip` (the default) or `one`. */
  catch_up?: string | null;
  /** Five or six fields of cron, or a word such as `@daily`. */
  cron: string;
  /** Whether the schedule fires. Default true. */
  enabled?: boolean | null;
  /** The message to the agent. */
  message: string;
  /** Its name. */
  name: string;
  /** The session. Default: none. */
  session?: string | null;
  /** The time zone. Default `UTC`. */
  timezone?: string | null;
  /** The person on whose behalf its turns run. Default: the subject of the token. Another person needs a token that may speak for others. */
  user?: UserRef | null;
}

/** A token to create. */
export interface NewToken {
  /** The scopes. */
  scopes: Scope[];
  /** Whether the token may send requests on behalf of other people. */
  speaks_for_others?: boolean;
  /** The user of the token. The audit log and the tasks of the token name it. */
  subject: string;
}

/** A task has waited for a while. */
export interface NoticeEvent {
  /** The number of tasks before it. */
  ahead: number;
  /** When the event happened. */
  at?: At | null;
  /** The task. */
  task_id?: string | null;
  /** How long the task has waited. */
  waited_ms: number;
}

/** Durations, in milliseconds. */
export interface Percentiles {
  /** The number of measurements. */
  count: number;
  /** The median. */
  p50_ms?: number | null;
  /** The 90th percentile. */
  p90_ms?: number | null;
  /** 95 %. */
  p95_ms?: number | null;
  /** The 99th percentile. */
  p99_ms?: number | null;
}

/** The position of a waiting task. */
export interface PlaceEvent {
  /** When the event happened. */
  at?: At | null;
  /** The estimated time until the start. */
  eta_ms?: number | null;
  /** The position in the home lane, counted from one. */
  position?: number | null;
  /** The task. */
  task_id?: string | null;
}

/** A lane is under pressure. */
export interface PressureEvent {
  /** When the event happened. */
  at?: At | null;
  /** The lane. */
  lane: string;
  /** The number of tasks that wait in the lane. */
  waiting: number;
}

export type PriorityRequest = number | "user" | "schedule" | "agent" | "background";

/** Why a request was refused or a task failed, and what to do next. `reason`, `taskId`, `error`, `agent` and `message` repeat other fields under names that clients of other servers know. */
export interface Problem {
  /** The agent. */
  agent?: string | null;
  /** The lane without a free slot, where that is not the lane that refused. */
  blocked_by?: string | null;
  /** The code of the refusal. */
  code: Code;
  /** The longest-running task in the lane. */
  current_task_id?: string | null;
  /** One sentence about this refusal. */
  detail: string;
  /** The title of this refusal. */
  error: string;
  /** The lane that refused. */
  lane?: string | null;
  /** The number of slots of the lane. */
  max_concurrency?: number | null;
  /** The largest number of tasks that may wait in the lane. */
  max_queued?: number | null;
  /** The same as `detail`. */
  message: string;
  /** `setup` before the task ran, `run` after. */
  phase: string;
  /** The number of tasks that wait in the lane. */
  queue_length?: number | null;
  /** The code, why a task was cancelled, or `BUSY`: all slots are taken, and the request may not wait. */
  reason: string;
  /** The time until the next try, in whole seconds, rounded up. */
  retry_after?: number | null;
  /** The time until the next try, in milliseconds. */
  retry_after_ms?: number | null;
  /** Whether the same request may succeed later. */
  retryable: boolean;
  /** The number of taken slots. */
  running?: number | null;
  /** The status of the HTTP answer. */
  status: number;
  /** The same as `task_id`. */
  taskId?: string | null;
  /** The task. */
  task_id?: string | null;
  /** A title, the same for every refusal with this code. */
  title: string;
  /** `urn:laneway:problem:<slug>`. */
  type: string;
}

/** The progress that an attempt reports, or what a request to cancel found. */
export interface ProgressEvent {
  /** When the event happened. */
  at?: At | null;
  /** What a request to cancel found, on a WebSocket. */
  cancel?: string | null;
  /** The name that the agent gave the event, if it is also the name of an event of Laneway. */
  event?: string | null;
  /** The report. */
  progress?: unknown;
  /** The task. */
  task_id?: string | null;
}

/** The queue of an agent. */
export interface QueueView {
  /** The agent. */
  agent_name: string;
  /** The longest-running turn. */
  current_execution?: Execution | null;
  /** Whether a turn runs. */
  is_busy: boolean;
  /** The number of waiting tasks. */
  queue_length: number;
  /** The waiting turns, in order. */
  queued_executions: Execution[];
  /** All running turns, the longest-running first. */
  running_executions?: Execution[];
}

/** Whether the server takes work. */
export interface Readiness {
  /** `ready`, `draining`, `full` or `store_unavailable`. */
  status: string;
  /** What to repair in the store before it loses something; absent if nothing. */
  store_warning?: string | null;
}

/** The state of a message. */
export interface Receipt {
  /** The rule, reason or error of the end. */
  detail?: string | null;
  /** Whether the message has ended. A `steered` message ends with its turn. */
  ended: boolean;
  /** The message. */
  id: string;
  /** The position in the home lane, counted from one. */
  position?: number | null;
  /** `waiting`, `steering`, `in_turn`, `delivered`, `steered`, `dropped`, `cancelled` or `set_aside`. */
  status: string;
  /** The turn. */
  task_id?: string | null;
}

/** The result for dead letters. */
export interface RedriveAnswer {
  /** The number. */
  count: number;
  /** The new tasks of a redrive. */
  tasks: string[];
}

/** The result of releasing a lane by force. */
export interface ReleasedLane {
  /** The lane. */
  lane: string;
  /** The tasks that lost their slots. */
  released: string[];
  /** A warning that the old attempts may still run. */
  warning: string;
  /** Whether a task was running. */
  was_running: boolean;
}

/** The result of releasing an agent by force. */
export interface ReleasedQueue {
  /** The agent. */
  agent: string;
  /** The tasks that lost their slots. */
  released: string[];
  /** `released`. */
  status: string;
  /** A warning that the old attempts may still run. */
  warning: string;
  /** Whether a task was running. */
  was_running: boolean;
}

/** The retries after a failure. */
export interface RetryRequest {
  /** Fixed: the delay before each retry. Default 1000. */
  fixed_delay_ms?: number | null;
  /** Exponential: the delay before the first retry, which doubles each time. Default 100. */
  initial_delay_ms?: number | null;
  /** Chooses each delay at random from its upper half. Default false. */
  jitter?: boolean | null;
  /** The longest delay. Default 30 000. */
  max_delay_ms?: number | null;
  /** The largest number of retries. Default 3. */
  max_retries?: number | null;
  /** `none`, `fixed` or `exponential` (the default). */
  strategy?: string | null;
}

/** An attempt is over and another follows. */
export interface RetryingEvent {
  /** When the event happened. */
  at?: At | null;
  /** The attempt that is over. */
  attempt?: number | null;
  /** The delay before the next attempt. */
  delay_ms: number;
  /** The error. */
  error: string;
  /** The task. */
  task_id?: string | null;
}

/** A change of a schedule. Fields that the body leaves out stay. */
export interface ScheduleChange {
  /** The agent. */
  agent?: string | null;
  /** `skip` or `one`. */
  catch_up?: string | null;
  /** When. */
  cron?: string | null;
  /** Whether the schedule fires. */
  enabled?: boolean | null;
  /** The message to the agent. */
  message?: string | null;
  /** The session. */
  session?: string | null;
  /** The time zone. */
  timezone?: string | null;
  /** The person on whose behalf its turns run. */
  user?: UserRef | null;
}

/** A schedule fired. */
export interface ScheduleFiredEvent {
  /** When the event happened. */
  at?: At | null;
  /** The moment of the firing. */
  due_at: string;
  /** Why the task was refused. */
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
  /** The moment of the firing. */
  due_at: string;
  /** Why the task was refused or failed. */
  error?: string | null;
  /** When it fired. */
  fired_at: string;
  /** `running`, the end of the task, or `failed` if it was refused. */
  status: string;
  /** The task. */
  task_id?: string | null;
  /** The cause: `clock`, `catch_up` for missed firings, or `manual`. */
  trigger: string;
}

/** A schedule. */
export interface ScheduleView {
  /** The agent. */
  agent: string;
  /** `skip` or `one`. */
  catch_up: string;
  /** When. */
  cron: string;
  /** Whether the schedule fires. */
  enabled: boolean;
  /** The last firing. */
  last_run?: ScheduleRun | null;
  /** The message to the agent. */
  message: string;
  /** Its name. */
  name: string;
  /** The next firings. */
  next_runs: At[];
  /** The origin: `file` or `api`. */
  origin: string;
  /** The session. */
  session?: string | null;
  /** The time zone. */
  timezone: string;
  /** The person on whose behalf its turns run. */
  user?: UserRef | null;
  /** The times in words. */
  words?: string | null;
}

/** What a token may do. */
export type Scope = "read" | "submit" | "worker" | "admin";

/** A change of the settings of a session. Fields that the body leaves out stay. */
export interface SessionChange {
  /** The largest number of waiting messages. */
  cap?: number | null;
  /** How long the session must be quiet before the turn starts. */
  debounce_ms?: number | null;
  /** Which messages the server drops if there are more. */
  drop?: string | null;
  /** The longest wait for a quiet session. */
  max_wait_ms?: number | null;
  /** The mode: what happens to messages while the session is busy. */
  mode?: string | null;
}

/** A setting for messages and its origin. */
export interface SessionSetting {
  /** The origin: `message`, `session`, `channel`, `global` or `default`. */
  from: string;
  /** The value as text. */
  value: string;
}

/** How the messages of a session are queued. */
export interface SessionSettings {
  /** The largest number of waiting messages. */
  cap: SessionSetting;
  /** How long the session must be quiet before the turn starts. */
  debounce_ms: SessionSetting;
  /** Which messages the server drops if there are more. */
  drop: SessionSetting;
  /** The longest wait for a quiet session. */
  max_wait_ms: SessionSetting;
  /** The mode: what happens to messages while the session is busy. */
  mode: SessionSetting;
}

/** The tool lanes of a session. */
export interface SessionStats {
  /** The number of calls that wait for a worker. */
  external_pending: number;
  /** The tool lanes, by name. */
  lanes: Record<string, ToolLaneStats>;
  /** The settings for messages, each with its origin. A session without messages has them too. */
  settings?: SessionSettings | null;
  /** The number of running calls. */
  total_active: number;
  /** The number of waiting calls. */
  total_pending: number;
}

/** A session. */
export interface SessionSummary {
  /** The turn that is under way. */
  current_turn?: CurrentTurn | null;
  /** The number of dropped messages that the next turn will mention. */
  dropped: number;
  /** Whether the session has a turn. */
  is_busy: boolean;
  /** The key of the session. */
  key: string;
  /** The waiting messages, in order. */
  messages: MessageView[];
  /** The earliest time of the next try. */
  retry_at?: At | null;
  /** The parked messages, the oldest first. They can be sent again or deleted. */
  set_aside?: MessageView[];
  /** How messages are queued, each value with where it came from. */
  settings: SessionSettings;
  /** Whether the people in the session should see typing. */
  typing: boolean;
}

/** A slot that the caller holds until the lease lapses. */
export interface SlotAnswer {
  /** The fence, for heartbeats and completion. */
  fence: number;
  /** The task that holds the slot, for heartbeats and completion. */
  id: string;
  /** When the lease lapses without a heartbeat. */
  lease_until: At;
}

/** A slot in each lane, for work of the caller's own. */
export interface SlotRequest {
  /** The id of the slot's task, a UUID that was never used. With it, the caller can look at the slot and cancel it while it waits. Default: the server chooses. */
  id?: string | null;
  /** A name for people who look at the queue. */
  label?: string | null;
  /** The lanes; the first is the home lane. */
  lanes: string[];
  /** The lease without a heartbeat. Default: the setting of the home lane. */
  lease_ms?: number | null;
  /** 0 to 9, or the name of a source. */
  priority?: PriorityRequest | null;
  /** The session. */
  session?: string | null;
  /** `user`, `schedule`, `agent` or `background`. Default: the priority, if it is one of these, else `agent` for a child and `user` for any other slot. */
  source?: string | null;
  /** The longest wait; with 0 the server answers at once. Default: the setting of the home lane. */
  wait_ms?: number | null;
  /** The worker that holds the slot, as `GET /api/workers/{worker}/events` knows it. */
  worker?: string | null;
}

/** An attempt starts. */
export interface StartedEvent {
  /** When the event happened. */
  at?: At | null;
  /** The number of the attempt, counted from one. */
  attempt: number;
  /** The fence. */
  fence: number;
  /** The task. */
  task_id?: string | null;
  /** The worker that has the task. */
  worker?: string | null;
}

/** The state of the server. */
export interface StatusView {
  /** The number of dead letters. */
  dead_letters?: number;
  /** `Agent: 2/3`, or `Agent: 3/3 (2 queued)`. */
  line: string;
  /** The largest number of tasks that run at once; `null` if there is no limit. */
  max_concurrent?: number | null;
  /** The number of running tasks. */
  running: number;
  /** What to repair in the store before it loses something; absent if nothing. */
  store_warning?: string | null;
  /** The number of waiting tasks. */
  waiting: number;
}

/** A text for a running turn. */
export interface SteerRequest {
  /** The text. */
  text: string;
}

/** A change of a waiting task. */
export interface TaskChange {
  /** 0 to 9, or the name of a source. */
  priority: PriorityRequest;
}

/** An event of a task. */
export interface TaskEvent {
  /** When the event happened. */
  at?: At | null;
  /** The task. */
  task_id?: string | null;
}

/** A task to submit. */
export interface TaskRequest {
  /** The latest start, counted from acceptance. */
  deadline_ms?: number | null;
  /** The key for fair sharing. */
  fair_key?: string | null;
  /** The label of tasks that belong together. */
  group?: string | null;
  /** The kind of the task, which decides its handler. */
  kind: string;
  /** The lanes of the task, the home lane first. Default: `main`, or `external` if the server has no handler for the kind. */
  lanes?: string[];
  /** The running task that submits this one. */
  parent?: string | null;
  /** The input of the handler or worker. */
  payload?: unknown;
  /** 0 to 9, or the name of a source. */
  priority?: PriorityRequest | null;
  /** The retries after a failure. */
  retry?: RetryRequest | null;
  /** The delay before the task may start. */
  run_after_ms?: number | null;
  /** The source of the task: `user`, `schedule`, `agent` or `background`. */
  source?: string | null;
  /** The longest time of one attempt. */
  timeout_ms?: number | null;
  /** The longest time in the queue. With 0 the task starts at once or is refused. */
  wait_timeout_ms?: number | null;
}

/** A task, live or ended. */
export interface TaskView {
  /** The newest attempts, in order. Lists leave them out. */
  attempt_list?: AttemptView[];
  /** The number of attempts that have started. */
  attempts: number;
  /** Whether the attempt has a stop signal. */
  cancel_requested?: boolean;
  /** The latest start. */
  deadline_at?: At | null;
  /** The priority with the boosts of waiting and of the deadline. */
  effective_priority?: number | null;
  /** When the task ended. */
  ended_at?: At | null;
  /** The error. */
  error?: string | null;
  /** The estimated time until the start. */
  eta_ms?: number | null;
  /** The label that the task shares with others. */
  group?: string | null;
  /** The id. */
  id: string;
  /** The kind. */
  kind: string;
  /** The name of a slot, as its holder gave it. */
  label?: string | null;
  /** The position among the tasks that wait in the requested lane, counted from one. */
  lane_position?: number | null;
  /** The lanes, the home lane first. */
  lanes: string[];
  /** When the lease lapses. */
  lease_until?: At | null;
  /** The token that submitted the task. */
  owner?: string | null;
  /** The task that submitted this one. */
  parent?: string | null;
  /** The input of the handler or worker. The history keeps it if an attempt ended the task and it is no longer than 16 KiB. */
  payload?: unknown;
  /** The position in the home lane, counted from one. */
  position?: number | null;
  /** The priority without boosts. */
  priority: number;
  /** The reason of a cancellation. */
  reason?: string | null;
  /** The result. */
  result?: unknown;
  /** The session of a turn. */
  session?: string | null;
  /** The source of the request. */
  source: string;
  /** When the last attempt started. */
  started_at?: At | null;
  /** `queued`, `running`, `retrying`, or the end. */
  status: string;
  /** When the task was accepted. */
  submitted_at: At;
  /** The longest time of one attempt. */
  timeout_ms?: number | null;
  /** The trace of the task. */
  traceparent?: string | null;
  /** When the wait times out. */
  wait_until?: At | null;
  /** The worker that has the task or had it last. */
  worker?: string | null;
}

/** The id of a thread: a text, or a whole number as some channels send it. */
export type ThreadId = string | number;

/** A token, without its secret. */
export interface TokenView {
  /** When the token was created. */
  created_at: At;
  /** The part of the token before the dot. */
  id: string;
  /** The scopes. */
  scopes: Scope[];
  /** Whether the token may send requests on behalf of other people. */
  speaks_for_others: boolean;
  /** The user of the token. */
  subject: string;
}

/** A tool lane of a session. The counters are those of all sessions with the same settings. */
export interface ToolLaneStats {
  /** The number of running calls. */
  active: number;
  /** The number of calls that completed. */
  completed: number;
  /** The number of calls that failed. */
  failed: number;
  /** `internal`, `external` or `hybrid`. */
  handler_mode: string;
  /** The largest number of tasks that run at once. */
  max_concurrency?: number | null;
  /** The number of waiting calls. */
  pending: number;
}

/** The turn of a session takes messages. */
export interface TurnEvent {
  /** When the event happened. */
  at?: At | null;
  /** The ids of the messages. */
  messages: string[];
  /** The key of the session. */
  session: string;
}

/** One message of a turn. */
export interface TurnMessageView {
  /** The attachments of the message. */
  attachments?: unknown[] | null;
  /** The id. */
  id: string;
  /** The channel's own id of the message. */
  message_id?: string | null;
  /** The metadata of the message. */
  metadata?: unknown;
  /** Whether the message was in a turn that was lost. */
  redelivered?: boolean;
  /** The id of the sender. */
  sender?: string | null;
  /** The name of the sender. */
  sender_name?: string | null;
  /** The text. */
  text: string;
}

/** A turn as its agent gets it: the body of the request to an upstream, the first line of a `jsonl` program, and the payload of a worker's task. A field that is missing has no value. */
export interface TurnPayloadView {
  /** The account on the channel. */
  account?: string | null;
  /** The agent. */
  agent: string;
  /** The tools that the agent may use. */
  allowed_tools?: string[] | null;
  /** The channel that the messages came from and the answer goes to. */
  channel?: string | null;
  /** The number of messages that were dropped before these. */
  dropped?: number;
  /** Whether the session starts afresh. */
  fresh?: boolean;
  /** Everything that is said, as one text. */
  message: string;
  /** The messages of the session one by one. Empty for a chat or a schedule. */
  messages?: TurnMessageView[];
  /** The metadata of the request. */
  metadata?: unknown;
  /** The model. */
  model?: string | null;
  /** The permissions of the senders. */
  permissions?: string[];
  /** Whether a turn with some of this was lost, which may have done something already. */
  redelivered?: boolean;
  /** The schedule that asked. */
  schedule?: string | null;
  /** The session. Missing for the agent's own session. */
  session?: string | null;
  /** The agent that sent the request. */
  source_agent?: string | null;
  /** Whether this is a stateless task, which belongs to no session. */
  stateless?: boolean;
  /** Whether the caller asked for a stream. */
  stream?: boolean | null;
  /** The system prompt. */
  system_prompt?: string | null;
  /** The same text. */
  text?: string;
  /** The thread on the channel. */
  thread?: string | null;
  /** The timeout of the request, in seconds. */
  timeout_seconds?: number | null;
  /** The recipient of the answer. */
  to?: string | null;
  /** The person that the request is for. */
  user?: UserRef | null;
}

/** What an attempt has used so far. */
export interface UsageEvent {
  /** When the event happened. */
  at?: At | null;
  /** The task. */
  task_id?: string | null;
  /** The report. */
  usage: unknown;
}

/** A person on whose behalf a token sends a request. */
export interface UserRef {
  /** The email address. */
  email?: string | null;
  /** The id of the person. */
  id: string;
}

/** A worker that holds tasks. */
export interface WorkerView {
  /** The last heartbeat. */
  last_heartbeat: At;
  /** When its first lease lapses. */
  lease_until: At;
  /** The leases, one for each task. */
  leases: LeaseView[];
  /** The tasks of the worker. */
  tasks: string[];
  /** The id of the person. */
  worker: string;
}
