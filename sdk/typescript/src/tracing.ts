// The trace that a request belongs to (W3C trace context).

const SHAPE = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-([0-9a-f]{2})$/;

function random(bytes: number): string {
  const values = crypto.getRandomValues(new Uint8Array(bytes));
  return Array.from(values, (value) => value.toString(16).padStart(2, "0")).join("");
}

/** A new span, in the trace that goes on or in a new one. */
export function nextTraceparent(goingOn: string | undefined): string {
  const [, trace, flags] = SHAPE.exec(goingOn ?? "") ?? [];
  return `00-${trace ?? random(16)}-${random(8)}-${flags ?? "01"}`;
}
