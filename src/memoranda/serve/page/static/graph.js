// Draws the graph of a <canvas data-source>, and answers mouse, touch and keys.
import { oneAtATime, painted, part } from "./connection.js";
import { forces } from "./force.js";

const canvas = document.querySelector("canvas[data-source]");
const figure = canvas.closest("figure");
const panel = figure.querySelector(".panel div");
const time = figure.querySelector(".time");
const pen = canvas.getContext("2d");
const dark = matchMedia("(prefers-color-scheme: dark)");
const view = { x: 0, y: 0, k: 1 };
// The largest groups have a colour and a zone of their own, the others share the last.
const PALETTE = ["#4c86b0", "#d08a3a", "#6b9e5b", "#a86a9d", "#c4635b", "#8f8b52", "#5aa0a0", "#7a78c2", "#b8862f", "#c06f96", "#5f9479", "#8a8f98"];
const LAST = PALETTE.length - 1;
// Pixels of the width for each note that is named in bold.
const HUB_WIDTH = 60;
// Labels of a zone and of the whole, and the letters two titles begin with if one label is enough.
const LABELS_OF_ZONE = 4;
const MOST_LABELS = 160;
const ALIKE = 11;
// Pixels of a label's lines.
const LINE_WIDTH = 165;
const LINE_HEIGHT = 15;
// A relation is written at its line if not more lines than this have it.
const NAMED_LINES = 4;
// Notes that the panel offers before one is clicked.
const OFFERED = 8;
const FONT = 'system-ui, "Noto Sans CJK SC", sans-serif';
let nodes = [];
let links = [];
let near = new Map();
let ranks = new Map();
let groups = {};
let zones = [];
let colours = {};
// The note that the graph is about.
let middle = null;
let here = null;
let isTouched = false;
let isClusters = false;
let wide = 0;
let high = 0;
let boxes = [];
let step = () => {};

// --- what is drawn

const sizeOf = (node) => isClusters ? 6 + Math.sqrt(node.size) * 0.9 : Math.min(4 + Math.sqrt(node.size) * 1.6, 18) + (node.start ? 3 : 0);
const rankOf = (cluster) => Math.min(ranks.get(cluster), LAST);
const isRest = (rank) => rank === LAST && ranks.size > PALETTE.length;
const titleOf = (name) => isRest(rankOf(name)) ? "…" : groups[name]?.title ?? name;
// Colours and places follow classes of sizes, so a few new notes leave both as they were.
const classOf = (number) => Math.round(2 * Math.log2(number + 1));

function rankGroups() {
  const counts = new Map();
  for (const node of nodes) counts.set(node.cluster, (counts.get(node.cluster) || 0) + 1);
  const order = [...counts].sort((a, b) => classOf(b[1]) - classOf(a[1]) || (a[0] < b[0] ? -1 : 1));
  ranks = new Map(order.map(([name], rank) => [name, rank]));
}

function markHubs() {
  const sizes = nodes.map((node) => node.size).sort((a, b) => b - a);
  const least = Math.max(sizes[Math.round(wide / HUB_WIDTH)] ?? 0, 3);
  for (const node of nodes) node.isHub = isClusters || node.start || node.size > least;
}

// A whole memory has a zone for each group, so that notes that are alike are not one cloud. The
// group with the most links is in the middle.
function findZones() {
  const byRank = new Map();
  for (const node of nodes) {
    const rank = rankOf(node.cluster);
    if (!byRank.has(rank)) byRank.set(rank, { rank, nodes: [], size: 0 });
    node.zone = byRank.get(rank);
    node.zone.nodes.push(node);
    node.zone.size += node.size;
  }
  for (const zone of byRank.values()) {
    zone.title = titleOf(zone.nodes[0].cluster);
    zone.reach = 34 + 21 * Math.sqrt(zone.nodes.length);
  }
  zones = [...byRank.values()].sort((a, b) => classOf(b.size) - classOf(a.size) || a.rank - b.rank);
  settleZones(0);
  // A name is above its zone. How much room that takes shows once all zones have a place.
  const [left, right] = extent("x");
  settleZones(9 * Math.max((right - left) / wide, 1));
}

