// Test of the daemon's page in Chromium: see scripts/checks/page.

import assert from "node:assert/strict";
import { readFileSync, rmSync, mkdtempSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { gunzipSync } from "node:zlib";
import { setTimeout as pause } from "node:timers/promises";

import { checkContrast, checkKeyboard, checkStructure, checkWidth } from "./checks.mjs";
import { Servers, until } from "./servers.mjs";

const [program, pictures, seconds] = [resolve(process.argv[2]), ...process.argv.slice(3)];
const root = resolve(import.meta.dirname, "../../..");
const { chromium } = createRequire(join(root, "target/node/"))("playwright-core");

const MARKUP = "<img src=x onerror=window.hit=1>";
const TOKEN = "not-much-of-a-secret";
const LINKS = gunzipSync(readFileSync(join(root, "tests/data/python-docs-links.txt.gz")))
  .toString().split("\n").filter(Boolean);
/** Distance of two links that follow each other, so that early portions have links of all pages. */
const STRIDE = 7919;
const OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"].concat(
  ["--disable-background-networking", "--disable-component-update", "--disable-sync"]);

const CRAWL = `[crawl]
name = "docs"
[held]
timeout = "4s"
[filter]
kind = "two-choice"
capacity = 100_000
grow_to = 10_000_000
[[pass]]
name = "indexes"
path = '/genindex'
[[drop]]
name = "mail"
scheme = '^(mailto|javascript)$'
[[drop]]
name = "${MARKUP}"
extension = '^(zip|tar|bz2|epub)$'
`;
const LIMIT = `[[limit]]
name = "pages of a host"
host = '^github\\.com$'
by = "host"
max = 10
`;
const FULL_SINK_AND_CLIENTS = `[sink]
max_len = 1
[serve]
listen = "127.0.0.1:0"
`;
const PARTITIONS = `[crawl]
name = "parts"
[filter]
kind = "two-choice"
capacity = 1000
expire_after = "30d"
[partitions]
count = 4
`;
const REJECTS = [`{"url": "${MARKUP}"}`, "//no-scheme.example/page", '{"url": "http://'];
const DROPS = [`https://a.example/${MARKUP}/book.zip`, `mailto:${MARKUP}@example.com`];

/** Observer of a page: collects errors and requests to other servers. */
function observe(page, address) {
  const faults = [];
  page.on("console", (it) => ["error", "warning"].includes(it.type()) && faults.push(it.text()));
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("request", (it) => it.url().startsWith(address) || faults.push(`asks ${it.url()}`));
  return faults;
}

const textOf = (page, id) => page.locator(`#${id}`).textContent();

/** Waits until an element has a text that a function accepts. */
async function untilText(page, id, accepts) {
  let said = "";
  const seen = async () => accepts((said = await textOf(page, id)));
  await until(`#${id} is right`, seen).catch((error) => {
    throw new Error(`${error.message}; it says: ${said}`);
  });
}

const number = (text) => Number(text.replace(/[^\d.]/g, ""));

async function statusOf(address, token) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch(`${address}status`, { headers });
  return answer.json();
}

const sum = (numbers) => numbers.reduce((all, it) => all + it, 0);
const FATES = ["unseen", "seen", "unfiltered", "dropped", "over_limit", "rejected"];

/** Pushes links of a real crawl, and new ones, in portions that vary, until the time is over. */
async function crawl(servers, time) {
  const end = Date.now() + 1000 * time;
  for (let turn = 0, at = 0; Date.now() < end; turn += 1) {
    const count = Math.round(150 + 90 * Math.sin(turn / 9) + 50 * Math.sin(turn / 2.3));
    const links = Array.from({ length: count }, () => LINKS[(at += STRIDE) % LINKS.length]);
    const fresh = Math.round(45 + 25 * Math.sin(turn / 31));
    links.push(...Array.from({ length: fresh }, (_, n) => `https://new.example/${turn}/${n}.html`));
    if (turn % 7 === 0) links.push(REJECTS[(turn / 7) % REJECTS.length]);
    if (turn % 5 === 0) links.push(DROPS[(turn / 5) % DROPS.length]);
    servers.push("docs:discovered", links);
    await pause(250);
  }
  servers.push("docs:discovered", [...REJECTS, ...DROPS]);
}

