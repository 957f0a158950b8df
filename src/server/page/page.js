// SPDX-License-Identifier: Apache-2.0
// The page: a conversation, how its tokens came, and what it is to be made by.
import * as api from "./api.js";
import { drawPlot, drawTree, kHow, short, visible } from "./round_view.js";
import { applyModel, readSettings, sayChosen } from "./settings.js";

const kWindow = 8; // rounds that a point of a plot stands for

const at = (id) => document.getElementById(id);

const kNoToken = at("token-facts").textContent;

let model = null;
let turns = []; // {role, content}
let running = null; // AbortController of the reply that comes
let watched = null; // the reply whose rounds are shown
let followsRounds = true; // the last round is shown as it comes
let selected = null; // element of a token

// ---- Replies

// A reply and what is known of its rounds.
class Reply {
  constructor() {
    this.content = "";
    this.reasoning = "";
    this.shown = ""; // text of the tokens
    this.waiting = []; // tokens whose text is not certain yet
    this.rounds = [];
    this.statistics = null;
    this.reason = null;
    this.element = turnElement("assistant");
    this.text = this.element.querySelector(".text");
    this.text.tabIndex = 0;
    this.text.setAttribute("aria-label", "Reply; the arrow keys go through its tokens");
    this.element.setAttribute("aria-busy", "true");
    this.text.addEventListener("keydown", (event) => this.walk(event));
    this.text.addEventListener("click", (event) => {
      if (event.target.matches(".token")) select(event.target);
    });
  }

  take(choice) {
    this.content += choice.delta?.content ?? choice.text ?? "";
    this.reasoning += choice.delta?.reasoning_content ?? "";
    this.reason = choice.finish_reason ?? this.reason;
    if (!choice.trace) return;
    for (const part of choice.trace.rounds) this.takeRound(part);
    this.statistics = choice.trace.statistics;
  }

  takeRound(part) {
    let round = this.rounds.at(-1);
    if (!round || round.number !== part.round) {
      const before = round?.tokens.at(-1)?.token ?? "…";
      const { draft = null, seconds = 0 } = part;
      round = { number: part.round, draft, seconds, tokens: [], rootText: before };
      this.rounds.push(round);
    }
    for (const token of part.tokens) {
      round.tokens.push(token);
      this.shown += token.text;
      this.waiting.push({ token, round });
      if (token.text === "") continue;
      // Text that became certain with this token: each one's own, if that is what it is made of.
      const isEach = this.waiting.map((one) => one.token.token).join("") === token.text;
      const shown = isEach ? this.waiting : [{ token, round, text: token.text }];
      for (const one of shown) this.show(one.token, one.round, one.text ?? one.token.token);
      this.waiting = [];
    }
  }

  show(token, round, text) {
    const element = document.createElement("span");
    element.className = `token ${token.origin}`;
    element.textContent = text;
    element.title = factsOf(token, round);
    element.round = round;
    element.reply = this;
    this.text.append(element);
  }

  // What came without its tokens: text that was held back to the end.
  end(note) {
    if (this.shown === "") this.text.append(this.content);
    else if (this.content.startsWith(this.shown)) this.text.append(this.content.slice(this.shown.length));
    this.element.removeAttribute("aria-busy");
    const facts = this.element.querySelector(".reply-facts");
    const statistics = this.statistics;
    const parts = [note].filter(Boolean);
    if (statistics) {
      parts.push(
        `${statistics.tokens} tokens in ${statistics.rounds} rounds`,
        `${short(statistics.tokens_per_second)} tokens/s`,
        `tau ${short(statistics.tau)}`,
      );
      if (statistics.drafted > 0) parts.push(`${statistics.accepted} of ${statistics.drafted} drafted tokens stand`);
    }
    facts.textContent = parts.join(" · ");
  }

  walk(event) {
    const tokens = [...this.text.querySelectorAll(".token")];
    const here = tokens.indexOf(selected);
    const next = { ArrowRight: here + 1, ArrowLeft: here < 0 ? tokens.length - 1 : here - 1, Home: 0, End: tokens.length - 1 }[event.key];
    if (next === undefined || !tokens[next]) return;
    event.preventDefault();
    select(tokens[next]);
    tokens[next].scrollIntoView({ block: "nearest" });
  }
}

