import { chromium as browsers } from 'playwright-core';
import { chromium, chromiumArgs } from '../support.mjs';

/** Starts Chromium with a page. `errors` fills with what its console and its scripts complain of. */
export const openPage = async () => {
  const browser = await browsers.launch({ executablePath: chromium(), args: chromiumArgs });
  const page = await browser.newPage();
  const errors = [];
  // Chromium writes a line for each 503, which is how a relay refuses while its feed is stopped.
  const isComplaint = (message) => message.type() === 'error' && !/status of 503/.test(message.text());
  page.on('console', (message) => isComplaint(message) && errors.push(message.text()));
  page.on('pageerror', (error) => errors.push(String(error)));
  return { page, errors, close: () => browser.close() };
};

/** What the app of the guide shows. */
export const contents = (page) => ({
  /** Waits until the status says it. */
  says: async (pattern) => {
    try {
      await page.getByRole('status').filter({ hasText: pattern }).waitFor();
    } catch (cause) {
      throw new Error(`The page does not say ${pattern}, but: ${await page.innerText('body')}`, { cause });
    }
  },
  frames: async () => Number(/(\d+) in all/.exec(await page.locator('#figures').innerText())?.[1]),
  gaps: async () => Number(/(\d+) gaps/.exec(await page.locator('#figures').innerText())?.[1]),
  lines: () => page.locator('#last li').allInnerTexts(),
  renders: () => page.evaluate(() => globalThis.renders),
  /** Waits until so many frames came since. */
  framesReach: (total) =>
    page.waitForFunction(
      (total) => Number(/(\d+) in all/.exec(document.querySelector('#figures')?.textContent ?? '')?.[1]) >= total,
      total,
    ),
});
