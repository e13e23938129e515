// The cards of a page, of which one is `here`: keys act on it.

export const main = document.getElementById("main");

export const all = (selector, root = document) => [...root.querySelectorAll(selector)];

export const cards = () => all("[data-card]", main).filter((card) => card.checkVisibility?.() ?? true);

export const here = () => main.querySelector("[data-card].here");

export function mark(card) {
  here()?.classList.remove("here");
  card?.classList.add("here");
}

// Marks the first card where there are keys, unless somebody writes or has marked another.
export function begin() {
  if (innerWidth < 720 || here() || !document.activeElement?.matches("body, main, a, button")) return;
  mark(cards()[0]);
}
