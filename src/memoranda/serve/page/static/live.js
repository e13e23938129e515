// Changes of other programs are shown as they happen.
import { lost } from "./connection.js";
import { isWriting } from "./keep.js";
import { refill, renew } from "./parts.js";

const TOGETHER_MS = 150;
const PATIENCE_MS = 1500;

export function listen(place) {
  const events = new EventSource(`/page/live?since=${encodeURIComponent(place.dataset.since)}`);
  let soon = 0;
  let late = 0;
  let isWaiting = false;

  function look() {
    // A form stays: a place in it tells what was changed
    const place = document.querySelector("[data-live][data-part]");
    if (place) return refill(place);
    // The answer to a form is not what its address leads to
    if (!document.querySelector("[data-live]")) return;
    isWaiting = isWriting(document.activeElement);
    if (!isWaiting) renew();
  }

  events.addEventListener("change", () => {
    clearTimeout(soon);
    soon = setTimeout(look, TOGETHER_MS);
  });
  // What came while somebody wrote is shown when they have written
  document.addEventListener("focusout", () => { if (isWaiting) setTimeout(look); });

  events.onopen = () => clearTimeout(late);
  events.onerror = () => {
    clearTimeout(late);
    late = setTimeout(() => { if (events.readyState !== EventSource.OPEN) lost(); }, PATIENCE_MS);
  };
  addEventListener("pagehide", () => events.close());
}
