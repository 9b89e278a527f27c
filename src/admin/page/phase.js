// Phases of the daemon in words.

/** Phases that need more words than their names. */
const WORDS = {
  "waiting-for-folder": "waiting for the storage folder",
  "waiting-for-lease": "waiting for the lease",
  recovering: "recovering the filter to the last commit",
  backpressure: "commits wait",
  "redis-away": "waiting for Redis",
  "replicas-away": "waiting for replicas",
  "disk-away": "waiting for the disk",
};

const BACKPRESSURE = {
  sink: "the sink has reached sink.max_len",
  rejects: "the rejects list has reached rejects.max_len",
  replicas: "too few replicas have the last commits",
};

/** Describes a phase. */
export function phase({ name, by, holder, trouble, reason }) {
  const words = WORDS[name] ?? name;
  if (holder) return `${words}, which ${holder} holds`;
  const why = BACKPRESSURE[by] ?? trouble ?? reason;
  return why ? `${words}: ${why}` : words;
}

/** Describes the phases of all partitions together. */
export function phases(statuses) {
  const texts = statuses.map((it) => phase(it.phase));
  if (new Set(texts).size === 1) return texts[0];
  const numbers = new Map();
  for (const [place, { partition = place }] of statuses.entries()) {
    numbers.set(texts[place], [...(numbers.get(texts[place]) ?? []), partition]);
  }
  const parts = [...numbers].map(([text, all]) =>
    text.includes(": ") ? `partition ${all.join(", ")} ${text}` : `${all.length} ${text}`,
  );
  return `${statuses.length} partitions: ${parts.join("; ")}`;
}

/** Tells if phases are good, bad, or pass by themselves. */
export function mood(statuses) {
  const names = statuses.map((it) => it.phase.name);
  if (names.includes("failed")) return "bad";
  return names.every((name) => name === "working") ? "good" : "wait";
}
