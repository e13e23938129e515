// What somebody did stays when a later answer replaces a part of the page: what they opened, wrote
// and chose, where the focus is, and which card they are at.
import { all, cards, here, main, mark } from "./cards.js";

const FIELDS = "input:not([type=hidden]), textarea, select";
const CHOICE = "[type=checkbox], [type=radio]";
const FOCUSABLE = `a[href], button, summary, [tabindex], ${FIELDS}`;
// Hidden fields that say where an answer leads, not which form this is.
const VOLATILE = new Set(["csrf", "back", "next", "base", "checksum"]);

// Does somebody write in this element?
export const isWriting = (element) => Boolean(element?.closest?.("input:not([type=checkbox]), textarea, select"));

export function isChanged(field) {
  if (field.matches("select")) {
    const chosen = [...field.options].findIndex((option) => option.defaultSelected);
    return field.selectedIndex !== Math.max(chosen, 0);
  }
  return field.value !== field.defaultValue || field.checked !== field.defaultChecked;
}

// Has somebody changed such a field of a form, or did the form come back unsaved?
export const isBegunForm = (form, fields = FIELDS) => "unsaved" in form.dataset || all(fields, form).some(isChanged);

export const isBegun = (root) => all("form[method=post]", root).some((form) => isBegunForm(form));

// Replaces what is in `root` by `replace()`, and brings back what somebody did there.
export function keeping(root, replace) {
  const open = openDetails(root);
  const fields = changedFields(root);
  const focus = focusIn(root);
  const card = cardIn(root);
  replace();
  reopen(root, open);
  rewrite(root, fields);
  if (card) mark(sameCard(root, card));
  if (focus) refocus(root, focus);
}

// --- details

// A card is told by its link where it has no id; what is around all cards names none of them.
function idNear(details) {
  const card = details.closest("[data-card]");
  if (card) return [cardKey(card), wordsOf(details)].join(" ");
  return (details.closest("[id]:not(main)") ?? details.querySelector("[id]"))?.id;
}

const wordsOf = (details) => details.querySelector("summary")?.textContent.trim();

function openDetails(root) {
  return all("details[open]", root).map((details) => ({ id: idNear(details), words: wordsOf(details) }));
}

function reopen(root, kept) {
  for (const details of root.querySelectorAll("details:not([open])")) {
    const id = idNear(details);
    const words = wordsOf(details);
    details.open = kept.some((before) => (id && before.id ? before.id === id : before.words === words));
  }
}

// --- fields

function formKey(form) {
  if (!form) return "";
  const hidden = all("input[type=hidden]", form).filter((field) => !VOLATILE.has(field.name));
  return [form.getAttribute("action"), ...hidden.map((field) => field.value)].join(" ");
}

function fieldKey(field) {
  const choice = field.matches(CHOICE) ? field.value : "";
  return [formKey(field.form), field.name, choice].join("\n");
}

function changedFields(root) {
  const changed = all(FIELDS, root).filter(isChanged);
  return new Map(changed.map((field) => [fieldKey(field), { value: field.value, checked: field.checked }]));
}

function rewrite(root, kept) {
  for (const field of all(FIELDS, root)) {
    const before = kept.get(fieldKey(field));
    if (!before) continue;
    if (field.matches(CHOICE)) field.checked = before.checked;
    else field.value = before.value;
  }
}

// --- the card one is at

const cardKey = (card) => card.id || card.querySelector("a[href]")?.getAttribute("href");

function cardIn(root) {
  const card = here();
  if (!card || !root.contains(card)) return null;
  return { key: cardKey(card), position: cards().indexOf(card) };
}

function sameCard(root, before) {
  const same = cards().find((card) => root.contains(card) && cardKey(card) === before.key);
  return same ?? cards().at(Math.min(before.position, cards().length - 1));
}

// --- the focus

function signature(element) {
  if (element.matches("[data-card]")) return `card ${cardKey(element)}`;
  const card = element.closest("[data-card]");
  const own = ["id", "href", "name", "data-key"].map((name) => element.getAttribute(name));
  const words = element.matches(FIELDS) ? fieldKey(element) : element.textContent.trim();
  return [element.tagName, card && cardKey(card), ...own, words].join("\n");
}

function focusIn(root) {
  const element = document.activeElement;
  if (!element || element === root || !root.contains(element)) return null;
  const selection = element.matches("input[type=search], input:not([type]), textarea") ? [element.selectionStart, element.selectionEnd] : null;
  return { signature: signature(element), selection };
}

function refocus(root, before) {
  if (root.contains(document.activeElement) && document.activeElement !== root) return;
  const same = all(FOCUSABLE, root).find((element) => signature(element) === before.signature);
  const target = same ?? here() ?? main;
  target.focus({ preventScroll: true });
  if (same && before.selection) same.setSelectionRange(...before.selection);
}
