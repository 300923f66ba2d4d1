/** Waits until an element's text, in one line, fits a pattern; gives the match. Says what it reads when the time is over. */
export const expectText = async (locator, pattern, timeout = 15_000) => {
  const until = performance.now() + timeout;
  let text = '';
  do {
    text = (await locator.innerText()).replace(/\s+/g, ' ').trim();
    const match = pattern.exec(text);
    if (match !== null) return match;
    // The page may have changed with its next picture, and not before.
    await locator.page().evaluate(() => new Promise((painted) => requestAnimationFrame(painted)));
  } while (performance.now() < until);
  throw new Error(`Waited ${timeout} ms for ${pattern}; it reads: ${text}`);
};