function settleZones(room) {
  // Windows of about the same shape have the same picture.
  const shape = wide > 1.1 * high ? 1.3 : 0.8;
  for (const zone of zones) {
    zone.radius = zone.reach + room;
    zone.home = { x: 0, y: 0, sideways: 0.09 / shape, upwards: 0.09 * shape };
  }
  const stepZones = forces(zones, [], { push: 0, reach: 0 });
  for (let round = 0; round < 300; round++) stepZones(round < 200 ? 1 : 0);
}

function placeNodes() {
  const isMany = nodes.length > 600;
  const apart = isMany ? 24 : isClusters ? 90 : 46;
  for (const node of nodes) {
    const isLinked = near.get(node).size > 0;
    node.radius = sizeOf(node) + 5;
    node.home = node.zone
      ? { x: node.zone.x, y: node.zone.y, sideways: 0.14, upwards: 0.14 }
      : { x: 0, y: 0, sideways: isLinked ? 0.04 : 0.12, upwards: isLinked ? 0.07 : 0.16 };
  }
  if (middle) middle.held = { x: 0, y: 0 };
  for (const link of links) {
    link.length = apart + link.source.radius + link.target.radius;
    link.strength = link.source.zone === link.target.zone ? (zones.length ? 0.3 : 1) : 0.01;
  }
  const push = isMany ? 50 : zones.length ? 90 : 260;
  step = forces(nodes, links, { push, reach: zones.length ? 180 : 600 });
}

function theme() {
  const style = getComputedStyle(canvas);
  const soft = getComputedStyle(figure.querySelector("figcaption")).color;
  colours = { text: style.color, soft, ground: style.backgroundColor, line: style.borderTopColor, mark: style.outlineColor };
  for (const node of nodes) node.colour = PALETTE[rankOf(node.cluster)];
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
  const edge = wide < 500 ? 14 : zones.length ? 20 : 60;
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
  const circles = zones.length ? zones : linked.length >= 8 ? linked : nodes;
  const least = Math.min(...circles.map((circle) => circle[axis] - circle.radius));
  const most = Math.max(...circles.map((circle) => circle[axis] + circle.radius));
  return middle ? [Math.min(least, -most), Math.max(most, -least)] : [least, most];
}

const between = (least, number, most) => Math.min(Math.max(number, least), most);
const at = (node) => [node.x * view.k + view.x, node.y * view.k + view.y];
const shown = (node) => sizeOf(node) * between(0.35, view.k, 1.4);

// Notes written after the time chosen are not there yet.
let until = "";
const isThere = (node) => !until || !node.date || node.date <= until;

function draw() {
  pen.clearRect(0, 0, wide, high);
  for (const zone of zones) drawZone(zone);
  const lit = here && near.get(here);
  const litLinks = [];
  for (const link of links) {
    if (!isThere(link.source) || !isThere(link.target)) continue;
    const isLit = here && (link.source === here || link.target === here);
    drawLink(link, isLit);
    if (isLit) litLinks.push(link);
  }
  for (const node of nodes) drawNode(node, lit);
  pen.globalAlpha = 1;
  writeLabels(lit, litLinks);
}

// Links between the same two zones run together, as the wires of a cable.
function drawLink({ source, target, weight = 1 }, isLit) {
  const isAcross = source.zone !== target.zone;
  pen.strokeStyle = isLit ? colours.mark : isAcross ? target.colour : colours.soft;
  pen.globalAlpha = isLit ? 1 : here ? 0.15 : isAcross ? 0.45 : 0.42;
  pen.lineWidth = isLit ? 2 : 1.2 + Math.log2(weight) * 0.6;
  pen.beginPath();
  pen.moveTo(...at(source));
  if (isAcross) pen.bezierCurveTo(...at(source.zone), ...at(target.zone), ...at(target));
  else pen.lineTo(...at(target));
  pen.stroke();
}

