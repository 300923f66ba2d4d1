// The page of the example app in Chromium: the built app, what the page shows, screenshots.
import { after } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import {
  expectAccessible as expectPageAccessible,
  expectToFit as expectPageToFit,
  launchChromium,
  newPage,
  patienceMs,
} from '../support.mjs';
import { buildApp } from './app.mjs';

/** The built app. */
export const built = await buildApp();
const browser = await launchChromium();
after(() => browser.close());

/** Repeats a check until it passes: a page changes at its next animation frame, and frames may still be on their way. */
export const eventually = async (check) => {
  // Counts pauses, because a machine that stands still gives it no time.
  for (let pauses = patienceMs / 20; ; pauses -= 1) {
    try {
      return await check();
    } catch (error) {
      if (pauses <= 0) throw error;
      await delay(20);
    }
  }
};

/** Waits until an element's text, on one line, matches a pattern. Returns the match. */
export const expectText = (locator, pattern) =>
  eventually(async () => {
    const text = (await locator.innerText()).replace(/\s+/g, ' ').trim();
    return pattern.exec(text) ?? assert.match(text, pattern);
  });

/** Waits until an element has focus. */
export const expectFocus = ({ page }, id) => page.waitForFunction((id) => document.activeElement.id === id, id);

/** A pattern for a duration in whole seconds, which looks different after a minute. */
export const seconds = String.raw`(?:\d+ min )?\d+ s`;
/** A pattern for a duration of at least this many seconds, but less than ten. */
export const secondsFrom = (least) => String.raw`(?:\d+ min \d+|[${least}-9]|\d\d) s`;

const viewOf = (page, errors) => {
  const log = page.locator('app-event-log li');
  const totalOf = (name) =>
    page
      .locator('app-totals dl > div', { has: page.locator('dt', { hasText: new RegExp(`^${name}$`) }) })
      .locator('dd');
  return {
    page,
    log,
    errors,
    rows: page.locator('.row'),
    button: (name) => page.getByRole('button', { name, exact: true }),
    /** Waits until the text of the status matches a pattern. */
    state: (pattern) => expectText(page.locator('app-status-panel .state'), pattern),
    live: () => expectText(page.locator('app-status-panel .state'), /^Live/),
    /** Waits until the newest entry of the log matches a pattern. */
    happened: (pattern) => expectText(log.first(), pattern),
    /** Returns a total by its name, as a number. */
    total: async (name) => Number.parseFloat((await totalOf(name).innerText()).replaceAll(',', '')),
    close: async () => {
      await page.context().close();
      assert.deepEqual(errors, []);
    },
  };
};

/** Opens the page in a new browser context. Closes it after the test `t`, if any, and fails that if there was an error. */
export const openPage = async (t, url, { before, ...options } = {}) => {
  const { page, errors } = await newPage(browser, { viewport: { width: 1440, height: 1000 }, ...options });
  const view = viewOf(page, errors);
  t?.after(view.close);
  await before?.(page);
  await page.goto(url);
  return view;
};

/** The options of a page on a phone. */
export const phone = { viewport: { width: 360, height: 780 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 };

/** Takes a screenshot of the page (only the visible part with `fullPage: false`) if RX_TRADE_FEED_SCREENSHOTS is a folder. */
export const screenshot = async ({ page }, name, { fullPage = true } = {}) => {
  const folder = process.env.RX_TRADE_FEED_SCREENSHOTS;
  if (folder === undefined) return;
  if (fullPage) await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage });
};

/** Checks that the page is accessible, in light and in dark. Takes a screenshot of both if there's a name. */
export const expectAccessible = async (view, name) => {
  const { page } = view;
  await page.evaluate(readFileSync(join(built.folder, 'node_modules/axe-core/axe.min.js'), 'utf8'));
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    // A color may still be in transition.
    await page.evaluate(() =>
      Promise.all(document.getAnimations().map((animation) => animation.finished.catch(() => undefined))),
    );
    await expectPageAccessible(page);
    if (name !== undefined) await screenshot(view, `${name}-${colorScheme}`);
  }
};

export const expectToFit = ({ page }) => expectPageToFit(page);
