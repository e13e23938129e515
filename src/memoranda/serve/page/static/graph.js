// Draws the graph of a <canvas data-source>, and answers mouse, touch and keys.
import { oneAtATime, painted, part } from "./connection.js";
import { all } from "./cards.js";
import { forces } from "./force.js";
import { parsed } from "./parts.js";

const canvas = document.querySelector("canvas[data-source]");
const figure = canvas.closest("figure");
const panel = figure.querySelector(".panel div");
const time = figure.querySelector(".time");
const field = figure.querySelector("[type=search]");
const pen = canvas.getContext("2d");
const dark = matchMedia("(prefers-color-scheme: dark)");
const view = { x: 0, y: 0, k: 1 };
// Pixels of the width for each note that is named in dark letters.
const HUB_WIDTH = 60;
const MOST_LABELS = 160;
// Of more lines than this, labels do not look for a place without one.
const MOST_LINES = 500;
// Pixels of a label's lines, and between a label and its box.
const LINE_WIDTH = 165;
const LINE_HEIGHT = 15;
const PADDING = 3;
// Lines behind a label that is not of a hub.
const MOST_CROSSED = 2;
// A relation is written at its line if not more lines than this have it.
const NAMED_LINES = 4;
// Notes that come with one that is opened.
const MOST_ADDED = 30;
const FONT = 'system-ui, "Noto Sans CJK SC", sans-serif';
let nodes = [];
let links = [];
let near = new Map();
let colours = {};
// The note that the graph is about, that is pointed at, that was chosen, and those searched for.
let middle = null;
let here = null;
let chosen = null;
let found = null;
let isTouched = false;
let isClusters = false;
let wide = 0;
let high = 0;
let boxes = [];
let step = () => {};

// --- what is drawn

const sizeOf = (node) => isClusters ? 6 + Math.sqrt(node.size) * 0.9 : Math.min(4 + Math.sqrt(node.size) * 1.6, 16) + (node.start ? 3 : 0);

function markHubs() {
  const sizes = nodes.map((node) => node.size).sort((a, b) => b - a);
  const least = Math.max(sizes[Math.round(wide / HUB_WIDTH)] ?? 0, 3);
  for (const node of nodes) node.isHub = isClusters || node.start || node.size > least;
}

function placeNodes() {
  const isMany = nodes.length > 400;
  const apart = isMany ? 24 : isClusters ? 90 : 56;
  // Only three shapes, so that the picture is the same in windows that differ little.
  const shape = wide / high;
  const [along, across] = shape > 1.1 ? [0.04, 0.07] : shape < 0.9 ? [0.07, 0.04] : [0.055, 0.055];
  for (const node of nodes) {
    const isLinked = near.get(node).size > 0;
    node.radius = sizeOf(node) + (node.isHub ? 14 : 7);
    node.home = { x: 0, y: 0, sideways: isLinked ? along : 0.12, upwards: isLinked ? across : 0.16 };
  }
  if (middle) middle.held = { x: 0, y: 0 };
  for (const link of links) link.length = apart + link.source.radius + link.target.radius;
  step = forces(nodes, links, { push: isMany ? 50 : 420, reach: 600 });
}

function theme() {
  const style = getComputedStyle(canvas);
  const soft = getComputedStyle(figure.querySelector("figcaption")).color;
  colours = { text: style.color, soft, ground: style.backgroundColor, line: style.borderTopColor, mark: style.outlineColor };
}

function size() {
  const scale = devicePixelRatio || 1;
  wide = canvas.clientWidth;
  high = canvas.clientHeight;
  canvas.width = wide * scale;
  canvas.height = high * scale;
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  show();
}

const show = () => isTouched ? draw() : fit();

function fit() {
  if (!nodes.length || !wide) return;
  const edge = wide < 500 ? 24 : 60;
  const [left, right] = extent("x");
  const [top, bottom] = extent("y");
  view.k = Math.min((wide - 2 * edge) / (right - left || 1), (high - 2 * edge) / (bottom - top || 1), 1.6);
  view.x = wide / 2 - view.k * (left + right) / 2;
  view.y = high / 2 - view.k * (top + bottom) / 2;
  draw();
}

// What has no link is far out and does not count, so it does not make all else small.
function extent(axis) {
  const linked = nodes.filter((node) => near.get(node).size || node.start);
  const circles = linked.length >= 8 ? linked : nodes;
  return [Math.min(...circles.map((node) => node[axis] - node.radius)), Math.max(...circles.map((node) => node[axis] + node.radius))];
}