function fillCircle(circle, radius, colour) {
  pen.fillStyle = colour;
  pen.beginPath();
  pen.arc(...at(circle), radius, 0, 7);
  pen.fill();
}

function drawZone(zone) {
  pen.globalAlpha = 0.1;
  fillCircle(zone, zone.reach * view.k, PALETTE[zone.rank]);
  pen.globalAlpha = 1;
}

function drawNode(node, lit) {
  if (!isThere(node)) return;
  pen.globalAlpha = lit && node !== here && !lit.has(node) ? 0.35 : 1;
  fillCircle(node, shown(node), node.colour);
  if (!node.start && node !== here) return;
  pen.strokeStyle = node === here ? colours.text : colours.mark;
  pen.lineWidth = 2.5;
  pen.stroke();
}

// --- labels, where there is room: zones, what is pointed at, then what has most links

function roomOnCanvas() {
  const taken = [];
  return {
    take: (box, isCircle = false) => taken.push([...box, isCircle]),
    isFree: ([x, y, w, h], mayCoverCircles = false) => !taken.some(([a, b, c, d, isCircle]) =>
      !(isCircle && mayCoverCircles) && x < a + c && a < x + w && y < b + d && b < y + h),
  };
}

function writeLabels(lit, litLinks) {
  const room = roomOnCanvas();
  boxes = [];
  pen.textAlign = "center";
  const inView = nodes.filter((node) => isThere(node) && isInView(at(node)));
  for (const node of inView) {
    const [x, y] = at(node);
    const r = shown(node) * 0.8;
    room.take([x - r, y - r, 2 * r, 2 * r], true);
  }
  for (const zone of zones) nameZone(zone, room);
  const rank = (node) => (node === here ? 3e6 : lit?.has(node) ? 2e6 : node.start ? 1e6 : node.isHub ? 1e5 : 0) + node.size;
  inView.sort((a, b) => rank(b) - rank(a));
  const named = lit ? inView.filter((node) => node === here || lit.has(node) || node.start) : different(inView);
  for (const node of named.slice(0, MOST_LABELS)) nameNode(node, room, lit);
  nameRelations(litLinks, room);
}

const isInView = ([x, y]) => x >= 0 && y >= 0 && x <= wide && y <= high;

// Of titles that begin alike one is enough, and of a zone a few.
function different(candidates) {
  const beginnings = new Set();
  const numbers = new Map();
  return candidates.filter((node) => {
    const beginning = node.title.slice(0, ALIKE);
    const number = numbers.get(node.zone) ?? 0;
    const hasRoom = !node.zone || number < LABELS_OF_ZONE * Math.max(view.k, 1);
    if (!isClusters && (beginnings.has(beginning) || !hasRoom)) return false;
    numbers.set(node.zone, number + 1);
    return beginnings.add(beginning);
  });
}

// Takes the first of some places that is free, else that covers no more than circles.
function takePlace(places, room, mayCoverCircles = false) {
  const box = places.find((place) => room.isFree(place)) ?? places.find((place) => room.isFree(place, mayCoverCircles));
  if (!box) return null;
  room.take(box);
  boxes.push(box);
  return box;
}

