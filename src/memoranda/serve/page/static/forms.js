// Forms that are sent without a reload, and answers that come while somebody types.
import { calm, complainShortly, get, oneAtATime, part } from "./connection.js";
import { all } from "./cards.js";
import { isBegunForm } from "./keep.js";
import { announce, asStep, moveTo, parsed, put, renew, renewRail, show, swap } from "./parts.js";
import { released } from "./pressing.js";

// A form may have a field called action, so its property is not asked.
const target = (form, button) => button?.getAttribute("formaction") ?? form.getAttribute("action") ?? location.href;

async function send(form, button, isLast) {
  const fields = new URLSearchParams(new FormData(form, button));
  form.setAttribute("aria-busy", "true");
  const answer = await get(target(form, button), { method: "POST", body: fields });
  form.removeAttribute("aria-busy");
  if (!answer) {
    delete form.dataset.sent;
    return;
  }
  const html = await answer.text();
  if (!answer.ok) return refused(form, html, isLast);
  calm();
  follow(form, answer, html, isLast);
}

// Shows what an answer brought, unless somebody is already somewhere else.
function follow(form, answer, html, isLast) {
  const address = new URL(answer.url);
  if (isLast() && !answer.redirected) {
    show(html);
    return renewRail();
  }
  form.reset();
  if (!isLast()) return stepAside(html);
  if (address.pathname !== location.pathname) return location.assign(address);
  moveTo(address);
  swap(html);
  renewRail();
}

// The answer came after another step: only what it says is shown, and the page looked at again.
function stepAside(html) {
  announce(parsed(html));
  renew();
}

function refused(form, html, isLast) {
  const fresh = parsed(html);
  delete form.dataset.sent;
  if (isLast() && fresh.querySelector("#main form.editor")) return show(html);
  complainShortly(fresh.querySelector("#main [role=alert]")?.textContent);
}

function isSentAsUsual(form, button) {
  return form.getAttribute("method") !== "post" || button?.hasAttribute("data-plain") || target(form).endsWith("/leave");
}

export function submitted(event) {
  const form = event.target;
  const button = event.submitter;
  if (event.defaultPrevented || isSentAsUsual(form, button)) return;
  event.preventDefault();
  if (button?.dataset.confirm && !confirm(button.dataset.confirm)) return;
  // A second click before the answer is the same click
  if (form.hasAttribute("aria-busy")) return;
  if (form.matches(".editor")) form.dataset.sent = "";
  asStep((isLast) => send(form, button, isLast));
}

// Is there a text that is stored nowhere?
export function keepsUnsaved(event) {
  const forms = all("form.editor[method=post]:not([data-sent])");
  if (forms.some((form) => isBegunForm(form, "textarea"))) event.preventDefault();
}

// --- while somebody types: at most one question under way, the latest words count

// Calls `ask` after each change. Returns a function whose promise is kept once nothing is under way.
export function typed(input, ask) {
  const askAgain = oneAtATime(ask);
  let answered = Promise.resolve();
  for (const type of ["input", "change"]) input.addEventListener(type, () => { answered = askAgain(); });
  return () => answered;
}

export function followTyping(form) {
  const place = document.querySelector(form.dataset.typed ?? "#understood");
  const isSearch = "typed" in form.dataset;
  let shown = "";
  const settled = typed(form, async () => {
    const fields = [...new FormData(form)].filter(([name, value]) => value && name !== "csrf");
    const address = `${form.dataset.understood ?? target(form)}?${new URLSearchParams(fields)}`;
    // A field that is left says "change" once more, just as somebody clicks on what is shown
    if (address === shown) return;
    if (isSearch) moveTo(new URL(address, location));
    const html = await part(address);
    if (html === null) return;
    await released();
    put(place, html);
    shown = address;
  });
  if (!isSearch) return;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    await settled();
    place.querySelector("[data-card] a")?.focus();
  });
}