const between = (least, number, most) => Math.min(Math.max(number, least), most);
const at = (node) => [node.x * view.k + view.x, node.y * view.k + view.y];
const shown = (node) => sizeOf(node) * between(0.35, view.k, 1.4);

// Notes written after the time chosen are not there yet.
let until = "";
const isThere = (node) => !until || !node.date || node.date <= until;

// What stands out: what was searched for, or a note with those it is linked to. null: all alike.
function standingOut() {
  const focus = here ?? chosen;
  return focus ? new Set([focus, ...near.get(focus)]) : found;
}

function draw() {
  pen.clearRect(0, 0, wide, high);
  const focus = here ?? chosen;
  const lit = standingOut();
  const lines = links.filter(({ source, target }) => isThere(source) && isThere(target));
  const litLines = lines.filter(({ source, target }) => focus && (source === focus || target === focus));
  for (const line of lines) drawLine(line, lit);
  for (const line of litLines) drawLine(line, lit, true);
  for (const node of nodes) drawNode(node, lit);
  pen.globalAlpha = 1;
  writeLabels(lit, lines, litLines);
}

function drawLine({ source, target, weight = 1 }, lit, isLit = false) {
  pen.strokeStyle = isLit ? colours.mark : colours.soft;
  pen.globalAlpha = isLit ? 1 : lit ? 0.12 : 0.35;
  pen.lineWidth = isLit ? 2 : 1 + Math.log2(weight) * 0.6;
  pen.beginPath();
  pen.moveTo(...at(source));
  pen.lineTo(...at(target));
  pen.stroke();
}

function circle(node, radius) {
  pen.beginPath();
  pen.arc(...at(node), radius, 0, 7);
}

// A second ring: there are further notes around it, which a click shows.
function drawNode(node, lit) {
  if (!isThere(node)) return;
  pen.globalAlpha = lit && !lit.has(node) ? 0.3 : 1;
  pen.fillStyle = node.colour;
  pen.strokeStyle = colours.ground;
  pen.lineWidth = 1.5;
  circle(node, shown(node));
  pen.fill();
  pen.stroke();
  const isFocus = node === (here ?? chosen);
  if (!isFocus && !node.start && !node.more) return;
  pen.strokeStyle = isFocus ? colours.text : node.start ? colours.mark : node.colour;
  pen.lineWidth = isFocus || node.start ? 2.5 : 1;
  circle(node, shown(node) + 2.5);
  pen.stroke();
}

// --- labels, where there is room: what is pointed at, then what has most links. No label covers
// another or a circle, and the ground of its box hides the lines behind it

function writeLabels(lit, lines, litLines) {
  boxes = [];
  const inView = nodes.filter((node) => isThere(node) && isInView(at(node)));
  const circles = inView.map((node) => {
    const [x, y] = at(node);
    const r = shown(node) + 1;
    return [x - r, y - r, 2 * r, 2 * r];
  });
  const segments = lines.length > MOST_LINES ? [] : lines.map(({ source, target }) => [...at(source), ...at(target)]);
  const focus = here ?? chosen;
  const rank = (node) => (node === focus ? 3e6 : lit?.has(node) ? 2e6 : node.start ? 1e6 : node.isHub ? 1e5 : 0) + node.size;
  const named = inView.filter((node) => !lit || lit.has(node) || node.start).sort((a, b) => rank(b) - rank(a));
  for (const node of named.slice(0, MOST_LABELS)) nameNode(node, circles, segments, lit);
  nameRelations(litLines, circles);
}

const isInView = ([x, y, w = 0, h = 0]) => x >= 0 && y >= 0 && x + w <= wide && y + h <= high;
const meet = ([x, y, w, h], [a, b, c, d]) => x < a + c && a < x + w && y < b + d && b < y + h;

// Does a line from a to b go through a box? It is cut at each side of the box in turn.
function isCrossed([x, y, w, h], [ax, ay, bx, by]) {
  let [from, to] = [0, 1];
  for (const [start, way, least, most] of [[ax, bx - ax, x, x + w], [ay, by - ay, y, y + h]]) {
    if (!way && (start < least || start > most)) return false;
    const ends = [(least - start) / (way || 1e-9), (most - start) / (way || 1e-9)].sort((a, b) => a - b);
    [from, to] = [Math.max(from, ends[0]), Math.min(to, ends[1])];
  }
  return from < to;
}

