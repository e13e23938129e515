// The palette: Ctrl+K or / opens it; words find notes and commands, arrows choose, Enter goes.
// On a page with a search field of its own, / is for that. Words stay as they were typed.
import { all } from "./cards.js";
import { part } from "./connection.js";
import { typed } from "./forms.js";
import { isWriting } from "./keep.js";

const MOST_COMMANDS = 4;
const WORDS = "palette";
const palette = document.getElementById("palette");
const input = palette.querySelector("input");
const list = palette.querySelector("ul");
const commands = [...palette.querySelector("template").content.children];

const rows = () => [...list.children];
const optionIn = (row) => row?.querySelector("a");
const addressOf = (row) => optionIn(row)?.getAttribute("href");
const chosen = () => list.querySelector("[aria-selected=true]")?.closest("li") ?? list.firstElementChild;

function choose(row) {
  for (const other of rows()) optionIn(other).setAttribute("aria-selected", other === row);
  row?.scrollIntoView({ block: "nearest" });
}

// Two of three words are enough.
function matching(words) {
  const wanted = words.toLowerCase().split(/\s+/);
  return commands.filter((row) => {
    const label = row.textContent.toLowerCase();
    return wanted.filter((word) => label.includes(word)).length * 3 >= wanted.length * 2;
  });
}

function keepWords() {
  const words = input.value.trim();
  if (words) sessionStorage.setItem(WORDS, words);
}

async function look() {
  const words = input.value.trim();
  if (!words) return showCommands();
  keepWords();
  const html = await part(`/page/palette?q=${encodeURIComponent(words)}`);
  if (words !== input.value.trim()) return;
  const found = document.createElement("template");
  // null: no hits
  found.innerHTML = html;
  const first = matching(words).slice(0, MOST_COMMANDS);
  const known = first.map(addressOf);
  showRows(...first, ...[...found.content.children].filter((row) => !known.includes(addressOf(row))));
}

function showRows(...found) {
  list.replaceChildren(...found);
  choose(list.firstElementChild);
}

const showCommands = () => showRows(...matching(""));

const settled = typed(input, look);

function take(field) {
  field.focus();
  field.select();
}

function open() {
  input.value = sessionStorage.getItem(WORDS) ?? "";
  showCommands();
  palette.showModal();
  take(input);
  if (input.value) look();
}

function move(by) {
  const found = rows();
  choose(found[(found.indexOf(chosen()) + by + found.length) % found.length]);
}

// Enter means the words that are there, not those whose hits happen to be shown.
async function go() {
  await settled();
  const address = addressOf(chosen());
  if (palette.open && address) location.assign(address);
}

function pressed(event) {
  if (event.isComposing) return;
  if (event.key === "ArrowDown") move(1);
  else if (event.key === "ArrowUp") move(-1);
  else if (event.key === "Enter") go();
  else {
    // It empties the field before it closes the palette: that is nobody's wish to forget the words.
    if (event.key === "Escape") keepWords();
    return;
  }
  event.preventDefault();
}

const ownField = () => all("main input[type=search]").find((field) => field.checkVisibility());

// What a key opens: the palette, the search field of the page, or nothing.
function opening(event) {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") return open;
  if (event.key !== "/" || isWriting(event.target) || document.querySelector("dialog[open]")) return null;
  const field = ownField();
  return field ? () => take(field) : open;
}

export function openPalette() {
  palette.addEventListener("keydown", pressed);
  palette.addEventListener("click", (event) => { if (event.target === palette) palette.close(); });
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-palette]")) return;
    event.preventDefault();
    open();
  });
  document.addEventListener("keydown", (event) => {
    const work = opening(event);
    if (!work) return;
    event.preventDefault();
    if (!palette.open) work();
  });
}
