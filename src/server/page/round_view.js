// SPDX-License-Identifier: Apache-2.0
// The pictures of rounds: a draft as a tree, and figures as lines.

const kSpace = "http://www.w3.org/2000/svg";
const kFont = '12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace';
const kRow = 28; // between leaves
const kPill = 22; // height of a token
const kGap = 22; // between columns
const kLeastScale = 0.6; // a wider tree is scrolled
const kMostLetters = 18;

const ruler = document.createElement("canvas").getContext("2d");
ruler.font = kFont;

export const kHow = {
  accepted: "drafted, and it stands",
  corrected: "in place of a rejected draft",
  bonus: "behind a draft that stands whole",
  plain: "without a draft",
  rejected: "drafted, and it does not stand",
};

// A token with its blanks and line breaks visible.
export function visible(text) {
  if (text === "") return "∅";
  return text.replace(/\n/g, "↵").replace(/\t/g, "⇥").replace(/ /g, "·");
}

function shape(name, attributes, parent) {
  const element = document.createElementNS(kSpace, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  parent?.append(element);
  return element;
}

// The round's tokens as nodes, each behind its parent: the root, the draft, the verifier's token.
function nodesOf(round) {
  const nodes = [{ text: round.rootText, how: "root", parent: -1 }];
  const draft = round.draft ?? { tokens: [], parents: [], accepted: [] };
  const stands = new Set(draft.accepted);
  let last = 0;
  draft.tokens.forEach((text, index) => {
    const how = stands.has(index) ? "accepted" : "rejected";
    if (how === "accepted") last = index + 1;
    nodes.push({ text, how, parent: draft.parents[index] + 1 });
  });
  const own = round.tokens.find((token) => token.origin !== "accepted");
  if (own) nodes.push({ text: own.token, how: own.origin, parent: last });
  return nodes;
}

function place(nodes) {
  const widths = []; // of each column
  nodes.forEach((node, index) => {
    const letters = [...visible(node.text)];
    node.label =
      letters.length > kMostLetters ? `${letters.slice(0, kMostLetters - 1).join("")}…` : letters.join("");
    node.width = Math.ceil(ruler.measureText(node.label).width) + 14;
    node.depth = index === 0 ? 0 : nodes[node.parent].depth + 1;
    node.children = [];
    if (index > 0) nodes[node.parent].children.push(node);
    widths[node.depth] = Math.max(widths[node.depth] ?? 0, node.width);
  });
  const lefts = [0];
  widths.forEach((width, depth) => lefts.push(lefts[depth] + width + kGap));
  let nLeaves = 0;
  const settle = (node) => {
    node.left = lefts[node.depth];
    node.children.forEach(settle);
    // A parent stands beside its first child: the path of first choices is a straight line.
    node.middle = node.children.length > 0 ? node.children[0].middle : (nLeaves++ + 0.5) * kRow;
  };
  settle(nodes[0]);
  return { width: lefts.at(-1) - kGap, height: nLeaves * kRow };
}

function sayTree(nodes) {
  const named = (how) => nodes.filter((node) => node.how === how).map((node) => visible(node.text));
  const drafted = nodes.filter((node) => node.how === "accepted" || node.how === "rejected");
  const own = nodes.find((node) => !["root", "accepted", "rejected"].includes(node.how));
  const said = [`${drafted.length} tokens drafted, ${named("accepted").length} of them stand`];
  if (named("accepted").length > 0) said.push(`these stand: ${named("accepted").join(" ")}`);
  if (own) said.push(`${own.how}: ${visible(own.text)}`);
  return said.join("; ");
}

export function drawTree(container, round) {
  const nodes = nodesOf(round);
  const { width, height } = place(nodes);
  const picture = shape("svg", {
    viewBox: `-2 -2 ${width + 4} ${height + 4}`,
    width: width + 4,
    height: height + 4,
    role: "img",
    "aria-label": sayTree(nodes),
  });
  for (const node of nodes.slice(1)) {
    const from = nodes[node.parent];
    const x = from.left + from.width;
    const bend = (x + node.left) / 2;
    shape(
      "path",
      {
        class: `edge ${node.how}`,
        d: `M${x} ${from.middle}C${bend} ${from.middle} ${bend} ${node.middle} ${node.left} ${node.middle}`,
      },
      picture,
    );
  }
  for (const node of nodes) {
    const group = shape("g", { class: `node ${node.how}` }, picture);
    const rank = node.how === "root" ? 0 : nodes[node.parent].children.indexOf(node);
    const said =
      node.how === "root" ? "where the round began" : `${kHow[node.how]}${rank > 0 ? `, proposal ${rank + 1}` : ""}`;
    shape("title", {}, group).textContent = `${visible(node.text)}: ${said}`;
    shape(
      "rect",
      { x: node.left, y: node.middle - kPill / 2, width: node.width, height: kPill, rx: 6 },
      group,
    );
    shape("text", { x: node.left + 7, y: node.middle + 4 }, group).textContent = node.label;
  }
  picture.style.minWidth = `${Math.ceil(width * kLeastScale)}px`;
  container.replaceChildren(picture);
}

// Values as a line from 0 up; those that are null leave a gap.
export function drawPlot(container, values, name) {
  const known = values.filter((value) => value !== null);
  const most = Math.max(...known, 1e-9);
  const picture = shape("svg", {
    viewBox: "0 0 100 40",
    preserveAspectRatio: "none",
    role: "img",
    "aria-label":
      known.length === 0 ? `${name}: nothing yet` : `${name} over ${values.length} rounds, at most ${short(most)}`,
  });
  shape("path", { class: "axis", d: "M0 39.5H100" }, picture);
  const step = values.length > 1 ? 100 / (values.length - 1) : 0;
  let path = "";
  let begins = true;
  values.forEach((value, index) => {
    if (value === null) {
      begins = true;
      return;
    }
    path += `${begins ? "M" : "L"}${(index * step).toFixed(2)} ${(39 - (27 * value) / most).toFixed(2)}`;
    begins = false;
  });
  if (path) shape("path", { class: "line", d: path }, picture);
  const top = document.createElement("span");
  top.className = "top";
  top.textContent = known.length > 0 ? short(most) : "";
  container.replaceChildren(picture, top);
}

export function short(value) {
  if (value === null || value === undefined) return "–";
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
