// What is asked before something is done, and what is said after.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../view.js";

let showDialog = () => {};
let showNote = () => {};

/**
 * Asks whether to do something. `what` says exactly what will happen, one sentence a line. `fields` are inputs
 * `{name, label, value?, type?, choices?, hint?, required?, checked?}`. Resolves to `null`, or to the values of the fields.
 */
export function confirm({ title, what = [], action, danger = false, fields = [] }) {
  return new Promise((resolve) => showDialog({ title, what, action, danger, fields, resolve }));
}

/** Says something for some seconds; a refusal stays longer. */
export function note(text, kind = "done") {
  showNote({ text, kind, key: Math.random() });
}

/** What `ask` of an action returns when there is nothing to do: it is said, and that was all. */
export function nothing(text) {
  note(text, "refused");
  return null;
}

function Field({ field }) {
  const shared = { name: field.name, required: field.required !== false };
  const input = field.choices
    ? html`<select ...${shared}>${field.choices.map((choice) => html`<option selected=${choice === field.value}>${choice}</option>`)}</select>`
    : field.type === "text-long"
      ? html`<textarea rows="3" ...${shared}>${field.value ?? ""}</textarea>`
      : field.type === "check"
        ? html`<input type="checkbox" name=${field.name} defaultChecked=${field.checked} />`
        : html`<input type=${field.type ?? "text"} defaultValue=${field.value ?? ""} autocomplete="off" spellcheck=${false} ...${shared} />`;
  return html`<label class=${field.type === "check" ? "field check" : "field"}>
    <span>${field.label}</span>${input}${field.hint && html`<small>${field.hint}</small>`}
  </label>`;
}

export function Dialogs() {
  const [open, setOpen] = useState(null);
  const element = useRef(null);
  showDialog = setOpen;
  useLayoutEffect(() => {
    if (open && !element.current.open) element.current.showModal();
  }, [open]);
  if (!open) return null;
  const close = (answer) => {
    element.current?.close();
    setOpen(null);
    open.resolve(answer);
  };
  const submit = (event) => {
    event.preventDefault();
    const given = new FormData(event.target);
    const values = open.fields.map(({ name, type }) => [name, type === "check" ? given.has(name) : given.get(name)]);
    close(Object.fromEntries(values));
  };
  return html`<dialog ref=${element} aria-labelledby="dialog-title" onCancel=${(event) => { event.preventDefault(); close(null); }}>
    <form onSubmit=${submit}>
      <h2 id="dialog-title">${open.title}</h2>
      ${open.what.map((line) => html`<p>${line}</p>`)}
      ${open.fields.map((field) => html`<${Field} field=${field} />`)}
      <footer>
        <button type="button" onClick=${() => close(null)}>Not now</button>
        <button type="submit" class=${open.danger ? "danger" : "primary"}>${open.action}</button>
      </footer>
    </form>
  </dialog>`;
}

export function Notes() {
  const [notes, setNotes] = useState([]);
  showNote = (added) => setNotes((last) => [...last.slice(-2), added]);
  return html`<div class="notes" role="status" aria-live="polite">
    ${notes.map((one) => html`<${Note} key=${one.key} ...${one} gone=${() => setNotes((last) => last.filter((other) => other !== one))} />`)}
  </div>`;
}

function Note({ text, kind, gone }) {
  useEffect(() => {
    const timer = setTimeout(gone, kind === "refused" ? 12000 : 5000);
    return () => clearTimeout(timer);
  }, []);
  return html`<p class=${`note ${kind}`}><span aria-hidden="true">${kind === "refused" ? "✕" : "✓"}</span> ${text}
    <button class="plain" aria-label="Dismiss" onClick=${gone}>×</button></p>`;
}

/**
 * A button that asks, does, and tells. `run(values)` returns what to say. It is not there for tokens that may not. What is drawn may be old:
 * a question that names a number, or a state, is a function that asks the server for it when the button is pressed.
 */
export function Act({ label, ask, run, after, danger, primary, title, disabled, ...rest }) {
  const [busy, setBusy] = useState(false);
  const click = async (event) => {
    event.preventDefault();
    event.stopPropagation();
    try {
      setBusy(true);
      const question = typeof ask === "function" ? await ask() : ask;
      // There was something to ask about, and it turned out that there is nothing to do.
      if (question === null) return;
      const values = question ? await confirm(question) : {};
      if (values === null) return;
      const said = await run(values);
      if (said) note(said);
      after?.();
    } catch (error) {
      note(error.message, "refused");
    } finally {
      setBusy(false);
    }
  };
  const kind = danger ? "danger" : primary ? "primary" : "";
  return html`<button type="button" class=${kind} title=${title} disabled=${busy || disabled} aria-busy=${busy} onClick=${click} ...${rest}>${label}</button>`;
}
