// What happens to tasks, lanes and sessions, as a union that `event` tells apart.
/** Reads the events of a stream (`text/event-stream`). */
export async function* readEvents(body) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    let fields = {};
    try {
        for (;;) {
            const { done, value } = await reader.read();
            if (done)
                return;
            const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
            rest = lines.pop() ?? "";
            for (const line of lines) {
                if (line !== "") {
                    take(fields, line);
                }
                else {
                    if (fields.data !== undefined)
                        yield told(fields);
                    fields = {};
                }
            }
        }
    }
    finally {
        await reader.cancel().catch(() => undefined);
    }
}
function take(fields, line) {
    const [, name = "", value = ""] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (name === "data")
        fields.data = fields.data === undefined ? value : `${fields.data}\n${value}`;
    else if (name === "event" || name === "id")
        fields[name] = value;
}
function told(fields) {
    const data = JSON.parse(fields.data ?? "{}");
    return { event: fields.event ?? "message", ...(fields.id ? { id: fields.id } : {}), data };
}
