// SPDX-License-Identifier: Apache-2.0
// What replies are made by: the form's fields, and what the server allows of them.

const at = (id) => document.getElementById(id);

const kAlpha = { key: "alpha", min: -1, max: 1, step: 0.01, value: 0.3 };
// Of each kind of rule its number and what it does; docs/cascades.md describes them.
const kRules = {
  exact: { hint: "The text is the model's own; the drafter decides how fast it comes." },
  chow: { ...kAlpha, hint: "The drafter's where it is sure enough: the larger, the more." },
  diff: { ...kAlpha, hint: "The drafter's unless the model is surer by more than this." },
  opt: { ...kAlpha, hint: "As diff, at a price that falls where the two agree." },
  "token-v1": { ...kAlpha, hint: "The drafter's tokens that it finds about as likely as the model its best one." },
  "token-v2": { ...kAlpha, hint: "The drafter's tokens that are about as likely as the model's best one." },
  "token-v3": { ...kAlpha, hint: "The drafter's tokens that reach a share of the model's best one: the larger, the faster." },
  lossy: { ...kAlpha, min: 0, max: 0.99, hint: "Drafted tokens stand more often than the model's law says; 0 is the model's." },
  "lossy-greedy": { ...kAlpha, hint: "For temperature 0: a drafted token stands if it is nearly the likeliest." },
  lenience: { key: "eps", min: 0.01, max: 1, step: 0.01, value: 0.5, hint: "The smaller, the more drafted tokens stand; 1 is the model's." },
  budget: { key: "kl", min: 0, max: 2, step: 0.01, value: 0.1, hint: "As far from the model as this divergence a token, in nats." },
  "bild-sampled": { key: "alpha", min: 0, max: 10, step: 0.1, value: 1, hint: "The model's where the two lie apart by more than this." },
  typical: { key: "epsilon", min: 0.01, max: 1, step: 0.01, value: 0.09, hint: "Drafted tokens stand where they are not unlikely." },
  bild: { key: "rollback", min: 0, max: 20, step: 0.1, value: 5, hint: "For temperature 0: the model takes over where it finds a token too unlikely." },
};

const kShapes = {
  "": "the drafter's own",
  "chain:length=3": "3 in a row",
  "chain:length=5": "5 in a row",
  "chain:length=8": "8 in a row",
  "widths:2,2,1,1": "a tree of 14, two wide",
  "widths:3,2,1": "a tree of 15, three wide",
  "dynamic:total=20,depth=5,topk=4": "a tree of 20, where the drafter is sure",
};

let own = null; // the extension field of the server's model

function option(value, text = value) {
  const element = document.createElement("option");
  element.value = value;
  element.textContent = text;
  return element;
}

// The rules of the drafter that is chosen; one that both drafters allow stays.
function listRules() {
  const drafter = own.drafters.find((one) => one.drafter === at("drafter").value);
  const before = at("rule").value || own.rule;
  const rules = drafter ? drafter.rules.filter((name) => kRules[name]) : ["exact"];
  at("rule").replaceChildren(...rules.map((name) => option(name)));
  // What the server was started with may be more than a kind and its number.
  if (drafter && own.rule !== "exact") at("rule").prepend(option(own.rule, `${own.rule} (the server's)`));
  at("rule").value = [...at("rule").options].some((one) => one.value === before) ? before : "exact";
  takeRule();
}

function takeRule() {
  const rule = kRules[at("rule").value];
  at("alpha-label").hidden = !rule?.key;
  if (!rule?.key) return;
  at("alpha-name").textContent = rule.key;
  for (const name of ["min", "max", "step", "value"]) at("alpha")[name] = rule[name];
}

// The values beside the sliders, and what they mean.
export function sayChosen() {
  at("alpha-value").textContent = at("alpha").value;
  at("temperature-value").textContent = Number(at("temperature").value) === 0 ? "0, always the likeliest token" : at("temperature").value;
  at("rule-hint").textContent = kRules[at("rule").value]?.hint ?? "";
  const off = !at("speculates").checked;
  for (const id of ["drafter", "shape", "rule", "alpha", "adaptive"]) at(id).disabled = off;
}

export function applyModel(extension) {
  own = extension;
  at("temperature").value = own.temperature;
  at("drafter").replaceChildren(...own.drafters.map((one) => option(one.drafter)));
  if (own.drafters.length === 0) {
    at("drafter").append(option("none", "none: the server was started without"));
    at("speculates").checked = false;
    at("speculates").disabled = true;
  }
  at("shape").replaceChildren(...Object.entries(kShapes).map(([spec, text]) => option(spec, text)));
  listRules();
  sayChosen();
}

export function readSettings() {
  const rule = kRules[at("rule").value];
  const number = (id) => (at(id).value.trim() === "" ? null : Number(at(id).value));
  const spec = rule?.key ? `${at("rule").value}:${rule.key}=${at("alpha").value}` : at("rule").value;
  const speculation = { drafter: at("drafter").value, rule: spec, adaptive: at("adaptive").checked };
  if (at("shape").value) speculation.tree = at("shape").value;
  return {
    temperature: Number(at("temperature").value),
    maxTokens: number("max-tokens") ?? 256,
    seed: number("seed"),
    system: at("system").value.trim(),
    speculation: at("speculates").checked && speculation,
  };
}

at("drafter").addEventListener("input", listRules);
at("rule").addEventListener("input", takeRule);
