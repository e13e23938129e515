// Draws the graph of a <canvas data-source>: d3-force finds the places, this draws them and answers mouse, touch, keys.
"use strict";
(() => {
  const canvas = document.querySelector("canvas[data-source]");
  if (!canvas) return;
  const pen = canvas.getContext("2d"), panel = canvas.parentElement.querySelector(".panel"), time = canvas.parentElement.querySelector(".time");
  const calm = matchMedia("(prefers-reduced-motion: reduce)"), dark = matchMedia("(prefers-color-scheme: dark)");
  const view = { x: 0, y: 0, k: 1 };
  let nodes = [], links = [], colours = {}, near = new Map(), here = null, touched = false, isClusters = false, wide = 0, high = 0;

  const radius = (node) => isClusters ? 6 + Math.sqrt(node.size) * 0.9 : Math.min(4 + Math.sqrt(node.size) * 1.6, 18) + (node.start ? 3 : 0);
  // The largest clusters have a colour of their own, the others share the last one.
  const PALETTE = ["#4c86b0", "#d08a3a", "#6b9e5b", "#a86a9d", "#c4635b", "#8f8b52", "#5aa0a0", "#8a8f98"];
  let ranks = new Map();
  const rankOf = (cluster) => Math.min(ranks.get(cluster) ?? PALETTE.length, PALETTE.length - 1);
  // The notes with by far the most links are named in bold, and always.
  const HUBS = 24;
  function findHubs() {
    const sizes = nodes.map((node) => node.size).sort((a, b) => b - a);
    const least = Math.max(sizes[HUBS] ?? 0, 2 * (sizes[Math.floor(sizes.length / 2)] ?? 0), 3);
    for (const node of nodes) node.isHub = isClusters || node.start || node.size > least;
  }

  function rankClusters() {
    const counts = new Map();
    for (const node of nodes) counts.set(node.cluster, (counts.get(node.cluster) || 0) + 1);
    ranks = new Map([...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([name], rank) => [name, rank]));
  }

  // Notes written after the time chosen are not there yet.
  let until = "";
  const isThere = (node) => !until || !node.date || node.date <= until;

  function theme() {
    const style = getComputedStyle(canvas);
    colours = { text: style.color, soft: getComputedStyle(canvas.parentElement.querySelector("figcaption")).color, ground: style.backgroundColor, line: style.borderTopColor, mark: style.outlineColor };
    for (const node of nodes) node.colour = PALETTE[rankOf(node.cluster)];
  }

  function size() {
    const scale = devicePixelRatio || 1;
    wide = canvas.clientWidth; high = canvas.clientHeight;
    canvas.width = wide * scale; canvas.height = high * scale;
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    touched ? draw() : fit();
  }

  function fit() {
    if (!nodes.length || !wide) return;
    const edge = wide < 500 ? 40 : 70;
    const [[left, right], [top, bottom]] = [middle("x"), middle("y")];
    view.k = Math.min((wide - 2 * edge) / (right - left || 1), (high - edge) / (bottom - top || 1), 1.6);
    view.x = wide / 2 - view.k * (left + right) / 2;
    view.y = high / 2 - view.k * (top + bottom) / 2;
    draw();
  }

  // Where most of what is linked lies: a few notes far out do not make all others small.
  function middle(axis) {
    const linked = nodes.filter((node) => near.get(node).size || node.start);
    const counted = (linked.length >= 8 ? linked : nodes).map((node) => node[axis]).sort((a, b) => a - b);
    const spare = counted.length > 100 ? Math.floor(counted.length * 0.01) : 0;
    return [counted[spare], counted[counted.length - 1 - spare]];
  }

  const at = (node) => [node.x * view.k + view.x, node.y * view.k + view.y];
  const shown = (node) => radius(node) * Math.min(Math.max(view.k, 0.35), 1.4);

  function draw() {
    pen.clearRect(0, 0, wide, high);
    const lit = here && near.get(here);
    const names = [];
    for (const link of links) {
      if (!isThere(link.source) || !isThere(link.target)) continue;
      const [a, b] = [at(link.source), at(link.target)];
      const isLit = here && (link.source === here || link.target === here);
      pen.strokeStyle = isLit ? colours.mark : colours.line;
      pen.globalAlpha = here && !isLit ? 0.35 : 1;
      pen.lineWidth = isLit ? 1.8 : Math.min(1 + Math.log2(link.weight || 1) * 0.6, 6);
      pen.beginPath(); pen.moveTo(...a); pen.lineTo(...b); pen.stroke();
      if (isLit && link.type && link.type !== "links_to" && links.length < 4000) names.push([link.type.replaceAll("_", " "), (a[0] + b[0]) / 2, (a[1] + b[1]) / 2]);
    }
    for (const node of nodes) {
      if (!isThere(node)) continue;
      const [x, y] = at(node);
      pen.globalAlpha = lit && node !== here && !lit.has(node) ? 0.35 : 1;
      pen.fillStyle = node.colour;
      pen.beginPath(); pen.arc(x, y, shown(node), 0, 7); pen.fill();
      if (node.start || node === here) { pen.strokeStyle = node === here ? colours.text : colours.mark; pen.lineWidth = 2.5; pen.stroke(); }
    }
    pen.globalAlpha = 1;
    labels(lit, names);
  }

  // Where labels are, for tests.
  let boxes = [];

  // Labels where there is room: those of what is pointed at first, then of what has most links.
  function labels(lit, names) {
    const taken = new Map(), cell = 24;
    const free = (x, y, w, h, take, overCircles) => {
      for (let i = Math.floor(x / cell); i <= (x + w) / cell; i++)
        for (let j = Math.floor(y / cell); j <= (y + h) / cell; j++) {
          const inCell = taken.get(i * 5000 + j) || [];
          if (!take && inCell.some(([a, b, c, d, isCircle]) => !(isCircle && overCircles) && x < a + c && a < x + w && y < b + d && b < y + h)) return false;
          if (take) taken.set(i * 5000 + j, [...inCell, [x, y, w, h, take === "circle"]]);
        }
      return true;
    };
    for (const node of nodes) {
      if (!isThere(node)) continue;
      const [x, y] = at(node), r = shown(node) * 0.8;
      if (x > 0 && y > 0 && x < wide && y < high) free(x - r, y - r, 2 * r, 2 * r, "circle");
    }
    const rank = (node) => (node === here ? 3e6 : lit?.has(node) ? 2e6 : node.start ? 1e6 : 0) + node.size;
    pen.textAlign = "center";
    boxes = [];
    // So many labels of hubs may cover circles: more would hide what is alike in one cloud.
    let left = lit ? 160 : 60, over = 6;
    for (const node of [...nodes].sort((a, b) => rank(b) - rank(a))) {
      const [x, y] = at(node), strong = node === here || node.isHub;
      if (x < 0 || y < 0 || x > wide || y > high || !isThere(node)) continue;
      if (here && node !== here && !lit.has(node) && !node.start) continue;
      pen.font = `${strong ? "600 13px" : "12px"} system-ui, "Noto Sans CJK SC", sans-serif`;
      const most = node === here ? 60 : 28;
      const text = node.title.length > most ? node.title.slice(0, most - 1) + "…" : node.title;
      const w = pen.measureText(text).width + 4, r = shown(node) + 2;
      const places = [[x - w / 2, y + r], [x - w / 2, y - r - 15], [x + r, y - 8], [x - r - w, y - 8]]
        .map(([a, b]) => [Math.min(Math.max(a, 0), wide - w), b]);
      const place = places.find(([a, b]) => free(a, b, w, 15)) ?? (strong && !isClusters && over-- > 0 && places.find(([a, b]) => free(a, b, w, 15, false, true)));
      if (!place) continue;
      free(...place, w, 15, true);
      boxes.push([...place, w, 15]);
      write(text, place[0] + w / 2, place[1] + 11, strong || lit ? colours.text : colours.soft);
      if (--left <= 0) break;
    }
    pen.font = "11px system-ui, sans-serif";
    for (const [text, x, y] of names) {
      const w = pen.measureText(text).width + 4;
      if (!free(x - w / 2, y - 11, w, 14)) continue;
      free(x - w / 2, y - 11, w, 14, true);
      write(text, x, y, colours.text);
    }
  }

  function write(text, x, y, colour) {
    pen.lineJoin = "round"; pen.lineWidth = 3.5; pen.strokeStyle = colours.ground; pen.fillStyle = colour;
    pen.strokeText(text, x, y); pen.fillText(text, x, y);
  }

  function point(node) {
    if (node === here) return;
    here = node;
    canvas.classList.toggle("over", !!node);
    draw();
  }

  const placed = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  function under([x, y], slack = 6) {
    let best = null, least = Infinity;
    for (const node of nodes) {
      if (!isThere(node)) continue;
      const [a, b] = at(node), far = Math.hypot(a - x, b - y) - shown(node);
      if (far < slack && far < least) { best = node; least = far; }
    }
    return best;
  }
  const open = (node) => { if (node) location.href = node.url; };

  // A click shows a note beside the graph; a cluster opens.
  function choose(node) {
    if (isClusters) return open(node);
    tell(node);
  }
  function tell(node) {
    point(node);
    if (isClusters) return;
    panel.hidden = false;
    panel.querySelector("h2").textContent = node.title;
    panel.querySelector("p").textContent = [node.cluster, node.date].filter(Boolean).join(" · ");
    panel.querySelector(".open").href = node.url;
    panel.querySelector(".around").href = `/page/graph?note=${encodeURIComponent(decodeURIComponent(node.url.replace("/page/note/", "")))}`;
    panel.querySelector("ul").replaceChildren(...[...near.get(node)].slice(0, 30).map((other) => {
      const item = document.createElement("li"), button = item.appendChild(document.createElement("button"));
      button.type = "button"; button.textContent = other.title;
      button.addEventListener("click", () => choose(other));
      return item;
    }));
    uncover(node);
  }

  // Moves the graph aside where the panel is over the note or its neighbours.
  function uncover(node) {
    if (getComputedStyle(panel).position !== "absolute") return;
    const right = Math.max(...[node, ...near.get(node)].filter(isThere).map((other) => at(other)[0] + 60));
    const by = Math.min(right - (wide - panel.offsetWidth - 24), at(node)[0] - 80);
    if (by <= 0) return;
    view.x -= by; touched = true; draw();
  }

  // The slider walks through the days on which notes were written.
  function tellTime() {
    const days = [...new Set(nodes.map((node) => node.date).filter(Boolean))].sort();
    if (days.length < 3) return;
    const slider = time.querySelector("input");
    slider.max = days.length - 1; slider.value = days.length - 1;
    time.querySelector("output").textContent = days[days.length - 1];
    slider.addEventListener("input", () => {
      const last = Number(slider.value) === days.length - 1;
      until = last ? "" : days[slider.value];
      time.querySelector("output").textContent = days[slider.value];
      draw();
    });
    time.hidden = false;
  }
  function zoom(by, x = wide / 2, y = high / 2) {
    const k = Math.min(Math.max(view.k * by, 0.03), 8);
    view.x = x - (x - view.x) * k / view.k; view.y = y - (y - view.y) * k / view.k; view.k = k;
    touched = true; draw();
  }

  function listen(moving) {
    const fingers = new Map();
    let held = null, moved = 0;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, placed(event));
      held = under(placed(event), event.pointerType === "touch" ? 14 : 6); moved = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      const now = placed(event), before = fingers.get(event.pointerId);
      if (!before) return point(under(now));
      fingers.set(event.pointerId, now);
      const [dx, dy] = [now[0] - before[0], now[1] - before[1]];
      moved += Math.abs(dx) + Math.abs(dy);
      if (fingers.size === 2) {
        const other = [...fingers].find(([id]) => id !== event.pointerId)[1];
        zoom(Math.hypot(now[0] - other[0], now[1] - other[1]) / (Math.hypot(before[0] - other[0], before[1] - other[1]) || 1), ...other);
      } else if (held && moved > 4) {
        held.fx = (now[0] - view.x) / view.k; held.fy = (now[1] - view.y) / view.k;
        touched = true; moving.alpha(Math.max(moving.alpha(), 0.15)).restart();
      } else if (moved > 4) { view.x += dx; view.y += dy; touched = true; draw(); }
    });
    const up = (event) => {
      if (!fingers.delete(event.pointerId)) return;
      if (event.type === "pointerup" && moved <= 4 && held) choose(held);
      if (held) held.fx = held.fy = null;
      held = null;
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("pointerleave", () => { if (!fingers.size) point(null); });
    canvas.addEventListener("wheel", (event) => { event.preventDefault(); zoom(Math.exp(-event.deltaY * 0.0015), ...placed(event)); }, { passive: false });
    const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    canvas.addEventListener("keydown", (event) => {
      if (event.key in ways) walk(...ways[event.key]);
      else if (event.key === "Enter") open(here);
      else if (event.key === "+" || event.key === "=") zoom(1.3);
      else if (event.key === "-") zoom(1 / 1.3);
      else if (event.key === "0") { touched = false; fit(); }
      else if (event.key === "Escape") { point(null); panel.hidden = true; }
      else return;
      event.preventDefault();
    });
  }

  // The caption, the list, and the relations one can choose.
  function describe(found) {
    const words = canvas.dataset, many = found.nodes.length, figure = canvas.parentElement;
    canvas.hidden = !many;
    const said = !many ? words.none : found.clusters ? words.clusters : many < found.total ? words.some : words.all;
    const total = found.total.toLocaleString("en") + (found.total_is_lower_bound ? "+" : "");
    figure.querySelector("figcaption span").textContent = said.replace("{n}", total).replace("{m}", many);
    figure.querySelector("details ul").append(...found.nodes.map((node) => {
      const item = document.createElement("li"), link = item.appendChild(document.createElement("a"));
      link.href = node.url; link.textContent = node.title;
      return item;
    }));
    const choice = document.querySelector("select[name=type]");
    for (const type of new Set(found.links.map((each) => each.type)))
      if (choice && type && ![...choice.options].some((each) => each.value === type)) choice.add(new Option(type, type));
  }

  // What the colours mean: the largest clusters.
  function legend() {
    const list = canvas.parentElement.querySelector(".legend");
    if (ranks.size < 2) return;
    for (const [name, rank] of [...ranks].slice(0, PALETTE.length)) {
      const item = list.appendChild(document.createElement("li")), dot = item.appendChild(document.createElement("i"));
      dot.className = `i${rank}`;
      item.append(rank === PALETTE.length - 1 && ranks.size > PALETTE.length ? "…" : name);
    }
    list.hidden = false;
  }

  // The nearest node in that direction; first of all the one it begins with.
  function walk(dx, dy) {
    if (!here) return tell(nodes[0]);
    let best = null, least = Infinity;
    for (const node of nodes) {
      const x = node.x - here.x, y = node.y - here.y, along = x * dx + y * dy;
      if (along <= 0) continue;
      const far = along + 2.5 * Math.abs(x * dy + y * dx);
      if (far < least) { best = node; least = far; }
    }
    if (best) tell(best);
  }

  // A few milliseconds at a time: the page answers meanwhile, and can be left.
  function settle(moving, left, then) {
    for (const end = performance.now() + 12; left > 0 && performance.now() < end; left--) moving.tick();
    left > 0 ? setTimeout(settle, 0, moving, left, then) : then();
  }

  fetch(canvas.dataset.source, { headers: { Accept: "application/json" } }).then((answer) => answer.json()).then((found) => {
    if (!found.nodes) return;
    describe(found);
    nodes = found.nodes; isClusters = found.clusters;
    const known = new Map(nodes.map((each) => [each.id, each]));
    links = found.links.map((each) => ({ source: known.get(each.from), target: known.get(each.to), type: each.type, weight: each.weight }));
    near = new Map(nodes.map((each) => [each, new Set()]));
    for (const { source, target } of links) { near.get(source).add(target); near.get(target).add(source); }
    const many = nodes.length > 600, apart = many ? 24 : isClusters ? 90 : 46;
    const moving = d3.forceSimulation(nodes).stop()
      .force("links", d3.forceLink(links).distance((each) => apart + radius(each.source) + radius(each.target)))
      .force("apart", d3.forceManyBody().strength(many ? -50 : -260).distanceMax(600).theta(many ? 1.2 : 0.9))
      .force("touch", d3.forceCollide((each) => radius(each) + 5))
      .force("x", d3.forceX().strength((each) => near.get(each).size ? 0.04 : 0.12))
      .force("y", d3.forceY().strength((each) => near.get(each).size ? 0.07 : 0.16));
    moving.on("tick", () => touched ? draw() : fit());
    moving.on("end", () => { canvas.dataset.drawn = nodes.length; });
    rankClusters();
    findHubs();
    theme();
    if (!isClusters) tellTime();
    settle(moving, (many ? 40 : 120) + (calm.matches ? 150 : 0), () => {
      size();
      if (calm.matches) canvas.dataset.drawn = nodes.length;
      else moving.alpha(0.3).alphaDecay(0.05).restart();
      listen(moving);
      legend();
      new ResizeObserver(size).observe(canvas);
      dark.addEventListener("change", () => { theme(); draw(); });
    });
    canvas.graph = { view, boxes: () => boxes, at: (title) => { const node = nodes.find((each) => each.title === title); return node && at(node); } };
  });
})();