/** Checks that the page shows the numbers of the status, once the crawl rests. */
async function checkValues(page, address) {
  await untilText(page, "waiting", (text) => text === "0");
  const { counts, filter, lists, held, head } = await statusOf(address);
  for (const fate of FATES) assert.ok(counts[fate] > 0, `there are items with the fate ${fate}`);
  const cells = page.locator("#fates tr td:last-child");
  const wanted = [...FATES.map((fate) => counts[fate]), sum(FATES.map((fate) => counts[fate]))];
  await until("the counts of the page are those of the status", async () => {
    const shown = (await cells.allTextContents()).map(number);
    return shown.join() === wanted.join();
  });
  const rows = await page.locator("#filter-rows tr td").allTextContents();
  assert.equal(number(rows[0]), filter.keys);
  const known = Object.entries(lists).filter(([name]) => name !== "age_seconds");
  const lengths = [...known.map(([, it]) => it), held.requests];
  const shown = await page.locator("#list-rows tr td:nth-child(3)").allTextContents();
  assert.deepEqual(shown.map(number).toSorted(), lengths.toSorted());
  const commit = `Last commit: ${head.seq.toLocaleString("en")};`;
  assert.ok((await textOf(page, "commit-note")).startsWith(commit));
}

/** Checks the held requests of a consumer, whose heartbeat goes on meanwhile. */
async function checkHeld(page, servers) {
  const keys = ["consumers", "held:spider#1"].map((it) => `urlseen:{docs:discovered}:${it}`);
  const [consumers, held] = keys;
  const row = page.locator("#list-rows tr", { hasText: "Held" });
  const shows = async (words) => (await row.allTextContents()).some((it) => it.includes(words));
  servers.redis("hset", held, "1", "0 0 https://a.example/", "2", "0 0 https://b.example/");
  let beat = 0;
  await until("the page shows the held requests", () => {
    servers.redis("hset", consumers, "spider#1", String((beat += 1)));
    return shows("finished2");
  });
  const note = "Consumers that can hold requests: 1.";
  await untilText(page, "list-note", (text) => text.includes(note));
  servers.redis("del", ...keys);
  await until("the page shows no held request", () => shows("finished0"));
}

/** Checks that an item has an age while its commit waits for a full sink, and counts clients. */
async function checkWaiting(page, servers) {
  servers.push("docs:discovered", ["https://new.example/waits"]);
  await untilText(page, "list-note", (text) => /oldest uncommitted item is at most \d/.test(text));
  const clients = "Clients that are connected: 0; accepted since the start: 0; refused: 0.";
  assert.equal(await textOf(page, "client-note"), clients);
}

/** Checks that markup in items and names of rules is shown as text. */
async function checkMarkup(page) {
  const text = await page.locator("main").first().textContent();
  for (const item of [...DROPS, `GET ${MARKUP}`]) assert.ok(text.includes(item), `it shows ${item}`);
  assert.ok((await textOf(page, "rule-rows")).includes(MARKUP));
  assert.equal(await page.locator("img").count(), 0);
  assert.equal(await page.evaluate(() => window.hit), undefined);
}

async function picture(page, name, width, height, options) {
  await page.setViewportSize({ width, height });
  await page.emulateMedia({ colorScheme: name.includes("dark") ? "dark" : "light" });
  await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true, ...options });
}

/** Checks a page that shows everything, in both colour schemes and at all widths. */
async function checkLooks(page) {
  await checkStructure(page);
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await checkContrast(page);
  }
  for (const width of [360, 600, 1200]) await checkWidth(page, width);
  await checkKeyboard(page);
}

