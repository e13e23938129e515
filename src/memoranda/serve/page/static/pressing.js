// A click counts only where the pointer is released on what it was pressed on. So nothing that
// somebody presses is replaced before they release it.

//
// What is new may stand where something else stood: it is not pressed at once, or by a double click.

const NEW_MS = 500;
const timers = new WeakMap();
let isPressed = false;
let waiting = [];

function release() {
  isPressed = false;
  // The click itself comes first
  setTimeout(() => {
    const all = waiting;
    waiting = [];
    for (const goOn of all) goOn();
  });
}

// Kept once no pointer is pressed.
export function released() {
  return isPressed ? new Promise((goOn) => { waiting.push(goOn); }) : Promise.resolve();
}

document.addEventListener("pointerdown", ({ button }) => { isPressed = button === 0; }, true);
for (const type of ["pointerup", "pointercancel"]) document.addEventListener(type, release, true);
addEventListener("blur", release);

// Says that an answer replaced what is in a place.
export function settle(place) {
  clearTimeout(timers.get(place));
  place.dataset.fresh = "";
  timers.set(place, setTimeout(() => { delete place.dataset.fresh; }, NEW_MS));
}

document.addEventListener("click", (event) => {
  if (event.detail > 1 && event.target.closest("button, .answers a")) event.preventDefault();
}, true);
