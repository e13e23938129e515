// Titles of notes, offered while somebody types one: in a field with data-titles, and after [[ in a
// text with data-links. Arrow down goes to them, Enter or a click takes one, Escape closes them.
import { all } from "./cards.js";
import { part, steps } from "./connection.js";

const BEGUN_LINK = /\[\[([^[\]|\n]*)$/;
const list = document.createElement("ul");
list.className = "titles";
const beginQuestion = steps();
let field = null;

// The words that are typed as a title, or null.
function words(element) {
  if (element.matches?.("[data-titles]")) return element.value.trim();
  if (!element.matches?.("[data-links]")) return null;
  return BEGUN_LINK.exec(element.value.slice(0, element.selectionStart))?.[1] ?? null;
}

function close() {
  beginQuestion();
  list.remove();
}

async function offer(element) {
  const begun = words(element);
  if (!begun) return close();
  const isLatest = beginQuestion();
  const left = element.dataset.titles ?? "";
  const html = await part(`/page/titles?${new URLSearchParams({ q: begun, not: left })}`);
  if (html === null || !isLatest()) return;
  // Somebody is choosing among those of fewer letters: the focus would be lost with them
  if (list.contains(document.activeElement)) return;
  list.innerHTML = html;
  if (!list.firstElementChild) return close();
  field = element;
  (element.closest("label") ?? element).after(list);
}

function take(title) {
  if (field.matches("[data-links]")) complete(title);
  else field.value = title;
  field.focus();
  field.dispatchEvent(new Event("input", { bubbles: true }));
  // Last, since the event asks for titles again.
  close();
}

// Puts a title in the place of the words after [[.
function complete(title) {
  const end = field.selectionStart;
  const start = end - words(field).length;
  const isClosed = field.value.startsWith("]]", end);
  field.setRangeText(isClosed ? title : `${title}]]`, start, end, "end");
  if (isClosed) field.selectionStart += "]]".length;
}

function step(by) {
  const buttons = all("button", list);
  const next = buttons.indexOf(document.activeElement) + by;
  (buttons[next] ?? (next < 0 ? field : buttons.at(-1))).focus();
}

function pressed(event) {
  if (!list.isConnected || !(event.target === field || list.contains(event.target))) return;
  if (event.key === "ArrowDown") step(1);
  else if (event.key === "ArrowUp" && event.target !== field) step(-1);
  else if (event.key === "Escape") { close(); field.focus(); }
  else return;
  event.preventDefault();
  event.stopPropagation();
}

export function offerTitles() {
  document.addEventListener("input", ({ target }) => { offer(target); });
  document.addEventListener("keydown", pressed, true);
  list.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    // The button is gone before a menu around it could see that the click was inside.
    event.stopPropagation();
    if (button) take(button.dataset.title);
  });
}
