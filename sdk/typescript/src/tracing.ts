// The trace that a request belongs to (W3C trace context).

const SHAPE = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-([0-9a-f]{2})$/;

const HEX = Array.from({ length: 256 }, (_, value) => value.toString(16).padStart(2, "0"));

// A buffer of random bytes, because a few bytes cost as much as a few thousand.
const random = new Uint8Array(4096);
let used = random.length;

/** Random bytes, in hexadecimal. */
function chance(bytes: number): string {
  if (used + bytes > random.length) {
    crypto.getRandomValues(random);
    used = 0;
  }
  let text = "";
  for (const end = used + bytes; used < end; used += 1) text += HEX[random[used]!];
  return text;
}

/** A new span in the current trace, or in a new one. */
export function nextTraceparent(goingOn: string | undefined): string {
  const [, known = chance(16), flags = "01"] = (goingOn === undefined ? null : SHAPE.exec(goingOn)) ?? [];
  return `00-${known}-${chance(8)}-${flags}`;
}
