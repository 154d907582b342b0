// The trace that a request belongs to (W3C trace context).

const SHAPE = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-([0-9a-f]{2})$/;

const HEX = Array.from({ length: 256 }, (_, value) => value.toString(16).padStart(2, "0"));

/** A new span, in the trace that goes on or in a new one. */
export function nextTraceparent(goingOn: string | undefined): string {
  const [, known, flags = "01"] = (goingOn === undefined ? null : SHAPE.exec(goingOn)) ?? [];
  let random = "";
  for (const byte of crypto.getRandomValues(new Uint8Array(24))) random += HEX[byte];
  return `00-${known ?? random.slice(16)}-${random.slice(0, 16)}-${flags}`;
}
