// What comes after a page: its parts, the rail, and the same page again in place.
//
// Each step somebody takes has a number. An answer to an earlier step comes late: it is dropped.
import { get, part, steps } from "./connection.js";
import { all, begin, main } from "./cards.js";
import { isBegun, keeping } from "./keep.js";
import { released, settle } from "./pressing.js";

const rail = document.getElementById("rail");
const toast = document.getElementById("toast");
const TOAST_MS = 12000;
const beginStep = steps();
let isLast = beginStep();
let underWay = 0;
let isRenewalDue = false;

// Does one step of somebody. `work` can ask whether it is still the last one.
export async function asStep(work) {
  isLast = beginStep();
  underWay += 1;
  try {
    await work(isLast);
  } finally {
    underWay -= 1;
  }
  if (isRenewalDue && !underWay) renew();
}

// What was done is said once, so a reload must not say it again.
export function moveTo(address) {
  address.searchParams.delete("done");
  history.replaceState(null, "", address);
}

export const parsed = (html) => new DOMParser().parseFromString(html, "text/html");

// --- parts: an element with data-part=ADDRESS is filled with the answer, in closed details once they
// are opened

export async function fill(root) {
  for (const place of root.querySelectorAll("[data-part]:not([data-filled])")) {
    if (place.closest("details:not([open])")) continue;
    const address = place.dataset.part;
    const html = await part(address);
    if (html === null) continue;
    await released();
    // What was opened or begun meanwhile counts more than a late answer
    const isStale = place.dataset.part !== address || "filled" in place.dataset;
    if (!place.isConnected || isStale || isBegun(place)) continue;
    put(place, html);
  }
}

export function refill(place) {
  delete place.dataset.filled;
  return fill(place.parentNode);
}

// Shows an answer in its place.
export function put(place, html) {
  keeping(place, () => { place.innerHTML = html; });
  settle(place);
  place.dataset.filled = "";
  begin();
}

// A link from a part to another state of the same part changes that part alone.
export function walkInside(event) {
  const link = event.target.closest("[data-part] a[href]");
  if (!link || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  const place = link.closest("[data-part]");
  const address = new URL(link.href);
  if (!isOfPart(address, place)) return;
  event.preventDefault();
  asStep((isLast) => turnTo(place, address, isLast));
}

async function turnTo(place, address, isLast) {
  place.dataset.part = address.pathname + address.search;
  const html = await part(address);
  if (html === null || !isLast() || !place.isConnected) return;
  moveTo(address);
  put(place, html);
  place.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
}

function isOfPart(address, place) {
  const own = new URL(place.dataset.part, location).pathname;
  return address.pathname === own && own === location.pathname && !address.searchParams.has("part");
}

// --- the rail

const beginQuestion = steps();

export async function renewRail() {
  if (!rail) return;
  const isLatest = beginQuestion();
  const html = await part(`${rail.dataset.rail}?at=${encodeURIComponent(location.pathname)}`);
  if (html === null) return;
  await released();
  if (!isLatest()) return;
  put(rail, html);
  const hot = rail.querySelector(".count.hot");
  for (const place of document.querySelectorAll("[data-count=questions]")) place.textContent = hot?.textContent ?? "0";
}

// --- the same page again, in place

// An answer at the same address may be another page: it brings the style sheets that this one lacks.
function takeStyles(fresh) {
  const present = new Set([...document.styleSheets].map((sheet) => sheet.href));
  for (const link of fresh.querySelectorAll("link[rel=stylesheet]")) {
    const address = new URL(link.getAttribute("href"), location).href;
    if (!present.has(address)) document.head.append(link);
  }
}

function replaceBy(fresh) {
  isLast = beginStep();
  takeStyles(fresh);
  document.title = fresh.title;
  main.replaceChildren(...fresh.getElementById("main").childNodes);
  settle(main);
}

export function swap(html) {
  const fresh = parsed(html);
  const scrolled = scrollY;
  keeping(main, () => {
    const before = partsByKey();
    replaceBy(fresh);
    carryParts(before);
  });
  if (rail) keeping(rail, () => rail.replaceChildren(...fresh.getElementById("rail").childNodes));
  announce(fresh);
  scrollTo(0, scrolled);
  fill(main);
  begin();
}

// The parts of cards differ by their query. Any other part may have turned to another state of itself.
const partKey = (place) => place.closest("[data-card]") ? place.dataset.part : place.dataset.part.split("?")[0];

function partsByKey() {
  return new Map(all("[data-part]", main).map((place) => [partKey(place), place]));
}

// What a part showed stays until its new state has come.
function carryParts(before) {
  for (const place of all("[data-part]", main)) {
    const old = before.get(partKey(place));
    if (!old) continue;
    for (const form of old.querySelectorAll("form")) form.reset();
    place.replaceChildren(...old.childNodes);
  }
}

// Looks at the page again. What somebody did meanwhile makes the answer too old: then once more.
export async function renew() {
  isRenewalDue = underWay > 0;
  if (isRenewalDue) return;
  const isStill = isLast;
  const address = location.href;
  const answer = await get(address);
  if (!answer?.ok) return;
  const html = await answer.text();
  await released();
  if (!isStill() || underWay || location.href !== address) return renew();
  swap(html);
  renewRail();
}

// An answer that is a page of its own: a question to be answered, a form with both texts. A text that
// came back is written on where one was.
export function show(html) {
  const before = document.getElementById("text");
  const caret = before?.selectionEnd;
  replaceBy(parsed(html));
  scrollTo(0, 0);
  const text = document.getElementById("text");
  (text && before ? text : main).focus({ preventScroll: true });
  if (text && before) text.selectionStart = text.selectionEnd = samePlace(before.value, caret, text.value);
}

// Where a place in a text is in another one, which differs before it or behind it.
function samePlace(text, place, other) {
  const isChangedBefore = !other.startsWith(text.slice(0, place));
  return isChangedBefore ? Math.max(other.length - text.length + place, 0) : place;
}

// --- the toast

let fading = 0;
// Says what a page has to say.
export function announce(page) {
  const said = page.getElementById("toast");
  if (!said?.textContent.trim()) return;
  toast.innerHTML = said.innerHTML;
  fade();
}

// It stays while somebody is about to press its button.
function fade() {
  clearTimeout(fading);
  fading = setTimeout(() => {
    if (toast.matches(":hover, :focus-within")) fade();
    else toast.replaceChildren();
  }, TOAST_MS);
}
