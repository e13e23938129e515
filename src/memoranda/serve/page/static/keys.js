// Keys: j and k walk over the cards, any other presses what has that data-key; g goes somewhere.
"use strict";
(() => {
  const help = document.getElementById("keys");
  const going = new Map();
  for (const link of document.querySelector("#palette template").content.querySelectorAll("[data-keys]")) {
    going.set(link.dataset.keys, link.getAttribute("href"));
  }
  let after = "";

  function walk(step) {
    const cards = page.cards();
    const now = cards.indexOf(page.here());
    const next = cards[Math.min(Math.max(now + step, 0), cards.length - 1)];
    if (!next) return;
    page.mark(next);
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  }

  function press(key) {
    const selector = `[data-key="${CSS.escape(key)}"]`;
    const inside = page.here()?.querySelector(selector);
    const outside = [...document.querySelectorAll(selector)].find((found) => !found.closest("[data-card]"));
    const found = inside ?? outside;
    found?.click();
    return Boolean(found);
  }

  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
      const save = event.target.closest?.("form")?.querySelector("[data-save]");
      if (save) { event.preventDefault(); save.click(); }
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.target.closest?.("input:not([type=checkbox]), textarea, select, canvas")) return;
    const sequence = after ? `${after} ${event.key}` : event.key;
    after = "";
    if (going.has(sequence)) {
      event.preventDefault();
      location.assign(going.get(sequence));
    } else if (event.key === "g") {
      after = "g";
      setTimeout(() => { after = ""; }, 1500);
    } else if (event.key === "?") {
      event.preventDefault();
      help.showModal();
    } else if (press(event.key)) {
      event.preventDefault();
    } else if (event.key === "j" || event.key === "k") {
      walk(event.key === "j" ? 1 : -1);
    }
  });
})();