function factsOf(token, round) {
  const rank = token.rank === undefined ? "" : `, the drafter's proposal ${token.rank + 1} for its place`;
  return `“${visible(token.token)}” ${token.origin}: ${kHow[token.origin]}${rank}; round ${round.number}`;
}

function turnElement(role) {
  const element = document.createElement("article");
  element.className = `turn ${role}`;
  const name = document.createElement("h3");
  name.textContent = role === "user" ? "You" : model.outrider.chat ? "Reply" : "Continuation";
  const text = document.createElement("div");
  text.className = "text";
  const facts = document.createElement("p");
  facts.className = "reply-facts hint";
  element.append(name, text, facts);
  at("empty").hidden = true;
  at("log").append(element);
  return element;
}

// ---- Rounds

function deselect() {
  selected?.classList.remove("selected");
  selected = null;
  at("token-facts").textContent = kNoToken;
}

function select(element) {
  deselect();
  selected = element;
  element.classList.add("selected");
  at("token-facts").textContent = element.title;
  followsRounds = false;
  watched = element.reply;
  showRound(watched.rounds.indexOf(element.round));
  showPlots();
}

function showRound(index) {
  const rounds = watched.rounds;
  if (rounds.length === 0) return;
  const round = rounds[index];
  const slider = at("round");
  slider.disabled = rounds.length < 2;
  slider.max = rounds.length;
  slider.value = index + 1;
  at("round-name").textContent = `${round.number} of ${rounds.length}${round.draft ? "" : ", no draft"}`;
  drawTree(at("tree"), round);
}

const kNothing = { tokens: 0, rounds: 0, drafted: 0, accepted: 0, seconds: 0 };

// What all rounds up to each of them came to.
function sums(rounds) {
  let sum = kNothing;
  return rounds.map((round) => {
    const nAccepted = round.tokens.filter((token) => token.origin === "accepted").length;
    sum = {
      tokens: sum.tokens + round.tokens.length,
      rounds: sum.rounds + 1,
      drafted: sum.drafted + (round.draft?.tokens.length ?? 0),
      accepted: sum.accepted + nAccepted,
      seconds: round.seconds,
    };
    return sum;
  });
}

// Of each round the figure of the rounds that end with it; `from`: what stands before the first.
function overRounds(summed, figure, from = kNothing) {
  return summed.map((sum, index) => figure(sum, summed[index - kWindow] ?? from));
}
const per = (amount, of) => (of > 0 ? amount / of : null);
const rateOf = (now, before) => per(now.tokens - before.tokens, now.seconds - before.seconds);
const tauOf = (now, before) => per(now.tokens - before.tokens, now.rounds - before.rounds);
const acceptanceOf = (now, before) => per(now.accepted - before.accepted, now.drafted - before.drafted);

function showPlots() {
  const last = watched.statistics;
  at("rate").textContent = short(last?.tokens_per_second);
  at("tau").textContent = short(last?.tau);
  at("acceptance").textContent = short(last?.acceptance);
  const summed = sums(watched.rounds);
  // Time is counted from the first round's end.
  drawPlot(at("rate-plot"), overRounds(summed, rateOf, summed[0]), "tokens a second");
  drawPlot(at("tau-plot"), overRounds(summed, tauOf), "tau");
  drawPlot(at("acceptance-plot"), overRounds(summed, acceptanceOf), "acceptance");
}

// Pictures follow the screen's pace, however fast chunks come.
let drawing = 0;
function showLive() {
  if (drawing) return;
  drawing = requestAnimationFrame(() => {
    drawing = 0;
    if (!watched || watched.rounds.length === 0) return;
    if (followsRounds) showRound(watched.rounds.length - 1);
    else at("round").max = watched.rounds.length;
    showPlots();
  });
}

// ---- Asking

function showError(message) {
  at("error").textContent = message;
  at("error").hidden = message === "";
}

function setRunning(controller) {
  running = controller;
  at("stop").disabled = controller === null;
  at("send").disabled = controller !== null;
}

