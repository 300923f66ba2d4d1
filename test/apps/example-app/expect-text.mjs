/** How long to wait, in ms. It is long, because a machine can be busy. */
const LIMIT_MS = 60_000;

/** Waits until the text of an element, in one line, matches a pattern. Returns the match. On timeout the error contains the text. */
export const expectText = async (locator, pattern) => {
  const until = performance.now() + LIMIT_MS;
  let text = '';
  do {
    text = (await locator.innerText()).replace(/\s+/g, ' ').trim();
    const match = pattern.exec(text);
    if (match !== null) return match;
    // The page can change with the next animation frame.
    await locator.page().evaluate(() => new Promise((painted) => requestAnimationFrame(painted)));
  } while (performance.now() < until);
  throw new Error(`Waited ${LIMIT_MS} ms for ${pattern}; the text is: ${text}`);
};
