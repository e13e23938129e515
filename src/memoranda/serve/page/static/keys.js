// Keys: j and k walk over the cards, any other presses what has that data-key; g goes somewhere.
import { all, cards, here, mark } from "./cards.js";
import { isWriting } from "./keep.js";

const SEQUENCE_MS = 1500;
const help = document.getElementById("keys");
const going = new Map();
let after = "";

function walk(by) {
  const list = cards();
  const next = list[Math.min(Math.max(list.indexOf(here()) + by, 0), list.length - 1)];
  if (!next) return;
  mark(next);
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

// Presses what has this key: in the card one is at, else outside of all cards, unless it is hidden
// there. A closed menu is not hidden.
function press(key) {
  const selector = `[data-key="${CSS.escape(key)}"]`;
  const inside = here()?.querySelector(selector);
  const isOutside = (found) => !found.closest("[data-card]") && (found.closest("details") || found.checkVisibility());
  const outside = all(selector).find(isOutside);
  const found = inside ?? outside;
  found?.click();
  // The key of a menu opens it, and its choices are at hand.
  if (found?.matches("summary")) found.nextElementSibling.querySelector("a, button, input:not([type=hidden])")?.focus();
  return Boolean(found);
}

function save(event) {
  const button = event.target.closest?.("form")?.querySelector("[data-save]");
  if (!button) return;
  event.preventDefault();
  button.click();
}

function waitForNext() {
  after = "g";
  setTimeout(() => { after = ""; }, SEQUENCE_MS);
}

function act(key) {
  const sequence = after ? `${after} ${key}` : key;
  after = "";
  if (going.has(sequence)) location.assign(going.get(sequence));
  else if (key === "g") waitForNext();
  else if (key === "?") help.showModal();
  else if (press(key)) return true;
  else if (key === "j") walk(1);
  else if (key === "k") walk(-1);
  else return false;
  return true;
}

// Enter on a link or a button is theirs, and a graph has keys of its own.
function isOfElement({ key, target }) {
  return Boolean(target.closest?.(key === "Enter" ? "a, button, summary, canvas" : "canvas"));
}

function pressed(event) {
  const isCommand = event.ctrlKey || event.metaKey;
  if (isCommand && event.key === "Enter") return save(event);
  // A key that is held answers once
  if (event.repeat && !"jk".includes(event.key)) return;
  if (isCommand || event.altKey || event.isComposing || document.querySelector("dialog[open]")) return;
  if (isWriting(event.target) || isOfElement(event)) return;
  if (act(event.key)) event.preventDefault();
}

export function listenToKeys() {
  for (const link of document.querySelector("#palette template").content.querySelectorAll("[data-keys]")) {
    going.set(link.dataset.keys, link.getAttribute("href"));
  }
  document.addEventListener("keydown", pressed);
}