function requestOf(settings) {
  const body = {
    model: model.id,
    stream: true,
    trace: true,
    temperature: settings.temperature,
    max_tokens: settings.maxTokens,
    speculation: settings.speculation,
  };
  if (settings.seed !== null) body.seed = settings.seed;
  if (!model.outrider.chat) {
    body.prompt = turns.map((turn) => turn.content).join("");
    return ["/v1/completions", body];
  }
  const system = settings.system ? [{ role: "system", content: settings.system }] : [];
  body.messages = [...system, ...turns];
  return ["/v1/chat/completions", body];
}

// The log stays at its end unless the reader has scrolled up.
function followingLog(change) {
  const log = at("log");
  const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 60;
  change();
  if (isAtEnd) log.scrollTop = log.scrollHeight;
}

async function send() {
  const message = at("message").value;
  if (running || message.trim() === "") return;
  if (!model) return begin(); // no key yet, or no server
  showError("");
  const controller = new AbortController();
  setRunning(controller);
  const asked = turnElement("user");
  asked.querySelector(".text").textContent = message;
  turns.push({ role: "user", content: message });
  at("message").value = "";
  const [path, body] = requestOf(readSettings());
  const reply = new Reply();
  deselect();
  watched = reply;
  followsRounds = true;
  at("log").scrollTop = at("log").scrollHeight;
  let note = "";
  try {
    await api.stream(path, body, controller.signal, (chunk) => {
      if (chunk.choices.length === 0) return;
      followingLog(() => reply.take(chunk.choices[0]));
      showLive();
    });
    if (reply.reason === "length") note = "ended at the limit of tokens";
  } catch (error) {
    if (error.name === "AbortError") {
      note = "stopped";
    } else {
      note = "broken off";
      showError(error.message);
      if (error.status === 401) askKey(true);
    }
  }
  if (running !== controller) return; // cleared in the meantime
  if (reply.content === "" && reply.rounds.length === 0 && note !== "") {
    // Nothing came: the message is there to be sent again.
    reply.element.remove();
    asked.remove();
    turns.pop();
    if (at("message").value === "") at("message").value = message;
    at("empty").hidden = turns.length > 0;
  } else {
    followingLog(() => reply.end(note));
    turns.push({ role: "assistant", content: reply.content });
    showLive();
  }
  setRunning(null);
}

function stop() {
  running?.abort();
}

function clearTalk() {
  stop();
  setRunning(null);
  turns = [];
  watched = null;
  deselect();
  for (const turn of at("log").querySelectorAll(".turn")) turn.remove();
  at("empty").hidden = false;
  showError("");
  at("tree").replaceChildren();
  at("round-name").textContent = "none yet";
  at("round").disabled = true;
  for (const name of ["rate", "tau", "acceptance"]) {
    at(name).textContent = "–";
    at(`${name}-plot`).replaceChildren();
  }
  at("message").focus();
}

// ---- Beginning

function askKey(isWrong) {
  at("key-problem").hidden = !isWrong || api.key.get() === "";
  at("key").value = "";
  if (!at("key-dialog").open) at("key-dialog").showModal();
}

async function begin() {
  showError("");
  try {
    model = await api.model();
  } catch (error) {
    if (error.status === 401) return askKey(true);
    at("model").textContent = "";
    return showError(error.message);
  }
  at("model").textContent = `${model.id}, context of ${model.outrider.context.toLocaleString("en")} tokens`;
  if (!model.outrider.chat) {
    at("notice").hidden = false;
    at("notice").textContent =
      "This model has no chat template. The page lets it continue your text (/v1/completions): what you send is " +
      "added to the text so far, and there is no system prompt.";
    at("system-label").hidden = true;
    at("message").placeholder = "Text to be continued";
  }
  applyModel(model.outrider);
  at("message").focus();
}

at("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  send();
});
at("message").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  send();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && running) stop();
});
at("stop").addEventListener("click", stop);
at("clear").addEventListener("click", clearTalk);
at("round").addEventListener("input", () => {
  if (!watched) return;
  followsRounds = Number(at("round").value) === watched.rounds.length;
  showRound(Number(at("round").value) - 1);
});
at("settings").addEventListener("input", sayChosen);
at("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  api.key.set(at("key").value.trim());
  at("key-dialog").close();
  showError("");
  begin();
});

if (matchMedia("(max-width: 900px)").matches) at("settings").open = false;
begin();
