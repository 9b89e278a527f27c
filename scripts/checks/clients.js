// Asks a daemon with node-redis and ioredis: node clients.js PORT PACKAGES. The exit status is
// 1 if an answer is wrong.
"use strict";
const assert = require("node:assert/strict");
const [port, packages] = process.argv.slice(2);
const need = require("node:module").createRequire(packages + "/");
const password = process.env.URLSEEN_SERVE_PASSWORD;

async function nodeRedis(RESP) {
  const { createClient } = need("redis");
  const client = createClient({ url: `redis://127.0.0.1:${port}`, password, RESP });
  client.on("error", (error) => { throw error; });
  await client.connect();
  const members = ["a", "b", "c"].map((name) => `https://example.com/node-redis/${RESP}/${name}`);
  const [a, b, c] = members;
  assert.equal(await client.bf.add("demo", a), true);
  assert.equal(await client.bf.add("demo", a), false);
  assert.deepEqual(await client.bf.mAdd("demo", [a, b]), [false, true]);
  assert.equal(await client.bf.exists("demo", b), true);
  assert.deepEqual(await client.bf.mExists("demo", members), [true, true, false]);
  assert.deepEqual(await client.bf.insert("demo", [c]), [true]);
  const held = await client.bf.card("demo");
  const info = await client.bf.info("demo");
  assert.equal(Number(info["Number of items inserted"]), held);
  await assert.rejects(client.bf.reserve("demo", 0.01, 1000), /item exists/);
  assert.equal(await client.sAdd("demo", [a, `${a}/more`]), 1);
  assert.equal(await client.sIsMember("demo", a), 1);
  assert.deepEqual(await client.smIsMember("demo", [a, `${a}/not`]), [1, 0]);
  assert.equal(await client.sCard("demo"), held + 1);
  assert.equal(await client.sRem("demo", a), 1);
  // node-redis sends these commands in one pipeline, because the program awaits them together.
  const all = Array.from({ length: 1000 }, (_, at) => `${a}/pipelined/${at}`);
  const added = await Promise.all(all.map((member) => client.sAdd("demo", member)));
  assert.ok(added.every((count) => count === 1));
  await client.close();
}

async function ioredis() {
  const Redis = need("ioredis");
  const client = new (Redis.default ?? Redis)({ port: Number(port), host: "127.0.0.1", password });
  const key = "demo";
  const member = "https://example.com/ioredis";
  assert.equal(await client.sadd(key, member, `${member}/2`), 2);
  assert.equal(await client.sismember(key, member), 1);
  assert.equal(await client.call("BF.ADD", key, member), 0);
  const pipeline = client.pipeline();
  for (let at = 0; at < 1000; at += 1) pipeline.sadd(key, `${member}/pipelined/${at}`);
  assert.ok((await pipeline.exec()).every(([error, count]) => error === null && count === 1));
  await client.quit();
}

(async () => {
  await nodeRedis(2);
  await nodeRedis(3);
  await ioredis();
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