async function testCrawl(browser, servers) {
  const { daemon, address } = await servers.startDaemon(program, "docs", CRAWL + LIMIT);
  const page = await browser.newPage();
  const faults = observe(page, address);
  await page.goto(address);
  await untilText(page, "state", (text) => text === "Working");
  await crawl(servers, Number(seconds));
  await untilText(page, "rate", (text) => number(text) > 100);
  await picture(page, "page", 1120, 660, { fullPage: false });
  for (const [name, ...size] of [["light", 1200, 900], ["dark", 1200, 900], ["phone", 360, 740]]) {
    await picture(page, name, ...size, {});
  }
  await checkHeld(page, servers);
  await checkValues(page, address);
  await checkMarkup(page);
  await checkLooks(page);
  await page.locator("#pause").press("Enter");
  await untilText(page, "state", (text) => text.startsWith("Paused at"));
  await page.locator("#pause").press("Enter");
  await untilText(page, "state", (text) => text === "Working");
  assert.deepEqual(faults, []);

  await servers.end(daemon);
  await untilText(page, "state", (text) => text.startsWith("The daemon does not answer."));
  await checkContrast(page);
  await picture(page, "silent", 1200, 900, {});
  const port = Number(new URL(address).port);
  await servers.startDaemon(program, "docs", CRAWL + FULL_SINK_AND_CLIENTS, { port });
  await untilText(page, "state", (text) => text === "Working");
  await untilText(page, "reject-rows", (text) => text.includes("none since the start"));
  await checkWaiting(page, servers);
  const other = faults.filter((it) => !/ERR_(CONNECTION|EMPTY|SOCKET|ABORTED)/.test(it));
  assert.deepEqual(other, [], "only the outage is an error");
  await page.close();
  console.log("a crawl: right");
}

async function testToken(browser, servers) {
  const env = { URLSEEN_ADMIN_TOKEN: TOKEN };
  const { address } = await servers.startDaemon(program, "parts", PARTITIONS, { env });
  const page = await browser.newPage();
  const faults = observe(page, address);
  await page.goto(address);
  await untilText(page, "state", (text) => text === "The daemon asks for a token.");
  await checkLooks(page);
  await picture(page, "token", 600, 500, {});
  await page.locator("#token").fill("another");
  await page.keyboard.press("Enter");
  await untilText(page, "login-error", (text) => text.includes("did not accept"));
  assert.ok(await page.evaluate(() => document.activeElement.id === "token"));
  await page.keyboard.type(TOKEN);
  await page.keyboard.press("Enter");
  await untilText(page, "state", (text) => text === "Working");
  const { partitions } = await statusOf(address, TOKEN);
  assert.equal(await page.locator("#partition-rows tr").count(), 4);
  const capacity = sum(partitions.map(({ filter }) => filter.capacity));
  const made = await page.locator("#filter-rows tr td").nth(1).textContent();
  assert.equal(number(made), capacity);
  assert.equal(await page.locator("#generation-rows tr").count(), 6);
  await page.reload();
  await untilText(page, "state", (text) => text === "Working");
  await checkLooks(page);
  assert.ok(!(await page.content()).includes(TOKEN));
  const other = faults.filter((it) => !it.includes("401 (Unauthorized)"));
  assert.deepEqual(other, [], "only the refused token is an error");
  await page.close();
  console.log("a token and partitions: right");
}

async function testRouter(browser, servers) {
  const command = ["route", "--listen", "127.0.0.1:0"];
  const { address } = await servers.startDaemon(program, "parts", PARTITIONS, { command });
  servers.push("parts:discovered", LINKS.slice(0, 100));
  const page = await browser.newPage();
  const faults = observe(page, address);
  await page.goto(address);
  await untilText(page, "router-note", (text) => text.startsWith("100 items"));
  await checkLooks(page);
  assert.deepEqual(faults, []);
  await page.close();
  console.log("a router: right");
}

const servers = new Servers();
const profile = mkdtempSync(join(tmpdir(), "urlseen-chromium-"));
const executablePath = "/usr/bin/chromium";
const browser = await chromium.launchPersistentContext(profile, { executablePath, args: OPTIONS });
try {
  await servers.startRedis();
  await testCrawl(browser, servers);
  await testToken(browser, servers);
  await testRouter(browser, servers);
} finally {
  await browser.close();
  servers.close();
  rmSync(profile, { recursive: true, force: true });
}
