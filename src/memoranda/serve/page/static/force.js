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
    // Two addresses with one number begin a little apart.
    node.x ??= node.home.x + far * Math.cos(number * GOLDEN_ANGLE) + order / 100;
    node.y ??= node.home.y + far * Math.sin(number * GOLDEN_ANGLE);
    node.vx = 0;
    node.vy = 0;
  });

  // Moves two nodes towards each other. share: the part of the way that the second one goes.
  function attract(one, other, by, share) {
    one.vx += (other.x - one.x) * by * (1 - share);
    one.vy += (other.y - one.y) * by * (1 - share);
    other.vx -= (other.x - one.x) * by * share;
    other.vy -= (other.y - one.y) * by * share;
  }

  const between = (one, other) => Math.hypot(other.x - one.x, other.y - one.y) || 0.01;

  function pull({ source, target, length }, heat) {
    const distance = between(source, target);
    const [from, to] = [degrees.get(source), degrees.get(target)];
    attract(source, target, (1 - length / distance) * heat / Math.min(from, to), from / (from + to));
  }

  function repel(one, other, heat) {
    const distance = between(one, other);
    const least = one.radius + other.radius;
    if (distance > Math.max(reach, least)) return;
    // To be apart counts at any heat.
    const overlap = distance < least ? (least - distance) / distance : 0;
    const by = (distance < reach ? 2 * push * heat / Math.max(distance * distance, 100) : 0) + overlap;
    attract(one, other, -by, 0.5);
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
