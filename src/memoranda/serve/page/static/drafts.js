// What the server says of a text while somebody types it: that it has a secret, and, once it was asked
// for, how it will look.
import { part, steps } from "./connection.js";

const IDLE_MS = 700;
const beginQuestion = steps();
let waiting = 0;

const placeIn = (form) => form?.querySelector("[data-draft]");

async function look(form) {
  const place = placeIn(form);
  const isLatest = beginQuestion();
  const body = new URLSearchParams(new FormData(form));
  if ("shown" in place.dataset) body.set("preview", "1");
  const html = await part(place.dataset.draft, { method: "POST", body });
  if (html !== null && isLatest() && place.isConnected) place.innerHTML = html;
}

function typed({ target }) {
  const form = target.closest?.("form.editor");
  if (!placeIn(form)) return;
  clearTimeout(waiting);
  waiting = setTimeout(() => look(form), IDLE_MS);
}

function clicked(event) {
  const button = event.target.closest?.("button[name=preview]");
  const place = placeIn(button?.form);
  if (!place) return;
  event.preventDefault();
  const isShown = place.toggleAttribute("data-shown");
  button.setAttribute("aria-pressed", isShown);
  look(button.form);
}

export function followDrafts() {
  document.addEventListener("input", typed);
  document.addEventListener("click", clicked);
}
