// Numbers, times and states in words.

const SHORT = [["d", 86400000], ["h", 3600000], ["min", 60000], ["s", 1000]];

/** A length of time, at most two units: `1 h 4 min`. */
export function length(ms) {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return "–";
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10000) return `${(ms / 1000).toFixed(1)} s`;
  const first = SHORT.findIndex(([, size]) => ms >= size);
  const [unit, size] = SHORT[first];
  const whole = Math.floor(ms / size);
  const next = SHORT[first + 1];
  const rest = next ? Math.floor((ms % size) / next[1]) : 0;
  return rest && whole < 10 ? `${whole} ${unit} ${rest} ${next[0]}` : `${whole} ${unit}`;
}

/** When something will probably happen: an estimate has no decimals. */
export const about = (ms, word = "in about ") => (ms < 1000 ? "next" : `${word}${length(Math.round(ms / 1000) * 1000).replace(".0 s", " s")}`);

const TYPED = [["d", 86400000], ["h", 3600000], ["m", 60000], ["s", 1000]];

/** `60000ms` as one would type it, `1m`; anything else as it is. */
export function lengthTyped(text) {
  const ms = /^(\d+)ms$/.exec(text)?.[1];
  const [unit, size] = ms > 0 ? TYPED.find(([, one]) => ms % one === 0) ?? [] : [];
  return unit ? `${ms / size}${unit}` : text;
}

/** A length of time in one unit, for narrow places: `1.9 min`. */
export function brief(ms) {
  const [unit, size] = SHORT.find(([, one]) => ms >= one) ?? ["ms", 1];
  return ms >= 60000 ? `${(ms / size).toFixed(1)} ${unit}` : length(ms);
}

/** How far a time is from now: `3 min ago`, `in 12 s`. */
export function relative(at, now = Date.now()) {
  const away = Date.parse(at) - now;
  if (Number.isNaN(away)) return "–";
  if (Math.abs(away) < 1000) return "now";
  const size = Math.abs(away);
  const whole = size < 10000 ? `${Math.floor(size / 1000)} s` : length(size);
  return away < 0 ? `${whole} ago` : `in ${whole}`;
}

/** The exact time, here, with its zone. */
export function exact(at) {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return String(at);
  const options = { dateStyle: "medium", timeStyle: "long" };
  return `${new Intl.DateTimeFormat(undefined, options).format(time)} (${time.toISOString()})`;
}

export const count = (number) => (number === null || number === undefined ? "–" : new Intl.NumberFormat("en").format(number));

export const many = (number, one, more = `${one}s`) => `${count(number)} ${number === 1 ? one : more}`;

/** What a list calls a task: its label, otherwise its kind. */
export const called = (task) => task.label ?? task.kind;

export const shortId = (id) => (id.length > 13 ? `${id.slice(0, 8)}…${id.slice(-4)}` : id);

/** Which of four colours a priority from 0 to 9 has; each has a name too. */
export function urgency(priority) {
  if (priority >= 3) return "urgent";
  if (priority === 2) return "user";
  if (priority === 1) return "normal";
  return "background";
}

export const URGENCIES = [
  ["urgent", "raised, 3 to 9"], ["user", "a person, 2"], ["normal", "schedule or agent, 1"], ["background", "background, 0"],
];

const ENDS = new Set(["completed", "failed", "timed_out", "cancelled", "expired", "wait_timeout", "lost"]);
export const isOver = (status) => ENDS.has(status);

/** A sign next to the colour of each state. */
export const SIGNS = {
  queued: "…", running: "▶", retrying: "↻", completed: "✓", failed: "✕", timed_out: "⧗", cancelled: "⊘",
  expired: "⧗", wait_timeout: "⧗", lost: "?",
};

export const stateWord = (status) => status.replaceAll("_", " ");

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/** A cron pattern in words where it is a usual one; else `null`. */
export function cronWords(cron) {
  const fields = cron.trim().split(/\s+/);
  if (fields.length !== 5) return null;
  const [minute, hour, day, month, weekday] = fields;
  const every = (field) => /^\*\/(\d+)$/.exec(field)?.[1];
  const anyDay = day === "*" && month === "*" && weekday === "*";
  if (cron.trim() === "* * * * *") return "every minute";
  if (every(minute) && hour === "*" && anyDay) return `every ${every(minute)} minutes`;
  if (/^\d+$/.test(minute) && hour === "*" && anyDay) return minute === "0" ? "every hour" : `every hour at minute ${minute}`;
  if (/^\d+$/.test(minute) && every(hour) && anyDay) return `every ${every(hour)} hours, at minute ${minute}`;
  if (!/^\d+$/.test(minute) || !/^\d+$/.test(hour)) return null;
  const time = `${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`;
  if (anyDay) return `every day at ${time}`;
  if (day === "*" && month === "*") return weekdays(weekday) && `${weekdays(weekday)} at ${time}`;
  if (/^\d+$/.test(day) && month === "*" && weekday === "*") return `on day ${day} of every month at ${time}`;
  return null;
}

function weekdays(field) {
  if (field === "1-5") return "Monday to Friday";
  if (["0,6", "6,0", "6,7", "6-7"].includes(field)) return "Saturday and Sunday";
  const range = /^([0-7])-([0-7])$/.exec(field);
  if (range) return `${DAYS[range[1] % 7]} to ${DAYS[range[2] % 7]}`;
  const list = field.split(",");
  if (list.every((one) => /^[0-7]$/.test(one))) return `every ${list.map((one) => DAYS[one % 7]).join(", ")}`;
  return null;
}
