// Page of a running daemon: asks for the status once a second while the page is visible.

import { element, heading, number, show, text } from "./dom.js";
import { clock, span } from "./format.js";
import { History } from "./history.js";
import { drawPartitions, drawRouter, total } from "./crawls.js";
import { mood, phases } from "./phase.js";
import { Samples } from "./samples.js";
import * as sections from "./sections.js";

const PERIOD = 1000;
/** Time after which an answer counts as missing, in milliseconds. */
const PATIENCE = 5000;
const TOKEN = "urlseen-token";

const history = new History();
const samples = new Samples();
let timer = 0;
let isPaused = false;
/** Time of the first failed request since the last answer. */
let silentSince = null;

/** Answer with a status other than 200. */
class Refusal extends Error {
  constructor(status, reason) {
    super(reason);
    this.status = status;
  }
}

async function ask(path) {
  const token = sessionStorage.getItem(TOKEN);
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const signal = AbortSignal.timeout(PATIENCE);
  const response = await fetch(path, { headers, signal, cache: "no-store" });
  if (!response.ok) throw new Refusal(response.status, (await response.text()).trim());
  return response.json();
}

async function refresh() {
  try {
    const [status, newest] = await Promise.all([
      ask("status"),
      ask(`samples?after=${samples.newest}`),
    ]);
    silentSince = null;
    draw(status, newest);
  } catch (error) {
    fail(error);
  }
}

function draw(answer, newest) {
  const isRouter = "routed" in answer;
  const statuses = isRouter ? [answer] : (answer.partitions ?? [answer]);
  show("login", false);
  show("main", !isRouter);
  show("router", isRouter);
  show("pause", true);
  for (const id of ["main", "router"]) element(id).classList.remove("stale");
  const [first] = statuses;
  drawHead(first, statuses);
  if (isRouter) {
    drawRouter(answer);
    return;
  }
  const origin = statuses.map((it) => `${it.pid} ${it.since}`).join();
  const status = total(statuses);
  if (history.add(performance.now(), sections.values(status), origin)) samples.clear();
  sections.drawOverview(status, history);
  sections.drawItems(status, history);
  sections.drawLists(status, history);
  sections.drawCommits(status, history);
  sections.drawFilter(status);
  sections.drawRules(status);
  sections.drawAsked(status);
  drawPartitions(statuses);
  samples.add(newest);
}

function drawHead(first, statuses) {
  text("crawl", first.crawl);
  const age = span((Date.now() - Date.parse(first.since)) / 1000);
  const redis = first.redis ? `, ${first.redis}` : "";
  text("process", `urlseen ${first.version}, process ${first.pid}, for ${age}${redis}`);
  const words = phases(statuses);
  say(words[0].toUpperCase() + words.slice(1), mood(statuses));
  document.title = `${first.crawl}: ${words.split(":")[0]} – urlseen`;
}

function fail(error) {
  if (error instanceof Refusal && error.status === 401) {
    logIn(error);
    return;
  }
  silentSince ??= new Date();
  for (const id of ["main", "router"]) element(id).classList.add("stale");
  const answered = error instanceof Refusal ? `It answers: ${error.message}.` : "";
  const words = answered || `It has been silent since ${clock(silentSince)}.`;
  say(`The daemon does not answer. ${words} The page goes on asking.`, "bad");
  document.title = "no answer – urlseen";
}

function logIn() {
  const wasWrong = sessionStorage.getItem(TOKEN) !== null;
  sessionStorage.removeItem(TOKEN);
  stop();
  for (const id of ["main", "router", "pause"]) show(id, false);
  show("login", true);
  text("login-error", wasWrong ? "The daemon did not accept this token." : "");
  say("The daemon asks for a token.", "wait");
  element("token").focus();
}

/** Shows the state of the daemon. Assistive programs read it only when it changes. */
function say(words, is) {
  text("state", words);
  element("state").dataset.is = is;
}

/** Asks again and again, until `stop` is called. The pause begins after each answer. */
function start() {
  stop();
  const turn = async () => {
    const mine = timer;
    await refresh();
    if (timer === mine && timer !== 0) timer = setTimeout(turn, PERIOD);
  };
  timer = setTimeout(turn, 0);
}

function stop() {
  clearTimeout(timer);
  timer = 0;
}

function startOrStop() {
  if (isPaused || document.hidden) stop();
  else start();
}

document.addEventListener("visibilitychange", startOrStop);

element("pause").addEventListener("click", () => {
  isPaused = !isPaused;
  text("pause", isPaused ? "Continue" : "Pause");
  if (isPaused) say(`Paused at ${clock(new Date())}.`, "wait");
  startOrStop();
});

element("login").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(TOKEN, element("token").value);
  element("token").value = "";
  start();
});

const wide = (text) => ({ text, kind: "wide" });
const spark = (text) => ({ text, kind: "spark" });

/** Caption of each table, and its headings, by the id of its body. */
const TABLES = {
  fates: [
    "Committed items by fate", "Fate", number("A second"), spark("Last 5 minutes"),
    number("Peak", "wide"), number("Share", "wide"), number("Since the start"),
  ],
  "list-rows": [
    "Items that wait in Redis, and held requests", "List", wide("Items that"), number("Items"),
    number("Change a second"),
  ],
  "commit-rows": ["Since the start of the daemon", "Event", number("Number")],
  "filter-rows": ["Fingerprints in the filter", "Property", number("Value")],
  "generation-rows": ["Fingerprints by age, in generations", "Age", number("Fingerprints")],
  "rule-rows": [
    "Items that a rule decided about, since the start", "Rule", "Kind", number("Items"),
  ],
  "asked-rows": ["Answers to clients, since the start", "Answer", number("Fingerprints")],
  "partition-rows": [
    "Partitions of this process", number("Partition"), "Phase", number("Source"), number("Sink"),
    number("Items", "wide"), number("Fill"),
  ],
  "reject-rows": ["Items that could not be read", "Time", "Item", "Reason"],
  "drop-rows": ["Samples of items that a rule dropped", "Time", "Item", "Rule"],
  "over-rows": ["Samples of unseen items that limits drop", "Time", "Item", "Limit"],
  "router-rows": [
    "Partitions to which this process routes a list", number("Partition"), number("Acknowledged"),
    number("Waiting"), "Connection",
  ],
};

for (const [id, [caption, ...headings]] of Object.entries(TABLES)) {
  const table = element(id).parentElement;
  table.createCaption().textContent = caption;
  table.createTHead().insertRow().append(...headings.map(heading));
}

startOrStop();
