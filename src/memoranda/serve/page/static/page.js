// What the page does beyond links and forms: live updates, keys, and asking before what cannot be taken back.
"use strict";
(() => {
  // An element with data-live="ADDRESS" holds what that address answers, and follows each change of the memory.
  const live = document.querySelector("[data-live]");
  async function renew() {
    const answer = await fetch(live.dataset.live, { headers: { "HX-Request": "true" } });
    if (!answer.ok) return;
    const fresh = document.createElement("template"), focus = document.activeElement;
    fresh.innerHTML = await answer.text();
    for (const row of fresh.content.querySelectorAll("ol.changes > li[id]")) {
      const old = document.getElementById(row.id);  // one that is being read stays as it is
      if (old && (old.contains(focus) || old.querySelector("details[open]"))) row.replaceWith(old);
    }
    live.replaceChildren(fresh.content);
    htmx.process(live);
    if (live.contains(focus)) focus.focus({ preventScroll: true });
  }
  if (live) {
    const events = new EventSource(`/page/live?since=${live.dataset.since}`);
    let soon = 0;
    events.addEventListener("change", () => { clearTimeout(soon); soon = setTimeout(renew, 100); });
    addEventListener("pagehide", () => events.close());
  }

  document.addEventListener("click", (event) => {
    const asked = event.target.closest("[data-confirm]");
    if (asked && !confirm(asked.dataset.confirm)) event.preventDefault();
  });

  // The address follows what a form with data-address asks for, so that it can be kept and come back to.
  document.addEventListener("input", (event) => {
    const form = event.target.closest("form[data-address]");
    if (!form) return;
    const asked = [...new FormData(form)].filter(([, value]) => value);
    history.replaceState(null, "", `${form.action}?${new URLSearchParams(asked)}`);
  });

  // j and k walk over the elements with data-card; any other key presses the button with that data-key.
  const here = () => document.querySelector("[data-card].here");
  function walk(step, quietly) {
    const cards = [...document.querySelectorAll("[data-card]")];
    const next = cards[Math.min(Math.max(cards.indexOf(here()) + step, 0), cards.length - 1)];
    if (!next) return;
    here()?.classList.remove("here");
    next.classList.add("here");
    if (!quietly) next.focus();
  }
  document.addEventListener("keydown", (event) => {
    if (event.target.closest("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    const wanted = event.key === "/" ? "input[type=search]" : `[data-key="${CSS.escape(event.key)}"]`;
    if (event.key === "j" || event.key === "k") return walk(event.key === "j" ? 1 : -1);
    const found = here()?.querySelector(wanted) || [...document.querySelectorAll(wanted)].find((each) => !each.closest("[data-card]"));
    if (!found) return;
    event.preventDefault();
    if (event.key === "/") found.focus();
    else found.click();
  });
  const begin = () => { if (!here() && !document.querySelector("[autofocus]")) walk(0, true); };
  document.addEventListener("htmx:after:swap", begin);
  begin();
})();
