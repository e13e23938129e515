// What comes after a page: its parts, the rail, live updates; forms that are sent without a reload.
"use strict";
const page = (() => {
  const trouble = document.getElementById("trouble");
  const toast = document.getElementById("toast");
  const rail = document.getElementById("rail");
  const main = document.getElementById("main");
  const PART = { headers: { "X-Part": "1" } };
  let retry = 0;

  // --- the connection

  function complain(text) {
    trouble.textContent = text;
    trouble.hidden = false;
  }

  function lost() {
    complain(trouble.dataset.trying);
    if (retry) return;
    retry = setInterval(async () => {
      try {
        await fetch("/page/static/icon.svg", { cache: "no-store" });
      } catch { return; }
      clearInterval(retry);
      retry = 0;
      trouble.hidden = true;
      fill(document);
      renewRail();
    }, 2000);
  }

  async function get(address, options) {
    try {
      const answer = await fetch(address, options);
      if (answer.status === 401) location.reload();
      return answer;
    } catch (error) {
      if (error.name !== "AbortError") lost();
      return null;
    }
  }

  // --- parts: an element with data-part=ADDRESS is filled with what that address answers

  async function fill(root) {
    for (const place of root.querySelectorAll("[data-part]:not([data-filled])")) {
      const address = place.dataset.part;
      const answer = await get(address, PART);
      if (!answer?.ok) continue;
      const html = await answer.text();
      // What was opened or begun meanwhile counts more than a late answer
      if (place.dataset.part !== address || isBegun(place)) continue;
      put(place, html);
    }
  }

  function isChanged(field) {
    if (field.matches("select")) {
      const chosen = [...field.options].findIndex((option) => option.defaultSelected);
      return field.selectedIndex !== Math.max(chosen, 0);
    }
    return field.value !== field.defaultValue || field.checked !== field.defaultChecked;
  }

  // Has somebody changed a field of a form that is not sent yet?
  function isBegun(root) {
    const fields = root.querySelectorAll("form[method=post] :is(input, textarea, select)");
    return [...fields].some(isChanged);
  }

  function put(place, html) {
    place.innerHTML = html;
    place.dataset.filled = "";
    begin();
  }

  // A link from a part to another state of the same part changes that part alone.
  async function walkInside(event) {
    const link = event.target.closest("[data-part] a[href]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    const place = link.closest("[data-part]");
    const address = new URL(link.href);
    if (address.pathname !== new URL(place.dataset.part, location).pathname || address.pathname !== location.pathname) return;
    if (address.searchParams.has("part")) return;
    event.preventDefault();
    const answer = await get(address, PART);
    if (!answer?.ok) return;
    place.dataset.part = address.pathname + address.search;
    history.replaceState(null, "", address);
    put(place, await answer.text());
    place.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }

  async function renewRail() {
    if (!rail) return;
    const answer = await get(`${rail.dataset.rail}?at=${encodeURIComponent(location.pathname)}`, PART);
    if (!answer?.ok) return;
    rail.innerHTML = await answer.text();
    const hot = rail.querySelector(".count.hot");
    for (const place of document.querySelectorAll("[data-count=questions]")) place.textContent = hot?.textContent ?? "0";
  }

  // --- whole pages: the same page again, in place

  function openDetails() {
    return [...main.querySelectorAll("details[open]")].map((open) => {
      const near = open.closest("[id]") ?? open.querySelector("[id]");
      return { id: near?.id, words: open.querySelector("summary")?.textContent };
    });
  }

  function reopen(kept) {
    for (const details of main.querySelectorAll("details:not([open])")) {
      const id = (details.closest("[id]") ?? details.querySelector("[id]"))?.id;
      const words = details.querySelector("summary")?.textContent;
      if (kept.some((open) => open.id === id || open.words === words)) details.open = true;
    }
  }

  function swap(html) {
    const fresh = new DOMParser().parseFromString(html, "text/html");
    const open = openDetails();
    const position = cards().indexOf(here());
    const scrolled = scrollY;
    const old = new Map([...main.querySelectorAll("[data-part]")].map((place) => [place.dataset.part.split("?")[0], place]));
    main.replaceChildren(...fresh.getElementById("main").childNodes);
    // What a part showed stays until its new state has come
    for (const place of main.querySelectorAll("[data-part]")) {
      const before = old.get(place.dataset.part.split("?")[0]);
      if (!before) continue;
      for (const form of before.querySelectorAll("form")) form.reset();
      place.replaceChildren(...before.childNodes);
    }
    document.title = fresh.title;
    const said = fresh.getElementById("toast");
    if (said?.textContent.trim()) announce(said.innerHTML);
    reopen(open);
    mark(cards()[Math.min(position, cards().length - 1)]);
    scrollTo(0, scrolled);
    fill(main);
    begin();
  }

  let fading = 0;
  function announce(html) {
    toast.innerHTML = html;
    clearTimeout(fading);
    fading = setTimeout(() => toast.replaceChildren(), 12000);
  }

  async function renew() {
    const answer = await get(location.href);
    const html = answer?.ok ? await answer.text() : "";
    if (html && !isBegun(main)) swap(html);
    renewRail();
  }

  // --- forms

  // A form may have a field called action, so its property is not asked.
  const target = (form, button) => button?.getAttribute("formaction") ?? form.getAttribute("action") ?? location.href;

  async function send(form, button) {
    const fields = new URLSearchParams(new FormData(form, button));
    button?.setAttribute("aria-busy", "true");
    const answer = await get(target(form, button), { method: "POST", body: fields });
    button?.removeAttribute("aria-busy");
    if (!answer) return;
    const html = await answer.text();
    if (!answer.ok) return refused(html);
    trouble.hidden = true;
    const address = new URL(answer.url);
    if (!answer.redirected) return show(html);
    if (address.pathname !== location.pathname) return location.assign(address);
    address.searchParams.delete("done");
    history.replaceState(null, "", address);
    swap(html);
    renewRail();
  }

  // An answer that is a page of its own: a question to be answered, a form with both texts.
  function show(html) {
    const fresh = new DOMParser().parseFromString(html, "text/html");
    main.replaceChildren(...fresh.getElementById("main").childNodes);
    document.title = fresh.title;
    scrollTo(0, 0);
    main.focus();
  }

  function refused(html) {
    const fresh = new DOMParser().parseFromString(html, "text/html");
    if (fresh.querySelector("#main form.editor")) return show(html);
    complain(fresh.querySelector("#main [role=alert]")?.textContent ?? trouble.dataset.failed);
    setTimeout(() => { if (!retry) trouble.hidden = true; }, 9000);
  }

  document.addEventListener("submit", (event) => {
    const form = event.target;
    const button = event.submitter;
    if (event.defaultPrevented || form.getAttribute("method") !== "post" || button?.hasAttribute("data-plain") || target(form).endsWith("/leave")) return;
    if (button?.dataset.confirm && !confirm(button.dataset.confirm)) return event.preventDefault();
    event.preventDefault();
    if (form.matches(".editor")) form.dataset.sent = "";
    send(form, button);
  });

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
  });

  addEventListener("beforeunload", (event) => {
    const text = document.querySelector("textarea#text");
    if (text && text.value !== text.defaultValue && !("sent" in text.form.dataset)) event.preventDefault();
  });

  // --- answers while somebody types: at most one question under way, the latest words count

  function typed(input, ask) {
    let busy = false;
    let again = false;
    async function run() {
      if (busy) { again = true; return; }
      busy = true;
      await ask();
      busy = false;
      if (again) { again = false; run(); }
    }
    input.addEventListener("input", run);
    input.addEventListener("change", run);
  }

  function follow(form) {
    const place = document.querySelector(form.dataset.typed ?? "#understood");
    typed(form, async () => {
      const asked = [...new FormData(form)].filter(([name, value]) => value && name !== "csrf");
      const address = `${form.dataset.understood ?? target(form)}?${new URLSearchParams(asked)}`;
      if (form.dataset.typed) history.replaceState(null, "", address);
      const answer = await get(address, PART);
      if (answer?.ok) place.innerHTML = await answer.text();
      begin();
    });
    if (form.dataset.typed) form.addEventListener("submit", (event) => { event.preventDefault(); place.querySelector("[data-card] a")?.focus(); });
  }

  // --- cards: one of them is here

  const cards = () => [...main.querySelectorAll("[data-card]")].filter((card) => card.checkVisibility?.() ?? true);
  const here = () => main.querySelector("[data-card].here");
  function mark(card) {
    here()?.classList.remove("here");
    card?.classList.add("here");
  }
  function begin() {
    if (!here() && cards().length && document.activeElement?.matches("body, main, a, button")) mark(cards()[0]);
  }

  // --- live

  function listen(place) {
    const events = new EventSource(`/page/live?since=${encodeURIComponent(place.dataset.since)}`);
    let soon = 0;
    let late = 0;
    events.addEventListener("change", () => {
      clearTimeout(soon);
      soon = setTimeout(() => { if (!document.activeElement?.matches("input, textarea, select") && !isBegun(main)) renew(); }, 150);
    });
    events.onopen = () => clearTimeout(late);
    events.onerror = () => { clearTimeout(late); late = setTimeout(() => { if (events.readyState !== EventSource.OPEN) lost(); }, 1500); };
    addEventListener("pagehide", () => events.close());
  }

  document.addEventListener("click", walkInside);
  for (const form of document.querySelectorAll("form[data-typed], form[data-understood]")) follow(form);
  const live = document.querySelector("[data-live]");
  if (live) listen(live);
  if (toast?.textContent.trim()) announce(toast.innerHTML);
  if (new URL(location).searchParams.has("done")) {
    const clean = new URL(location);
    clean.searchParams.delete("done");
    history.replaceState(null, "", clean);
  }
  fill(document);
  renewRail();
  begin();
  return { get, typed, cards, here, mark, PART };
})();
