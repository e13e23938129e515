// Finds places for the nodes of a graph, by forces: links pull, all nodes push each other away, each
// node is drawn to its home, and no two overlap. A node begins where its address says, so the same
// graph always gets the same places, and one with a few more nodes nearly the same.

const FRICTION = 0.6;
// Places at which nodes begin, around their home.
const PLACES = 400;
const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));

const hash = (text) => [...text].reduce((sum, sign) => (sum * 31 + sign.codePointAt(0)) >>> 0, 7);

// nodes: get x and y. Each has a radius and a home: its place, and how strong it draws to each side.
// links: with a source, a target and a length.
// push: how strong nodes push each other away. reach: up to which distance.
export function forces(nodes, links, { push, reach }) {
  const degrees = new Map(nodes.map((node) => [node, 0]));
  for (const { source, target } of links) {
    degrees.set(source, degrees.get(source) + 1);
    degrees.set(target, degrees.get(target) + 1);
  }
  nodes.forEach((node, order) => {
    const number = node.url ? hash(node.url) % PLACES : order;
    const far = 10 * Math.sqrt(number + 0.5);
    node.x ??= node.home.x + far * Math.cos(number * GOLDEN_ANGLE);
    node.y ??= node.home.y + far * Math.sin(number * GOLDEN_ANGLE);
    node.vx = 0;
    node.vy = 0;
  });

  function pull({ source, target, length }, heat) {
    const dx = target.x - source.x || 0.01;
    const dy = target.y - source.y;
    const distance = Math.hypot(dx, dy);
    const [from, to] = [degrees.get(source), degrees.get(target)];
    const by = ((distance - length) / distance) * heat / Math.min(from, to);
    const share = from / (from + to);
    target.vx -= dx * by * share;
    target.vy -= dy * by * share;
    source.vx += dx * by * (1 - share);
    source.vy += dy * by * (1 - share);
  }

  function repel(one, other, heat) {
    const dx = one.x - other.x || 0.01;
    const dy = one.y - other.y || 0.01;
    const distance = Math.hypot(dx, dy);
    const least = one.radius + other.radius;
    if (distance > Math.max(reach, least)) return;
    // To be apart counts at any heat.
    const overlap = distance < least ? (least - distance) / distance / 2 : 0;
    const by = (distance < reach ? push * heat / Math.max(distance * distance, 100) : 0) + overlap;
    one.vx += dx * by;
    one.vy += dy * by;
    other.vx -= dx * by;
    other.vy -= dy * by;
  }

  function repelAll(heat) {
    for (let i = 0; i < nodes.length; i++) for (let j = 0; j < i; j++) repel(nodes[i], nodes[j], heat);
  }

  return function step(heat) {
    for (const link of links) pull(link, heat);
    repelAll(heat);
    for (const node of nodes) {
      const { x, y, sideways, upwards } = node.home;
      node.vx = (node.vx + (x - node.x) * sideways * heat) * FRICTION;
      node.vy = (node.vy + (y - node.y) * upwards * heat) * FRICTION;
      node.x = node.held?.x ?? node.x + node.vx;
      node.y = node.held?.y ?? node.y + node.vy;
    }
  };
}
