// Writes src/wire.ts from the OpenAPI document of a server.
//
//   node scripts/generate.mjs openapi.json            writes the file
//   node scripts/generate.mjs openapi.json --check    fails if the file differs

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const target = fileURLToPath(new URL("../src/wire.ts", import.meta.url));
const [file, check] = process.argv.slice(2);
const { schemas } = JSON.parse(readFileSync(file, "utf8")).components;

// Enumerations that a newer server may extend, so a reader must accept unknown words.
const open = new Set(["Code"]);
const last = (reference) => reference.split("/").at(-1);
const union = (parts) => {
  const all = [...new Set(parts.flatMap((part) => part.split(" | ")))];
  return all.includes("unknown") ? "unknown" : all.join(" | ");
};

function typeOf(schema) {
  if (schema.$ref) return last(schema.$ref);
  const choices = [...(schema.oneOf ?? []), ...(schema.anyOf ?? [])];
  if (choices.length > 0) return union(choices.map(typeOf));
  if (schema.enum) return schema.enum.map((word) => JSON.stringify(word)).join(" | ");
  if (Array.isArray(schema.type)) return union(schema.type.map((type) => typeOf({ ...schema, type })));
  switch (schema.type) {
    case "array": {
      const item = typeOf(schema.items);
      return item.includes(" | ") ? `(${item})[]` : `${item}[]`;
    }
    case "object":
      return schema.properties ? inline(schema) : `Record<string, ${typeOf(schema.additionalProperties ?? {})}>`;
    case "string":
      return "string";
    case "integer":
    case "number":
      return "number";
    case "boolean":
      return "boolean";
    case "null":
      return "null";
    default:
      return "unknown";
  }
}

// One case of a union with a discriminant field.
function inline({ properties, required = [] }) {
  const fields = Object.keys(properties).sort().map((key) => `${key}${required.includes(key) ? "" : "?"}: ${typeOf(properties[key])}`);
  return `{ ${fields.join("; ")} }`;
}

function merged(schema) {
  const whole = { ...schema, properties: { ...schema.properties }, required: [...(schema.required ?? [])] };
  for (const part of schema.allOf ?? []) {
    const other = merged(part.$ref ? schemas[last(part.$ref)] : part);
    Object.assign(whole.properties, other.properties);
    whole.required.push(...other.required);
    whole.additionalProperties ??= other.additionalProperties;
  }
  return whole;
}

const comment = (indent, text) => (text ? `${indent}/** ${text.split(/\s+/).join(" ")} */\n` : "");
const described = (field) =>
  field.description ?? (field.oneOf ?? []).find((part) => part.description)?.description ?? "";

let text = "// What goes over the wire. Written by scripts/generate.mjs from the server's OpenAPI document; not edited by hand.\n";
// A page has its items inline, and they also need their own type.
for (const name of Object.keys(schemas).filter((name) => !name.startsWith("Page_")).sort()) {
  const schema = schemas[name];
  text += "\n" + comment("", schema.description);
  if (!schema.properties && !schema.allOf) {
    text += `export type ${name} = ${open.has(name) ? "string" : typeOf(schema)};\n`;
    continue;
  }
  const { properties, required, additionalProperties } = merged(schema);
  text += `export interface ${name} {\n`;
  for (const key of Object.keys(properties).sort()) {
    text += comment("  ", described(properties[key]));
    text += `  ${key}${required.includes(key) ? "" : "?"}: ${typeOf(properties[key])};\n`;
  }
  if (additionalProperties) text += `  /** All further fields. */\n  [field: string]: ${typeOf(additionalProperties === true ? {} : additionalProperties)};\n`;
  text += "}\n";
}

if (check !== "--check") {
  writeFileSync(target, text);
} else if (!existsSync(target) || readFileSync(target, "utf8") !== text) {
  console.error(`${target} is not what the server's document says; run scripts/generate.mjs`);
  process.exit(1);
}
