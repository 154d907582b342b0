// Elements from templates, and the hooks. Everything that a template shows is a text node: nothing here makes markup from data.

import { h, render, createContext, Fragment } from "./vendor/preact.js";
import {
  useCallback, useContext, useEffect, useLayoutEffect, useMemo, useRef, useState,
} from "./vendor/preact-hooks.js";
import htm from "./vendor/htm.js";

export const html = htm.bind(h);
export {
  render, createContext, Fragment, useCallback, useContext, useEffect, useLayoutEffect, useMemo, useRef, useState,
};