// Takes the place that covers the fewest lines, of those that cover no label and no circle.
function takePlace(places, circles, segments, most) {
  let best = null;
  let least = most + 1;
  for (const place of places) {
    const isTaken = boxes.some((box) => meet(box, place)) || circles.some((box) => meet(box, place));
    if (isTaken) continue;
    const crossed = segments.filter((segment) => isCrossed(place, segment)).length;
    if (crossed < least) [best, least] = [place, crossed];
  }
  if (best) boxes.push(best);
  return best;
}

// A title in at most two lines. Of scripts without spaces a line may end after each character.
function linesOf(title, most) {
  const words = title.match(/[\u2e80-\uffff]|[^\s\u2e80-\uffff]{1,24}\s*|\s+/g) ?? [];
  const lines = [""];
  for (const word of words) {
    const last = lines.at(-1);
    if (last && pen.measureText(last + word.trim()).width > most) {
      if (lines.length === 2) return [lines[0], `${last.trim()}…`];
      lines.push(word);
    } else lines[lines.length - 1] += word;
  }
  return lines;
}

const SIDES = [[0, 1], [0, -1], [1, 0], [-1, 0], [1, 1], [-1, 1], [1, -1], [-1, -1]];

function nameNode(node, circles, segments, lit) {
  const [x, y] = at(node);
  const isChosen = node === (here ?? chosen);
  const isStrong = isChosen || node.isHub;
  pen.font = `${isChosen ? "600 " : ""}${isStrong ? 13 : 12}px ${FONT}`;
  const lines = linesOf(node.title, wide < 500 ? 0.7 * LINE_WIDTH : LINE_WIDTH);
  const w = Math.max(...lines.map((line) => pen.measureText(line).width)) + 2 * PADDING;
  const h = lines.length * LINE_HEIGHT + PADDING;
  const r = shown(node) + 4;
  const places = SIDES.map(([along, across]) => {
    const far = along && across ? 0.7 * r : r;
    return [x - w / 2 + along * (w / 2 + far), y - h / 2 + across * (h / 2 + far), w, h, along];
  }).filter(isInView);
  // What the graph is about has its name at any cost.
  const box = takePlace(places, circles, segments, isStrong || lit ? Infinity : MOST_CROSSED) ?? (node.start && takePlace(places, [], segments, Infinity));
  if (box) write(lines, box, isStrong || lit ? colours.text : colours.soft);
}

// What all lines have is said once, beside the graph.
function nameRelations(litLines, circles) {
  const counts = new Map();
  for (const { type } of litLines) counts.set(type, (counts.get(type) ?? 0) + 1);
  pen.font = `11px ${FONT}`;
  for (const { source, target, type } of litLines) {
    if (!type || type === "links_to" || counts.get(type) > NAMED_LINES) continue;
    const [a, b] = [at(source), at(target)];
    const text = type.replaceAll("_", " ");
    const w = pen.measureText(text).width + 2 * PADDING;
    const box = takePlace([[(a[0] + b[0] - w) / 2, (a[1] + b[1]) / 2 - 11, w, LINE_HEIGHT + PADDING]], circles, [], 0);
    if (box) write([text], box, colours.text);
  }
}

// Beside a circle, lines begin or end at it.
function write(lines, [x, y, w, h, along = 0], colour) {
  pen.fillStyle = colours.ground;
  pen.fillRect(x, y, w, h);
  pen.fillStyle = colour;
  pen.textAlign = ["right", "center", "left"][along + 1];
  const edge = x + w / 2 - along * (w / 2 - PADDING);
  lines.forEach((line, number) => pen.fillText(line.trim(), edge, y + 12 + number * LINE_HEIGHT));
}

// --- choosing a note

function point(node) {
  if (node === here) return;
  here = node;
  canvas.classList.toggle("over", Boolean(node));
  draw();
}

