// Checks of any state of the page, inside the browser: structure, names, contrast, width, keyboard.

import assert from "node:assert/strict";

/** Minimum contrast between text and its background (WCAG 2, AA). */
const CONTRAST = 4.5;

/** Checks that headings, captions, scopes, labels and names are complete. */
export async function checkStructure(page) {
  const faults = await page.evaluate(() => {
    const all = (selector) => [...document.querySelectorAll(selector)];
    const bad = (what, nodes) => nodes.map((node) => `${what}: ${node.outerHTML.slice(0, 120)}`);
    const ids = all("[id]").map((node) => node.id);
    const title = (section) => document.getElementById(section.getAttribute("aria-labelledby"));
    const isNamed = (section) => /^H[1-6]$/.test(title(section)?.tagName ?? "");
    const images = all("svg").filter((it) => it.getAttribute("aria-hidden") !== "true");
    return [
      ...bad("table without a caption", all("table").filter((it) => !it.caption?.textContent)),
      ...bad("heading of a table without a scope", all("th").filter((it) => !it.scope)),
      ...bad("section without a heading", all("section").filter((it) => !isNamed(it))),
      ...bad("field without a label", all("input").filter((it) => it.labels.length === 0)),
      ...bad("button without a text", all("button, a").filter((it) => !it.textContent.trim())),
      ...bad("image without a name", images.filter((it) => it.checkVisibility() && !it.ariaLabel)),
      ...ids.filter((id, index) => ids.indexOf(id) !== index).map((id) => `id twice: ${id}`),
      ...(document.documentElement.lang === "en" ? [] : ["the page has no language"]),
      ...(all("h1").length === 1 ? [] : ["the page has not one h1"]),
      ...(all("main").filter((it) => it.checkVisibility()).length <= 1 ? [] : ["two mains"]),
    ];
  });
  assert.deepEqual(faults, []);
}

/** Checks that no text of the page is too pale. */
export async function checkContrast(page) {
  const pale = await page.evaluate((least) => {
    const numbers = (color) => color.match(/[\d.]+/g).map(Number);
    const light = (color) => {
      const parts = numbers(color).slice(0, 3).map((it) => it / 255);
      const linear = (it) => (it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4);
      const [red, green, blue] = parts.map(linear);
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const background = (node) => {
      for (; node; node = node.parentElement) {
        const color = getComputedStyle(node).backgroundColor;
        if ((numbers(color)[3] ?? 1) === 1) return color;
      }
      return "rgb(255, 255, 255)";
    };
    const contrast = (one, other) => {
      const [dark, bright] = [light(one), light(other)].sort((a, b) => a - b);
      return (bright + 0.05) / (dark + 0.05);
    };
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const found = [];
    while (walker.nextNode()) {
      const node = walker.currentNode.parentElement;
      if (!walker.currentNode.data.trim() || !node.checkVisibility()) continue;
      const ratio = contrast(getComputedStyle(node).color, background(node));
      if (ratio < least) found.push(`${ratio.toFixed(2)}: ${walker.currentNode.data.trim()}`);
    }
    return found;
  }, CONTRAST);
  assert.deepEqual(pale, []);
}

/** Checks that the page needs no horizontal scrolling at this width. */
export async function checkWidth(page, width) {
  await page.setViewportSize({ width, height: 740 });
  const wide = await page.evaluate(() => {
    const edge = document.documentElement.clientWidth;
    const isOver = (node) => node.getBoundingClientRect().right > edge + 0.5;
    const nodes = [...document.querySelectorAll("body *")].filter((it) => it.checkVisibility());
    const over = nodes.filter(isOver);
    const names = over.map((node) => node.id || node.className || node.tagName);
    return document.documentElement.scrollWidth > edge ? ["the page", ...names] : names;
  });
  assert.deepEqual(wide, [], `${width} columns`);
}

/** Checks that the Tab key reaches everything that can be used, each with a visible outline. */
export async function checkKeyboard(page) {
  const usable = await page.evaluate(() => {
    const all = [...document.querySelectorAll("a, button, input, [tabindex]")];
    return all.filter((it) => it.checkVisibility()).map((it) => it.textContent || it.id);
  });
  const reached = new Set();
  // The focus also passes the document itself.
  for (let presses = 0; presses <= usable.length; presses += 1) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => {
      const node = document.activeElement;
      if (node === document.body) return null;
      const style = getComputedStyle(node);
      const isShown = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
      return `${node.textContent || node.id}${isShown ? "" : ": no outline"}`;
    }));
  }
  reached.delete(null);
  assert.deepEqual([...reached].toSorted(), usable.toSorted());
}
