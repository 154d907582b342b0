// What goes over the wire. Written by scripts/generate.mjs from the server's OpenAPI document; not edited by hand.
export {};
