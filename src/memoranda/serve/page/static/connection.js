// Questions to the server, and what is said when it does not answer.

const trouble = document.getElementById("trouble");

// Asks for a part of a page instead of a whole one.
const PART = { headers: { "X-Part": "1" } };

const RETRY_MS = 2000;
const SHOWN_MS = 9000;
let retry = 0;
let hiding = 0;
let comeBack = () => {};
let mayReload = () => true;

// What to do once the server answers again, and whether a reload would lose nothing.
export function onReturn(callback, isSafe) {
  comeBack = callback;
  mayReload = isSafe;
}

export function complain(text) {
  clearTimeout(hiding);
  trouble.textContent = text ?? trouble.dataset.failed;
  trouble.hidden = false;
}

export function complainShortly(text) {
  complain(text);
  hiding = setTimeout(() => { if (!retry) calm(); }, SHOWN_MS);
}

export function calm() {
  trouble.hidden = true;
}

export function lost() {
  complain(trouble.dataset.trying);
  if (!retry) retry = setInterval(tryAgain, RETRY_MS);
}

async function tryAgain() {
  try {
    await fetch("/page/static/icon.svg", { cache: "no-store" });
  } catch {
    return;
  }
  clearInterval(retry);
  retry = 0;
  calm();
  comeBack();
}

// The answer, or null where the server is gone or somebody is signed out.
export async function get(address, options) {
  let answer;
  try {
    answer = await fetch(address, options);
  } catch (error) {
    if (error.name !== "AbortError") lost();
    return null;
  }
  if (answer.status !== 401) return answer;
  if (mayReload()) location.reload();
  else complain(trouble.dataset.out);
  return null;
}

// The text of a part of a page, or null where there is no answer or a refusal.
export async function part(address, options) {
  const answer = await get(address, { ...PART, ...options });
  return answer?.ok ? answer.text() : null;
}

// What comes later takes no time from the page itself. A page that nobody sees is never painted.
export const painted = document.hidden ? Promise.resolve() : new Promise((goOn) => { requestAnimationFrame(() => setTimeout(goOn)); });

// Returns a function that begins a step. What that returns tells whether no later step began.
export function steps() {
  let latest = 0;
  return () => {
    const own = ++latest;
    return () => own === latest;
  };
}

// Returns a function that calls `ask`, but not while it is under way: then once more afterwards. Its
// promise is kept once nothing is under way.
export function oneAtATime(ask) {
  let running = null;
  let isAgain = false;

  async function run() {
    do {
      isAgain = false;
      await ask();
    } while (isAgain);
    running = null;
  }

  return () => {
    if (running) isAgain = true;
    else running = run();
    return running;
  };
}
