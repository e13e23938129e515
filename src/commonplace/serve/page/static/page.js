// What the page does beyond links and forms: live updates, keys, and asking before what cannot be taken back.
"use strict";
(() => {
  const live = document.querySelector("[data-live]");
  if (live) {
    const events = new EventSource("/page/live");
    let waits = 0;
    events.addEventListener("change", () => {
      clearTimeout(waits);
      waits = setTimeout(() => {
        if (live.contains(document.activeElement) || live.querySelector("details[open]")) { live.dataset.late = "1"; return; }
        htmx.ajax("GET", live.dataset.live, { target: live, swap: "innerHTML" });
      }, 150);
    });
    addEventListener("pagehide", () => events.close());
  }
  document.addEventListener("click", (event) => {
    const asked = event.target.closest("[data-confirm]");
    if (asked && !confirm(asked.dataset.confirm)) event.preventDefault();
  });
  const cards = () => [...document.querySelectorAll("[data-card]")];
  const here = () => document.querySelector("[data-card].here");
  function go(step, quietly) {
    const all = cards(), at = all.indexOf(here());
    const next = all[Math.min(Math.max(at + step, 0), all.length - 1)];
    if (!next) return;
    here()?.classList.remove("here");
    next.classList.add("here");
    if (!quietly) next.focus();
  }
  document.addEventListener("keydown", (event) => {
    if (event.target.closest("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "j" || event.key === "k") go(event.key === "j" ? 1 : -1);
    else if (event.key === "/") { const box = document.querySelector("input[type=search]"); if (!box) return; box.focus(); }
    else {
      const button = (here() || document).querySelector(`[data-key="${CSS.escape(event.key)}"]`);
      if (!button) return;
      button.click();
    }
    event.preventDefault();
  });
  if (!document.querySelector("[autofocus]")) go(0, true);
})();