function placeOf(event) {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

// The nearest node that is there and nearer than `least`.
function nearest(distanceOf, least) {
  let best = null;
  for (const node of nodes.filter(isThere)) {
    const far = distanceOf(node);
    if (far < least) [best, least] = [node, far];
  }
  return best;
}

const under = ([x, y], slack = 6) => nearest((node) => {
  const [a, b] = at(node);
  return Math.hypot(a - x, b - y) - shown(node);
}, slack);

const open = (node) => { if (node) location.href = node.url; };
const choose = (node) => isClusters ? open(node) : tell(node);

function tell(node) {
  chosen = node;
  here = null;
  draw();
  if (!isClusters) describe(node);
}

const refOf = (node) => encodeURIComponent(decodeURIComponent(node.url.replace("/page/note/", "")));

// One question is under way at most: of several notes, the last counts.
let described = null;
const ask = oneAtATime(async () => {
  const node = described;
  const html = await part(`/page/graph?part=panel&note=${refOf(node)}`);
  if (html !== null && node === described) panel.innerHTML = html;
});

function describe(node) {
  described = node;
  ask();
}

// Draws what a note is linked to, too. What is there already stays about where it is.
async function expand(node) {
  const html = await part(`/page/graph?part=picture&depth=1&limit=${MOST_ADDED}&note=${refOf(node)}`);
  if (html === null) return;
  add(drawingIn(html), node);
  node.more = 0;
  isTouched = false;
  arrange(120, () => { show(); tell(node); });
}

// What has the words of the field stands out. Enter chooses the first, or looks in all notes.
function look() {
  const words = field.value.trim().toLowerCase();
  const matching = nodes.filter((node) => isThere(node) && node.title.toLowerCase().includes(words));
  found = words ? new Set(matching) : null;
  chosen = null;
  draw();
}

field.addEventListener("input", look);
field.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !found) return;
  const [first] = found;
  if (first) choose(first);
  else location.href = `/page/graph?q=${encodeURIComponent(field.value.trim())}`;
});

// A note of the panel that is drawn is shown there.
panel.addEventListener("click", (event) => {
  if (event.target.closest("[data-expand]") && described) return expand(described);
  const link = event.target.closest("li a");
  const node = link && nodes.find(({ url }) => new URL(url, location).pathname === new URL(link.href).pathname);
  if (!node || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  tell(node);
});

// --- the time slider walks through the days on which notes were written

const DAY = 864e5;

function showTime() {
  const first = Math.min(...nodes.map((node) => Date.parse(node.date)).filter(Boolean));
  const last = Date.parse(time.dataset.today);
  if (!(last - first > 2 * DAY)) return;
  const slider = time.querySelector("input");
  slider.max = (last - first) / DAY;
  slider.value = slider.max;
  function tellDay() {
    const day = new Date(first + slider.value * DAY);
    until = slider.value === slider.max ? "" : day.toISOString().slice(0, 10);
    const year = day.getUTCFullYear() === new Date(last).getUTCFullYear() ? undefined : "numeric";
    const date = day.toLocaleDateString(document.documentElement.lang, { month: "short", day: "numeric", year, timeZone: "UTC" });
    const n = nodes.filter(isThere).length;
    const number = n === 1 ? time.dataset.one : time.dataset.number.replace("{n}", n);
    time.querySelector("output").textContent = `${date} · ${number}`;
  }
  slider.oninput = () => { tellDay(); draw(); };
  tellDay();
  time.hidden = false;
}

// --- mouse, touch, keys

function zoom(by, x = wide / 2, y = high / 2) {
  const k = between(0.03, view.k * by, 8);
  view.x = x - (x - view.x) * k / view.k;
  view.y = y - (y - view.y) * k / view.k;
  view.k = k;
  isTouched = true;
  draw();
}

let heat = 0;
let isMoving = false;
function warm(to) {
  heat = Math.max(heat, to);
  if (isMoving) return;
  isMoving = true;
  requestAnimationFrame(move);
}

function move() {
  step(heat);
  heat *= 0.95;
  show();
  isMoving = heat > 0.005;
  if (isMoving) requestAnimationFrame(move);
}

function listen() {
  const fingers = new Map();
  let held = null;
  let moved = 0;
  canvas.onpointerdown = (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, placeOf(event));
    held = under(placeOf(event), event.pointerType === "touch" ? 14 : 6);
    moved = 0;
  };
  canvas.onpointermove = (event) => {
    const now = placeOf(event);
    const before = fingers.get(event.pointerId);
    if (!before) return point(under(now));
    fingers.set(event.pointerId, now);
    const [dx, dy] = [now[0] - before[0], now[1] - before[1]];
    moved += Math.abs(dx) + Math.abs(dy);
    if (fingers.size === 2) return pinch(event.pointerId, now, before);
    if (moved <= 4) return;
    isTouched = true;
    if (held) {
      held.held = { x: (now[0] - view.x) / view.k, y: (now[1] - view.y) / view.k };
      return warm(0.15);
    }
    view.x += dx;
    view.y += dy;
    draw();
  };
  function pinch(finger, now, before) {
    const other = [...fingers].find(([id]) => id !== finger)[1];
    const spread = ([x, y]) => Math.hypot(x - other[0], y - other[1]) || 1;
    zoom(spread(now) / spread(before), ...other);
  }
  function up(event) {
    if (!fingers.delete(event.pointerId)) return;
    if (event.type === "pointerup" && moved <= 4 && held) choose(held);
    if (held && held !== middle) held.held = null;
    held = null;
  }
  canvas.onpointerup = up;
  canvas.onpointercancel = up;
  canvas.onpointerleave = () => { if (!fingers.size) point(null); };
  canvas.onwheel = (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * 0.0015), ...placeOf(event));
  };
  canvas.onkeydown = pressed;
}

const WAYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
function pressed(event) {
  if (event.key in WAYS) walk(...WAYS[event.key]);
  else if (event.key === "Enter") open(chosen);
  else if (event.key === "e" && chosen && !isClusters) expand(chosen);
  else if ("+=".includes(event.key)) zoom(1.3);
  else if (event.key === "-") zoom(1 / 1.3);
  else if (event.key === "0") { isTouched = false; fit(); }
  else if (event.key === "Escape") { chosen = here = null; draw(); }
  else return;
  event.preventDefault();
}

// The nearest node in that direction, and before that the first of all.
function walk(dx, dy) {
  if (!chosen) return tell(nodes[0]);
  const best = nearest((node) => {
    const [x, y] = [node.x - chosen.x, node.y - chosen.y];
    const along = x * dx + y * dy;
    return along > 0 ? along + 2.5 * Math.abs(x * dy + y * dx) : Infinity;
  }, Infinity);
  if (best) tell(best);
}

// --- beside the graph

// New lines of these lists and choices are added.
const LISTS = [".legend", ".drawn", ".relations"];

// What an answer has to draw. The words beside it are shown.
function drawingIn(html) {
  const fresh = parsed(html);
  for (const selector of LISTS) {
    const list = document.querySelector(selector);
    const known = new Set(all("li, option", list).map((line) => line.textContent));
    list.append(...all(`${selector} > *`, fresh).filter((line) => !known.has(line.textContent)));
  }
  figure.querySelector(".legend").hidden = !figure.querySelector(".legend li + li");
  const { drawing } = fresh.querySelector("[data-drawing]").dataset;
  return { caption: fresh.querySelector("figcaption").textContent, ...JSON.parse(drawing) };
}

// A few milliseconds at a time, so that the page answers meanwhile.
function settle(left, then) {
  for (const end = performance.now() + 12; left > 0 && performance.now() < end; left--) {
    heat = Math.max(heat * 0.98, 0.01);
    step(heat);
  }
  if (left > 0) setTimeout(settle, 0, left, then);
  else then();
}

// Takes in the notes and links of an answer. origin: the note around which new ones begin.
function add(answer, origin) {
  const known = new Map(nodes.map((node) => [node.url, node]));
  const byId = new Map();
  for (const node of answer.nodes) {
    if (!known.has(node.url)) {
      if (origin) Object.assign(node, { start: false, ...placeBeside(origin, nodes.length) });
      known.set(node.url, node);
      nodes.push(node);
    }
    byId.set(node.id, known.get(node.url));
  }
  const keyOf = ({ source, target, type }) => [source.url, target.url, type].join(" ");
  const drawn = new Set(links.map(keyOf));
  for (const { from, to, type, weight } of answer.links) {
    const link = { source: byId.get(from), target: byId.get(to), type, weight };
    if (!drawn.has(keyOf(link))) links.push(link);
  }
  near = new Map(nodes.map((node) => [node, new Set()]));
  for (const { source, target } of links) {
    near.get(source).add(target);
    near.get(target).add(source);
  }
}

const placeBeside = ({ x, y }, number) => ({ x: x + 60 * Math.cos(number), y: y + 60 * Math.sin(number) });

function arrange(rounds, then) {
  markHubs();
  placeNodes();
  theme();
  heat = 1;
  settle(rounds, () => {
    then();
    canvas.dataset.drawn = nodes.length;
  });
}

function start(answer) {
  isClusters = answer.clusters;
  add(answer);
  figure.querySelector("figcaption span").textContent = answer.caption;
  canvas.hidden = !nodes.length;
  [wide, high] = [canvas.clientWidth, canvas.clientHeight];
  const [first, second] = nodes.filter((node) => node.start);
  middle = second ? null : first;
  arrange(nodes.length > 400 ? 120 : 260, begin);
}

function begin() {
  size();
  listen();
  if (!isClusters) showTime();
  if (middle) describe(middle);
  new ResizeObserver(size).observe(canvas);
  dark.addEventListener("change", () => { theme(); draw(); });
}

canvas.graph = { view, boxes: () => boxes, nodes: () => nodes };
await painted;
const picture = await part(canvas.dataset.source);
if (picture !== null) start(drawingIn(picture));
