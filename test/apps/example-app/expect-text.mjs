/** Waits until the text of an element, in one line, matches a pattern. Returns the match. On timeout the error contains the text. */
export const expectText = async (locator, pattern, timeout = 15_000) => {
  const until = performance.now() + timeout;
  let text = '';
  do {
    text = (await locator.innerText()).replace(/\s+/g, ' ').trim();
    const match = pattern.exec(text);
    if (match !== null) return match;
    // The page can change with the next animation frame.
    await locator.page().evaluate(() => new Promise((painted) => requestAnimationFrame(painted)));
  } while (performance.now() < until);
  throw new Error(`Waited ${timeout} ms for ${pattern}; the text is: ${text}`);
};
