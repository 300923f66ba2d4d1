import { launchChromium, newPage } from '../support.mjs';

/** Opens the guide's app in Chromium. `errors` collects the errors of its console and scripts. */
export const openPage = async () => {
  const browser = await launchChromium();
  const { page, errors } = await newPage(browser);
  // Chromium logs each 503 as an error, and a relay answers 503 once its feed has stopped.
  const isError = (message) => message.type() === 'error' && !/status of 503/.test(message.text());
  await page.addInitScript(() => {
    const numberBefore = (word) =>
      Number(new RegExp(`(\\d+) ${word}`).exec(document.querySelector('#figures')?.textContent ?? '')?.[1]);
    globalThis.counts = () => ({
      ...{ frames: numberBefore('in all'), gaps: numberBefore('gaps') },
      ...{ renders: globalThis.renders, seconds: performance.now() / 1_000 },
    });
  });
  page.on('console', (message) => isError(message) && errors.push(message.text()));
  return {
    page,
    errors,
    close: () => browser.close(),
    /** Waits until the status matches a pattern. */
    statusIs: async (pattern) => {
      try {
        await page.getByRole('status').filter({ hasText: pattern }).waitFor();
      } catch (cause) {
        const text = await page.innerText('body');
        throw new Error(`The status does not match ${pattern}. The page contains: ${text}`, { cause });
      }
    },
    /** Returns how many frames and gaps the page has received and how often change detection ran, with the time in seconds. */
    counts: () => page.evaluate(() => globalThis.counts()),
    lines: () => page.locator('#last li').allInnerTexts(),
    /** Waits until the page has received this number of `frames` or `gaps`. */
    reaches: (name, total) =>
      page.waitForFunction(([name, total]) => globalThis.counts()[name] >= total, [name, total]),
  };
};
