// A click counts only where the pointer is released on what it was pressed on. So nothing that
// somebody presses is replaced before they release it.

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
