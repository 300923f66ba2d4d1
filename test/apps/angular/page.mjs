import { chromium as browsers } from 'playwright-core';
import { chromium, chromiumArgs } from '../support.mjs';

/** Starts Chromium with a page. `errors` collects the errors of its console and scripts. */
export const openPage = async () => {
  const browser = await browsers.launch({ executablePath: chromium(), args: chromiumArgs });
  const page = await browser.newPage();
  // A machine can be busy.
  page.setDefaultTimeout(60_000);
  const errors = [];
  // Chromium logs each 503 as an error. A relay answers 503 while its feed is stopped.
  const isError = (message) => message.type() === 'error' && !/status of 503/.test(message.text());
  page.on('console', (message) => isError(message) && errors.push(message.text()));
  page.on('pageerror', (error) => errors.push(String(error)));
  return { page, errors, close: () => browser.close() };
};

/** Reads the contents of the app of the guide. */
export const contents = (page) => ({
  /** Waits until the status matches a pattern. */
  statusIs: async (pattern) => {
    try {
      await page.getByRole('status').filter({ hasText: pattern }).waitFor();
    } catch (cause) {
      throw new Error(`The status does not match ${pattern}. The page contains: ${await page.innerText('body')}`, {
        cause,
      });
    }
  },
  frames: async () => Number(/(\d+) in all/.exec(await page.locator('#figures').innerText())?.[1]),
  gaps: async () => Number(/(\d+) gaps/.exec(await page.locator('#figures').innerText())?.[1]),
  lines: () => page.locator('#last li').allInnerTexts(),
  renders: () => page.evaluate(() => globalThis.renders),
  /** Waits until the page has received this number of frames. */
  framesReach: (total) =>
    page.waitForFunction(
      (total) => Number(/(\d+) in all/.exec(document.querySelector('#figures')?.textContent ?? '')?.[1]) >= total,
      total,
    ),
});
