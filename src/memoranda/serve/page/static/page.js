// Starts everything a page does by itself.
import { onReturn, painted } from "./connection.js";
import { all, begin } from "./cards.js";
import { followTyping, keepsUnsaved, submitted } from "./forms.js";
import { isBegun } from "./keep.js";
import { followDrafts } from "./drafts.js";
import { listen } from "./live.js";
import { announce, fill, moveTo, renewRail, walkInside } from "./parts.js";
import { listenToKeys } from "./keys.js";
import { openPalette } from "./palette.js";
import { offerTitles } from "./titles.js";

// A menu closes after a choice, when somebody clicks elsewhere, or at Escape.
function closeMenus(event) {
  if (event.type === "keydown" && event.key !== "Escape") return;
  for (const menu of all("main details.menu[open]")) {
    const isInside = menu.contains(event.target);
    if (event.type === "click" && isInside) continue;
    menu.open = false;
    if (isInside) menu.querySelector("summary").focus();
  }
}

function startAgain() {
  fill(document);
  renewRail();
}

onReturn(startAgain, () => !isBegun(document));
document.addEventListener("click", walkInside);
document.addEventListener("submit", submitted);
document.addEventListener("change", ({ target }) => {
  if (target.matches("[data-submit]")) target.form.requestSubmit();
  if (target.matches("[data-all]")) for (const box of target.form.elements) if (box.name === "ref") box.checked = target.checked;
});
document.addEventListener("toggle", (event) => fill(event.target), true);
for (const type of ["click", "submit", "keydown"]) document.addEventListener(type, closeMenus);
addEventListener("beforeunload", keepsUnsaved);
all("form[data-typed], form[data-understood]").forEach(followTyping);
const live = document.querySelector("[data-live]");
if (live) listen(live);
announce(document);
listenToKeys();
openPalette();
offerTitles();
followDrafts();
moveTo(new URL(location));
begin();
painted.then(startAgain);
// Keys work from now on
document.body.dataset.ready = "";