function nameZone(zone, room) {
  pen.font = `600 13px ${FONT}`;
  const [x, y] = at(zone);
  const w = pen.measureText(zone.title).width + 4;
  const left = between(0, x - w / 2, wide - w);
  // Above the zone, below it, or in its middle; best where no circle is.
  const reach = zone.reach * view.k;
  const places = [y - reach - 16, y + reach, y - 8].filter((top) => top >= 0 && top + 16 <= high).map((top) => [left, top, w, 16]);
  const box = takePlace(places, room, true);
  if (box) write(zone.title, left + w / 2, box[1] + 12, PALETTE[zone.rank]);
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

function nameNode(node, room, lit) {
  const [x, y] = at(node);
  const isStrong = node === here || node.isHub;
  pen.font = `${isStrong ? "600 13px" : "12px"} ${FONT}`;
  const lines = linesOf(node.title, wide < 500 ? 0.7 * LINE_WIDTH : LINE_WIDTH);
  const w = Math.max(...lines.map((line) => pen.measureText(line).width)) + 6;
  const h = lines.length * LINE_HEIGHT;
  const r = shown(node) + 2;
  const places = [[x - w / 2, y + r], [x - w / 2, y - r - h], [x + r, y - h / 2], [x - r - w, y - h / 2]]
    .map(([a, b]) => [between(0, a, wide - w), between(0, b, high - h), w, h]);
  // A hub has its name even where that covers circles.
  const box = takePlace(places, room, node.isHub && !zones.length);
  if (!box) return;
  const colour = isStrong || lit ? colours.text : colours.soft;
  lines.forEach((line, number) => write(line, box[0] + w / 2, box[1] + 11 + number * LINE_HEIGHT, colour));
}

// What is alike at every line is said once, beside the graph.
function nameRelations(litLinks, room) {
  const counts = new Map();
  for (const { type } of litLinks) counts.set(type, (counts.get(type) ?? 0) + 1);
  pen.font = `11px ${FONT}`;
  for (const { source, target, type } of litLinks) {
    if (!type || type === "links_to" || counts.get(type) > NAMED_LINES) continue;
    const [a, b] = [at(source), at(target)];
    const text = type.replaceAll("_", " ");
    const w = pen.measureText(text).width + 4;
    const box = takePlace([[(a[0] + b[0] - w) / 2, (a[1] + b[1]) / 2 - 11, w, 14]], room);
    if (box) write(text, box[0] + w / 2, box[1] + 11, colours.text);
  }
}

function write(text, x, y, colour) {
  pen.lineJoin = "round";
  pen.lineWidth = 3.5;
  pen.strokeStyle = colours.ground;
  pen.fillStyle = colour;
  pen.strokeText(text, x, y);
  pen.fillText(text, x, y);
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
  point(node);
  if (!isClusters) describe(node);
}

// Before a note is clicked, the panel has those to begin with.
function offer() {
  const most = different(nodes.filter((node) => node.size).sort((a, b) => b.size - a.size)).slice(0, OFFERED);
  if (!most.length) return;
  panel.append(element("h3", canvas.dataset.most), element("ul", ...most.map((node) => listItem(node.url, node.title))));
}

// At most one question is under way; of several notes the last counts.
let described = null;
const ask = oneAtATime(async () => {
  const node = described;
  const ref = decodeURIComponent(node.url.replace("/page/note/", ""));
  const html = await part(`/page/graph?part=panel&note=${encodeURIComponent(ref)}`);
  if (html !== null && node === described) panel.innerHTML = html;
});

function describe(node) {
  described = node;
  ask();
}

// A note of the panel that is drawn is shown there.
panel.addEventListener("click", (event) => {
  const link = event.target.closest("li a");
  const node = link && nodes.find(({ url }) => new URL(url, location).pathname === new URL(link.href).pathname);
  if (!node || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  tell(node);
});

// --- the time slider walks through the days on which notes were written

function showTime() {
  const days = [...new Set(nodes.map((node) => node.date).filter(Boolean))].sort();
  if (days.length < 3) return;
  const slider = time.querySelector("input");
  slider.max = days.length - 1;
  slider.value = slider.max;
  function tellDay() {
    const day = days[slider.value];
    until = slider.value === slider.max ? "" : day;
    const date = new Date(day).toLocaleDateString(document.documentElement.lang, { dateStyle: "medium", timeZone: "UTC" });
    const number = time.dataset.number.replace("{n}", nodes.filter(isThere).length);
    time.querySelector("output").textContent = `${date} · ${number}`;
  }
  slider.addEventListener("input", () => { tellDay(); draw(); });
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
  else if (event.key === "Enter") open(here);
  else if (event.key === "+" || event.key === "=") zoom(1.3);
  else if (event.key === "-") zoom(1 / 1.3);
  else if (event.key === "0") { isTouched = false; fit(); }
  else if (event.key === "Escape") point(null);
  else return;
  event.preventDefault();
}

// The nearest node in that direction; first of all the one it begins with.
function walk(dx, dy) {
  if (!here) return tell(nodes[0]);
  const best = nearest((node) => {
    const [x, y] = [node.x - here.x, node.y - here.y];
    const along = x * dx + y * dy;
    return along > 0 ? along + 2.5 * Math.abs(x * dy + y * dx) : Infinity;
  }, Infinity);
  if (best) tell(best);
}

// --- beside the graph

function writeCaption(found) {
  const words = canvas.dataset;
  const many = found.nodes.length;
  const caption = !many ? words.none : found.clusters ? words.clusters : many < found.total ? words.some : words.all;
  const total = found.total.toLocaleString("en") + (found.total_is_lower_bound ? "+" : "");
  figure.querySelector("figcaption span").textContent = caption.replace("{n}", total).replace("{m}", many);
  figure.querySelector("details ul").append(...found.nodes.map((node) => listItem(node.url, node.title)));
  const choice = document.querySelector("select[name=type]");
  for (const type of new Set(found.links.map((link) => link.type))) {
    if (choice && type && ![...choice.options].some((option) => option.value === type)) choice.add(new Option(type.replaceAll("_", " "), type));
  }
}

function element(tag, ...content) {
  const made = document.createElement(tag);
  made.append(...content);
  return made;
}

function listItem(address, ...content) {
  const link = element(address ? "a" : "span", ...content);
  if (address) link.href = address;
  return element("li", link);
}

// What the colours mean, with the number of notes of each group.
function writeLegend() {
  if (ranks.size < 2) return;
  const list = figure.querySelector(".legend");
  for (const [name, rank] of [...ranks].slice(0, PALETTE.length)) {
    const dot = element("i");
    dot.style.color = PALETTE[rank];
    const count = isRest(rank) ? 0 : groups[name]?.notes;
    const number = element("b", count?.toLocaleString("en") || "");
    list.append(listItem(count && `/page/graph?cluster=${encodeURIComponent(name)}`, dot, titleOf(name), number));
  }
  list.hidden = false;
}

// A few milliseconds at a time: the page answers meanwhile, and can be left.
function settle(left, then) {
  for (const end = performance.now() + 12; left > 0 && performance.now() < end; left--) {
    heat = Math.max(heat * 0.98, 0.01);
    step(heat);
  }
  if (left > 0) setTimeout(settle, 0, left, then);
  else then();
}

function start(found) {
  ({ nodes, groups = {}, clusters: isClusters } = found);
  const known = new Map(nodes.map((node) => [node.id, node]));
  links = found.links.map(({ from, to, type, weight }) => ({ source: known.get(from), target: known.get(to), type, weight }));
  near = new Map(nodes.map((node) => [node, new Set()]));
  for (const { source, target } of links) {
    near.get(source).add(target);
    near.get(target).add(source);
  }
  writeCaption(found);
  canvas.hidden = !nodes.length;
  [wide, high] = [canvas.clientWidth, canvas.clientHeight];
  rankGroups();
  const [first, second] = nodes.filter((node) => node.start);
  middle = second ? null : first;
  if (!isClusters && !first && ranks.size > 2) findZones();
  markHubs();
  placeNodes();
  theme();
  heat = 1;
  settle(nodes.length > 600 ? 120 : 260, begin);
}

function begin() {
  size();
  canvas.dataset.drawn = nodes.length;
  listen();
  writeLegend();
  if (!isClusters) showTime();
  if (middle) describe(middle);
  else if (!isClusters) offer();
  new ResizeObserver(size).observe(canvas);
  dark.addEventListener("change", () => { theme(); draw(); });
}

canvas.graph = { view, boxes: () => boxes, nodes: () => nodes };
await painted;
const answer = await fetch(canvas.dataset.source, { headers: { Accept: "application/json" } });
const found = await answer.json();
if (found.nodes) start(found);
