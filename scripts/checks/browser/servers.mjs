// A private Redis and a daemon of urlseen, in a temporary folder.

import { spawn, execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

const SOON = 30_000;

/** Waits until a function returns a value that is not false, and returns the value. */
export async function until(what, probe) {
  const end = Date.now() + SOON;
  for (;;) {
    const found = await probe();
    if (found) return found;
    if (Date.now() > end) throw new Error(`not in ${SOON / 1000} s: ${what}`);
    await pause(20);
  }
}

/** Servers of a test. They end with it. */
export class Servers {
  folder = mkdtempSync(join(tmpdir(), "urlseen-page-"));
  #processes = [];

  constructor() {
    // Also after an error that no other code expects.
    process.on("exit", () => this.close());
  }

  async startRedis() {
    const place = ["--unixsocket", this.socket, "--dir", this.folder];
    const options = ["--port", "0", "--save", "", ...place];
    this.#spawn("redis-server", options, "redis.log");
    await until("redis-server answers", () => this.#answers());
  }

  get socket() {
    return join(this.folder, "redis.sock");
  }

  #answers() {
    try {
      return this.redis("ping").trim() === "PONG";
    } catch {
      return false;
    }
  }

  /** Sends a command to Redis. */
  redis(...words) {
    const options = { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] };
    return execFileSync("redis-cli", ["-s", this.socket, ...words], options);
  }

  /** Pushes items to a list. */
  push(list, items) {
    const bulk = (word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`;
    const commands = items.map((item) => `*3\r\n${bulk("RPUSH")}${bulk(list)}${bulk(item)}`);
    const options = { input: commands.join(""), stdio: ["pipe", "ignore", "ignore"] };
    execFileSync("redis-cli", ["-s", this.socket, "--pipe"], options);
  }

  /** Starts a program of urlseen, and returns it with the address of its page. */
  async startDaemon(program, name, config, { port = 0, env = {}, command = ["run"] } = {}) {
    const file = join(this.folder, `${name}.toml`);
    const redis = `[redis]\nurl = "unix://${this.socket}"\n`;
    const admin = command[0] === "run" ? `[admin]\nlisten = "127.0.0.1:${port}"\n` : "";
    writeFileSync(file, config + redis + admin);
    const log = `${name}-${this.#processes.length}.log`;
    const options = [...command, "--config", file];
    const daemon = this.#spawn(program, options, log, { ...process.env, ...env });
    const address = await until(`${name} listens`, () => {
      const said = readFileSync(join(this.folder, log), "utf8");
      if (daemon.exitCode !== null) throw new Error(`${name} has ended: ${said}`);
      return /admin endpoint is at (http:\S+)/.exec(said)?.[1];
    });
    return { daemon, address };
  }

  /** Ends a program, and waits for its end. */
  async end(child) {
    child.kill("SIGTERM");
    await until("a program ends", () => child.exitCode !== null || child.signalCode !== null);
  }

  #spawn(program, options, log, env = process.env) {
    const said = openSync(join(this.folder, log), "a");
    const child = spawn(program, options, { cwd: this.folder, env, stdio: ["ignore", said, said] });
    this.#processes.push(child);
    return child;
  }

  close() {
    for (const child of this.#processes) child.kill("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }
}
