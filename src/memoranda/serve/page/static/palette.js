// The palette: Ctrl+K or / opens it; words find notes and commands, arrows choose, Enter goes.
"use strict";
(() => {
  const palette = document.getElementById("palette");
  const input = palette.querySelector("input");
  const list = palette.querySelector("ul");
  const commands = [...palette.querySelector("template").content.children];

  const rows = () => [...list.children];
  function choose(row) {
    for (const other of rows()) other.setAttribute("aria-selected", other === row);
    row?.scrollIntoView({ block: "nearest" });
  }
  const chosen = () => list.querySelector("[aria-selected=true]") ?? list.firstElementChild;

  function matching(words) {
    const wanted = words.toLowerCase();
    return commands.filter((row) => row.textContent.toLowerCase().includes(wanted)).map((row) => row.cloneNode(true));
  }

  async function look() {
    const words = input.value.trim();
    const own = matching(words);
    if (!words) {
      list.replaceChildren(...own);
    } else {
      const answer = await page.get(`/page/palette?q=${encodeURIComponent(words)}`, page.PART);
      if (!answer?.ok || words !== input.value.trim()) return;
      const found = document.createElement("template");
      found.innerHTML = await answer.text();
      list.replaceChildren(...own.slice(0, 4), found.content);
    }
    choose(list.firstElementChild);
  }

  function open() {
    input.value = "";
    look();
    palette.showModal();
    input.focus();
  }

  page.typed(input, look);
  palette.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      const all = rows();
      choose(all[(all.indexOf(chosen()) + step + all.length) % all.length]);
    } else if (event.key === "Enter") {
      event.preventDefault();
      const link = chosen()?.querySelector("a");
      if (link) location.assign(link.href);
    }
  });
  palette.addEventListener("click", (event) => { if (event.target === palette) palette.close(); });
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-palette]")) return;
    event.preventDefault();
    open();
  });
  document.addEventListener("keydown", (event) => {
    const isCommand = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k";
    const isSlash = event.key === "/" && !event.target.closest?.("input, textarea, select") && !document.querySelector("dialog[open]");
    if (!isCommand && !isSlash) return;
    event.preventDefault();
    if (!palette.open) open();
  });
})();
